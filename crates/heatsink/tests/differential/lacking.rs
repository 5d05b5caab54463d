//! What DynamoDB Local does not have, does not do as DynamoDB does, or says in other words: each by name, with the reason.
//!
//! A call is changed or left out before it is sent; what the server answers decides nothing here, but for the words of a refusal.

use heatsink_dynamo::{Operation, wire};
use serde_json::{Value as Json, json};

use crate::generate::Step;
use crate::{counters, outside};

/// What DynamoDB Local 1.11.478, of January 2020, does not have. Calls of an operation are left out, members are taken out of calls.
const LACKING: &[(Lacking, &str)] = &[
    (Lacking::Operation("ExecuteStatement"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("BatchExecuteStatement"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("ExecuteTransaction"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("TagResource"), "the server has no tags"),
    (Lacking::Operation("UntagResource"), "the server has no tags"),
    (Lacking::Operation("ListTagsOfResource"), "the server has no tags"),
    (Lacking::Operation("DescribeEndpoints"), "the server has no endpoints but itself"),
    (
        Lacking::Operation("UpdateTimeToLive"),
        "the server deletes expired items when it likes, and numbers here are times of the past",
    ),
    (
        Lacking::Operation("UpdateTable"),
        "the server makes an index in its own time, and says so to whoever asks meanwhile",
    ),
    (Lacking::Operation("GetRecords"), "streams are left out (`without_stream`)"),
    (Lacking::Operation("ListStreams"), "streams are left out (`without_stream`)"),
    (
        Lacking::Member("ReturnValuesOnConditionCheckFailure"),
        "outside transactions it came in 2023; in transactions the server's reasons hold no items",
    ),
    (
        Lacking::Comparison("NOT_CONTAINS", "CONTAINS"),
        "the server does not hold it of an item without the attribute; the embedded engine and Heatsink do, as NOT contains(...) does",
    ),
];

enum Lacking {
    Operation(&'static str),
    Member(&'static str),
    /// A legacy operator, and one to take in its place.
    Comparison(&'static str, &'static str),
}

/// The most actions that the server takes in a transaction; DynamoDB takes 100.
const ACTIONS: usize = 10;

fn shards(rules: &str) -> impl Iterator<Item = usize> {
    let after = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    rules.split("shards = ").skip(1).filter_map(after)
}

/// Whether the server can carry out what rules make of a request: a counter is written by a transaction of as many actions as it has shards.
pub fn can(rules: &str) -> bool {
    !counters::has(rules) || shards(rules).all(|shards| shards <= ACTIONS)
}

/// Leaves so many actions in a transaction; each may become one for every shard.
fn few_actions(body: &mut Json, most: usize) {
    if let Some(actions) = body.get_mut("TransactItems").and_then(Json::as_array_mut) {
        actions.truncate(most);
    }
}

/// A table as the server can have it. It numbers the records of all streams of all access keys with one clock, and fails where two have the same
/// number.
pub fn without_stream(mut create: Json) -> Json {
    remove(&mut create, "StreamSpecification");
    create
}

/// What Heatsink adds to a refusal of an item that is too large.
const SUFFIX_COUNTS: &str = " (the table is sharded, and the shard suffix of ";

/// Whether two refusals of a request are one in the words of the server and of DynamoDB: the form of a request is checked before any store sees
/// it, in the words that DynamoDB has today, and the server has those of 2020.
pub fn same_refusal(step: &Step, server: &str, ours: &str) -> bool {
    let operation = Operation::by_name(&step.operation);
    let formless =
        operation.is_some_and(|operation| wire::check(operation, step.body.to_string().as_bytes()).is_err());
    formless || ours.strip_prefix(server).is_some_and(|more| more.starts_with(SUFFIX_COUNTS))
}

/// Writes numbers as the server gives them back from a put. It keeps those of an update as they were written, and an index may hold them otherwise than
/// its table; which of two equal ones comes first in an index says nothing. The engine is given all forms.
fn canonical_numbers(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for (name, member) in members {
                match member {
                    Json::String(text) if name == "N" => {
                        if let Ok(number) = heatsink_dynamo::Number::parse(text) {
                            *text = number.to_string();
                        }
                    }
                    member => canonical_numbers(member),
                }
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(canonical_numbers),
        _ => {}
    }
}

/// Leaves out of a case what the server does not have.
pub fn leave_out(steps: &mut Vec<Step>, rules: &str) {
    steps.iter_mut().for_each(|step| right_index_keys(&mut step.body));
    if outside::has(rules) || counters::has(rules) {
        let most = ACTIONS / shards(rules).max().unwrap_or(1);
        steps.iter_mut().for_each(|step| few_actions(&mut step.body, most));
    }
    steps.iter_mut().for_each(|step| canonical_numbers(&mut step.body));

    for (lacking, _) in LACKING {
        match lacking {
            Lacking::Operation(name) => steps.retain(|step| step.operation != *name),
            Lacking::Member(name) => steps.iter_mut().for_each(|step| remove(&mut step.body, name)),
            Lacking::Comparison(name, other) => {
                steps.iter_mut().for_each(|step| replace(&mut step.body, name, other));
            }
        }
    }
}

fn remove(value: &mut Json, name: &str) {
    match value {
        Json::Object(members) => {
            members.remove(name);
            members.values_mut().for_each(|member| remove(member, name));
        }
        Json::Array(elements) => elements.iter_mut().for_each(|element| remove(element, name)),
        _ => {}
    }
}

fn replace(value: &mut Json, name: &str, other: &str) {
    match value {
        Json::Object(members) => {
            if members.get("ComparisonOperator").is_some_and(|operator| operator == name) {
                members.insert("ComparisonOperator".to_owned(), json!(other));
            }
            members.values_mut().for_each(|member| replace(member, name, other));
        }
        Json::Array(elements) => elements.iter_mut().for_each(|element| replace(element, name, other)),
        _ => {}
    }
}

/// Gives an update the right types for the attributes that are index keys. The server lets it write others, which no DynamoDB does, and then answers
/// with items that the index cannot hold, or fails.
fn right_index_keys(value: &mut Json) {
    match value {
        Json::Object(members) => {
            let text = members.get("UpdateExpression").and_then(Json::as_str).unwrap_or_default().to_owned();
            for (name, kind, right) in [("t", "S", "t1"), ("n", "N", "3"), ("b", "B", "YQ==")] {
                for (at, set) in text.match_indices(&format!("{name} = :")) {
                    let begins = text[..at].ends_with([' ', ',']);
                    let rest = &text[at + set.len()..];
                    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
                    let placeholder = format!(":{}", &rest[..end]);
                    let values = members.get_mut("ExpressionAttributeValues");
                    if let Some(value) = values.and_then(|values| values.get_mut(&placeholder))
                        && begins
                        && value.get(kind).is_none()
                    {
                        *value = json!({ kind: right });
                    }
                }
            }
            members.values_mut().for_each(right_index_keys);
        }
        Json::Array(elements) => elements.iter_mut().for_each(right_index_keys),
        _ => {}
    }
}

#[test]
fn an_update_gets_index_keys_of_the_right_type() {
    let mut body = json!({"UpdateExpression": "SET n = if_not_exists(n, :v0) - :v0, t = :v1, b = :v2, v = :v3 REMOVE m",
        "ExpressionAttributeValues": {":v0": {"N": "3"}, ":v1": {"B": "/w=="}, ":v2": {"B": "/w=="}, ":v3": {"BOOL": true}}});
    right_index_keys(&mut body);
    let values = json!({":v0": {"N": "3"}, ":v1": {"S": "t1"}, ":v2": {"B": "/w=="}, ":v3": {"BOOL": true}});
    assert_eq!(body["ExpressionAttributeValues"], values);
}
