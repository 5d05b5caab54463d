//! Values read and written back; depth and shape are checked.

use proptest::prelude::*;

use super::*;
use crate::Code;

fn any_value() -> impl Strategy<Value = Value> {
    let number = (-999_999_i64..999_999, -9..9).prop_map(|(digits, exponent)| format!("{digits}e{exponent}"));
    let bytes = || prop::collection::vec(any::<u8>(), 0..8).prop_map(Bytes::from);
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::S),
        number.prop_map(Value::N),
        bytes().prop_map(Value::B),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        prop::collection::btree_set(any::<String>(), 1..4).prop_map(Value::Ss),
        prop::collection::btree_set(any::<i16>(), 1..4)
            .prop_map(|set| Value::Ns(set.into_iter().map(|n| n.to_string()).collect())),
        prop::collection::btree_set(bytes(), 1..4).prop_map(Value::Bs),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::L),
            prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(Value::M),
        ]
    })
}

proptest! {
    #[test]
    fn values_read_back(value in any_value()) {
        let json = value.to_json();
        prop_assert_eq!(Value::read(&json).unwrap(), value.clone());
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
        prop_assert!(value.same(&value));
    }

    #[test]
    fn arbitrary_bytes_never_panic(text in r#"(\{"[SNBLM]{1,2}":(["0-9a\[\]{},:]|\{"S":"a"\})*\}){1,2}"#) {
        let _ = Value::read(text.as_bytes());
    }
}

#[test]
fn numbers_are_the_same_by_value() {
    let read = |text: &str| Value::read(text.as_bytes()).unwrap();
    assert!(
        read(r#"{"L":[{"N":"1.0"},{"NS":["2","1e1"]}]}"#)
            .same(&read(r#"{"L":[{"N":"1"},{"NS":["10","2.0"]}]}"#))
    );
    assert!(!read(r#"{"N":"1"}"#).same(&read(r#"{"S":"1"}"#)));
    assert!(!read(r#"{"M":{"a":{"N":"1"}}}"#).same(&read(r#"{"M":{"b":{"N":"1"}}}"#)));
}

#[test]
fn what_is_no_value_is_refused() {
    for (text, code, message) in [
        ("{}", Code::ValidationException, "Supplied AttributeValue is empty"),
        (r#"{"S":null}"#, Code::ValidationException, "Supplied AttributeValue is empty"),
        (r#"{"S":"a","N":"1"}"#, Code::ValidationException, "Supplied AttributeValue has more than one"),
        (r#"{"N":"x"}"#, Code::ValidationException, "The parameter cannot be converted"),
        (
            r#"{"SS":[]}"#,
            Code::ValidationException,
            "One or more parameter values were invalid: An string set",
        ),
        (
            r#"{"SS":["a","a"]}"#,
            Code::ValidationException,
            "One or more parameter values were invalid: Input collection [a, a] contains",
        ),
        (
            r#"{"NS":["1","1.0"]}"#,
            Code::ValidationException,
            "One or more parameter values were invalid: Input collection [1, 1.0]",
        ),
        (r#"{"NULL":false}"#, Code::ValidationException, "One or more parameter values were invalid: Null"),
        (r#"{"S":1}"#, Code::SerializationException, ""),
        (r#"{"B":"%"}"#, Code::SerializationException, ""),
        (r#"[1]"#, Code::SerializationException, ""),
    ] {
        let error = Value::read(text.as_bytes()).unwrap_err();
        assert_eq!(error.code, code, "{text}");
        assert!(error.message.unwrap().starts_with(message), "{text}");
    }
    assert_eq!(Value::read(br#"{"S":"a","N":null}"#).unwrap(), Value::S("a".into()));
}

#[test]
fn nesting_is_capped() {
    let deep =
        |levels: usize| [r#"{"L":["#.repeat(levels), r#"{"S":"a"}"#.into(), "]}".repeat(levels)].concat();
    assert!(Value::read(deep(32).as_bytes()).is_ok());
    assert!(Value::read(deep(33).as_bytes()).is_err());
    assert!(Value::read(deep(100_000).as_bytes()).is_err());
}
