//! What clients ask of the table's items, and what they make of the answers.
//!
//! A client counts a call as done, refused, not done or of unknown outcome by what Heatsink says of
//! it, and never sends one twice itself: whoever repeats a call makes another one.

use std::time::Duration;

use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_history::{Answer, Operation, State, Value};
use serde_json::{Value as Json, json};

use crate::world::{World, name};
use crate::{BESIDE, KEY, TABLE};

/// How long a client waits for an answer, when nothing else is said.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The label of an item, as its attribute `status` has it. 0 is none.
pub const LABELS: [&str; 3] = ["", "open", "done"];

/// The label of items that have expired: where the table has time to live the store deletes them
/// when it likes.
pub const EXPIRING: u8 = 2;

/// The attribute that says when an item expires, and what those with that label have of it.
pub const EXPIRES: &str = "expires";
const LONG_AGO: &str = "1767225601";

/// The attributes of the primary key.
pub const KEY_NAMES: [&str; 2] = ["pk", "sk"];

/// The partition key under which an item lies.
pub fn partition_of(item: &str) -> &'static str {
    let of = |(prefix, _): &&(&str, &str)| item.starts_with(prefix);
    BESIDE.iter().find(of).map_or(KEY, |(_, key)| key)
}

/// The primary key of an item.
pub fn key(item: &str) -> Json {
    json!({ "pk": { "S": partition_of(item) }, "sk": { "S": item } })
}

/// An item with a value.
pub fn body(item: &str, value: Value) -> Json {
    let mut body = key(item);
    body["n"] = json!({ "N": value.number.to_string() });
    if value.label > 0 {
        body["status"] = json!({ "S": LABELS[usize::from(value.label)] });
    }
    if value.label == EXPIRING {
        body[EXPIRES] = json!({ "N": LONG_AGO });
    }
    body
}

/// The request for an operation.
pub fn request(item: &str, operation: Operation) -> (Wire, Json) {
    let put = |value, condition: Option<&str>| {
        let mut request = json!({ "TableName": TABLE, "Item": body(item, value) });
        if let Some(condition) = condition {
            request["ConditionExpression"] = json!(condition);
        }
        (Wire::PutItem, request)
    };
    let on = |rest: Json| {
        let mut request = json!({ "TableName": TABLE, "Key": key(item) });
        request.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        request
    };
    match operation {
        Operation::Put(value) => put(value, None),
        Operation::Create(value) => put(value, Some("attribute_not_exists(pk)")),
        Operation::Update(Value { number, label }) => {
            let expression = match label {
                0 => "SET n = :n REMOVE #s, #e",
                EXPIRING => "SET n = :n, #s = :s, #e = :e",
                _ => "SET n = :n, #s = :s REMOVE #e",
            };
            let mut rest = json!({
                "UpdateExpression": expression, "ConditionExpression": "attribute_exists(pk)",
                "ExpressionAttributeNames": { "#s": "status", "#e": EXPIRES },
                "ExpressionAttributeValues": { ":n": { "N": number.to_string() } },
            });
            if label > 0 {
                rest["ExpressionAttributeValues"][":s"] = json!({ "S": LABELS[usize::from(label)] });
            }
            if label == EXPIRING {
                rest["ExpressionAttributeValues"][":e"] = json!({ "N": LONG_AGO });
            }
            (Wire::UpdateItem, on(rest))
        }
        Operation::Delete => (Wire::DeleteItem, on(json!({}))),
        Operation::Add(amount) => {
            let rest = json!({
                "UpdateExpression": "ADD n :d", "ReturnValues": "UPDATED_NEW",
                "ExpressionAttributeValues": { ":d": { "N": amount.to_string() } },
            });
            (Wire::UpdateItem, on(rest))
        }
        Operation::Get | Operation::Find(_) | Operation::Expire(_) => {
            (Wire::GetItem, on(json!({ "ConsistentRead": true })))
        }
    }
}

/// What became of a call.
#[derive(Debug)]
pub enum Reply {
    Answered(Answer),
    NotDone(Error),
    Unknown,
}

impl World {
    /// One call on one item, written down in the book.
    pub async fn call(&self, gateway: usize, item: &str, operation: Operation, patience: Duration) -> Reply {
        let (wire, request) = request(item, operation);
        let invoked = self.book.moment();
        let answer = match self.ask(gateway, wire, &request, patience).await {
            Ok(answer) => self.answer(item, operation, &answer),
            Err(error) if error.code == Code::ConditionalCheckFailedException => Answer::Refused,
            Err(error) if error.outcome == Outcome::Unknown => {
                self.book.call(item, invoked, operation, None);
                return Reply::Unknown;
            }
            Err(error) => {
                self.log.line(format!("  {item}: {operation}: not done by {}: {error}", name(gateway)));
                return Reply::NotDone(error);
            }
        };
        self.book.call(item, invoked, operation, Some(answer));
        Reply::Answered(answer)
    }

    fn answer(&self, item: &str, operation: Operation, answer: &Json) -> Answer {
        match operation {
            Operation::Get | Operation::Find(_) => {
                let row = answer.get("Item");
                let seen = row.and_then(|row| self.row(row));
                if let Some((found, _)) = &seen
                    && found != item
                {
                    self.book.fault(format!("GetItem of {item} answers with {found}"));
                }
                Answer::Saw(seen.map(|(_, value)| value))
            }
            Operation::Add(_) => Answer::Number(number(&answer["Attributes"]).unwrap_or_default()),
            _ => Answer::Done,
        }
    }

    /// Reads a row as clients see it: which item it is, and what it holds. No key in it may be a
    /// physical one.
    pub fn row(&self, row: &Json) -> Option<(String, Value)> {
        let (pk, sk) = (row["pk"]["S"].as_str(), row["sk"]["S"].as_str());
        let status = row["status"]["S"].as_str().unwrap_or_default();
        let label = LABELS.iter().position(|label| *label == status);
        match (pk, sk, number(row), label) {
            (Some(pk), Some(sk), Some(number), Some(label)) if pk == partition_of(sk) => {
                Some((sk.to_owned(), Value { number, label: label as u8 }))
            }
            _ => {
                self.book.fault_within_bounds(format!("a client is shown {row}"));
                None
            }
        }
    }

    /// Every row of the table as it lies in the store, by the item that it is.
    pub async fn rows(&self) -> Vec<(String, State)> {
        let mut found = Vec::new();
        let mut request = json!({ "TableName": TABLE, "ConsistentRead": true });
        loop {
            let mut page = match self.past(Wire::Scan, &request).await {
                Ok(page) => page,
                Err(error) => {
                    self.book.fault(format!("the store's table cannot be read: {error}"));
                    return found;
                }
            };
            for row in page["Items"].as_array().into_iter().flatten() {
                self.log.line(format!("row {row}"));
                let status = row["status"]["S"].as_str().unwrap_or_default();
                let status = status.split("#~").next().unwrap_or_default();
                let label = LABELS.iter().position(|label| *label == status).unwrap_or_default();
                let value = number(row).map(|number| Value { number, label: label as u8 });
                found.push((row["sk"]["S"].as_str().unwrap_or_default().to_owned(), value));
            }
            let start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return found;
            }
            request["ExclusiveStartKey"] = start;
        }
    }
}

/// The number of a row.
pub fn number(row: &Json) -> Option<i64> {
    row["n"]["N"].as_str()?.parse().ok()
}
