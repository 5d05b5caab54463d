//! Transactions and streams: keys physical on the way in, logical on the way out, everything else
//! as it was.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use crate::common::{Fixed, answered, json, plan, run, sent};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_route::Router;
use proptest::prelude::*;

const KEY: &str = r#"{"pk":{"S":"game"},"sk":{"S":"0000123#player_7"}}"#;

fn write(actions: &str) -> String {
    format!(r#"{{"TransactItems":[{actions}],"ClientRequestToken":"t"}}"#)
}

#[test]
fn every_action_of_a_transaction_is_rewritten() {
    let arn = "arn:aws:dynamodb:eu-west-1:1:table/Tab";
    let exists = r#""ConditionExpression":"attribute_exists(pk)""#;
    let actions = [
        format!(r#"{{"Put":{{"TableName":"Tab","Item":{KEY}}}}}"#),
        format!(r#"{{"Delete":{{"TableName":"{arn}","Key":{KEY}}}}}"#),
        format!(r#"{{"ConditionCheck":{{"TableName":"Tab","Key":{KEY},{exists}}}}}"#),
        format!(r#"{{"Update":{{"TableName":"Tab","Key":{KEY},"UpdateExpression":"SET a = b"}}}}"#),
    ];
    let other = r#"{"Delete":{"TableName":"Other","Key":{"pk":{"S":"game"}}}}"#;
    for action in &actions {
        let body = write(&format!("{action},{other}"));
        assert_eq!(sent(Operation::TransactWriteItems, &body), body.replacen("game", "game#~1", 1));
    }
    let get = format!(r#"{{"TransactItems":[{{"Get":{{"TableName":"Tab","Key":{KEY}}}}}]}}"#);
    assert_eq!(sent(Operation::TransactGetItems, &get), get.replace("game", "game#~1"));
}

#[test]
fn a_condition_on_the_partition_key_compares_the_logical_key() {
    let condition = r#""ConditionExpression":"pk = :g","ExpressionAttributeValues":{":g":{"S":"game"}}"#;
    let body = write(&format!(r#"{{"Put":{{"TableName":"Tab","Item":{KEY},{condition}}}}}"#));
    let put = &json(sent(Operation::TransactWriteItems, &body).as_bytes())["TransactItems"][0]["Put"];
    assert_eq!(put["Item"]["pk"]["S"], "game#~1");
    // What the logical key makes of the comparison, for an item that is there.
    assert_eq!(put["ConditionExpression"], "attribute_exists(#h0)");
    assert_eq!(put["ExpressionAttributeNames"]["#h0"], "pk");
    let other = body.replace(r#":g":{"S":"game"#, r#":g":{"S":"game#~1"#);
    assert_ne!(json(sent(Operation::TransactWriteItems, &other).as_bytes())["TransactItems"][0]["Put"], *put);
}

#[test]
fn answers_come_in_the_clients_order_with_logical_keys() {
    let get = |table: &str, pk: &str| {
        let key = KEY.replace("game", pk);
        format!(r#"{{"Get":{{"TableName":"{table}","Key":{key}}}}}"#)
    };
    let gets = [get("Other", "a"), get("Tab", "game"), get("Tab", "b")].join(",");
    let body = format!(r#"{{"TransactItems":[{gets}]}}"#);
    let answer = r#"{"Responses":[{"Item":{"pk":{"S":"a#~1"}}},{"Item":{"pk":{"S":"game#~1"},"x":{"S":"game#~1"}}},{}]}"#;
    let logical = answer.replacen("\"game#~1\"", "\"game\"", 1);
    assert_eq!(answered(Operation::TransactGetItems, &body, answer).unwrap(), logical);
}

#[test]
fn the_reasons_of_a_cancelled_transaction_hold_logical_keys() {
    let condition = r#""ConditionExpression":"attribute_not_exists(pk)""#;
    let put = format!(r#"{{"Put":{{"TableName":"Tab","Item":{KEY},{condition}}}}}"#);
    let body = write(&format!(r#"{{"Put":{{"TableName":"Other","Item":{KEY}}}}},{put},{put}"#));
    let refusal = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[{"Code":"None","Item":{"pk":{"S":"game#~1"}}},{"Code":"ConditionalCheckFailed","Item":{"pk":{"S":"game#~1"}},"Message":"The conditional request failed"},{"Code":"ValidationError","Message":"Item size has exceeded the maximum allowed size"}]}"#;
    let error = run(plan(Operation::TransactWriteItems, &body).unwrap(), |_, _| {
        Err(Error::from_wire(400, Bytes::from_static(refusal.as_bytes())))
    })
    .unwrap_err();
    let reasons = &json(&error.body())["CancellationReasons"];
    assert_eq!(reasons[0]["Item"]["pk"]["S"], "game#~1", "a key of an unsharded table stays as it is");
    assert_eq!(reasons[1]["Item"]["pk"]["S"], "game");
    assert!(reasons[2]["Message"].as_str().unwrap().contains("the shard suffix of 3 bytes counts"));
    assert_eq!(error.code, Code::TransactionCanceledException);
}

#[test]
fn what_the_store_is_sure_to_refuse_goes_as_it_came() {
    let wrong = write(r#"{"Put":{"TableName":"Tab","Item":{"pk":{"S":"a"}}}}"#);
    assert_eq!(sent(Operation::TransactWriteItems, &wrong), wrong);
    let accepted = answered(Operation::TransactWriteItems, &wrong, "{}").unwrap_err();
    assert_eq!(accepted.code, Code::InternalServerError, "an item may lie where it is not found");
    let twice = write(&format!(r#"{{"Put":{{"TableName":"Tab","Item":{KEY},"Item":{KEY}}}}}"#));
    assert_eq!(plan(Operation::TransactWriteItems, &twice).unwrap_err().code, Code::SerializationException);
}

#[test]
fn stream_records_hold_logical_keys_and_their_sizes() {
    let stream = "arn:aws:dynamodb:eu-west-1:1:table/Tab/stream/2024-01-01T00:00:00.000";
    let body = format!(r#"{{"ShardIterator":"{stream}|1|AAAA"}}"#);
    assert_eq!(sent(Operation::GetRecords, &body), body);
    let answer = r#"{"NextShardIterator":"n","Records":[{"eventID":"1","dynamodb":{"Keys":{"pk":{"S":"game#~1"}},"NewImage":{"pk":{"S":"game#~1"},"x":{"S":"game#~1"}},"SequenceNumber":"7","SizeBytes":40}},{"dynamodb":{"Keys":{"pk":{"S":"a"}},"SizeBytes":3}}]}"#;
    let logical = answer.replace(r#""pk":{"S":"game#~1"}"#, r#""pk":{"S":"game"}"#).replace("40", "34");
    assert_eq!(answered(Operation::GetRecords, &body, answer).unwrap(), logical);
    let get = format!(
        r#"{{"StreamArn":"{stream}","ShardId":"shardId-00000000000000000000-00000000","ShardIteratorType":"LATEST"}}"#
    );
    assert_eq!(answered(Operation::GetShardIterator, &get, &body).unwrap(), body);
    let opaque = answered(Operation::GetShardIterator, &get, r#"{"ShardIterator":"opaque"}"#);
    assert_eq!(opaque.unwrap_err().code, Code::ValidationException);
}

proptest! {
    #[test]
    fn a_retry_is_the_same_physical_request(
        keys in proptest::collection::vec(("[a-z#~0-9]{1,9}", "[a-z0-9]{1,9}"), 1..6),
    ) {
        let action = |(pk, sk): &(String, String)| {
            let key = format!(r#"{{"pk":{{"S":"{pk}"}},"sk":{{"S":"{sk}"}}}}"#);
            format!(r#"{{"Update":{{"TableName":"Tab","Key":{key},"UpdateExpression":"SET a = pk"}}}}"#)
        };
        let body = Bytes::from(write(&keys.iter().map(action).collect::<Vec<_>>().join(",")));
        let once = || {
            let mut bodies = Vec::new();
            let plan = Router::new().plan(Operation::TransactWriteItems, &body, &Fixed { shards: 10 }).unwrap();
            let _ = run(plan, |_, body| {
                bodies.push(body.clone());
                Ok(Bytes::from_static(b"{}"))
            });
            bodies
        };
        prop_assert_eq!(once(), once());
    }

    #[test]
    fn a_transaction_of_anything_is_planned_or_refused(
        body in ".{0,200}", items in "[\\[\\]{}:\",a-zA-Z]{0,120}",
    ) {
        let wrapped = format!(r#"{{"TransactItems":{items}}}"#);
        for text in [body, wrapped] {
            for operation in [Operation::TransactWriteItems, Operation::TransactGetItems, Operation::GetRecords] {
                let _ = Router::new().plan(operation, &Bytes::from(text.clone()), &Fixed { shards: 10 });
            }
        }
    }
}

#[test]
fn a_transaction_whose_keys_stay_as_they_are_goes_on_as_it_came() {
    let body = r#"{"TransactItems":[{"Delete":{"TableName":"Plain","Key":{"pk":{"S":"a"}}}}]}"#;
    assert_eq!(sent(Operation::TransactWriteItems, body), body);
    let why = plan(Operation::TransactWriteItems, body).unwrap().explain().why;
    assert!(why.contains("lies in its shard 0"), "{why}");
}
