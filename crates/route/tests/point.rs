//! Point operations: one physical request, everything but the partition key byte for byte.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use crate::common::{answered, plan, run, sent};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_route::Kind;

// jump(xxh3-64("0000123#player_7"), 10) = 1, from layout's golden vectors.
const SK: &str = "0000123#player_7";

#[test]
fn the_key_and_nothing_else_changes() {
    let body = format!(
        r#"{{ "TableName":"Tab", "Key" : {{"sk":{{"S":"{SK}"}},"pk": {{"S" : "g\u0061me"}} }}, "X":[1,  2]}}"#
    );
    assert_eq!(sent(Operation::GetItem, &body), body.replace("g\\u0061me", "g\\u0061me#~1"));
    let reserved = format!(
        r#"{{"TableName":"Tab","Item":{{"pk":{{"S":"g#~3"}},"sk":{{"S":"{SK}"}},"a":{{"N":"1.0"}}}}}}"#
    );
    assert_eq!(sent(Operation::PutItem, &reserved), reserved.replace("g#~3", "g#~3#~0#~1"));
    let binary = r#"{"TableName":"Bin","Key":{"pk":{"B":"AAE="},"sk":{"N":"0"}}}"#;
    // "0" over 10 shards is 8: 00 01 "#~8".
    assert_eq!(sent(Operation::GetItem, binary), binary.replace("AAE=", "AAEjfjg="));
    let whole = r#"{"TableName":"Plain","Key":{"pk":{"S":"a"}}}"#;
    assert_eq!(sent(Operation::GetItem, whole), whole);
}

#[test]
fn answers_are_logical() {
    let body = format!(r#"{{"TableName":"Tab","Key":{{"sk":{{"S":"{SK}"}},"pk":{{"S":"game"}}}}}}"#);
    let answer = r##"{"Item":{"a":{"S":"#~1"},"pk":{"S":"game#~1"} , "sk":{"S":"x"}},"ConsumedCapacity":{"TableName":"Tab"}}"##;
    assert_eq!(answered(Operation::GetItem, &body, answer).unwrap(), answer.replace("game#~1", "game"));
    let escaped = r#"{"Attributes":{"pk":{"S":"gam\u0065\u0023\u007e1"}}}"#;
    assert_eq!(
        answered(Operation::DeleteItem, &body, escaped).unwrap(),
        r#"{"Attributes":{"pk":{"S":"game"}}}"#
    );
    let metrics = r#"{"ItemCollectionMetrics":{"ItemCollectionKey":{"pk":{"S":"game#~1"}},"SizeEstimateRangeGB":[0,1]}}"#;
    assert_eq!(answered(Operation::UpdateItem, &body, metrics).unwrap(), metrics.replace("#~1", ""));
    assert_eq!(answered(Operation::GetItem, &body, "[").unwrap_err().code, Code::InternalServerError);
}

#[test]
fn a_failed_conditions_item_is_logical() {
    let body = format!(r#"{{"TableName":"Tab","Item":{{"sk":{{"S":"{SK}"}},"pk":{{"S":"game"}}}}}}"#);
    let error = run(plan(Operation::PutItem, &body).unwrap(), |_, _| {
        let wire = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"m","Item":{"pk":{"S":"game#~1"}}}"#;
        Err(Error::from_wire(400, Bytes::from_static(wire.as_bytes())))
    });
    assert_eq!(error.unwrap_err().members["Item"]["pk"]["S"], "game");
}

#[test]
fn a_key_that_every_dynamodb_refuses_is_refused_by_the_store() {
    for key in [
        r#"{"pk":{"S":"a"}}"#,
        r#"{"sk":{"S":"a"}}"#,
        r#"{"pk":{"N":"1"},"sk":{"S":"a"}}"#,
        r#"{"pk":{"S":""},"sk":{"S":"a"}}"#,
    ] {
        let body = format!(r#"{{"TableName":"Tab","Key":{key}}}"#);
        assert_eq!(sent(Operation::GetItem, &body), body);
        let refused = run(plan(Operation::GetItem, &body).unwrap(), |_, _| Err(Error::validation("no")));
        assert_eq!(refused.unwrap_err().message.as_deref(), Some("no"));
        // A store that takes it all the same: a read is refused here, a write may have been done.
        let code = |operation| answered(operation, &body, "{}").unwrap_err().code;
        assert_eq!(code(Operation::GetItem), Code::ValidationException);
        assert_eq!(code(Operation::DeleteItem), Code::InternalServerError);
    }
}

#[test]
fn a_key_that_the_suffix_makes_too_long_is_refused() {
    let body = format!(
        r#"{{"TableName":"Tab","Item":{{"pk":{{"S":"{}"}},"sk":{{"S":"{SK}"}}}}}}"#,
        "k".repeat(2046)
    );
    let error = plan(Operation::PutItem, &body).unwrap_err();
    assert_eq!(error.code, Code::ValidationException);
    assert!(error.message.unwrap().contains("suffix of 3 bytes"));
    // Too long by itself: the store's own refusal.
    let longer = body.replace("kk", "kkkk");
    assert_eq!(sent(Operation::PutItem, &longer), longer);
}

#[test]
fn a_repeated_member_is_refused() {
    let value = r#"{"TableName":"Tab","Key":{"pk":{"S":"a","S":"b"},"sk":{"S":"a"}}}"#;
    assert!(plan(Operation::GetItem, value).is_err());
    let key =
        r#"{"TableName":"Tab","Key":{"pk":{"S":"a"},"sk":{"S":"a"}},"Key":{"pk":{"S":"b"},"sk":{"S":"a"}}}"#;
    assert!(plan(Operation::GetItem, key).is_err());
    let twice = r#"{"TableName":"Tab","Key":{"pk":{"S":"a"},"sk":{"S":"a"},"pk":{"S":"b"}}}"#;
    assert_eq!(plan(Operation::GetItem, twice).unwrap_err().code, Code::SerializationException);
    for (first, second) in [("Tab", "Other"), ("Other", "Tab"), ("Tab", "Tab")] {
        let twice = format!(
            r#"{{"TableName":"{first}","TableName":"{second}","Key":{{"pk":{{"S":"a"}},"sk":{{"S":"a"}}}}}}"#
        );
        assert_eq!(plan(Operation::GetItem, &twice).unwrap_err().code, Code::SerializationException);
    }
}

#[test]
fn unsharded_tables_go_on_untouched() {
    let body = r#"{"TableName":"Other","Key":{"pk":{"S":"a#~1"}}}"#;
    let plan = plan(Operation::GetItem, body).unwrap();
    assert_eq!(plan.explain().plan, Kind::Forward);
    assert_eq!(sent(Operation::GetItem, body), body);
}

#[test]
fn the_plan_explains_itself() {
    let body = format!(
        r#"{{"TableName":"Tab","Key":{{"sk":{{"S":"{SK}"}},"pk":{{"S":"game"}}}},"ConsistentRead":true}}"#
    );
    let explanation = plan(Operation::GetItem, &body).unwrap().explain();
    assert_eq!((explanation.plan, explanation.calls[0].shard), (Kind::Single, Some(1)));
    assert_eq!(explanation.calls[0].key.as_deref(), Some("game#~1"));
    assert!(serde_json::to_string(&explanation).unwrap().contains("\"read_units\":1.0"));
}
