//! Numbers as Java reads them, and how deep values nest.

use super::{serialization, validation, verdict};
use crate::Operation;

/// As on AWS, four regions, 2026-10-09 (`dynamodb-conformance`, "Number values - messages by
/// operation": the older layer).
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

/// As on AWS, eu-west-2, October 2026 (`dynamodb-conformance`, "PartiQL parameters - numbers"): the
/// first problem in the body's order.
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

/// As on AWS, eu-west-2 and us-east-1, 2026-10-09, as the authors of the embedded engine observed
/// it (`deep_nesting.rs`).
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

#[test]
fn depth_is_the_bodys_and_never_the_stacks() {
    let nested = |levels: usize| {
        format!(
            r#"{{"TableName":"game","Item":{{"a":{}{{"S":"x"}}{}}}}}"#,
            r#"{"L":["#.repeat(levels),
            "]}".repeat(levels)
        )
    };
    // From 32 levels on the store refuses it; the check leaves that to it until no reader could
    // read it.
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

#[test]
fn a_number_beyond_a_doubles_range_is_json_like_any_other() {
    for operation in Operation::ALL {
        assert_eq!(verdict(*operation, "-0.5e311"), verdict(*operation, "-0.5e31"));
    }
}
