//! A table with items changes its layout: its items move, or the key of an index is spread under
//! running clients.

use crate::config::{Config, Kind, Op, Rule, Start, without_rule};
use crate::search::{breaks, exhaust};
use crate::world::{Plan, RecordState};

const KNOWS_RAW: Start = Start::Registered(Some(Plan::Raw));
const FRESH: Start = Start::Registered(None);

/// Two gateways before a table that holds an item.
fn before(first: &'static [Op], second: &'static [Op], changers: Vec<&'static [Kind]>) -> Config {
    let gateways = vec![without_rule(KNOWS_RAW, first), without_rule(FRESH, second)];
    Config { stored: [100, 0], ..Config::new(gateways, changers) }
}

/// Two commands adopt the table: one takes over from the other, and brings the items back. The
/// first may wake up at any time.
fn killed_worker() -> Config {
    let changers: Vec<&[Kind]> = vec![&[Kind::Adopt], &[Kind::Adopt, Kind::Return]];
    let gateways = vec![without_rule(FRESH, &[Op::Put, Op::Get])];
    let config = Config::new(gateways, changers);
    Config { stored: [100, 0], horizon: 0, calls_lost: false, least_finished: 2, ..config }
}

/// The key of an index is spread while a client writes and another reads.
fn index(first: &'static [Op], second: &'static [Op], changers: Vec<&'static [Kind]>) -> Config {
    Config { index: true, ..before(first, second, changers) }
}

/// The same where every gateway answers at once: only who spreads the index is killed, and another
/// goes on.
fn index_taken_over() -> Config {
    let changers: Vec<&[Kind]> = vec![&[Kind::SpreadIndex], &[Kind::SpreadIndex]];
    Config { horizon: 0, calls_lost: false, ..index(&[Op::Put], &[Op::Get], changers) }
}

#[test]
fn adoption() {
    exhaust("adoption beside a writer", &before(&[Op::Put], &[Op::Get], vec![&[Kind::Adopt]]));
    exhaust("adoption beside a reader", &before(&[Op::Get], &[Op::Put], vec![&[Kind::Adopt]]));
}

#[test]
fn without_its_rules_an_adoption_breaks() {
    let config = || before(&[Op::Put], &[Op::Get], vec![&[Kind::Adopt]]);
    for rule in [Rule::StepWaitedFor, Rule::RecordBeforeHead, Rule::LookUpRedone, Rule::UncleanCounted] {
        breaks("adoption", &config().without(rule));
    }
}

#[test]
fn worker_that_was_killed() {
    exhaust("a killed worker wakes after the way back", &killed_worker());
    breaks("a killed worker wakes after the way back", &killed_worker().without(Rule::ClaimChecked));
}

#[test]
fn index_key_step() {
    let writes = index(&[Op::Put], &[Op::Get], vec![&[Kind::SpreadIndex]]);
    exhaust("index key, old gateway writes", &Config { horizon: 2, ..writes });
    let reads = index(&[Op::Get], &[Op::Put], vec![&[Kind::SpreadIndex]]);
    exhaust("index key, old gateway reads", &Config { horizon: 2, ..reads });
}

#[test]
fn without_its_rules_an_index_key_step_breaks() {
    let config = || index(&[Op::Get], &[Op::Put], vec![&[Kind::SpreadIndex]]);
    for rule in [Rule::StepWaitedFor, Rule::RecordBeforeHead] {
        breaks("index key", &config().without(rule));
    }
}

#[test]
fn coordinator_that_was_killed() {
    exhaust("index key, another goes on", &index_taken_over());
    breaks("index key, another goes on", &index_taken_over().without(Rule::TakeoverPublishes));
}

/// Calls take effect however late they like, which the protocol assumes they do not. No answer that
/// a client was given may be wrong for it.
fn late_beyond_the_bound() -> Config {
    Config { unbounded: true, fine: true, horizon: 2, ..before(&[Op::Put], &[Op::Get], vec![&[Kind::Adopt]]) }
}

#[test]
fn calls_later_than_assumed() {
    exhaust("calls later than assumed", &late_beyond_the_bound());
    for rule in [Rule::GateOnDelivery, Rule::LeaseOnDelivery] {
        breaks("calls later than assumed", &late_beyond_the_bound().without(rule));
    }
}

/// A sharded table becomes whole again.
#[test]
fn back_again() {
    let gateways = vec![
        without_rule(Start::Registered(Some(Plan::Sharded)), &[Op::Put]),
        without_rule(FRESH, &[Op::Get]),
    ];
    let config = Config {
        record: Some(RecordState::Active),
        stored: [0, 100],
        ..Config::new(gateways, vec![&[Kind::Return]])
    };
    exhaust("the way back", &config);
}
