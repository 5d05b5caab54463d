//! Runs one remedy: tick by tick, every workload's requests against the partitions.
//!
//! Requests of a tick of 50 ms are offered at its start, those of competing workloads in random order. Recorded requests are offered at
//! their own times, but at the tick's start where other workloads compete with them. Many equal requests go through the model at once, which changes no count: they are the same requests in the same order.
//! What is random follows from the seed and the workload's name, so the order of workloads in a file changes nothing.

use std::collections::VecDeque;

use fastrand::Rng;
use heatsink_physics::{Demand, position};

use crate::compile::Run;
use crate::counts::Count;
use crate::dispatch::admit;
use crate::interleave::{Interleaving, What};
use crate::latency::Attempts;
use crate::model::Model;
use crate::record::{Record, Recorder};
use crate::retries::{Retries, Retry, Tally};
use crate::schedule::TICK;
use crate::stream::{Source, Stream};

/// One run.
pub(crate) struct Engine {
    pub(crate) streams: Vec<Stream>,
    pub(crate) model: Model,
    /// By stream, as all that follows.
    pub(crate) rngs: Vec<Rng>,
    pub(crate) counts: Vec<Count>,
    pub(crate) attempts: Vec<Attempts>,
    /// What a loader has yet to get in, and how many of those it has not tried in this tick.
    pub(crate) waiting: Vec<VecDeque<Vec<Demand>>>,
    pub(crate) untried: Vec<usize>,
    pub(crate) retries: Retries,
    interleaving: Interleaving,
    pub(crate) batches: bool,
}

impl Engine {
    /// `batches`: offer equal requests at once. Without, one by one; only a test does that.
    pub(crate) fn new(run: Run, seed: u64, batches: bool) -> Engine {
        let rng = |stream: &Stream| Rng::with_seed(seed ^ position(stream.name.as_bytes()));
        Engine {
            counts: vec![Count::default(); run.streams.len()],
            attempts: vec![Attempts::default(); run.streams.len()],
            waiting: vec![VecDeque::new(); run.streams.len()],
            untried: vec![0; run.streams.len()],
            rngs: run.streams.iter().map(rng).collect(),
            interleaving: Interleaving::new(&run.streams),
            streams: run.streams,
            model: run.model,
            retries: Retries::new(&run.client),
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
        while now < duration {
            self.tick(now);
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

    /// Everything that is asked for in the tick from `now` on.
    fn tick(&mut self, now: u64) {
        let mut due = Vec::new();
        while let Some(retry) = self.retries.due(now) {
            due.push(retry);
        }
        for group in 0..self.interleaving.groups.len() {
            let alone = self.line_up(group, now, &due);
            let parts = self.interleaving.take();
            for part in &parts {
                match part.what {
                    What::Own(count) => self.offer(part.stream, now, count, alone),
                    What::Retry(nth) => {
                        if let Some((retry, asks)) = due.get(nth) {
                            self.retry(now, retry, asks);
                        }
                    }
                }
            }
            self.interleaving.reuse(parts);
        }
    }

    /// Brings what a group of streams asks for in this tick into an order. Whether only one of them asks for anything.
    fn line_up(&mut self, group: usize, now: u64, due: &[(Retry, Vec<Demand>)]) -> bool {
        let members = self.interleaving.groups[group].clone();
        let asked: Vec<(u64, u64)> = members.iter().map(|stream| self.asked(*stream, now)).collect();
        let retried = || due.iter().enumerate().filter(|(_, (retry, _))| members.contains(&retry.stream));
        let alone = asked.iter().filter(|(count, more)| count + more > 0).count() + retried().count() < 2;
        for (stream, (count, more)) in members.iter().zip(asked).filter(|(_, (count, more))| count + more > 0)
        {
            let rng = &mut self.rngs[*stream];
            if alone {
                self.interleaving.whole(*stream, count + more);
            } else {
                self.interleaving.cut(*stream, count, more, rng);
            }
        }
        for (nth, (retry, _)) in retried() {
            let at = if alone { 0 } else { self.rngs[retry.stream].u64(..) };
            self.interleaving.push(retry.stream, at, What::Retry(nth));
        }
        alone
    }

    /// How many requests of its own a stream makes in the tick from `now` on; and how many more if others get in, of a loader that
    /// has as many waiting as it may.
    fn asked(&mut self, nth: usize, now: u64) -> (u64, u64) {
        let Stream { source, loader, .. } = &mut self.streams[nth];
        match source {
            Source::Cells { schedule, .. } | Source::Sampled { schedule, .. } => {
                self.untried[nth] = self.waiting[nth].len();
                let (due, waiting) = (schedule.due(now, TICK), self.waiting[nth].len() as u64);
                let room = loader.map_or(due, |loader| due.min(loader.window.saturating_sub(waiting)));
                (waiting + room, due - room)
            }
            Source::Trace { requests, next } => {
                (requests[*next..].iter().take_while(|(at, _)| *at < now + TICK).count() as u64, 0)
            }
        }
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

    fn retry(&mut self, now: u64, retry: &Retry, asks: &[Demand]) {
        let scatter = self.streams[retry.stream].scatter;
        let accepted = admit(&mut self.model, now, asks, scatter, retry.count, self.batches);
        let mut tally = Tally {
            count: &mut self.counts[retry.stream],
            attempts: &mut self.attempts[retry.stream],
            retries: &mut self.retries,
            stream: retry.stream,
        };
        let rng = &mut self.rngs[retry.stream];
        tally.count(now, asks, retry.count, accepted, retry.attempt + 1, rng);
    }
}
