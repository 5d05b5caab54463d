//! Writes of counters.

use crate::common::{json, run};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_route::Router;
use serde_json::{Value, json as value};

use super::{counters, get, votes};

#[test]
fn an_add_goes_to_each_fragment_in_turn_and_creates_the_one_that_is_missing() {
    let mut body = get("a");
    body["UpdateExpression"] = value!("ADD n :one");
    body["ExpressionAttributeValues"] = value!({ ":one": { "N": "1" } });
    let (router, layouts) = (Router::new(), counters());
    let (mut keys, mut created) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let plan = router.plan(Operation::UpdateItem, &Bytes::from(body.to_string()), &layouts).unwrap();
        let answer = run(plan, |operation, sent| {
            let sent = json(sent);
            if operation == Operation::TransactWriteItems {
                let key = |action: &Value| action["Update"]["Key"]["pk"]["S"].as_str().unwrap().to_owned();
                created.push(sent["TransactItems"].as_array().unwrap().iter().map(key).collect::<Vec<_>>());
                return Ok(Bytes::from_static(b"{}"));
            }
            let key = sent["Key"]["pk"]["S"].as_str().unwrap().to_owned();
            keys.push(key.clone());
            assert_eq!(key == "a", sent["ConditionExpression"].is_null(), "{sent}");
            let missing = key == "a#~2";
            let refusal = Error::new(Code::ConditionalCheckFailedException, "The conditional request failed");
            if missing { Err(refusal) } else { Ok(Bytes::from_static(b"{}")) }
        });
        assert_eq!(answer.unwrap(), "{}");
    }
    assert_eq!(keys, ["a", "a#~1", "a#~2", "a", "a#~1", "a#~2"]);
    assert_eq!(created, [["a", "a#~2"], ["a", "a#~2"]]);
}

#[test]
fn what_is_more_than_a_key_is_the_stores_to_refuse() {
    let mut update = get("a");
    update["Key"]["v"] = value!({ "S": "x" });
    let delete = value!({ "RequestItems": { "Tab": [{ "DeleteRequest": { "Key": update["Key"] } }] } });
    let action = value!({ "TransactItems": [{ "Delete": update }] });
    for (operation, body) in [
        (Operation::UpdateItem, update),
        (Operation::BatchWriteItem, delete),
        (Operation::TransactWriteItems, action),
    ] {
        let mut store = votes();
        let refused =
            store.call(&counters(), operation, &body, |_, _| Err(Error::validation("more than a key")));
        assert_eq!(refused.unwrap_err().message.unwrap(), "more than a key");
        assert_eq!(store.sent, [(operation, body)]);
    }
}

#[test]
fn a_write_of_the_number_takes_it_out_of_all_other_fragments() {
    let put = value!({ "TableName": "Tab", "Item": { "pk": { "S": "a" }, "n": { "N": "5" } } });
    let mut store = votes();
    let answer = store.call(&counters(), Operation::PutItem, &put, |operation, body| {
        assert_eq!(operation, Operation::TransactWriteItems);
        let actions = body["TransactItems"].as_array().unwrap();
        assert_eq!(actions[0], value!({ "Put": put }));
        assert_eq!(actions[1], value!({ "Delete": get("a#~1") }));
        assert_eq!(actions[2], value!({ "Delete": get("a#~2") }));
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
    let transaction = value!({ "TransactItems": [{ "Put": put }] });
    let answer = store.call(&counters(), Operation::TransactWriteItems, &transaction, |_, body| {
        let others = ["a#~1", "a#~2"].map(|key| value!({ "Delete": get(key) }));
        assert_eq!(body["TransactItems"], value!([{ "Put": put }, others[0], others[1]]));
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
}

#[test]
fn whether_the_expressions_of_a_write_of_the_number_are_valid_the_store_says() {
    let mut body = get("a");
    body["UpdateExpression"] = value!("REMOVE n");
    body["ExpressionAttributeValues"] = value!({ ":unused": { "N": "1" } });
    let write = |refusal: &str| {
        let mut store = votes();
        let answer = store.call(&counters(), Operation::UpdateItem, &body, |operation, body| {
            if operation == Operation::TransactWriteItems {
                return Ok(value!({}));
            }
            assert_eq!(body["Key"], value!({ "pk": { "S": "" } }));
            Err(Error::validation(refusal))
        });
        (answer.map_err(|error| error.message.unwrap()), store.operations())
    };
    let unused = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}";
    assert_eq!(write(unused), (Err(unused.to_owned()), vec![Operation::UpdateItem]));
    // A store that finds nothing wrong but the key.
    let (answer, sent) = write("The AttributeValue for a key attribute cannot contain an empty string value");
    assert_eq!(answer, Ok(value!({})));
    assert_eq!(sent, [Operation::UpdateItem, Operation::TransactWriteItems]);
}

#[test]
fn a_statement_that_leaves_the_numbers_of_others_alone_goes_to_the_base_fragment() {
    let execute = |statement: &str| {
        let mut store = votes();
        let body = value!({ "Statement": statement });
        let answer = store.call(&counters(), Operation::ExecuteStatement, &body, |_, body| {
            // A refused statement is asked for under the name of no table.
            let text = body["Statement"].as_str().unwrap();
            let nowhere = Error::new(Code::ResourceNotFoundException, "Requested resource not found");
            if text.contains('!') { Err(nowhere) } else { Ok(value!({ "Items": [] })) }
        });
        (answer.map_err(|error| error.to_string()), store.sent)
    };
    for text in
        ["INSERT INTO Tab VALUE {'pk': 'a', 'n': 1}", "UPDATE Tab SET v = v + 1 WHERE pk = 'a' AND w = 2"]
    {
        let (answer, sent) = execute(text);
        assert_eq!(answer, Ok(value!({ "Items": [] })));
        assert_eq!(sent, [(Operation::ExecuteStatement, value!({ "Statement": text }))]);
    }
    for (text, why) in [
        ("INSERT INTO Tab VALUE {'pk': 'a', 'n': 'many'}", "takes numbers only"),
        ("UPDATE Tab SET n = n + 1 WHERE pk = 'a'", "SET cannot read n"),
        ("UPDATE Tab SET v = n WHERE pk = 'a'", "SET cannot read n"),
        ("UPDATE Tab SET n = 'many' WHERE pk = 'a'", "takes numbers only"),
        ("UPDATE Tab SET n = v WHERE pk = 'a'", "takes a number given in the request"),
        ("UPDATE Tab SET n.k = 1 WHERE pk = 'a'", "holds nothing"),
        ("UPDATE Tab SET v = 1 WHERE pk = 'a' AND n > 1", "a condition cannot read n"),
        ("UPDATE Tab SET v = 1 WHERE pk = 'a' RETURNING ALL OLD *", "would show a part"),
        ("UPDATE Tab SET n = 1 WHERE pk = 'a' RETURNING MODIFIED NEW *", "would show a part"),
        ("DELETE FROM Tab WHERE pk = 'a' RETURNING ALL OLD *", "would show a part"),
    ] {
        let refused = execute(text).0.unwrap_err();
        assert!(refused.contains("Not supported on a counter") && refused.contains(why), "{text}: {refused}");
    }
}

#[test]
fn a_statement_that_sets_or_deletes_the_numbers_is_a_transaction_over_all_fragments() {
    for text in [
        "UPDATE Tab SET n = 1, v = 2 WHERE pk = 'a'",
        "UPDATE Tab REMOVE n WHERE pk = 'a'",
        "DELETE FROM Tab WHERE pk = 'a'",
    ] {
        let body = value!({ "Statement": text, "ReturnConsumedCapacity": "TOTAL" });
        let delete = |key: &str| value!({ "Statement": "DELETE FROM Tab WHERE \"pk\" = ?", "Parameters": [{ "S": key }] });
        let answer = votes().call(&counters(), Operation::ExecuteStatement, &body, |operation, body| {
            assert_eq!(operation, Operation::ExecuteTransaction);
            let statements = value!([{ "Statement": text }, delete("a#~1"), delete("a#~2")]);
            assert_eq!(body, &value!({ "TransactStatements": statements, "ReturnConsumedCapacity": "TOTAL" }));
            Ok(value!({ "Responses": [], "ConsumedCapacity": [{ "TableName": "Tab", "CapacityUnits": 6.0 }] }))
        });
        let consumed = value!({ "TableName": "Tab", "CapacityUnits": 6.0 });
        assert_eq!(answer.unwrap(), value!({ "Items": [], "ConsumedCapacity": consumed }));
        let refused = votes().call(&counters(), Operation::ExecuteStatement, &body, |_, _| {
            Err(Error::validation("Validation failed in TransactStatements[0]: so it is"))
        });
        assert_eq!(refused.unwrap_err().message.unwrap(), "so it is");
        let other = value!({ "Statement": "DELETE FROM Other WHERE id = 'o'" });
        let both = value!({ "TransactStatements": [{ "Statement": text }, other] });
        let answer = votes().call(&counters(), Operation::ExecuteTransaction, &both, |_, body| {
            let statements = value!([{ "Statement": text }, other, delete("a#~1"), delete("a#~2")]);
            assert_eq!(body["TransactStatements"], statements);
            Ok(value!({ "Responses": [] }))
        });
        assert_eq!(answer.unwrap(), value!({ "Responses": [] }));
    }
}

fn puts(keys: &[&str]) -> Value {
    keys.iter().map(|key| value!({ "PutRequest": { "Item": { "pk": { "S": key } } } })).collect()
}

/// The counter's key in a transaction over its fragments.
fn written(body: &Value) -> &str {
    body["TransactItems"][0]["Put"]["Item"]["pk"]["S"].as_str().unwrap()
}

#[test]
fn a_batch_writes_each_counter_in_a_transaction_of_its_own() {
    let batch = value!({
        "RequestItems": {
            "Other": [{ "DeleteRequest": { "Key": { "id": { "S": "o" } } } }],
            "Tab": [{ "PutRequest": { "Item": { "pk": { "S": "a" }, "n": { "N": "5" } } } }, { "DeleteRequest": { "Key": { "pk": { "S": "b" } } } }],
        },
        "ReturnConsumedCapacity": "TOTAL", "ReturnItemCollectionMetrics": "SIZE",
    });
    let consumed = |table: &str| value!({ "TableName": table, "CapacityUnits": 2.0 });
    let collection =
        value!({ "ItemCollectionKey": { "pk": { "S": "a" } }, "SizeEstimateRangeGB": [0.0, 1.0] });
    let mut store = votes();
    let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| {
        assert_eq!((&body["ReturnConsumedCapacity"], &body["ReturnItemCollectionMetrics"]), (&"TOTAL".into(), &"SIZE".into()));
        if operation == Operation::BatchWriteItem {
            assert_eq!(body["RequestItems"], value!({ "Other": batch["RequestItems"]["Other"] }));
            return Ok(value!({ "UnprocessedItems": {}, "ConsumedCapacity": [consumed("Other")] }));
        }
        let actions = body["TransactItems"].as_array().unwrap();
        assert_eq!(actions.len(), 3);
        if actions[0].get("Put").is_some() {
            assert_eq!(actions[0]["Put"]["Item"], batch["RequestItems"]["Tab"][0]["PutRequest"]["Item"]);
            assert_eq!(actions[1..], [value!({ "Delete": get("a#~1") }), value!({ "Delete": get("a#~2") })]);
        } else {
            let all = ["b", "b#~1", "b#~2"].map(|key| value!({ "Delete": get(key) }));
            assert_eq!(actions[..], all);
        }
        Ok(value!({ "ConsumedCapacity": [consumed("Tab")], "ItemCollectionMetrics": { "Tab": [collection] } }))
    });
    let mut sum = consumed("Tab");
    sum["CapacityUnits"] = value!(4.0);
    let expected = value!({
        "UnprocessedItems": {}, "ConsumedCapacity": [consumed("Other"), sum], "ItemCollectionMetrics": { "Tab": [collection] },
    });
    assert_eq!(answer.unwrap(), expected);
    let (batch, transact) = (Operation::BatchWriteItem, Operation::TransactWriteItems);
    assert_eq!(store.operations(), [batch, transact, transact], "the store checks the others first");
}

#[test]
fn what_a_batch_does_not_write_of_counters_comes_back() {
    let conflict = || {
        let reasons = value!([{ "Code": "TransactionConflict", "Message": "m" }, { "Code": "None" }, { "Code": "None" }]);
        Error::new(Code::TransactionCanceledException, "cancelled").with("CancellationReasons", reasons)
    };
    let throttled = || Error::new(Code::ProvisionedThroughputExceededException, "slow down");
    let batch = value!({ "RequestItems": { "Tab": puts(&["a", "b"]), "Other": puts(&["o", "p"]) } });
    let mut store = votes();
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::BatchWriteItem => Ok(value!({ "UnprocessedItems": { "Other": puts(&["p"]) } })),
            _ if written(body) == "a" => Err(conflict()),
            _ => Ok(value!({})),
        });
    let left = value!({ "UnprocessedItems": { "Other": puts(&["p"]), "Tab": puts(&["a"]) } });
    assert_eq!(answer.unwrap(), left);
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::BatchWriteItem => Err(throttled()),
            _ if written(body) == "a" => Err(conflict()),
            _ => Ok(value!({})),
        });
    let left = value!({ "UnprocessedItems": { "Other": puts(&["o", "p"]), "Tab": puts(&["a"]) } });
    assert_eq!(answer.unwrap(), left);
    // Of which nothing was written fails as a whole.
    let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |_, _| Err(throttled()));
    assert_eq!(answer.unwrap_err().code, Code::ProvisionedThroughputExceededException);
    let alone = value!({ "RequestItems": { "Tab": puts(&["a"]) } });
    let answer = store.call(&counters(), Operation::BatchWriteItem, &alone, |_, _| Err(conflict()));
    assert_eq!(answer.unwrap_err().code, Code::TransactionConflictException);
    // So does one of which the store refuses a write for good, and what was written is not known
    // then.
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::TransactWriteItems if written(body) == "b" => Err(Error::validation("no")),
            _ => Ok(value!({})),
        });
    assert_eq!(answer.unwrap_err().outcome, Outcome::Unknown);
}

#[test]
fn a_batch_with_a_mistake_writes_nothing() {
    let refused = |entries: Value| {
        let batch = value!({ "RequestItems": { "Other": puts(&["o"]), "Tab": entries } });
        let mut store = votes();
        let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |_, _| {
            Err(Error::validation("the store's words"))
        });
        (answer.unwrap_err().to_string(), store.sent)
    };
    let (words, sent) =
        refused(value!([{ "PutRequest": { "Item": { "pk": { "S": "a" }, "n": { "S": "many" } } } }]));
    assert!(words.contains("takes numbers only") && sent.is_empty(), "{words}");
    let both = value!({ "DeleteRequest": { "Key": { "pk": { "S": "b" } } }, "PutRequest": { "Item": { "pk": { "S": "a" } } } });
    let (words, sent) = refused(value!([both]));
    assert!(words.contains("more than one datatypes set") && sent.is_empty(), "{words}");
    // A key that comes twice, and one that is none: the store refuses the batch as it came.
    let (words, sent) = refused(puts(&["a", "b", "a"]));
    assert_eq!(
        (words.as_str(), sent[0].0),
        ("ValidationException: the store's words", Operation::BatchWriteItem)
    );
    let (words, sent) =
        refused(value!([{ "DeleteRequest": { "Key": { "pk": { "S": "a" }, "n": { "N": "1" } } } }]));
    assert_eq!(
        (words.as_str(), sent[0].0),
        ("ValidationException: the store's words", Operation::BatchWriteItem)
    );
    // An item that is larger than any may be is refused as the request is read.
    let large =
        value!([{ "PutRequest": { "Item": { "pk": { "S": "a" }, "v": { "S": "x".repeat(410_000) } } } }]);
    let (words, sent) = refused(large);
    assert!(words.contains("Item size") && sent.is_empty(), "{words}");
}
