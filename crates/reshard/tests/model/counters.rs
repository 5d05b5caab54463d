//! A counter that gets more fragments ([`widening`](crate::widening)).

use heatsink_reshard::{Change, Coordinator, Do, Outcome, Phase, Rule, Rules, Seen, Side, State};

use crate::config::{Op, Script, script, scripts};
use crate::widening::{Config, ORPHAN, breaks, exhaust};
use crate::world::{NOW, STRAGGLER, View};

const ALL: [(Op, usize); 4] = [(Op::Count, 0), (Op::Put, 0), (Op::Delete, 0), (Op::Get, 0)];

fn pairs() -> Config {
    Config::new(scripts(&ALL, &[1, 1]))
}

/// A delete that leaves a part behind, which comes to light when the counter is made again; and a
/// put that does, beside a read.
fn left_behind() -> Vec<Script> {
    vec![
        script(&[&[Op::Delete], &[Op::Count, Op::Get, Op::Count]]),
        script(&[&[Op::Put], &[Op::Count, Op::Get]]),
    ]
}

#[test]
fn a_counter_is_widened_under_its_clients() {
    exhaust("widening, 1 + 1 calls", &pairs());
    exhaust("widening, 2 + 1 calls", &Config::new(scripts(&ALL, &[2, 1])));
    exhaust("widening 2 to 3, 1 + 1 calls", &Config { shards: &[2, 3], ..pairs() });
    exhaust("widening twice, 1 + 1 calls", &Config { shards: &[1, 2, 3], ..pairs() });
}

#[test]
fn readers_are_widened_before_writers_and_late_calls_waited_for() {
    for rule in [Rule::WidenReadersFirst, Rule::AcknowledgementsAwaited] {
        breaks("widening, 1 + 1 calls", &pairs().without(rule));
    }
    for one in left_behind() {
        breaks("widening, what is left behind", &Config::new(vec![one]).without(Rule::WidenAfterStragglers));
    }
    breaks("widening, results of old plans", &Config { acknowledges_early: true, late: 0, ..pairs() });
}

#[test]
fn the_next_widening_waits_for_the_last() {
    let twice = Config { shards: &[1, 2, 3], ..Config::new(left_behind()) };
    exhaust("widening twice, what is left behind", &twice);
    breaks("widening twice, what is left behind", &twice.without(Rule::Settled));
}

#[test]
fn names_of_new_fragments_are_proved_empty() {
    let calls = [(Op::Count, 0), (Op::Get, 0), (Op::Delete, 0)];
    let orphan = Config { orphan: Some(ORPHAN), ..Config::new(scripts(&calls, &[1])) };
    exhaust("widening over an orphan, 1 call", &orphan);
    breaks("widening over an orphan, 1 call", &orphan.without(Rule::Surveyed));
    let foreign = Config::new(vec![script(&[&[Op::PutForeign, Op::Count]])]);
    exhaust("widening, an item of another key, late", &foreign);
    breaks("widening, an item of another key, late", &foreign.without(Rule::SurveyAfterStragglers));
    let ends = Config { ends: Outcome::Back, ..Config::new(vec![script(&[&[Op::PutForeign]])]) };
    exhaust("widening, an item of another key", &ends);
}

#[test]
fn a_widening_is_cancelled_until_it_is_stable() {
    let cancelled = Config { cancels: 1, ends: Outcome::Back, ..pairs() };
    exhaust("widening, cancelled, 1 + 1 calls", &cancelled);
    // One coordinator cannot be late for itself: after the publication nothing is taken back.
    let mut one =
        Coordinator::begin(heatsink_reshard::Record::WHOLE, Change::Widen, STRAGGLER, Rules::ALL).unwrap();
    while !matches!(one.record().state, State::Stable { in_force: Side::New, .. }) {
        let seen = match one.next() {
            Do::Write { .. } => Seen::Written,
            Do::Acknowledge { .. } => Seen::Acknowledged { clean: true },
            Do::Survey => Seen::Surveyed { foreign: 0, orphans: 0 },
            Do::EndClaims => Seen::ClaimsEnded,
            other => panic!("{other:?}"),
        };
        one.seen(NOW, seen);
    }
    assert!(!one.cancel());
}

#[test]
fn coordinators_of_a_widening_die() {
    let dies = |scripts| Config { deaths: 1, ..Config::new(scripts) };
    exhaust("widening, a coordinator dies, 1 + 1 calls", &dies(scripts(&ALL, &[1, 1])));
    let undead = Config { undead: true, cancels: 1, ..dies(scripts(&ALL, &[1])) };
    breaks("widening, a coordinator taken for dead", &undead.without(Rule::RecordByVersion));
    breaks("widening, a coordinator dies", &dies(left_behind()).without(Rule::TakeoverUnclean));
    let early = vec![script(&[&[Op::Get], &[Op::Count]]), script(&[&[Op::Delete], &[Op::Count]])];
    breaks("widening, a coordinator dies", &dies(early).without(Rule::TakeoverWaits));
}

#[test]
#[ignore = "a quarter of a minute of a core"]
fn long_coordinator_of_a_widening_that_was_taken_for_dead() {
    let undead = Config { deaths: 1, undead: true, cancels: 1, ..Config::new(scripts(&ALL, &[1, 1])) };
    exhaust("widening, a coordinator taken for dead, 1 + 1 calls", &undead);
}

#[test]
fn prepare_adds_to_no_new_fragment() {
    let view = |phase| View::plain(1, 0, State::Moving { phase, closing: false });
    let config = pairs();
    assert_eq!(config.fragments(view(Phase::Reserve)), (1, 1));
    assert_eq!(config.fragments(view(Phase::Prepare)), (2, 1));
}
