//! What a simulation reports: sums, rates, percentiles, costs, and the partitions over time.

use serde::Serialize;

use crate::counts::Heat;

/// All runs of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub scenario: String,
    /// What happens in it.
    pub about: String,
    /// Where its figures come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What was measured on AWS, or in the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// Virtual seconds of each run.
    pub seconds: f64,
    /// Lines of traces that were left out because they cannot be read.
    pub skipped_lines: usize,
    /// Lines of traces that come after the end of the run and were not offered.
    pub late_lines: usize,
    /// One for each remedy.
    pub runs: Vec<Run>,
}

/// One remedy's run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The remedy.
    pub name: String,
    /// Requests offered to the tables, or to the caches in front of them.
    pub offered: u64,
    /// Of those, accepted.
    pub accepted: u64,
    /// Of those, throttled.
    pub throttled: u64,
    /// Throttled over offered; 0 without requests.
    pub throttled_share: f64,
    /// Seconds of the steps in which something was offered.
    pub loaded_seconds: f64,
    /// Write units consumed per second of the loaded time, tables and indexes.
    pub write_units_per_s: f64,
    /// Read units consumed per second of the loaded time, tables and indexes.
    pub read_units_per_s: f64,
    /// 99th percentile of all requests in milliseconds, retries included: a model, see the
    /// documentation.
    pub p99_ms: Option<f64>,
    /// US dollars per month: what is provisioned, or what would be consumed.
    pub usd_per_month: f64,
    /// Partitions of all tables at the end, indexes left out.
    pub partitions: usize,
    /// What breaks or stays broken.
    pub breaks: String,
    /// What the partitions show, in a sentence.
    pub diagnosis: String,
    /// By workload.
    pub workloads: Vec<Load>,
    /// Over time.
    pub series: Vec<Point>,
    /// The heat of every partition over time, for pictures.
    #[serde(skip)]
    pub(crate) heat: Vec<Map>,
}

/// One workload in one run.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// What it does: the remedy may have changed it.
    pub operation: &'static str,
    /// Requests offered.
    pub offered: u64,
    /// Of those, accepted.
    pub accepted: u64,
    /// Of those, throttled.
    pub throttled: u64,
    /// Of the accepted, those that a cache answered.
    pub cached: u64,
    /// Throttled over offered; 0 without requests.
    pub throttled_share: f64,
    /// Capacity units of one request, indexes left out.
    pub units_per_request: f64,
    /// Physical requests of one request: more than 1 for a scatter.
    pub requests_per_request: usize,
    /// Median in milliseconds: a model.
    pub p50_ms: Option<f64>,
    /// 99th percentile in milliseconds: a model.
    pub p99_ms: Option<f64>,
}

/// One step. All but `seconds` and `partitions` are per second.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Its end, in seconds since the start.
    pub seconds: f64,
    /// Requests offered.
    pub offered: f64,
    /// Of those, accepted.
    pub accepted: f64,
    /// Of those, throttled.
    pub throttled: f64,
    /// Write requests accepted.
    pub writes_accepted: f64,
    /// Write requests throttled.
    pub writes_throttled: f64,
    /// Read requests accepted.
    pub reads_accepted: f64,
    /// Read requests throttled.
    pub reads_throttled: f64,
    /// Write units consumed.
    pub write_units: f64,
    /// Read units consumed.
    pub read_units: f64,
    /// Partitions of all tables, indexes left out.
    pub partitions: usize,
}

/// The partitions of a table or index over time.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub name: String,
    pub index: bool,
    /// Ends of the steps, in seconds.
    pub ends: Vec<f64>,
    /// By step: partitions in order.
    pub steps: Vec<Vec<Heat>>,
}
