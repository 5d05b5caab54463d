//! The answer to a request for several items, out of those to one item each.

use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

/// The sum of two costs, member by member.
pub(crate) fn added(sum: Json, more: Json) -> Json {
    if sum.is_null() {
        return more;
    }
    match (sum, more) {
        (Json::Object(mut sum), Json::Object(more)) => {
            for (name, value) in more {
                let before = sum.remove(&name).unwrap_or(Json::Null);
                sum.insert(name, added(before, value));
            }
            sum.into()
        }
        (Json::Number(sum), Json::Number(more)) => json!(sum.as_f64().unwrap() + more.as_f64().unwrap()),
        (sum, _) => sum,
    }
}

/// The answer with as much of the cost as was asked for.
pub(crate) fn show(answer: &mut Json, report: &str, mut cost: Json) {
    let detail = ["Table", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"];
    let strip = |cost: &mut Json| {
        cost.as_object_mut().unwrap().retain(|name, _| !detail.contains(&name.as_str()));
    };
    match report {
        _ if cost.is_null() => return,
        "NONE" => return,
        "TOTAL" => match &mut cost {
            Json::Array(all) => all.iter_mut().for_each(strip),
            one => strip(one),
        },
        _ => {}
    }
    answer["ConsumedCapacity"] = cost;
}

pub(crate) fn merged(operation: Operation, request: &Json, answers: Vec<Json>, left: &[usize]) -> Json {
    let items = || answers.iter().filter_map(|answer| answer.get("Item").cloned()).collect::<Vec<_>>();
    let left = |all: &Json| left.iter().map(|nth| all[*nth].clone()).collect::<Vec<_>>();
    match operation {
        Operation::BatchGetItem => {
            let left = left(&request["RequestItems"]["games"]["Keys"]);
            let unprocessed = if left.is_empty() { json!({}) } else { json!({ "games": { "Keys": left } }) };
            json!({ "Responses": { "games": items() }, "UnprocessedKeys": unprocessed })
        }
        Operation::BatchWriteItem => {
            let left = left(&request["RequestItems"]["games"]);
            let unprocessed = if left.is_empty() { json!({}) } else { json!({ "games": left }) };
            json!({ "UnprocessedItems": unprocessed })
        }
        Operation::TransactGetItems => {
            let responses: Vec<Json> = answers.iter().map(|answer| answer["Responses"][0].clone()).collect();
            json!({ "Responses": responses })
        }
        Operation::BatchExecuteStatement => {
            let of = |answer: &Json| match answer["Items"].get(0) {
                Some(item) => json!({ "TableName": "games", "Item": item }),
                None => json!({ "TableName": "games" }),
            };
            json!({ "Responses": answers.iter().map(of).collect::<Vec<_>>() })
        }
        _ => json!({}),
    }
}
