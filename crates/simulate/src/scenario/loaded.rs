//! A scenario together with the files that it names.

use std::collections::HashMap;

use super::file::Scenario;
use super::trace::Trace;

/// A scenario with all that it names, checked.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its name: the file's, without ending.
    pub name: String,
    /// What it says.
    pub scenario: Scenario,
    /// Lists of keys and how often each comes in a row, by path.
    pub(crate) lists: HashMap<String, Vec<(String, u32)>>,
    /// Traces, by path.
    pub(crate) traces: HashMap<String, Trace>,
    /// By workload: how many requests of its trace it takes.
    pub(crate) taken: Vec<usize>,
    /// Lines of traces that were left out because they cannot be read.
    pub skipped: usize,
    /// Lines of traces that come after the end of the run.
    pub late: usize,
}

impl Loaded {
    /// Length of a step in nanoseconds: the scenario's own, else about a hundredth of the run in
    /// whole seconds.
    pub(crate) fn step(&self) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let duration = self.scenario.duration.0;
        self.scenario.step.map_or_else(|| duration.div_ceil(100 * SECOND) * SECOND, |step| step.0)
    }
}
