//! Random requests to a table in memory, and through the router to one whose items lie in shards:
//! every answer, and what is stored at the end, is the same.
//!
//! Not here: a store with all that DynamoDB checks (the binary's differential test).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, its helpers too"
)]

mod both;
mod positions;
mod requests;
mod store;
mod worlds;

use fastrand::Rng;
use heatsink_dynamo::Operation;
use heatsink_layout::{Layout, Phase};
use serde_json::json;

use both::Both;
use requests::Requests;
use worlds::{World, calculated, in_slots, ranges};

/// Keys, one of which has the form of another one's shard.
const KEYS: &[&str] = &["a", "b", "a#~1"];

/// A random request.
fn one(both: &mut Both, requests: &mut Requests, exact: bool) {
    match requests.rng.u8(..12) {
        0..4 => {
            let (operation, body) = requests.point();
            both.same(operation, &requests.reporting(body));
        }
        4 | 5 => {
            let (operation, body) = requests.several();
            both.same(operation, &requests.reporting(body));
        }
        6 => {
            let body = requests.query();
            let body = requests.reporting(body);
            let exact = exact && body.get("IndexName").is_none();
            both.same_pages(Operation::Query, &body, exact);
        }
        7 => {
            let body = requests.scan();
            both.same_pages(Operation::Scan, &requests.reporting(body), false);
        }
        8 => {
            let (operation, body) = requests.legacy_point();
            both.same(operation, &body);
        }
        9 => {
            let (operation, body) = requests.legacy_pages();
            both.same_pages(operation, &body, exact && operation == Operation::Query);
        }
        10 => {
            let (operation, body) = requests.execute_several();
            both.same(operation, &requests.reporting(body));
        }
        _ => both.same_statement(&requests.execute(), requests.rng.bool()),
    }
}

/// Random requests in one world. Returns how many of them were refused.
fn play(seed: u64, world: World, counters: bool) -> usize {
    let mut both = Both::new(world);
    let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters };
    for _ in 0..60 {
        one(&mut both, &mut requests, true);
    }
    both.same_contents();
    both.refused
}

#[test]
fn calculated_shards_answer_as_one_key() {
    assert_eq!(refused(World::calculated(4), false), 0);
}

#[test]
fn slots_by_name_answer_as_one_key() {
    for slots in [&[0, 1, 4, 3][..], &[2, 1, 0], &[7]] {
        assert_eq!(refused(World::in_slots(slots), false), 0, "{slots:?}");
    }
}

/// Split points between the sort keys, at one of them, and around those that there are.
#[test]
fn ranges_answer_as_one_key() {
    for (points, slots) in [
        (&["2025-01-02"][..], &[0, 1][..]),
        (&["2024", "2025-01-02", "2025-01-03"], &[0, 3, 1, 2]),
        (&["2025-01-01", "2025-01-02", "2025-01-02#", "2025-01-08", "x", "y"], &[4, 1, 2, 0, 3, 5, 6]),
    ] {
        assert_eq!(refused(World::ranges(points, slots), false), 0, "{points:?}");
    }
}

#[test]
fn binary_keys_and_numbers_answer_as_strings_do() {
    for seed in 0..60 {
        let mut both = Both::new(World::binary(4));
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters: false };
        for _ in 0..60 {
            let (operation, body) = match requests.rng.u8(..4) {
                0 => requests.several(),
                1 => (Operation::Query, requests.query()),
                2 => (Operation::Scan, requests.scan()),
                _ => requests.point(),
            };
            let Some(body) = requests::binary(&body) else { continue };
            match operation {
                Operation::Query => both.same_pages(operation, &body, body.get("IndexName").is_none()),
                Operation::Scan => both.same_pages(operation, &body, false),
                _ => both.same(operation, &body),
            }
        }
        both.same_contents();
        assert_eq!(both.refused, 0);
    }
}

/// How many of 3,600 requests Heatsink refuses, which are then not compared. More than expected of
/// a world are a fault.
fn refused(world: World, counters: bool) -> usize {
    (0..60).map(|seed| play(seed, world.clone(), counters)).sum()
}

#[test]
fn counters_answer_as_one_key() {
    assert!(refused(World::counters(), true) <= 720);
}

#[test]
fn assigned_shards_answer_as_one_key() {
    assert!(refused(World::assigned(), false) <= 100);
}

#[test]
fn buckets_answer_as_one_key() {
    assert_eq!(refused(World::buckets(), false), 0);
}

#[test]
fn a_spread_index_key_answers_as_one_value() {
    assert!(refused(World::spread(), false) <= 15);
}

#[test]
fn a_statement_may_compare_a_spread_value_with_a_list() {
    let item = json!({ "pk": { "S": "a" }, "sk": { "S": "b" }, "team": { "S": "red" }, "at": { "S": "1" } });
    for world in [World::spread(), World::migrating(false), World::migrating(true)] {
        let mut both = Both::new(world);
        both.same(Operation::PutItem, &json!({ "TableName": "Tab", "Item": item }));
        for list in ["['red', 'blue']", "['blue', 'green']"] {
            let text = format!("UPDATE Tab SET v = 'y' WHERE pk = 'a' AND sk = 'b' AND team IN {list}");
            both.same(Operation::ExecuteStatement, &json!({ "Statement": text }));
        }
        both.same_contents();
        assert_eq!(both.refused, 0);
    }
}

/// Items are written as before, then as after.
#[test]
fn an_index_key_that_migrates_answers_as_one_value() {
    for seed in 0..60 {
        let mut both = Both::new(World::migrating(false));
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters: false };
        for _ in 0..30 {
            one(&mut both, &mut requests, true);
        }
        both.sharded.world = World::migrating(true);
        for _ in 0..30 {
            one(&mut both, &mut requests, true);
        }
        both.same_contents();
    }
}

/// Pages that end before their limit, and batches of which a part is left for later.
#[test]
fn short_pages_and_unfinished_batches_add_up() {
    let worlds = [
        World::calculated(4),
        World::counters(),
        World::assigned(),
        World::buckets(),
        World::spread(),
        World::ranges(&["2025-01-02", "2025-01-05"], &[0, 1, 2]),
    ];
    for (world, counters) in worlds.into_iter().zip([false, true, false, false, false, false]) {
        for seed in 0..30 {
            let mut both = Both::new(world.clone());
            let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters };
            both.sharded.store.page = requests.rng.usize(1..5);
            both.sharded.store.leaves = requests.rng.usize(1..4);
            for _ in 0..60 {
                one(&mut both, &mut requests, false);
            }
            both.same_contents();
        }
    }
}

/// The pages of the old and of the new shards end in different places.
#[test]
fn short_pages_of_a_key_that_moves_add_up() {
    for seed in 0..60 {
        let (from, to) = [
            (Layout::none(), calculated(4)),
            (calculated(4), calculated(2)),
            (in_slots(&[2, 0, 1]), in_slots(&[0, 2, 1])),
            (ranges(&["2025-01-02"]), ranges(&["2025-01-02", "2025-01-05"])),
            (calculated(2), ranges(&["2025-01-02", "2025-01-05"])),
        ][(seed % 5) as usize]
            .clone();
        let mut both = Both::new(World::moving(from, to, Phase::Reserve));
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: &["a", "b", "a#"], counters: false };
        both.sharded.store.page = requests.rng.usize(1..5);
        for phase in [Phase::Reserve, Phase::Prepare, Phase::Check, Phase::Move] {
            both.sharded.enter(phase);
            for _ in 0..20 {
                one(&mut both, &mut requests, false);
            }
            both.same_contents();
        }
    }
}

/// Items are stored before the key moves; requests come in every phase; a mover moves none of them.
#[test]
fn a_key_that_moves_answers_as_one_key() {
    for seed in 0..260 {
        let (from, to) = [
            (Layout::none(), calculated(4)),
            (calculated(4), calculated(2)),
            (calculated(2), Layout::none()),
            // One other slot of four; two that are swapped, and a third; a whole key under another slot.
            (calculated(4), in_slots(&[0, 1, 6, 3])),
            (in_slots(&[1, 0, 5]), in_slots(&[0, 1, 2])),
            (Layout::none(), in_slots(&[5])),
            (in_slots(&[5]), in_slots(&[3, 5, 0, 1])),
            // Into ranges, one of them split and shifted, merged, and back.
            (Layout::none(), ranges(&["2025-01-02", "2025-01-05"])),
            (ranges(&["2025-01-02"]), ranges(&["2025-01-01", "2025-01-03"]).with_slots(&[0, 2, 1]).unwrap()),
            (ranges(&["2025-01-02", "2025-01-05"]), ranges(&["2025-01-02"])),
            (ranges(&["2025-01-03"]), calculated(4)),
            (calculated(3), ranges(&["2025-01-03"])),
            (ranges(&["2025-01-03", "2025-01-04"]), Layout::none()),
        ][(seed % 13) as usize]
            .clone();
        let mut both = Both::new(World::moving(from, to, Phase::Reserve));
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: &["a", "b", "a#"], counters: false };
        for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Check, Phase::Move] {
            both.sharded.enter(phase);
            for _ in 0..20 {
                one(&mut both, &mut requests, true);
            }
            both.same_contents();
        }
    }
}
