//! What DynamoDB Local does not have, does not do as DynamoDB does, or says in other words: each by
//! name, with the reason.
//!
//! A call is changed or left out before it is sent. Of what the server answers only the words of a
//! refusal and the form of a counter's numbers are taken otherwise than they came.

mod transactions;

use heatsink_dynamo::{Operation, wire};
use serde_json::{Map, Value as Json, json};

use crate::compare::Answer;
use crate::generate::{ROOTS, Step};
use crate::schema::{self, Index, Table};
use crate::{counters, mistakes, outside, widening};

/// What DynamoDB Local 1.11.478, of January 2020, does not have. Calls of an operation are left
/// out, members are taken out of calls.
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

/// The most shards of any key in a world.
fn most_shards(rules: &str) -> usize {
    let after = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let named = rules.split("shards = ").skip(1).filter_map(after);
    named.chain(widening::has(rules).then(widening::most_shards)).max().unwrap_or(1)
}

/// Whether the server can carry out what rules make of a request: a counter is written by a
/// transaction of as many actions as it has shards.
pub fn can(rules: &str) -> bool {
    !counters::has(rules) || most_shards(rules) <= ACTIONS
}

/// Leaves so many actions in a transaction; each may become one for every shard.
fn few_actions(body: &mut Json, most: usize) {
    if let Some(actions) = body.get_mut("TransactItems").and_then(Json::as_array_mut) {
        actions.truncate(most);
    }
}

/// A table as the server can have it. It numbers the records of all streams of all access keys with
/// one clock, and fails where two have the same number.
pub fn without_stream(mut create: Json) -> Json {
    remove(&mut create, "StreamSpecification");
    create
}

/// What Heatsink adds to a refusal of an item that is too large.
const SUFFIX_COUNTS: &str = " (the table is sharded, and the shard suffix of ";

/// What the server says, and DynamoDB in its place. Heatsink says it by itself of a write that
/// names several tables, one of which is not there.
const OTHER_WORDS: (&str, &str) =
    ("Cannot do operations on a non-existent table", "Requested resource not found");

/// Whether two refusals of a request are one in the words of the server and of DynamoDB: the form
/// of a request is checked before any store sees it, in the words that DynamoDB has today, and the
/// server has those of 2020.
pub fn same_refusal(step: &Step, server: &str, ours: &str) -> bool {
    let operation = Operation::by_name(&step.operation);
    let formless =
        operation.is_some_and(|operation| wire::check(operation, step.body.to_string().as_bytes()).is_err());
    formless
        || (server, ours) == OTHER_WORDS
        || ours.strip_prefix(server).is_some_and(|more| more.starts_with(SUFFIX_COUNTS))
}

/// Writes numbers as the server gives them back from a put. It keeps those of an update as they
/// were written, and an index may hold them otherwise than its table; which of two equal ones comes
/// first in an index says nothing. The engine is given all forms.
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

/// Writes the numbers of an answer in one form, under rules with counters: the server adds to a
/// number without making it shorter (2.5 and 2.5 are `5.0`), and of a counter it has added only up
/// to a part, the rest is Heatsink's sum. DynamoDB says `5`.
pub fn canonical_sums(rules: &str, answer: &mut Answer) {
    if counters::has(rules) {
        answer.pages.iter_mut().for_each(canonical_numbers);
    }
}

/// Whether a Scan of an index filters by attributes that are not projected into it, or shows them.
/// An index of the server is a view of its table, and a Scan sees the whole item (in a Query the
/// server refuses it); an index of DynamoDB and of the engine has nothing else than is projected.
fn reads_what_an_index_lacks(step: &Step) -> bool {
    let body = &step.body;
    if step.operation != "Scan" {
        return false;
    }
    let texts =
        ["FilterExpression", "ProjectionExpression"].map(|name| body[name].as_str().unwrap_or_default());
    let listed = body["AttributesToGet"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let filter = texts.into_iter().chain(listed).collect::<Vec<_>>().join(" ");
    let Some((table, index)) = asked_index(body) else { return false };
    if index.projection["ProjectionType"] == "ALL" {
        return false;
    }
    let own = [Some(table.partition), table.sort].into_iter().flatten();
    let keys: Vec<_> = own.chain(index.partitions()).chain(index.sorts()).collect();
    let holds = |name: &str| {
        keys.iter().any(|(key, _)| *key == name)
            || index.projection["NonKeyAttributes"]
                .as_array()
                .is_some_and(|names| names.contains(&json!(name)))
    };
    let words = filter.split(|letter: char| !letter.is_alphanumeric() && letter != '#');
    let mut attributes = words.map(|word| body["ExpressionAttributeNames"][word].as_str().unwrap_or(word));
    let is_attribute = |name: &str| ROOTS.contains(&name) || name == counters::COUNTED;
    attributes.any(|name| is_attribute(name) && !holds(name))
}

/// Whether a page shows all attributes of a global index that does not hold them. DynamoDB refuses
/// that, and the server shows the whole item: of a counter row 0, in numbers that the index does
/// not hold; of items that Heatsink reads for the answer, more than the index holds.
fn shows_what_an_index_lacks(step: &Step) -> bool {
    step.body["Select"] == "ALL_ATTRIBUTES"
        && asked_index(&step.body)
            .is_some_and(|(_, index)| !index.local && index.projection["ProjectionType"] != "ALL")
}

/// The index that a request reads, and its table.
fn asked_index(body: &Json) -> Option<(Table, Index)> {
    let table = schema::tables().into_iter().find(|table| body["TableName"] == table.name)?;
    let index = table.indexes.iter().find(|index| body["IndexName"] == index.name)?.clone();
    Some((table, index))
}

/// Leaves out of a case what the server does not have.
pub fn leave_out(steps: &mut Vec<Step>, rules: &str) {
    steps.iter_mut().for_each(|step| right_index_keys(&mut step.body));
    if outside::has(rules) || counters::has(rules) {
        let most = ACTIONS / most_shards(rules);
        steps.iter_mut().for_each(|step| few_actions(&mut step.body, most));
    }
    steps.iter_mut().for_each(|step| canonical_numbers(&mut step.body));
    steps.retain(|step| !reads_what_an_index_lacks(step));
    steps.retain(|step| !shows_what_an_index_lacks(step));
    steps.iter_mut().for_each(|step| transactions::on_absent_tables_alone(&mut step.body));
    for actions in steps.iter_mut().filter_map(|step| step.body.get_mut("TransactItems")?.as_array_mut()) {
        if outside::has(rules) || counters::has(rules) {
            transactions::items_named_once(actions);
        }
    }

    // The server refuses an operator that joins tests where there is one test. The engine does not,
    // nor is it in the expression that takes the place of a test of a spread attribute.
    for body in steps.iter_mut().map(|step| &mut step.body) {
        if body.get("Expected").and_then(Json::as_object).is_some_and(|tests| tests.len() < 2) {
            remove(body, "ConditionalOperator");
        }
    }

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

/// Gives an update the right types for the attributes that are index keys. The server lets it write
/// others, which no DynamoDB does, and then answers with items that the index cannot hold, or
/// fails. A value that the expression uses elsewhere too gets one beside it.
fn right_index_keys(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for (name, kind, right) in [("t", "S", "t1"), ("n", "N", "3"), ("b", "B", "YQ==")] {
                right_index_key(members, name, kind, right);
            }
            members.values_mut().for_each(right_index_keys);
        }
        Json::Array(elements) => elements.iter_mut().for_each(right_index_keys),
        _ => {}
    }
}

fn right_index_key(members: &mut Map<String, Json>, name: &str, kind: &str, right: &str) {
    let text = |member: &str| members.get(member).and_then(Json::as_str).unwrap_or_default().to_owned();
    let (update, condition) = (text("UpdateExpression"), text("ConditionExpression"));
    let set = format!("{name} = :");
    let Some(at) =
        update.match_indices(&set).map(|(at, _)| at).find(|at| update[..*at].ends_with([' ', ',']))
    else {
        return;
    };
    let at = at + set.len() - 1;
    let Some(placeholder) = mistakes::placeholders(&update[at..]).next() else { return };
    let Some(values) = members.get_mut("ExpressionAttributeValues").and_then(Json::as_object_mut) else {
        return;
    };
    if values.get(placeholder).is_none_or(|value| value.get(kind).is_some()) {
        return;
    }
    let uses = mistakes::placeholders(&update).chain(mistakes::placeholders(&condition));
    if uses.filter(|used| *used == placeholder).count() == 1 {
        values.insert(placeholder.to_owned(), json!({ kind: right }));
        return;
    }
    let own = format!(":right{name}");
    values.insert(own.clone(), json!({ kind: right }));
    let update = [&update[..at], &own, &update[at + placeholder.len()..]].concat();
    members.insert("UpdateExpression".to_owned(), json!(update));
}

#[test]
fn a_counter_of_more_shards_than_a_transaction_has_actions_is_not_asked_of_the_server() {
    let counter = |shards| {
        format!(r#"rule = [{{ table = "*", strategy = "counter", attributes = ["c"], shards = {shards} }}]"#)
    };
    assert!(can(&counter(10)) && !can(&counter(11)));
    let widening = "rule = []\n# counters widen";
    assert_eq!(most_shards(widening), widening::most_shards());
    assert!(can(widening), "the server judges no world in which counters widen");
}

#[test]
fn an_update_gets_index_keys_of_the_right_type() {
    let mut body = json!({"UpdateExpression": "SET n = if_not_exists(n, :v0) - :v0, t = :v1, b = :v2, v = :v3 REMOVE m",
        "ExpressionAttributeValues": {":v0": {"N": "3"}, ":v1": {"B": "/w=="}, ":v2": {"B": "/w=="}, ":v3": {"BOOL": true}}});
    right_index_keys(&mut body);
    let values = json!({":v0": {"N": "3"}, ":v1": {"S": "t1"}, ":v2": {"B": "/w=="}, ":v3": {"BOOL": true}});
    assert_eq!(body["ExpressionAttributeValues"], values);
}

#[test]
fn a_value_that_is_used_twice_gets_one_of_the_right_type_beside_it() {
    let mut body = json!({"UpdateExpression": "SET b = :v0, m = :v1, t = :v0", "ConditionExpression": "n = :v1",
        "ExpressionAttributeValues": {":v0": {"B": "/w=="}, ":v1": {"S": "x"}}});
    right_index_keys(&mut body);
    assert_eq!(body["UpdateExpression"], "SET b = :v0, m = :v1, t = :rightt");
    let values = json!({":v0": {"B": "/w=="}, ":v1": {"S": "x"}, ":rightt": {"S": "t1"}});
    assert_eq!(body["ExpressionAttributeValues"], values);
}

#[test]
fn sums_have_one_form_where_there_are_counters() {
    let page = json!({"Items": [{"c": {"N": "5.0"}, "v": {"S": "5.0"}}]});
    for (rules, number) in [("strategy = \"counter\"", "5"), ("strategy = \"calculated\"", "5.0")] {
        let mut answer = Answer { pages: vec![page.clone()], ..Answer::default() };
        canonical_sums(rules, &mut answer);
        assert_eq!(answer.pages, [json!({"Items": [{"c": {"N": number}, "v": {"S": "5.0"}}]})]);
    }
}

#[test]
fn only_a_global_index_without_all_attributes_lacks_what_is_shown() {
    let shows = |index: &str, select: &str| {
        let body = json!({"TableName": "Strings", "IndexName": index, "Select": select});
        shows_what_an_index_lacks(&Step { operation: "Query".to_owned(), body })
    };
    assert!(shows("pk-t", "ALL_ATTRIBUTES") && !shows("pk-t", "ALL_PROJECTED_ATTRIBUTES"));
    assert!(!shows("t-n", "ALL_ATTRIBUTES") && !shows("by-n", "ALL_ATTRIBUTES"));
}

#[test]
fn only_a_scan_of_an_index_is_filtered_by_what_it_lacks() {
    let filters = |operation: &str, index: &str, filter: &str| {
        let body = json!({"TableName": "Indexed", "IndexName": index, "FilterExpression": filter,
            "ExpressionAttributeNames": {"#u": "u"}});
        reads_what_an_index_lacks(&Step { operation: operation.to_owned(), body })
    };
    assert!(filters("Scan", "b-pk", "attribute_exists(#u) AND pk <> b"));
    assert!(!filters("Scan", "b-pk", "attribute_exists(sk) AND pk <> b"));
    assert!(!filters("Scan", "t-only", "v = m") && filters("Scan", "t-only", "v = n"));
    assert!(!filters("Scan", "t-n", "#u = v") && !filters("Query", "b-pk", "#u = v"));
}
