//! An empty table comes under its rule.

use crate::config::{Config, Kind, Op, Rule, Start, with_rule, without_rule};
use crate::search::{breaks, exhaust};
use crate::world::Plan;

const RAW: Start = Start::Registered(Some(Plan::Raw));
const FRESH: Start = Start::Registered(None);

/// Both gateways have the rule.
fn made_by_others(changers: Vec<&'static [Kind]>) -> Config {
    Config::new(vec![with_rule(FRESH, &[Op::Put]), with_rule(FRESH, &[Op::Get])], changers)
}

/// One gateway has the rule, the other has none and sends everything raw.
fn rollout(start: Start, old: &'static [Op], new: &'static [Op]) -> Config {
    Config::new(vec![without_rule(start, old), with_rule(FRESH, new)], vec![&[Kind::FirstUse]])
}

#[test]
fn first_touch_of_a_table_made_by_others() {
    exhaust("first use", &made_by_others(vec![&[Kind::FirstUse]]));
    // Either gateway may take the other's first use over. The clock stands still: nobody is waited
    // for in vain.
    let at_once = made_by_others(vec![&[Kind::FirstUse], &[Kind::FirstUse]]);
    exhaust("first use by both at once", &Config { horizon: 0, calls_lost: false, ..at_once });
}

#[test]
fn rollout_of_rules() {
    exhaust("rollout of rules, old writes", &rollout(RAW, &[Op::Put], &[Op::Get]));
    exhaust("rollout of rules, new writes", &rollout(RAW, &[Op::Get], &[Op::Put]));
}

#[test]
fn without_its_rules_a_first_touch_breaks() {
    let rules = [
        Rule::RecordBeforeHead,
        Rule::LeaseBeforeSending,
        Rule::GateBeforeSending,
        Rule::UncleanCounted,
        Rule::PendingAcknowledged,
    ];
    for rule in rules {
        breaks("rollout of rules", &rollout(RAW, &[Op::Put], &[Op::Get]).without(rule));
    }
    breaks("rollout of rules", &rollout(FRESH, &[Op::Put], &[Op::Get]).without(Rule::LookUpRedone));
}
