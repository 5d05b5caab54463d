//! Each fault that a store can have, planted into a history that is otherwise right, is found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use crate::support::{Form, Item};
use fastrand::Rng;
use heatsink_history::{Answer, Call, Operation, Value, Verdict, check};

/// Plants a fault between calls of all kinds, those of unknown outcome included, and has it found
/// in each of many histories. The same history passes without it.
fn is_found(fault: impl Fn(&mut Item)) {
    is_found_among(true, fault);
}

/// [`is_found`], with calls of unknown outcome or without.
fn is_found_among(unknown: bool, fault: impl Fn(&mut Item)) {
    for seed in 0..500 {
        let history = |planted: bool| {
            let mut rng = Rng::with_seed(seed);
            let form = Form {
                calls: rng.usize(0..25),
                wide: rng.u64(0..600),
                unknown: rng.u32(3..9) * u32::from(unknown),
            };
            let mut item = Item::new();
            item.take(&mut rng, form);
            item.rest();
            if planted {
                fault(&mut item);
            }
            item.rest();
            item.take(&mut rng, form);
            item.calls
        };
        assert_eq!(check(None, &history(false)), Verdict::Linearizable, "seed {seed}");
        let calls = history(true);
        let Verdict::Violation(violation) = check(None, &calls) else {
            panic!("seed {seed}: the fault is not found in {calls:#?}")
        };
        assert!(calls[violation.stuck].returned.is_some());
        assert!(violation.explain(&calls).contains("fits nowhere"));
    }
}

fn put(item: &mut Item) -> Value {
    let value = Value { number: item.fresh(), label: 1 };
    item.ask(Operation::Put(value));
    value
}

#[test]
fn a_lost_write() {
    is_found(|item| {
        let old = put(item);
        item.ask(Operation::Get);
        let new = Value { number: item.fresh(), label: 0 };
        item.say(Operation::Put(new), Answer::Done);
        item.say(Operation::Get, Answer::Saw(Some(old)));
    });
}

#[test]
fn a_stale_read() {
    is_found(|item| {
        let old = put(item);
        put(item);
        item.ask(Operation::Get);
        item.say(Operation::Get, Answer::Saw(Some(old)));
    });
}

#[test]
fn an_add_that_counts_twice() {
    is_found(|item| {
        let Value { number, label } = put(item);
        item.say(Operation::Add(500), Answer::Number(number + 500));
        item.say(Operation::Get, Answer::Saw(Some(Value { number: number + 1_000, label })));
    });
}

#[test]
fn a_deleted_item_that_comes_back() {
    is_found(|item| {
        let value = put(item);
        item.say(Operation::Delete, Answer::Done);
        item.say(Operation::Get, Answer::Saw(Some(value)));
    });
}

#[test]
fn a_row_that_is_missing_from_a_query() {
    is_found(|item| {
        let value = put(item);
        item.say(Operation::Find(value.label), Answer::Saw(None));
        // A delete of unknown outcome would explain it, were the item not there afterwards.
        item.say(Operation::Get, Answer::Saw(Some(value)));
    });
}

#[test]
fn a_row_that_an_index_shows_under_a_label_it_no_longer_has() {
    is_found(|item| {
        let old = put(item);
        let new = Value { number: item.fresh(), label: 2 };
        item.ask(Operation::Put(new));
        item.ask(Operation::Get);
        item.say(Operation::Find(1), Answer::Saw(Some(old)));
    });
}

#[test]
fn a_refused_write_that_took_effect() {
    is_found(|item| {
        put(item);
        let new = Value { number: item.fresh(), label: 0 };
        item.say(Operation::Create(new), Answer::Refused);
        item.say(Operation::Get, Answer::Saw(Some(new)));
    });
}

#[test]
fn two_creates_of_one_item_that_both_succeed() {
    // A delete of unknown outcome between them would explain it.
    is_found_among(false, |item| {
        put(item);
        let new = Value { number: item.fresh(), label: 0 };
        item.say(Operation::Create(new), Answer::Done);
    });
}

#[test]
fn a_write_of_unknown_outcome_that_is_seen_before_it_was_sent() {
    is_found(|item| {
        let value = Value { number: item.fresh(), label: 0 };
        item.say(Operation::Get, Answer::Saw(Some(value)));
        item.rest();
        item.say(Operation::Put(value), Answer::Done);
        if let Some(last) = item.calls.last_mut() {
            last.returned = None;
        }
    });
}

#[test]
fn a_write_of_unknown_outcome_takes_effect_once() {
    let value = |number| Value { number, label: 0 };
    let call = |invoked, operation, answer: Option<Answer>| Call {
        invoked,
        returned: answer.map(|answer| (invoked + 1, answer)),
        operation,
    };
    let saw = |number| Some(Answer::Saw(Some(value(number))));
    let mut calls = vec![
        call(0, Operation::Put(value(1)), None),
        call(10, Operation::Put(value(2)), Some(Answer::Done)),
        call(20, Operation::Get, saw(2)),
        call(30, Operation::Get, saw(1)),
        call(40, Operation::Put(value(3)), Some(Answer::Done)),
    ];
    assert_eq!(check(None, &calls), Verdict::Linearizable, "late, and not never");
    calls.push(call(50, Operation::Get, saw(1)));
    assert!(matches!(check(None, &calls), Verdict::Violation(violation) if violation.stuck == 5));
}
