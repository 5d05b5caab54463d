//! Reads that need not be sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use heatsink_control::Rules;
use heatsink_dynamo::{Code, Operation};
use serde_json::{Value as Json, json};

use super::slow::Slow;
use super::together::{all, ask, gateway};
use super::writes::{Call, add, key};

const COALESCE: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\ncoalesce = true\n";
const CACHE: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\ncache_max_age_ms = 10000\n";

fn get() -> Call {
    (Operation::GetItem, json!({ "TableName": "Votes", "Key": key() }))
}

fn query() -> Call {
    let body = json!({
        "TableName": "Votes", "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": { ":p": { "S": "a" } },
    });
    (Operation::Query, body)
}

fn strong((operation, mut body): Call) -> Call {
    body["ConsistentRead"] = true.into();
    (operation, body)
}

fn number(answer: &Json) -> &str {
    let item = if answer["Items"].is_array() { &answer["Items"][0] } else { &answer["Item"] };
    item["n"]["N"].as_str().unwrap()
}

#[tokio::test]
async fn identical_reads_under_way_become_one_and_strong_ones_do_not() {
    let store = Arc::new(Slow::new(100));
    let gateway = gateway(&store, COALESCE).await;
    ask(&gateway, add(1, "NONE")).await.unwrap();
    for (call, reads) in [(get(), 1), (query(), 1), (strong(get()), 20)] {
        store.reads();
        let answers = all(&gateway, (0..20).map(|_| call.clone())).await;
        assert!(answers.iter().all(|answer| number(answer.as_ref().unwrap()) == "1"));
        assert_eq!(store.reads(), reads);
        // Only while it is under way.
        ask(&gateway, call).await.unwrap();
        assert_eq!(store.reads(), 1);
    }
    store.reads();
    all(&gateway, [get(), query(), get(), query()]).await;
    assert_eq!(store.reads(), 2);
}

#[tokio::test]
async fn no_client_misses_its_own_write() {
    for rules in [COALESCE, CACHE] {
        let store = Arc::new(Slow::new(3));
        let gateway = Arc::new(gateway(&store, rules).await);
        let client = |reads: fn() -> Call| {
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                for _ in 0..40 {
                    let written = ask(&gateway, add(1, "UPDATED_NEW")).await.unwrap();
                    let written: u64 = written["Attributes"]["n"]["N"].as_str().unwrap().parse().unwrap();
                    let seen = ask(&gateway, reads()).await.unwrap();
                    let seen: u64 = number(&seen).parse().unwrap();
                    assert!(seen >= written, "{written} was written and {seen} is seen");
                }
            })
        };
        for client in [client(get), client(query), client(get), client(query)] {
            client.await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_answer_is_given_again_until_its_key_is_written_to_in_whatever_way() {
    let store = Arc::new(Slow::new(0));
    let gateway = gateway(&store, CACHE).await;
    let put = json!({ "TableName": "Votes", "Item": { "pk": { "S": "a" }, "n": { "N": "1" } } });
    ask(&gateway, (Operation::PutItem, put.clone())).await.unwrap();
    let item = |n: &str| json!({ "pk": { "S": "a" }, "n": { "N": n } });
    let statement = "UPDATE Votes SET n = 5 WHERE pk = 'a'";
    let writes: [Call; 6] = [
        (Operation::PutItem, json!({ "TableName": "Votes", "Item": item("2") })),
        (
            Operation::BatchWriteItem,
            json!({ "RequestItems": { "Votes": [{ "PutRequest": { "Item": item("3") } }] } }),
        ),
        (
            Operation::TransactWriteItems,
            json!({ "TransactItems": [{ "Put": { "TableName": "Votes", "Item": item("4") } }] }),
        ),
        (Operation::ExecuteStatement, json!({ "Statement": statement })),
        (
            Operation::BatchExecuteStatement,
            json!({ "Statements": [{ "Statement": statement.replace('5', "6") }] }),
        ),
        (
            Operation::ExecuteTransaction,
            json!({ "TransactStatements": [{ "Statement": statement.replace('5', "7") }] }),
        ),
    ];
    for (expected, write) in (2..).zip(writes) {
        for call in [get(), query()] {
            ask(&gateway, call).await.unwrap();
        }
        store.reads();
        for call in [get(), query(), get()] {
            ask(&gateway, call).await.unwrap();
        }
        assert_eq!(store.reads(), 0, "before {write:?}");
        ask(&gateway, write).await.unwrap();
        for call in [get(), query()] {
            assert_eq!(number(&ask(&gateway, call).await.unwrap()), expected.to_string());
        }
    }
    // Of another key nothing begins anew; a statement that reads writes nothing.
    store.reads();
    let other = json!({ "TableName": "Votes", "Item": { "pk": { "S": "b" } } });
    ask(&gateway, (Operation::PutItem, other)).await.unwrap();
    let select = json!({ "Statement": "SELECT * FROM Votes WHERE pk = 'a'" });
    ask(&gateway, (Operation::ExecuteStatement, select)).await.unwrap();
    store.reads();
    for call in [get(), query()] {
        ask(&gateway, call).await.unwrap();
    }
    assert_eq!(store.reads(), 0);
    ask(&gateway, (Operation::DeleteTable, json!({ "TableName": "Votes" }))).await.unwrap();
    assert_eq!(ask(&gateway, get()).await.unwrap_err().code, Code::ResourceNotFoundException);
}

#[tokio::test]
async fn an_answer_is_given_again_for_so_long_and_no_longer() {
    let store = Arc::new(Slow::new(0));
    let gateway = gateway(&store, &CACHE.replace("10000", "60")).await;
    ask(&gateway, get()).await.unwrap();
    store.reads();
    ask(&gateway, get()).await.unwrap();
    assert_eq!(store.reads(), 0);
    tokio::time::sleep(Duration::from_millis(70)).await;
    ask(&gateway, get()).await.unwrap();
    assert_eq!(store.reads(), 1);
}

#[tokio::test]
async fn who_waits_for_a_read_whose_client_has_gone_sends_it() {
    let store = Arc::new(Slow::new(300));
    let gateway = Arc::new(gateway(&store, CACHE).await);
    let spawn = || {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move { ask(&gateway, get()).await })
    };
    store.reads();
    let first = spawn();
    store.has_reads(1).await;
    let others: Vec<_> = (0..5).map(|_| spawn()).collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    first.abort();
    for other in others {
        other.await.unwrap().unwrap();
    }
    assert_eq!(store.reads(), 2);
}

#[tokio::test]
async fn what_is_written_while_nothing_is_cached_shows_once_it_is_again() {
    // By rules that come and go, and by keys that are hot, cold and hot again.
    for by_rule in [true, false] {
        let store = Arc::new(Slow::new(0));
        let rules = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\n";
        let gateway = gateway(&store, rules).await;
        let turn = async |on: bool| match by_rule {
            true => {
                let text = if on { CACHE } else { rules };
                let checked =
                    gateway.control().check_rules(Rules::read("rules", text).unwrap()).await.unwrap();
                gateway.control().replace_rules(checked).await;
            }
            false => {
                let keys = HashMap::from([("Votes".to_owned(), HashMap::from([(b"a".to_vec(), 10_000)]))]);
                gateway.control().cache_reads_of(if on { keys } else { HashMap::new() });
            }
        };
        ask(&gateway, add(1, "NONE")).await.unwrap();
        turn(true).await;
        ask(&gateway, get()).await.unwrap();
        store.reads();
        assert_eq!(number(&ask(&gateway, get()).await.unwrap()), "1");
        assert_eq!(store.reads(), 0);
        turn(false).await;
        ask(&gateway, add(1, "NONE")).await.unwrap();
        turn(true).await;
        assert_eq!(number(&ask(&gateway, get()).await.unwrap()), "2", "by a rule: {by_rule}");
    }
}

#[tokio::test]
async fn of_a_hot_key_reads_are_answered_although_no_rule_says_so_and_strong_ones_are_sent() {
    let store = Arc::new(Slow::new(0));
    let gateway = gateway(&store, "[[rule]]\ntable = \"*\"\nkeys = \"other\"\nstrategy = \"none\"\n").await;
    ask(&gateway, add(1, "NONE")).await.unwrap();
    let keys = HashMap::from([("Votes".to_owned(), HashMap::from([(b"a".to_vec(), 10_000)]))]);
    gateway.control().cache_reads_of(keys);
    for (call, reads) in [(get(), 0), (query(), 0), (strong(get()), 1)] {
        ask(&gateway, call.clone()).await.unwrap();
        store.reads();
        ask(&gateway, call).await.unwrap();
        assert_eq!(store.reads(), reads);
    }
    // A write through the gateway shows at once.
    ask(&gateway, add(1, "NONE")).await.unwrap();
    assert_eq!(number(&ask(&gateway, get()).await.unwrap()), "2");
}
