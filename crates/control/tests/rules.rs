//! Rules files, good and bad: what they mean, and the exact words of what is wrong with them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use heatsink_control::rules::{Glob, Rules, json_schema};
use heatsink_control::{TableLayouts, Wish};
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
use heatsink_layout::Consistency;
use proptest::prelude::*;

fn schema(name: &str, partition: KeyType, sort: Option<KeyType>) -> TableSchema {
    let attribute = |name: &str, key_type| AttributeDefinition { name: name.to_owned(), key_type };
    TableSchema {
        name: name.to_owned(),
        id: "an-id".to_owned(),
        key: KeySchema {
            partition: attribute("pk", partition),
            sort: sort.map(|sort| attribute("sk", sort)),
        },
        indexes: Vec::new(),
    }
}

fn rules(text: &str) -> Rules {
    Rules::read("heatsink.toml", text).unwrap()
}

fn fault(text: &str) -> String {
    Rules::read("heatsink.toml", text).unwrap_err().to_string()
}

fn sharded(wish: Wish) -> TableLayouts {
    match wish {
        Wish::Sharded(layouts) => layouts,
        other => panic!("expected layouts, found {other:?}"),
    }
}

const LEADERBOARDS: &str = r##"
[[rule]]
table    = "Leaderboards"
keys     = "game_*"
strategy = "calculated"
by       = { attribute = "sk", separator = "#", part = 1 }
shards   = 10

[[rule]]
table = "*"
strategy = "calculated"
by = "sort_key"
shards = 4
"##;

#[test]
fn rules_in_words() {
    let words: Vec<String> = rules(LEADERBOARDS).iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "rule 1 (line 2): the keys like \"game_*\" of table Leaderboards: spread over 10 by a hash of part 1 of the sort key sk, split at \"#\"",
            "rule 2 (line 9): all keys of every table with a sort key: spread over 4 by a hash of the sort key",
        ]
    );
    assert!(rules("").is_empty());
}

#[test]
fn the_first_rule_that_matches_a_key_holds() {
    let layouts = sharded(rules(LEADERBOARDS).wish(&schema("Leaderboards", KeyType::S, Some(KeyType::S))));
    assert_eq!(layouts.of(b"game_x").unwrap().shards, 10);
    assert_eq!(layouts.of(b"other").unwrap().shards, 4);
    let binary = sharded(rules(LEADERBOARDS).wish(&schema("Other", KeyType::B, Some(KeyType::N))));
    assert_eq!(binary.of(&[0xff, 0x00]).unwrap().shards, 4);
}

#[test]
fn a_rule_says_how_its_keys_are_read() {
    let strong = format!("{LEADERBOARDS}consistency = \"strong\"\n");
    let rules = rules(&strong);
    let table = schema("Leaderboards", KeyType::S, Some(KeyType::S));
    assert_eq!(rules.reads(&table, b"game_x").consistency, Consistency::Shard, "its first rule says nothing");
    assert_eq!(rules.reads(&table, b"other").consistency, Consistency::Strong);
    assert_eq!(rules.reads(&schema("T", KeyType::N, None), b"1").consistency, Consistency::Shard);
    assert!(rules.iter().nth(1).unwrap().to_string().ends_with(", seen as they were at one moment"));
    let wrong = fault(&strong.replace("strong", "eventual"));
    assert!(wrong.contains("eventual") && wrong.contains("`shard` or `strong`"), "{wrong}");
    let whole = fault("[[rule]]\ntable = \"T\"\nstrategy = \"none\"\nconsistency = \"strong\"");
    assert!(whole.contains("has no meaning with strategy = \"none\""), "{whole}");
}

#[test]
fn a_glob_leaves_alone_what_it_does_not_fit_and_a_name_refuses() {
    let glob = rules("[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4");
    let name = rules("[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nshards = 4");
    for (table, reason) in [
        (
            schema("T", KeyType::N, Some(KeyType::S)),
            "its partition key pk is a number, and a number has no room for a shard",
        ),
        (
            schema("T", KeyType::S, None),
            "it has no sort key, so every key holds one item and there is nothing to spread",
        ),
    ] {
        assert_eq!(
            glob.wish(&table),
            Wish::Unmentioned { skipped: vec![format!("rule 1 (line 1) leaves table T alone: {reason}")] }
        );
        assert_eq!(
            name.wish(&table),
            Wish::Impossible(format!("rule 1 (line 1) cannot hold for table T: {reason}"))
        );
    }
    let part = |attribute| {
        rules(&format!(
            "[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nby = {{ attribute = \"{attribute}\", separator = \"#\", part = 0 }}\nshards = 4"
        ))
    };
    assert_eq!(
        part("ts").wish(&schema("T", KeyType::S, Some(KeyType::S))),
        Wish::Impossible("rule 1 (line 1) cannot hold for table T: `by` names the attribute ts, but the table's sort key is sk".to_owned())
    );
    assert_eq!(
        part("sk").wish(&schema("T", KeyType::S, Some(KeyType::N))),
        Wish::Impossible("rule 1 (line 1) cannot hold for table T: `by` takes a part of the sort key sk, which is not a string".to_owned())
    );
    assert_eq!(
        part("sk").wish(&schema("U", KeyType::S, Some(KeyType::S))),
        Wish::Unmentioned { skipped: vec![] }
    );
}

#[test]
fn a_table_kept_whole_is_no_sharded_table() {
    let rules = rules(
        "[[rule]]\ntable = \"Config\"\nstrategy = \"none\"\n[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4",
    );
    assert_eq!(rules.wish(&schema("Config", KeyType::S, Some(KeyType::S))), Wish::Whole);
    assert!(matches!(rules.wish(&schema("Other", KeyType::S, Some(KeyType::S))), Wish::Sharded(_)));
}

#[test]
fn a_fault_names_the_line_the_field_and_what_was_expected() {
    let rule = |fields: &str| fault(&format!("# a comment\n[[rule]]\ntable = \"T\"\n{fields}"));
    let calculated = |fields: &str| rule(&format!("strategy = \"calculated\"\nshards = 4\n{fields}"));
    for (found, expected) in [
        (fault("[[rule]\n"), "heatsink.toml:1: unclosed array table, expected `]`"),
        (fault("[[rules]]\n"), "heatsink.toml:1: rules: unknown field `rules`, expected `rule`"),
        (fault("\n[[rule]]\nstrategy = \"none\"\n"), "heatsink.toml:2: rule[1]: missing field `table`"),
        (fault("rule = 3"), "heatsink.toml:1: rule: invalid type: integer `3`, expected a sequence"),
        (
            rule("colour = 1"),
            "heatsink.toml:4: rule[1].colour: unknown field `colour`, expected one of `table`, `keys`, `strategy`, `by`, `shards`, `consistency`",
        ),
        (
            rule("keys = 4\nstrategy = \"none\""),
            "heatsink.toml:4: rule[1].keys: invalid type: integer `4`, expected a string",
        ),
        (
            rule("strategy = \"random\""),
            "heatsink.toml:4: rule[1].strategy: unknown variant `random`, expected `none` or `calculated`",
        ),
        (
            rule("strategy = \"calculated\""),
            "heatsink.toml:2: rule[1]: strategy = \"calculated\" needs the field `shards`: a whole number from 1 to 1000",
        ),
        (
            rule("strategy = \"none\"\nshards = 3"),
            "heatsink.toml:5: rule[1].shards: has no meaning with strategy = \"none\", which leaves keys whole; remove it",
        ),
        (
            rule("strategy = \"calculated\"\nshards = \"ten\""),
            "heatsink.toml:5: rule[1].shards: invalid type: string \"ten\", expected a whole number from 1 to 1000",
        ),
        (
            rule("strategy = \"calculated\"\nshards = 0"),
            "heatsink.toml:5: rule[1].shards: invalid value: integer `0`, expected a whole number from 1 to 1000",
        ),
        (
            rule("strategy = \"calculated\"\nshards = 1001"),
            "heatsink.toml:5: rule[1].shards: invalid value: integer `1001`, expected a whole number from 1 to 1000",
        ),
        (
            calculated("by = \"hash\""),
            "heatsink.toml:6: rule[1].by: invalid value: string \"hash\", expected \"sort_key\" or { attribute = \"…\", separator = \"…\", part = 0 }",
        ),
        (
            calculated("by = 1"),
            "heatsink.toml:6: rule[1].by: invalid type: integer `1`, expected \"sort_key\" or { attribute = \"…\", separator = \"…\", part = 0 }",
        ),
        (
            calculated("by = { attribute = \"sk\", part = 1 }"),
            "heatsink.toml:6: rule[1].by: missing field `separator`",
        ),
        (
            calculated("by = { attribute = \"sk\", separator = \"\", part = 1 }"),
            "heatsink.toml:6: rule[1].by.separator: expected at least one character, found an empty text",
        ),
        (
            calculated("by = { attribute = \"sk\", separator = \"#\", part = -1 }"),
            "heatsink.toml:6: rule[1].by.part: invalid value: integer `-1`, expected a whole number from 0 to 1023",
        ),
        (
            fault("[[rule]]\ntable = \"my table\"\nstrategy = \"none\""),
            "heatsink.toml:2: rule[1].table: table names hold a-z, A-Z, 0-9, _ . - only, and globs * and ? besides; found ' '",
        ),
        (
            fault(
                "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n\n[[rule]]\ntable = \"T\"\nkeys = \"a*\"\nstrategy = \"calculated\"\nshards = 9",
            ),
            "heatsink.toml:6: rule[2]: rule 2 can never match: rule 1 (line 1) comes first and already takes all keys of every table with a sort key; \
             put the narrower rule first, or remove one",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn the_published_json_schema_is_the_one_in_force() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/heatsink.schema.json");
    if std::env::var_os("WRITE_SCHEMA").is_some() {
        std::fs::write(path, json_schema()).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        published,
        json_schema(),
        "write it anew: WRITE_SCHEMA=1 cargo test -p heatsink-control --test rules"
    );
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in "(\\[\\[rule\\]\\]\n|table|keys|by|shards|strategy| = |\"calculated\"|\"none\"|\\{|\\}|[a-z*?\"#\n0-9.]){0,40}") {
        let _ = Rules::read("f", &text);
    }

    /// Rules that are refused as dead are dead: the layouts of a table are the same without them.
    #[test]
    fn per_key_the_first_matching_rule_decides(
        globs in prop::collection::vec(("[ab*]{1,3}", prop::option::of(1u16..9)), 1..5),
        key in "[ab]{0,4}",
    ) {
        let text: String = globs
            .iter()
            .map(|(keys, shards)| match shards {
                Some(shards) => format!("[[rule]]\ntable = \"*\"\nkeys = \"{keys}\"\nstrategy = \"calculated\"\nshards = {shards}\n"),
                None => format!("[[rule]]\ntable = \"*\"\nkeys = \"{keys}\"\nstrategy = \"none\"\n"),
            })
            .collect();
        let table = schema("T", KeyType::S, Some(KeyType::S));
        let first = globs.iter().find(|(keys, _)| Glob::new(keys).matches(key.as_bytes()));
        let expected = first.and_then(|(_, shards)| *shards);
        if let Ok(rules) = Rules::read("f", &text) {
            prop_assert_eq!(rules.iter().count(), globs.len());
            let found = match rules.wish(&table) {
                Wish::Sharded(layouts) => layouts.of(key.as_bytes()).map(|layout| layout.shards),
                _ => None,
            };
            // Whole is one shard, named or not.
            prop_assert_eq!(found.unwrap_or(1), expected.unwrap_or(1));
        }
    }
}
