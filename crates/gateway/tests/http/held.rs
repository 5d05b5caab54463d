//! A write waits for a key that is cut over, and nobody goes on with that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Fencing, KeyRecord, Move, Rules, TableLayouts};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::{Limits, http};
use heatsink_layout::{By, Hash, Layout, Phase, Strategy};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::json;

use super::client::{Client, post};
use super::server::{limits, start};

/// A store whose table `Scores` has the key `game` in HOLD.
async fn in_hold(rules: &Rules) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
    });
    store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
    let fencing = Fencing::exclusive(rules.fence());
    Changer::beside(store.clone(), Arc::new(RealEnv), fencing).freeze(false).await.unwrap();
    let registry = Registry::new(store.clone(), Arc::new(RealEnv), &rules.fence().registry);
    let described = registry.describe("Scores").await.unwrap().unwrap();
    let record = registry.first_record(&described, TableLayouts::default(), true);
    let record = registry.create(None, &record).await.unwrap();
    let strategy = Strategy::calculated(By::SortKey);
    let to = Layout { strategy, shards: 4, hash: Hash::JumpXxh3, version: 1 };
    let moves = Move {
        to,
        phase: Phase::Hold,
        reserved_before: 1,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    };
    let key = KeyRecord {
        key: b"game".to_vec(),
        key_type: KeyType::S,
        layout: Layout::none(),
        moves: Some(moves),
        settled: false,
        reserved: 4,
        version: 1,
        changed: 0,
        since: 0,
    };
    assert!(registry.replace_key(&record, None, &key).await.unwrap().is_some());
    store
}

/// Whoever gives it up first, the gateway's planner or the clock of its door.
#[tokio::test]
async fn a_write_that_waited_for_too_long_says_for_what() {
    let rules = Rules::default();
    let store = in_hold(&rules).await;
    let limits = Limits { request: Duration::from_millis(100), ..limits() };
    let (address, _stop, _done) = start(store, rules, limits, http::Hosts::loopback()).await;
    let mut waited = 0;
    for sort in 0..8 {
        let body = json!({ "TableName": "Scores", "Item": { "pk": { "S": "game" }, "sk": { "S": sort.to_string() } } });
        let answer = Client::to(address).await.send(&post("PutItem", body.to_string().as_bytes())).await;
        // Items whose slot stays are written.
        if answer.status == 200 {
            continue;
        }
        waited += 1;
        assert_eq!((answer.status, answer.error().as_str()), (503, "ServiceUnavailable"));
        let text = answer.text();
        assert!(
            text.contains("A key of table Scores gets other shards") && text.contains("Nothing was written"),
            "{text}"
        );
    }
    assert!(waited > 2, "{waited}");
}
