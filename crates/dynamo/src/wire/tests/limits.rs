//! Lengths, and how many faults are told.

use super::{validation, verdict};
use crate::{Code, Operation};

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
        // As on AWS, us-east-1, 2026-10-09 (dynamodb-conformance, `validation-ordering`): the
        // token's error comes first.
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

/// As DynamoDB does ("10 validation errors detected" of a request with 27: tests of the `dynalite`
/// project, `createTable`).
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
