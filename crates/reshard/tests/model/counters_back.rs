//! A counter that gets fewer fragments, or becomes a whole key ([`widening`](crate::widening)).

use heatsink_reshard::{Change, Coordinator, Do, Outcome, Phase, Rule, Rules, Seen, Side, State};

use crate::config::{Op, Script, script, scripts};
use crate::widening::{Config, breaks, exhaust};
use crate::world::{NOW, STRAGGLER, View};

const ALL: [(Op, usize); 4] = [(Op::Count, 0), (Op::Put, 0), (Op::Delete, 0), (Op::Get, 0)];

/// A counter of two fragments that becomes a whole key.
fn back(scripts: Vec<Script>) -> Config {
    Config { shards: &[2, 1], part: Some(3), ..Config::new(scripts) }
}

fn pairs() -> Config {
    back(scripts(&ALL, &[1, 1]))
}

/// Reads that are no snapshots, beside one ADD: of two they may show the second alone.
fn reads() -> Config {
    let beside = script(&[&[Op::Count], &[Op::Get, Op::Get]]);
    let before = script(&[&[Op::Count, Op::Get], &[Op::Get]]);
    Config { apart: true, ..back(vec![beside, before]) }
}

#[test]
fn a_counter_is_narrowed_under_its_clients() {
    exhaust("narrowing, 1 + 1 calls", &pairs());
    exhaust("narrowing 3 to 2, 1 + 1 calls", &Config { shards: &[3, 2], ..pairs() });
    exhaust("narrowing 3 to 1, 1 + 1 calls", &Config { shards: &[3, 1], ..pairs() });
}

#[test]
fn reads_count_what_is_folded_once() {
    exhaust("narrowing, reads in parts", &reads());
    exhaust("narrowing 3 to 1, reads in parts", &Config { shards: &[3, 1], ..reads() });
    breaks("narrowing, reads in parts", &reads().without(Rule::FoldSeen));
    breaks("narrowing, reads in parts", &reads().without(Rule::AcknowledgementsAwaited));
    breaks("narrowing, results of old plans", &Config { acknowledges_early: true, late: 0, ..reads() });
}

#[test]
fn what_may_land_late_is_waited_for_and_a_fold_adds_what_it_deletes() {
    let late = vec![script(&[&[Op::Count], &[Op::Get, Op::Get]])];
    breaks("narrowing, a late ADD", &back(late).without(Rule::FoldAfterStragglers));
    breaks("narrowing, 1 + 1 calls", &pairs().without(Rule::FoldUnchanged));
}

#[test]
fn there_and_back() {
    exhaust("narrowing and widening, 1 + 1 calls", &Config { shards: &[2, 1, 2], ..pairs() });
    exhaust("widening and narrowing, 1 + 1 calls", &Config { shards: &[1, 2, 1], part: None, ..pairs() });
    let left_behind = vec![script(&[&[Op::Delete], &[Op::Count, Op::Get, Op::Count]])];
    let twice = Config { shards: &[1, 2, 1], part: None, ..Config::new(left_behind) };
    exhaust("widening and narrowing, what is left behind", &twice);
}

#[test]
fn a_narrowing_is_cancelled_until_it_folds() {
    exhaust("narrowing, cancelled, 1 + 1 calls", &Config { cancels: 1, ends: Outcome::Back, ..pairs() });
    let mut one =
        Coordinator::begin(heatsink_reshard::Record::WHOLE, Change::Narrow, STRAGGLER, Rules::ALL).unwrap();
    while !matches!(one.record().state, State::Moving { phase: Phase::Move, .. }) {
        let seen = match one.next() {
            Do::Write { .. } => Seen::Written,
            Do::Acknowledge { .. } => Seen::Acknowledged { clean: true },
            Do::EndClaims => Seen::ClaimsEnded,
            other => panic!("{other:?}"),
        };
        one.seen(NOW, seen);
    }
    assert!(!one.cancel());
}

#[test]
fn coordinators_of_a_narrowing_die() {
    exhaust("narrowing, a coordinator dies, 1 call", &Config { deaths: 1, ..back(scripts(&ALL, &[1])) });
    // One call shows it. Pairs of calls have as short an order, behind twelve million states.
    let undead = Config { deaths: 1, undead: true, cancels: 1, ..back(scripts(&ALL, &[1])) };
    breaks("narrowing, a coordinator taken for dead", &undead.without(Rule::RecordByVersion));
}

#[test]
#[ignore = "minutes of a core"]
fn long_three_calls_and_reads_in_parts_while_a_coordinator_dies() {
    exhaust("narrowing, 2 + 1 calls", &back(scripts(&ALL, &[2, 1])));
    exhaust("narrowing, a coordinator dies, 1 + 1 calls", &Config { deaths: 1, ..pairs() });
    exhaust("narrowing, a coordinator dies, reads in parts", &Config { deaths: 1, ..reads() });
}

#[test]
#[ignore = "a minute of a core"]
fn long_coordinator_of_a_narrowing_that_was_taken_for_dead() {
    exhaust(
        "narrowing, a coordinator taken for dead, 1 + 1 calls",
        &Config { deaths: 1, undead: true, cancels: 1, ..pairs() },
    );
}

#[test]
fn prepare_adds_to_no_fragment_that_is_lost_and_move_folds_it() {
    let view = |phase| View::plain(1, 0, State::Moving { phase, closing: false });
    let config = Config { shards: &[3, 2], ..pairs() };
    assert_eq!(config.fragments(view(Phase::Reserve)), (3, 3));
    assert_eq!(config.fragments(view(Phase::Prepare)), (3, 2));
    assert_eq!(config.fragments(view(Phase::Move)), (3, 2));
    assert_eq!(
        (config.folds_from(view(Phase::Prepare)), config.folds_from(view(Phase::Move))),
        (None, Some(2))
    );
    let stable = View::plain(2, 0, State::Stable { in_force: Side::New, settled: true });
    assert_eq!(config.fragments(stable), (2, 2));
}
