//! What the bodies of requests and answers say, and a BatchGetItem in two.

use bytes::Bytes;
use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

/// The name of the registry.
pub(super) const REGISTRY: &str = "heatsink.registry";

/// Whether a request on items is one on the registry.
pub(super) fn is_of_registry(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains(REGISTRY)
}

/// Whether a request names a change in the head of the registry.
pub(super) fn writes_head(operation: Operation, body: &Bytes) -> bool {
    let text = String::from_utf8_lossy(body);
    operation == Operation::PutItem && text.contains(r#""pk":{"S":"head"}"#)
}

/// Whether a request is the transaction that writes the record of a key, and with it that of its
/// table.
pub(super) fn writes_key_record(operation: Operation, body: &[u8]) -> bool {
    operation == Operation::TransactWriteItems
        && String::from_utf8_lossy(body).contains("\"sk\":{\"S\":\"key:")
}

/// The id of the table whose key's record a transaction writes.
pub(super) fn id_of_record(body: &Bytes) -> Json {
    let body: Json = serde_json::from_slice(body).unwrap();
    body["TransactItems"][0]["Put"]["Item"]["pk"]["S"].clone()
}

/// Whether a Query of the registry asks for this record: for those whose places begin so, or are
/// between two.
pub(super) fn asks_for(query: &[u8], record: &Json) -> bool {
    let query: Json = serde_json::from_slice(query).unwrap();
    let text = |name: &str| query["ExpressionAttributeValues"][name]["S"].as_str();
    let place = record["sk"]["S"].as_str().unwrap();
    let first = text(":s").unwrap_or("");
    text(":e").map_or_else(|| place.starts_with(first), |last| (first..=last).contains(&place))
}

pub(super) fn of_table(table: &str) -> Bytes {
    Bytes::from(json!({ "TableName": table }).to_string())
}

/// A BatchGetItem of one table in two: that of its last key, and that of the others.
pub(super) fn halves(body: &Bytes) -> Option<[Bytes; 2]> {
    let body: Json = serde_json::from_slice(body).ok()?;
    let (table, asked) =
        body["RequestItems"].as_object().filter(|tables| tables.len() == 1)?.iter().next()?;
    let (last, others) = asked["Keys"].as_array()?.split_last().filter(|(_, others)| !others.is_empty())?;
    let half = |keys: &[Json]| {
        let mut half = body.clone();
        half["RequestItems"][table]["Keys"] = json!(keys);
        Bytes::from(half.to_string())
    };
    Some([half(std::slice::from_ref(last)), half(others)])
}

/// The answer to both halves.
pub(super) fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    let [mut first, second] = [first, second].map(|half| serde_json::from_slice::<Json>(half).unwrap());
    for (table, items) in first["Responses"].as_object_mut().unwrap() {
        let more = second["Responses"][table].as_array().cloned().unwrap_or_default();
        items.as_array_mut().unwrap().extend(more);
    }
    Bytes::from(first.to_string())
}

pub(super) fn table_of(body: &[u8]) -> Option<String> {
    let body: Json = serde_json::from_slice(body).ok()?;
    body["TableName"].as_str().map(str::to_owned)
}
