//! Items that expire at any time, each copy by itself.

use heatsink_reshard::Rule;

use crate::config::{Config, FIRST, Op, scripts};
use crate::monitor::Item;
use crate::search::{breaks, exhaust};

fn expiring(calls: &[(Op, usize)]) -> Config {
    let stored = vec![[None, None], [FIRST, None], [Some(Item { number: 7, expires: true }), None]];
    Config { expiry: true, stored, ..Config::new(scripts(calls, &[1, 1])) }
}

#[test]
fn items_that_expire_while_they_move() {
    let calls = [(Op::Put, 0), (Op::PutExpiring, 0), (Op::Update, 0), (Op::Delete, 0)];
    exhaust("expiry, 1 + 1 calls", &expiring(&calls));
}

#[test]
fn what_expires_hides_no_old_copy() {
    let calls = [(Op::Put, 0), (Op::PutExpiring, 0), (Op::Update, 0)];
    for rule in [Rule::ExpiringPutPulls, Rule::ExpiringUpdatePulls] {
        breaks("expiry, 1 + 1 calls", &expiring(&calls).without(rule));
    }
}
