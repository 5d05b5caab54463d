//! Buckets from one on that nothing was written to yet get another number of shards
//! ([`widening`](crate::widening)). The item lies in such a bucket, or will: a write that was
//! planned before may land at any time.

use heatsink_reshard::{Outcome, Phase, Rule, State};

use crate::config::{Op, script, scripts};
use crate::widening::{Config, DAY, breaks, exhaust};
use crate::world::View;

const ALL: [(Op, usize); 5] = [(Op::Count, 0), (Op::Put, 0), (Op::Delete, 0), (Op::Get, 0), (Op::Query, 0)];

/// A write that nobody waits for any more, and a client that looks for it by a Scan, which meets
/// items wherever they lie, and by its key.
fn looked_for() -> Config {
    Config { scripts: vec![script(&[&[Op::Put], &[Op::Query, Op::Get]])], ..pairs() }
}

/// One change, from a bucket on that the item's is, or that lies before it.
fn pairs() -> Config {
    Config { stored: vec![None], steps: Some(&[DAY]), ..Config::new(scripts(&ALL, &[1, 1])) }
}

#[test]
fn buckets_step_under_their_clients() {
    exhaust("a step, 1 + 1 calls", &pairs());
    exhaust("a step, 2 + 1 calls", &Config { scripts: scripts(&ALL, &[2, 1]), ..pairs() });
    exhaust("a step to fewer shards, 1 + 1 calls", &Config { shards: &[2, 1], ..pairs() });
    exhaust(
        "a step behind the item, 1 + 1 calls",
        &Config { stored: vec![None, Some(7)], steps: Some(&[DAY + 1]), ..pairs() },
    );
}

/// What lies in such a bucket already ends the change.
#[test]
fn a_step_before_an_item_is_not_made() {
    let there = Config { stored: vec![Some(7)], ends: Outcome::Back, ..pairs() };
    exhaust("a step before an item, 1 + 1 calls", &there);
    breaks("a step before an item, 1 + 1 calls", &there.without(Rule::Surveyed));
}

#[test]
fn late_writes_into_the_buckets_of_a_step_are_waited_for() {
    for rule in [Rule::WidenReadersFirst, Rule::AcknowledgementsAwaited] {
        breaks("a step, 1 + 1 calls", &pairs().without(rule));
    }
    exhaust("a step, a late write", &looked_for());
    breaks("a step, a late write", &looked_for().without(Rule::SurveyAfterStragglers));
    breaks("a step, results of old plans", &Config { acknowledges_early: true, late: 0, ..pairs() });
    breaks("a step, writes that do not wait", &Config { holds: false, late: 0, ..pairs() });
}

/// The second one replaces the first, or begins behind it.
#[test]
fn one_step_after_the_other() {
    for steps in [&[DAY, DAY], &[DAY, DAY - 1], &[DAY - 1, DAY]] {
        let twice = Config { shards: &[1, 2, 3], steps: Some(steps), ..pairs() };
        exhaust("two steps, 1 + 1 calls", &twice);
    }
    let late = Config { shards: &[1, 2, 3], steps: Some(&[DAY, DAY - 1]), ..looked_for() };
    exhaust("two steps, a late write", &late);
    let behind = Config { shards: &[1, 2, 3], steps: Some(&[DAY, DAY + 1]), ..pairs() };
    exhaust("two steps, one behind the item, 1 + 1 calls", &behind);
}

#[test]
fn a_step_is_cancelled_only_in_reserve() {
    let cancelled = Config { cancels: 1, ends: Outcome::Back, ..pairs() };
    exhaust("a step, cancelled, 1 + 1 calls", &cancelled);
    // Readers in PREPARE would not find what is put under the old number.
    breaks("a step, cancelled in PREPARE", &cancelled.without(Rule::CancelThroughHold));
}

#[test]
fn coordinators_of_a_step_die() {
    let dies = Config { deaths: 1, ..pairs() };
    exhaust("a step, a coordinator dies, 1 + 1 calls", &dies);
    breaks("a step, a coordinator dies", &dies.clone().without(Rule::TakeoverWaits));
    let late = Config { deaths: 1, ..looked_for() };
    breaks("a step, a coordinator dies, a late write", &late.without(Rule::TakeoverUnclean));
    let undead =
        Config { undead: true, cancels: 1, scripts: vec![script(&[&[Op::Put], &[Op::Get]])], ..dies };
    breaks("a step, a coordinator taken for dead", &undead.without(Rule::RecordByVersion));
}

#[test]
#[ignore = "a quarter of a minute of a core"]
fn long_coordinator_of_a_step_that_was_taken_for_dead() {
    exhaust(
        "a step, a coordinator taken for dead, 1 + 1 calls",
        &Config { deaths: 1, undead: true, cancels: 1, ..pairs() },
    );
}

#[test]
fn readers_know_the_new_number_before_writers() {
    let at = |phase| View::plain(1, 0, State::Moving { phase, closing: false });
    assert_eq!(pairs().slot(at(Phase::Reserve)), (0, true));
    assert_eq!(pairs().slot(at(Phase::Prepare)), (1, true));
    let before = Config { steps: Some(&[DAY + 1]), ..pairs() };
    assert_eq!(before.slot(at(Phase::Prepare)), (0, false));
}
