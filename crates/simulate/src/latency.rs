//! A simple model of request latency.
//!
//! - An attempt takes a service time with a lognormal spread: a median by operation, a 99th
//!   percentile of three times that. A scatter takes as long as the slowest of its shards, which
//!   are sent at once.
//! - A throttled attempt costs a pause before the next: the mean backoff, doubled each time, up to
//!   20 s.
//! - Where retries are not offered again, each attempt of a request is throttled with the share at
//!   which its workload was throttled in that step.
//!
//! Queues, connections and the network are not modelled. Medians are round figures for a client in
//! the same region: a guess.

/// Most attempts that are counted.
pub(crate) const MAX_ATTEMPTS: usize = 20;

/// The longest pause.
const LONGEST: u64 = 20_000_000_000;

/// The 99th percentile of the service time over its median.
const SPREAD: f64 = 3.0;

/// The mean pause after the nth attempt (from 1), in nanoseconds.
pub(crate) fn backoff(first: u64, attempt: usize) -> u64 {
    let doubled = u32::try_from(attempt.saturating_sub(1)).ok().and_then(|times| 1_u64.checked_shl(times));
    first.saturating_mul(doubled.unwrap_or(u64::MAX)).min(LONGEST)
}

/// How many requests needed how many attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attempts {
    /// Requests that got through at the nth attempt; index 0 is the first.
    through: [f64; MAX_ATTEMPTS],
    /// Requests that never did.
    pub failed: f64,
    /// Requests that a cache answered.
    pub cached: f64,
    /// The most that were made.
    most: usize,
}

impl Attempts {
    pub(crate) fn add(&mut self, attempt: usize, requests: u64) {
        if let Some(through) = self.through.get_mut(attempt.saturating_sub(1)) {
            *through += requests as f64;
        }
        self.most = self.most.max(attempt);
    }

    /// Requests whose every attempt is throttled with the share `1 - accepted/offered`.
    pub(crate) fn add_share(&mut self, offered: u64, accepted: u64, most: usize) {
        if offered == 0 {
            return;
        }
        let throttled = 1.0 - accepted as f64 / offered as f64;
        let mut left = offered as f64;
        for through in self.through.iter_mut().take(most) {
            *through += left * (1.0 - throttled);
            left *= throttled;
        }
        self.failed += left;
        self.most = self.most.max(most);
    }
}

/// What a workload's requests take.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Median of one attempt, milliseconds.
    pub median: f64,
    /// Requests that one attempt sends at once.
    pub at_once: usize,
    /// The mean pause before the second attempt, nanoseconds.
    pub backoff: u64,
}

/// Median of an answer from a read cache, milliseconds: "microseconds", and the way there and back.
const CACHED_MS: f64 = 0.5;

/// The quantile of many workloads' requests together, in milliseconds; `None` without requests.
/// Requests that failed count with all the time they took to fail.
pub(crate) fn quantile(of: &[(&Attempts, &Service)], share: f64) -> Option<f64> {
    let total: f64 = of.iter().map(|(attempts, _)| attempts.total()).sum();
    if total <= 0.0 {
        return None;
    }
    let below =
        |limit: f64| of.iter().map(|(attempts, service)| attempts.below(limit, service)).sum::<f64>() / total;
    let (mut low, mut high) = (0.0, 1.0);
    while below(high) < share && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    Some(high)
}

impl Attempts {
    fn total(&self) -> f64 {
        self.through.iter().sum::<f64>() + self.failed + self.cached
    }

    /// How many took less than `limit` milliseconds.
    fn below(&self, limit: f64, service: &Service) -> f64 {
        let mut paused = 0.0;
        let mut sum = self.cached * spread(limit, CACHED_MS, 1);
        for (nth, requests) in self.through.iter().enumerate() {
            sum += requests * spread(limit - paused, service.median, service.at_once);
            if nth + 1 == self.most {
                sum += self.failed * spread(limit - paused, service.median, service.at_once);
            }
            paused += backoff(service.backoff, nth + 1) as f64 / 1e6;
        }
        sum
    }
}

/// The chance that the slowest of `at_once` lognormal times of that median is below `limit`.
fn spread(limit: f64, median: f64, at_once: usize) -> f64 {
    if limit <= 0.0 {
        return 0.0;
    }
    let deviation = SPREAD.ln() / 2.326_347_874;
    let below = normal((limit / median).ln() / deviation);
    below.powi(i32::try_from(at_once).unwrap_or(i32::MAX))
}

/// The normal distribution function.
fn normal(at: f64) -> f64 {
    libm::erfc(-at / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: Service = Service { median: 4.0, at_once: 1, backoff: 50_000_000 };

    #[test]
    fn without_throttles_it_is_the_service_time() {
        let mut attempts = Attempts::default();
        attempts.add_share(1_000, 1_000, 10);
        let p99 = quantile(&[(&attempts, &PUT)], 0.99).unwrap();
        assert!((p99 - 12.0).abs() < 0.01, "{p99}");
        let p50 = quantile(&[(&attempts, &PUT)], 0.5).unwrap();
        assert!((p50 - 4.0).abs() < 0.01, "{p50}");
        let scatter = Service { at_once: 10, ..PUT };
        let p50 = quantile(&[(&attempts, &scatter)], 0.5).unwrap();
        assert!((6.5..9.0).contains(&p50), "the median of the slowest of ten: {p50}");
    }

    /// Values of Python's `math.erfc`.
    #[test]
    fn the_normal_distribution_is_exact_in_its_tails_too() {
        for (at, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (2.326_347_874_040_841, 0.99),
            (-6.0, 9.865_876_450_377_012e-10),
        ] {
            assert!((normal(at) / below - 1.0).abs() < 1e-12, "{at} {}", normal(at));
        }
    }

    #[test]
    fn pauses_add_up() {
        let mut attempts = Attempts::default();
        // Half throttled: 1 % need more than 6 attempts, after 50 + 100 + 200 + 400 + 800 + 1600
        // ms.
        attempts.add_share(1_000, 500, 10);
        let p99 = quantile(&[(&attempts, &PUT)], 0.99).unwrap();
        assert!((3_150.0..3_170.0).contains(&p99), "{p99}");
        assert_eq!(quantile(&[(&Attempts::default(), &PUT)], 0.99), None);
    }
}
