//! Transactions: over several tables, sharded and not, with conditions, tokens and repeated items.

use fastrand::Rng;
use serde_json::{Value as Json, json};

use crate::generate::{ROOTS, item, key, key_values};
use crate::schema::Table;
use crate::values::{self, Placeholders};

fn table<'a>(rng: &mut Rng, tables: &'a [Table]) -> &'a Table {
    &tables[if rng.bool() { 0 } else { rng.usize(..tables.len()) }]
}

/// A `TransactGetItems`.
pub fn get(rng: &mut Rng, tables: &[Table]) -> Json {
    let gets: Vec<Json> = (0..rng.usize(1..6))
        .map(|_| {
            let table = table(rng, tables);
            let mut get = json!({"TableName": table.name, "Key": key(rng, table)});
            if rng.u32(..3) == 0 {
                let mut placeholders = Placeholders::default();
                get["ProjectionExpression"] = json!(values::projection(rng, &mut placeholders, ROOTS));
                placeholders.into_body(&mut get);
            }
            json!({ "Get": get })
        })
        .collect();
    json!({ "TransactItems": gets })
}

/// A `TransactWriteItems`. Tokens are few, so that one comes back: with the same actions or with
/// others.
pub fn write(rng: &mut Rng, tables: &[Table]) -> Json {
    let actions: Vec<Json> = (0..rng.usize(1..5)).map(|_| action(rng, tables)).collect();
    let mut body = json!({ "TransactItems": actions });
    if rng.bool() {
        body["ClientRequestToken"] = json!(format!("token-{}", rng.u32(..40)));
    }
    if rng.u32(..6) == 0 {
        body["ReturnItemCollectionMetrics"] = json!("SIZE");
    }
    body
}

fn action(rng: &mut Rng, tables: &[Table]) -> Json {
    let table = table(rng, tables);
    let mut body = json!({"TableName": table.name});
    let mut placeholders = Placeholders::default();
    // A check fails most of the time, and with it the transaction.
    let (name, conditions) = match rng.u32(..10) {
        0..=4 => {
            body["Item"] = item(rng, table);
            ("Put", 5)
        }
        5..=6 => {
            body["UpdateExpression"] = json!(values::update(rng, &mut placeholders, "pk"));
            ("Update", 5)
        }
        7..=8 => ("Delete", 5),
        _ => ("ConditionCheck", 1),
    };
    if name != "Put" {
        body["Key"] = Json::Object(key(rng, table));
    }
    if rng.u32(..conditions) == 0 {
        let keys = key_values(rng, table);
        body["ConditionExpression"] = json!(values::condition(rng, &mut placeholders, ROOTS, &keys, 1));
        if rng.bool() {
            body["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
        }
    }
    placeholders.into_body(&mut body);
    json!({ name: body })
}
