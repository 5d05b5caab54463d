//! The results of a load: counts and latencies. Written by the load generators, read by people and
//! scripts.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Latencies, exact to 0.1 %. An empty one answers zero.
#[derive(Clone, Debug)]
pub struct Latency {
    nanos: Option<Histogram<u64>>,
}

impl Latency {
    pub(crate) fn new() -> Self {
        // Three significant digits are always accepted; the histogram grows as it must.
        Latency { nanos: Histogram::new(3).ok() }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if let Some(histogram) = &mut self.nanos {
            // Grows to hold it. (`saturating_record` would clamp to the size it has.)
            let _ = histogram.record(nanos);
        }
    }

    pub(crate) fn add(&mut self, other: &Latency) {
        if let (Some(all), Some(more)) = (&mut self.nanos, &other.nanos) {
            // A resizing histogram takes any other.
            let _ = all.add(more);
        }
    }

    /// The latency that `share` of the requests stayed at or below; `share` from 0 to 1.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanos.as_ref().map_or(0, |histogram| histogram.value_at_quantile(share)))
    }

    /// The same in milliseconds, for tables.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        self.quantile(share).as_secs_f64() * 1e3
    }

    /// How many latencies are in it.
    pub fn count(&self) -> u64 {
        self.nanos.as_ref().map_or(0, Histogram::len)
    }
}

/// The result of a load. `offered` is the sum of the four counts after it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Requests that the schedule held (open loop) or that were sent (closed loop).
    pub offered: u64,
    /// Answered with success.
    pub accepted: u64,
    /// Refused for lack of throughput.
    pub throttled: u64,
    /// Answered with another error, or not answered because the connection broke.
    pub failed: u64,
    /// Not sent or not answered when the time was up.
    pub unanswered: u64,
    /// From the first intended send to the last answer.
    pub elapsed: Duration,
    /// Of accepted requests, from the *intended* send. In a closed loop that is the send itself.
    ///
    /// The timer that paces an open loop ticks every millisecond, so up to about 1 ms of this is
    /// the client's own.
    pub latency: Latency,
    /// Of accepted requests, from the real send. Below `latency` by the time a request waited for
    /// its connection.
    pub service: Latency,
    /// The first failure, in words.
    pub first_failure: Option<String>,
}

impl Report {
    pub(crate) fn empty() -> Self {
        Report {
            offered: 0,
            accepted: 0,
            throttled: 0,
            failed: 0,
            unanswered: 0,
            elapsed: Duration::ZERO,
            latency: Latency::new(),
            service: Latency::new(),
            first_failure: None,
        }
    }

    pub(crate) fn add(&mut self, other: Report) {
        self.offered += other.offered;
        self.accepted += other.accepted;
        self.throttled += other.throttled;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    /// Accepted requests per second.
    pub fn accepted_per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "a rate is printed with three digits")]
        if seconds > 0.0 { self.accepted as f64 / seconds } else { 0.0 }
    }

    /// Throttled requests ÷ offered requests, 0 to 1.
    pub fn throttled_share(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a share is printed with three digits")]
        if self.offered > 0 { self.throttled as f64 / self.offered as f64 } else { 0.0 }
    }

    /// The report as JSON: counts, rate, and p50, p90, p99, p99.9 and maximum in milliseconds.
    pub fn to_json(&self) -> Value {
        let latency = |latency: &Latency| {
            json!({
                "p50_ms": latency.quantile_ms(0.5),
                "p90_ms": latency.quantile_ms(0.9),
                "p99_ms": latency.quantile_ms(0.99),
                "p999_ms": latency.quantile_ms(0.999),
                "max_ms": latency.quantile_ms(1.0),
            })
        };
        json!({
            "offered": self.offered,
            "accepted": self.accepted,
            "throttled": self.throttled,
            "failed": self.failed,
            "unanswered": self.unanswered,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "accepted_per_second": self.accepted_per_second(),
            "latency": latency(&self.latency),
            "service": latency(&self.service),
            "first_failure": self.first_failure,
        })
    }
}
