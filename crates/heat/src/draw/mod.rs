//! Which requests are counted, and how many each of them stands for.
//!
//! The first [`EXACT`] requests for one item of a window are all counted, and the first [`EXACT`]
//! items of batches. Of the others each is drawn by itself, so that the items of a batch, which
//! often have one key, are not counted or left out together. A window's draws end with it.
//!
//! Not here: counting ([`detect`](crate::detect)), and how far a count may be off
//! (`detect::bounds`).

mod random;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

pub use random::Draws;

/// So many of a window are counted one by one. Below that the time that it takes is no matter;
/// beyond it, one key of a percent still makes hundreds of drawn requests.
const EXACT: u32 = 1_000;
/// Of the other requests for one item, and of the other items of batches, one in so many is drawn.
const DRAWN: u32 = 32;
/// From so many items of batches on, their number estimated, one in [`DRAWN_OF_MANY`] is drawn: to
/// find one, the batch is read.
const MANY: u32 = 16_000;
const DRAWN_OF_MANY: u32 = 256;
/// Of the requests that are drawn for others too, the store is asked of one in so many what it
/// costs. That takes longer than to count it, and those that are all counted say what each key's
/// requests cost. Of a batch it takes longest: all of its items are read.
const ASKED: u32 = 8;
const ASKED_OF_BATCHES: u32 = 32;

/// How a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// As it is, for so many like it.
    Whole(u32),
    /// Each of its items by itself: one in so many is drawn.
    Items(u32),
}

impl Draw {
    /// How many each item that is counted stands for.
    pub const fn weight(self) -> u32 {
        match self {
            Draw::Whole(weight) | Draw::Items(weight) => weight,
        }
    }
}

/// The items of one request that are counted, by their places.
#[derive(Clone, Copy, Debug)]
pub struct Chosen(u128);

impl Chosen {
    /// Every one.
    pub const ALL: Chosen = Chosen(u128::MAX);

    /// Whether the item at that place is counted. No request has more than 100, of which the last
    /// places are left.
    pub const fn has(self, at: usize) -> bool {
        at < 128 && self.0 >> at & 1 == 1
    }

    /// The place behind the last one that is counted.
    pub const fn end(self) -> usize {
        (u128::BITS - self.0.leading_zeros()) as usize
    }

    /// Whether none is.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Draws the requests of one gateway. Time is in any unit, of a clock that does not go back.
#[derive(Debug)]
pub struct Drawing {
    draws: Draws,
    /// How many requests for one item each that is counted stands for, and how many items of
    /// batches.
    requests: AtomicU32,
    items: AtomicU32,
    /// How many requests for one item are passed over before the next one is drawn.
    skip: AtomicI32,
    /// When the window ends for which this holds. After it all are counted again.
    ends: AtomicU64,
}

/// What was counted of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    window: u64,
    requests: u32,
    items: u32,
}

impl Drawing {
    /// Counts all at first.
    pub fn new(seed: u64) -> Self {
        Drawing {
            draws: Draws::new(seed),
            requests: AtomicU32::new(1),
            items: AtomicU32::new(1),
            skip: AtomicI32::new(0),
            ends: AtomicU64::new(0),
        }
    }

    /// Counts none: of 2^31 requests, and of as many items, none is drawn.
    pub fn none() -> Self {
        Drawing {
            draws: Draws::new(0),
            requests: AtomicU32::new(u32::MAX),
            items: AtomicU32::new(u32::MAX),
            skip: AtomicI32::new(i32::MAX),
            ends: AtomicU64::new(u64::MAX),
        }
    }

    /// Whether a request for one item is counted. Few instructions: most requests of a busy gateway
    /// do no more here.
    #[inline]
    pub fn request(&self, now: u64) -> Option<Draw> {
        let weight = self.requests.load(Ordering::Relaxed);
        if weight == 1 || now >= self.ends.load(Ordering::Relaxed) {
            return Some(Draw::Whole(1));
        }
        // Below zero another thread has drawn, and is about to set the next draw.
        if self.skip.fetch_sub(1, Ordering::Relaxed) != 0 {
            return None;
        }
        self.pass_over(weight);
        Some(Draw::Whole(weight))
    }

    /// How the items of a batch are counted.
    pub fn batch(&self, now: u64) -> Draw {
        let over = now >= self.ends.load(Ordering::Relaxed);
        Draw::Items(if over { 1 } else { self.items.load(Ordering::Relaxed) })
    }

    /// Whether the store is to be asked what a request costs that is counted so.
    pub fn asks(&self, draw: Draw) -> bool {
        let one_in = if let Draw::Items(_) = draw { ASKED_OF_BATCHES } else { ASKED };
        draw.weight() == 1 || self.draws.below(one_in) == 0
    }

    /// Draws the items of one request, which has at most `most`.
    pub fn choose(&self, draw: Draw, most: u32) -> Chosen {
        let Draw::Items(weight @ 2..) = draw else { return Chosen::ALL };
        let (mut chosen, mut at) = (0, self.draws.passed_over(weight));
        while at < most.min(u128::BITS) {
            chosen |= 1 << at;
            at = at.saturating_add(1).saturating_add(self.draws.passed_over(weight));
        }
        Chosen(chosen)
    }

    /// A request with so many accesses was counted in that window, which ends then. Gives how many
    /// each one that is counted stands for from now on, at most.
    pub fn counted(&self, pace: &mut Pace, (window, ends): (u64, u64), draw: Draw, accesses: usize) -> u32 {
        if pace.window != window {
            *pace = Pace { window, ..Pace::default() };
        }
        let accesses = u32::try_from(accesses).unwrap_or(u32::MAX);
        // One of which nothing is counted was read as well.
        let accesses = accesses.max(1);
        match draw {
            Draw::Whole(_) => pace.requests = pace.requests.saturating_add(accesses),
            Draw::Items(weight) => pace.items = pace.items.saturating_add(accesses.saturating_mul(weight)),
        }
        let requests = if pace.requests > EXACT { DRAWN } else { 1 };
        let items = if pace.items > MANY {
            DRAWN_OF_MANY
        } else if pace.items > EXACT {
            DRAWN
        } else {
            1
        };
        self.ends.store(ends, Ordering::Relaxed);
        self.items.store(items, Ordering::Relaxed);
        if requests != self.requests.load(Ordering::Relaxed) {
            self.pass_over(requests);
            self.requests.store(requests, Ordering::Relaxed);
        }
        requests.max(items)
    }

    fn pass_over(&self, weight: u32) {
        let skip = self.draws.passed_over(weight);
        self.skip.store(i32::try_from(skip).unwrap_or(i32::MAX), Ordering::Relaxed);
    }
}
