//! Handles a BatchExecuteStatement in which some statements name a table that does not exist. Each
//! statement has its own result, so the others are executed without them. What is wrong with a
//! statement itself is told rather than its missing table: the store is asked, in a way that can
//! have no effect.

use bytes::Bytes;
use heatsink_control::{Control, NOBODY};
use heatsink_dynamo::{Error, Operation, json};
use heatsink_route::tables_of;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use crate::missing_table;

/// A batch, and which of its statements are left out.
pub(crate) struct Split {
    /// The batch to execute; `None` if no statement is left.
    pub rest: Option<Bytes>,
    /// The batch of those that are left out, as the store is asked for its errors; `None` where it
    /// cannot be asked.
    pub asked: Option<Bytes>,
    /// Of each statement the table that is not there.
    absent: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct Statement {
    #[serde(rename = "Statement")]
    text: String,
}

/// Splits a batch; `None` if no statement names a missing table, or one cannot be parsed.
///
/// # Errors
/// Those of [`Control::resolve`].
pub(crate) async fn split(control: &Control, body: &[u8]) -> Result<Option<Split>, Error> {
    #[derive(Deserialize)]
    struct Batch<'a> {
        #[serde(rename = "Statements", borrow)]
        statements: Vec<&'a RawValue>,
    }
    let Ok(batch) = serde_json::from_slice::<Batch<'_>>(body) else { return Ok(None) };
    let (mut absent, mut kept, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for raw in &batch.statements {
        let Ok(statement) = serde_json::from_str::<Statement>(raw.get()) else { return Ok(None) };
        let one = Bytes::from(json!({ "Statement": statement.text }).to_string());
        let Ok(names) = tables_of(Operation::ExecuteStatement, &one) else { return Ok(None) };
        let missing = control.resolve(&names).await?.is_missing();
        if missing {
            left_out.push(missing_table::statement(raw.get().as_bytes()));
            absent.push(names.first().map(|name| name.to_string()));
        } else {
            kept.push(raw.get());
            absent.push(None);
        }
    }
    if left_out.is_empty() {
        return Ok(None);
    }
    let of = |statements: &[u8]| {
        let list = [b"[", statements, b"]"].concat();
        json::splice_members(body, &[("Statements", Some(&list))]).ok().map(Bytes::from)
    };
    let rest = if kept.is_empty() { None } else { of(kept.join(",").as_bytes()) };
    let left_out: Option<Vec<Bytes>> = left_out.into_iter().collect();
    let asked = left_out.and_then(|left_out| of(&left_out.join(&b","[..])));
    Ok(Some(Split { rest, asked, absent }))
}

impl Split {
    /// The answer to the whole batch, from the answer to the executed part, and the one to
    /// [`asked`](Self::asked).
    ///
    /// # Errors
    /// `InternalServerError` when that answer is not one to a batch.
    pub fn merged(&self, answer: Option<&Bytes>, told: Option<&Bytes>) -> Result<Bytes, Error> {
        let unreadable = || Error::internal("The store's answer to BatchExecuteStatement cannot be read");
        let mut answer: Json = match answer {
            None => json!({ "Responses": [] }),
            Some(answer) => serde_json::from_slice(answer).map_err(|_| unreadable())?,
        };
        let done = answer["Responses"].as_array_mut().map(std::mem::take).ok_or_else(unreadable)?;
        let mut done = done.into_iter();
        let missing = |table: &str| {
            let error = json!({ "Code": "ResourceNotFound", "Message": "Requested resource not found" });
            json!({ "Error": error, "TableName": table })
        };
        let told: Option<Json> = told.and_then(|told| serde_json::from_slice(told).ok());
        let mut told = told.iter().flat_map(|told| told["Responses"].as_array()).flatten();
        // Its own error, unless that is about the table, or it has none: the table may have
        // appeared meanwhile.
        let own = |told: &&Json| told["Error"].is_object() && !told.to_string().contains(NOBODY);
        let mut left_out = |table: &str| told.next().filter(own).cloned().unwrap_or_else(|| missing(table));
        let all: Option<Vec<Json>> = self
            .absent
            .iter()
            .map(|absent| match absent {
                Some(table) => Some(left_out(table)),
                None => done.next(),
            })
            .collect();
        answer["Responses"] = Json::Array(all.ok_or_else(unreadable)?);
        Ok(Bytes::from(answer.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_statements() {
        let split =
            Split { rest: None, asked: None, absent: vec![Some("u".to_owned()), None, Some("u".to_owned())] };
        let done = Bytes::from_static(br#"{"Responses":[{"TableName":"t"}]}"#);
        let told = Bytes::from_static(br#"{"Responses":[{"Error":{"Code":"ValidationError"}},{}]}"#);
        let merged = split.merged(Some(&done), Some(&told)).unwrap();
        let merged: Json = serde_json::from_slice(&merged).unwrap();
        assert_eq!(merged["Responses"][0]["Error"]["Code"], "ValidationError");
        assert_eq!(merged["Responses"][1]["TableName"], "t");
        assert_eq!(merged["Responses"][2]["Error"]["Code"], "ResourceNotFound");
        assert_eq!(merged["Responses"].as_array().unwrap().len(), 3);
        assert!(split.merged(None, None).is_err(), "an answer is missing");
    }
}
