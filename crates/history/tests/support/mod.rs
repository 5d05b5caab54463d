//! Histories that one item has really given, drawn from a seed.

use fastrand::Rng;
use heatsink_history::{Answer, Call, Operation, State, Value};

/// Moments between two calls that take effect one after another.
const APART: u64 = 100;

/// How calls are drawn.
#[derive(Clone, Copy)]
pub struct Form {
    /// How many.
    pub calls: usize,
    /// How many moments a call may begin before and return after it takes effect: with [`APART`] or
    /// more, calls overlap.
    pub wide: u64,
    /// Of how many calls one has an unknown outcome; 0 for none.
    pub unknown: u32,
}

/// An item that takes calls, and the history that it gives.
pub struct Item {
    pub state: State,
    pub calls: Vec<Call>,
    now: u64,
    written: i64,
}

impl Item {
    pub fn new() -> Item {
        Item { state: None, calls: Vec::new(), now: 10 * APART, written: 0 }
    }

    /// A number that was never written. Sums of what [`operation`](Self::operation) adds never lead
    /// from one to another.
    pub fn fresh(&mut self) -> i64 {
        self.written += 1_000_000;
        self.written
    }

    fn operation(&mut self, rng: &mut Rng) -> Operation {
        let value = Value { number: self.fresh(), label: rng.u8(0..3) };
        match rng.u32(0..8) {
            0 | 1 => Operation::Put(value),
            2 => Operation::Create(value),
            3 => Operation::Update(value),
            4 => Operation::Delete,
            5 => Operation::Add(rng.i64(1..10)),
            6 => Operation::Get,
            _ => Operation::Find(rng.u8(1..3)),
        }
    }

    /// Takes calls that overlap and whose answers are the item's own. A call of unknown outcome
    /// takes effect late, or never.
    pub fn take(&mut self, rng: &mut Rng, form: Form) {
        let mut late: Vec<(u64, usize)> = Vec::new();
        for _ in 0..form.calls {
            self.now += APART;
            let now = self.now;
            for (_, at) in late.extract_if(.., |(due, _)| *due <= now) {
                self.state = self.calls[at].operation.apply(self.state).0;
            }
            let operation = self.operation(rng);
            let invoked = now - rng.u64(0..=form.wide);
            if form.unknown > 0 && rng.u32(0..form.unknown) == 0 {
                if rng.bool() {
                    late.push((now + rng.u64(0..5 * APART), self.calls.len()));
                }
                self.calls.push(Call { invoked, returned: None, operation });
                continue;
            }
            let (state, answer) = operation.apply(self.state);
            self.state = state;
            let returned = Some((now + rng.u64(0..=form.wide), answer));
            self.calls.push(Call { invoked, returned, operation });
        }
    }

    /// Lets everything under way come to its end.
    pub fn rest(&mut self) {
        self.now += 100 * APART;
    }

    /// A call that overlaps with no other; its answer is what the caller says, and it has no effect
    /// here.
    pub fn say(&mut self, operation: Operation, answer: Answer) {
        self.now += APART;
        self.calls.push(Call { invoked: self.now, returned: Some((self.now + 1, answer)), operation });
    }

    /// A call that overlaps with no other, and is what it should be.
    pub fn ask(&mut self, operation: Operation) {
        let (state, answer) = operation.apply(self.state);
        self.state = state;
        self.say(operation, answer);
    }
}
