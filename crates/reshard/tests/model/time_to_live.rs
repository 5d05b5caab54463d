//! Items that expire at any time, each copy by itself, from the beginning or once time to live is
//! turned on.

use heatsink_reshard::Rule;

use crate::config::{Config, FIRST, Op, script, scripts};
use crate::monitor::Item;
use crate::search::{breaks, exhaust, exhaust_each};

const WRITES: [(Op, usize); 6] = [
    (Op::Put, 0),
    (Op::PutExpiring, 0),
    (Op::CreateExpiring, 0),
    (Op::Update, 0),
    (Op::Expire, 0),
    (Op::Delete, 0),
];
const FEW: [(Op, usize); 4] = [(Op::Put, 0), (Op::PutExpiring, 0), (Op::Expire, 0), (Op::Get, 0)];

fn expiring(calls: &[(Op, usize)], lengths: &[usize]) -> Config {
    let stored = vec![[None, None], [FIRST, None], [Some(Item { number: 7, expires: true }), None]];
    Config { expiry: true, stored, ..Config::new(scripts(calls, lengths)) }
}

/// One gateway turns time to live on, and goes on; another puts what expires.
fn turned_on() -> Config {
    let puts = script(&[&[Op::TurnOn, Op::PutExpiring], &[Op::PutExpiring]]);
    Config { expiry: true, turned_on: true, ..Config::new(vec![puts]) }
}

#[test]
fn items_that_expire_while_they_move() {
    exhaust("expiry, 1 + 1 calls", &expiring(&WRITES, &[1, 1]));
}

#[test]
fn what_expires_hides_no_old_copy() {
    for rule in [Rule::ExpiringPutPulls, Rule::ExpiringUpdatePulls] {
        breaks("expiry, 1 + 1 calls", &expiring(&WRITES, &[1, 1]).without(rule));
    }
}

#[test]
fn a_pull_between_whose_transactions_the_copies_expire_brings_nothing_back() {
    let calls = [(Op::PutExpiring, 0), (Op::Expire, 0)];
    let puts = Config { retries: true, ..expiring(&calls[..1], &[1, 1]) };
    exhaust("expiry, pulls sent again, 1 + 1 calls", &puts);
    let two_movers = Config { movers: 2, crashes: 1, ..expiring(&calls, &[1]) };
    exhaust("expiry, two movers, 1 call", &two_movers);
}

#[test]
fn time_to_live_that_is_turned_on_as_a_move_begins_is_known_to_it() {
    exhaust("time to live is turned on", &turned_on());
    breaks("time to live is turned on", &turned_on().without(Rule::SurveyAfterStragglers));
}

#[test]
#[ignore = "minutes; docs/develop/testing.md has what it showed"]
fn long_items_that_expire_while_they_move() {
    exhaust("expiry, 2 calls", &expiring(&WRITES, &[2]));
    let sent_again = Config { retries: true, ..expiring(&FEW, &[1, 1]) };
    exhaust("expiry, pulls sent again, 1 + 1 calls of more kinds", &sent_again);
    let two_movers = Config { movers: 2, crashes: 2, fine: true, ..expiring(&FEW, &[1]) };
    exhaust("expiry, two movers, two crashes, 1 call", &two_movers);
    exhaust_each("expiry, 1 + 1 + 1 calls", &expiring(&FEW, &[1, 1, 1]));
    exhaust_each("expiry, there and back, 1 + 1 calls", &Config { changes: 2, ..expiring(&FEW, &[1, 1]) });
}
