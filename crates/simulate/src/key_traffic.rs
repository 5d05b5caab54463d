//! How many of a key's requests are writes: what drops the answers of a key at the gateways.

use crate::key_sampler::KeySet;
use crate::schedule::Schedule;

/// The requests of one workload, and how likely each of some keys is theirs.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    schedule: Schedule,
    of_key: Vec<f64>,
}

/// Reads of one workload, and the writes of the same keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyTraffic {
    reads: Share,
    writes: Vec<Share>,
}

impl Share {
    /// Of the keys of `own`, what the workload with keys `other` takes.
    pub(crate) fn new(schedule: Schedule, own: &KeySet, other: &KeySet) -> Share {
        let total: f64 = other.weights.iter().sum();
        let share = |nth: usize| match other.weights.get(nth) {
            Some(weight) => weight / total,
            // By turns or in an order: over the whole run, each alike.
            None => 1.0 / other.names.len() as f64,
        };
        let of_key = if own.names == other.names {
            (0..own.names.len()).map(share).collect()
        } else {
            let names = other.names.iter().enumerate().map(|(nth, name)| (name.as_str(), share(nth)));
            let shares: std::collections::HashMap<&str, f64> = names.collect();
            own.names.iter().map(|name| shares.get(name.as_str()).copied().unwrap_or(0.0)).collect()
        };
        Share { schedule, of_key }
    }

    fn per_second(&self, key: usize, now: u64) -> f64 {
        self.of_key.get(key).map_or(0.0, |share| share * self.schedule.per_second(now))
    }
}

impl KeyTraffic {
    pub(crate) fn new(reads: Share, writes: Vec<Share>) -> KeyTraffic {
        KeyTraffic { reads, writes }
    }

    /// Which share of the key's requests are writes at that moment, from 0 to 1. Gateways share
    /// both evenly, so it is the same at each.
    pub(crate) fn writes_share(&self, key: usize, now: u64) -> f64 {
        let writes: f64 = self.writes.iter().map(|writes| writes.per_second(key, now)).sum();
        let all = writes + self.reads.per_second(key, now);
        if all > 0.0 { writes / all } else { 0.0 }
    }
}
