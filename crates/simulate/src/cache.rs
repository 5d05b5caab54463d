//! Answers that are given again: by a read cache, and by the gateways themselves.

use crate::key_traffic::KeyTraffic;

/// A cache in front of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    ttl: u64,
    nodes: u64,
    /// By cell, key or part.
    entries: Vec<Entry>,
    /// Whether entries are identified by the part, not by the key.
    pub by_part: bool,
    /// The traffic of the keys whose writes drop answers.
    dropped_by: Option<KeyTraffic>,
    /// Reads that were due to a write, as far as they are not whole.
    rest: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// When it expires, in nanoseconds.
    until: u64,
    /// How many nodes have not read it since it expired.
    cold: u64,
}

impl Cache {
    /// Of `nodes`, each with entries of its own that live for `ttl` nanoseconds.
    pub(crate) fn new(ttl: u64, nodes: u64, entries: usize, by_part: bool) -> Cache {
        let entries = vec![Entry::default(); entries];
        Cache { ttl, nodes, entries, by_part, dropped_by: None, rest: 0.0 }
    }

    /// The same, and a write of a key drops the entries of that key at the node that it goes
    /// through.
    pub(crate) fn dropped_by(self, traffic: KeyTraffic) -> Cache {
        Cache { dropped_by: Some(traffic), ..self }
    }

    /// How many of `count` reads of one entry of a key are not cached, where they come in the time
    /// from `now` on, so many nanoseconds long. Each node reads it once, and then answers from its
    /// cache for the time to live.
    pub(crate) fn missed(&mut self, of: usize, key: usize, now: u64, long: u64, count: u64) -> u64 {
        let Some(entry) = self.entries.get_mut(of) else { return count };
        let end = now + long.max(1);
        if entry.until < end {
            let first = entry.until.max(now);
            let times = (end - first).div_ceil(self.ttl);
            entry.until = first + times * self.ttl;
            entry.cold = times * self.nodes;
        }
        let expired = count.min(entry.cold);
        entry.cold -= expired;
        // A read is answered from the cache if the last request of the key at its node was not a
        // write.
        let dropped = self.dropped_by.as_ref().map_or(0.0, |traffic| traffic.writes_share(key, now));
        let exact = (count - expired) as f64 * dropped + self.rest;
        self.rest = exact.fract();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the count")]
        let again = exact as u64;
        expired + again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn misses(cache: &mut Cache, ticks: u64, each: u64) -> u64 {
        (0..ticks).map(|tick| cache.missed(0, 0, tick * 50 * MS, 50 * MS, each)).sum()
    }

    #[test]
    fn each_node_reads_an_entry_once_in_its_time() {
        for (ttl, expected) in [(100, 30), (1_000, 3), (120, 9 * 3), (10, 300), (30, 34 * 3)] {
            let mut cache = Cache::new(ttl * MS, 3, 1, false);
            assert_eq!(misses(&mut cache, 20, 500), expected, "{ttl} ms");
        }
    }

    #[test]
    fn a_few_reads_at_a_time_are_as_many_at_once() {
        let (mut whole, mut parts) = (Cache::new(100 * MS, 3, 1, false), Cache::new(100 * MS, 3, 1, false));
        for tick in 0..20 {
            let one = (0..5).map(|_| parts.missed(0, 0, tick * 50 * MS, 50 * MS, 1)).sum::<u64>();
            assert_eq!(whole.missed(0, 0, tick * 50 * MS, 50 * MS, 5), one);
        }
    }

    #[test]
    fn reads_at_moments_of_their_own_expire_at_those() {
        let mut cache = Cache::new(100 * MS, 1, 1, false);
        let missed: Vec<u64> = [30, 129, 130, 229, 231].map(|at| cache.missed(0, 0, at * MS, 0, 1)).to_vec();
        assert_eq!(missed, [1, 0, 1, 0, 1]);
    }
}
