//! Histories that an item has given pass, and the checker agrees with a search that tries
//! everything.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::support::{Form, Item};
use fastrand::Rng;
use heatsink_history::{Answer, Call, Operation, State, Value, Verdict, check, check_within};

#[test]
fn what_an_item_answered_is_linearizable() {
    for seed in 0..3_000 {
        let mut rng = Rng::with_seed(seed);
        let form = Form { calls: rng.usize(0..60), wide: rng.u64(0..600), unknown: rng.u32(0..8) };
        let mut item = Item::new();
        item.take(&mut rng, form);
        assert_eq!(check(None, &item.calls), Verdict::Linearizable, "seed {seed}");
    }
}

#[test]
fn long_histories_take_few_steps() {
    for seed in 0..50 {
        let mut item = Item::new();
        item.take(&mut Rng::with_seed(seed), Form { calls: 2_000, wide: 300, unknown: 20 });
        assert_eq!(check_within(200_000, None, &item.calls), Verdict::Linearizable, "seed {seed}");
    }
}

/// Tries the calls in every order, with the unknown ones and without.
fn tried_out(state: State, calls: &[Call], taken: u32) -> bool {
    let left = |at: &usize| taken & (1 << at) == 0;
    let open = || (0..calls.len()).filter(left);
    if open().all(|at| calls[at].returned.is_none()) {
        return true;
    }
    // Nothing may come after a call that returned before it began.
    let first_return = open().filter_map(|at| Some(calls[at].returned?.0)).min().unwrap_or(u64::MAX);
    open().any(|at| {
        let call = calls[at];
        let (next, answer) = call.operation.apply(state);
        call.invoked <= first_return
            && call.returned.is_none_or(|(_, seen)| seen == answer)
            && tried_out(next, calls, taken | 1 << at)
    })
}

/// Short histories of a few values and answers by chance: about as many are linearizable as are
/// not.
fn by_chance(rng: &mut Rng) -> Vec<Call> {
    let value = |rng: &mut Rng| Value { number: rng.i64(1..4), label: rng.u8(0..2) };
    let calls = (0..rng.usize(1..7)).map(|_| {
        let operation = match rng.u32(0..7) {
            0 => Operation::Put(value(rng)),
            1 => Operation::Create(value(rng)),
            2 => Operation::Update(value(rng)),
            3 => Operation::Delete,
            4 => Operation::Add(rng.i64(1..3)),
            5 => Operation::Get,
            _ => Operation::Find(1),
        };
        let saw = |rng: &mut Rng| Answer::Saw(rng.bool().then(|| value(rng)));
        let answer = match operation {
            Operation::Create(_) | Operation::Update(_) if rng.bool() => Answer::Refused,
            Operation::Add(_) => Answer::Number(rng.i64(1..5)),
            Operation::Get | Operation::Find(_) => saw(rng),
            _ => Answer::Done,
        };
        let invoked = rng.u64(0..12);
        let returned = (rng.u32(0..4) > 0).then(|| (invoked + rng.u64(0..12), answer));
        Call { invoked, returned, operation }
    });
    calls.collect()
}

#[test]
fn the_checker_agrees_with_a_search_that_tries_everything() {
    let mut found = [0; 2];
    for seed in 0..20_000 {
        let mut rng = Rng::with_seed(seed);
        let calls = by_chance(&mut rng);
        let initial = rng.bool().then_some(Value { number: 1, label: 0 });
        let expected = tried_out(initial, &calls, 0);
        found[usize::from(expected)] += 1;
        match check(initial, &calls) {
            Verdict::Linearizable => assert!(expected, "seed {seed}: {calls:#?}"),
            Verdict::Violation(_) => assert!(!expected, "seed {seed}: {calls:#?}"),
            Verdict::Undecided(_) => panic!("seed {seed}"),
        }
    }
    assert!(found.iter().all(|count| *count > 2_000), "both happen: {found:?}");
}

#[test]
fn the_search_is_bounded() {
    let mut item = Item::new();
    item.take(&mut Rng::with_seed(1), Form { calls: 100, wide: 300, unknown: 0 });
    assert_eq!(check_within(10, None, &item.calls), Verdict::Undecided(10));
}
