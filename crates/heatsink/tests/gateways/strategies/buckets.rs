//! Which buckets a Query opens, and who has begun them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_dynamo::{Code, Operation};
use heatsink_env::ManualEnv;
use heatsink_store::Store;
use heatsink_workers::Direction;
use serde_json::json;

use super::{Watched, adopt, call, create, create_through, gateway, put, query, raw_put, rules, sorts};

const BEGUN: &str = "strategy = \"template\"\ntemplate = \"{pk}#{bucket}#{shard}\"\nbucket = \"hour\"\nhash = \"random\"\nshards = 2\nkeys = \"user-*\"";

#[test]
fn buckets_that_other_code_begins_are_found_and_entered() {
    let store = Watched::new();
    create(&*store, "S");
    raw_put(&store, "user-1#2025-12-30T07#1", "2025-12-30T07:00");
    adopt(&store, &rules(BEGUN), Direction::Adopt).unwrap();
    let env = Arc::new(ManualEnv::seeded(1));
    let service = || {
        let watched: Arc<dyn Store> = Arc::clone(&store) as _;
        block_on(Gateway::builder(watched).env(env.clone()).rules(rules(BEGUN)).start()).unwrap()
    };
    let one = service();
    let newest = json!({ "ScanIndexForward": false, "Limit": 2 });
    // It is 2026-01-01T00:00. Of these the directory knows nothing; the last is from a clock that
    // is a little ahead.
    for (bucket, sort) in [
        ("2025-12-30T20", "2025-12-30T20:10"),
        ("2025-12-31T23", "2025-12-31T23:50"),
        ("2026-01-01T00", "2026-01-01T00:00:03"),
    ] {
        raw_put(&store, &format!("user-1#{bucket}#0"), sort);
    }
    store.calls();
    let page = call(&one, Operation::Query, query("user-1", newest.clone())).unwrap();
    assert_eq!(sorts(&page), ["2026-01-01T00:00:03", "2025-12-31T23:50"]);
    let entered = |calls: Vec<String>| {
        calls.iter().filter(|call| call.starts_with("PutItem") && call.contains("heatsink.buckets")).count()
    };
    assert_eq!(entered(store.calls()), 2);
    let all = ["2025-12-30T07:00", "2025-12-30T20:10", "2025-12-31T23:50", "2026-01-01T00:00:03"];
    for service in [&one, &service()] {
        let page = call(service, Operation::Query, query("user-1", json!({}))).unwrap();
        assert_eq!(sorts(&page), all);
    }
    store.calls();
    // All was looked into, and all that was found is on record: the last eight hours are tried
    // again, and nothing is entered twice.
    let page = call(&one, Operation::Query, query("user-1", json!({}))).unwrap();
    assert_eq!(sorts(&page), all);
    let calls = store.calls();
    assert_eq!(entered(calls.clone()), 0);
    assert!(calls.len() < 2 * (4 + 8) + 3, "{}", calls.len());
    // A bucket that only the other code wrote to, older than one that Heatsink wrote to.
    put(&one, "user-1", json!({ "S": "2026-01-01T00:00:05" }), "by Heatsink");
    raw_put(&store, "user-1#2025-12-31T20#1", "2025-12-31T20:59");
    let page =
        call(&one, Operation::Query, query("user-1", json!({ "ScanIndexForward": false, "Limit": 4 })))
            .unwrap();
    assert_eq!(sorts(&page)[3], "2025-12-31T20:59");
    // Days later it is still known, and so is what was written since.
    env.advance(Duration::from_secs(50 * 3600));
    raw_put(&store, "user-1#2026-01-02T11#1", "2026-01-02T11:11");
    let page = call(&service(), Operation::Query, query("user-1", json!({}))).unwrap();
    assert_eq!(sorts(&page).len(), 7);
    let explained =
        block_on(one.explain(Operation::Query, &Bytes::from(query("user-1", json!({})).to_string())));
    assert!(explained.why.contains("code that bypasses Heatsink may have begun"), "{}", explained.why);
}

const DAY: &str = "strategy = \"bucket\"\nbucket = \"day\"";

fn week(service: &Gateway) {
    for day in 1..=7 {
        for minute in 0..50 {
            put(service, "OPS_LOG", json!({ "S": format!("2026-06-0{day}T10:{minute:02}:00Z") }), "line");
        }
    }
}

/// The partition keys that Queries asked, in order of the keys and without those of the directory:
/// what one round asks, it asks at once.
fn asked(calls: &[String]) -> Vec<String> {
    let queries = calls.iter().filter(|call| call.starts_with("Query") && !call.contains("heatsink.buckets"));
    let key = |call: &String| {
        let at = call.find("\"OPS_LOG").unwrap();
        call[at + 1..].split('"').next().unwrap().to_owned()
    };
    let mut asked: Vec<String> = queries.map(key).collect();
    asked.sort();
    asked
}

#[test]
fn the_newest_rows_open_the_newest_bucket_only() {
    let store = Watched::new();
    let service = gateway(&store, rules(DAY));
    create_through(&service);
    week(&service);
    let entries = store
        .calls()
        .iter()
        .filter(|call| call.starts_with("PutItem") && call.contains("heatsink.buckets"))
        .count();
    assert_eq!(entries, 7, "one entry for each bucket");

    let newest = json!({ "ScanIndexForward": false, "Limit": 50 });
    let page = call(&service, Operation::Query, query("OPS_LOG", newest.clone())).unwrap();
    assert_eq!(sorts(&page).first().unwrap(), "2026-06-07T10:49:00Z");
    assert_eq!(sorts(&page).len(), 50);
    let calls = store.calls();
    assert_eq!(calls.len(), 3, "the directory, shard 0, the newest bucket: {calls:?}");
    assert_eq!(asked(&calls), ["OPS_LOG", "OPS_LOG#~2026-06-07"]);

    // The next page goes on in the day before.
    let mut next = query("OPS_LOG", newest);
    next["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
    let page = call(&service, Operation::Query, next).unwrap();
    assert_eq!(sorts(&page).first().unwrap(), "2026-06-06T10:49:00Z");
    assert!(
        !asked(&store.calls()).iter().any(|key| key < &"OPS_LOG#~2026-06-05".to_owned() && key != "OPS_LOG")
    );

    // A closed range needs no directory.
    let between = json!({
        "KeyConditionExpression": "pk = :k AND sk BETWEEN :a AND :b",
        "ExpressionAttributeValues": { ":k": { "S": "OPS_LOG" }, ":a": { "S": "2026-06-02T10:48" }, ":b": { "S": "2026-06-03T10:01" } },
    });
    let range = query("OPS_LOG", between);
    let page = call(&service, Operation::Query, range.clone()).unwrap();
    assert_eq!(sorts(&page).len(), 3);
    assert_eq!(asked(&store.calls()), ["OPS_LOG", "OPS_LOG#~2026-06-02", "OPS_LOG#~2026-06-03"]);
    let explained = block_on(service.explain(Operation::Query, &Bytes::from(range.to_string())));
    assert!(
        explained.why.starts_with("2 day bucket(s) can hold what the condition asks for"),
        "{}",
        explained.why
    );
}

#[test]
fn a_bucket_that_another_gateway_began_is_read_at_once() {
    let store = Watched::new();
    let one = gateway(&store, rules(DAY));
    create_through(&one);
    put(&one, "OPS_LOG", json!({ "S": "2026-06-01T00" }), "old");
    let two = gateway(&store, rules(DAY));
    for (at, forward) in
        [("2026-06-09T00", false), ("1999-01-01T00", true), ("9999-12-31T23", false), ("META", false)]
    {
        // Both know the directory as it was.
        for service in [&one, &two] {
            call(service, Operation::Query, query("OPS_LOG", json!({ "ScanIndexForward": forward })))
                .unwrap();
        }
        put(&one, "OPS_LOG", json!({ "S": at }), "new");
        for (service, name) in [(&one, "one"), (&two, "two")] {
            let body =
                query("OPS_LOG", json!({ "ScanIndexForward": forward, "Limit": 1, "ConsistentRead": true }));
            let page = call(service, Operation::Query, body).unwrap();
            assert_eq!(sorts(&page), [at], "{name}");
        }
    }
    let all = call(&two, Operation::Query, query("OPS_LOG", json!({}))).unwrap();
    assert_eq!(sorts(&all), ["1999-01-01T00", "2026-06-01T00", "2026-06-09T00", "9999-12-31T23", "META"]);
}

#[test]
fn a_write_whose_bucket_cannot_be_entered_is_not_sent() {
    let store = Watched::new();
    let service = gateway(&store, rules(DAY));
    create_through(&service);
    *store.refused.lock().unwrap() = Some("heatsink.buckets");
    let item = json!({ "pk": { "S": "OPS_LOG" }, "sk": { "S": "2026-06-01T00" } });
    let error = call(&service, Operation::PutItem, json!({ "TableName": "Tab", "Item": item })).unwrap_err();
    assert_eq!(error.code, Code::InternalServerError);
    assert!(!store.calls().iter().any(|call| call.contains("OPS_LOG")));
    *store.refused.lock().unwrap() = None;
    put(&service, "OPS_LOG", json!({ "S": "2026-06-01T00" }), "x");
}

/// Rows of the directory are never removed: those of a former rule fill whole pages of it.
#[test]
fn rows_of_a_former_rule_are_passed_over() {
    let store = Watched::new();
    let hours = rules("strategy = \"bucket\"\nbucket = \"hour\"");
    let service = gateway(&store, hours.clone());
    create_through(&service);
    let sort = |number: u32| json!({ "S": format!("2026-06-{:02}T{:02}:00Z", 1 + number / 24, number % 24) });
    for number in 0..250 {
        put(&service, "OPS_LOG", sort(number), "line");
    }
    for number in 0..250 {
        let key = json!({ "TableName": "Tab", "Key": { "pk": { "S": "OPS_LOG" }, "sk": sort(number) } });
        call(&service, Operation::DeleteItem, key).unwrap();
    }
    drop(service);
    adopt(&store, &hours, Direction::Back).unwrap();
    adopt(&store, &rules(DAY), Direction::Adopt).unwrap();
    for newest in ["2026-06-12T00", "2026-05-01T00"] {
        let service = gateway(&store, rules(DAY));
        put(&service, "OPS_LOG", json!({ "S": newest }), "line");
        for forward in [true, false] {
            let service = gateway(&store, rules(DAY));
            let page =
                call(&service, Operation::Query, query("OPS_LOG", json!({ "ScanIndexForward": forward })));
            assert!(sorts(&page.unwrap()).contains(&newest.to_owned()), "{newest} {forward}");
        }
    }
}
