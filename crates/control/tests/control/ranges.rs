//! Rules whose keys lie in ranges of their sort keys, good and bad.

use heatsink_control::DesiredLayout;
use heatsink_control::rules::{Rules, split_point};
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};

fn rule(fields: &str) -> Result<Rules, String> {
    let text = format!("[[rule]]\ntable = \"T\"\nstrategy = \"range\"\n{fields}");
    Rules::read("heatsink.toml", &text).map_err(|error| error.to_string())
}

/// The layout of table T with a sort key of that type, in words.
fn laid_out(fields: &str, sort: Option<KeyType>) -> String {
    let attribute = |name: &str, key_type| AttributeDefinition { name: name.to_owned(), key_type };
    let schema = TableSchema {
        name: "T".to_owned(),
        id: "an-id".to_owned(),
        key: KeySchema {
            partition: attribute("pk", KeyType::S),
            sort: sort.map(|sort| attribute("sk", sort)),
        },
        indexes: Vec::new(),
    };
    match rule(fields).unwrap().desired_layout(&schema) {
        DesiredLayout::Sharded(layouts) => layouts.to_string(),
        DesiredLayout::Impossible(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn split_points_are_sort_keys_of_each_type() {
    for (points, key_type, words) in [
        ("[\"g\", \"p\"]", KeyType::S, "keys \"*\": 3 ranges of the sort key, split at \"g\", \"p\""),
        ("[-1, 2.5, 1_000]", KeyType::N, "keys \"*\": 4 ranges of the sort key, split at -1, 2.5, 1000"),
        (
            "[{ N = \"0.1\" }, { N = \"12345678901234567890.5\" }]",
            KeyType::N,
            "keys \"*\": 3 ranges of the sort key, split at 0.1, 12345678901234567890.5",
        ),
        ("[{ B = \"AA==\" }]", KeyType::B, "keys \"*\": 2 ranges of the sort key, split at \"\\x00\""),
    ] {
        assert_eq!(laid_out(&format!("split_at = {points}"), Some(key_type)), words);
    }
    assert_eq!(split_point("AP8=", KeyType::B).unwrap().canonical_bytes().as_ref(), b"\x00\xff");
    assert!(split_point("ten", KeyType::N).unwrap_err().contains("no number"));
    assert!(split_point("?", KeyType::B).unwrap_err().contains("no base64"));
}

#[test]
fn points_that_do_not_divide_are_faults_with_their_line() {
    for (fields, expected) in [
        ("", "heatsink.toml:1: rule[1]: strategy = \"range\" needs the field `split_at`"),
        ("split_at = []", "heatsink.toml:4: rule[1].split_at: 0 split points are named"),
        (
            "split_at = [\"b\", \"a\"]",
            "heatsink.toml:4: rule[1].split_at: the split point \"a\" does not come after \"b\"",
        ),
        (
            "split_at = [\"b\", 1]",
            "heatsink.toml:4: rule[1].split_at: the split points \"b\" and 1 are of different types",
        ),
        ("split_at = [true]", "expected a sort key: a text, a number"),
        ("split_at = [{ X = \"1\" }]", "unknown field `X`"),
        ("split_at = [{ N = \"ten\" }]", "\"ten\" is no number"),
        (
            "split_at = [\"a\"]\nshards = 2",
            "heatsink.toml:5: rule[1].shards: has no meaning with strategy = \"range\"",
        ),
    ] {
        let found = rule(fields).map(|_| ()).unwrap_err();
        assert!(found.contains(expected), "{fields}: {found}");
    }
    let calculated = "[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nshards = 2\nsplit_at = [\"a\"]";
    let found = Rules::read("heatsink.toml", calculated).unwrap_err().to_string();
    assert!(found.contains("rule[1].split_at: has no meaning with strategy = \"calculated\""), "{found}");
}

#[test]
fn a_table_whose_sort_key_is_of_another_type_is_not_laid_out() {
    let why = laid_out("split_at = [1]", Some(KeyType::S));
    assert!(why.contains("`split_at` names sort keys of type N, and the sort key sk is of type S"), "{why}");
    assert!(laid_out("split_at = [1]", None).contains("it has no sort key"));
}
