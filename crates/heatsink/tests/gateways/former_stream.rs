//! The stream of a table that was sharded, deleted and made again: its records hold physical keys,
//! and nobody can tell of which layout.
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const RULES: &str = "[[rule]]\ntable = \"Games\"\nstrategy = \"calculated\"\nshards = 4\n";

fn gateway(store: &Arc<Embedded>, rules: &str) -> Gateway {
    let rules = Rules::read("rules", rules).unwrap();
    block_on(Gateway::builder(store.clone()).rules(rules).start()).unwrap()
}

fn call(gateway: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = block_on(gateway.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn create(gateway: &Gateway) {
    let body = json!({
        "TableName": "Games", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "KEYS_ONLY" },
    });
    call(gateway, Operation::CreateTable, body).unwrap();
    for sort in 0..20 {
        let item = json!({ "pk": { "S": "hot" }, "sk": { "S": sort.to_string() } });
        call(gateway, Operation::PutItem, json!({ "TableName": "Games", "Item": item })).unwrap();
    }
}

/// The partition keys in each stream, or why it cannot be read.
fn streams(gateway: &Gateway) -> Vec<Result<Vec<String>, Code>> {
    let listed = call(gateway, Operation::ListStreams, json!({ "TableName": "Games" })).unwrap();
    let read = |stream: &Json| {
        let arn = &stream["StreamArn"];
        let described = call(gateway, Operation::DescribeStream, json!({ "StreamArn": arn }))?;
        let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
        let from = json!({ "StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        let iterator = call(gateway, Operation::GetShardIterator, from)?["ShardIterator"].clone();
        let page = call(gateway, Operation::GetRecords, json!({ "ShardIterator": iterator }))?;
        let key = |record: &Json| record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap().to_owned();
        Ok(page["Records"].as_array().unwrap().iter().map(key).collect())
    };
    let refused = |error: Error| error.code;
    listed["Streams"].as_array().unwrap().iter().map(|stream| read(stream).map_err(refused)).collect()
}

#[test]
fn the_stream_of_a_former_table_shows_no_physical_keys() {
    let store = Arc::new(Embedded::memory().unwrap());
    let sharded = gateway(&store, RULES);
    create(&sharded);
    let logical = || Ok(vec!["hot".to_owned(); 20]);
    assert_eq!(streams(&sharded), [logical()]);
    for rules in ["", RULES] {
        let gateway = gateway(&store, rules);
        call(&gateway, Operation::DeleteTable, json!({ "TableName": "Games" })).unwrap();
        create(&gateway);
        let mut found = streams(&gateway);
        assert_eq!(found.pop(), Some(logical()), "the table's own stream");
        assert!(
            !found.is_empty() && found.iter().all(|one| *one == Err(Code::ResourceNotFoundException)),
            "{found:?}"
        );
    }
}
