//! One item: every pair of calls of two gateways while it moves, and every triple.

use heatsink_reshard::{Outcome, Rule};

use crate::config::{Config, FIRST, Op, script, scripts};
use crate::search::{breaks, exhaust, exhaust_each};

const ALL: [(Op, usize); 6] =
    [(Op::Put, 0), (Op::Create, 0), (Op::Delete, 0), (Op::Get, 0), (Op::Update, 0), (Op::Add, 0)];
const FEW: [(Op, usize); 4] = [(Op::Put, 0), (Op::Delete, 0), (Op::Get, 0), (Op::Update, 0)];

/// One call of each of two gateways, of every kind.
fn pairs() -> Config {
    Config::new(scripts(&ALL, &[1, 1]))
}

/// To the new layout, and back.
fn there_and_back(calls: &[(Op, usize)], lengths: &[usize]) -> Config {
    Config { changes: 2, ..Config::new(scripts(calls, lengths)) }
}

#[test]
fn one_call_of_each_of_two_gateways() {
    exhaust("one item, 1 + 1 calls", &pairs());
}

#[test]
fn two_calls_of_one_gateway() {
    exhaust("one item, 2 calls", &Config::new(scripts(&ALL, &[2])));
}

#[test]
fn to_the_new_layout_and_back() {
    exhaust("there and back, 1 call", &there_and_back(&ALL, &[1]));
    exhaust("there and back, there again, 1 call", &Config { changes: 3, ..there_and_back(&ALL, &[1]) });
}

#[test]
fn a_cancelled_move() {
    let cancelled =
        Config { cancels: 1, fine: true, ends: Outcome::Back, ..Config::new(scripts(&ALL, &[1])) };
    exhaust("cancelled, 1 call", &cancelled);
    breaks("cancelled", &Config { ends: Outcome::Moved, ..cancelled }.without(Rule::CancelThroughHold));
}

#[test]
fn two_movers_that_die_twice() {
    let calls = [(Op::Put, 0), (Op::Delete, 0)];
    let movers = Config { movers: 2, crashes: 2, fine: true, ..Config::new(scripts(&calls, &[1])) };
    exhaust("two movers, two crashes, 1 call", &movers);
}

#[test]
fn transactions_that_are_sent_again() {
    let calls = [(Op::Put, 0), (Op::Delete, 0), (Op::Create, 0)];
    exhaust(
        "pulls sent again, 1 + 1 calls",
        &Config { retries: true, ..Config::new(scripts(&calls, &[1, 1])) },
    );
}

#[test]
fn an_item_that_does_not_fit_stays_and_is_named() {
    let large = Config {
        stored: vec![[FIRST, None]],
        too_large: Some(7),
        ends: Outcome::NotFinished(1),
        ..Config::new(scripts(&ALL, &[1, 1]))
    };
    exhaust("an item that does not fit, 1 + 1 calls", &large);
}

#[test]
fn each_rule_of_the_phases_is_needed() {
    for rule in [
        Rule::AcknowledgementsAwaited,
        Rule::HoldWaits,
        Rule::HoldReadsBoth,
        Rule::UncleanChecked,
        Rule::CleanCountsAll,
        Rule::CheckWaits,
        Rule::CheckHoldsDeletes,
        Rule::CheckHoldsDependent,
        Rule::CheckHoldsMissing,
        Rule::UpdatesGuarded,
        Rule::DeletePulls,
        Rule::DependentPulls,
        Rule::MissingPulls,
        Rule::CopyNeedsOld,
        Rule::NewReadAgain,
        Rule::MoverAwaited,
        Rule::HighWaterAfterHold,
        Rule::HighWaterAfterStragglers,
    ] {
        breaks("one item, 1 + 1 calls", &pairs().without(rule));
    }
    breaks("one item, 1 + 1 calls, results of old plans", &Config { acknowledges_early: true, ..pairs() });
}

#[test]
fn the_new_copy_is_read_first() {
    let calls = [(Op::Put, 0), (Op::Delete, 0), (Op::Get, 0)];
    breaks(
        "one item, 1 + 1 + 1 calls",
        &Config::new(scripts(&calls, &[1, 1, 1])).without(Rule::NewReadFirst),
    );
}

#[test]
fn the_movers_reads_are_strong() {
    // Lagging reads show the item as it was at the beginning.
    for stored in [[FIRST, None], [None, None]] {
        let lagging = Config { stored: vec![stored], ..Config::new(vec![script(&[&[Op::Put]])]) };
        breaks("one item, 1 call", &lagging.without(Rule::MoverReadsStrongly));
    }
}

#[test]
fn the_next_move_waits_for_the_last_and_its_workers() {
    let settled = Config { crashes: 0, ..there_and_back(&ALL, &[1, 1]) };
    breaks("there and back, 1 + 1 calls", &settled.without(Rule::Settled));
    for rule in [Rule::ClaimChecked, Rule::ClaimsEnded] {
        breaks("there and back, 1 call", &there_and_back(&ALL, &[1]).without(rule));
    }
}

// The long set: `cargo test --release -p heatsink-reshard --test model -- --ignored --nocapture`.

#[test]
#[ignore = "minutes; docs/develop/testing.md has what it showed"]
fn long_three_calls() {
    exhaust_each("one item, 1 + 1 + 1 calls", &Config::new(scripts(&FEW, &[1, 1, 1])));
    exhaust_each("one item, 2 + 1 calls", &Config::new(scripts(&FEW, &[2, 1])));
}

#[test]
#[ignore = "minutes; docs/develop/testing.md has what it showed"]
fn long_there_and_back() {
    exhaust_each("there and back, 1 + 1 calls", &there_and_back(&FEW, &[1, 1]));
}

#[test]
#[ignore = "an hour; not run to its end yet"]
fn long_four_calls() {
    exhaust_each("one item, 2 + 2 calls", &Config::new(scripts(&FEW, &[2, 2])));
}

#[test]
#[ignore = "hours"]
fn long_four_calls_of_every_kind() {
    exhaust_each("one item, 2 + 2 calls of every kind", &Config::new(scripts(&ALL, &[2, 2])));
}

#[test]
#[ignore = "hours"]
fn long_four_calls_there_and_back() {
    exhaust_each("there and back, 2 + 2 calls", &there_and_back(&ALL, &[2, 2]));
}
