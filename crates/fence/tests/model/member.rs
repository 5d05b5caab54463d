//! Gateways that come, stop, wake and are taken off the list; and a registry that is new.

use crate::config::{Config, Kind, OFTEN, Op, Rule, SELDOM, Start, bounds, with_rule, without_rule};
use crate::search::{breaks, exhaust};
use crate::world::{Plan, Tick};

const FRESH: Start = Start::Registered(None);
const KNOWS_RAW: Start = Start::Registered(Some(Plan::Raw));

/// A gateway without rules was started before there was a registry. Another makes it.
fn never_registered(changers: Vec<&'static [Kind]>) -> Config {
    let gateways = vec![without_rule(Start::New, &[Op::Put]), with_rule(Start::New, &[Op::Get])];
    Config { registry: false, horizon: 4, ..Config::new(gateways, changers) }
}

/// A gateway starts while a change is under way.
fn newcomer() -> Config {
    let gateways = vec![without_rule(Start::New, &[Op::Put]), with_rule(FRESH, &[Op::Get])];
    Config { slow: true, calls_lost: false, horizon: 2, ..Config::new(gateways, vec![&[Kind::FirstUse]]) }
}

/// A gateway stops for longer than its lease, with a request in its hands.
fn stopped() -> Config {
    let gateways = vec![without_rule(KNOWS_RAW, &[Op::Put]), with_rule(FRESH, &[Op::Get])];
    Config {
        bounds: bounds(1, 2, SELDOM),
        horizon: 3,
        fine: true,
        ..Config::new(gateways, vec![&[Kind::FirstUse]])
    }
}

/// Gateways that are silent for long are taken off the list; one of them wakes up. Whether what it
/// writes is answered is not certain.
fn removed(horizon: Tick) -> Config {
    let gateways = vec![without_rule(KNOWS_RAW, &[Op::Put])];
    let config = Config::new(gateways, vec![&[Kind::SpreadIndex]]);
    Config {
        bounds: bounds(1, 1, OFTEN),
        horizon,
        calls_lost: false,
        heartbeats: true,
        beats_lost: 1,
        index: true,
        stored: [100, 0],
        ..config
    }
}

/// A gateway is killed, with a request in its hands or without, and somebody on its machine sees
/// that.
fn ended() -> Config {
    let gateways = vec![without_rule(KNOWS_RAW, &[Op::Put]), with_rule(FRESH, &[Op::Get])];
    let config = Config::new(gateways, vec![&[Kind::FirstUse]]);
    Config { bounds: bounds(2, 1, SELDOM), ends: Some(0), ..config }
}

#[test]
fn gateway_that_never_registered() {
    exhaust("a new registry", &never_registered(vec![&[Kind::FirstUse]]));
    for rule in [Rule::RegistrySettled, Rule::OneLeaseWithoutRegistry, Rule::GateWithoutRegistry] {
        breaks("a new registry", &never_registered(vec![&[Kind::FirstUse]]).without(rule));
    }
}

#[test]
fn registry_whose_maker_was_killed() {
    let config = || {
        let both = never_registered(vec![&[Kind::FirstUse], &[Kind::FirstUse]]);
        let gateways = both.gateways.iter().take(1).cloned().collect();
        Config { gateways, calls_lost: false, horizon: 3, ..both }
    };
    exhaust("a new registry, its maker killed", &config());
    breaks("a new registry, its maker killed", &config().without(Rule::SettledOnRecord));
}

#[test]
fn gateway_that_starts_during_a_change() {
    exhaust("a newcomer", &newcomer());
    for rule in [Rule::ListAfterPublication, Rule::RegisterBeforeReading, Rule::LeaseFromSending] {
        breaks("a newcomer", &newcomer().without(rule));
    }
}

#[test]
fn stopped_gateway() {
    exhaust("a stopped gateway", &stopped());
    for rule in [Rule::LeaseBeforeSending, Rule::StragglersOfTheSilent] {
        breaks("a stopped gateway", &stopped().without(rule));
    }
}

#[test]
fn killed_gateway() {
    exhaust("a killed gateway", &ended());
    for rule in [Rule::EndedIsCertain, Rule::StragglersOfTheEnded] {
        breaks("a killed gateway", &ended().without(rule));
    }
}

#[test]
fn lost_acknowledgement() {
    let gateways = vec![without_rule(KNOWS_RAW, &[Op::Put]), with_rule(FRESH, &[Op::Get])];
    let config = Config { beats_lost: 1, horizon: 2, ..Config::new(gateways, vec![&[Kind::FirstUse]]) };
    exhaust("lost acknowledgements", &config);
}

#[test]
fn gateway_that_was_taken_for_dead() {
    exhaust("a silent gateway", &removed(3));
    breaks("a silent gateway", &removed(3).without(Rule::RemovedOnlyWhenSilent));
    breaks("a silent gateway, for longer", &removed(4).without(Rule::BeatsDiffer));
}

#[test]
#[ignore = "half a minute of a core"]
fn long_gateway_that_was_taken_for_dead() {
    exhaust("a silent gateway, for longer", &removed(4));
}
