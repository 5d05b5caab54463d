//! Calls that become one by their rule: writes of an item that are combined, reads that are
//! coalesced or answered from memory. Each answer is the one that the unsharded store gives to the
//! same call, alone and in order of arrival.
//!
//! In worlds of their own: a read that another gateway's write is not seen by, as a rule with a
//! cache allows, no unsharded store would answer so.

use std::sync::Arc;

use fastrand::Rng;
use futures::executor::block_on;
use futures::future::join_all;
use heatsink_dynamo::Operation;
use serde_json::json;

use crate::compare;
use crate::generate::{self, Step};
use crate::judge::Judge;
use crate::late::Late;
use crate::shrink::Case;
use crate::world::{self, World};
use crate::{counters, moving, outside, physical, recorded};

const ALL: &str = "combine = true, combine_streams = true, coalesce = true, cache_max_age_ms = 10000";

/// The worlds; in the first ones every write of one item is one call.
const RULES: &[&str] = &[
    r#"rule = [{ table = "*", strategy = "none", ALL }]"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 4, ALL }]"#,
    r##"rule = [
        { table = "Strings", strategy = "calculated", shards = 7, by = { attribute = "sk", separator = "#", part = 1 }, ALL },
        { table = "*", keys = "g*", strategy = "none", ALL },
        { table = "*", strategy = "random", shards = 3, ALL },
    ]"##,
    r##"rule = [{ table = "*", strategy = "template", template = "{pk}#{shard}", hash = "md5", shards = 4, ALL }]"##,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 3, ALL },
        { table = "*", index = "t-b", strategy = "calculated", shards = 4 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 5 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
    ]"#,
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "day", shards = 2, ALL }]"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "counter", attributes = ["c"], shards = 3, coalesce = true, cache_max_age_ms = 10000 },
        { table = "*", keys = "a*", strategy = "calculated", shards = 3, ALL },
    ]"#,
    r#"rule = [{ table = "*", strategy = "none", ALL }]
    # keys on record"#,
    r#"rule = [{ table = "*", strategy = "none", ALL }]
    # keys move"#,
];

/// In these a write is one call, and arrives as it was sent. With spread keys of indexes an update
/// looks at its item first, and others may go before it.
const ONE_CALL: usize = 4;

fn case(seed: u64, rules: &str, steps: usize) -> Case {
    let mut rng = Rng::with_seed(seed);
    let rules = rules.replace("ALL", ALL);
    let tables = counters::tables(&rules);
    let mut steps = generate::steps(&mut rng, &tables, steps);
    if counters::has(&rules) {
        counters::count(&mut rng, &mut steps);
    }
    if recorded::moves(&rules) {
        moving::hide(&mut steps);
        outside::hide(&mut steps);
        // The number of a key that moves is told as it is stored, not as it was sent.
        steps.retain(|step| step.body.get("ReturnItemCollectionMetrics").is_none());
    }
    // A number that shards of another are stored under is refused by design, also within a batch.
    steps.retain(|step| !step.body.to_string().contains("2.50000070955"));
    Case { rules, steps, tables, large: false, judge: Judge::Engine }
}

#[test]
fn reads_and_writes_that_may_become_one_answer_as_alone() {
    let first = crate::setting("HEATSINK_SEED", 1);
    let cases = crate::setting("HEATSINK_STEPS", 10_000).div_ceil(400);
    for seed in first..first + cases {
        let rules = RULES[usize::try_from(seed).unwrap() % RULES.len()];
        let case = case(seed, rules, 400);
        if let Some(mismatch) = case.run() {
            let (small, mismatch) = case.shrink(mismatch);
            let steps: Vec<String> =
                small.steps.iter().map(|step| format!("{} {}", step.operation, step.body)).collect();
            panic!("seed {seed}, {}\n{}\nafter\n{}", small.rules, mismatch.what, steps.join("\n"));
        }
    }
}

/// A write of one item by a well-formed key, and that key.
fn holder(step: &Step) -> Option<&'static str> {
    let holder = match Operation::by_name(&step.operation)? {
        Operation::PutItem => "Item",
        Operation::UpdateItem | Operation::DeleteItem => "Key",
        _ => return None,
    };
    step.body[holder]["pk"].is_object().then_some(holder)
}

#[test]
fn writes_of_one_item_that_come_together_answer_as_one_after_the_other() {
    let first = crate::setting("HEATSINK_SEED", 1);
    let cases = crate::setting("HEATSINK_STEPS", 10_000).div_ceil(200);
    let mut together = 0;
    for seed in first..first + cases {
        let rules = RULES[usize::try_from(seed).unwrap() % ONE_CALL];
        let case = case(seed, rules, 200);
        let world = World::new(case.judge, &case.tables, &case.rules);
        let late = Late::new(world.raw.clone(), seed);
        let own = World::before(world.raw.clone(), Arc::new(late), &case.rules);
        let plain = world::unsharded(case.judge, &case.tables);
        for table in &case.tables {
            let scan = Step { operation: "Scan".to_owned(), body: json!({ "TableName": table.name }) };
            compare::run(&own.service, &scan);
        }
        let mut rng = Rng::with_seed(seed);
        // A stream shows one record for all that go as one.
        for step in case.steps.iter().filter(|step| step.operation != "GetRecords") {
            let mut burst = vec![step.clone()];
            // A rule that spreads keys is for no table without a sort key: there each write goes by itself.
            let is_ruled = |table: &&crate::schema::Table| {
                step.body["TableName"] == table.name && (table.sort.is_some() || rules == RULES[0])
            };
            let of_first = holder(step).filter(|_| case.tables.iter().any(|table| is_ruled(&table)));
            if let Some(of_first) = of_first {
                let key = step.body[of_first].clone();
                let same_table =
                    |next: &&Step| holder(next).is_some() && next.body["TableName"] == step.body["TableName"];
                let others = case.steps.iter().filter(same_table);
                for mut other in others.skip(rng.usize(..20)).take(rng.usize(..9)).cloned() {
                    let holder = holder(&other).unwrap();
                    for name in ["pk", "sk"] {
                        if key[name].is_object() {
                            other.body[holder][name] = key[name].clone();
                        }
                    }
                    burst.push(other);
                }
            }
            together += burst.len() - 1;
            // Who waits for a table to be looked up arrives in any order.
            let table = step.body["TableName"].as_str().unwrap_or_default();
            let _ = block_on(own.control.resolve(&[table]));
            let calls = burst.iter().map(|step| compare::run_beside_others(&own.service, step));
            let answers = block_on(join_all(calls));
            for (step, right) in burst.iter().zip(answers) {
                if compare::refused_by_design(step, &right).is_some() {
                    continue;
                }
                let mut left = compare::run(&*plain, step);
                if burst.len() > 1 {
                    // Each is told its part of what the one call consumed.
                    left.capacities.clone_from(&right.capacities);
                }
                if let Some(what) = compare::difference(&case, step, &left, &right) {
                    let burst: Vec<String> =
                        burst.iter().map(|step| format!("{} {}", step.operation, step.body)).collect();
                    panic!(
                        "seed {seed}, {}\n{} {}\n{what}\nin\n{}",
                        case.rules,
                        step.operation,
                        step.body,
                        burst.join("\n")
                    );
                }
            }
        }
        let misplaced = physical::misplaced(&case, &*plain, &own);
        assert_eq!(misplaced, None, "seed {seed}");
    }
    println!("{cases} cases, {together} writes beside others of their item");
}
