//! `ConsumedCapacity` of several calls as that of one request.

use serde_json::Value as Json;

/// `ConsumedCapacity` as operations on one item have it: without the parts read and written.
pub(crate) fn single_capacity(mut capacity: Json) -> Json {
    if let Some(members) = capacity.as_object_mut() {
        members.retain(|name, _| name != "ReadCapacityUnits" && name != "WriteCapacityUnits");
        members.values_mut().for_each(|member| *member = single_capacity(member.take()));
    }
    capacity
}

/// Adds the `ConsumedCapacity` of one table to a list that holds each table's once.
pub(crate) fn add_by_table(tables: &mut Vec<Json>, more: Json) {
    match tables.iter_mut().find(|one| one["TableName"] == more["TableName"]) {
        Some(one) => add(one, more),
        None => tables.push(more),
    }
}

/// Adds the figures of a `ConsumedCapacity` to a sum of such.
pub(crate) fn add(sum: &mut Json, more: Json) {
    match (sum, more) {
        (Json::Object(sum), Json::Object(more)) => {
            for (name, value) in more {
                add(sum.entry(name).or_insert(Json::Null), value);
            }
        }
        (Json::Number(sum), Json::Number(more)) => {
            let total = sum.as_f64().unwrap_or_default() + more.as_f64().unwrap_or_default();
            if let Some(total) = serde_json::Number::from_f64(total) {
                *sum = total;
            }
        }
        (sum, more) => *sum = more,
    }
}
