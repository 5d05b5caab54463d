//! Rules files, good and bad: what they mean, and the exact words of what is wrong with them.

use heatsink_control::rules::{Glob, Rules, json_schema};
use heatsink_control::{DesiredLayout, TableLayouts};
use heatsink_dynamo::{AttributeDefinition, IndexSchema, KeySchema, KeyType, TableSchema};
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

fn sharded(desired: DesiredLayout) -> TableLayouts {
    match desired {
        DesiredLayout::Sharded(layouts) => layouts,
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
    // A table without a sort key is among them: values are spread by the primary key.
    let of_index =
        rules("[[rule]]\ntable = \"*\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = 3\n");
    assert_eq!(
        of_index.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "rule 1 (line 1): all keys of every table: as values of the partition key of index by-status: spread over 3 by a hash of the primary key"
        ]
    );
}

#[test]
fn the_first_rule_that_matches_a_key_holds() {
    let layouts =
        sharded(rules(LEADERBOARDS).desired_layout(&schema("Leaderboards", KeyType::S, Some(KeyType::S))));
    assert_eq!(layouts.of(b"game_x").unwrap().shards, 10);
    assert_eq!(layouts.of(b"other").unwrap().shards, 4);
    let binary = sharded(rules(LEADERBOARDS).desired_layout(&schema("Other", KeyType::B, Some(KeyType::N))));
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
    let reason = "it has no sort key, so every key holds one item and there is nothing to spread; a table with a sort key can hold that item's parts as several items";
    for table in [KeyType::S, KeyType::N].map(|partition| schema("T", partition, None)) {
        assert_eq!(
            glob.desired_layout(&table),
            DesiredLayout::Unmentioned {
                skipped: vec![format!("rule 1 (line 1) leaves table T alone: {reason}")]
            }
        );
        assert_eq!(
            name.desired_layout(&table),
            DesiredLayout::Impossible(format!("rule 1 (line 1) cannot hold for table T: {reason}"))
        );
    }
    let part = |attribute| {
        rules(&format!(
            "[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nby = {{ attribute = \"{attribute}\", separator = \"#\", part = 0 }}\nshards = 4"
        ))
    };
    assert_eq!(
        part("ts").desired_layout(&schema("T", KeyType::S, Some(KeyType::S))),
        DesiredLayout::Impossible("rule 1 (line 1) cannot hold for table T: `by` names the attribute ts, but the table's sort key is sk; an attribute outside the primary key cannot decide: a request by primary key could not be routed. Where other code took the shard from it, strategy = \"template\" with hash = \"random\" finds items in any shard".to_owned())
    );
    assert_eq!(
        part("sk").desired_layout(&schema("T", KeyType::S, Some(KeyType::N))),
        DesiredLayout::Impossible("rule 1 (line 1) cannot hold for table T: `by` takes a part of the sort key sk, which is not a string".to_owned())
    );
    assert_eq!(
        part("sk").desired_layout(&schema("U", KeyType::S, Some(KeyType::S))),
        DesiredLayout::Unmentioned { skipped: vec![] }
    );
}

#[test]
fn a_table_kept_whole_is_no_sharded_table() {
    let rules = rules(
        "[[rule]]\ntable = \"Config\"\nstrategy = \"none\"\n[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4",
    );
    assert_eq!(
        rules.desired_layout(&schema("Config", KeyType::S, Some(KeyType::S))),
        DesiredLayout::Unsharded
    );
    assert!(matches!(
        rules.desired_layout(&schema("Other", KeyType::S, Some(KeyType::S))),
        DesiredLayout::Sharded(_)
    ));
}

#[test]
fn a_fault_names_the_line_the_field_and_what_was_expected() {
    let rule = |fields: &str| fault(&format!("# a comment\n[[rule]]\ntable = \"T\"\n{fields}"));
    let calculated = |fields: &str| rule(&format!("strategy = \"calculated\"\nshards = 4\n{fields}"));
    for (found, expected) in [
        (fault("[[rule]\n"), "heatsink.toml:1: unclosed array table, expected `]`"),
        (
            fault("[[rules]]\n"),
            "heatsink.toml:1: rules: unknown field `rules`, expected one of `rule`, `automatic`, `client`, `fence`, `limits`, `webhook`",
        ),
        (fault("\n[[rule]]\nstrategy = \"none\"\n"), "heatsink.toml:2: rule[1]: missing field `table`"),
        (fault("rule = 3"), "heatsink.toml:1: rule: invalid type: integer `3`, expected a sequence"),
        (
            rule("colour = 1"),
            "heatsink.toml:4: rule[1].colour: unknown field `colour`, expected one of `table`, `keys`, `index`, `strategy`, `attributes`, `by`, `split_at`, `shards`, `consistency`, `bucket`, `time`, `template`, `hash`, `hex_digits`, `physical_keys`, `on_shard_error`, `combine`, `combine_streams`, `coalesce`, `cache_max_age_ms`",
        ),
        (
            rule("keys = 4\nstrategy = \"none\""),
            "heatsink.toml:4: rule[1].keys: invalid type: integer `4`, expected a string",
        ),
        (
            rule("strategy = \"modulo\""),
            "heatsink.toml:4: rule[1].strategy: unknown variant `modulo`, expected one of `none`, `calculated`, `random`, `range`, `bucket`, `counter`, `template`",
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
fn counters_say_what_they_sum_and_what_they_cannot_be() {
    let refused = |fields: &str| {
        let text = format!("[[rule]]\ntable = \"T\"\nstrategy = \"counter\"\n{fields}");
        Rules::read("f", &text).unwrap_err().to_string()
    };
    for (fields, words) in [
        ("shards = 4", "needs the field `attributes`"),
        ("attributes = [\"votes\"]", "needs the field `shards`"),
        ("attributes = []\nshards = 4", "found none, or an empty one"),
        ("attributes = [\"a\", \"a\"]\nshards = 4", "names a twice"),
        ("attributes = [\"a\"]\nshards = 101", "from 1 to 100"),
        ("attributes = [\"a\"]\nshards = 4\nby = \"sort_key\"", "has no meaning with strategy = \"counter\""),
    ] {
        let message = refused(fields);
        assert!(message.contains(words), "{fields}: {message}");
    }
}

#[test]
fn which_calls_become_one_is_said_by_the_rule_of_their_key() {
    let text = "[[rule]]\ntable = \"Votes\"\nkeys = \"a*\"\nstrategy = \"none\"\ncombine = true\n\
        [[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 2\ncombine = true\ncombine_streams = true\n\
        [[rule]]\ntable = \"*\"\nkeys = \"b*\"\nstrategy = \"none\"\ncoalesce = true\ncache_max_age_ms = 100\n";
    let rules = rules(text);
    assert!(rules.shares_calls());
    let combines = |table: &TableSchema, key: &[u8]| {
        rules.of_key(table, key).map(|rule| (rule.shared_calls.combine, rule.shared_calls.combine_streams))
    };
    // A table without sort key has no rule but the first and the last.
    let votes = schema("Votes", KeyType::S, None);
    assert_eq!(combines(&votes, b"a1"), Some((true, false)));
    assert_eq!((combines(&votes, b"b1"), combines(&votes, b"c")), (Some((false, false)), None));
    assert_eq!(combines(&schema("T", KeyType::S, Some(KeyType::S)), b"b1"), Some((true, true)));
    let shown: Vec<String> = rules.iter().map(ToString::to_string).collect();
    assert!(shown[0].ends_with("not spread; writes of an item are combined, unless the table has a stream"));
    assert!(shown[1].ends_with("; writes of an item are combined"), "{}", shown[1]);
    let reads = "not spread; identical reads become one; an answer is given again for 100 ms";
    assert!(shown[2].ends_with(reads), "{}", shown[2]);
}

#[test]
fn calls_that_become_one_without_a_meaning_are_refused() {
    let rule = "[[rule]]\ntable = \"T\"\n";
    for (fields, words) in [
        (
            "strategy = \"counter\"\nattributes = [\"n\"]\nshards = 2\ncombine = true",
            "whose writes go to many items",
        ),
        (
            "strategy = \"calculated\"\nindex = \"i\"\nshards = 2\ncombine = true",
            "has no meaning with `index`",
        ),
        (
            "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 2\ncombine = true",
            "an item is looked for before it is written",
        ),
        ("strategy = \"none\"\ncombine_streams = true", "has no meaning without combine = true"),
        ("strategy = \"none\"\ncombine = 1", "expected a boolean"),
        (
            "strategy = \"random\"\nshards = 2\nconsistency = \"strong\"\ncache_max_age_ms = 5",
            "an answer from before is not of that moment",
        ),
        (
            "strategy = \"calculated\"\nindex = \"i\"\nshards = 2\ncoalesce = true",
            "only reads of the table itself",
        ),
        ("strategy = \"none\"\ncache_max_age_ms = 0", "from 1 to 10000, found 0"),
    ] {
        let error = Rules::read("rules", &format!("{rule}{fields}\n")).unwrap_err().to_string();
        assert!(error.contains(words), "{fields}: {error}");
    }
    assert!(Rules::read("rules", &format!("{rule}strategy = \"none\"\ncombine = false\n")).is_ok());
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
        "write it anew: WRITE_SCHEMA=1 cargo test -p heatsink-control --test control rules"
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
            let found = match rules.desired_layout(&table) {
                DesiredLayout::Sharded(layouts) => layouts.of(key.as_bytes()).map(|layout| layout.shards),
                _ => None,
            };
            // Whole is one shard, named or not.
            prop_assert_eq!(found.unwrap_or(1), expected.unwrap_or(1));
        }
    }
}

/// Each with an example of what would be right.
#[test]
fn a_fault_of_a_strategy_says_what_would_be_right() {
    let rule = |fields: &str| fault(&format!("[[rule]]\ntable = \"T\"\n{fields}"));
    let template = |fields: &str| rule(&format!("strategy = \"template\"\n{fields}"));
    for (found, expected) in [
        (
            rule("strategy = \"random\"\nshards = 4\nby = \"sort_key\""),
            "heatsink.toml:5: rule[1].by: has no meaning with strategy = \"random\", which hashes the whole sort key; remove it",
        ),
        (
            rule("strategy = \"bucket\""),
            "heatsink.toml:1: rule[1]: strategy = \"bucket\" needs the field `bucket`: \"hour\", \"day\", \"week\" or \"month\"",
        ),
        (
            rule("strategy = \"bucket\"\nbucket = \"year\""),
            "heatsink.toml:4: rule[1].bucket: unknown variant `year`, expected one of `hour`, `day`, `week`, `month`",
        ),
        (
            rule("strategy = \"calculated\"\nshards = 4\nbucket = \"day\""),
            "heatsink.toml:5: rule[1].bucket: has no meaning with strategy = \"calculated\"; remove it",
        ),
        (
            template("shards = 4\nhash = \"md5\""),
            "heatsink.toml:1: rule[1]: strategy = \"template\" needs the field `template`, such as \"{pk}#{shard}\"",
        ),
        (
            template("shards = 4\nhash = \"md5\"\ntemplate = \"{pk}{shard}\""),
            "heatsink.toml:6: rule[1].template: expected a separator between the key and every placeholder, without a digit beside the placeholder, \
             such as the # of \"{pk}#{shard}\": without it \"a1\" in shard 1 and \"a\" in shard 11 would be one key",
        ),
        (
            template("shards = 4\ntemplate = \"{pk}#{shard}\""),
            "heatsink.toml:1: rule[1]: strategy = \"template\" needs the field `hash`, as the code that sharded the table computes it: \"md5\", \
             \"sha1\", \"sha256\", \"crc32\", \"fnv1a32\", \"fnv1a64\", \"java\", \"java_abs\", \"java_mask\", \"java_objects\", \"modulo\" \
             or \"jump\"; or \"random\", if it draws it or takes it from an attribute",
        ),
        (
            template("template = \"{pk}#{shard}\"\nshards = 4\nhash = \"random\"\nby = \"sort_key\""),
            "heatsink.toml:7: rule[1].by: has no meaning with hash = \"random\": an item can be in any shard; remove it",
        ),
        (
            template("template = \"{pk}#{bucket}\""),
            "heatsink.toml:1: rule[1]: strategy = \"template\" needs the field `bucket`, since its template has {bucket}: \"hour\", \"day\", \"week\" or \
             \"month\"",
        ),
        (
            template("template = \"{pk}#{shard}\"\nshards = 4\nhash = \"crc32\"\nhex_digits = 8"),
            "heatsink.toml:7: rule[1].hex_digits: has no meaning but with hash = \"md5\", \"sha1\" or \"sha256\"; remove it",
        ),
        (
            template("template = \"{pk}#{shard}\"\nshards = 4\nhash = \"sha1\"\nhex_digits = 41"),
            "heatsink.toml:7: rule[1].hex_digits: expected from 1 to 40 digits, or from -1 to -40 for those at the end, found 41",
        ),
        (
            template("template = \"{pk}#{bucket:%Y%m}\"\nbucket = \"day\""),
            "heatsink.toml:4: rule[1].template: expected a bucket with the fields of %Y-%m-%d, since bucket = \"day\"",
        ),
        (
            rule(
                "strategy = \"calculated\"\nshards = 4\nconsistency = \"strong\"\non_shard_error = \"partial\"",
            ),
            "heatsink.toml:6: rule[1].on_shard_error: has no meaning with consistency = \"strong\": what is missing was not seen at any moment; \
             remove one of them",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn strategies_in_words() {
    let text = r##"
[[rule]]
table = "Events"
strategy = "random"
shards = 10

[[rule]]
table = "OpsLog"
strategy = "bucket"
bucket = "day"
shards = 4

[[rule]]
table = "Threats"
strategy = "bucket"
bucket = "month"
time = { prefix = "ALERT#" }

[[rule]]
table = "Hand"
strategy = "template"
template = "{pk}#{bucket}#{shard}"
bucket = "day"
hash = "md5"
shards = 5
by = { attribute = "sk", separator = "#", part = 1 }
on_shard_error = "partial"
"##;
    let words: Vec<String> = rules(text).iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "rule 1 (line 2): all keys of table Events: spread over 10 by a hash of the sort key",
            "rule 2 (line 7): all keys of table OpsLog: a bucket for each day, 4 shards in each by sort key",
            "rule 3 (line 13): all keys of table Threats: a bucket for each month after \"ALERT#\" in the sort key",
            "rule 4 (line 19): all keys of table Hand: as \"{pk}#{bucket}#{shard}\", a bucket for each day, 5 shards by md5 of part 1 of the \
             sort key split at \"#\"; buckets that other writers begin are found by open Queries only among the last 100, and by Queries whose \
             range spans at most 8; a Query is answered without shards that cannot be read",
        ]
    );
}

#[test]
fn templates_and_own_suffixes_do_not_mix_and_times_need_a_sort_key_that_holds_them() {
    let template = "[[rule]]\ntable = \"T\"\nkeys = \"a*\"\nstrategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"md5\"\nshards = 4\n";
    let own = "[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nshards = 4\n";
    let table = schema("T", KeyType::S, Some(KeyType::S));
    let DesiredLayout::Impossible(reason) = rules(&format!("{template}{own}")).desired_layout(&table) else {
        panic!("mixed")
    };
    assert!(reason.contains("could be read as the other's"), "{reason}");
    assert!(matches!(rules(template).desired_layout(&table), DesiredLayout::Sharded(_)));
    let bucket =
        rules("[[rule]]\ntable = \"T\"\nstrategy = \"bucket\"\nbucket = \"day\"\ntime = { prefix = \"A#\" }");
    for (sort, reason) in [
        (KeyType::B, "the bucket comes from the time in the sort key, and sk is binary"),
        (KeyType::N, "`time.prefix` is for string sort keys, and sk is a number"),
    ] {
        assert_eq!(
            bucket.desired_layout(&schema("T", KeyType::S, Some(sort))),
            DesiredLayout::Impossible(format!("rule 1 (line 1) cannot hold for table T: {reason}"))
        );
    }
}

#[test]
fn numbers_have_shards_and_neither_buckets_nor_templates() {
    let table = schema("T", KeyType::N, Some(KeyType::S));
    for (strategy, refused) in [
        ("\"calculated\"\nshards = 4", None),
        ("\"random\"\nshards = 4", None),
        ("\"counter\"\nattributes = [\"votes\"]\nshards = 4", None),
        ("\"bucket\"\nbucket = \"day\"", Some("bucket")),
        ("\"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"md5\"\nshards = 4", Some("template")),
    ] {
        let desired =
            rules(&format!("[[rule]]\ntable = \"T\"\nstrategy = {strategy}")).desired_layout(&table);
        match refused {
            None => assert!(matches!(desired, DesiredLayout::Sharded(_)), "{strategy}: {desired:?}"),
            Some(what) => assert_eq!(
                desired,
                DesiredLayout::Impossible(format!(
                    "rule 1 (line 1) cannot hold for table T: its partition key pk is a number, which has room for a shard and not for a {what}"
                ))
            ),
        }
    }
}

fn indexed() -> TableSchema {
    let index = |name: &str, partition: (&str, KeyType), sort: Option<&str>, local| IndexSchema {
        name: name.to_owned(),
        key: KeySchema {
            partition: AttributeDefinition { name: partition.0.to_owned(), key_type: partition.1 },
            sort: sort.map(|name| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S }),
        }
        .into(),
        local,
        projects_all: true,
        included: Vec::new(),
    };
    let indexes = vec![
        index("by-status", ("status", KeyType::S), Some("sk"), false),
        index("by-number", ("n", KeyType::N), None, false),
        index("local", ("pk", KeyType::S), Some("status2"), true),
        index("same", ("pk", KeyType::S), Some("x"), false),
        index("inverted", ("sk", KeyType::S), Some("pk"), false),
        index("sorts", ("y", KeyType::S), Some("z"), false),
        index("sorted", ("z", KeyType::S), None, false),
    ];
    TableSchema { indexes, ..schema("T", KeyType::N, Some(KeyType::S)) }
}

fn of_index(name: &str) -> String {
    format!("[[rule]]\ntable = \"T\"\nindex = \"{name}\"\nstrategy = \"calculated\"\nshards = 4\n")
}

#[test]
fn a_rule_for_an_index_holds_for_its_partition_key_alone() {
    let layouts = sharded(rules(&of_index("by-status")).desired_layout(&indexed()));
    assert_eq!(layouts.to_string(), "index by-status, keys \"*\": 4 shards by primary key");
    assert!(layouts.of(b"7").is_none());
    let said = rules(&of_index("by-status")).iter().next().map(ToString::to_string).unwrap();
    assert!(
        said.ends_with(
            "as values of the partition key of index by-status: spread over 4 by a hash of the primary key"
        ),
        "{said}"
    );
}

#[test]
fn of_several_partition_key_attributes_the_first_that_can_be_is_spread() {
    let attribute = |(name, key_type): &(&str, KeyType)| AttributeDefinition {
        name: (*name).to_owned(),
        key_type: *key_type,
    };
    let with = |partition: &[(&str, KeyType)]| {
        let mut table = indexed();
        let index = table.indexes.iter_mut().find(|index| index.name == "by-status").unwrap();
        index.key.partition = partition.iter().map(attribute).collect();
        table
    };
    let [pk, n, z, status, other] = [
        ("pk", KeyType::S),
        ("n", KeyType::N),
        ("z", KeyType::S),
        ("status", KeyType::S),
        ("other", KeyType::B),
    ];
    let rules = rules(&of_index("by-status"));
    for partition in [&[status, other][..], &[pk, n, status], &[z, status, other]] {
        let layouts = sharded(rules.desired_layout(&with(partition)));
        assert_eq!(
            layouts.iter().filter_map(|one| one.attribute()).map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["status"]
        );
    }
    let DesiredLayout::Impossible(found) = rules.desired_layout(&with(&[pk, n, z])) else {
        panic!("nothing to spread")
    };
    for reason in ["is the table's own", "is a number", "is the sort key of the index sorts"] {
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn an_index_whose_key_cannot_be_spread_is_refused_with_the_reason() {
    for (name, reason) in [
        ("none", "it has no index none"),
        ("by-number", "is a number, and a number has no room for a shard"),
        ("local", "the index local is local"),
        ("same", "is the table's own: spread it there"),
        ("inverted", "is the table's sort key"),
        ("sorted", "is the sort key of the index sorts"),
    ] {
        let DesiredLayout::Impossible(found) = rules(&of_index(name)).desired_layout(&indexed()) else {
            panic!("{name}")
        };
        assert!(found.contains(reason), "{found}");
    }
    let bucket = "[[rule]]\ntable = \"T\"\nindex = \"i\"\nstrategy = \"bucket\"\nbucket = \"day\"\n";
    assert!(fault(bucket).contains("by a hash of the item's primary key only"));
    let by = format!("{}by = \"sort_key\"\n", of_index("i"));
    assert!(fault(&by).contains("has no meaning with `index`"));
}
