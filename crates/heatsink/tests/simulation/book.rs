//! What the clients know: every call on every item, with its moments, and what they saw that should
//! never be seen.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use heatsink_history::{Answer, Call, Operation, Verdict, check};

use crate::log::Log;
use crate::network::Network;

pub struct Book {
    network: Arc<Network>,
    log: Log,
    calls: RefCell<BTreeMap<String, Vec<Call>>>,
    faults: RefCell<Vec<String>>,
    /// Calls may land later than the fence takes them to.
    beyond: Cell<bool>,
    /// How many adds to counters were acknowledged.
    added: Cell<usize>,
    /// Messages between tasks of different processes, so that nobody is forgotten before time moves
    /// on.
    pub messages: Cell<u64>,
}

impl Book {
    pub fn new(network: Arc<Network>, log: Log) -> Book {
        let (calls, faults) = (RefCell::default(), RefCell::default());
        Book {
            network,
            log,
            calls,
            faults,
            beyond: Cell::new(false),
            added: Cell::new(0),
            messages: Cell::new(0),
        }
    }

    /// Says whether calls may land later than the fence takes them to: then a write of unknown
    /// outcome can lie where nobody looks for it, and reads of many items can show it.
    pub fn set_beyond(&self, beyond: bool) {
        self.beyond.set(beyond);
    }

    pub fn is_beyond(&self) -> bool {
        self.beyond.get()
    }

    pub fn message(&self) {
        self.messages.set(self.messages.get() + 1);
    }

    /// The moment of an invocation or of a return.
    pub fn moment(&self) -> u64 {
        self.network.tick()
    }

    /// A call on an item, with its answer if that is known. One that was not done is not written
    /// down.
    pub fn call(&self, item: &str, invoked: u64, operation: Operation, answer: Option<Answer>) {
        let returned = answer.map(|answer| (self.moment(), answer));
        let call = Call { invoked, returned, operation };
        self.log.line(format!("  {item}: {call}"));
        self.calls.borrow_mut().entry(item.to_owned()).or_default().push(call);
    }

    /// An add to a counter that was acknowledged: the moment.
    pub fn added(&self) -> u64 {
        self.added.set(self.added.get() + 1);
        self.moment()
    }

    /// Something that no client may see.
    pub fn fault(&self, what: String) {
        self.log.line(format!("FAULT: {what}"));
        let mut faults = self.faults.borrow_mut();
        if !faults.contains(&what) {
            faults.push(what);
        }
    }

    /// Something that is a fault while calls land within the bounds that the fence is given. A call
    /// that lands later can leave an item where nobody looks for it: a gateway without the rule
    /// shows it as it lies, and an adoption refuses the table until an operator has decided.
    pub fn fault_within_bounds(&self, what: String) {
        if self.beyond.get() {
            self.log.line(format!("beyond the bounds: {what}"));
        } else {
            self.fault(what);
        }
    }

    /// How many calls were written down, and how many of them are writes that were done.
    pub fn counts(&self) -> (usize, usize) {
        let calls = self.calls.borrow();
        let all = || calls.values().flatten();
        let done = |call: &&Call| matches!(call.returned, Some((_, Answer::Done | Answer::Number(_))));
        let added = self.added.get();
        (all().count() + added, all().filter(done).count() + added)
    }

    /// All that is wrong: what was seen, and every item whose calls no item could have answered so.
    pub fn judge(&self) -> Vec<String> {
        let mut wrong = self.faults.borrow().clone();
        for (item, calls) in &*self.calls.borrow() {
            let mut calls = calls.clone();
            // A table that is dropped loses the item.
            let dropped = self.network.dropped().into_iter().map(|(invoked, returned)| Call {
                invoked,
                returned: Some((returned, Answer::Done)),
                operation: Operation::Delete,
            });
            calls.extend(dropped);
            match check(None, &calls) {
                Verdict::Linearizable => {}
                Verdict::Violation(violation) => {
                    wrong.push(format!("{item} is not linearizable:\n{}", violation.explain(&calls)));
                }
                Verdict::Undecided(steps) => wrong.push(format!("{item}: undecided after {steps} steps")),
            }
        }
        wrong
    }
}
