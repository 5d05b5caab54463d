//! Tables come, change and go.

use super::*;

#[test]
fn tables_that_were_there_before_are_known_at_the_start() {
    let first = Bench::provisioned(90_000, 30_000);
    for nth in 0..105 {
        first.create(&format!("more-{nth}"), json!({ "BillingMode": "PAY_PER_REQUEST" }));
    }
    let second =
        block_on(Partitioned::start(Arc::clone(&first.inner), Arc::new(first.env.clone()), RAISED)).unwrap();
    assert_eq!(second.snapshot("games").unwrap()[0].partitions.len(), 60);
    for nth in 0..105 {
        assert_eq!(second.snapshot(&format!("more-{nth}")).unwrap()[0].partitions.len(), 4);
    }
}

#[test]
fn a_table_dropped_and_made_again_starts_fresh() {
    let bench = Bench::on_demand();
    assert_eq!(bench.exhaust("a"), 500);
    bench.call(Operation::DeleteTable, json!({ "TableName": "games" })).unwrap();
    assert!(bench.store.snapshot("games").is_none());
    assert_eq!(bench.put("a", "a").unwrap_err().code.name(), "ResourceNotFoundException");
    bench.create("games", json!({ "ProvisionedThroughput": throughput(1, 7) }));
    assert_eq!(bench.exhaust("a"), 7);
}

#[test]
fn a_change_of_capacity_takes_effect() {
    let bench = Bench::provisioned(1, 1);
    assert_eq!(bench.exhaust("a"), 1);
    let error = body(&bench.put("a", "a").unwrap_err());
    assert_eq!(error["ThrottlingReasons"][0]["reason"], "TableWriteProvisionedThroughputExceeded");
    bench
        .call(
            Operation::UpdateTable,
            json!({ "TableName": "games", "ProvisionedThroughput": throughput(1, 500) }),
        )
        .unwrap();
    bench.advance(1_000);
    assert_eq!(bench.exhaust("a"), 500);
    bench
        .call(Operation::UpdateTable, json!({ "TableName": "games", "BillingMode": "PAY_PER_REQUEST" }))
        .unwrap();
    bench.advance(1_000);
    assert_eq!(bench.exhaust("a"), 500);
    assert_eq!(bench.put("a", "a").unwrap_err().code.name(), "ThrottlingException");
}

#[test]
fn a_configured_maximum_holds() {
    let bench = Bench::on_demand();
    let maximum = json!({ "MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 10 });
    bench
        .call(Operation::UpdateTable, json!({ "TableName": "games", "OnDemandThroughput": maximum }))
        .unwrap();
    assert_eq!(bench.exhaust("a"), 10);
    assert_eq!(
        body(&bench.put("a", "a").unwrap_err()),
        json!({
            "__type": "com.amazon.coral.availability#ThrottlingException",
            "message": "Throughput exceeds the maximum OnDemandThroughput configured on table or index",
            "throttlingReasons": [{ "reason": "TableWriteMaxOnDemandThroughputExceeded", "resource": arn() }],
        })
    );
}

#[test]
fn an_arn_is_as_good_as_a_name() {
    let bench = Bench::on_demand();
    bench.exhaust("a");
    let put = json!({ "TableName": arn(), "Item": item("a", "a") });
    assert_eq!(bench.call(Operation::PutItem, put).unwrap_err().code.name(), "ThrottlingException");
}

#[test]
fn what_cannot_be_read_is_the_engines_to_refuse() {
    let bench = Bench::on_demand();
    for operation in
        [Operation::PutItem, Operation::BatchWriteItem, Operation::TransactWriteItems, Operation::Query]
    {
        for request in ["", "[]", "{", "{\"TableName\":1}", "{\"RequestItems\":[],\"TransactItems\":{}}"] {
            let ours = block_on(bench.store.call(operation, Bytes::from(request))).unwrap_err();
            let theirs = block_on(bench.inner.call(operation, Bytes::from(request))).unwrap_err();
            assert_eq!(body(&ours), body(&theirs), "{operation:?} {request}");
        }
    }
}

/// Splits outlive the process, beside the data.
#[test]
fn what_was_split_is_split_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("partitions");
    let env = ManualEnv::seeded(1);
    let inner = Arc::new(Embedded::memory().unwrap());
    let start = || {
        let env: Arc<dyn heatsink_env::Env> = Arc::new(env.clone());
        block_on(Partitioned::start_kept(Arc::clone(&inner), env, RAISED, &file)).unwrap()
    };
    let bench = Bench { env: env.clone(), store: start(), inner: Arc::clone(&inner) };
    bench.create("games", json!({ "BillingMode": "PAY_PER_REQUEST" }));
    // An update of a large item is 200 units: few requests make its partition hot.
    let text = "x".repeat(200 * 1024);
    for key in 0..4 {
        let mut item = item("a", &key.to_string());
        item["text"] = json!({ "S": text });
        bench.call(Operation::PutItem, json!({ "TableName": "games", "Item": item })).unwrap();
        bench.advance(1_000);
    }
    for tick in 0..6_000 {
        for nth in 0..2 {
            let update = json!({
                "TableName": "games", "Key": item("a", &((2 * tick + nth) % 4).to_string()), "UpdateExpression": "SET seen = :s",
                "ExpressionAttributeValues": {":s": {"N": tick.to_string()}},
            });
            // Some are throttled, which is what makes it split.
            let _ = bench.call(Operation::UpdateItem, update);
        }
        bench.advance(100);
        if tick % 100 == 0 && bench.resources()[0].partitions.len() > 4 {
            break;
        }
    }
    let shown = |store: &Partitioned<Arc<Embedded>>| -> Vec<u64> {
        store.snapshot("games").unwrap()[0].partitions.iter().map(|one| one.id).collect()
    };
    let before = shown(&bench.store);
    assert!(before.len() > 4, "{before:?}");
    drop(bench);
    let again = start();
    assert_eq!(shown(&again), before);
    assert_eq!(
        again.report("games").unwrap()["resources"][0]["partitions"].as_array().unwrap().len(),
        before.len()
    );
    drop(again);
}
