//! What already lies under the new physical keys: orphans of an earlier layout, and items of other
//! keys whose names have the form of a shard's.

use heatsink_reshard::{Outcome, Rule};

use crate::config::{Config, Op, script, scripts};
use crate::monitor::Item;
use crate::search::{breaks, exhaust};

/// An item of the key, left at its new place by an earlier layout.
fn orphan() -> Config {
    let orphans = [Some(Item { number: 5_000, expires: false }), None];
    let calls = [(Op::Put, 0), (Op::Delete, 0), (Op::Get, 0)];
    Config { orphans, ..Config::new(scripts(&calls, &[1])) }
}

/// Two that clear it, each stopping anywhere.
fn two_clear() -> Config {
    Config { fine: true, movers: 2, scripts: vec![script(&[&[Op::Put]])], ..orphan() }
}

#[test]
fn an_orphan_is_cleared_before_anything_moves() {
    exhaust("an orphan, 1 call", &orphan());
    exhaust("an orphan, two workers clear it, 1 call", &two_clear());
    breaks("an orphan, 1 call", &orphan().without(Rule::Surveyed));
}

#[test]
fn a_worker_that_wakes_late_clears_nothing() {
    for rule in [Rule::ClaimChecked, Rule::ClaimsEnded] {
        breaks("an orphan, 1 call", &orphan().without(rule));
    }
    for rule in [Rule::ClaimChecksRecord, Rule::ClaimsClosed] {
        breaks("an orphan, two workers clear it, 1 call", &two_clear().without(rule));
    }
}

#[test]
fn an_item_of_another_key_ends_the_move() {
    let foreign = script(&[&[Op::PutForeign]]);
    exhaust("an item of another key", &Config { ends: Outcome::Back, ..Config::new(vec![foreign]) });
}

#[test]
fn an_item_of_another_key_that_lands_late() {
    let late = Config::new(vec![script(&[&[Op::PutForeign, Op::Put]])]);
    exhaust("an item of another key, late", &late);
    breaks("an item of another key, late", &late.without(Rule::SurveyAfterStragglers));
}
