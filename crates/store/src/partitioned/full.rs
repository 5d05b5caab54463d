//! Tests of full item collections: 10 GB are reported to the model, and the next write is refused as by DynamoDB.

use std::time::Duration;

use futures::executor::block_on;
use heatsink_env::ManualEnv;
use heatsink_physics::{KeyPosition, PARTITION_BYTES, Quotas, position};
use serde_json::{Value as Json, json};

use super::*;
use crate::embedded::Embedded;

struct Bench {
    env: ManualEnv,
    store: Partitioned<Embedded>,
}

impl Bench {
    /// With a table `big`, local index or not, whose collection `hot` holds all but `room` of 10 GB.
    fn new(local: bool, room: u64) -> Bench {
        let env = ManualEnv::seeded(1);
        let store = block_on(Partitioned::start(
            Embedded::memory().unwrap(),
            Arc::new(env.clone()),
            Quotas::default(),
        ))
        .unwrap();
        let key = |sort: &str| json!([{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]);
        let mut table = json!({
            "TableName": "big", "BillingMode": "PAY_PER_REQUEST", "KeySchema": key("sk"),
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
        });
        if local {
            table["AttributeDefinitions"]
                .as_array_mut()
                .unwrap()
                .push(json!({"AttributeName": "n", "AttributeType": "S"}));
            table["LocalSecondaryIndexes"] = json!([{"IndexName": "local", "KeySchema": key("n"), "Projection": {"ProjectionType": "KEYS_ONLY"}}]);
        }
        let bench = Bench { env, store };
        bench.call(Operation::CreateTable, table).unwrap();
        let on = bench.store.gate.table("big").unwrap().id;
        let stored = change::Stored {
            on,
            point: KeyPosition::first(position(b"hot")),
            bytes: i64::try_from(PARTITION_BYTES - room).unwrap(),
        };
        bench
            .store
            .gate
            .add_stored([change::Change { demands: Vec::new(), stored: vec![stored] }].into_iter());
        bench
    }

    fn call(&self, operation: Operation, request: Json) -> Result<Json, Error> {
        let answer = block_on(self.store.call(operation, Bytes::from(request.to_string())))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }
}

fn item(sk: &str, filler: usize) -> Json {
    json!({ "pk": {"S": "hot"}, "sk": {"S": sk}, "n": {"S": "1"}, "v": {"S": "x".repeat(filler)} })
}

fn put(sk: &str, filler: usize) -> Json {
    json!({ "TableName": "big", "Item": item(sk, filler) })
}

#[test]
fn an_item_collection_under_a_local_index_is_refused_what_goes_over_10_gb() {
    let bench = Bench::new(true, 3_000);
    bench.call(Operation::PutItem, put("a", 1_000)).unwrap();
    bench.call(Operation::PutItem, put("b", 1_000)).unwrap();
    let charged =
        || -> f64 { bench.store.snapshot("big").unwrap()[0].partitions.iter().map(|one| one.writes).sum() };
    let before = charged();
    // There are less than 1,000 bytes left: entries of the local index count too.
    let error = bench.call(Operation::PutItem, put("c", 970)).unwrap_err();
    let body: Json = serde_json::from_slice(&error.body()).unwrap();
    assert_eq!(
        body,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException",
            "message": "Collection size exceeded.",
        })
    );
    let key = json!({ "pk": {"S": "hot"}, "sk": {"S": "a"} });
    let grow = json!({
        "TableName": "big", "Key": key, "UpdateExpression": "SET w = :w", "ExpressionAttributeValues": {":w": {"S": "x".repeat(990)}},
    });
    assert_eq!(bench.call(Operation::UpdateItem, grow.clone()).unwrap_err().code, error.code);
    let batch = json!({ "RequestItems": { "big": [{ "PutRequest": { "Item": item("c", 990) } }] } });
    assert_eq!(bench.call(Operation::BatchWriteItem, batch).unwrap_err().code, error.code);
    let elsewhere = json!({ "TableName": "big", "Item": { "pk": {"S": "cold"}, "sk": {"S": "a"} } });
    let transaction = json!({ "TransactItems": [{ "Put": elsewhere }, { "Put": put("c", 990) }] });
    let cancelled = bench.call(Operation::TransactWriteItems, transaction).unwrap_err();
    assert_eq!(cancelled.members["CancellationReasons"][1]["Code"], "ItemCollectionSizeLimitExceeded");
    assert_eq!(cancelled.members["CancellationReasons"][0], json!({ "Code": "None" }));
    assert_eq!(charged(), before, "what was refused cost nothing");
    // Smaller writes still go, and what is deleted makes room.
    bench.call(Operation::PutItem, put("b", 900)).unwrap();
    bench.call(Operation::DeleteItem, json!({ "TableName": "big", "Key": key })).unwrap();
    bench.call(Operation::PutItem, put("c", 1_060)).unwrap();
    assert!(bench.call(Operation::UpdateItem, grow).is_err(), "that room is taken again");
}

#[test]
fn a_partition_over_10_gb_splits() {
    let bench = Bench::new(false, 1_000);
    let partitions = |bench: &Bench| bench.store.snapshot("big").unwrap()[0].partitions.len();
    bench.env.advance(Duration::from_secs(1_200));
    assert_eq!(partitions(&bench), 4);
    bench.call(Operation::PutItem, put("a", 2_000)).unwrap();
    bench.env.advance(Duration::from_secs(1_200));
    assert_eq!(partitions(&bench), 5, "without local indexes nothing is refused");
}
