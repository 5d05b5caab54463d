//! Types and members.

use super::{serialization, validation, verdict};
use crate::wire::{check, read};
use crate::{Code, Operation, json};

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
    const GENERIC: &str = crate::wire::fault::GENERIC;
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

/// The words of DynamoDB, as the tests of the `dynalite` project observed them (`helpers.js`,
/// `Blob`).
#[test]
fn binary_values_that_do_not_decode_are_refused_wherever_they_stand() {
    let length = "Base64 encoded length is expected a multiple of 4 bytes but found: 5";
    for value in
        [r#"{"B": "23456"}"#, r#"{"BS": ["AAAA", "23456"]}"#, r#"{"L": [{"M": {"a": {"B": "23456"}}}]}"#]
    {
        for (operation, body) in [
            (Operation::GetItem, format!(r#"{{"TableName": "game", "Key": {{"pk": {value}}}}}"#)),
            (Operation::PutItem, format!(r#"{{"TableName": "game", "Item": {{"pk": {value}}}}}"#)),
            (
                Operation::PutItem,
                format!(
                    r#"{{"TableName": "game", "Item": {{}}, "Expected": {{"pk": {{"Value": {value}}}}}}}"#
                ),
            ),
            (
                Operation::UpdateItem,
                format!(
                    r#"{{"TableName": "game", "Key": {{}}, "AttributeUpdates": {{"pk": {{"Value": {value}}}}}}}"#
                ),
            ),
            (Operation::Query, format!(r#"{{"TableName": "game", "ExclusiveStartKey": {{"pk": {value}}}}}"#)),
            (
                Operation::Query,
                format!(r#"{{"TableName": "game", "ExpressionAttributeValues": {{":pk": {value}}}}}"#),
            ),
            (
                Operation::Query,
                format!(
                    r#"{{"TableName": "game", "KeyConditions": {{"pk": {{"AttributeValueList": [{value}]}}}}}}"#
                ),
            ),
            (Operation::Scan, format!(r#"{{"TableName": "game", "ExclusiveStartKey": {{"pk": {value}}}}}"#)),
            (
                Operation::BatchGetItem,
                format!(r#"{{"RequestItems": {{"game": {{"Keys": [{{"pk": {value}}}]}}}}}}"#),
            ),
            (
                Operation::BatchWriteItem,
                format!(
                    r#"{{"RequestItems": {{"game": [{{"DeleteRequest": {{"Key": {{"pk": {value}}}}}}}]}}}}"#
                ),
            ),
            (
                Operation::TransactGetItems,
                format!(
                    r#"{{"TransactItems": [{{"Get": {{"TableName": "game", "Key": {{"pk": {value}}}}}}}]}}"#
                ),
            ),
            (
                Operation::TransactWriteItems,
                format!(
                    r#"{{"TransactItems": [{{"Put": {{"TableName": "game", "Item": {{"pk": {value}}}}}}}]}}"#
                ),
            ),
            (Operation::ExecuteStatement, format!(r#"{{"Statement": "x", "Parameters": [{value}]}}"#)),
            (
                Operation::BatchExecuteStatement,
                format!(r#"{{"Statements": [{{"Statement": "x", "Parameters": [{{"S": "a"}}, {value}]}}]}}"#),
            ),
            (
                Operation::ExecuteTransaction,
                format!(r#"{{"TransactStatements": [{{"Statement": "x", "Parameters": [{value}]}}]}}"#),
            ),
        ] {
            serialization(operation, &body, length);
            let fine = body.replace("23456", "2345");
            assert!(!matches!(verdict(operation, &fine), Some((Code::SerializationException, _))), "{fine}");
        }
    }
    // An attribute may be called like a type.
    let body = r#"{"Statement": "x", "Parameters": [{"M": {"B": {"S": "23456"}, "BS": {"L": [{"S": "23456"}]}}}, {"S": "23456"}]}"#;
    assert_eq!(verdict(Operation::ExecuteStatement, body), None);
}

#[test]
fn what_is_read_are_the_members_as_they_stand() {
    let bodies = [
        r#"{"TableName":"Tab","Key":{"pk":{"S":"a"}}}"#,
        " { \"Key\" : { \"pk\" : { \"S\" : \"a\" } } ,\n\t\"TableName\" :\r\"Tab\" } ",
        r#"{"TableName":"Tab","Unknown":[1,{"a":null}],"Key":{"pk":{"S":"a"}},"ConsistentRead":null}"#,
        r#"{"Table\u004eame":"Tab","Key":{"pk":{"S":"a"}},"\ud83d\ude00":true}"#,
        r#"{"TableName":"Tab","TableName":"Tab","Key":{"pk":{"S":"a"}}}"#,
    ];
    for body in bodies {
        let read = read(Operation::GetItem, body.as_bytes()).unwrap();
        assert_eq!(read, json::members(body.as_bytes()).unwrap(), "{body}");
    }
}
