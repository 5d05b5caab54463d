//! Requests on one item, and Query and Scan.

use super::*;

#[test]
fn one_key_takes_a_thousand_puts_a_second_however_many_are_sent() {
    for (bench, code, list, message) in [
        (
            Bench::on_demand(),
            "com.amazon.coral.availability#ThrottlingException",
            "throttlingReasons",
            TABLE_ON_DEMAND,
        ),
        (
            Bench::provisioned(90_000, 30_000),
            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "ThrottlingReasons",
            TABLE_PROVISIONED,
        ),
    ] {
        let mut accepted = 0;
        let mut refused = None;
        for millisecond in 0..20_000 {
            for nth in 0..5 {
                match bench.put("game_x", &format!("player-{}", (millisecond * 5 + nth) % 2_000)) {
                    Ok(answer) => {
                        assert_eq!(answer, json!({}));
                        accepted += 1;
                    }
                    Err(error) => refused = Some(error),
                }
            }
            bench.advance(1);
        }
        // 20 s at 1,000/s, and the half second's worth that the partition held.
        assert!((20_499..=20_501).contains(&accepted), "{accepted}");
        let error = refused.unwrap();
        assert_eq!((error.status, error.retryable()), (400, true));
        assert_eq!(
            body(&error),
            json!({
                "__type": code,
                "message": message,
                list: [{ "reason": "TableWriteKeyRangeThroughputExceeded", "resource": arn() }],
            })
        );
        // The others are cold.
        assert!(bench.put("game_elsewhere", "a").is_ok());
        let hot: Vec<_> =
            bench.resources()[0].partitions.iter().filter(|one| one.throttles > 0).cloned().collect();
        assert_eq!(hot.len(), 1);
        assert!((990.0..=1_010.0).contains(&hot[0].writes_per_second), "{hot:?}");
        assert!((3_990..=4_010).contains(&hot[0].throttles_per_second), "{hot:?}");
    }
}

#[test]
fn what_it_really_cost_is_paid_afterwards() {
    let bench = Bench::on_demand();
    let big = json!({ "pk": {"S": "a"}, "sk": {"S": "a"}, "text": {"S": "x".repeat(300 * 1024)} });
    bench.call(Operation::PutItem, json!({ "TableName": "games", "Item": big })).unwrap();
    assert_eq!(bench.charged(0), (0.0, 301.0));
    // Overwriting it with a small one costs as much (AWS, "Read and write operations"), and so does
    // deleting it... of what is then there.
    bench.put("a", "a").unwrap();
    assert_eq!(bench.charged(0), (0.0, 602.0));
    // The partition is in debt now.
    assert!(
        bench.call(Operation::DeleteItem, json!({ "TableName": "games", "Key": item("a", "a") })).is_err()
    );
    bench.advance(200);
    bench.call(Operation::DeleteItem, json!({ "TableName": "games", "Key": item("a", "a") })).unwrap();
    assert_eq!(bench.charged(0), (0.0, 603.0));
    for (consistent, units) in [(false, 0.5), (true, 1.5)] {
        let key = json!({ "TableName": "games", "Key": item("a", "b"), "ConsistentRead": consistent });
        assert_eq!(bench.call(Operation::GetItem, key).unwrap(), json!({}));
        assert_eq!(bench.charged(0).0, units);
    }
}

#[test]
fn a_refused_request_costs_nothing_and_a_failed_condition_a_unit() {
    let bench = Bench::on_demand();
    for _ in 0..3_000 {
        let invalid =
            json!({ "TableName": "games", "Item": item("a", "a"), "ConditionExpression": "nonsense(" });
        assert_eq!(bench.call(Operation::PutItem, invalid).unwrap_err().code.name(), "ValidationException");
    }
    assert_eq!(bench.exhaust("a"), 500);
    bench.advance(1_000);
    for _ in 0..500 {
        let fails = json!({ "TableName": "games", "Item": item("a", "0"), "ConditionExpression": "attribute_not_exists(pk)" });
        let error = bench.call(Operation::PutItem, fails).unwrap_err();
        assert_eq!(error.code.name(), "ConditionalCheckFailedException");
    }
    assert_eq!(bench.exhaust("a"), 0);
}

#[test]
fn a_query_pays_in_its_keys_partition() {
    let bench = Bench::on_demand();
    for sk in 0..20 {
        let item = json!({ "pk": {"S": "a"}, "sk": {"S": sk.to_string()}, "text": {"S": "x".repeat(1_000)} });
        bench.call(Operation::PutItem, json!({ "TableName": "games", "Item": item })).unwrap();
    }
    let query = json!({
        "TableName": "games", "KeyConditionExpression": "#k = :k", "ConsistentRead": true,
        "ExpressionAttributeNames": {"#k": "pk"}, "ExpressionAttributeValues": {":k": {"S": "a"}},
    });
    let mut done = 0;
    let error = loop {
        match bench.call(Operation::Query, query.clone()) {
            Ok(answer) => assert_eq!(answer["Count"], 20),
            Err(error) => break error,
        }
        done += 1;
    };
    // 20 items of about 1 KB in one page: 5 or 6 units each time, out of half a second's 3,000 a
    // second.
    assert!((250..=300).contains(&done), "{done}");
    assert_eq!(body(&error)["throttlingReasons"][0]["reason"], "TableReadKeyRangeThroughputExceeded");
    assert_eq!(bench.resources()[0].partitions.iter().filter(|one| one.reads > 0.0).count(), 1);
    assert!(bench.put("a", "more").is_ok(), "writes are metered apart");
}

#[test]
fn a_scan_pays_in_all_partitions() {
    let bench = Bench::on_demand();
    bench.put("a", "a").unwrap();
    let scan = json!({ "TableName": "games", "ConsistentRead": true });
    assert_eq!(bench.call(Operation::Scan, scan.clone()).unwrap()["Count"], 1);
    let shares: Vec<f64> = bench.resources()[0].partitions.iter().map(|one| one.reads).collect();
    assert_eq!(shares, [0.25; 4]);
}

#[test]
fn a_failed_condition_costs_what_the_larger_item_would() {
    let bench = Bench::on_demand();
    let put = |filler: usize| {
        let mut item = item("a", "a");
        item["text"] = json!({ "S": "x".repeat(filler) });
        json!({ "TableName": "games", "Item": item })
    };
    bench.call(Operation::PutItem, put(9_500)).unwrap();
    for (filler, units) in [(10, 10.0), (20_000, 20.0)] {
        let before = bench.charged(0).1;
        let mut fails = put(filler);
        fails["ConditionExpression"] = json!("attribute_not_exists(pk)");
        bench.call(Operation::PutItem, fails).unwrap_err();
        assert_eq!(bench.charged(0).1 - before, units);
    }
}
