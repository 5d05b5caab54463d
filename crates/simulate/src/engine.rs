//! Runs one remedy: tick by tick, every workload's requests against the partitions.
//!
//! Requests of a tick of 50 ms are offered at its start; recorded requests at their own times. Many equal requests go through the
//! model at once, which changes no count: they are the same requests in the same order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::VecDeque;

use fastrand::Rng;
use heatsink_physics::{Demand, Place, SortKey};

use crate::compile::{Cache, Run, Source, Stream};
use crate::draw::multinomial;
use crate::latency::{Attempts, MAX_ATTEMPTS};
use crate::model::Model;
use crate::record::{Record, Recorder};

/// Virtual time goes in steps of 50 ms.
pub(crate) const TICK: u64 = 50_000_000;

/// So many requests are drawn before the first of them is offered.
const AT_ONCE: u64 = 512;

/// A throttled request that waits for its next attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Retry {
    at: u64,
    /// Keeps the order of those that come due together.
    number: u64,
    stream: usize,
    attempt: usize,
    count: u64,
    asks: usize,
}

/// What a run counted for one stream in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub offered: u64,
    pub accepted: u64,
    /// Of the accepted, those that a cache answered.
    pub cached: u64,
}

/// One run.
pub(crate) struct Engine {
    streams: Vec<Stream>,
    model: Model,
    rng: Rng,
    counts: Vec<Count>,
    attempts: Vec<Attempts>,
    waiting: Vec<VecDeque<Vec<Demand>>>,
    retries: Retries,
    batches: bool,
}

/// Requests that an SDK offers again.
struct Retries {
    on: bool,
    most: usize,
    backoff: u64,
    heap: BinaryHeap<Reverse<Retry>>,
    /// Asks of waiting requests, by number; free numbers are used again.
    asks: Vec<Vec<Demand>>,
    free: Vec<usize>,
    number: u64,
}

impl Engine {
    /// `batches`: offer equal requests at once. Without, one by one; only a test does that.
    pub(crate) fn new(run: Run, seed: u64, batches: bool) -> Engine {
        let most = usize::try_from(run.client.attempts.0).unwrap_or(MAX_ATTEMPTS);
        let retries = Retries {
            on: run.client.reoffer,
            most,
            backoff: run.client.backoff.0.max(TICK),
            heap: BinaryHeap::new(),
            asks: Vec::new(),
            free: Vec::new(),
            number: 0,
        };
        Engine {
            counts: vec![Count::default(); run.streams.len()],
            attempts: vec![Attempts::default(); run.streams.len()],
            waiting: vec![VecDeque::new(); run.streams.len()],
            streams: run.streams,
            model: run.model,
            rng: Rng::with_seed(seed),
            retries,
            batches,
        }
    }

    /// Runs for `duration` in steps of `step`, both nanoseconds. `progress` is told the share done, now and then.
    pub(crate) fn run(
        mut self,
        duration: u64,
        step: u64,
        resources: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Record {
        let mut recorder = Recorder::new(resources, self.streams.len());
        recorder.start(&mut self.model);
        let (mut now, mut until) = (0, step);
        let mut turn = 0;
        while now < duration {
            self.retry(now);
            // Nobody is always first at a partition that is nearly closed.
            turn += 1;
            for nth in 0..self.streams.len() {
                self.offer((nth + turn) % self.streams.len(), now);
            }
            now += TICK;
            if now >= until || now >= duration {
                self.settle();
                recorder.step(now.min(duration), &mut self.model, &mut self.counts);
                until += step;
                progress(now as f64 / duration as f64);
            }
        }
        recorder.finish(self.streams, self.attempts)
    }

    /// The latency of a step's throttled requests, where they are not offered again.
    fn settle(&mut self) {
        for ((stream, count), attempts) in self.streams.iter().zip(&self.counts).zip(&mut self.attempts) {
            if !self.retries.on && stream.loader.is_none() {
                attempts.add_share(
                    count.offered - count.cached,
                    count.accepted - count.cached,
                    self.retries.most,
                );
            }
            attempts.cached += count.cached as f64;
        }
    }

    fn offer(&mut self, nth: usize, now: u64) {
        if self.streams[nth].loader.is_some() {
            return self.load(nth, now);
        }
        let Engine { streams, model, rng, counts, attempts, retries, batches, .. } = self;
        let Stream { source, scatter, cache, operation, .. } = &mut streams[nth];
        let mut tally = Tally { count: &mut counts[nth], attempts: &mut attempts[nth], retries, stream: nth };
        match source {
            Source::Cells { schedule, weights, cells, ascending } => {
                let due = schedule.due(now, TICK);
                let mut drawn = Vec::new();
                if cells.len() == 1 {
                    drawn.push(due)
                } else {
                    multinomial(rng, due, weights, &mut drawn)
                }
                for (cell, (asks, count)) in
                    cells.iter_mut().zip(drawn).enumerate().filter(|(_, (_, count))| *count > 0)
                {
                    if *ascending {
                        ascend(asks, now);
                    }
                    let missed = cache.as_mut().map_or(count, |cache| cache.missed(cell, now, count));
                    tally.cached(count - missed);
                    let accepted = admit(model, now, asks, *scatter, missed, *batches);
                    tally.count(now, asks, missed, accepted, 1, rng);
                }
            }
            Source::Each { schedule, each, alike: Some(alike) } => {
                let mut due = schedule.due(now, TICK);
                while due > 0 {
                    let most = if *batches { AT_ONCE } else { 1 };
                    let room = model.room(now, &alike.shared, due.min(most));
                    if room == 0 {
                        // No time passes, so there is none for all others either: where they would fall is not asked.
                        let accepted = admit(model, now, &alike.shared, false, due, *batches);
                        tally.count(now, &alike.shared, due, accepted, 1, rng);
                        break;
                    }
                    each.draw_points(now, rng, room, &mut alike.points);
                    let accepted = model.admit_each(now, &alike.shared, &alike.each, &alike.points);
                    tally.count(now, &alike.shared, room, accepted, 1, rng);
                    due -= room;
                }
            }
            Source::Each { schedule, each, .. } => {
                let mut due = schedule.due(now, TICK);
                // Retries draw from the same numbers, so where there are any each request is drawn when its turn comes.
                let at_once = if tally.retries.on { 1 } else { AT_ONCE };
                while due > 0 {
                    each.draw(now, rng, due.min(at_once));
                    due -= due.min(at_once);
                    for nth in 0..each.drawn() {
                        let (key, part) = each.picked(nth);
                        if let Some(cache) = cache
                            && cache.missed(if cache.by_part { part } else { key }, now, 1) == 0
                        {
                            tally.cached(1);
                            continue;
                        }
                        let asks = each.asks(nth, *operation);
                        let accepted = admit(model, now, asks, *scatter, 1, true);
                        tally.count(now, asks, 1, accepted, 1, rng);
                    }
                }
            }
            Source::Trace { requests, next } => {
                while let Some((at, asks)) = requests.get(*next).filter(|(at, _)| *at < now + TICK) {
                    *next += 1;
                    let accepted = admit(model, *at, asks, false, 1, true);
                    tally.count(*at, asks, 1, accepted, 1, rng);
                }
            }
        }
    }

    /// A loader's tick: what waits is tried again, once; then new items while few enough wait.
    fn load(&mut self, nth: usize, now: u64) {
        let Engine { streams, model, rng, counts, waiting, .. } = self;
        let Stream { source, loader, operation, .. } = &mut streams[nth];
        let (waiting, count) = (&mut waiting[nth], &mut counts[nth]);
        let mut offer = |asks: &[Demand]| {
            count.offered += 1;
            let accepted = model.admit(now, asks);
            if accepted {
                count.accepted += 1;
            }
            accepted
        };
        waiting.retain(|asks| !offer(asks));
        let Some(loader) = loader else { return };
        let (schedule, mut draw): (_, Draw<'_>) = match source {
            Source::Each { schedule, each, .. } => {
                let draw = |rng: &mut Rng| {
                    each.draw(now, rng, 1);
                    each.asks(0, *operation).to_vec()
                };
                (schedule, Box::new(draw))
            }
            Source::Cells { schedule, weights, cells, ascending } => {
                let mut counts = Vec::new();
                let draw = move |rng: &mut Rng| {
                    multinomial(rng, 1, weights, &mut counts);
                    let mut asks = counts
                        .iter()
                        .position(|count| *count > 0)
                        .map_or_else(Vec::new, |cell| cells[cell].clone());
                    if *ascending {
                        ascend(&mut asks, now);
                    }
                    asks
                };
                (schedule, Box::new(draw))
            }
            Source::Trace { .. } => return,
        };
        for _ in 0..schedule.due(now, TICK) {
            if loader.items == 0 || waiting.len() as u64 >= loader.window {
                break;
            }
            loader.items -= 1;
            let asks = draw(rng);
            if !offer(&asks) {
                waiting.push_back(asks);
            }
        }
    }

    fn retry(&mut self, now: u64) {
        while self.retries.heap.peek().is_some_and(|Reverse(retry)| retry.at <= now) {
            let Some(Reverse(retry)) = self.retries.heap.pop() else { return };
            let asks = std::mem::take(&mut self.retries.asks[retry.asks]);
            self.retries.free.push(retry.asks);
            let accepted = admit(
                &mut self.model,
                now,
                &asks,
                self.streams[retry.stream].scatter,
                retry.count,
                self.batches,
            );
            let mut tally = Tally {
                count: &mut self.counts[retry.stream],
                attempts: &mut self.attempts[retry.stream],
                retries: &mut self.retries,
                stream: retry.stream,
            };
            tally.count(now, &asks, retry.count, accepted, retry.attempt + 1, &mut self.rng);
        }
    }
}

/// Draws the asks of a loader's next item.
type Draw<'a> = Box<dyn FnMut(&mut Rng) -> Vec<Demand> + 'a>;

/// How many of `count` equal requests are admitted. Of a scatter every ask is sent and paid; the request is accepted when all are.
fn admit(model: &mut Model, now: u64, asks: &[Demand], scatter: bool, count: u64, batches: bool) -> u64 {
    if scatter {
        return asks
            .iter()
            .map(|ask| model.admit_many(now, std::slice::from_ref(ask), count))
            .min()
            .unwrap_or(0);
    }
    match (count, batches) {
        (0, _) => 0,
        (1, _) => u64::from(model.admit(now, asks)),
        (_, true) => model.admit_many(now, asks, count),
        (_, false) => (0..count).filter(|_| model.admit(now, asks)).count() as u64,
    }
}

fn ascend(asks: &mut [Demand], now: u64) {
    for ask in asks {
        if let Place::At(point) = &mut ask.place {
            point.sort = SortKey::ordinal(now);
        }
    }
}

/// Books what became of requests.
struct Tally<'a> {
    count: &'a mut Count,
    attempts: &'a mut Attempts,
    retries: &'a mut Retries,
    stream: usize,
}

impl Tally<'_> {
    fn cached(&mut self, hits: u64) {
        self.count.offered += hits;
        self.count.accepted += hits;
        self.count.cached += hits;
    }

    fn count(
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

impl Cache {
    /// Of `count` reads of one thing, those that no node has. Each node asks once, then answers for a while.
    fn missed(&mut self, of: usize, now: u64, count: u64) -> u64 {
        let Some(until) = self.until.get_mut(of) else { return count };
        if now < *until {
            return 0;
        }
        // What fewer reads than nodes leave cold is asked again with the next ones; here that is rounded away.
        *until = now + self.ttl;
        count.min(self.nodes)
    }
}
