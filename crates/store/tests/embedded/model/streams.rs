//! Answers about streams: their shapes, and their meaning where the model gives it: which records
//! are whose, what an open shard is.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use heatsink_dynamo::{Code, Operation};
use serde_json::{Value as Json, json};

use super::Checked;
use crate::embedded::support::refused;

fn table(streams: bool) -> Json {
    let mut body = json!({"TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]});
    if streams {
        body["StreamSpecification"] = on("NEW_AND_OLD_IMAGES");
    }
    body
}

fn on(view: &str) -> Json {
    json!({"StreamEnabled": true, "StreamViewType": view})
}

async fn put(store: &Checked, key: &str) {
    let item = json!({"pk": {"S": key}, "n": {"N": "1"}, "s": {"NS": ["2", "1"]}});
    store.call(Operation::PutItem, json!({"TableName": "Tab", "Item": item})).await;
}

async fn set(store: &Checked, specification: Json) -> Json {
    let body = json!({"TableName": "Tab", "StreamSpecification": specification});
    store.call(Operation::UpdateTable, body).await["TableDescription"].clone()
}

async fn streams(store: &Checked) -> Vec<Json> {
    let listed = store.call(Operation::ListStreams, json!({"TableName": "Tab"})).await;
    listed["Streams"].as_array().unwrap().iter().map(|stream| stream["StreamArn"].clone()).collect()
}

async fn described(store: &Checked, arn: &Json) -> Json {
    store.call(Operation::DescribeStream, json!({"StreamArn": arn})).await["StreamDescription"].clone()
}

async fn iterator(store: &Checked, arn: &Json, kind: &str, number: Option<&Json>) -> Json {
    let shard = described(store, arn).await["Shards"][0]["ShardId"].clone();
    let mut body = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind});
    if let Some(number) = number {
        body["SequenceNumber"] = number.clone();
    }
    store.call(Operation::GetShardIterator, body).await["ShardIterator"].clone()
}

/// The records from an iterator on, two a page, and whether the shard is open behind them.
async fn records(store: &Checked, mut iterator: Json) -> (Vec<Json>, bool) {
    let mut records = Vec::new();
    loop {
        let page = store.call(Operation::GetRecords, json!({"ShardIterator": iterator, "Limit": 2})).await;
        let found = page["Records"].as_array().unwrap();
        records.extend(found.iter().map(|record| record["dynamodb"].clone()));
        iterator = page["NextShardIterator"].clone();
        if iterator.is_null() || found.is_empty() {
            return (records, !iterator.is_null());
        }
    }
}

async fn keys(store: &Checked, arn: &Json) -> (Vec<String>, bool) {
    let start = iterator(store, arn, "TRIM_HORIZON", None).await;
    let (records, open) = records(store, start).await;
    let key = |record: &Json| record["Keys"]["pk"]["S"].as_str().unwrap().to_owned();
    (records.iter().map(key).collect(), open)
}

#[tokio::test]
async fn a_stream_shows_its_own_records_alone() {
    let store = Checked::new();
    let created = store.call(Operation::CreateTable, table(true)).await;
    let first = created["TableDescription"]["LatestStreamArn"].clone();
    for key in ["a", "b", "c"] {
        put(&store, key).await;
    }
    assert_eq!(keys(&store, &first).await, (["a", "b", "c"].map(str::to_owned).to_vec(), true));
    set(&store, json!({"StreamEnabled": false})).await;
    put(&store, "unseen").await;
    let second = set(&store, on("KEYS_ONLY")).await["LatestStreamArn"].clone();
    put(&store, "d").await;
    store.call(Operation::DeleteTable, json!({"TableName": "Tab"})).await;
    store.call(Operation::CreateTable, table(false)).await;
    put(&store, "unseen").await;
    let third = set(&store, on("NEW_IMAGE")).await["LatestStreamArn"].clone();
    put(&store, "e").await;
    assert_eq!(streams(&store).await, [first.clone(), second.clone(), third.clone()]);
    assert_eq!(keys(&store, &first).await, (["a", "b", "c"].map(str::to_owned).to_vec(), false));
    assert_eq!(keys(&store, &second).await, (vec!["d".to_owned()], false));
    assert_eq!(keys(&store, &third).await, (vec!["e".to_owned()], true));
    let table = store.call(Operation::DescribeTable, json!({"TableName": "Tab"})).await["Table"].clone();
    assert_eq!(table["LatestStreamArn"], third);
    for (arn, status, ends) in
        [(&first, "DISABLED", true), (&second, "DISABLED", true), (&third, "ENABLED", false)]
    {
        let stream = described(&store, arn).await;
        let range = &stream["Shards"][0]["SequenceNumberRange"];
        assert_eq!(stream["StreamStatus"], status);
        assert_eq!(range.get("EndingSequenceNumber").is_some(), ends, "{stream}");
        assert!(
            arn.as_str()
                .unwrap()
                .ends_with(&format!("table/Tab/stream/{}", stream["StreamLabel"].as_str().unwrap()))
        );
    }
}

/// `2015-05-20T20:51:10.252`, and a shard as `shardId-00000001414562045508-2bac9cd2`.
#[tokio::test]
async fn labels_are_times_and_shards_have_long_names() {
    let store = Checked::new();
    store.call(Operation::CreateTable, table(true)).await;
    let arn = &streams(&store).await[0];
    let stream = described(&store, arn).await;
    let form = |text: &Json| -> String {
        text.as_str().unwrap().chars().map(|sign| if sign.is_ascii_hexdigit() { '0' } else { sign }).collect()
    };
    assert_eq!(form(&stream["StreamLabel"]), "0000-00-00T00:00:00.000");
    let shard = stream["Shards"][0]["ShardId"].as_str().unwrap();
    assert!(shard.starts_with("shardId-000000") && shard.len() == 37, "{shard}");
    assert_eq!(form(&json!(shard[8..])), "00000000000000000000-00000000");
}

#[tokio::test]
async fn records_are_read_from_where_a_consumer_wants_them() {
    let store = Checked::new();
    store.call(Operation::CreateTable, table(true)).await;
    let arn = &streams(&store).await[0];
    let latest = iterator(&store, arn, "LATEST", None).await;
    for key in ["a", "b", "c"] {
        put(&store, key).await;
    }
    put(&store, "c").await;
    store.call(Operation::DeleteItem, json!({"TableName": "Tab", "Key": {"pk": {"S": "a"}}})).await;
    let (all, open) = records(&store, latest).await;
    assert!(open && all.len() == 5, "{all:?}");
    // Of its key 3, of the new image 3 and 3 and 5.
    assert_eq!(all[0]["SizeBytes"], 3 + 3 + 3 + 5);
    assert!(all[3].get("OldImage").is_some() && all[4].get("NewImage").is_none());
    for (kind, from) in [("AT_SEQUENCE_NUMBER", 2), ("AFTER_SEQUENCE_NUMBER", 3)] {
        let start = iterator(&store, arn, kind, Some(&all[2]["SequenceNumber"])).await;
        assert_eq!(records(&store, start).await.0, all[from..]);
    }
    let listed =
        store.call(Operation::ListStreams, json!({"Limit": 1, "ExclusiveStartStreamArn": arn})).await;
    assert_eq!(listed, json!({"Streams": []}));
}

#[tokio::test]
async fn what_is_no_stream_shard_or_position_is_refused() {
    let store = Checked::new();
    store.call(Operation::CreateTable, table(true)).await;
    let arn = &streams(&store).await[0];
    let shard = described(&store, arn).await["Shards"][0]["ShardId"].clone();
    let other = json!("arn:aws:dynamodb:us-east-1:000000000000:table/Tab/stream/2015-05-20T20:51:10.252");
    let from = |arn: &Json, shard: &Json, kind: &str, number: Json| json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind, "SequenceNumber": number});
    let none = Json::Null;
    for (operation, body, code) in [
        (Operation::DescribeStream, json!({"StreamArn": other}), Code::ResourceNotFoundException),
        (Operation::DescribeStream, json!({"StreamArn": "short"}), Code::ValidationException),
        (
            Operation::GetShardIterator,
            from(&other, &shard, "LATEST", none.clone()),
            Code::ResourceNotFoundException,
        ),
        (
            Operation::GetShardIterator,
            from(arn, &json!("shardId-00000001414562045508-2bac9cd2"), "LATEST", none.clone()),
            Code::ResourceNotFoundException,
        ),
        (
            Operation::GetShardIterator,
            from(arn, &json!("short"), "LATEST", none.clone()),
            Code::ValidationException,
        ),
        (Operation::GetShardIterator, from(arn, &shard, "BOGUS", none.clone()), Code::ValidationException),
        (
            Operation::GetShardIterator,
            from(arn, &shard, "LATEST", json!("100000000000000000001")),
            Code::ValidationException,
        ),
        (
            Operation::GetShardIterator,
            from(arn, &shard, "AT_SEQUENCE_NUMBER", none),
            Code::ValidationException,
        ),
        (
            Operation::GetShardIterator,
            from(arn, &shard, "AT_SEQUENCE_NUMBER", json!("9".repeat(30))),
            Code::ValidationException,
        ),
        (Operation::GetRecords, json!({"ShardIterator": "x"}), Code::ValidationException),
        (
            Operation::GetRecords,
            json!({"ShardIterator": format!("{}|1|5", other.as_str().unwrap())}),
            Code::ResourceNotFoundException,
        ),
        (Operation::GetRecords, json!({}), Code::ValidationException),
        (Operation::ListStreams, json!({"Limit": 101}), Code::ValidationException),
        (Operation::ListStreams, json!({"Limit": 0}), Code::ValidationException),
    ] {
        assert_eq!(refused(&store.store, operation, body.clone()).await.code, code, "{body}");
    }
}
