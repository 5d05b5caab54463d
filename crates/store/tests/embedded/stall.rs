//! Small requests that are much work: other clients go on meanwhile, and the answer is the engine's
//! own.
//!
//! docs/reference/limits.md has the figures; `cargo test -p heatsink-store --test store --
//! --ignored --nocapture stall` measures them again, also on the engine alone, which is how it was
//! before.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::unreachable,
    reason = "a test helper fails by panicking"
)]
#![allow(clippy::disallowed_methods, reason = "what clients wait is real time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use heatsink_dynamo::Operation::{self, *};
use heatsink_dynamo::{Code, Error};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::embedded::support::{call, table};

/// A request and what it is about.
pub struct Case {
    pub name: &'static str,
    pub operation: Operation,
    pub body: Json,
    /// Whether DynamoDB, and so the store, refuses it.
    pub refused: bool,
}

fn key(name: &str) -> Json {
    json!({"pk": {"S": name}, "sk": {"S": "0"}})
}

fn numbers(from: usize, count: usize) -> Json {
    (from..from + count).map(|n| json!(format!("m{n:05}"))).collect()
}

/// Large binaries of zeros, which end in a one: as slow to search as can be.
fn zeros(length: usize) -> Json {
    use base64::Engine;
    let mut bytes = vec![0_u8; length];
    *bytes.last_mut().unwrap() = 1;
    json!({"B": base64::engine::general_purpose::STANDARD.encode(bytes)})
}

fn list(length: usize) -> Json {
    json!({"L": vec![json!({"N": "1"}); length]})
}

/// The items that the cases work on: a list of 130,000 numbers, a binary of 400 KB, a set of 30,000
/// strings.
fn items() -> Vec<Json> {
    let with = |name: &str, attribute: &str, value: Json| {
        let mut item = key(name);
        item[attribute] = value;
        item
    };
    vec![
        with("list", "l", list(130_000)),
        with("binary", "b", json!({"B": "A".repeat(400 * 1024 / 4 * 4 * 97 / 100)})),
        with("set", "s", json!({"SS": numbers(0, 30_000)})),
    ]
}

pub fn cases() -> Vec<Case> {
    let nested = |depth: usize| format!("SET l = {}l{}", "list_append(l,".repeat(depth), ")".repeat(depth));
    let many = |part: &str, word: &str, count: usize| {
        (0..count).map(|n| part.replace('?', &n.to_string())).collect::<Vec<_>>().join(word)
    };
    let update = |item: &str, more: Json| {
        let mut body = json!({"TableName": "stall", "Key": key(item)});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let contains = many("contains(b,:p)", " OR ", 100);
    let sizes = many("size(l)=:n", " OR ", 120);
    let part = json!({":p": zeros(1024)});
    let case = |name, operation, body| Case { name, operation, body, refused: false };
    let refused = |name, operation, body| Case { name, operation, body, refused: true };
    vec![
        refused(
            "UpdateItem: list_append nested 90 deep on a list of 130,000",
            UpdateItem,
            update("list", json!({"UpdateExpression": nested(90)})),
        ),
        refused(
            "UpdateItem: 300 copies of that list",
            UpdateItem,
            update("list", json!({"UpdateExpression": format!("SET {}", many("a?=l", ",", 299))})),
        ),
        refused(
            "UpdateItem: 100 times contains on a binary of 388 KB",
            UpdateItem,
            update(
                "binary",
                json!({
                    "UpdateExpression": "SET n = :one", "ConditionExpression": contains,
                    "ExpressionAttributeValues": {":p": zeros(1024), ":one": {"N": "1"}},
                }),
            ),
        ),
        refused(
            "DeleteItem: one contains of 190 KB",
            DeleteItem,
            update(
                "binary",
                json!({"ConditionExpression": "contains(b,:p)", "ExpressionAttributeValues": {":p": zeros(190_000)}}),
            ),
        ),
        case(
            "UpdateItem: ADD of 30,000 members to 30,000",
            UpdateItem,
            update(
                "set",
                json!({"UpdateExpression": "ADD s :s", "ExpressionAttributeValues": {":s": {"SS": numbers(29_000, 30_000)}}}),
            ),
        ),
        case(
            "UpdateItem: DELETE of 30,000 members from 59,000",
            UpdateItem,
            update(
                "set",
                json!({"UpdateExpression": "DELETE s :s", "ExpressionAttributeValues": {":s": {"SS": numbers(30_000, 30_000)}}}),
            ),
        ),
        case(
            "UpdateItem: AttributeUpdates ADD of 29,000 members to 30,000",
            UpdateItem,
            update(
                "set",
                json!({"AttributeUpdates": {"s": {"Action": "ADD", "Value": {"SS": numbers(30_000, 29_000)}}}}),
            ),
        ),
        case(
            "UpdateItem: AttributeUpdates DELETE of them",
            UpdateItem,
            update(
                "set",
                json!({"AttributeUpdates": {"s": {"Action": "DELETE", "Value": {"SS": numbers(30_000, 29_000)}}}}),
            ),
        ),
        refused(
            "PutItem: 120 times size of that list",
            PutItem,
            json!({"TableName": "stall", "Item": key("list"), "ConditionExpression": sizes, "ExpressionAttributeValues": {":n": {"N": "1"}}}),
        ),
        refused(
            "TransactWriteItems: 3 conditions of that kind",
            TransactWriteItems,
            json!({"TransactItems": [
                {"ConditionCheck": update("binary", json!({"ConditionExpression": contains, "ExpressionAttributeValues": part}))},
                {"ConditionCheck": update("list", json!({"ConditionExpression": sizes, "ExpressionAttributeValues": {":n": {"N": "1"}}}))},
                {"Update": update("set", json!({"UpdateExpression": "ADD s :s", "ExpressionAttributeValues": {":s": {"SS": numbers(30_000, 29_000)}}}))},
            ]}),
        ),
        case(
            "Scan: filter of 100 times contains",
            Scan,
            json!({"TableName": "stall", "FilterExpression": contains, "ExpressionAttributeValues": part}),
        ),
        case(
            "Scan: filter of 120 times size, counted",
            Scan,
            json!({"TableName": "stall", "FilterExpression": sizes, "ExpressionAttributeValues": {":n": {"N": "130000"}}, "Select": "COUNT"}),
        ),
        case(
            "Query: filter of 100 terms in IN on that list, projected",
            Query,
            json!({
                "TableName": "stall", "KeyConditionExpression": "pk = :k", "ProjectionExpression": "sk",
                "FilterExpression": format!("NOT ({})", many("l IN (:n,:n,:n,:n,:n,:n,:n,:n,:n,:n)", " OR ", 10)),
                "ExpressionAttributeValues": {":k": {"S": "list"}, ":n": list(10)},
            }),
        ),
        refused(
            "UpdateItem: list_append nested 270 deep",
            UpdateItem,
            update("list", json!({"UpdateExpression": nested(270)})),
        ),
        case(
            "UpdateItem: one number beside that list (nothing to bound)",
            UpdateItem,
            update(
                "list",
                json!({"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}),
            ),
        ),
        refused(
            "ExecuteStatement: list_append nested 100 deep",
            ExecuteStatement,
            json!({"Statement": format!(
                "UPDATE stall SET l = {}l{} WHERE pk = 'list' AND sk = '0'", "list_append(l,".repeat(100), ")".repeat(100)
            )}),
        ),
    ]
}

async fn filled() -> Arc<Embedded> {
    let store = Embedded::memory().unwrap();
    table(&store, "stall").await;
    for item in items() {
        call(&store, PutItem, json!({"TableName": "stall", "Item": item})).await;
    }
    Arc::new(store)
}

/// The answer, and the longest that another client waited for a small item meanwhile.
async fn beside(store: &Arc<Embedded>, case: &Case) -> (Result<Json, Error>, Duration, Duration) {
    let (asked, body) = (store.clone(), case.body.to_string());
    let operation = case.operation;
    let began = Instant::now();
    let answer = tokio::spawn(async move {
        let answer = asked.call(operation, body.into()).await;
        answer.map(|answer| serde_json::from_slice(&answer).unwrap())
    });
    let mut longest = Duration::ZERO;
    while !answer.is_finished() {
        let asked = Instant::now();
        call(&**store, GetItem, json!({"TableName": "stall", "Key": key("nobody")})).await;
        longest = longest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (answer.await.unwrap(), longest, began.elapsed())
}

/// How often as long as for a plain update of the same large item others may wait, at most; without
/// the limits it is from ten to thousands of times.
const TIMES: u32 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_expression_keeps_other_clients_waiting() {
    let store = filled().await;
    let plain = cases().into_iter().find(|case| case.name.contains("nothing to bound")).unwrap();
    for case in cases() {
        // Measured beside each, because the machine may be busy with something else.
        let (_, _, plainly) = beside(&store, &plain).await;
        let (answer, waited, whole) = beside(&store, &case).await;
        eprintln!("{}: others waited {waited:?} of {whole:?}, plainly {plainly:?}", case.name);
        assert_eq!(answer.is_err(), case.refused, "{}: {answer:?}", case.name);
        let most = plainly * TIMES + Duration::from_millis(250);
        assert!(waited < most, "{}: others waited {waited:?}, plainly {plainly:?}", case.name);
    }
}

#[tokio::test]
async fn what_is_evaluated_beforehand_has_the_engines_effect() {
    let store = filled().await;
    let all: Vec<Case> = cases();
    let run = |nth: usize| {
        let (store, case) = (store.clone(), &all[nth]);
        async move {
            let answer = store.call(case.operation, case.body.to_string().into()).await;
            answer.map(|answer| serde_json::from_slice::<Json>(&answer).unwrap())
        }
    };
    let error = run(0).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_deref()),
        (Code::ValidationException, Some("Item size to update has exceeded the maximum allowed size"))
    );
    assert_eq!(run(2).await.unwrap_err().code, Code::ConditionalCheckFailedException);
    let members = || async {
        let item = call(&*store, GetItem, json!({"TableName": "stall", "Key": key("set")})).await;
        let mut set: Vec<String> = serde_json::from_value(item["Item"]["s"]["SS"].clone()).unwrap();
        set.sort();
        set
    };
    let expected = |to: usize| (0..to).map(|n| format!("m{n:05}")).collect::<Vec<_>>();
    run(4).await.unwrap();
    assert_eq!(members().await, expected(59_000));
    run(5).await.unwrap();
    assert_eq!(members().await, expected(30_000));
    run(6).await.unwrap();
    assert_eq!(members().await, expected(59_000));
    run(7).await.unwrap();
    assert_eq!(members().await, expected(30_000));
    let error = run(9).await.unwrap_err();
    assert_eq!(error.code, Code::TransactionCanceledException);
    let codes: Vec<&str> = error.members["CancellationReasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|reason| reason["Code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["ConditionalCheckFailed", "ConditionalCheckFailed", "None"]);
    assert_eq!(members().await, expected(30_000), "a cancelled transaction writes nothing");
    assert_eq!(run(10).await.unwrap()["Items"], json!([]));
    let counted = run(11).await.unwrap();
    assert_eq!((&counted["Count"], counted.get("Items")), (&json!(1), None), "{counted}");
    assert_eq!(run(12).await.unwrap()["Items"], json!([{"sk": {"S": "0"}}]));
}

/// An update is evaluated with the item as it is when it is written, whoever writes in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluated_updates_lose_no_write_in_between() {
    let store = filled().await;
    let small = || async {
        for n in 0..20 {
            let body = json!({
                "TableName": "stall", "Key": key("set"), "UpdateExpression": "ADD s :s",
                "ExpressionAttributeValues": {":s": {"SS": [format!("x{n}")]}},
            });
            call(&*store, UpdateItem, body).await;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    let large = || async {
        for n in 0..4 {
            let body = json!({
                "TableName": "stall", "Key": key("set"), "UpdateExpression": "ADD s :s",
                "ExpressionAttributeValues": {":s": {"SS": numbers(30_000 + n * 2_000, 2_000)}},
            });
            call(&*store, UpdateItem, body).await;
        }
    };
    tokio::join!(small(), large());
    let item = call(&*store, GetItem, json!({"TableName": "stall", "Key": key("set")})).await;
    assert_eq!(item["Item"]["s"]["SS"].as_array().unwrap().len(), 30_000 + 20 + 8_000);
}

/// What is evaluated differs from one time to the next; what the client sent does not.
#[tokio::test]
async fn a_token_stands_for_what_the_client_sent() {
    let store = filled().await;
    let transact = |amount: u32| {
        let joined = json!({
            "TableName": "stall", "Key": key("set"), "UpdateExpression": "ADD s :s, n :n",
            "ExpressionAttributeValues": {":s": {"SS": numbers(20_000, 30_000)}, ":n": {"N": amount.to_string()}},
        });
        json!({"ClientRequestToken": "t", "TransactItems": [{"Update": joined}]})
    };
    for _ in 0..3 {
        assert_eq!(call(&*store, TransactWriteItems, transact(1)).await, json!({}));
    }
    let item = call(&*store, GetItem, json!({"TableName": "stall", "Key": key("set")})).await;
    assert_eq!(item["Item"]["n"]["N"], "1");
    let other = store.call(TransactWriteItems, transact(2).to_string().into()).await.unwrap_err();
    assert_eq!(other.code, Code::IdempotentParameterMismatchException);
}

/// A filter that would cost too much on a full page, on one that is not.
#[tokio::test]
async fn a_filter_on_little_data_is_evaluated_by_the_engine() {
    let store = Embedded::memory().unwrap();
    let create = json!({
        "TableName": "small", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "g", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [{"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}],
    });
    call(&store, CreateTable, create).await;
    for n in 0..20 {
        let item = json!({"pk": {"S": n.to_string()}, "g": {"S": "g"}, "text": {"S": format!("n{n}")}});
        call(&store, PutItem, json!({"TableName": "small", "Item": item})).await;
    }
    let query = json!({
        "TableName": "small", "IndexName": "by-g", "KeyConditionExpression": "g = :g", "ProjectionExpression": "pk",
        "FilterExpression": "contains(#t, :a) AND contains(#t, :b) AND NOT contains(#t, :c)",
        "ExpressionAttributeNames": {"#t": "text"},
        "ExpressionAttributeValues": {":g": {"S": "g"}, ":a": {"S": "n"}, ":b": {"S": "1"}, ":c": {"S": "n1"}},
    });
    assert_eq!(call(&store, Query, query.clone()).await["Items"], json!([]));
    let mut fewer = query;
    fewer["FilterExpression"] = json!("contains(#t, :a) AND contains(#t, :b) AND contains(#t, :c)");
    assert_eq!(call(&store, Query, fewer.clone()).await["Count"], 11);
    fewer["ExpressionAttributeValues"][":unused"] = json!({"S": "x"});
    let error = store.call(Query, fewer.to_string().into()).await.unwrap_err();
    assert!(error.message.unwrap().contains("unused in expressions: keys: {:unused}"));
}

/// A page costs what it holds, not what the table holds.
#[tokio::test]
async fn a_page_of_a_large_table_is_cut_and_continued_as_the_engine_would() {
    let store = Embedded::memory().unwrap();
    table(&store, "stall").await;
    for n in 0..300 {
        let item =
            json!({"pk": {"S": "a"}, "sk": {"S": format!("{n:04}")}, "pad": {"S": "x".repeat(10_000)}});
        call(&store, PutItem, json!({"TableName": "stall", "Item": item})).await;
    }
    for limit in [None, Some(7), Some(16), Some(100), Some(1000)] {
        for (operation, mut body) in [
            (Scan, json!({"TableName": "stall", "ReturnConsumedCapacity": "TOTAL"})),
            (
                Query,
                json!({"TableName": "stall", "ReturnConsumedCapacity": "TOTAL", "KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}}),
            ),
        ] {
            if let Some(limit) = limit {
                body["Limit"] = limit.into();
            }
            let (mut seen, mut pages) = (Vec::new(), Vec::new());
            loop {
                let page = call(&store, operation, body.clone()).await;
                let items = page["Items"].as_array().unwrap();
                seen.extend(items.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned()));
                pages.push(items.len());
                match page.get("LastEvaluatedKey") {
                    Some(last) => body["ExclusiveStartKey"] = last.clone(),
                    None => break,
                }
            }
            assert_eq!(seen, (0..300).map(|n| format!("{n:04}")).collect::<Vec<_>>());
            // 104 items of 10 KB are the most that 1 MB holds.
            let whole = limit.unwrap_or(104).min(104);
            assert!(pages.iter().rev().skip(2).all(|page| *page == whole), "{limit:?}: {pages:?}");
        }
    }
}

/// The figures of docs/reference/limits.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; takes minutes"]
async fn stall_measured() {
    let store = filled().await;
    for case in cases() {
        let (_, waited, whole) = beside(&store, &case).await;
        let alone = dynoxide_alone::filled();
        let began = Instant::now();
        let outcome = dynoxide_alone::run(&alone, &case);
        let before = began.elapsed();
        println!("| {} | {before:.1?} | {waited:.1?} of {whole:.1?} | {outcome}", case.name);
    }
}

/// The engine without anything in front of it.
mod dynoxide_alone {
    use dynoxide::Database;

    use super::*;

    pub fn filled() -> Database {
        let database = Database::memory().unwrap();
        let table = json!({
            "TableName": "stall", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        });
        database.create_table(serde_json::from_value(table).unwrap()).unwrap();
        for item in items() {
            let put = json!({"TableName": "stall", "Item": item});
            database.put_item(serde_json::from_value(put).unwrap()).unwrap();
        }
        database
    }

    pub fn run(database: &Database, case: &Case) -> String {
        let body = case.body.to_string();
        macro_rules! run {
            ($($name:ident => $method:ident),*) => {
                match case.operation {
                    $(Operation::$name => match database.$method(serde_json::from_str(&body).unwrap()) {
                        Ok(_) => "done".to_owned(),
                        Err(why) => why.to_string().chars().take(80).collect(),
                    },)*
                    _ => unreachable!(),
                }
            };
        }
        run!(
            UpdateItem => update_item, DeleteItem => delete_item, PutItem => put_item, Scan => scan, Query => query,
            TransactWriteItems => transact_write_items, ExecuteStatement => execute_statement
        )
    }
}
