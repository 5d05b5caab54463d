//! Bodies and what DynamoDB says of them.

use proptest::prelude::*;

use super::check;
use crate::{Code, Operation};

/// The code and message of a body's refusal; nothing for a body that passes.
fn verdict(operation: Operation, body: &str) -> Option<(Code, String)> {
    check(operation, body.as_bytes()).err().map(|why| (why.code, why.message.unwrap_or_default()))
}

fn serialization(operation: Operation, body: &str, message: &str) {
    assert_eq!(verdict(operation, body), Some((Code::SerializationException, message.to_owned())), "{body}");
}

fn validation(operation: Operation, body: &str, message: &str) {
    assert_eq!(verdict(operation, body), Some((Code::ValidationException, message.to_owned())), "{body}");
}

#[test]
fn ordinary_requests_pass() {
    for (operation, body) in [
        (
            Operation::GetItem,
            r#" { "TableName" : "game", "Key": {"pk": {"S": "aé\u00e9"}, "n": {"N": "-1.5e3"}} } "#,
        ),
        (
            Operation::GetItem,
            r#"{"TableName": "arn:aws:dynamodb:us-east-1:000000000000:table/game", "Key": {}, "Unknown": [{}, 1, null]}"#,
        ),
        (Operation::GetItem, r#"{"\u0054ableName": "game", "Key": {}}"#),
        (
            Operation::PutItem,
            r#"{"TableName": "game", "ReturnValues": null, "Item": {"a": {"S": "x", "N": null}, "b": {"L": [{"M": {"c": {"NS": ["1"]}}}]}, "c": {"BOOL": "true"}}}"#,
        ),
        (
            Operation::Query,
            r#"{"TableName": "game", "Limit": 1.5, "ConsistentRead": "true", "ScanIndexForward": false, "KeyConditionExpression": "pk = :a"}"#,
        ),
        (
            Operation::BatchWriteItem,
            r#"{"RequestItems": {"game": [{"PutRequest": {"Item": {}}}, {"DeleteRequest": {"Key": {}}}]}}"#,
        ),
        (Operation::ListTables, "{}"),
        (Operation::DescribeLimits, r#"{"anything": [1, {"goes": -0.5e+7}]}"#),
    ] {
        assert_eq!(verdict(operation, body), None, "{body}");
    }
}

#[test]
fn what_is_no_json_has_no_message_and_comes_first() {
    let broken = [
        "",
        " ",
        "{",
        "{\"a\":1,}",
        "{} {}",
        "{\"a\" 1}",
        "{'a':1}",
        "[1,]",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":-}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":tru}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "nul",
        "{\"TableName\":1",
        "{\"TableName\":[}",
        "{\"TableName\":1,\"b\":}",
        "{\"Key\":{\"a\":{\"S\":1}},}",
    ];
    for body in broken {
        serialization(Operation::GetItem, body, "");
    }
    assert_eq!(
        check(Operation::GetItem, b"{\"a\":\"\xff\"}").unwrap_err().code,
        Code::SerializationException
    );
}

#[test]
fn wrong_types_are_named_as_the_service_names_them() {
    for (value, message) in [
        ("1", "NUMBER_VALUE cannot be converted to String"),
        ("-1.5", "DECIMAL_VALUE cannot be converted to String"),
        ("true", "TRUE_VALUE cannot be converted to String"),
        ("false", "FALSE_VALUE cannot be converted to String"),
        ("[]", "Unrecognized collection type class java.lang.String"),
        ("{}", "Start of structure or map found where not expected"),
    ] {
        serialization(Operation::GetItem, &format!(r#"{{"TableName": {value}}}"#), message);
        serialization(Operation::GetItem, &format!(r#"{{"AttributesToGet": ["a", {value}]}}"#), message);
        serialization(Operation::PutItem, &format!(r#"{{"Item": {{"a": {{"S": {value}}}}}}}"#), message);
        serialization(
            Operation::PutItem,
            &format!(r#"{{"Item": {{"a": {{"L": [{{"NS": [{value}]}}]}}}}}}"#),
            message,
        );
    }
    const GENERIC: &str = super::fault::GENERIC;
    for (operation, body, message) in [
        (Operation::GetItem, "1", "Unexpected field type"),
        (Operation::Query, r#"{"ConsistentRead": "x"}"#, "Unexpected token received from parser"),
        (Operation::Query, r#"{"ConsistentRead": 1}"#, "NUMBER_VALUE cannot be converted to Boolean"),
        (
            Operation::Query,
            r#"{"ConsistentRead": []}"#,
            "Unrecognized collection type class java.lang.Boolean",
        ),
        (Operation::Query, r#"{"Limit": "1"}"#, "STRING_VALUE cannot be converted to Integer"),
        (Operation::Query, r#"{"Limit": {}}"#, "Start of structure or map found where not expected"),
        (
            Operation::CreateTable,
            r#"{"ProvisionedThroughput": {"ReadCapacityUnits": "x"}}"#,
            "STRING_VALUE cannot be converted to Long",
        ),
        (
            Operation::CreateTable,
            r#"{"ProvisionedThroughput": []}"#,
            "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.ProvisionedThroughput",
        ),
        (Operation::CreateTable, r#"{"KeySchema": [1]}"#, "Unexpected value type in payload"),
        (
            Operation::CreateTable,
            r#"{"KeySchema": {}}"#,
            "Start of structure or map found where not expected",
        ),
        (
            Operation::GetItem,
            r#"{"Key": []}"#,
            "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
        ),
        (Operation::GetItem, r#"{"Key": "x"}"#, "Unexpected field type"),
        (Operation::GetItem, r#"{"Key": {"a": "x"}}"#, "Unexpected value type in payload"),
        (
            Operation::GetItem,
            r#"{"Key": {"a": []}}"#,
            "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
        ),
        (Operation::GetItem, r#"{"Key": {"a": {"BOOL": []}}}"#, ""),
        (Operation::BatchWriteItem, r#"{"RequestItems": {"game": {}}}"#, GENERIC),
        (
            Operation::BatchWriteItem,
            r#"{"RequestItems": []}"#,
            "Unrecognized collection type java.util.Map<java.lang.String, java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>",
        ),
        (Operation::BatchGetItem, r#"{"RequestItems": {"game": {"Keys": [[]]}}}"#, GENERIC),
        // The first in the body, and before anything about an attribute value or a limit.
        (
            Operation::GetItem,
            r#"{"Key": {"a": {}}, "ConsistentRead": 1, "TableName": 2}"#,
            "NUMBER_VALUE cannot be converted to Boolean",
        ),
    ] {
        serialization(operation, body, message);
    }
}

#[test]
fn an_attribute_value_has_exactly_one_type() {
    const EMPTY: &str =
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
    const SEVERAL: &str = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes";
    for value in
        ["{}", "null", r#"{"X": "a"}"#, r#"{"S": null}"#, r#"{"L": [{}]}"#, r#"{"M": {"a": {"L": [null]}}}"#]
    {
        // Before the limits: the table's name is too short.
        validation(Operation::GetItem, &format!(r#"{{"TableName": "a", "Key": {{"pk": {value}}}}}"#), EMPTY);
        validation(
            Operation::BatchWriteItem,
            &format!(r#"{{"RequestItems": {{"game": [{{"PutRequest": {{"Item": {{"pk": {value}}}}}}}]}}}}"#),
            EMPTY,
        );
    }
    validation(Operation::PutItem, r#"{"TableName": "game", "Item": {"a": {"S": "a", "N": "1"}}}"#, SEVERAL);
}

#[test]
fn limits_are_counted_and_listed_in_order() {
    for (operation, body, message) in [
        (
            Operation::GetItem,
            "{}",
            "2 validation errors detected: Value null at 'key' failed to satisfy constraint: Member must not be null; Value null at 'tableName' failed to satisfy constraint: Member must not be null",
        ),
        (
            Operation::PutItem,
            r#"{"TableName": "a"}"#,
            "2 validation errors detected: Value 'a' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3; Value null at 'item' failed to satisfy constraint: Member must not be null",
        ),
        (
            Operation::GetItem,
            r#"{"TableName": "a b", "Key": {}}"#,
            "1 validation error detected: Value 'a b' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        ),
        // An empty name is reported alone.
        (
            Operation::GetItem,
            r#"{"TableName": "", "ReturnConsumedCapacity": "x"}"#,
            "1 validation error detected: Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ),
        (
            Operation::PutItem,
            r#"{"ReturnValues": "x", "TableName": "game", "ReturnConsumedCapacity": "y", "Item": {}}"#,
            "2 validation errors detected: Value 'y' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]",
        ),
        (
            Operation::Query,
            r#"{"TableName": "a", "Limit": 0, "Select": "x"}"#,
            "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        (
            Operation::Scan,
            r#"{"TotalSegments": 2000000, "Segment": -1, "TableName": "game"}"#,
            "2 validation errors detected: Value at 'Segment' failed to satisfy constraint: Member must have value greater than or equal to 0; Value at 'TotalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000",
        ),
        (
            Operation::GetItem,
            r#"{"TableName": "game", "Key": {}, "AttributesToGet": []}"#,
            "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ),
        (
            Operation::BatchGetItem,
            r#"{"RequestItems": {"game": {"Keys": []}}}"#,
            "1 validation error detected: Value at 'RequestItems.game.member.Keys' failed to satisfy constraint: Member must have length greater than or equal to 1",
        ),
        (
            Operation::BatchGetItem,
            "{}",
            "1 validation error detected: Value null at 'requestItems' failed to satisfy constraint: Member must not be null",
        ),
        (
            Operation::TransactGetItems,
            r#"{"TransactItems": [{"Get": {"TableName": "game", "Key": {}}}, {}]}"#,
            "1 validation error detected: Value null at 'transactItems.2.member.get' failed to satisfy constraint: Member must not be null",
        ),
        (
            Operation::TransactWriteItems,
            r#"{"TransactItems": [{"Put": {"TableName": "game", "Item": {}, "ReturnValuesOnConditionCheckFailure": "x"}}]}"#,
            "1 validation error detected: Value 'x' at 'transactItems.1.member.put.returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, NONE]",
        ),
    ] {
        validation(operation, body, message);
    }
}

#[test]
fn depth_is_the_bodys_and_never_the_stacks() {
    let nested = |levels: usize| {
        format!(
            r#"{{"TableName":"game","Item":{{"a":{}{{"S":"x"}}{}}}}}"#,
            r#"{"L":["#.repeat(levels),
            "]}".repeat(levels)
        )
    };
    // From 32 levels on the store refuses it; the check leaves that to it until no reader could read it.
    assert_eq!(verdict(Operation::PutItem, &nested(31)), None);
    let deep = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit";
    for levels in [70, 1_000, 2_000] {
        validation(Operation::PutItem, &nested(levels), deep);
    }
    for levels in [2_100, 10_000, 1_000_000] {
        serialization(Operation::PutItem, &nested(levels), "");
        for open in ["[", "{\"a\":", "{\"Item\":", "{\"Item\":{\"a\":{\"M\":{\"b\":"] {
            serialization(Operation::PutItem, &open.repeat(levels), "");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(operation in proptest::sample::select(Operation::ALL), body in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = check(operation, &body);
    }

    /// Bodies made of a request's own words reach every part of the tables. What passes, and nothing else but what
    /// is refused with a reason, is JSON to another reader too.
    #[test]
    fn a_body_is_json_or_refused_without_a_message(
        operation in proptest::sample::select(Operation::ALL),
        words in proptest::collection::vec(proptest::sample::select(&[
            "{", "}", "[", "]", ":", ",", "\"TableName\"", "\"Item\"", "\"Key\"", "\"a\"", "\"S\"", "\"L\"", "\"M\"", "\"BOOL\"", "\"\\u00e9\"",
            "{\"TableName\":", "{\"Key\":{\"a\":{\"S\":", "}}", "1", "-0.5e3", "01", "true", "null", "\"", "\\", " ",
        ][..]), 0..12),
    ) {
        let body = words.concat();
        let json = serde_json::from_str::<serde_json::Value>(&body).is_ok();
        match verdict(operation, &body) {
            None => prop_assert!(json, "{body}"),
            Some((Code::SerializationException, message)) if message.is_empty() => {
                // `BOOL` with a list is the one type error without a message.
                prop_assert!(!json || body.contains("BOOL"), "{body}");
            }
            Some(_) => prop_assert!(json, "{body}"),
        }
    }

    #[test]
    fn reading_and_writing_a_request_again_changes_no_verdict(value in "[a-zA-Z\"\\\\{é]{0,8}", limit in any::<f64>()) {
        let body = serde_json::json!({"TableName": value, "Limit": limit, "Select": value}).to_string();
        let again = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&body).unwrap()).unwrap();
        prop_assert_eq!(verdict(Operation::Query, &body), verdict(Operation::Query, &again));
    }
}
