//! Writes of one item, and the table that they are for.

use bytes::Bytes;
use heatsink_dynamo::{Operation, TableSchema};
use heatsink_store::Store;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

pub type Call = (Operation, Json);

/// The table: no sort key, and an index over a number.
pub async fn create(store: &dyn Store) -> TableSchema {
    let attribute = |name: &str, kind: &str| json!({ "AttributeName": name, "AttributeType": kind });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "Votes", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [attribute("pk", "S"), attribute("g", "N"), attribute("h", "S")],
        "KeySchema": [key("pk", "HASH")],
        "GlobalSecondaryIndexes": [{ "IndexName": "by-g", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [key("h", "HASH"), key("g", "RANGE")] }],
    });
    store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
    let described = json!({ "TableName": "Votes" }).to_string();
    let described = store.call(Operation::DescribeTable, Bytes::from(described)).await.unwrap();
    TableSchema::from_description(&described).unwrap()
}

pub fn key() -> Json {
    json!({ "pk": { "S": "a" } })
}

/// An update that adds one, and asks for what is there then.
pub fn add(by: i64, returns: &str) -> Call {
    (
        Operation::UpdateItem,
        json!({
            "TableName": "Votes", "Key": key(), "UpdateExpression": "ADD n :v",
            "ExpressionAttributeValues": { ":v": { "N": by.to_string() } }, "ReturnValues": returns,
        }),
    )
}

fn number() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        (-20_i64..20).prop_map(|number| number.to_string()),
        (-200_i64..200).prop_map(|number| format!("{number}e-2")),
        Just("9".repeat(30)),
    ];
    text.prop_map(|text| json!({ "N": text }))
}

fn value() -> impl Strategy<Value = Json> {
    prop_oneof![
        4 => number(),
        2 => "[a-z]{0,6}".prop_map(|text| json!({ "S": text })),
        1 => (0_usize..900).prop_map(|bytes| json!({ "S": "x".repeat(bytes) })),
        1 => Just(json!({ "L": [{ "N": "1.0" }] })),
        1 => Just(json!({ "BOOL": true })),
        1 => Just(json!({ "NS": ["1", "1.0"] })),
    ]
}

/// A clause of an update of that attribute, whether it is of ADD, and its value.
fn clause(name: &'static str) -> impl Strategy<Value = (&'static str, bool, String, Json)> {
    let clause = move |adds: bool, text: &str, value| (name, adds, text.replace('n', name), value);
    prop_oneof![
        4 => number().prop_map(move |value| clause(true, "n :v", value)),
        2 => number().prop_map(move |value| clause(false, "n = n + :v", value)),
        1 => number().prop_map(move |value| clause(false, "n = n - :v", value)),
        1 => number().prop_map(move |value| clause(false, "n = :v + n", value)),
        1 => number().prop_map(move |value| {
            (name, false, format!("{name} = if_not_exists({name}, :v) + :v"), value)
        }),
        3 => value().prop_map(move |value| clause(false, "n = :v", value)),
        1 => number().prop_map(move |value| (name, false, format!("{name} = other + :v"), value)),
    ]
}

fn update() -> impl Strategy<Value = Call> {
    let names = ["n", "m", "s", "g", "h"];
    let clauses =
        names.map(|name| prop::option::weighted(if name == "n" { 0.8 } else { 0.25 }, clause(name)));
    let returns = prop_oneof![
        4 => Just("NONE"), 4 => Just("UPDATED_NEW"), 2 => Just("ALL_NEW"), 1 => Just("ALL_OLD"),
        1 => Just("UPDATED_OLD"), 1 => Just("NEW"),
    ];
    let condition = prop::option::weighted(0.1, Just("attribute_exists(pk)"));
    let spare = prop::bool::weighted(0.05);
    (clauses, returns, condition, spare, 0_u8..20).prop_map(|(clauses, returns, condition, spare, odd)| {
        let mut values = Map::new();
        let (mut adds, mut sets) = (Vec::new(), Vec::new());
        for (name, adds_to, text, value) in clauses.into_iter().flatten() {
            let text = text.replace(":v", &format!(":{name}"));
            values.insert(format!(":{name}"), value);
            if adds_to { adds.push(text) } else { sets.push(text) }
        }
        if spare {
            values.insert(":spare".to_owned(), json!({ "N": "1" }));
        }
        let mut expression = String::new();
        for (word, clauses) in [("SET", sets), ("ADD", adds)] {
            if !clauses.is_empty() {
                expression += &format!("{word} {} ", clauses.join(", "));
            }
        }
        match odd {
            0 => expression += "REMOVE x",
            1 => expression += "REMOVE",
            _ => {}
        }
        let mut body = json!({ "TableName": "Votes", "Key": key(), "ReturnValues": returns });
        if !expression.is_empty() {
            body["UpdateExpression"] = expression.into();
        }
        if !values.is_empty() {
            body["ExpressionAttributeValues"] = values.into();
        }
        if let Some(condition) = condition {
            body["ConditionExpression"] = condition.into();
        }
        if odd == 2 {
            body["Key"]["n"] = json!({ "N": "1" });
        }
        (Operation::UpdateItem, body)
    })
}

fn put() -> impl Strategy<Value = Call> {
    let returns = prop_oneof![5 => Just("NONE"), 1 => Just("ALL_OLD"), 1 => Just("ALL_NEW")];
    let attribute = || prop::option::of(value());
    let large = prop::bool::weighted(0.05);
    (attribute(), attribute(), attribute(), returns, large).prop_map(|(n, g, s, returns, large)| {
        let mut item = key();
        for (name, value) in [("n", n), ("g", g), ("s", s)] {
            if let Some(value) = value {
                item[name] = value;
            }
        }
        if large {
            item["s"] = json!({ "S": "x".repeat(410_000) });
        }
        (Operation::PutItem, json!({ "TableName": "Votes", "Item": item, "ReturnValues": returns }))
    })
}

fn delete() -> impl Strategy<Value = Call> {
    let returns = prop_oneof![5 => Just("NONE"), 1 => Just("ALL_OLD")];
    returns.prop_map(|returns| {
        (Operation::DeleteItem, json!({ "TableName": "Votes", "Key": key(), "ReturnValues": returns }))
    })
}

/// An update as counters have it: nothing in it is wrong, unless the item is.
fn count() -> impl Strategy<Value = Call> {
    let clause = prop_oneof![
        4 => Just("ADD n :v"), 2 => Just("SET n = n + :v"), 1 => Just("SET n = n - :v"), 1 => Just("ADD m :v"),
        1 => Just("SET n = if_not_exists(n, :v) + :v"), 1 => Just("SET m = :v"), 1 => Just("ADD n :v SET s = :v"),
    ];
    let returns = prop_oneof![2 => Just("NONE"), 3 => Just("UPDATED_NEW"), 1 => Just("ALL_NEW")];
    (clause, number(), returns).prop_map(|(clause, value, returns)| {
        let body = json!({
            "TableName": "Votes", "Key": key(), "UpdateExpression": clause, "ReturnValues": returns,
            "ExpressionAttributeValues": { ":v": value },
        });
        (Operation::UpdateItem, body)
    })
}

/// A run of writes of one item: mostly of one kind, so that many can be combined.
pub fn run() -> impl Strategy<Value = Vec<Call>> {
    let call = |puts: u32| prop_oneof![10 - puts => update(), puts => prop_oneof![3 => put(), 1 => delete()]];
    let counts = prop_oneof![12 => count(), 1 => update()];
    prop_oneof![
        prop::collection::vec(call(1), 1..12),
        prop::collection::vec(call(7), 1..8),
        prop::collection::vec(counts, 1..30),
    ]
}
