//! Items whose shard other writers assign.

use crate::common::{json, run};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_route::Router;
use serde_json::json as value;

use super::{Store, assigned, get, number};

#[test]
fn an_item_is_found_in_whichever_shard_it_was_put() {
    for shard in ["a.1", "a.2", "a.3"] {
        let mut store = Store::with(&[(shard, number("1"))]);
        let answer = store.read(&assigned(), Operation::GetItem, &get("a")).unwrap();
        assert_eq!(answer["Item"], value!({ "pk": { "S": "a" }, "n": { "N": "1" } }));
    }
    let mut store = Store::with(&[("a.1", number("1")), ("a.3", number("1"))]);
    let error = store.read(&assigned(), Operation::GetItem, &get("a")).unwrap_err();
    assert!(error.to_string().contains("shard 0 and in shard 2"), "{error}");
}

#[test]
fn a_write_goes_where_the_item_lies_and_requires_that_it_still_does() {
    let mut conditions = Vec::new();
    for shard in ["a.1", "a.2", "a.3"] {
        let mut store = Store::with(&[(shard, number("1"))]);
        let answer = store.call(&assigned(), Operation::DeleteItem, &get("a"), |operation, body| {
            assert_eq!((operation, &body["Key"]["pk"]["S"]), (Operation::DeleteItem, &value!(shard)));
            conditions.push(body["ConditionExpression"].clone());
            Ok(value!({}))
        });
        assert_eq!(answer.unwrap(), value!({}));
        assert_eq!(store.operations(), [Operation::BatchGetItem, Operation::DeleteItem]);
    }
    // In its hashed slot alone an item may be created.
    let exists = value!("attribute_exists(#there)");
    assert_eq!(conditions.iter().filter(|condition| condition.is_null()).count(), 1);
    assert_eq!(conditions.iter().filter(|condition| **condition == exists).count(), 2);
}

#[test]
fn a_write_to_an_item_that_is_gone_looks_again() {
    let mut store = Store::with(&[]);
    let absent = store.call(&assigned(), Operation::DeleteItem, &get("a"), |_, body| Ok(body["Key"].clone()));
    let hashed = absent.unwrap()["pk"]["S"].as_str().unwrap().to_owned();
    let misplaced = ["a.1", "a.2", "a.3"].into_iter().find(|shard| *shard != hashed).unwrap();
    for moves in [true, false] {
        let mut store = Store::with(&[(misplaced, number("1"))]);
        let layouts = assigned();
        let body = Bytes::from(get("a").to_string());
        let plan = Router::new().plan(Operation::DeleteItem, &body, &layouts).unwrap();
        let mut written = Vec::new();
        let answer = run(plan, |operation, body| {
            let body = json(body);
            if operation == Operation::BatchGetItem {
                return Ok(Bytes::from(store.batch(&body).to_string()));
            }
            let key = body["Key"]["pk"]["S"].as_str().unwrap().to_owned();
            written.push(key.clone());
            if key == hashed {
                return Ok(Bytes::from_static(b"{}"));
            }
            if moves {
                store = Store::with(&[(&hashed, number("1"))]);
            }
            Err(Error::new(Code::ConditionalCheckFailedException, "The conditional request failed"))
        });
        if moves {
            assert_eq!(answer.unwrap(), "{}");
            assert_eq!(written, [misplaced, &hashed]);
        } else {
            // It lies where it lay: the condition that failed is the client's own.
            assert_eq!(answer.unwrap_err().code, Code::ConditionalCheckFailedException);
            assert_eq!(written, [misplaced]);
        }
    }
}

#[test]
fn each_table_of_a_transaction_is_looked_into() {
    let delete =
        |table: &str, key: &str| value!({ "Delete": { "TableName": table, "Key": { "pk": { "S": key } } } });
    let body = value!({ "TransactItems": [delete("Tab", "a"), delete("Two", "b"), delete("Tab", "c")] });
    let mut store = Store::with(&[("a.1", number("1")), ("b.2", number("1")), ("c.3", number("1"))]);
    let answer = store.call(&assigned(), Operation::TransactWriteItems, &body, |_, body| {
        let key = |at: usize| body["TransactItems"][at]["Delete"]["Key"]["pk"]["S"].clone();
        assert_eq!([key(0), key(1), key(2)], ["a.1", "b.2", "c.3"]);
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
    let asked = |table: &str| {
        let keys = store.sent[0].1["RequestItems"][table]["Keys"].as_array().unwrap();
        keys.iter().map(|key| key["pk"]["S"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(asked("Tab"), ["a.1", "a.2", "a.3", "c.1", "c.2", "c.3"]);
    assert_eq!(asked("Two"), ["b.1", "b.2", "b.3"]);
    // Of the items their keys are enough, as they are now.
    let how = &store.sent[0].1["RequestItems"]["Two"];
    assert_eq!(
        (how["ConsistentRead"].as_bool(), how.get("ProjectionExpression").is_some()),
        (Some(true), true)
    );
}

#[test]
fn a_transaction_that_may_have_been_carried_out_goes_where_it_went() {
    let delete = value!({ "Delete": get("a") });
    let body = Bytes::from(value!({ "TransactItems": [delete], "ClientRequestToken": "t" }).to_string());
    for (outcome, looks) in [(Outcome::Unknown, 1), (Outcome::NotDone, 2)] {
        let router = Router::new().with_clock(|| 0);
        let mut store = Store::with(&[("a.1", number("1"))]);
        let mut looked = 0;
        for _ in 0..2 {
            let plan = router.plan(Operation::TransactWriteItems, &body, &assigned()).unwrap();
            let answer = run(plan, |operation, body| {
                if operation != Operation::BatchGetItem {
                    return Err(Error::unavailable("no answer", outcome));
                }
                looked += 1;
                Ok(Bytes::from(store.batch(&json(body)).to_string()))
            });
            assert_eq!(answer.unwrap_err().code, Code::ServiceUnavailable);
        }
        assert_eq!(looked, looks, "{outcome:?}");
    }
}
