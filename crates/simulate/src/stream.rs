//! The requests of one workload in one run, as the engine offers them.

use heatsink_physics::Demand;

use crate::cache::Cache;
use crate::combined::Combined;
use crate::replay::Replay;
use crate::sampled_requests::{SameInstantBatch, SampledRequests};
use crate::scenario::Operation;
use crate::schedule::Schedule;

/// Requests of one workload in one run.
pub(crate) struct Stream {
    /// The workload's name, and the day where its keys change by day: seeds what is random in it.
    pub name: String,
    /// The workload's number.
    pub workload: usize,
    pub operation: Operation,
    pub source: Source,
    /// Each demand is a separate request: a scatter. Otherwise either all demands are admitted or
    /// none.
    pub scatter: bool,
    pub cache: Option<Cache>,
    pub combined: Option<Combined>,
    pub loader: Option<Loader>,
}

/// Where the requests come from.
pub(crate) enum Source {
    /// A few kinds of requests, drawn many at a time.
    Cells { schedule: Schedule, weights: Vec<f64>, cells: Vec<Vec<Demand>>, ascending: bool },
    /// Sampled one by one; offered one by one unless they are alike.
    Sampled { schedule: Schedule, each: Box<SampledRequests>, same_instant: Option<SameInstantBatch> },
    /// Recorded.
    Trace(Replay),
}

/// A load that is retried until all of it is accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader {
    pub items: u64,
    pub window: u64,
}

impl Stream {
    /// Physical requests that one request sends at once.
    pub(crate) fn at_once(&self) -> usize {
        match &self.source {
            Source::Cells { cells, .. } if self.scatter => cells.first().map_or(1, Vec::len),
            Source::Sampled { each, .. } if self.scatter => each.templates.len(),
            Source::Trace(replay) => replay.at_once(),
            _ => 1,
        }
    }

    /// Units of one request on its table (or on the index that it reads), on average.
    pub(crate) fn units(&self) -> f64 {
        let first = |asks: &[Demand]| {
            let own = asks.iter().take(if self.scatter { asks.len() } else { 1 });
            own.map(|ask| ask.units.to_f64()).sum()
        };
        match &self.source {
            Source::Cells { cells, .. } => cells.first().map_or(0.0, |asks| first(asks)),
            Source::Sampled { each, .. } => {
                let asks: Vec<Demand> = each.templates.iter().map(|(ask, _)| *ask).collect();
                first(&asks)
            }
            Source::Trace(replay) => replay.units(),
        }
    }
}
