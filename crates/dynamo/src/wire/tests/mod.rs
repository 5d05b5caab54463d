//! Bodies and what DynamoDB says of them.

mod bounds;
mod limits;
mod numbers_and_depth;
mod shapes;

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

proptest! {
    #[test]
    fn no_bytes_make_it_panic(operation in proptest::sample::select(Operation::ALL), body in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = check(operation, &body);
    }

    /// Bodies made of a request's own words reach every part of the tables. What passes, and
    /// nothing else but what is refused with a reason, is JSON to another reader too.
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
