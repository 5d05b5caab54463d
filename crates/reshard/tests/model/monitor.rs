//! What one item can hold, and which answers it can have given, after all that clients were told so
//! far: linearizability, kept up step by step.
//!
//! A *possibility* is what the item holds, and which of the calls under way have had their effect,
//! with which answer. A call without an answer may have had its effect or not, or may yet. An
//! answer rules out the possibilities that it does not fit; when none is left, no order explains
//! it.

use crate::config::Op;

/// How many calls a script has at most.
pub const CALLS: usize = 4;

/// What is stored: a number that tells which calls made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    pub number: u16,
    pub expires: bool,
}

/// What a client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    Done,
    Refused,
    Saw(Option<Item>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Effect {
    None,
    Over,
    Had(Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Possible {
    item: Option<Item>,
    effects: [Effect; CALLS],
}

/// The monitor of one item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Monitor {
    /// Sorted.
    possible: Vec<Possible>,
    /// The calls that may still have an effect.
    open: [Option<Op>; CALLS],
}

/// What a call does with the item, and its answer. Each call writes its own number, so that what is
/// read tells which calls it saw.
pub fn apply(op: Op, call: usize, item: Option<Item>) -> (Option<Item>, Answer) {
    let put = |expires| Item { number: 1 << call, expires };
    let add = |item: Item| Item { number: item.number + (256 << call), ..item };
    match (op, item) {
        (Op::Put, _) => (Some(put(false)), Answer::Done),
        (Op::PutExpiring, _) => (Some(put(true)), Answer::Done),
        (Op::Create | Op::CreateExpiring, Some(_)) => (item, Answer::Refused),
        (Op::Create, None) => (Some(put(false)), Answer::Done),
        (Op::CreateExpiring, None) => (Some(put(true)), Answer::Done),
        (Op::Delete, _) => (None, Answer::Done),
        (Op::Update | Op::Expire, None) => (None, Answer::Refused),
        (Op::Expire, Some(item)) => {
            let after = Some(Item { expires: true, ..add(item) });
            (after, Answer::Saw(after))
        }
        (Op::Update | Op::Add, _) => {
            let after = Some(add(item.unwrap_or(Item { number: 0, expires: false })));
            (after, Answer::Saw(after))
        }
        (Op::Get | Op::Query | Op::PutForeign | Op::TurnOn, _) => (item, Answer::Saw(item)),
        (Op::Count, _) => (Some(add(item.unwrap_or(Item { number: 0, expires: false }))), Answer::Done),
    }
}

impl Monitor {
    pub fn new(item: Option<Item>, expiry: bool) -> Self {
        let possible = vec![Possible { item, effects: [Effect::None; CALLS] }];
        let mut monitor = Monitor { possible, open: [None; CALLS] };
        monitor.close(expiry);
        monitor
    }

    /// A call is sent.
    pub fn begin(&mut self, call: usize, op: Op, expiry: bool) {
        self.open[call] = Some(op);
        self.close(expiry);
    }

    /// A call did nothing, and will be sent again.
    pub fn undo(&mut self, call: usize) {
        self.open[call] = None;
        self.possible.retain(|one| one.effects[call] == Effect::None);
    }

    /// A client is told. Says whether that can be explained.
    pub fn answer(&mut self, call: usize, answer: Answer) -> bool {
        self.open[call] = None;
        self.possible.retain(|one| one.effects[call] == Effect::Had(answer));
        self.over(call);
        !self.possible.is_empty()
    }

    /// Nobody waits for the answer any more.
    pub fn give_up(&mut self, call: usize) {
        for one in &mut self.possible {
            if one.effects[call] != Effect::None {
                one.effects[call] = Effect::Over;
            }
        }
        self.tidy();
    }

    /// Whether the item may hold that now.
    pub fn can_hold(&self, item: Option<Item>) -> bool {
        self.possible.iter().any(|one| one.item == item)
    }

    fn over(&mut self, call: usize) {
        self.possible.iter_mut().for_each(|one| one.effects[call] = Effect::Over);
        self.tidy();
    }

    fn tidy(&mut self) {
        self.possible.sort_unstable();
        self.possible.dedup();
    }

    /// Adds everything that calls under way may have done.
    fn close(&mut self, expiry: bool) {
        let mut work = std::mem::take(&mut self.possible);
        while let Some(one) = work.pop() {
            if self.possible.contains(&one) {
                continue;
            }
            self.possible.push(one);
            if expiry && one.item.is_some_and(|item| item.expires) {
                work.push(Possible { item: None, ..one });
            }
            for (call, op) in self.open.iter().enumerate() {
                let (Some(op), Effect::None) = (op, one.effects[call]) else { continue };
                let (item, answer) = apply(*op, call, one.item);
                let mut after = Possible { item, ..one };
                after.effects[call] = Effect::Had(answer);
                work.push(after);
            }
        }
        self.tidy();
    }
}
