//! Runs one remedy: tick by tick, every workload's requests against the partitions.
//!
//! Requests of a tick of 50 ms are offered at its start, those of competing workloads in random
//! order. Recorded requests are offered at their own times, but at the tick's start where other
//! workloads compete with them. Many equal requests are offered to the model at once. This changes
//! no count, because they are the same requests in the same order. What is random follows from the
//! seed and the workload's name, so the order of workloads in a file changes nothing.

use heatsink_physics::Demand;

use crate::compile::Run;
use crate::dispatch::Dispatcher;
use crate::interleave::{Interleaving, What};
use crate::record::{Record, Recorder};
use crate::retries::Retry;
use crate::schedule::TICK;

/// One run.
pub(crate) struct Engine {
    dispatcher: Dispatcher,
    interleaving: Interleaving,
}

impl Engine {
    /// `batches`: offer equal requests at once. Without, one by one; only a test does that.
    pub(crate) fn new(run: Run, seed: u64, batches: bool) -> Engine {
        let interleaving = Interleaving::new(&run.streams);
        Engine { dispatcher: Dispatcher::new(run, seed, batches), interleaving }
    }

    /// Runs for `duration` in steps of `step`, both nanoseconds. `progress` gets the share done,
    /// from 0 to 1, after each step.
    pub(crate) fn run(
        mut self,
        duration: u64,
        step: u64,
        resources: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Record {
        let mut recorder = Recorder::new(resources, self.dispatcher.streams.len());
        recorder.start(&mut self.dispatcher.model);
        let (mut now, mut until) = (0, step);
        while now < duration {
            self.tick(now);
            now += TICK;
            if now >= until || now >= duration {
                self.dispatcher.settle();
                recorder.step(now.min(duration), &mut self.dispatcher.model, &mut self.dispatcher.counts);
                until += step;
                progress(now as f64 / duration as f64);
            }
        }
        recorder.finish(self.dispatcher.streams, self.dispatcher.attempts)
    }

    /// Offers all requests of the tick from `now` on.
    fn tick(&mut self, now: u64) {
        let mut due = Vec::new();
        while let Some(retry) = self.dispatcher.retries.due(now) {
            due.push(retry);
        }
        for group in 0..self.interleaving.groups.len() {
            let alone = self.line_up(group, now, &due);
            let parts = self.interleaving.take();
            for part in &parts {
                match part.what {
                    What::Own(count) => self.dispatcher.offer(part.stream, now, count, alone),
                    What::Retry(nth) => {
                        if let Some((retry, asks)) = due.get(nth) {
                            self.dispatcher.retry(now, retry, asks);
                        }
                    }
                }
            }
            self.interleaving.reuse(parts);
        }
    }

    /// Orders the requests of a group of streams in this tick. Returns whether only one of them has
    /// any.
    fn line_up(&mut self, group: usize, now: u64, due: &[(Retry, Vec<Demand>)]) -> bool {
        let members = self.interleaving.groups[group].clone();
        let asked: Vec<(u64, u64)> =
            members.iter().map(|stream| self.dispatcher.asked(*stream, now)).collect();
        let retried = || due.iter().enumerate().filter(|(_, (retry, _))| members.contains(&retry.stream));
        let alone = asked.iter().filter(|(count, more)| count + more > 0).count() + retried().count() < 2;
        for (stream, (count, more)) in members.iter().zip(asked).filter(|(_, (count, more))| count + more > 0)
        {
            let rng = &mut self.dispatcher.rngs[*stream];
            if alone {
                self.interleaving.whole(*stream, count + more);
            } else {
                self.interleaving.cut(*stream, count, more, rng);
            }
        }
        for (nth, (retry, _)) in retried() {
            let at = if alone { 0 } else { self.dispatcher.rngs[retry.stream].u64(..) };
            self.interleaving.push(retry.stream, at, What::Retry(nth));
        }
        alone
    }
}
