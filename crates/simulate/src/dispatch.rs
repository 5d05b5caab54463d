//! Offers the requests of one stream to the partitions, many at a time, and counts what was
//! admitted.
//!
//! Not here: when, and in which order among streams ([`crate::engine`]).

use std::collections::VecDeque;

use fastrand::Rng;
use heatsink_physics::{Demand, KeyRange, SortKey, position};

use crate::combined::Combined;
use crate::compile::Run;
use crate::counts::Count;
use crate::draw::multinomial;
use crate::latency::Attempts;
use crate::model::Model;
use crate::retries::{Retries, Retry, Tally};
use crate::schedule::TICK;
use crate::stream::{Source, Stream};

/// The number of requests that are drawn before the first of them is offered.
const AT_ONCE: u64 = 512;

/// Streams, the partitions that they share, and what each stream counted.
pub(crate) struct Dispatcher {
    pub streams: Vec<Stream>,
    pub model: Model,
    /// By stream, as all that follows.
    pub rngs: Vec<Rng>,
    pub counts: Vec<Count>,
    pub attempts: Vec<Attempts>,
    pub retries: Retries,
    /// A loader's items that are not accepted yet, and how many of them it has not tried in this
    /// tick.
    waiting: Vec<VecDeque<Vec<Demand>>>,
    untried: Vec<usize>,
    batches: bool,
}

impl Dispatcher {
    /// `batches`: offer equal requests at once. Without, one by one; only a test does that.
    pub(crate) fn new(run: Run, seed: u64, batches: bool) -> Dispatcher {
        let rng = |stream: &Stream| Rng::with_seed(seed ^ position(stream.name.as_bytes()));
        Dispatcher {
            counts: vec![Count::default(); run.streams.len()],
            attempts: vec![Attempts::default(); run.streams.len()],
            waiting: vec![VecDeque::new(); run.streams.len()],
            untried: vec![0; run.streams.len()],
            rngs: run.streams.iter().map(rng).collect(),
            streams: run.streams,
            model: run.model,
            retries: Retries::new(&run.client),
            batches,
        }
    }

    /// The requests of a stream that are due in the tick from `now` on. The second number is those
    /// that a loader with a full window offers only if others are accepted.
    pub(crate) fn asked(&mut self, nth: usize, now: u64) -> (u64, u64) {
        let Stream { source, loader, .. } = &mut self.streams[nth];
        match source {
            Source::Cells { schedule, .. } | Source::Sampled { schedule, .. } => {
                self.untried[nth] = self.waiting[nth].len();
                let (due, waiting) = (schedule.due(now, TICK), self.waiting[nth].len() as u64);
                let room = loader.map_or(due, |loader| due.min(loader.window.saturating_sub(waiting)));
                (waiting + room, due - room)
            }
            Source::Trace(replay) => {
                let left = replay.requests.iter().skip(replay.next);
                (left.take_while(|request| request.at < now + TICK).count() as u64, 0)
            }
        }
    }

    /// Offers the next `due` requests of a stream, all of them now; recorded ones at their own
    /// times if they are `alone`.
    pub(crate) fn offer(&mut self, nth: usize, now: u64, due: u64, alone: bool) {
        if self.streams[nth].loader.is_some() {
            return self.load(nth, now, due);
        }
        let Dispatcher { streams, model, rngs, counts, attempts, retries, batches, .. } = self;
        let rng = &mut rngs[nth];
        let Stream { source, scatter, cache, combined, operation, .. } = &mut streams[nth];
        let mut tally = Tally { count: &mut counts[nth], attempts: &mut attempts[nth], retries, stream: nth };
        match source {
            Source::Cells { weights, cells, ascending, .. } => {
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
                    let missed =
                        cache.as_mut().map_or(count, |cache| cache.missed(cell, 0, now, TICK, count));
                    tally.cached(count - missed);
                    let send = |count| admit(model, now, asks, *scatter, count, *batches);
                    let accepted = combine(combined, now, asks, missed, send);
                    tally.count(now, asks, missed, accepted, 1, rng);
                }
            }
            Source::Sampled { each, same_instant: Some(same_instant), .. } => {
                let mut due = due;
                while due > 0 {
                    let most = if *batches { AT_ONCE } else { 1 };
                    let room = model.room(now, &same_instant.shared, due.min(most));
                    if room == 0 {
                        // No time passes, so there is no room for the others either, wherever they
                        // would fall.
                        let accepted = admit(model, now, &same_instant.shared, false, due, *batches);
                        tally.count(now, &same_instant.shared, due, accepted, 1, rng);
                        break;
                    }
                    each.draw_points(now, rng, room, &mut same_instant.points);
                    let accepted =
                        model.admit_each(now, &same_instant.shared, &same_instant.each, &same_instant.points);
                    tally.count(now, &same_instant.shared, room, accepted, 1, rng);
                    due -= room;
                }
            }
            Source::Sampled { each, .. } => {
                let mut due = due;
                // Retries draw from the same numbers, so where there are any each request is drawn
                // when its turn comes.
                let at_once = if tally.retries.on { 1 } else { AT_ONCE };
                while due > 0 {
                    each.draw(now, rng, due.min(at_once));
                    due -= due.min(at_once);
                    for nth in 0..each.drawn() {
                        let (key, part) = each.picked(nth);
                        if let Some(cache) = cache
                            && cache.missed(if cache.by_part { part } else { key }, key, now, TICK, 1) == 0
                        {
                            tally.cached(1);
                            continue;
                        }
                        let asks = each.asks(nth, *operation);
                        let send = |count| admit(model, now, asks, *scatter, count, true);
                        let accepted = combine(combined, now, asks, 1, send);
                        tally.count(now, asks, 1, accepted, 1, rng);
                    }
                }
            }
            Source::Trace(replay) => {
                for _ in 0..due {
                    let Some(request) = replay.requests.get(replay.next) else { break };
                    replay.next += 1;
                    let at = if alone { request.at } else { now };
                    let mut count = request.count;
                    if let (Some(cache), Some(entry)) = (cache.as_mut(), request.entry) {
                        let long = if alone { 0 } else { TICK };
                        count = cache.missed(entry as usize, 0, at, long, count);
                        tally.cached(request.count - count);
                    }
                    for (asks, count) in replay.physical(request, count) {
                        let accepted = admit(model, at, &asks, *scatter, count, true);
                        tally.count(at, &asks, count, accepted, 1, rng);
                    }
                }
            }
        }
    }

    /// A loader's next `due` requests: what waits is tried again, once in a tick; then new items
    /// while few enough wait.
    fn load(&mut self, nth: usize, now: u64, due: u64) {
        let Dispatcher { streams, model, rngs, counts, waiting, untried, .. } = self;
        let rng = &mut rngs[nth];
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
        // Items that are throttled again are queued behind the others. The order stays, because
        // every item is tried.
        let again = (untried[nth] as u64).min(due);
        for _ in 0..again {
            untried[nth] -= 1;
            if let Some(asks) = waiting.pop_front()
                && !offer(&asks)
            {
                waiting.push_back(asks);
            }
        }
        let Some(loader) = loader else { return };
        let mut draw: Draw<'_> = match source {
            Source::Sampled { each, .. } => {
                let draw = |rng: &mut Rng| {
                    each.draw(now, rng, 1);
                    each.asks(0, *operation).to_vec()
                };
                Box::new(draw)
            }
            Source::Cells { weights, cells, ascending, .. } => {
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
                Box::new(draw)
            }
            Source::Trace(_) => return,
        };
        for _ in again..due {
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

    /// Offers a throttled request, or `retry.count` equal ones, again.
    pub(crate) fn retry(&mut self, now: u64, retry: &Retry, asks: &[Demand]) {
        let Stream { scatter, combined, .. } = &mut self.streams[retry.stream];
        let send = |count| admit(&mut self.model, now, asks, *scatter, count, self.batches);
        let accepted = combine(combined, now, asks, retry.count, send);
        let mut tally = Tally {
            count: &mut self.counts[retry.stream],
            attempts: &mut self.attempts[retry.stream],
            retries: &mut self.retries,
            stream: retry.stream,
        };
        let rng = &mut self.rngs[retry.stream];
        tally.count(now, asks, retry.count, accepted, retry.attempt + 1, rng);
    }

    /// Counts the attempts of a step's requests, if throttled requests are not retried.
    pub(crate) fn settle(&mut self) {
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
}

/// Draws the demands of a loader's next item.
type Draw<'a> = Box<dyn FnMut(&mut Rng) -> Vec<Demand> + 'a>;

/// How many of `count` equal requests are accepted, where `send` offers those that are sent.
fn combine(
    combined: &mut Option<Combined>,
    now: u64,
    asks: &[Demand],
    count: u64,
    send: impl FnOnce(u64) -> u64,
) -> u64 {
    match combined {
        Some(combined) => combined.offer(now, asks, count, send),
        None => send(count),
    }
}

/// How many of `count` equal requests are admitted. Every demand of a scatter is sent and consumes
/// capacity; the request is accepted when all are.
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
        if let KeyRange::At(point) = &mut ask.place {
            point.sort = SortKey::ordinal(now);
        }
    }
}
