//! Which calls the store allows, found by making them: reads of what is not there, and writes whose
//! condition never holds, which change nothing.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Code, KeyType, Operation, TableSchema};
use heatsink_store::Store;
use serde_json::{Map, Value as Json, json};

use crate::exit::without_numbers;

/// What was found of one table.
#[derive(Debug, Default)]
pub struct Tried {
    /// Operations that the store does not allow.
    pub denied: Vec<&'static str>,
    /// What else went wrong, with the operation.
    pub failed: Vec<String>,
}

/// Tries what a gateway asks of a table.
pub async fn tried(store: &Arc<dyn Store>, schema: &TableSchema) -> Tried {
    let (key, partition) = (key_of_nothing(schema), schema.key.partition.name.as_str());
    let (table, names) = (&schema.name, json!({ "#p": partition }));
    let never = "attribute_exists(#p) AND attribute_not_exists(#p)";
    let write = |what: &str| json!({ "TableName": table, what: key, "ConditionExpression": never, "ExpressionAttributeNames": names });
    let query = json!({
        "TableName": table, "Limit": 1, "KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": { ":p": key[partition] },
    });
    let of_batch = json!({ "RequestItems": { table: { "Keys": [key] } } });
    let calls = [
        (Operation::GetItem, json!({ "TableName": table, "Key": key })),
        (Operation::BatchGetItem, of_batch),
        (Operation::Query, query),
        (Operation::Scan, json!({ "TableName": table, "Limit": 1 })),
        (Operation::PutItem, write("Item")),
        (Operation::UpdateItem, write("Key")),
        (Operation::DeleteItem, write("Key")),
    ];
    let mut tried = Tried::default();
    for (operation, body) in calls {
        let answer = store.call(operation, Bytes::from(body.to_string())).await;
        match answer {
            Ok(_) => {}
            Err(error) if error.code == Code::ConditionalCheckFailedException => {}
            Err(error) if error.is_denied() => tried.denied.push(operation.name()),
            Err(error) => {
                tried.failed.push(format!("{}: {}", operation.name(), without_numbers(&error.to_string())))
            }
        }
    }
    tried
}

/// A key that no item has: nobody writes it.
fn key_of_nothing(schema: &TableSchema) -> Json {
    let value = |attribute: &AttributeDefinition| match attribute.key_type {
        KeyType::S => json!({ "S": "heatsink doctor: no such key" }),
        KeyType::N => json!({ "N": "-9.1234567890123456789e99" }),
        // "heatsink doctor".
        KeyType::B => json!({ "B": "aGVhdHNpbmsgZG9jdG9y" }),
    };
    let attributes = std::iter::once(&schema.key.partition).chain(&schema.key.sort);
    Json::Object(attributes.map(|one| (one.name.clone(), value(one))).collect::<Map<_, _>>())
}
