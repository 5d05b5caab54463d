//! Tables are made and deleted, through Heatsink and without it, under a name that had another
//! table before.

use crate::config::{Config, Kind, Op, Other, Rule, Start, with_rule, without_rule};
use crate::search::{breaks, exhaust};
use crate::world::{Plan, RecordState};

const FRESH: Start = Start::Registered(None);
const KNOWS_SHARDED: Start = Start::Registered(Some(Plan::Sharded));

/// A gateway with a rule makes the table; one without sends its requests beside it.
fn created(first: &'static [Op], second: &'static [Op]) -> Config {
    let gateways = vec![with_rule(FRESH, first), without_rule(FRESH, second)];
    Config { table: false, ..Config::new(gateways, vec![&[Kind::Create]]) }
}

/// A sharded table is deleted through Heatsink. Its name goes to a table that is not sharded, made
/// by Heatsink or by others. Descriptions may show the former table.
fn made_again(changes: &'static [Kind], others: &'static [Other]) -> Config {
    let gateways = vec![without_rule(KNOWS_SHARDED, &[Op::Put]), without_rule(FRESH, &[Op::Get])];
    Config {
        record: Some(RecordState::Active),
        others,
        stale: true,
        calls_lost: false,
        horizon: 0,
        least_finished: changes.len(),
        ..Config::new(gateways, vec![changes])
    }
}

#[test]
fn create_through_a_gateway() {
    exhaust("create, maker writes", &created(&[Op::Put], &[Op::Get]));
    exhaust("create, maker reads", &created(&[Op::Get], &[Op::Put]));
}

#[test]
fn without_its_rules_a_create_breaks() {
    for rule in [Rule::IntentBeforeCreate, Rule::NotFoundAnswered] {
        breaks("create", &created(&[Op::Get], &[Op::Put]).without(rule));
    }
}

#[test]
fn made_again_under_its_name() {
    exhaust("made again through Heatsink", &made_again(&[Kind::Delete, Kind::CreateWhole], &[]));
    let by_others = made_again(&[Kind::Delete], &[Other::Create]);
    exhaust("made again by others", &by_others);
    exhaust(
        "made again by others, slowly",
        &Config { stale: false, calls_lost: true, horizon: 2, ..by_others },
    );
}

/// A delete that nobody is told of beforehand is safe as long as nobody makes the table again
/// without Heatsink.
#[test]
fn a_delete_without_a_step_breaks_where_others_make_the_table_again() {
    let through = made_again(&[Kind::Delete, Kind::CreateWhole], &[]).without(Rule::DeleteAnnounced);
    exhaust("made again through Heatsink, delete not announced", &through);
    breaks("made again through Heatsink", &through.without(Rule::IntentAcknowledged));
    breaks(
        "made again by others",
        &made_again(&[Kind::Delete], &[Other::Create]).without(Rule::DeleteAnnounced),
    );
}

/// A table without record is deleted by others and made again through Heatsink, while its
/// description still shows the one before.
fn out_of_date() -> Config {
    let gateways = vec![without_rule(FRESH, &[Op::Put]), with_rule(FRESH, &[Op::Get])];
    Config {
        others: &[Other::Delete],
        stale: true,
        calls_lost: false,
        horizon: 2,
        ..Config::new(gateways, vec![&[Kind::Create]])
    }
}

#[test]
fn a_description_that_is_out_of_date() {
    exhaust("made again sharded", &out_of_date());
    for rule in [Rule::NameChecked, Rule::BoundHasRecord] {
        breaks("made again sharded", &out_of_date().without(rule));
    }
}
