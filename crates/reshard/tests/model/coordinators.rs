//! Coordinators that die in any phase, or are only taken for dead and go on beside the next.

use heatsink_reshard::Rule;

use crate::config::{Config, Op, script, scripts};
use crate::search::{breaks, exhaust};

fn dies(scripts: Vec<crate::config::Script>) -> Config {
    Config { deaths: 1, fine: true, late: 1, crashes: 0, ..Config::new(scripts) }
}

#[test]
fn a_coordinator_dies_in_any_phase_and_another_goes_on() {
    let calls = [(Op::Put, 0), (Op::Delete, 0), (Op::Add, 0), (Op::Get, 0)];
    exhaust("a coordinator dies, 1 call", &Config { crashes: 1, ..dies(scripts(&calls, &[1])) });
    let pairs = vec![script(&[&[Op::Put], &[Op::Put]]), script(&[&[Op::Get], &[Op::Add]])];
    exhaust("a coordinator dies, 1 + 1 calls", &dies(pairs));
}

#[test]
fn it_was_not_dead() {
    let calls = [(Op::Put, 0), (Op::Delete, 0), (Op::Add, 0)];
    let undead = Config { undead: true, ..dies(scripts(&calls, &[1])) };
    exhaust("a coordinator taken for dead, 1 call", &undead);
    breaks("a coordinator taken for dead, 1 call", &undead.without(Rule::RecordByVersion));
}

#[test]
fn who_takes_over_waits_again_and_trusts_no_acknowledgement() {
    let puts = dies(vec![script(&[&[Op::Put], &[Op::Put]])]);
    breaks("a coordinator dies, 1 + 1 calls", &puts.without(Rule::TakeoverWaits));
    let add = dies(vec![script(&[&[Op::Get], &[Op::Add]])]);
    breaks("a coordinator dies, 1 + 1 calls", &add.without(Rule::TakeoverUnclean));
}
