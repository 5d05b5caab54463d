//! Throttled requests that wait for their next attempt, and the tally of request outcomes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;
use heatsink_physics::Demand;

use crate::counts::Count;
use crate::latency::{Attempts, MAX_ATTEMPTS};
use crate::scenario::Client;
use crate::schedule::TICK;

/// A throttled request that waits for its next attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Retry {
    pub at: u64,
    /// Keeps the order of retries that are due together.
    number: u64,
    pub stream: usize,
    pub attempt: usize,
    pub count: u64,
    pub asks: usize,
}

/// The requests that an SDK retries.
pub(crate) struct Retries {
    pub on: bool,
    pub most: usize,
    backoff: u64,
    heap: BinaryHeap<Reverse<Retry>>,
    /// The demands of waiting requests, by number; free numbers are reused.
    asks: Vec<Vec<Demand>>,
    free: Vec<usize>,
    number: u64,
}

impl Retries {
    /// The retries of `client`; none is waiting yet.
    pub(crate) fn new(client: &Client) -> Retries {
        Retries {
            on: client.reoffer,
            most: usize::try_from(client.attempts.0).unwrap_or(MAX_ATTEMPTS),
            backoff: client.backoff.0.max(TICK),
            heap: BinaryHeap::new(),
            asks: Vec::new(),
            free: Vec::new(),
            number: 0,
        }
    }

    /// The next retry that is due, and its demands.
    pub(crate) fn due(&mut self, now: u64) -> Option<(Retry, Vec<Demand>)> {
        self.heap.peek().filter(|Reverse(retry)| retry.at <= now)?;
        let Reverse(retry) = self.heap.pop()?;
        let asks = std::mem::take(&mut self.asks[retry.asks]);
        self.free.push(retry.asks);
        Some((retry, asks))
    }
}

/// Counts the outcomes of requests.
pub(crate) struct Tally<'a> {
    pub count: &'a mut Count,
    pub attempts: &'a mut Attempts,
    pub retries: &'a mut Retries,
    pub stream: usize,
}

impl Tally<'_> {
    pub(crate) fn cached(&mut self, hits: u64) {
        self.count.offered += hits;
        self.count.accepted += hits;
        self.count.cached += hits;
    }

    pub(crate) fn count(
        &mut self,
        now: u64,
        asks: &[Demand],
        offered: u64,
        accepted: u64,
        attempt: usize,
        rng: &mut Rng,
    ) {
        self.count.offered += offered;
        self.count.accepted += accepted;
        if !self.retries.on {
            return;
        }
        self.attempts.add(attempt, accepted);
        let throttled = offered - accepted;
        if throttled == 0 {
            return;
        }
        if attempt >= self.retries.most {
            self.attempts.failed += throttled as f64;
            return;
        }
        // Full jitter around the stated mean: evenly from 0 to twice as long.
        let pause = crate::latency::backoff(self.retries.backoff, attempt).saturating_mul(2).max(TICK);
        let number = self.retries.free.pop().unwrap_or_else(|| {
            self.retries.asks.push(Vec::new());
            self.retries.asks.len() - 1
        });
        self.retries.asks[number] = asks.to_vec();
        self.retries.number += 1;
        self.retries.heap.push(Reverse(Retry {
            at: now + TICK + rng.u64(..pause),
            number: self.retries.number,
            stream: self.stream,
            attempt,
            count: throttled,
            asks: number,
        }));
    }
}
