//! Tables whose shards other code draws at random.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_workers::Direction;
use serde_json::json;

use super::{Move, Watched, adopt, call, create, gateway, put, query, raw_get, raw_put, rules, sorts};

const RANDOM: &str =
    "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 10\nkeys = \"user-*\"";

/// What Python's `random.Random(7)` gave: `f"{pk}#{rng.randrange(10)}"` for the events of `PYTHON`,
/// and once more for `a`.
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

/// A store that takes an item away just before it is written to for the first time, and puts it
/// into another shard.
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
