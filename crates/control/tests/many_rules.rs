//! Twenty thousand rules: read in time that grows with their number and no faster, and a table
//! found among them without a look at each.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "it measures the time that passes for whoever waits")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use heatsink_control::{DesiredLayout, Rules};
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};

/// The quickest of a few runs: what else the machine does only adds to the others.
fn quickest<T>(mut run: impl FnMut() -> T) -> Duration {
    let one = |_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..4).map(one).min().unwrap()
}

/// Rules of many tables, of many tables' globs, of many keys of one table.
const FORMS: [(&str, &str); 4] =
    [("game-{}", "*"), ("team-{}-*", "*"), ("*", "user-{}-*"), ("Leaderboards", "game_{}")];

fn file(form: (&str, &str), rules: usize) -> String {
    let mut text = String::new();
    for at in 0..rules {
        let of = |pattern: &str| pattern.replace("{}", &at.to_string());
        let (table, keys) = (of(form.0), of(form.1));
        writeln!(
            text,
            "[[rule]]\ntable = \"{table}\"\nkeys = \"{keys}\"\nstrategy = \"calculated\"\nshards = 10\n"
        )
        .unwrap();
    }
    text
}

fn schema(name: &str) -> TableSchema {
    let attribute = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
    let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
    TableSchema { name: name.to_owned(), id: name.to_owned(), key, indexes: Vec::new() }
}

#[test]
fn twenty_thousand_rules_are_read_in_time_that_grows_with_their_number() {
    for form in FORMS {
        let [few, many] = [file(form, 2_500), file(form, 20_000)];
        let read = |text: &str| Rules::read("rules", text).unwrap();
        // Eight times the fewer, so that both take equally long: on a busy machine a short time is
        // found undisturbed where a long one is not.
        let few = quickest(|| (0..8).for_each(|_| drop(black_box(read(&few))))) / 8;
        let many = quickest(|| read(&many));
        // Eight times as many: 8 where the time grows with the number, 64 where with its square.
        assert!(many < few * 20, "{form:?}: {few:?} for 2,500 rules, {many:?} for 20,000");
        println!("{form:?}: {few:?} for 2,500 rules, {many:?} for 20,000");
    }
}

#[test]
fn a_table_is_found_among_twenty_thousand_rules_without_a_look_at_each() {
    for (form, name) in FORMS
        .into_iter()
        .zip(["game-1999", "team-1999-x", "Other", "Other"])
        .filter(|(form, _)| form.0 != "*")
    {
        let ask = |rules: usize| {
            let rules = Rules::read("rules", &file(form, rules)).unwrap();
            let schema = schema(name);
            quickest(|| (0..100).for_each(|_| drop(black_box(rules.desired_layout(&schema)))))
        };
        let (few, many) = (ask(2_000), ask(20_000));
        assert!(
            many < few * 5 + Duration::from_micros(200),
            "{form:?}: {few:?} among 2,000 rules, {many:?} among 20,000"
        );
    }
}

#[test]
fn reads_of_a_key_are_found_among_twenty_thousand_rules_of_its_table() {
    let ask = |rules: usize| {
        let rules = Rules::read("rules", &file(FORMS[3], rules)).unwrap();
        let schema = schema("Leaderboards");
        quickest(|| (0..100).for_each(|_| _ = black_box(rules.reads(&schema, b"game_1999"))))
    };
    let (few, many) = (ask(2_000), ask(20_000));
    assert!(many < few * 5 + Duration::from_micros(200), "{few:?} among 2,000 rules, {many:?} among 20,000");
}

#[test]
fn the_first_that_matches_holds_however_they_are_found() {
    let rules = Rules::read(
        "rules",
        "[[rule]]\ntable = \"ab*\"\nkeys = \"x*\"\nstrategy = \"calculated\"\nshards = 2\n\
         [[rule]]\ntable = \"a?c\"\nkeys = \"*y\"\nstrategy = \"calculated\"\nshards = 3\n\
         [[rule]]\ntable = \"abc\"\nstrategy = \"calculated\"\nshards = 4\n\
         [[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 5\n",
    )
    .unwrap();
    let shards = |table: &str, key: &str| {
        let DesiredLayout::Sharded(layouts) = rules.desired_layout(&schema(table)) else { panic!("{table}") };
        layouts.of(key.as_bytes()).unwrap().shards
    };
    for (table, key, expected) in [
        ("abc", "xy", 2),
        ("abc", "zy", 3),
        ("abc", "z", 4),
        ("abd", "x", 2),
        ("abd", "y", 5),
        ("axc", "y", 3),
        ("q", "x", 5),
    ] {
        assert_eq!(shards(table, key), expected, "{table} {key}");
    }
    // Whatever is covered is found to be, by whichever rule comes first.
    let covered = "[[rule]]\ntable = \"a*\"\nkeys = \"x*\"\nstrategy = \"calculated\"\nshards = 2\n\n\
         [[rule]]\ntable = \"ab?\"\nkeys = \"xy*z\"\nstrategy = \"calculated\"\nshards = 3\n";
    let fault = Rules::read("rules", covered).unwrap_err();
    assert_eq!((fault.line, fault.field.as_deref()), (7, Some("rule[2]")));
    assert!(fault.problem.contains("rule 1 (line 1) comes first"), "{fault}");
}
