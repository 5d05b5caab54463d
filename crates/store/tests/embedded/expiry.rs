//! Items whose time to live is over.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use heatsink_dynamo::Operation;
use heatsink_env::{Env, ManualEnv};
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::embedded::support::{call, folder, table};

async fn expires(store: &Embedded, on: bool) {
    let specification = json!({"AttributeName": "until", "Enabled": on});
    let body = json!({"TableName": "game", "TimeToLiveSpecification": specification});
    call(store, Operation::UpdateTimeToLive, body).await;
}

async fn put(store: &Embedded, n: u32, until: Json) {
    let item = json!({"pk": {"S": format!("p{}", n % 7)}, "sk": {"S": format!("{n:04}")}, "until": until});
    call(store, Operation::PutItem, json!({"TableName": "game", "Item": item})).await;
}

/// The items that are left, once that much time has passed and requests came meanwhile.
async fn left_after(store: &Embedded, env: &ManualEnv, seconds: u64) -> Vec<String> {
    for _ in 0..seconds * 4 {
        env.advance(Duration::from_millis(250));
        call(store, Operation::ListTables, json!({})).await;
    }
    let found = call(store, Operation::Scan, json!({"TableName": "game"})).await;
    let mut left: Vec<String> = found["Items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["sk"]["S"].as_str().unwrap().into())
        .collect();
    left.sort();
    left
}

fn at(env: &ManualEnv, after: i64) -> Json {
    json!({"N": (i64::try_from(env.unix_millis() / 1000).unwrap() + after).to_string()})
}

#[tokio::test]
async fn an_item_is_deleted_once_its_time_has_come_and_no_other_is() {
    let env = Arc::new(ManualEnv::seeded(1));
    let store = Embedded::memory_with(env.clone()).unwrap().expiring();
    table(&store, "game").await;
    for (n, until) in [
        at(&env, 5),
        at(&env, 1_000),
        json!({"S": "1"}),
        json!({"N": "0"}),
        json!({"N": "1e120"}),
        json!({"L": [{"N": "1"}]}),
        // More than five years ago: a mistake.
        at(&env, -6 * 365 * 24 * 3600),
        at(&env, -10),
    ]
    .into_iter()
    .enumerate()
    {
        put(&store, u32::try_from(n).unwrap(), until).await;
    }
    let all = ["0000", "0001", "0002", "0003", "0004", "0005", "0006", "0007"];
    assert_eq!(left_after(&store, &env, 2).await, all, "not before it is asked for");
    expires(&store, true).await;
    assert_eq!(left_after(&store, &env, 2).await, all[..7]);
    assert_eq!(left_after(&store, &env, 4).await, all[1..7]);
    expires(&store, false).await;
    assert_eq!(left_after(&store, &env, 2_000).await, all[1..7]);
}

#[tokio::test]
async fn the_stream_tells_who_deleted_it() {
    let env = Arc::new(ManualEnv::seeded(1));
    let store = Embedded::memory_with(env.clone()).unwrap().expiring();
    table(&store, "game").await;
    let stream = json!({"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"});
    let made =
        call(&store, Operation::UpdateTable, json!({"TableName": "game", "StreamSpecification": stream}));
    let arn = made.await["TableDescription"]["LatestStreamArn"].clone();
    expires(&store, true).await;
    put(&store, 1, at(&env, 1)).await;
    put(&store, 2, at(&env, 1)).await;
    let key = json!({"pk": {"S": "p2"}, "sk": {"S": "0002"}});
    call(&store, Operation::DeleteItem, json!({"TableName": "game", "Key": key})).await;
    assert!(left_after(&store, &env, 3).await.is_empty());
    let described = call(&store, Operation::DescribeStream, json!({"StreamArn": arn})).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    let iterator = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
    let iterator = call(&store, Operation::GetShardIterator, iterator).await["ShardIterator"].clone();
    let read = call(&store, Operation::GetRecords, json!({"ShardIterator": iterator})).await;
    let records: Vec<(&str, &str, &Json)> = read["Records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            let sort = record["dynamodb"]["Keys"]["sk"]["S"].as_str().unwrap();
            (record["eventName"].as_str().unwrap(), sort, &record["userIdentity"])
        })
        .collect();
    let service = json!({"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"});
    let nobody = &Json::Null;
    let expected = [
        ("INSERT", "0001", nobody),
        ("INSERT", "0002", nobody),
        ("REMOVE", "0002", nobody),
        ("REMOVE", "0001", &service),
    ];
    assert_eq!(records, expected);
    assert_eq!(read["Records"][3]["dynamodb"]["OldImage"]["sk"]["S"], "0001");
}

#[tokio::test]
async fn all_of_a_large_table_comes_to_its_turn_also_in_a_file_that_is_opened_again() {
    let env = Arc::new(ManualEnv::seeded(1));
    let folder = folder();
    let file = folder.path().join("data.db");
    let open = || Embedded::file_with(&file, Default::default(), env.clone()).unwrap().expiring();
    let store = open();
    table(&store, "game").await;
    for n in 0..900 {
        put(&store, n, at(&env, if n % 2 == 0 { 10 } else { 10_000 })).await;
    }
    expires(&store, true).await;
    drop(store);
    let store = open();
    let left = left_after(&store, &env, 15).await;
    assert_eq!(left.len(), 450);
    assert!(left.iter().all(|sort| sort.parse::<u32>().unwrap() % 2 == 1));
}
