//! The checker: Wing and Gong's search with Lowe's memory.
//!
//! The search takes the calls in every order that their moments allow, one call after another, and
//! goes back where an answer does not fit (Wing and Gong, 1993). It remembers which calls it had
//! taken and what the item held then, and never looks at the same pair twice (Lowe, 2017). Events
//! stand in a linked list, so taking a call out and putting it back cost the same however long the
//! history is.
//!
//! A call without a return may be taken at any point after its invocation, or be left over at the
//! end. Many of them would make the search long, since each doubles the ways. So one is taken only
//! where something depends on it: never right before a call that replaces or removes the item
//! whatever it holds. Where the item could have answered at all, it could have answered without
//! that call.

use std::collections::HashSet;
use std::fmt;

use crate::item::{Answer, Operation, State};

/// One call on the item. Moments are any numbers that grow; of events at one moment, invocations
/// come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was sent.
    pub invoked: u64,
    /// When its answer came, and which; `None` if its outcome is unknown.
    pub returned: Option<(u64, Answer)>,
    /// What was asked.
    pub operation: Operation,
}

/// What the checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One item could have answered so.
    Linearizable,
    /// No item could have.
    Violation(Violation),
    /// The search was given up after so many steps.
    Undecided(usize),
}

/// Why a history is not linearizable: how far the longest attempt came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The calls of the longest attempt, by their place in the history, in the order in which they
    /// took effect.
    pub order: Vec<usize>,
    /// What the item held after them.
    pub state: State,
    /// The call that had returned by then, and whose answer does not fit at any point.
    pub stuck: usize,
}

/// How many steps [`check`] takes at most. A history of a hundred calls takes a few hundred.
pub const LIMIT: usize = 2_000_000;

/// Checks the calls of one item that held `initial` at first.
pub fn check(initial: State, calls: &[Call]) -> Verdict {
    check_within(LIMIT, initial, calls)
}

/// [`check`] with another limit on its steps.
pub fn check_within(limit: usize, initial: State, calls: &[Call]) -> Verdict {
    let mut search = Search::new(initial, calls);
    for _ in 0..limit {
        if let Some(verdict) = search.step() {
            return verdict;
        }
    }
    Verdict::Undecided(limit)
}

/// The place before the first event, in [`List`].
const HEAD: usize = 0;

/// The invocations and returns that are left, in the order of their moments.
struct List {
    next: Vec<usize>,
    previous: Vec<usize>,
}

impl List {
    fn new(events: usize) -> List {
        // The list is a circle through its head.
        let count = events + 1;
        let next = (0..count).map(|at| (at + 1) % count).collect();
        let previous = (0..count).map(|at| (at + count - 1) % count).collect();
        List { next, previous }
    }

    fn next(&self, at: usize) -> usize {
        self.next.get(at).copied().unwrap_or(HEAD)
    }

    fn link(&mut self, before: usize, after: usize) {
        if let Some(next) = self.next.get_mut(before) {
            *next = after;
        }
        if let Some(previous) = self.previous.get_mut(after) {
            *previous = before;
        }
    }

    fn take(&mut self, at: usize) {
        let previous = self.previous.get(at).copied().unwrap_or(HEAD);
        self.link(previous, self.next(at));
    }

    /// Undoes [`take`](Self::take). What was taken last is put back first.
    fn put_back(&mut self, at: usize) {
        let previous = self.previous.get(at).copied().unwrap_or(HEAD);
        let next = self.next(at);
        self.link(previous, at);
        self.link(at, next);
    }
}

#[derive(Clone, Copy)]
struct Event {
    call: usize,
    is_return: bool,
}

/// A call that was taken, and the item before it.
struct Taken {
    call: usize,
    before: State,
}

/// Which calls were taken, what the item held then, and whether the last of them has an unknown
/// outcome.
type Seen = (Vec<u64>, State, bool);

struct Search<'a> {
    calls: &'a [Call],
    /// By place in the list; the head has none.
    events: Vec<Event>,
    /// Where each call's invocation and return stand in the list.
    invocations: Vec<usize>,
    returns: Vec<Option<usize>>,
    list: List,
    at: usize,
    state: State,
    taken: Vec<Taken>,
    is_taken: Vec<u64>,
    seen: HashSet<Seen>,
    /// Calls with a known outcome that are not taken yet.
    open: usize,
    best: Option<Violation>,
}

impl<'a> Search<'a> {
    fn new(initial: State, calls: &'a [Call]) -> Self {
        let mut order: Vec<(u64, Event)> = Vec::with_capacity(2 * calls.len());
        for (at, call) in calls.iter().enumerate() {
            // A read of which nothing is known says nothing.
            if call.returned.is_none() && call.operation.only_reads() {
                continue;
            }
            order.push((call.invoked, Event { call: at, is_return: false }));
            if let Some((moment, _)) = call.returned {
                order.push((moment, Event { call: at, is_return: true }));
            }
        }
        order.sort_by_key(|(moment, event)| (*moment, event.is_return));
        let events: Vec<Event> = order.into_iter().map(|(_, event)| event).collect();
        let (mut invocations, mut returns) = (vec![HEAD; calls.len()], vec![None; calls.len()]);
        for (at, event) in events.iter().enumerate() {
            if event.is_return {
                returns.get_mut(event.call).into_iter().for_each(|place| *place = Some(at + 1));
            } else {
                invocations.get_mut(event.call).into_iter().for_each(|place| *place = at + 1);
            }
        }
        let list = List::new(events.len());
        let at = list.next(HEAD);
        Search {
            calls,
            invocations,
            returns,
            list,
            at,
            state: initial,
            taken: Vec::new(),
            is_taken: vec![0; calls.len().div_ceil(64)],
            seen: HashSet::new(),
            open: events.iter().filter(|event| event.is_return).count(),
            events,
            best: None,
        }
    }

    /// Looks at one event. `Some` at the end of the search.
    fn step(&mut self) -> Option<Verdict> {
        if self.open == 0 {
            return Some(Verdict::Linearizable);
        }
        let event = self.at.checked_sub(1).and_then(|at| self.events.get(at).copied());
        match event {
            Some(Event { call, is_return: false }) => {
                if !self.take(call) {
                    self.at = self.list.next(self.at);
                }
                None
            }
            Some(Event { call, is_return: true }) => self.go_back(call),
            // The end of the list comes only where no call is open.
            None => Some(Verdict::Linearizable),
        }
    }

    /// Takes a call, if its answer fits and this was not tried before.
    fn take(&mut self, at: usize) -> bool {
        let Some(call) = self.calls.get(at) else { return false };
        if self.after_unknown() && call.operation.overwrites() {
            return false;
        }
        let (state, answer) = call.operation.apply(self.state);
        let fits = match call.returned {
            Some((_, seen)) => answer == seen,
            // Without an effect it need not be taken at all.
            None => state != self.state,
        };
        if !fits {
            return false;
        }
        self.mark(at, true);
        if !self.seen.insert((self.is_taken.clone(), state, call.returned.is_none())) {
            self.mark(at, false);
            return false;
        }
        self.taken.push(Taken { call: at, before: self.state });
        self.state = state;
        self.open -= usize::from(call.returned.is_some());
        let (invocation, answered) = self.places(at);
        self.list.take(invocation);
        answered.into_iter().for_each(|place| self.list.take(place));
        self.at = self.list.next(HEAD);
        true
    }

    /// A call returned and could not be taken: the last one taken has to come later.
    fn go_back(&mut self, stuck: usize) -> Option<Verdict> {
        if self.best.as_ref().is_none_or(|best| best.order.len() < self.taken.len()) {
            let order = self.taken.iter().map(|taken| taken.call).collect();
            self.best = Some(Violation { order, state: self.state, stuck });
        }
        let Some(Taken { call, before }) = self.taken.pop() else {
            let nothing = Violation { order: Vec::new(), state: self.state, stuck };
            return Some(Verdict::Violation(self.best.take().unwrap_or(nothing)));
        };
        self.state = before;
        self.mark(call, false);
        let known = self.calls.get(call).is_some_and(|call| call.returned.is_some());
        self.open += usize::from(known);
        let (invocation, answered) = self.places(call);
        answered.into_iter().for_each(|place| self.list.put_back(place));
        self.list.put_back(invocation);
        self.at = self.list.next(invocation);
        None
    }

    /// Whether the last call that was taken has an unknown outcome.
    fn after_unknown(&self) -> bool {
        let last = self.taken.last().and_then(|taken| self.calls.get(taken.call));
        last.is_some_and(|call| call.returned.is_none())
    }

    fn places(&self, call: usize) -> (usize, Option<usize>) {
        let invocation = self.invocations.get(call).copied().unwrap_or(HEAD);
        (invocation, self.returns.get(call).copied().flatten())
    }

    fn mark(&mut self, call: usize, taken: bool) {
        if let Some(word) = self.is_taken.get_mut(call / 64) {
            let bit = 1 << (call % 64);
            if taken { *word |= bit } else { *word &= !bit }
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.returned {
            Some((moment, answer)) => {
                write!(f, "[{} to {moment}] {}: {answer}", self.invoked, self.operation)
            }
            None => write!(f, "[{} on] {}: outcome unknown", self.invoked, self.operation),
        }
    }
}

impl Violation {
    /// The longest attempt and the call at which it ends, line by line. `calls` is the history that
    /// was checked.
    pub fn explain(&self, calls: &[Call]) -> String {
        let mut text = String::new();
        for call in self.order.iter().filter_map(|at| calls.get(*at)) {
            text.push_str(&format!("  {call}\n"));
        }
        let held = self.state.map_or("nothing".to_owned(), |value| value.to_string());
        text.push_str(&format!("  then the item holds {held}, and this call fits nowhere:\n"));
        if let Some(stuck) = calls.get(self.stuck) {
            text.push_str(&format!("  {stuck}"));
        }
        text
    }
}
