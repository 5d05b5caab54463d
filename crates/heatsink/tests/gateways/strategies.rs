//! Strategies through a whole gateway, where the differential test does not look: tables that other code sharded by hand, which
//! buckets a Query opens, two gateways, shards that cannot be read.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_adopt::{AdoptError, Adoption, Direction, Options, Phase, Progress, Report};
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

/// A store that notes its calls and refuses those whose body holds a text.
struct Watched {
    inner: Arc<dyn Store>,
    calls: Mutex<Vec<String>>,
    refused: Mutex<Option<&'static str>>,
}

impl Watched {
    fn new() -> Arc<Self> {
        let inner: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
        Arc::new(Watched { inner, calls: Mutex::default(), refused: Mutex::default() })
    }

    /// The calls since the last time.
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl Store for Watched {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body).into_owned();
        if self.refused.lock().unwrap().is_some_and(|refused| text.contains(refused)) {
            return async { Err(Error::new(Code::InternalServerError, "this shard is down")) }.boxed();
        }
        self.calls.lock().unwrap().push(format!("{} {text}", operation.name()));
        self.inner.call(operation, body)
    }
}

fn create(store: &dyn Store, sort: &str) {
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": sort }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    block_on(store.call(Operation::CreateTable, Bytes::from(body.to_string()))).unwrap();
}

fn rules(fields: &str) -> Rules {
    Rules::read("rules", &format!("[[rule]]\ntable = \"Tab\"\n{fields}")).unwrap()
}

fn gateway(store: &Arc<Watched>, rules: Rules) -> Gateway {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    block_on(Gateway::builder(store).rules(rules).start()).unwrap()
}

fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = block_on(service.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn put(service: &Gateway, pk: &str, sk: Json, v: &str) {
    let item = json!({ "pk": { "S": pk }, "sk": sk, "v": { "S": v } });
    call(service, Operation::PutItem, json!({ "TableName": "Tab", "Item": item })).unwrap();
}

fn query(pk: &str, more: Json) -> Json {
    let mut body = json!({
        "TableName": "Tab", "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": { ":k": { "S": pk } },
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn sorts(answer: &Json) -> Vec<String> {
    let items = answer["Items"].as_array().unwrap().iter();
    items.map(|item| item["sk"]["S"].as_str().or(item["sk"]["N"].as_str()).unwrap().to_owned()).collect()
}

struct Unwatched;

impl Progress for Unwatched {
    fn phase(&self, _: Phase, _: Option<u64>) {}
    fn passed(&self, _: u64) {}
}

fn adopt(store: &Arc<Watched>, rules: &Rules, direction: Direction) -> Result<Report, AdoptError> {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    block_on(async {
        let adoption = Adoption::prepare(store, Arc::new(RealEnv), rules, "Tab", direction).await?;
        adoption.run(Options { concurrency: 2, exclusive: true }, &Unwatched).await
    })
}

/// What Python's `int(hashlib.md5(event_id.encode()).hexdigest(), 16) % 10` gave for these.
const PYTHON: [(&str, u16); 6] =
    [("event-67890", 9), ("player_7", 5), ("a", 7), ("1718000000", 2), ("12.5", 3), ("", 6)];

const MD5: &str =
    "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"md5\"\nshards = 10\nkeys = \"user-*\"";

fn raw_put(store: &Watched, pk: &str, sk: &str) {
    let body = json!({ "TableName": "Tab", "Item": { "pk": { "S": pk }, "sk": { "S": sk }, "v": { "S": "by hand" } } });
    block_on(store.inner.call(Operation::PutItem, Bytes::from(body.to_string()))).unwrap();
}

fn raw_get(store: &Watched, pk: &str, sk: &str) -> Json {
    let body = json!({ "TableName": "Tab", "Key": { "pk": { "S": pk }, "sk": { "S": sk } } });
    let answer = block_on(store.inner.call(Operation::GetItem, Bytes::from(body.to_string()))).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

#[test]
fn a_table_sharded_by_python_is_read_and_written_beside_it() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in PYTHON.iter().take(5) {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    raw_put(&store, "config", "x");
    // Not yet sharded when the rest was.
    raw_put(&store, "user-1", "old");
    let report = adopt(&store, &rules(MD5), Direction::Adopt).unwrap();
    assert_eq!((report.items, report.moved), (7, 1));
    let service = gateway(&store, rules(MD5));

    let all = call(&service, Operation::Query, query("user-1", json!({}))).unwrap();
    assert_eq!(sorts(&all), ["12.5", "1718000000", "a", "event-67890", "old", "player_7"]);
    assert!(all["Items"].as_array().unwrap().iter().all(|item| item["pk"]["S"] == "user-1"));
    store.calls();
    let key = json!({ "pk": { "S": "user-1" }, "sk": { "S": "player_7" } });
    let item = call(&service, Operation::GetItem, json!({ "TableName": "Tab", "Key": key })).unwrap();
    assert_eq!(item["Item"]["v"]["S"], "by hand");
    assert_eq!(store.calls().len(), 1);

    put(&service, "user-2", json!({ "S": "event-67890" }), "by Heatsink");
    assert_eq!(raw_get(&store, "user-2#9", "event-67890")["Item"]["v"]["S"], "by Heatsink");
    put(&service, "config", json!({ "S": "y" }), "whole");
    assert_eq!(raw_get(&store, "config", "y")["Item"]["v"]["S"], "whole");
    raw_put(&store, "user-2#7", "a");
    let both =
        call(&service, Operation::Query, query("user-2", json!({ "ScanIndexForward": false }))).unwrap();
    assert_eq!(sorts(&both), ["event-67890", "a"]);

    let report = adopt(&store, &rules(MD5), Direction::Release).unwrap();
    assert_eq!(report.moved, 0, "what was sharded by hand stays so");
    assert_eq!(raw_get(&store, "user-1#5", "player_7")["Item"]["v"]["S"], "by hand");
}

#[test]
fn a_template_goes_back_to_logical_keys_and_under_another_shard_count() {
    let store = Watched::new();
    create(&*store, "S");
    let with = |shards: u16| rules(&MD5.replace("shards = 10", &format!("shards = {shards}")));
    let service = gateway(&store, with(10));
    let mut expected: Vec<String> = (0..50).map(|at| format!("event-{at:02}")).collect();
    expected.extend(PYTHON.iter().take(5).map(|(event, _)| (*event).to_owned()));
    expected.sort();
    expected.iter().for_each(|sort| put(&service, "user-1", json!({ "S": sort }), "v"));
    let found = |service: &Gateway| {
        sorts(&call(service, Operation::Query, query("user-1", json!({ "ConsistentRead": true }))).unwrap())
    };
    let back = adopt(&store, &Rules::default(), Direction::Back).unwrap();
    assert_eq!((back.items, back.moved), (55, 55));
    assert_eq!(found(&gateway(&store, Rules::default())), expected);

    let again = adopt(&store, &with(5), Direction::Adopt).unwrap();
    assert_eq!((again.items, again.moved, again.checksum), (55, 55, back.checksum));
    assert_eq!(found(&gateway(&store, with(5))), expected);
    for (event, shard) in PYTHON.iter().take(5) {
        let item = raw_get(&store, &format!("user-1#{}", shard % 5), event);
        assert_eq!(item["Item"]["v"]["S"], "v", "{event}");
    }
}

#[test]
fn keys_of_code_that_still_shards_by_hand_are_what_the_rule_says() {
    let with = |physical_keys: &str| rules(&format!("{MD5}\nphysical_keys = \"{physical_keys}\""));
    let item = |pk: &str| json!({ "pk": { "S": pk }, "sk": { "S": "event-67890" }, "v": { "S": pk } });
    let write = |service: &Gateway, pk: &str| {
        call(service, Operation::PutItem, json!({ "TableName": "Tab", "Item": item(pk) }))
    };
    let read = |service: &Gateway, pk: &str| {
        let key = json!({ "pk": { "S": pk }, "sk": { "S": "event-67890" } });
        call(service, Operation::GetItem, json!({ "TableName": "Tab", "Key": key })).unwrap()["Item"].take()
    };

    // By default it is a key of its own, which `user-1` does not show.
    let store = Watched::new();
    create(&*store, "S");
    let service = gateway(&store, rules(MD5));
    write(&service, "user-1#9").unwrap();
    assert_eq!(raw_get(&store, "user-1#9#9", "event-67890")["Item"]["v"]["S"], "user-1#9");
    assert!(read(&service, "user-1").is_null());
    assert_eq!(read(&gateway(&store, with("accept")), "user-1#9"), item("user-1#9"));

    let refusing = gateway(&store, with("refuse"));
    for error in [
        write(&refusing, "user-1#9").unwrap_err(),
        call(&refusing, Operation::Query, query("user-1#9", json!({}))).unwrap_err(),
    ] {
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.unwrap().contains("a shard of the key \"user-1\""));
    }
    write(&refusing, "user-1#77").unwrap();
    write(&refusing, "config#9").unwrap();

    let store = Watched::new();
    create(&*store, "S");
    let service = gateway(&store, with("as_shard"));
    write(&service, "user-1#9").unwrap();
    assert_eq!(raw_get(&store, "user-1#9", "event-67890")["Item"]["v"]["S"], "user-1#9");
    assert_eq!(
        (read(&service, "user-1#9"), read(&service, "user-1")["v"].take()),
        (item("user-1#9"), json!({ "S": "user-1#9" }))
    );
    let error = write(&service, "user-1#8").unwrap_err();
    assert!(error.message.unwrap().contains("belongs to shard 9"));
    put(&service, "user-1", json!({ "S": "a" }), "logical");
    for (pk, found) in
        [("user-1#9", vec!["event-67890"]), ("user-1#7", vec!["a"]), ("user-1", vec!["a", "event-67890"])]
    {
        let page = call(&service, Operation::Query, query(pk, json!({}))).unwrap();
        assert_eq!(sorts(&page), found);
        assert!(page["Items"].as_array().unwrap().iter().all(|item| item["pk"]["S"] == pk), "{page}");
    }
}

#[test]
fn a_rule_with_another_hash_than_the_data_is_not_adopted() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in PYTHON.iter().take(5) {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    let wrong = rules(&MD5.replace("md5", "sha256"));
    let Err(AdoptError::Failed(reason)) = adopt(&store, &wrong, Direction::Adopt) else { panic!("adopted") };
    assert!(reason.contains("by the rule it would be under user-1#"), "{reason}");
    assert!(adopt(&store, &rules(MD5), Direction::Adopt).is_ok());
}

const RANDOM: &str =
    "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 10\nkeys = \"user-*\"";

/// What Python's `random.Random(7)` gave: `f"{pk}#{rng.randrange(10)}"` for the events of `PYTHON`, and once more for `a`.
const ASSIGNED: [(&str, u16); 6] =
    [("event-67890", 5), ("player_7", 2), ("a", 6), ("1718000000", 0), ("12.5", 1), ("a", 8)];

#[test]
fn a_table_with_random_suffixes_is_read_and_written_beside_the_code_that_draws_them() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in ASSIGNED {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    raw_put(&store, "config", "x");
    let report = adopt(&store, &rules(RANDOM), Direction::Adopt).unwrap();
    assert_eq!((report.items, report.moved, report.tied), (7, 0, 1), "items stay where they were put");
    let service = gateway(&store, rules(RANDOM));
    let key =
        |sort: &str| json!({ "TableName": "Tab", "Key": { "pk": { "S": "user-1" }, "sk": { "S": sort } } });

    // All items of all shards, equal sort keys too, on every page.
    for limit in 1..8 {
        let mut body = query("user-1", json!({ "Limit": limit }));
        let mut found = Vec::new();
        loop {
            let page = call(&service, Operation::Query, body.clone()).unwrap();
            assert!(page["Items"].as_array().unwrap().iter().all(|item| item["pk"]["S"] == "user-1"));
            found.extend(sorts(&page));
            match page.get("LastEvaluatedKey") {
                Some(last) => body["ExclusiveStartKey"] = last.clone(),
                None => break,
            }
        }
        assert_eq!(found, ["12.5", "1718000000", "a", "a", "event-67890", "player_7"], "limit {limit}");
    }

    // By its key one request reads it; a key with two items is refused by name.
    store.calls();
    let item = call(&service, Operation::GetItem, key("player_7")).unwrap();
    assert_eq!((&item["Item"]["pk"]["S"], &item["Item"]["v"]["S"]), (&json!("user-1"), &json!("by hand")));
    assert_eq!(store.calls().len(), 1);
    for operation in [Operation::GetItem, Operation::DeleteItem] {
        let error = call(&service, operation, key("a")).unwrap_err();
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.unwrap().contains("in shard 6 and in shard 8"));
    }

    let write = Bytes::from(
        json!({ "TableName": "Tab", "Item": { "pk": { "S": "user-1" }, "sk": { "S": "x" } } }).to_string(),
    );
    let explained = block_on(service.explain(Operation::PutItem, &write));
    let operations: Vec<&str> = explained.calls.iter().map(|call| call.operation.as_str()).collect();
    assert_eq!(operations, ["BatchGetItem", "PutItem"]);
    assert!(explained.why.contains("it is looked for in all of them"), "{}", explained.why);

    // A write finds what the other code wrote, and the other code finds what is written.
    let mut update = key("player_7");
    update["UpdateExpression"] = "SET v = :v".into();
    update["ExpressionAttributeValues"] = json!({ ":v": { "S": "updated" } });
    call(&service, Operation::UpdateItem, update).unwrap();
    assert_eq!(raw_get(&store, "user-1#2", "player_7")["Item"]["v"]["S"], "updated");
    put(&service, "user-1", json!({ "S": "12.5" }), "replaced");
    assert_eq!(raw_get(&store, "user-1#1", "12.5")["Item"]["v"]["S"], "replaced");
    let new = json!({ "pk": { "S": "user-1" }, "sk": { "S": "event-67890" } });
    let mut once =
        json!({ "TableName": "Tab", "Item": new, "ConditionExpression": "attribute_not_exists(pk)" });
    let error = call(&service, Operation::PutItem, once.clone()).unwrap_err();
    assert_eq!(error.code, Code::ConditionalCheckFailedException);
    once["Item"]["sk"] = json!({ "S": "new" });
    call(&service, Operation::PutItem, once.clone()).unwrap();
    assert_eq!(
        call(&service, Operation::PutItem, once).unwrap_err().code,
        Code::ConditionalCheckFailedException
    );
    let by_hand =
        (0..10).filter(|shard| !raw_get(&store, &format!("user-1#{shard}"), "new")["Item"].is_null());
    assert_eq!(by_hand.count(), 1);
    call(&service, Operation::DeleteItem, key("1718000000")).unwrap();
    assert!(raw_get(&store, "user-1#0", "1718000000")["Item"].is_null());

    // A Scan that is cut anywhere goes on where it stopped.
    let mut body = json!({ "TableName": "Tab", "Limit": 1 });
    let mut found = Vec::new();
    loop {
        let page = call(&service, Operation::Scan, body.clone()).unwrap();
        found.extend(sorts(&page));
        match page.get("LastEvaluatedKey") {
            Some(last) => body["ExclusiveStartKey"] = last.clone(),
            None => break,
        }
    }
    found.sort();
    assert_eq!(found, ["12.5", "a", "a", "event-67890", "new", "player_7", "x"]);
}

#[test]
fn a_transaction_that_is_sent_again_is_the_one_it_was() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in ASSIGNED.iter().take(2) {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    adopt(&store, &rules(RANDOM), Direction::Adopt).unwrap();
    let service = gateway(&store, rules(RANDOM));
    // What it deletes is nowhere when it comes again, and would be looked for elsewhere.
    let key = json!({ "TableName": "Tab", "Key": { "pk": { "S": "user-1" }, "sk": { "S": "player_7" } } });
    let mut body = json!({ "ClientRequestToken": "once", "TransactItems": [{ "Delete": key }] });
    for _ in 0..3 {
        call(&service, Operation::TransactWriteItems, body.clone()).unwrap();
    }
    let page = call(&service, Operation::Query, query("user-1", json!({}))).unwrap();
    assert_eq!(sorts(&page), ["event-67890"]);
    // Another transaction with its token is refused.
    body["TransactItems"][0]["Delete"]["Key"]["sk"] = json!({ "S": "event-67890" });
    let error = call(&service, Operation::TransactWriteItems, body).unwrap_err();
    assert_eq!(error.code, Code::IdempotentParameterMismatchException);
}

#[test]
fn streams_of_assigned_shards_hold_logical_keys() {
    let store = Watched::new();
    create(&*store, "S");
    adopt(&store, &rules(RANDOM), Direction::Adopt).unwrap();
    let service = gateway(&store, rules(RANDOM));
    let stream = json!({ "TableName": "Tab", "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_IMAGE" } });
    call(&service, Operation::UpdateTable, stream).unwrap();
    raw_put(&store, "user-1#4", "by hand");
    put(&service, "user-1", json!({ "S": "through" }), "x");
    let described = call(&service, Operation::DescribeTable, json!({ "TableName": "Tab" })).unwrap();
    let arn = &described["Table"]["LatestStreamArn"];
    let shards = call(&service, Operation::DescribeStream, json!({ "StreamArn": arn })).unwrap();
    let mut keys = Vec::new();
    for shard in shards["StreamDescription"]["Shards"].as_array().unwrap() {
        let iterator =
            json!({ "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON" });
        let from = call(&service, Operation::GetShardIterator, iterator).unwrap();
        let records = json!({ "ShardIterator": from["ShardIterator"] });
        let records = call(&service, Operation::GetRecords, records).unwrap();
        keys.extend(
            records["Records"].as_array().unwrap().iter().map(|record| record["dynamodb"]["Keys"].clone()),
        );
    }
    let key = |sort: &str| json!({ "pk": { "S": "user-1" }, "sk": { "S": sort } });
    assert_eq!(keys, [key("by hand"), key("through")]);
}

/// Before which operation the item goes from where to where.
type Move = (Operation, &'static str, &'static str);

/// A store that takes an item away just before it is written to for the first time, and puts it into another shard.
struct Moving {
    inner: Arc<dyn Store>,
    moves: Mutex<Vec<Move>>,
}

impl Store for Moving {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let due = |moves: &mut Vec<Move>| moves.pop_if(|(before, _, _)| *before == operation);
        let moved = due(&mut self.moves.lock().unwrap());
        async move {
            if let Some((_, from, to)) = moved {
                let key = json!({ "TableName": "Tab", "Key": { "pk": { "S": from }, "sk": { "S": "a" } } });
                self.inner.call(Operation::DeleteItem, Bytes::from(key.to_string())).await.unwrap();
                let item = json!({ "TableName": "Tab", "Item": { "pk": { "S": to }, "sk": { "S": "a" }, "v": { "S": "moved" } } });
                self.inner.call(Operation::PutItem, Bytes::from(item.to_string())).await.unwrap();
            }
            self.inner.call(operation, body).await
        }
        .boxed()
    }
}

#[test]
fn an_item_that_moves_while_it_is_written_to_stays_one() {
    for operation in [Operation::UpdateItem, Operation::PutItem, Operation::TransactWriteItems] {
        let watched = Watched::new();
        create(&*watched, "S");
        adopt(&watched, &rules(RANDOM), Direction::Adopt).unwrap();
        raw_put(&watched, "user-1#3", "a");
        let moves =
            Mutex::new(vec![(operation, "user-1#5", "user-1#8"), (operation, "user-1#3", "user-1#5")]);
        let store: Arc<dyn Store> = Arc::new(Moving { inner: watched.inner.clone(), moves });
        let service = block_on(Gateway::builder(store).rules(rules(RANDOM)).start()).unwrap();
        let item = json!({ "pk": { "S": "user-1" }, "sk": { "S": "a" } });
        let mut put = json!({ "TableName": "Tab", "Item": item });
        put["Item"]["v"] = json!({ "S": "written" });
        let body = match operation {
            Operation::UpdateItem => json!({
                "TableName": "Tab", "Key": item, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": { ":v": { "S": "written" } },
            }),
            Operation::PutItem => put,
            _ => json!({ "TransactItems": [{ "Put": put }] }),
        };
        call(&service, operation, body).unwrap();
        let found = call(&service, Operation::Query, query("user-1", json!({}))).unwrap();
        assert_eq!(found["Items"].as_array().unwrap().len(), 1, "{operation:?}: {found}");
        assert_eq!(raw_get(&watched, "user-1#8", "a")["Item"]["v"]["S"], "written");
    }
}

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
    // It is 2026-01-01T00:00. Of these the directory knows nothing; the last is from a clock that is a little ahead.
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
    // All was looked into, and all that was found is on record: the last eight hours are tried again, and nothing is entered twice.
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

/// The partition keys that Queries asked, in order of the keys and without those of the directory: what one round asks, it asks at once.
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

fn create_through(service: &Gateway) {
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    call(service, Operation::CreateTable, body).unwrap();
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

#[test]
fn a_shard_that_cannot_be_read_fails_the_query_unless_the_rule_says_otherwise() {
    let calculated = "strategy = \"calculated\"\nshards = 4";
    for (fields, partial) in
        [(calculated.to_owned(), false), (format!("{calculated}\non_shard_error = \"partial\""), true)]
    {
        let store = Watched::new();
        let service = gateway(&store, rules(&fields));
        create_through(&service);
        for number in 0..40 {
            put(&service, "game", json!({ "S": format!("{number:02}") }), "x");
        }
        *store.refused.lock().unwrap() = Some("\"game#~2\"");
        let body = Bytes::from(query("game", json!({})).to_string());
        let answer = block_on(service.call_marked(Operation::Query, body.clone()));
        if partial {
            let answer = answer.unwrap();
            assert_eq!(answer.missing, ["2"]);
            let answer: Json = serde_json::from_slice(&answer.body).unwrap();
            assert!((20..40).contains(&sorts(&answer).len()), "{}", sorts(&answer).len());
        } else {
            assert_eq!(answer.unwrap_err().code, Code::InternalServerError);
        }
        // Without any shard there is no answer; and what is wrong with a request is no shard's affair.
        *store.refused.lock().unwrap() = Some("\"game");
        assert!(block_on(service.call(Operation::Query, body)).is_err());
        *store.refused.lock().unwrap() = None;
        let wrong = query("game", json!({ "FilterExpression": "nonsense(" }));
        assert_eq!(call(&service, Operation::Query, wrong).unwrap_err().code, Code::ValidationException);
    }
}

/// An index of a table with counters is read by the plan of a plain Query, and completed from the table.
#[test]
fn an_answer_that_is_completed_says_what_it_goes_without() {
    let store = Watched::new();
    let partial = "keys = \"game\"\nstrategy = \"calculated\"\nshards = 4\non_shard_error = \"partial\"";
    let counters = "[[rule]]\ntable = \"Tab\"\nkeys = \"votes\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 2";
    let service = gateway(&store, rules(&format!("{partial}\n{counters}")));
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            { "AttributeName": "v", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "LocalSecondaryIndexes": [{
            "IndexName": "by-v", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "v", "KeyType": "RANGE" }],
        }],
    });
    call(&service, Operation::CreateTable, body).unwrap();
    for number in 0..20 {
        put(&service, "game", json!({ "S": format!("{number:02}") }), "x");
    }
    *store.refused.lock().unwrap() = Some("\"game#~2\"");
    let body = Bytes::from(query("game", json!({ "IndexName": "by-v" })).to_string());
    let answer = block_on(service.call_marked(Operation::Query, body)).unwrap();
    assert_eq!(answer.missing, ["2"]);
    let answer: Json = serde_json::from_slice(&answer.body).unwrap();
    assert!((8..20).contains(&sorts(&answer).len()), "{answer}");
}
