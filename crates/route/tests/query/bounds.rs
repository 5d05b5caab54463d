//! What reads cost, what is refused, and what each plan says of itself.

use heatsink_route::Kind;

use super::*;

/// A collection of items that weigh about 400 bytes each.
fn collection(count: usize) -> Vec<Item> {
    let item = |at: usize| {
        let mut item = Item::new();
        item.insert("pk".into(), text("game"));
        item.insert("sk".into(), text(format!("{:010}", at * 7919 % 1_000_003)));
        item.insert("score".into(), Value::N((at % 50).to_string()));
        item.insert("data".into(), text("x".repeat(360)));
        item
    };
    (0..count).map(item).collect()
}

const ALL: &str = r#"{"TableName":"Games","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"game"}}}"#;

fn stores(items: &[Item], shards: &Shards) -> (Fake, Fake) {
    (
        Fake { items: items.to_vec(), filters: true, ..Fake::default() },
        Fake { items: shards.store(items), ..Fake::default() },
    )
}

#[test]
fn a_full_read_costs_little_more_than_unsharded() {
    let (shards, items, router) = (Shards(10), collection(20_000), Router::new());
    let (plain, sharded) = stores(&items, &shards);
    let unsharded = read_all(&router, &Shards(1), &plain, ALL);
    for (round, most) in [("first", 1.3), ("learned", 1.15)] {
        sharded.units.set(0.0);
        let found = read_all(&router, &shards, &sharded, ALL);
        let ratio = sharded.units.get() / plain.units.get();
        println!(
            "{round} full read of 20,000 items: {ratio:.3} of {} units, {} pages for {}",
            plain.units.get(),
            found.len(),
            unsharded.len()
        );
        assert!(ratio <= most, "{round}: {ratio}");
        assert_eq!(found.iter().map(|page| page.count).sum::<usize>(), 20_000);
        assert!(found.len() <= unsharded.len(), "pages are no shorter than DynamoDB's");
    }
}

#[test]
fn a_top_100_costs_at_most_three_times_unsharded_and_one_round() {
    let (shards, items, router) = (Shards(10), collection(5_000), Router::new());
    let (plain, sharded) = stores(&items, &shards);
    let body = with(&with(ALL, "Limit", b"100"), "ScanIndexForward", b"false");
    let expected = run(&router, &Shards(1), &plain, &body).0.unwrap();
    let (found, rounds) = run(&router, &shards, &sharded, &body);
    let found = found.unwrap();
    assert_eq!((&found.items, &found.last), (&expected.items, &expected.last));
    let ratio = sharded.units.get() / plain.units.get();
    println!("top 100: {ratio:.2} of {} units, {rounds} round(s)", plain.units.get());
    assert!(ratio <= 3.0 && rounds == 1, "{ratio}, {rounds} rounds");
    for (limit, most) in [(1, 10), (20, 20)] {
        sharded.calls.set(0);
        sharded.units.set(0.0);
        let found =
            run(&router, &shards, &sharded, &with(&body, "Limit", limit.to_string().as_bytes())).0.unwrap();
        assert_eq!(found.items, expected.items[..limit]);
        println!("Limit {limit}: {} units in {} calls", sharded.units.get(), sharded.calls.get());
        assert!(sharded.calls.get() <= most);
    }
}

#[test]
fn one_page_of_dynamodb_is_one_page_here() {
    // Just below 1 MB, with every item size DynamoDB could round badly.
    for size in [1_usize, 90, 700, 3_000, 39_000] {
        let mut item = collection(1).remove(0);
        item.insert("data".into(), text("x".repeat(size)));
        let weight = Value::M(item.clone()).to_json().len();
        let items: Vec<Item> = (0..((1 << 20) / weight))
            .map(|at| {
                let mut item = item.clone();
                item.insert("sk".into(), text(format!("{at:010}")));
                item
            })
            .collect();
        let shards = Shards(7);
        let (_, sharded) = stores(&items, &shards);
        let found = run(&Router::new(), &shards, &sharded, ALL).0.unwrap();
        assert_eq!((found.count, found.last), (items.len(), None), "items of {weight} bytes");
    }
}

#[test]
fn skewed_shards_take_few_rounds() {
    // All that matches lies in one shard: a key part decides, as a rule by = { part } makes it.
    let (shards, router) = (Shards(10), Router::new());
    let items: Vec<Item> = collection(9_000)
        .into_iter()
        .filter(
            |item| matches!(&item["sk"], Value::S(sk) if shards.layout().shard_of(Some(SortKey::S(sk))) == 3),
        )
        .collect();
    let (_, sharded) = stores(&items, &shards);
    let (found, rounds) = run(&router, &shards, &sharded, &with(ALL, "Limit", b"500"));
    assert_eq!(found.unwrap().count, 500);
    assert!(rounds <= 3, "{rounds} rounds");
    assert!(sharded.calls.get() <= 12, "empty shards are asked once");
}

#[test]
fn what_is_invalid_is_refused_by_the_store() {
    let (shards, items, router) = (Shards(4), collection(50), Router::new());
    let (_, sharded) = stores(&items, &shards);
    let refused = |body: &str, message: &str| is_refusal(run(&router, &shards, &sharded, body).0, message);
    refused(
        &with(ALL, "ExclusiveStartKey", br#"{"pk":{"S":"other"},"sk":{"S":"a"}}"#),
        "outside query boundaries",
    );
    refused(&with(ALL, "ExclusiveStartKey", br#"{"pk":{"S":"game"}}"#), "starting key is invalid");
    refused(
        &with(ALL, "ExclusiveStartKey", br#"{"pk":{"S":"game"},"sk":{"S":"a"},"x":{"S":"a"}}"#),
        "starting key is invalid",
    );
    refused(&with(ALL, "IndexName", br#""none""#), "no such index");
    refused(&with(ALL, "KeyConditionExpression", br#""pk > :p""#), "Query key condition not supported");
    refused(&with(ALL, "KeyConditionExpression", br#""sk = :p""#), "missed key schema element");
    refused(&with(ALL, "FilterExpression", br#""sk = :p""#), "Primary key attribute: sk");
    refused(&with(ALL, "FilterExpression", br#""v =""#), "Syntax error");
    let sorted = with(
        &with(ALL, "KeyConditionExpression", br#""pk = :p AND sk > :s""#),
        "ExpressionAttributeValues",
        br#"{":p":{"S":"game"},":s":{"S":"5"}}"#,
    );
    refused(
        &with(&sorted, "ExclusiveStartKey", br#"{"pk":{"S":"game"},"sk":{"S":"1"}}"#),
        "outside query boundaries",
    );
}

/// An index refuses a filter that mentions what it does not hold, be it in the condition that is
/// added behind the client's.
#[test]
fn a_filter_mentions_nothing_that_the_client_does_not() {
    let body = with(
        &with(ALL, "ExpressionAttributeValues", br#"{":p":{"S":"game"},":v":{"N":"4"}}"#),
        "FilterExpression",
        br#""v > :v AND attribute_exists(w.x)""#,
    );
    for index in [None, Some(&br#""local""#[..]), Some(br#""names""#)] {
        let body = index.map_or_else(|| body.clone(), |index| with(&body, "IndexName", index));
        let plan = Router::new().plan(Operation::Query, &Bytes::from(body), &Shards(4)).unwrap();
        for call in plan.explain().calls {
            let names = call.body["ExpressionAttributeNames"].as_object().unwrap();
            assert!(names.values().all(|name| name == "pk" || name == "v" || name == "w"), "{names:?}");
            let filter = call.body["FilterExpression"].as_str().unwrap();
            assert!(filter.starts_with("v > :v AND attribute_exists(w.x) OR attribute_exists("), "{filter}");
        }
    }
}

/// The store is asked for the whole attribute, so it would not see what it refuses.
#[test]
fn a_projection_into_a_key_is_shown_to_the_store_first() {
    for (projection, asks) in [("sk.k", true), ("score[0]", true), ("sk, v.k", false)] {
        let body = Bytes::from(with(ALL, "ProjectionExpression", format!("\"{projection}\"").as_bytes()));
        let mut running = Stepped::new(Router::new().plan(Operation::Query, &body, &Shards(4)).unwrap());
        let Step::Call(calls) = running.step() else { panic!("calls") };
        assert_eq!(calls.len() == 1, asks, "{projection}");
        if asks {
            assert!(String::from_utf8_lossy(&calls[0].body).contains(projection));
            let refusal = "Key attributes must be scalars";
            running.answer(calls[0].id, Err(Error::validation(refusal)));
            let Step::Done(answer) = running.step() else { panic!("an answer") };
            is_refusal(answer.map(page), refusal);
        }
    }
}

#[test]
fn a_store_that_accepts_what_is_invalid_gives_no_data_away() {
    let (shards, router) = (Shards(4), Router::new());
    let body = Bytes::from(with(ALL, "IndexName", br#""none""#));
    let mut running = Stepped::new(router.plan(Operation::Query, &body, &shards).unwrap());
    let Step::Call(calls) = running.step() else { panic!("a call") };
    assert_eq!((calls.len(), &calls[0].body), (1, &body));
    running.answer(0, Ok(Bytes::from_static(br#"{"Items":[{"pk":{"S":"game#~2"}}],"Count":1}"#)));
    let Step::Done(Err(error)) = running.step() else { panic!("an error") };
    assert_eq!(error.code, Code::ValidationException);
}

#[test]
fn one_failing_shard_fails_the_whole() {
    let (shards, items, router) = (Shards(4), collection(50), Router::new());
    let (_, sharded) = stores(&items, &shards);
    let mut running =
        Stepped::new(router.plan(Operation::Query, &Bytes::from_static(ALL.as_bytes()), &shards).unwrap());
    let Step::Call(calls) = running.step() else { panic!("calls") };
    assert_eq!(calls.len(), 4);
    for call in calls {
        assert!(call.retry_throttled);
        let throttled = Err(Error::new(Code::ThrottlingException, "slow down"));
        running.answer(call.id, if call.id == 2 { throttled } else { sharded.query(&call.body) });
    }
    let Step::Done(Err(error)) = running.step() else { panic!("an error") };
    assert_eq!((error.code, error.message.as_deref()), (Code::ThrottlingException, Some("slow down")));
}

#[test]
fn capacity_is_summed_and_shown_on_request_only() {
    let (shards, items, router) = (Shards(4), collection(50), Router::new());
    let (_, sharded) = stores(&items, &shards);
    let body = with(&with(ALL, "Limit", b"8"), "ReturnConsumedCapacity", br#""INDEXES""#);
    let found = run(&router, &shards, &sharded, &body).0.unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
    let units = sharded.units.get();
    assert_eq!(
        shown["ConsumedCapacity"],
        serde_json::json!({ "TableName": "Games", "CapacityUnits": units, "Table": { "CapacityUnits": units } })
    );
}

#[test]
fn legacy_parameters_are_understood() {
    let (shards, items, router) = (Shards(4), collection(60), Router::new());
    let (_, sharded) = stores(&items, &shards);
    let legacy = r#"{"TableName":"Games","KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"game"}]},
        "sk":{"ComparisonOperator":"GE","AttributeValueList":[{"S":"0"}]}},"AttributesToGet":["sk"],
        "QueryFilter":{"score":{"ComparisonOperator":"IN","AttributeValueList":[{"N":"1"},{"N":"2"}]}}}"#;
    let body = Bytes::from(legacy);
    let mut running = Stepped::new(router.plan(Operation::Query, &body, &shards).unwrap());
    // What a legacy filter may hold is the store's to say: it is asked first.
    let Step::Call(asked) = running.step() else { panic!("a call") };
    assert_eq!(asked.len(), 1);
    running.answer(asked[0].id, Ok(Bytes::from_static(b"{}")));
    let mut step = running.step();
    while let Step::Call(calls) = step {
        calls.into_iter().for_each(|call| running.answer(call.id, sharded.query(&call.body)));
        step = running.step();
    }
    let Step::Done(Ok(found)) = step else { panic!("an answer") };
    let found = page(found);
    assert_eq!((found.count, found.scanned), (4, 60));
    assert!(found.items.iter().all(|item| item.len() == 1));
}

#[test]
fn plans_explain_themselves() {
    let (shards, router) = (Shards(10), Router::new());
    let explain = |body: &str| {
        router.plan(Operation::Query, &Bytes::copy_from_slice(body.as_bytes()), &shards).unwrap().explain()
    };
    let top = explain(&with(ALL, "Limit", b"100"));
    assert_eq!((top.plan, top.calls.len()), (Kind::Scatter, 10));
    assert_eq!(top.calls[3].body["Limit"], 19);
    assert!(top.why.contains("in 10 shards") && top.why.contains("19 items"), "{}", top.why);
    assert_eq!((top.calls[3].shard, top.calls[3].key.as_deref()), (Some(3), Some("game#~3")));
    // 19 items of 1 KB each.
    let units = top.calls[3].estimate.as_ref().unwrap().read_units;
    assert!((units - 2.5).abs() < 1e-9, "{units}");
    let one = explain(
        r#"{"TableName":"Games","KeyConditionExpression":"pk = :p AND sk = :p","ExpressionAttributeValues":{":p":{"S":"game"}}}"#,
    );
    assert_eq!((one.plan, one.calls.len()), (Kind::Single, 1));
    let shard = |sk: &String| shards.layout().shard_of(Some(SortKey::S(sk)));
    let sk = (0..).map(|number| number.to_string()).find(|sk| shard(sk) == 3).unwrap();
    let third = explain(
        &r#"{"TableName":"Games","KeyConditionExpression":"pk = :p AND sk = :s","ExpressionAttributeValues":{":p":{"S":"game"},":s":{"S":"SK"}}}"#
            .replace("SK", &sk),
    );
    assert_eq!((third.calls[0].shard, third.calls[0].key.as_deref()), (Some(3), Some("game#~3")));
    let inverted = explain(
        r#"{"TableName":"Games","IndexName":"inverted","KeyConditionExpression":"team = :p","ExpressionAttributeValues":{":p":{"S":"t"}},"Limit":5}"#,
    );
    assert!(inverted.why.contains("costs as much as reading all of it"));
    assert_eq!(inverted.calls[0].body.get("Limit"), None);
    // Of two partition key attributes the one that is spread decides.
    let both = explain(
        r#"{"TableName":"Games","IndexName":"both","KeyConditionExpression":"team = :t AND pk = :p","ExpressionAttributeValues":{":t":{"S":"t"},":p":{"S":"game"}}}"#,
    );
    assert_eq!((both.plan, both.calls.len()), (Kind::Scatter, 10));
    assert_eq!(both.calls[3].key.as_deref(), Some("game#~3"));
}

#[test]
fn a_round_holds_so_many_bytes_of_bodies_and_the_answer_is_the_same() {
    let (shards, items, router) = (Shards(60), collection(600), Router::new());
    let (plain, sharded) = stores(&items, &shards);
    let filter = with(ALL, "FilterExpression", br#""score < :long OR score < :n""#);
    let values =
        format!(r#"{{":p":{{"S":"game"}},":n":{{"N":"25"}},":long":{{"S":"{}"}}}}"#, "x".repeat(1024 * 1024));
    let body = with(&filter, "ExpressionAttributeValues", values.as_bytes());
    let expected = run(&router, &Shards(1), &plain, &body).0.unwrap();
    let mut running = Stepped::new(router.plan(Operation::Query, &Bytes::from(body), &shards).unwrap());
    let mut rounds = 0;
    let found = loop {
        match running.step() {
            Step::Call(calls) => {
                rounds += 1;
                let bytes: usize = calls.iter().map(|call| call.body.len()).sum();
                assert!(bytes < 18 * 1024 * 1024, "{bytes} bytes in round {rounds}");
                // Each of those shards that are not read yet has to be sent the value of a
                // megabyte.
                let least = running.bodies / (1024 * 1024);
                assert!(rounds > 1 || (60..62).contains(&least), "{least} MB in round {rounds}");
                for call in calls {
                    running.answer(call.id, sharded.query(&call.body));
                }
            }
            Step::Done(answer) => break page(answer.unwrap()),
        }
    };
    assert_eq!((found.items, found.count, found.last), (expected.items, expected.count, expected.last));
}

#[test]
fn items_of_400_kb_are_read_for_the_page_alone_and_their_pages_let_go() {
    let large = |at: usize| {
        let mut item = collection(at + 1).pop().unwrap();
        item.insert("data".into(), text("x".repeat(300_000)));
        item
    };
    let items: Vec<Item> = (0..180).map(large).collect();
    let (shards, router) = (Shards(150), Router::new());
    let (plain, sharded) = stores(&items, &shards);
    for order in [&b"true"[..], b"false"] {
        let body = with(ALL, "ScanIndexForward", order);
        // The first time nothing is known of their size, then it is.
        for _ in 0..2 {
            let expected = read_all(&router, &Shards(1), &plain, &body);
            let found = read_all(&router, &shards, &sharded, &body);
            let rows = |pages: Vec<Page>| pages.into_iter().flat_map(|page| page.items).collect::<Vec<_>>();
            assert!(rows(found) == rows(expected));
        }
        let mut running = Stepped::new(router.plan(Operation::Query, &Bytes::from(body), &shards).unwrap());
        let mut rounds = 0;
        while let Step::Call(calls) = running.step() {
            rounds += 1;
            // 32 MB expected, as far as their size is known by then.
            assert!(calls.len() <= 120, "{} calls in round {rounds}", calls.len());
            for call in calls {
                running.answer(call.id, sharded.query(&call.body));
            }
        }
        assert!(rounds > 1);
    }
}
