//! Batches: what a partition refuses comes back unprocessed.

use super::*;

fn put(pk: &str, sk: &str) -> Json {
    json!({ "PutRequest": { "Item": item(pk, sk) } })
}

const HOT: &str = "hot";

/// Exhausts the one, and finds the other.
fn cold(bench: &Bench) -> String {
    bench.exhaust(HOT);
    (0..).map(|nth| format!("cold-{nth}")).find(|pk| bench.put(pk, "a").is_ok()).unwrap()
}

#[test]
fn throttled_puts_come_back_and_the_others_are_done() {
    let bench = Bench::on_demand();
    let cold = cold(&bench);
    let request = json!({ "RequestItems": { "games": [put(HOT, "x"), put(&cold, "b"), put(HOT, "y"), put(&cold, "c")] } });
    let answer = bench.call(Operation::BatchWriteItem, request).unwrap();
    assert_eq!(answer, json!({ "UnprocessedItems": { "games": [put(HOT, "x"), put(HOT, "y")] } }));
    let found = |pk: &str, sk: &str| {
        let answer =
            bench.call(Operation::GetItem, json!({ "TableName": "games", "Key": item(pk, sk) })).unwrap();
        answer.get("Item").is_some()
    };
    assert!(found(&cold, "b") && found(&cold, "c") && !found(HOT, "x") && !found(HOT, "y"));
}

#[test]
fn a_batch_of_which_nothing_can_be_done_is_an_error() {
    let bench = Bench::provisioned(12_000, 4_000);
    bench.exhaust(HOT);
    let delete = json!({ "DeleteRequest": { "Key": item(HOT, "0") } });
    let request = json!({ "RequestItems": { "games": [put(HOT, "x"), delete] } });
    let error = bench.call(Operation::BatchWriteItem, request).unwrap_err();
    assert_eq!(
        body(&error),
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message": TABLE_PROVISIONED,
            "ThrottlingReasons": [{ "reason": "TableWriteKeyRangeThroughputExceeded", "resource": arn() }],
        })
    );
}

#[test]
fn throttled_keys_come_back_with_what_stood_around_them() {
    let bench = Bench::on_demand();
    let cold = cold(&bench);
    let get = json!({ "TableName": "games", "Key": item(HOT, "0"), "ConsistentRead": true });
    while bench.call(Operation::GetItem, get.clone()).is_ok() {}
    let around = |keys: &[Json]| json!({ "games": { "Keys": keys, "ConsistentRead": true, "ProjectionExpression": "sk" } });
    let request = json!({ "RequestItems": around(&[item(HOT, "0"), item(&cold, "a"), item(HOT, "1")]) });
    let answer = bench.call(Operation::BatchGetItem, request).unwrap();
    assert_eq!(answer["Responses"], json!({ "games": [{ "sk": {"S": "a"} }] }));
    assert_eq!(answer["UnprocessedKeys"], around(&[item(HOT, "0"), item(HOT, "1")]));
    let error = bench
        .call(Operation::BatchGetItem, json!({ "RequestItems": around(&[item(HOT, "0")]) }))
        .unwrap_err();
    assert_eq!(body(&error)["throttlingReasons"][0]["reason"], "TableReadKeyRangeThroughputExceeded");
}

#[test]
fn a_batch_that_repeats_a_key_is_refused_as_a_whole_even_when_reduced() {
    let bench = Bench::on_demand();
    let cold = cold(&bench);
    let before = bench.charged(0);
    let request = json!({ "RequestItems": { "games": [put(HOT, "x"), put(&cold, "b"), put(HOT, "x")] } });
    let error = bench.call(Operation::BatchWriteItem, request).unwrap_err();
    assert_eq!(error.code.name(), "ValidationException");
    let key = json!({ "TableName": "games", "Key": item(&cold, "b") });
    assert_eq!(bench.call(Operation::GetItem, key).unwrap(), json!({}));
    assert_eq!(before.1, bench.charged(0).1, "what was admitted is given back");
    let unknown = json!({ "RequestItems": { "nope": [put(HOT, "x")], "games": [put(HOT, "x")] } });
    let error = bench.call(Operation::BatchWriteItem, unknown).unwrap_err();
    assert_eq!(error.code.name(), "ResourceNotFoundException");
}
