//! The recorded counts and partitions of a run, step by step.

use crate::counts::{Count, Heat, Step};
use crate::latency::Attempts;
use crate::model::{Model, Seen};
use crate::stream::Stream;
use heatsink_physics::PartitionLoad;

/// A whole run.
pub(crate) struct Record {
    pub steps: Vec<Step>,
    pub streams: Vec<Stream>,
    pub attempts: Vec<Attempts>,
}

pub(crate) struct Recorder {
    steps: Vec<Step>,
    resources: usize,
    streams: usize,
    /// By resource: what was seen at the end of the last step.
    before: Vec<Vec<Seen>>,
}

impl Recorder {
    pub(crate) fn new(resources: usize, streams: usize) -> Recorder {
        Recorder { steps: Vec::new(), resources, streams, before: Vec::new() }
    }

    pub(crate) fn start(&mut self, model: &mut Model) {
        self.before = (0..self.resources).map(|on| model.partitions(0, on)).collect();
    }

    pub(crate) fn step(&mut self, now: u64, model: &mut Model, counts: &mut Vec<Count>) {
        let start = self.steps.last().map_or(0, |step| step.end);
        let seconds = now.saturating_sub(start) as f64 / 1e9;
        let mut heat = Vec::with_capacity(self.resources);
        for (on, before) in self.before.iter_mut().enumerate() {
            let seen = model.partitions(now, on);
            heat.push(seen.iter().map(|seen| since(seen, before, seconds)).collect());
            *before = seen;
        }
        let counts = std::mem::replace(counts, vec![Count::default(); self.streams]);
        self.steps.push(Step { end: now, counts, heat });
    }

    pub(crate) fn finish(self, streams: Vec<Stream>, attempts: Vec<Attempts>) -> Record {
        Record { steps: self.steps, streams, attempts }
    }
}

/// What went through a partition since it was last seen. A partition that was not there starts from
/// nothing.
fn since(seen: &Seen, before: &[Seen], seconds: f64) -> Heat {
    let last = before.iter().find(|last| last.from == seen.from);
    let less = |now: f64, then: Option<f64>| {
        #[allow(clippy::cast_possible_truncation, reason = "for display and sums of a step")]
        let less = (now - then.unwrap_or(0.0)).max(0.0) as f32;
        less
    };
    let asked = seen.load.since(&last.map_or_else(PartitionLoad::default, |last| last.load));
    Heat {
        first: seen.from,
        reads: less(seen.reads, last.map(|last| last.reads)),
        writes: less(seen.writes, last.map(|last| last.writes)),
        throttles: less(seen.throttles as f64, last.map(|last| last.throttles as f64)),
        refused: less(asked.refused as f64, None),
        asked: less(asked.of_ceiling(seconds), None),
    }
}
