//! Full item collections: 10 GB are reported to the model, and the next write is refused as by
//! DynamoDB.

use heatsink_physics::PARTITION_BYTES;

use super::*;

/// A table, with a local index or not, whose collection `hot` holds all but `room` of 10 GB.
fn nearly_full(local: bool, room: u64) -> Bench {
    let mut more = json!({ "BillingMode": "PAY_PER_REQUEST" });
    if local {
        let named = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        let key =
            json!([{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}]);
        more["AttributeDefinitions"] = json!([named("pk"), named("sk"), named("n")]);
        more["LocalSecondaryIndexes"] = json!([{ "IndexName": "local", "KeySchema": key, "Projection": { "ProjectionType": "KEYS_ONLY" } }]);
    }
    let bench = Bench::with_table(more);
    bench.store.assume_stored("games", b"hot", PARTITION_BYTES - room);
    bench
}

fn large(sk: &str, filler: usize) -> Json {
    json!({ "pk": {"S": "hot"}, "sk": {"S": sk}, "n": {"S": "1"}, "v": {"S": "x".repeat(filler)} })
}

fn put(sk: &str, filler: usize) -> Json {
    json!({ "TableName": "games", "Item": large(sk, filler) })
}

#[test]
fn an_item_collection_under_a_local_index_is_refused_what_goes_over_10_gb() {
    let bench = nearly_full(true, 3_000);
    bench.call(Operation::PutItem, put("a", 1_000)).unwrap();
    bench.call(Operation::PutItem, put("b", 1_000)).unwrap();
    let charged =
        || -> f64 { bench.store.snapshot("games").unwrap()[0].partitions.iter().map(|one| one.writes).sum() };
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
        "TableName": "games", "Key": key, "UpdateExpression": "SET w = :w", "ExpressionAttributeValues": {":w": {"S": "x".repeat(990)}},
    });
    assert_eq!(bench.call(Operation::UpdateItem, grow.clone()).unwrap_err().code, error.code);
    let batch = json!({ "RequestItems": { "games": [{ "PutRequest": { "Item": large("c", 990) } }] } });
    assert_eq!(bench.call(Operation::BatchWriteItem, batch).unwrap_err().code, error.code);
    let elsewhere = json!({ "TableName": "games", "Item": { "pk": {"S": "cold"}, "sk": {"S": "a"} } });
    let transaction = json!({ "TransactItems": [{ "Put": elsewhere }, { "Put": put("c", 990) }] });
    let cancelled = bench.call(Operation::TransactWriteItems, transaction).unwrap_err();
    assert_eq!(cancelled.members["CancellationReasons"][1]["Code"], "ItemCollectionSizeLimitExceeded");
    assert_eq!(cancelled.members["CancellationReasons"][0], json!({ "Code": "None" }));
    assert_eq!(charged(), before, "what was refused cost nothing");
    // Smaller writes still go, and what is deleted makes room.
    bench.call(Operation::PutItem, put("b", 900)).unwrap();
    bench.call(Operation::DeleteItem, json!({ "TableName": "games", "Key": key })).unwrap();
    bench.call(Operation::PutItem, put("c", 1_060)).unwrap();
    assert!(bench.call(Operation::UpdateItem, grow).is_err(), "that room is taken again");
}

#[test]
fn a_partition_over_10_gb_splits() {
    let bench = nearly_full(false, 1_000);
    let partitions = |bench: &Bench| bench.store.snapshot("games").unwrap()[0].partitions.len();
    bench.advance(1_200_000);
    assert_eq!(partitions(&bench), 4);
    bench.call(Operation::PutItem, put("a", 2_000)).unwrap();
    bench.advance(1_200_000);
    assert_eq!(partitions(&bench), 5, "without local indexes nothing is refused");
}
