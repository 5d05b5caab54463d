//! Reads the consumed capacity of a request from the store, without showing it to a client that did
//! not ask for it.

use std::collections::HashMap;

use bytes::Bytes;
use heatsink_dynamo::{Error, json};
use heatsink_physics::Units;
use serde::Deserialize;
use serde_json::Value as Json;

const MEMBER: &str = "ReturnConsumedCapacity";
const ANSWERED: &str = "ConsumedCapacity";

/// The capacity detail that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CapacityDetail {
    Nothing,
    Total,
    Indexes,
}

impl CapacityDetail {
    /// The detail that a request asks for; `None` for an unknown value, which the store refuses.
    pub(super) fn read(body: &[u8]) -> Option<CapacityDetail> {
        match json::member(body, MEMBER).ok()? {
            None | Some(b"null") => Some(CapacityDetail::Nothing),
            Some(asked) => match &*json::string(asked).ok()? {
                "NONE" => Some(CapacityDetail::Nothing),
                "TOTAL" => Some(CapacityDetail::Total),
                "INDEXES" => Some(CapacityDetail::Indexes),
                _ => None,
            },
        }
    }
}

/// Where the figures of a request's global indexes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexCosts {
    /// It writes to none.
    None,
    /// The store says them: what the request changes is not known.
    Told,
    /// From what it changes. The store counts a write of each index also where the entry stays as it
    /// is, which costs nothing (AWS, "Global secondary indexes").
    Changed,
}

/// What a request writes to global indexes.
pub(super) struct IndexWrites(pub HashMap<(String, String), Units>);

impl IndexWrites {
    fn of(&self, table: &str, index: &str) -> Units {
        self.0.get(&(table.to_owned(), index.to_owned())).copied().unwrap_or_default()
    }
}

/// The consumed capacity of one table in one request.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Consumed {
    #[serde(rename = "TableName", default)]
    pub table: String,
    #[serde(rename = "CapacityUnits", default)]
    total: f64,
    #[serde(rename = "GlobalSecondaryIndexes", default)]
    indexes: HashMap<String, Detail>,
}

#[derive(Debug, Default, Deserialize)]
struct Detail {
    #[serde(rename = "CapacityUnits", default)]
    units: f64,
}

impl Consumed {
    /// The total.
    pub(super) fn total(&self) -> Units {
        Units::from_f64(self.total)
    }

    /// The part of the table itself and its local indexes.
    pub(super) fn own(&self) -> Units {
        Units::from_f64(self.total).less(self.indexes().map(|(_, units)| units).sum())
    }

    /// The same with what is written to its indexes; `None` if that is what it says.
    fn corrected(&self, writes: &IndexWrites) -> Option<Consumed> {
        let is_so = |(index, units)| writes.of(&self.table, index) == units;
        if self.indexes().all(is_so) {
            return None;
        }
        let units = |name: &String| writes.of(&self.table, name);
        let indexes: HashMap<String, Detail> = self
            .indexes
            .keys()
            .filter(|name| units(name) > Units::ZERO)
            .map(|name| (name.clone(), Detail { units: units(name).to_f64() }))
            .collect();
        let total = self.own() + indexes.keys().map(units).sum::<Units>();
        Some(Consumed { table: self.table.clone(), total: total.to_f64(), indexes })
    }

    /// A table's consumed capacity with these figures.
    fn written(&self, told: &[u8]) -> Result<Vec<u8>, Error> {
        let mut told: serde_json::Map<String, Json> =
            serde_json::from_slice(told).map_err(|_| unreadable())?;
        for name in ["CapacityUnits", "WriteCapacityUnits"] {
            if let Some(units) = told.get_mut(name) {
                *units = self.total.into();
            }
        }
        if let Some(indexes) = told.get_mut("GlobalSecondaryIndexes").and_then(Json::as_object_mut) {
            indexes.retain(|name, _| self.indexes.contains_key(name));
            for (name, detail) in &self.indexes {
                indexes.insert(name.clone(), serde_json::json!({ "CapacityUnits": detail.units }));
            }
        }
        if self.indexes.is_empty() {
            told.remove("GlobalSecondaryIndexes");
        }
        Ok(Json::Object(told).to_string().into_bytes())
    }

    /// The part of each global index.
    pub(super) fn indexes(&self) -> impl Iterator<Item = (&str, Units)> {
        self.indexes.iter().map(|(name, detail)| (name.as_str(), Units::from_f64(detail.units)))
    }
}

/// The request with more capacity detail, if the client asked for too little. `detailed`: indexes
/// are needed separately.
///
/// # Errors
/// `SerializationException` if the body is not a JSON object.
pub(super) fn ask(body: &Bytes, told: CapacityDetail, detailed: bool) -> Result<Bytes, Error> {
    let value: &[u8] = match (told, detailed) {
        (CapacityDetail::Nothing | CapacityDetail::Total, true) => b"\"INDEXES\"",
        (CapacityDetail::Nothing, false) => b"\"TOTAL\"",
        _ => return Ok(body.clone()),
    };
    splice(body, MEMBER, Some(value))
}

/// Reads the consumed capacity of an answer, and leaves in it only what the client asked for.
///
/// # Errors
/// `InternalServerError` if the answer is not a JSON object.
pub(super) fn tell(
    answer: Bytes,
    told: CapacityDetail,
    writes: Option<&IndexWrites>,
) -> Result<(Bytes, Vec<Consumed>), Error> {
    let raw = json::member(&answer, ANSWERED).map_err(|_| unreadable())?;
    let Some(raw) = raw else { return Ok((answer, Vec::new())) };
    let many = raw.starts_with(b"[");
    let mut elements = if many { json::elements(raw).map_err(|_| unreadable())? } else { vec![raw] };
    let mut consumed = Vec::with_capacity(elements.len());
    let mut changed: Vec<Vec<u8>> = Vec::new();
    for element in &elements {
        let mut figures: Consumed = serde_json::from_slice(element).map_err(|_| unreadable())?;
        let mut written = element.to_vec();
        if let Some(corrected) = writes.and_then(|writes| figures.corrected(writes)) {
            written = corrected.written(element)?;
            figures = corrected;
        }
        changed.push(written);
        consumed.push(figures);
    }
    elements = changed.iter().map(Vec::as_slice).collect();
    let answer = match told {
        CapacityDetail::Nothing => splice(&answer, ANSWERED, None)?,
        CapacityDetail::Indexes => splice(&answer, ANSWERED, Some(&listed(&elements, many)))?,
        CapacityDetail::Total => {
            let totals: Result<Vec<_>, Error> = elements.into_iter().map(without_detail).collect();
            let totals = totals?;
            let totals: Vec<&[u8]> = totals.iter().map(Vec::as_slice).collect();
            splice(&answer, ANSWERED, Some(&listed(&totals, many)))?
        }
    };
    Ok((answer, consumed))
}

/// One element, or the list of `many`.
fn listed(elements: &[&[u8]], many: bool) -> Vec<u8> {
    let joined = elements.join(&b',');
    if many { [&b"["[..], &joined, b"]"].concat() } else { joined }
}

fn without_detail(consumed: &[u8]) -> Result<Vec<u8>, Error> {
    let detail = ["Table", "LocalSecondaryIndexes", "GlobalSecondaryIndexes", "VectorIndexes"];
    json::splice_members(consumed, &detail.map(|name| (name, None))).map_err(|_| unreadable())
}

fn splice(object: &[u8], name: &str, value: Option<&[u8]>) -> Result<Bytes, Error> {
    let spliced = json::splice_members(object, &[(name, value)]).map_err(|_| unreadable())?;
    Ok(Bytes::from(spliced))
}

/// The outcome of a request whose answer cannot be read: it was carried out.
fn unreadable() -> Error {
    Error::internal("The store's answer is not the JSON of a DynamoDB answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(request: &str, detailed: bool, answer: &str) -> (String, String, Vec<Consumed>) {
        let request = Bytes::copy_from_slice(request.as_bytes());
        let told = CapacityDetail::read(&request).unwrap();
        let asked = ask(&request, told, detailed).unwrap();
        let (answer, consumed) = tell(Bytes::copy_from_slice(answer.as_bytes()), told, None).unwrap();
        (String::from_utf8(asked.into()).unwrap(), String::from_utf8(answer.into()).unwrap(), consumed)
    }

    const DETAIL: &str = r#"{"Item":{},"ConsumedCapacity":{"TableName":"t","CapacityUnits":3.0,"Table":{"CapacityUnits":1.0},"GlobalSecondaryIndexes":{"i":{"CapacityUnits":2.0}}}}"#;

    #[test]
    fn a_client_that_asked_for_nothing_gets_nothing() {
        let (asked, answer, consumed) = told(r#"{"TableName":"t"}"#, true, DETAIL);
        assert_eq!(asked, r#"{"TableName":"t","ReturnConsumedCapacity":"INDEXES"}"#);
        assert_eq!(answer, r#"{"Item":{}}"#);
        assert_eq!((consumed[0].total(), consumed[0].own()), (Units::whole(3), Units::ONE));
        assert_eq!(consumed[0].indexes().collect::<Vec<_>>(), [("i", Units::whole(2))]);
        assert_eq!(
            told(r#"{"ReturnConsumedCapacity":"NONE"}"#, false, "{}").0,
            r#"{"ReturnConsumedCapacity":"TOTAL"}"#
        );
    }

    #[test]
    fn a_client_gets_what_it_asked_for() {
        let (asked, answer, _) = told(r#"{"ReturnConsumedCapacity":"INDEXES"}"#, true, DETAIL);
        assert_eq!((asked.as_str(), answer.as_str()), (r#"{"ReturnConsumedCapacity":"INDEXES"}"#, DETAIL));
        let (asked, answer, _) = told(r#"{"ReturnConsumedCapacity":"TOTAL"}"#, true, DETAIL);
        assert_eq!(asked, r#"{"ReturnConsumedCapacity":"INDEXES"}"#);
        assert_eq!(answer, r#"{"Item":{},"ConsumedCapacity":{"TableName":"t","CapacityUnits":3.0}}"#);
        let batch = r#"{"ConsumedCapacity":[{"TableName":"t","CapacityUnits":1.0,"Table":{}},{"TableName":"u","CapacityUnits":2.0}]}"#;
        let (_, answer, consumed) = told(r#"{"ReturnConsumedCapacity":"TOTAL"}"#, true, batch);
        assert_eq!(answer, batch.replace(r#","Table":{}"#, ""));
        assert_eq!(consumed.len(), 2);
        assert_eq!(CapacityDetail::read(br#"{"ReturnConsumedCapacity":"SOME"}"#), None);
    }
}
