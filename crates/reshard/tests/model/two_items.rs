//! Two items of the key, and Queries over both: complete, in order, each item once, and each as
//! linearizable as a read of it alone.

use heatsink_reshard::Rule;

use crate::config::{Call, Config, FIRST, Op, Script};
use crate::search::{breaks, exhaust, exhaust_each};

const WRITES: [Op; 4] = [Op::Put, Op::Create, Op::Delete, Op::Update];

/// A Query beside a write to either item.
fn query_and(writes: usize) -> Vec<Script> {
    let one = || WRITES.iter().flat_map(|op| [(*op, 0), (*op, 1)]);
    let runs: Vec<Vec<Call>> = match writes {
        1 => one().map(|call| vec![call]).collect(),
        _ => one().flat_map(|first| one().map(move |second| vec![first, second])).collect(),
    };
    runs.into_iter().map(|run| vec![vec![(Op::Query, 0)], run]).collect()
}

fn query(writes: usize) -> Config {
    let stored = vec![[FIRST, FIRST], [None, FIRST]];
    Config { items: 2, stored, late: 1, crashes: 0, ..Config::new(query_and(writes)) }
}

#[test]
fn a_query_beside_a_write() {
    exhaust("two items, a Query + 1 call", &query(1));
}

#[test]
fn each_range_has_its_own_reads() {
    for rule in [Rule::NewReadAgain, Rule::RangeReadAgain] {
        breaks("two items, a Query + 1 call", &query(1).without(rule));
    }
}

#[test]
#[ignore = "minutes; docs/develop/testing.md has what it showed"]
fn long_query_beside_two_writes() {
    exhaust_each("two items, a Query + 2 calls", &query(2));
}
