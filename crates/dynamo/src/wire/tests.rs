//! Bodies and what DynamoDB says of them.

use proptest::prelude::*;

use super::{check, read};
use crate::{Code, Operation, json};

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
        // As on AWS, us-east-1, 2026-10-09 (dynamodb-conformance, `validation-ordering`): the token's error comes first.
        (
            Operation::TransactWriteItems,
            r#"{"ReturnConsumedCapacity": "x", "TransactItems": [{}], "ClientRequestToken": "1234567890123456789012345678901234567"}"#,
            "2 validation errors detected: Value '1234567890123456789012345678901234567' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to 36; Value 'x' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
        ),
        // Likewise: an unknown word is refused whatever else is wrong.
        (
            Operation::TransactWriteItems,
            r#"{"TransactItems": [{}], "ReturnItemCollectionMetrics": "x", "ReturnConsumedCapacity": "y"}"#,
            "2 validation errors detected: Value 'y' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; Value 'x' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum value set: [SIZE, NONE]",
        ),
    ] {
        validation(operation, body, message);
    }
}

/// As DynamoDB does ("10 validation errors detected" of a request with 27: tests of the `dynalite` project, `createTable`).
#[test]
fn no_more_than_ten_faults_are_told_and_the_first_of_them() {
    let body = format!(r#"{{"TransactItems": [{}]}}"#, ["{}"; 100].join(","));
    let (_, message) = verdict(Operation::TransactGetItems, &body).unwrap();
    assert!(message.starts_with("10 validation errors detected: "), "{message}");
    assert_eq!(message.matches("must not be null").count(), 10);
    assert!(
        message.contains("'transactItems.1.member.get'") && message.contains("'transactItems.10.member.get'")
    );
    // Members in their order, whatever the body's.
    let body = format!(
        r#"{{"RequestItems": {{"game": [{}]}}, "ReturnConsumedCapacity": 1}}"#,
        [r#"{"PutRequest": {}}"#; 25].join(",")
    );
    assert_eq!(verdict(Operation::BatchWriteItem, &body).unwrap().0, Code::SerializationException);
    let body =
        format!(r#"{{"TransactItems": [{}], "ClientRequestToken": ""}}"#, [r#"{"Put": {}}"#; 4].join(","));
    let (_, message) = verdict(Operation::TransactWriteItems, &body).unwrap();
    assert!(
        message.starts_with("9 validation errors detected: ") && message.contains("'clientRequestToken'"),
        "{message}"
    );
}

/// The lengths of the service model 2012-08-10.
#[test]
fn lists_have_the_lengths_of_the_service_model() {
    let of = |element: &str, count: usize| vec![element; count].join(",");
    let told = |member: &str, most: usize| {
        format!(
            "1 validation error detected: Value '[...]' at '{member}' failed to satisfy constraint: Member must have length less than or equal to {most}"
        )
    };
    let get = r#"{"Get": {"TableName": "game", "Key": {}}}"#;
    for (operation, list, member, element, most) in [
        (Operation::TransactGetItems, "TransactItems", "transactItems", get, 100),
        (Operation::TransactWriteItems, "TransactItems", "transactItems", "{}", 100),
        (
            Operation::ExecuteTransaction,
            "TransactStatements",
            "transactStatements",
            r#"{"Statement": "x"}"#,
            100,
        ),
        (Operation::BatchExecuteStatement, "Statements", "statements", r#"{"Statement": "x"}"#, 25),
    ] {
        assert_eq!(verdict(operation, &format!(r#"{{"{list}": [{}]}}"#, of(element, most))), None);
        validation(operation, &format!(r#"{{"{list}": [{}]}}"#, of(element, most + 1)), &told(member, most));
    }
    // The list's own error comes before those of its elements.
    let (_, message) =
        verdict(Operation::TransactGetItems, &format!(r#"{{"TransactItems": [{}]}}"#, of("{}", 101)))
            .unwrap();
    assert!(
        message.starts_with("10 validation errors detected: Value '[...]' at 'transactItems'"),
        "{message}"
    );

    let writes = |tables: &[usize]| {
        let lists =
            tables.iter().enumerate().map(|(at, count)| format!(r#""game{at}": [{}]"#, of("{}", *count)));
        format!(r#"{{"RequestItems": {{{}}}}}"#, lists.collect::<Vec<_>>().join(","))
    };
    assert_eq!(verdict(Operation::BatchWriteItem, &writes(&[12, 13])), None);
    validation(
        Operation::BatchWriteItem,
        &writes(&[12, 14]),
        "1 validation error detected: Value '{game1=[...]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]",
    );
    validation(
        Operation::BatchWriteItem,
        &writes(&[0; 26]),
        "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: Member must have length less than or equal to 25",
    );
    let keys = |tables: &[usize]| {
        let lists = tables.iter().enumerate().map(|(at, count)| {
            format!(
                r#""game{at}": {{"Keys": [{}], "AttributesToGet": [{}]}}"#,
                of("{}", *count),
                of("\"a\"", 90)
            )
        });
        format!(r#"{{"RequestItems": {{{}}}}}"#, lists.collect::<Vec<_>>().join(","))
    };
    assert_eq!(verdict(Operation::BatchGetItem, &keys(&[40, 60])), None);
    for tables in [&[40, 61][..], &[1, 101]] {
        validation(
            Operation::BatchGetItem,
            &keys(tables),
            "1 validation error detected: Value at 'RequestItems.game1.member.Keys' failed to satisfy constraint: Member must have length less than or equal to 100",
        );
    }
    validation(
        Operation::ExecuteStatement,
        &format!(r#"{{"Statement": "{}"}}"#, "x".repeat(8193)),
        &format!(
            "1 validation error detected: Value '{}...' at 'statement' failed to satisfy constraint: Member must have length less than or equal to 8192",
            "x".repeat(1024)
        ),
    );
}

/// A fault in every element, under a name that is long: what is told stays small whatever is sent.
#[test]
fn what_is_told_of_a_body_is_bounded() {
    let name = "t".repeat(100_000);
    for (operation, body) in [
        (
            Operation::BatchWriteItem,
            format!(
                r#"{{"RequestItems": {{"{name}": [{}]}}}}"#,
                vec![r#"{"PutRequest": {}}"#; 15_000].join(",")
            ),
        ),
        (
            Operation::BatchGetItem,
            format!(r#"{{"RequestItems": {{"{name}": {{}}, "{name}": {{"Keys": []}}}}}}"#),
        ),
        (
            Operation::TransactGetItems,
            format!(r#"{{"TransactItems": [{}]}}"#, vec!["{}"; 1_000_000].join(",")),
        ),
        (
            Operation::TransactGetItems,
            format!(r#"{{"TransactItems": [{{"Get": {{"TableName": 1, "{name}": 1}}}}]}}"#),
        ),
        (
            Operation::GetItem,
            format!(r#"{{"TableName": "{name}", "ReturnConsumedCapacity": "{name}", "Key": {{}}}}"#),
        ),
        (
            Operation::TransactWriteItems,
            format!(
                r#"{{"TransactItems": [{}], "ClientRequestToken": "{name}"}}"#,
                vec!["{}"; 1_000_000].join(",")
            ),
        ),
    ] {
        let (_, message) = verdict(operation, &body).unwrap();
        assert!(message.len() < 25_000, "{operation:?}: {} bytes", message.len());
    }
}

/// As on AWS, four regions, 2026-10-09 (`dynamodb-conformance`, "Number values - messages by operation": the older layer).
#[test]
fn a_batch_of_writes_reads_numbers_as_java_does() {
    const UNREADABLE: &str = "The parameter cannot be converted to a numeric value";
    const UNDERFLOW: &str =
        "Number underflow. Attempting to store a number with magnitude smaller than supported range";
    let write = |value: &str| {
        format!(r#"{{"RequestItems": {{"game": [{{"PutRequest": {{"Item": {{"a": {value}}}}}}}]}}}}"#)
    };
    for (number, message) in [
        ("", UNREADABLE.to_owned()),
        ("1e2147483647", UNDERFLOW.to_owned()),
        ("-1e2147483646", UNDERFLOW.to_owned()),
        ("1e2147483648", format!("{UNREADABLE}: 1e2147483648")),
        ("1e-99999999999", format!("{UNREADABLE}: 1e-99999999999")),
    ] {
        for value in [format!(r#"{{"N": "{number}"}}"#), format!(r#"{{"L": [{{"NS": ["1", "{number}"]}}]}}"#)]
        {
            validation(Operation::BatchWriteItem, &write(&value), &message);
            // Elsewhere it is the store's to refuse.
            assert_eq!(
                verdict(Operation::PutItem, &format!(r#"{{"TableName": "game", "Item": {{"a": {value}}}}}"#)),
                None
            );
        }
    }
    // What is said of these is the same everywhere; the first that is none decides.
    for value in [
        r#"{"N": "abc"}"#,
        r#"{"N": "1e126"}"#,
        r#"{"N": "1e2147483645"}"#,
        r#"{"L": [{"N": "abc"}, {"N": ""}]}"#,
        r#"{"N": "-1.5e-3"}"#,
    ] {
        assert_eq!(verdict(Operation::BatchWriteItem, &write(value)), None, "{value}");
    }
}

/// As on AWS, eu-west-2, October 2026 (`dynamodb-conformance`, "PartiQL parameters - numbers"): the first problem in the body's order.
#[test]
fn a_parameter_is_too_deep_or_no_number_whichever_comes_first() {
    const DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit";
    const ABC: &str = "The parameter cannot be converted to a numeric value: abc";
    let deep = |levels: usize, leaf: &str| {
        format!("{}{leaf}{}", r#"{"M": {"n": "#.repeat(levels), "}}".repeat(levels))
    };
    let (abc, leaf) = (r#"{"N": "abc"}"#, r#"{"S": "leaf"}"#);
    for (parameters, message) in [
        (format!("{abc}, {}", deep(100, leaf)), ABC),
        (format!("{}, {abc}", deep(100, leaf)), DEEP),
        (deep(100, abc), DEEP),
        (format!(r#"{{"M": {{"bad": {abc}, "d": {}}}}}"#, deep(100, leaf)), ABC),
        (format!(r#"{{"M": {{"d": {}, "bad": {abc}}}}}"#, deep(100, leaf)), DEEP),
        (format!("{}, {abc}, {}", deep(40, leaf), deep(100, leaf)), DEEP),
    ] {
        validation(
            Operation::ExecuteStatement,
            &format!(r#"{{"Statement": "x", "Parameters": [{parameters}]}}"#),
            message,
        );
        let body =
            format!(r#"{{"TransactStatements": [{{"Statement": "x", "Parameters": [{parameters}]}}]}}"#);
        validation(Operation::ExecuteTransaction, &body, message);
    }
    // What stores can read is theirs to judge.
    let body = format!(r#"{{"Statement": "x", "Parameters": [{abc}, {}]}}"#, deep(40, leaf));
    assert_eq!(verdict(Operation::ExecuteStatement, &body), None);
}

/// As on AWS, eu-west-2 and us-east-1, 2026-10-09, as the authors of the embedded engine observed it (`deep_nesting.rs`).
#[test]
fn members_are_checked_before_values_that_nest_too_deep() {
    let deep = format!("{}{{\"S\": \"x\"}}{}", r#"{"M": {"n": "#.repeat(100), "}}".repeat(100));
    let delete = |more: &str| format!(r#"{{"TableName": "game", "Key": {{"pk": {deep}}}{more}}}"#);
    for word in ["UPDATED_NEW", "ALL_NEW", "UPDATED_OLD"] {
        let body = delete(&format!(r#", "ReturnValues": "{word}""#));
        validation(Operation::DeleteItem, &body, "ReturnValues can only be ALL_OLD or NONE");
        assert_ne!(
            verdict(Operation::PutItem, &body.replace("Key", "Item")).unwrap().1,
            "ReturnValues can only be ALL_OLD or NONE"
        );
    }
    validation(
        Operation::DeleteItem,
        &delete(r#", "ReturnConsumedCapacity": "x""#),
        "1 validation error detected: Value 'x' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
    );
    for fine in ["", r#", "ReturnValues": "ALL_OLD""#] {
        let (_, message) = verdict(Operation::DeleteItem, &delete(fine)).unwrap();
        assert!(message.starts_with("Nesting Levels have exceeded"), "{message}");
    }
}

/// AWS Developer Guide, "Constraints": 2 MB of names and values; in the words of DynamoDB Local.
#[test]
fn an_expressions_names_and_values_hold_two_megabytes() {
    const TOO_MUCH: &str =
        "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size";
    let query = |value: &str| {
        format!(
            r##"{{"TableName": "game", "ExpressionAttributeNames": {{"#a": "a"}}, "ExpressionAttributeValues": {{":a": {value}}}}}"##
        )
    };
    let mega = 1024 * 1024;
    let text = |bytes: usize| format!(r#"{{"S": "{}"}}"#, "x".repeat(bytes));
    assert_eq!(verdict(Operation::Query, &query(&text(2 * mega - 1))), None);
    validation(Operation::Query, &query(&text(2 * mega)), TOO_MUCH);
    // What counts is what is said, not how it is written.
    let escaped = format!(r#"{{"S": "{}"}}"#, "\\u0041".repeat(mega));
    assert_eq!(verdict(Operation::Query, &query(&escaped)), None);
    let binary = format!(r#"{{"B": "{}"}}"#, "AAAA".repeat(mega / 2));
    assert_eq!(verdict(Operation::Query, &query(&binary)), None);
    let many = format!(r#"{{"L": [{}]}}"#, vec![text(1000); 2200].join(","));
    validation(Operation::Query, &query(&many), TOO_MUCH);
    let update = format!(
        r#"{{"TransactItems": [{{"Update": {{"TableName": "game", "Key": {{}}, "UpdateExpression": "x", "ExpressionAttributeValues": {{":a": {many}}}}}}}]}}"#
    );
    validation(Operation::TransactWriteItems, &update, TOO_MUCH);
}

/// The words of DynamoDB, as the tests of the `dynalite` project observed them (`helpers.js`, `Blob`).
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
        // Not a value: JSON bounds no number, and `-0.5e311` is none of Rust's.
        let json = serde_json::from_str::<serde::de::IgnoredAny>(&body).is_ok();
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

#[test]
fn a_number_beyond_a_doubles_range_is_json_like_any_other() {
    for operation in Operation::ALL {
        assert_eq!(verdict(*operation, "-0.5e311"), verdict(*operation, "-0.5e31"));
    }
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
