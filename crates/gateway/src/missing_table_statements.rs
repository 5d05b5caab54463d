//! Handles a BatchExecuteStatement in which some statements name a table that does not exist. Each statement has its own result, so the others are
//! executed without them.

use bytes::Bytes;
use heatsink_control::Control;
use heatsink_dynamo::{Error, Operation};
use heatsink_route::tables_of;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};

/// A batch, and which of its statements are left out.
pub(crate) struct Split {
    /// The batch to execute; `None` if no statement is left.
    pub rest: Option<Bytes>,
    absent: Vec<bool>,
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
    let Ok(mut request) = serde_json::from_slice::<Map<String, Json>>(body) else { return Ok(None) };
    #[derive(Deserialize)]
    struct Batch<'a> {
        #[serde(rename = "Statements", borrow)]
        statements: Vec<&'a RawValue>,
    }
    let Ok(batch) = serde_json::from_slice::<Batch<'_>>(body) else { return Ok(None) };
    let (mut absent, mut kept) = (Vec::new(), Vec::new());
    for raw in &batch.statements {
        let Ok(statement) = serde_json::from_str::<Statement>(raw.get()) else { return Ok(None) };
        let one = Bytes::from(json!({ "Statement": statement.text }).to_string());
        let Ok(names) = tables_of(Operation::ExecuteStatement, &one) else { return Ok(None) };
        let missing = control.resolve(&names).await?.is_missing();
        absent.push(missing);
        if !missing {
            kept.push(raw.get());
        }
    }
    if !absent.contains(&true) {
        return Ok(None);
    }
    let rest = (!kept.is_empty()).then(|| {
        request.remove("Statements");
        let others = Json::Object(request).to_string();
        let comma = if others == "{}" { "" } else { "," };
        let others = others.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
        Bytes::from(format!("{{\"Statements\":[{}]{comma}{others}}}", kept.join(",")))
    });
    Ok(Some(Split { rest, absent }))
}

impl Split {
    /// The answer to the whole batch, from the answer to the executed part.
    ///
    /// # Errors
    /// `InternalServerError` when that answer is not one to a batch.
    pub fn merged(&self, answer: Option<&Bytes>) -> Result<Bytes, Error> {
        let unreadable = || Error::internal("The store's answer to BatchExecuteStatement cannot be read");
        let mut answer: Json = match answer {
            None => json!({ "Responses": [] }),
            Some(answer) => serde_json::from_slice(answer).map_err(|_| unreadable())?,
        };
        let done = answer["Responses"].as_array_mut().map(std::mem::take).ok_or_else(unreadable)?;
        let mut done = done.into_iter();
        let missing =
            json!({ "Error": { "Code": "ResourceNotFound", "Message": "Requested resource not found" } });
        let all: Option<Vec<Json>> = self
            .absent
            .iter()
            .map(|absent| if *absent { Some(missing.clone()) } else { done.next() })
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
        let split = Split { rest: None, absent: vec![true, false, true] };
        let merged =
            split.merged(Some(&Bytes::from_static(br#"{"Responses":[{"TableName":"t"}]}"#))).unwrap();
        let merged: Json = serde_json::from_slice(&merged).unwrap();
        assert_eq!(merged["Responses"][1]["TableName"], "t");
        assert_eq!(merged["Responses"][0]["Error"]["Code"], "ResourceNotFound");
        assert_eq!(merged["Responses"].as_array().unwrap().len(), 3);
        assert!(split.merged(None).is_err(), "an answer is missing");
    }
}
