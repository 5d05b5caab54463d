//! Random traffic never gets more than the ceilings allow.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Put(u8, usize),
    Update(u8),
    Get(u8, bool),
    Query(u8),
    Scan,
    Batch(Vec<u8>),
    Transact(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let keys =
        || prop::collection::btree_set(0u8..6, 1..5).prop_map(|keys| keys.into_iter().collect::<Vec<u8>>());
    prop_oneof![
        2 => (1u64..400).prop_map(Step::Wait),
        6 => (0u8..6, 0usize..200_000).prop_map(|(key, size)| Step::Put(key, size)),
        2 => (0u8..6).prop_map(Step::Update),
        2 => (0u8..6, any::<bool>()).prop_map(|(key, consistent)| Step::Get(key, consistent)),
        6 => (0u8..6).prop_map(Step::Query),
        1 => Just(Step::Scan),
        2 => keys().prop_map(Step::Batch),
        2 => keys().prop_map(Step::Transact),
    ]
}

fn run(bench: &Bench, step: &Step) {
    let pk = |key: &u8| format!("key-{key}");
    let key = |key: &u8| item(&pk(key), "a");
    let (operation, request) = match step {
        Step::Wait(milliseconds) => return bench.advance(*milliseconds),
        Step::Put(k, size) => {
            let mut item = key(k);
            item["text"] = json!({ "S": "x".repeat(*size) });
            (Operation::PutItem, json!({ "TableName": "games", "Item": item }))
        }
        Step::Update(k) => {
            let request = json!({ "TableName": "games", "Key": key(k), "UpdateExpression": "REMOVE gone" });
            (Operation::UpdateItem, request)
        }
        Step::Get(k, consistent) => {
            (Operation::GetItem, json!({ "TableName": "games", "Key": key(k), "ConsistentRead": consistent }))
        }
        Step::Query(k) => {
            let values = json!({ ":k": {"S": pk(k)} });
            let request = json!({
                "TableName": "games", "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": values, "ConsistentRead": true,
            });
            (Operation::Query, request)
        }
        Step::Scan => (Operation::Scan, json!({ "TableName": "games" })),
        Step::Batch(keys) => {
            let deletes: Vec<Json> =
                keys.iter().map(|k| json!({ "DeleteRequest": { "Key": key(k) } })).collect();
            (Operation::BatchWriteItem, json!({ "RequestItems": { "games": deletes } }))
        }
        Step::Transact(keys) => {
            let deletes: Vec<Json> =
                keys.iter().map(|k| json!({ "Delete": { "TableName": "games", "Key": key(k) } })).collect();
            (Operation::TransactWriteItems, json!({ "TransactItems": deletes }))
        }
    };
    if let Err(error) = bench.call(operation, request) {
        assert!(error.retryable() || error.code.name() == "TransactionCanceledException", "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn never_more_than_the_ceilings(steps in prop::collection::vec(step(), 1..250)) {
        let bench = Bench::on_demand();
        let mut milliseconds = 0;
        for step in &steps {
            if let Step::Wait(passed) = step {
                milliseconds += passed;
            }
            run(&bench, step);
            // One request goes past the last token: a transaction over four items of 200 KB, or a
            // page of them.
            let overshoot = 4.0 * 2.0 * 200.0;
            let seconds = milliseconds as f64 / 1e3 + 0.5;
            for partition in &bench.resources()[0].partitions {
                prop_assert!(partition.writes <= seconds * 1_000.0 + overshoot, "{partition:?}");
                prop_assert!(partition.reads <= seconds * 3_000.0 + overshoot, "{partition:?}");
            }
        }
    }
}
