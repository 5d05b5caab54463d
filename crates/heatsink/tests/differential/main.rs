//! The heart of the tests: the same calls against an unsharded store and through sharding on
//! another; the answers must be equal. The store is the embedded engine, and in a test of its own
//! DynamoDB Local (`local`), which needs Java.
//!
//! A run is many cases, each with fresh stores, tables and a seed of its own. A failing case is cut
//! down to the requests that matter, written to a file, and printed with the command that replays
//! it.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `HEATSINK_SEED` | the first seed | 1 |
//! | `HEATSINK_STEPS` | steps in all | 40,000; with DynamoDB Local 20,000 |
//! | `HEATSINK_CASE_STEPS` | steps in a case | 400 |
//! | `HEATSINK_FAILURES` | the failing cases after which a run ends | 5 |
//! | `HEATSINK_RULES` | only rules that hold this text, such as `counter` | all |
//! | `HEATSINK_DYNAMODB_LOCAL` | the URL of DynamoDB Local, without `-sharedDb`; `clients/local-judge` sets it | |
//! | `HEATSINK_REPLAY` | a file of requests to replay; nothing else is run | |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

mod across;
mod changing;
mod compare;
mod concurrent;
mod counters;
mod generate;
mod judge;
mod lacking;
#[path = "../late/store.rs"]
mod late;
mod legacy;
mod local;
mod matrix;
mod mistakes;
mod moving;
mod outside;
mod partiql;
mod physical;
mod recorded;
mod replay;
mod schema;
mod shared_calls;
mod shrink;
mod stepping;
mod strategies;
mod streams;
mod tables;
mod together;
mod transact;
mod valued;
mod values;
mod widening;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastrand::Rng;

use crate::judge::Judge;
use crate::shrink::{Case, Tally};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn sharded_answers_equal_unsharded_ones() {
    compare_cases(Judge::Engine, 40_000);
}

/// The same with DynamoDB Local in the place of the embedded engine (`local`).
#[test]
#[ignore = "the second judge, DynamoDB Local, needs Java: `clients/local-judge` starts it and runs this"]
fn sharded_answers_equal_those_of_dynamodb_local() {
    compare_cases(Judge::DynamoDbLocal, 20_000);
}

fn compare_cases(judge: Judge, steps: u64) {
    if let Ok(file) = std::env::var("HEATSINK_REPLAY") {
        return replay::run(&file, judge);
    }
    let first = setting("HEATSINK_SEED", 1);
    let in_case = setting("HEATSINK_CASE_STEPS", 400);
    let cases = setting("HEATSINK_STEPS", steps).div_ceil(in_case);
    // The first few failures of a long run tell more than the first.
    let most_failures = setting("HEATSINK_FAILURES", 5) as usize;
    let next = AtomicUsize::new(0);
    let (tally, failures) = (Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    // A worker waits for the server half of the time.
    let workers = if judge == Judge::DynamoDbLocal { 2 * workers } else { workers };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed) as u64;
                    let failed = failures.lock().expect("a worker panicked").len();
                    if case >= cases || failed >= most_failures {
                        return;
                    }
                    if cases >= judge.long_run() && case.is_multiple_of(cases.div_ceil(100)) {
                        println!("case {case} of {cases}, {failed} failures");
                    }
                    if let Some(failure) = run_case(judge, first + case, in_case as usize, &tally) {
                        println!("{failure}");
                        failures.lock().expect("a worker panicked").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("a worker panicked");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    println!("{} steps in {cases} cases from seed {first}: no difference", cases * in_case);
    let tally = tally.into_inner().expect("a worker panicked");
    for (operation, (steps, accepted)) in &tally.steps {
        println!("{operation}: {accepted} of {steps} accepted");
        // Equal refusals prove little.
        let least = accepted * judge.refuses_fewer_than();
        assert!(*steps < 200 || least > *steps, "most {operation} steps are refused");
    }
    for (refusal, times) in &tally.skipped {
        println!("{times} skipped, refused by design: {refusal}");
    }
}

/// So that the test above cannot pass because nothing was sharded.
#[test]
fn items_of_one_key_lie_under_all_its_physical_keys() {
    for shards in [2_u16, 4, 13] {
        let rules = format!(r#"rule = [{{ table = "*", strategy = "calculated", shards = {shards} }}]"#);
        let tables = schema::tables();
        let world = world::World::new(Judge::Engine, &tables, &rules);
        for (name, key) in [
            ("Strings", serde_json::json!({"S": "game"})),
            ("NumericKey", serde_json::json!({"N": "-12.50"})),
        ] {
            for number in 0..200 {
                let item = serde_json::json!({"pk": key, "sk": {"S": format!("s{number}")}});
                let body = serde_json::json!({"TableName": name, "Item": item});
                let step = generate::Step { operation: "PutItem".to_owned(), body };
                assert_eq!(compare::run(&world.service, &step).error, None);
            }
            let table = tables.iter().find(|table| table.name == name).unwrap();
            assert_eq!(physical::partition_keys(table, &*world.raw).len(), usize::from(shards));
        }
    }
}

/// The same of index keys between two steps, and of values on record: items hold both forms of one
/// value.
#[test]
fn index_keys_lie_in_the_forms_that_their_world_is_for() {
    for (rules, least) in
        [("# from 2 shards", 5), ("# from 5 shards", 5), ("# values on record", 3), ("# values migrate", 6)]
    {
        let all = world::RESPREAD.iter().filter(|one| one.ends_with(rules));
        for rules in all {
            let tables = schema::tables();
            let world = world::World::new(Judge::Engine, &tables, rules);
            for number in 0..100 {
                let item = serde_json::json!({"pk": {"S": "x"}, "sk": {"S": format!("s{number}")}, "t": {"S": "t0"}});
                let body = serde_json::json!({"TableName": "Indexed", "Item": item});
                let step = generate::Step { operation: "PutItem".to_owned(), body };
                assert_eq!(compare::run(&world.service, &step).error, None);
            }
            let table = tables.iter().find(|table| table.name == "Indexed").unwrap();
            let items = physical::items(table, &*world.raw);
            let forms: std::collections::BTreeSet<String> =
                items.iter().map(|item| item["t"].to_string()).collect();
            assert!(forms.len() >= least, "{rules}: {forms:?}");
        }
    }
}

/// Former forms of a value lie in both places of a key that moves.
#[test]
fn former_forms_lie_where_a_key_was_and_where_it_goes() {
    for rules in world::RESPREAD.iter().filter(|one| valued::beside(one)) {
        let tables = schema::tables();
        let world = world::World::new(Judge::Engine, &tables, rules);
        for number in 0..100 {
            let item =
                serde_json::json!({"pk": {"S": "b"}, "sk": {"S": format!("s{number}")}, "t": {"S": "t0"}});
            let body = serde_json::json!({"TableName": "Indexed", "Item": item});
            let step = generate::Step { operation: "PutItem".to_owned(), body };
            moving::stir(&tables, &world, &step);
            valued::stir(&tables, &world, &step);
            assert_eq!(compare::run(&world.service, &step).error, None);
        }
        let table = tables.iter().find(|table| table.name == "Indexed").unwrap();
        let items = physical::items(table, &*world.raw);
        // By three shards it is written, seven and one it had.
        let former = |item: &&serde_json::Value| {
            ["t0#~3", "t0#~4", "t0#~5", "t0#~6"].iter().any(|form| item["t"]["S"] == *form)
        };
        let keys: std::collections::BTreeSet<String> =
            items.iter().filter(former).map(|item| item["pk"].to_string()).collect();
        assert!(keys.len() > 1, "{rules}: {keys:?}");
    }
}

/// A text without its runs of filling (`generate::swell`).
fn short(text: String) -> String {
    text.replace(&"x".repeat(1000), "")
}

/// The first part of a long text.
fn start(text: &str) -> String {
    text.chars().take(1000).collect()
}

fn run_case(judge: Judge, seed: u64, in_case: usize, tally: &Mutex<Tally>) -> Option<String> {
    let mut rng = Rng::with_seed(seed);
    let rules = world::draw(&mut rng, judge);
    let mut tables = counters::tables(&rules);
    tables.retain(|table| judge.has(table.name));
    let mut steps = generate::steps(&mut rng, &tables, judge.steps_to_draw(in_case));
    if counters::has(&rules) {
        counters::count(&mut rng, &mut steps);
    }
    if recorded::moves(&rules) {
        moving::hide(&mut steps);
    }
    if widening::has(&rules) {
        widening::hide(&mut steps);
    }
    if outside::has(&rules) || recorded::moves(&rules) {
        outside::hide(&mut steps);
    }
    if judge == Judge::DynamoDbLocal {
        lacking::leave_out(&mut steps, &rules);
        steps.truncate(in_case);
    }
    let large = seed % 10 == 9;
    if large {
        generate::swell(&mut rng, &mut steps);
    }
    let case = Case { rules, steps, tables, large, judge };
    let mut met = Tally::default();
    let mismatch = case.run_counting(&mut met);
    tally.lock().expect("a worker panicked").add(met);
    let mismatch = mismatch?;
    println!("seed {seed}, step {}: {}\nis cut down", mismatch.step, start(&short(mismatch.what.clone())));
    let (small, mismatch) = case.shrink(mismatch);
    let requests: Vec<String> = small
        .steps
        .iter()
        .map(|step| format!("  {} {}", step.operation, short(step.body.to_string())))
        .collect();
    let file = replay::keep(&small, seed);
    Some(format!(
        "seed {seed}, rules {}\n{}\nafter these {} requests:\n{}\nreplay: HEATSINK_REPLAY={file} {}",
        small.rules,
        short(mismatch.what),
        requests.len(),
        requests.join("\n"),
        judge.replays_with(),
    ))
}
