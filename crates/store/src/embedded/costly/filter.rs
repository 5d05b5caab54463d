//! Pages whose filters cost too much: the engine reads the page without the filter, and the rows
//! are filtered here.
//!
//! First the engine is asked how much the page evaluates. It may evaluate most filters itself.

use std::collections::BTreeSet;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Condition, Extent, Fresh, Kind, Path, Projection};
use heatsink_dynamo::json;
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Error, Operation};

use super::action::malformed;
use super::{BUDGET, MENTIONED, SHORT, TOO_MUCH, refused};

/// The most bytes that a page evaluates.
const PAGE: usize = 1 << 20;
/// Two reads of 4 KB that may be stale.
const BYTES_OF_A_UNIT: f64 = 8192.0;

/// A page with a filter that can cost too much.
pub(crate) struct Filtered {
    body: Bytes,
    filter: Condition,
    /// The request whose answer tells how many rows the page evaluates.
    pub(crate) probe: Bytes,
}

/// A page and its filter, separated.
pub(crate) struct Apart {
    filter: Condition,
    projection: Option<Projection>,
    count: bool,
    /// The request whose answer holds every row, whole.
    pub(crate) body: Bytes,
}

/// The members of a request that belong to its filter.
struct Members {
    filter: Option<String>,
    key: Option<String>,
    projection: Option<String>,
    select: Option<String>,
    names: Option<Bytes>,
    values: Option<Bytes>,
    on_index: bool,
}

impl Members {
    fn read(body: &Bytes) -> Option<Members> {
        let members = [
            "FilterExpression",
            "KeyConditionExpression",
            "ProjectionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "Select",
            "IndexName",
        ];
        let [filter, key, projection, names, values, select, index] =
            json::attributes_of(body, members).ok()?;
        let there = |raw: Option<&'_ [u8]>| raw.filter(|raw| *raw != b"null").map(|raw| body.slice_ref(raw));
        let text =
            |raw: Option<&[u8]>| raw.and_then(|raw| json::string(raw).ok()).map(|text| text.into_owned());
        Some(Members {
            filter: text(filter),
            key: text(key),
            projection: text(projection),
            select: text(select),
            names: there(names),
            values: there(values),
            on_index: there(index).is_some(),
        })
    }

    fn bindings(&self) -> Result<Bindings<'_>, Error> {
        Bindings::read(self.names.as_deref(), self.values.as_deref())
    }
}

impl Filtered {
    /// The request, if its filter costs too much on a page that is full.
    ///
    /// # Errors
    /// `ValidationException` for a long filter that is not understood, and for one that mentions
    /// large values too often.
    pub(crate) fn read(operation: Operation, body: &Bytes) -> Result<Option<Filtered>, Error> {
        if !matches!(operation, Operation::Query | Operation::Scan) {
            return Ok(None);
        }
        let Some(members) = Members::read(body) else { return Ok(None) };
        let Some(text) = &members.filter else { return Ok(None) };
        let bindings = members.bindings()?;
        if bindings.mentioned(&[text]) > MENTIONED {
            return Err(refused(TOO_MUCH));
        }
        let filter = match Condition::parse(Kind::Filter, text, &bindings) {
            Ok(filter) => filter,
            Err(why) if text.len() > SHORT => return Err(why),
            Err(_) => return Ok(None),
        };
        if filter.cost(Extent::AtMost(PAGE)) <= BUDGET {
            return Ok(None);
        }
        let kept: Vec<&str> = members.key.as_deref().into_iter().collect();
        let (names, values) = bindings.rewritten(&kept, &Fresh::avoiding(&bindings));
        let changes = [
            ("FilterExpression", None),
            ("ProjectionExpression", None),
            ("ExpressionAttributeNames", names.as_deref()),
            ("ExpressionAttributeValues", values.as_deref()),
            ("Select", Some(br#""COUNT""#.as_slice())),
            ("ReturnConsumedCapacity", Some(br#""TOTAL""#.as_slice())),
        ];
        let probe = json::splice_members(body, &changes).map_err(malformed)?.into();
        Ok(Some(Filtered { body: body.clone(), filter, probe }))
    }

    /// Whether the engine may filter the page that [`Filtered::probe`] told of.
    pub(crate) fn is_cheap(&self, told: &[u8]) -> bool {
        let units = || {
            let consumed = json::member(told, "ConsumedCapacity").ok()??;
            let units = json::member(consumed, "CapacityUnits").ok()??;
            std::str::from_utf8(units).ok()?.trim().parse::<f64>().ok()
        };
        let Some(units) = units() else { return false };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "units are few and not negative"
        )]
        let bytes = (units * BYTES_OF_A_UNIT).ceil() as usize;
        self.filter.cost(Extent::AtMost(bytes)) <= BUDGET
    }

    /// Separates the page from its filter.
    ///
    /// # Errors
    /// `ValidationException` for requests that cannot be separated.
    pub(crate) fn apart(&self) -> Result<Apart, Error> {
        let Some(members) = Members::read(&self.body) else {
            return Err(Error::serialization("Unexpected value type in payload"));
        };
        let (bindings, filter) = (members.bindings()?, &self.filter);
        let parsed =
            members.projection.as_ref().map(|text| Projection::parse(text, &bindings)).transpose()?;
        let texts: Vec<&str> = [&members.filter, &members.key, &members.projection]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        bindings.check_unused(&texts)?;
        // From an index, only attributes that it projects are read: for others the engine gives
        // another answer.
        if members.on_index && parsed.is_some() {
            return Err(refused("a filter this large together with an index and a projection"));
        }
        let always = always(filter)?;
        let mut fresh = Fresh::avoiding(&bindings);
        let always = always.render(&mut fresh);
        if always.len() > heatsink_dynamo::expression::MAX_EXPRESSION {
            return Err(refused("a filter of so many paths"));
        }
        let kept: Vec<&str> = std::iter::once(always.as_str()).chain(members.key.as_deref()).collect();
        let (names, values) = bindings.rewritten(&kept, &fresh);
        let mut text = Vec::new();
        json::write_string(&mut text, &always);
        let count = members.select.as_deref() == Some("COUNT");
        let mut changes = vec![
            ("FilterExpression", Some(text.as_slice())),
            ("ProjectionExpression", None),
            ("ExpressionAttributeNames", names.as_deref()),
            ("ExpressionAttributeValues", values.as_deref()),
        ];
        if count || members.select.as_deref() == Some("SPECIFIC_ATTRIBUTES") && parsed.is_some() {
            changes.push(("Select", None));
        }
        let body = json::splice_members(&self.body, &changes).map_err(malformed)?.into();
        Ok(Apart { filter: filter.clone(), projection: parsed, count, body })
    }
}

/// A filter that holds for every row and mentions every path, so that the engine still refuses
/// forbidden paths.
fn always(filter: &Condition) -> Result<Condition, Error> {
    let paths: BTreeSet<&Path> = filter.paths().into_iter().collect();
    let Some(first) = paths.first() else { return Err(refused("a filter that reads no attribute")) };
    let missing = Condition::NotExists((*first).clone());
    let exists = paths.iter().map(|path| Condition::Exists((*path).clone()));
    Ok(Condition::Or(std::iter::once(missing).chain(exists).collect()))
}

impl Apart {
    /// The answer to the request, from the answer to [`Apart::body`]. Runs on the evaluator's
    /// thread.
    ///
    /// # Errors
    /// When the answer is no page.
    pub(crate) fn apply(&self, answer: &[u8]) -> Result<Bytes, Error> {
        let broken = |_| Error::internal("the engine's page cannot be read");
        let rows = json::member(answer, "Items").map_err(broken)?.unwrap_or(b"[]");
        let mut items = Vec::from(*b"[");
        let mut count = 0_usize;
        for row in json::elements(rows).map_err(broken)? {
            let item = read_item(row)?;
            if !self.filter.holds(&item) {
                continue;
            }
            count += 1;
            if count > 1 {
                items.push(b',');
            }
            match &self.projection {
                Some(projection) => write_item(&projection.apply(&item), &mut items),
                None => items.extend_from_slice(row),
            }
        }
        items.push(b']');
        let count = count.to_string();
        let items = (!self.count).then_some(items.as_slice());
        let changes = [("Count", Some(count.as_bytes())), ("Items", items)];
        Ok(json::splice_members(answer, &changes).map_err(broken)?.into())
    }
}
