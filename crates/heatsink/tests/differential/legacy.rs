//! Calls with the parameters that expressions replaced.

use fastrand::Rng;
use heatsink_dynamo::Operation;
use serde_json::{Map, Value as Json, json};

use crate::generate::{self, ROOTS, Step};
use crate::schema::Table;
use crate::values;

/// One request with legacy parameters.
pub fn step(rng: &mut Rng, table: &Table) -> Step {
    let key = generate::key(rng, table);
    let mut body = json!({"TableName": table.name});
    let operation = match rng.u32(..8) {
        6 => {
            body["Item"] = generate::item(rng, table);
            expected(rng, &mut body);
            Operation::PutItem
        }
        0 => {
            body["Key"] = Json::Object(key);
            body["AttributesToGet"] = attributes(rng);
            Operation::GetItem
        }
        1 => {
            body["Key"] = Json::Object(key);
            body["AttributeUpdates"] = updates(rng);
            body["ReturnValues"] = json!(["NONE", "ALL_OLD", "ALL_NEW"][rng.usize(..3)]);
            expected(rng, &mut body);
            Operation::UpdateItem
        }
        2 => {
            body["Key"] = Json::Object(key);
            expected(rng, &mut body);
            Operation::DeleteItem
        }
        3 => {
            if rng.bool() {
                body["ScanFilter"] = conditions(rng, 2);
                if rng.bool() {
                    body["ConditionalOperator"] = json!(["AND", "OR"][rng.usize(..2)]);
                }
            }
            reading(rng, &mut body);
            Operation::Scan
        }
        _ => {
            body["KeyConditions"] = key_conditions(rng, table, key);
            if rng.bool() {
                body["QueryFilter"] = conditions(rng, 2);
                if rng.bool() {
                    body["ConditionalOperator"] = json!(["AND", "OR"][rng.usize(..2)]);
                }
            }
            body["ScanIndexForward"] = json!(rng.bool());
            reading(rng, &mut body);
            Operation::Query
        }
    };
    Step { operation: operation.name().to_owned(), body }
}

fn attributes(rng: &mut Rng) -> Json {
    let mut names: Vec<&str> = (0..rng.usize(1..4)).map(|_| ROOTS[rng.usize(..ROOTS.len())]).collect();
    names.sort_unstable();
    names.dedup();
    json!(names)
}

fn reading(rng: &mut Rng, body: &mut Json) {
    if rng.u32(..3) == 0 {
        body["AttributesToGet"] = attributes(rng);
    }
    if rng.bool() {
        body["Limit"] = json!(rng.u32(1..9));
    }
}

fn expected(rng: &mut Rng, body: &mut Json) {
    if rng.bool() {
        body["Expected"] = if rng.u32(..4) == 0 {
            let value = values::key(rng, "S", true);
            let there = if rng.bool() { json!({"Value": value}) } else { json!({"Exists": false}) };
            json!({ "pk": there })
        } else {
            conditions(rng, 2)
        };
        if rng.bool() {
            body["ConditionalOperator"] = json!(["AND", "OR"][rng.usize(..2)]);
        }
    }
}

fn updates(rng: &mut Rng) -> Json {
    let mut updates = Map::new();
    for name in ["v", "l", "m"] {
        if rng.bool() {
            let update = match rng.u32(..3) {
                0 => json!({"Action": "DELETE"}),
                1 => json!({"Action": "ADD", "Value": {"N": rng.i32(-2..5).to_string()}}),
                _ => json!({"Action": "PUT", "Value": values::any(rng, 1)}),
            };
            updates.insert(name.to_owned(), update);
        }
    }
    Json::Object(updates)
}

fn key_conditions(rng: &mut Rng, table: &Table, key: Map<String, Json>) -> Json {
    let mut conditions = Map::new();
    for (name, value) in key {
        if name == table.partition.0 {
            conditions.insert(name, json!({"ComparisonOperator": "EQ", "AttributeValueList": [value]}));
        } else if rng.bool() {
            let operator = ["EQ", "LT", "LE", "GT", "GE"][rng.usize(..5)];
            conditions.insert(name, json!({"ComparisonOperator": operator, "AttributeValueList": [value]}));
        }
    }
    Json::Object(conditions)
}

/// Up to `most` conditions on attributes, keys among them.
fn conditions(rng: &mut Rng, most: usize) -> Json {
    let mut conditions = Map::new();
    for _ in 0..rng.usize(1..=most) {
        let name = ROOTS[rng.usize(..ROOTS.len())];
        let operand = match name {
            "pk" | "sk" if rng.u32(..4) > 0 => values::key(rng, "S", name == "pk"),
            // Keys of indexes.
            "t" if rng.u32(..4) > 0 => values::index_key(rng, "S"),
            "b" if rng.u32(..4) > 0 => values::index_key(rng, "B"),
            _ => values::any(rng, 0),
        };
        let (operator, list) = match rng.u32(..10) {
            8 => ("BETWEEN", vec![operand.clone(), operand]),
            9 => ("GE", vec![operand]),
            0 => ("NULL", vec![]),
            1 => ("NOT_NULL", vec![]),
            2 => ("NE", vec![operand]),
            3 => ("IN", vec![operand.clone(), operand]),
            4 => ("BEGINS_WITH", vec![json!({"S": "t"})]),
            5 => ("CONTAINS", vec![json!({"S": "t1"})]),
            6 => ("NOT_CONTAINS", vec![json!({"S": "t1"})]),
            _ => ("EQ", vec![operand]),
        };
        let condition = if list.is_empty() {
            json!({ "ComparisonOperator": operator })
        } else {
            json!({"ComparisonOperator": operator, "AttributeValueList": list})
        };
        conditions.insert(name.to_owned(), condition);
    }
    Json::Object(conditions)
}
