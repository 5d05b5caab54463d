//! Tailing readers beside writers: a reader that asks for "everything after the last item I saw"
//! must not miss an item.
//!
//! Writes form one causal chain: each is sent only after the one before it was acknowledged, so a
//! reader that has seen a write has to see all that lead to it (the causal-order oracle). With one
//! partition that holds by itself. Over shards it does not, and this shows both: the anomaly
//! without `consistency = "strong"`, and none with it.
//!
//! Every run is one thread whose tasks take turns as a seed says, so a failure replays.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::late::{self, call, turn};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::json;

/// What a reader saw.
#[derive(Default)]
struct Seen {
    sort_keys: Vec<String>,
    pages: usize,
    failed: usize,
}

const WRITES: usize = 60;

/// Tails one key while three writers take turns at it.
fn run(seed: u64, consistency: &str, index: Option<&'static str>) -> Seen {
    let rules = format!(
        r#"rule = [{{ table = "*", strategy = "calculated", shards = 4, consistency = "{consistency}" }}]"#
    );
    let service = Rc::new(late::service(&Arc::new(Embedded::memory().unwrap()), seed, &rules));
    let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |sort: &str| json!([{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]);
    let table = json!({
        "TableName": "Log", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [attribute("pk"), attribute("sk"), attribute("stamp")], "KeySchema": key("sk"),
        "LocalSecondaryIndexes": [
            {"IndexName": "by-stamp", "KeySchema": key("stamp"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ],
    });
    block_on(call(&service, Operation::CreateTable, table)).unwrap();

    let mut pool = LocalPool::new();
    let written = Rc::new(Cell::new(0_usize));
    let busy = Rc::new(Cell::new(false));
    for _ in 0..3 {
        let (service, written, busy) = (service.clone(), written.clone(), busy.clone());
        let writer = async move {
            while written.get() < WRITES {
                if busy.replace(true) {
                    turn().await;
                    continue;
                }
                let number = format!("{:04}", written.get());
                let item = json!({"pk": {"S": "log"}, "sk": {"S": number}, "stamp": {"S": number}});
                let put = json!({"TableName": "Log", "Item": item});
                call(&service, Operation::PutItem, put).await.unwrap();
                written.set(written.get() + 1);
                busy.set(false);
                turn().await;
            }
        };
        pool.spawner().spawn_local(writer).unwrap();
    }
    let seen = Rc::new(RefCell::new(Seen::default()));
    let reader = {
        let (service, written, seen) = (service.clone(), written.clone(), seen.clone());
        async move {
            let sort = if index.is_some() { "stamp" } else { "sk" };
            let mut last = String::from("-");
            loop {
                let all_written = written.get() == WRITES;
                let mut query = json!({
                    "TableName": "Log", "KeyConditionExpression": format!("pk = :p AND {sort} > :last"),
                    "ExpressionAttributeValues": {":p": {"S": "log"}, ":last": {"S": last}}, "Limit": 5,
                });
                if let Some(index) = index {
                    query["IndexName"] = json!(index);
                }
                let page = match call(&service, Operation::Query, query).await {
                    Ok(page) => page,
                    Err(error) => {
                        assert_eq!(error.code, Code::ServiceUnavailable, "{error}");
                        seen.borrow_mut().failed += 1;
                        continue;
                    }
                };
                let items = page["Items"].as_array().unwrap();
                let found = items.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned());
                seen.borrow_mut().pages += 1;
                seen.borrow_mut().sort_keys.extend(found);
                if items.is_empty() && all_written {
                    return;
                }
                if let Some(newest) = seen.borrow().sort_keys.last() {
                    last.clone_from(newest);
                }
                turn().await;
            }
        }
    };
    pool.spawner().spawn_local(reader).unwrap();
    pool.run();
    seen.take()
}

/// The writes that the reader passed by.
fn missed(seen: &Seen) -> usize {
    let distinct: std::collections::BTreeSet<&String> = seen.sort_keys.iter().collect();
    assert_eq!(distinct.len(), seen.sort_keys.len(), "an item came twice");
    assert!(seen.sort_keys.is_sorted(), "out of order: {:?}", seen.sort_keys);
    WRITES - distinct.len()
}

#[test]
fn a_strong_tail_misses_nothing() {
    for seed in 0..20 {
        for index in [None, Some("by-stamp")] {
            let seen = run(seed, "strong", index);
            assert_eq!(missed(&seen), 0, "seed {seed}, index {index:?}: {:?}", seen.sort_keys);
            assert!(
                seen.pages > 5 && seen.failed < seen.pages,
                "{} failed, {} pages",
                seen.failed,
                seen.pages
            );
        }
    }
}

#[test]
fn a_plain_tail_passes_items_by() {
    let missed: usize = (0..20).map(|seed| missed(&run(seed, "shard", None))).sum();
    assert!(missed > 0, "the anomaly that docs/reference/compatibility.md speaks of did not show");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for consistency in ["strong", "shard"] {
        let (first, second) = (run(7, consistency, None), run(7, consistency, None));
        assert_eq!(
            (first.sort_keys, first.pages, first.failed),
            (second.sort_keys, second.pages, second.failed)
        );
    }
}
