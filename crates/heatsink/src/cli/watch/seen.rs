//! What a watch saw from its beginning to its end: each key at its hottest, for how long it was
//! hot, and what would have helped then.
//!
//! Not here: how it is printed (`report`).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::cli::hot_keys::{Advice, Heat, HotKey, KeyId, share};

/// The most keys that are remembered; of more, the hottest.
const KEYS: usize = 1_000;

/// What was seen.
pub struct Seen {
    begun: MonotonicInstant,
    last: MonotonicInstant,
    looks: u64,
    requests: f64,
    throttled: f64,
    keys: HashMap<KeyId, SeenKey>,
    /// Tables of which something was counted.
    tables: BTreeSet<String>,
    /// The highest floor of a part: a key that was never shown took no more.
    floor: f64,
    /// Whether there were more tables than are counted apart.
    has_others: bool,
}

/// One key.
pub struct SeenKey {
    /// In its hottest second.
    pub peak: HotKey,
    /// Units that were asked for, over all the time.
    pub units: f64,
    /// For how long it was near a limit or over it.
    pub hot: Duration,
    /// In its hottest second.
    pub advice: Option<Advice>,
    requests: f64,
    throttled: f64,
    /// Since when it is hot, if it was at the last look.
    heating: Option<Heating>,
}

/// A key that is hot.
struct Heating {
    /// The first window in which it was.
    since: u64,
    /// The last look at which it was.
    look: u64,
    /// For how long it was so far, while that was one window alone: it may have been chance.
    first: Duration,
}

impl SeenKey {
    /// Whether it is hot at this look, which shows that window and stands for that time. Only from
    /// the second window on it counts.
    fn heats(&mut self, is_hot: bool, (look, window): (u64, u64), passed: Duration) {
        if !is_hot {
            self.heating = None;
            return;
        }
        let before = self.heating.take().filter(|heating| heating.look + 1 == look);
        let mut heating = before.unwrap_or(Heating { since: window, look, first: Duration::ZERO });
        heating.look = look;
        heating.first += passed;
        if heating.since != window {
            self.hot += std::mem::take(&mut heating.first);
        }
        self.heating = Some(heating);
    }

    /// Which share of its requests was throttled, over all the time.
    pub fn throttled(&self) -> f64 {
        share(self.throttled, self.requests)
    }
}

impl Seen {
    /// Nothing, from now on.
    pub fn new(now: MonotonicInstant) -> Self {
        Seen {
            begun: now,
            last: now,
            looks: 0,
            requests: 0.0,
            throttled: 0.0,
            keys: HashMap::new(),
            tables: BTreeSet::new(),
            floor: 0.0,
            has_others: false,
        }
    }

    /// Adds the last full second. It stands for the time since the one before.
    pub fn add(&mut self, now: MonotonicInstant, heat: &Heat) {
        let passed = now.since(self.last);
        self.last = now;
        self.looks += 1;
        let look = (self.looks, heat.window);
        let seconds = passed.as_secs_f64();
        let (requests, throttled) = heat.requests();
        self.requests += requests * seconds;
        self.throttled += throttled * seconds;
        for part in &heat.parts {
            self.floor = self.floor.max(part.floor_units_per_s);
            match &part.table {
                Some(table) => {
                    self.tables.insert(table.clone());
                }
                None => self.has_others = true,
            }
        }
        for key in heat.keys() {
            let Some(seen) = self.of(&key) else { continue };
            seen.units += key.units * seconds;
            seen.requests += key.requests * seconds;
            seen.throttled += key.throttled_requests * seconds;
            seen.heats(key.is_hot(), look, passed);
            let advice = heat.advice_on(&key.id);
            if advice.is_some() && (seen.advice.is_none() || key.least >= seen.peak.least) {
                seen.advice = advice.cloned();
            }
            if key.least.total_cmp(&seen.peak.least).then(key.units.total_cmp(&seen.peak.units)).is_gt() {
                seen.peak = key;
            }
        }
    }

    /// The entry of a key; `None` where there is no room, and all that are remembered were hotter.
    fn of(&mut self, key: &HotKey) -> Option<&mut SeenKey> {
        if !self.keys.contains_key(&key.id) && self.keys.len() >= KEYS {
            let (coldest, units) = self.coldest()?;
            if units >= key.units {
                return None;
            }
            self.keys.remove(&coldest);
        }
        Some(self.keys.entry(key.id.clone()).or_insert_with(|| SeenKey {
            peak: key.clone(),
            units: 0.0,
            hot: Duration::ZERO,
            advice: None,
            requests: 0.0,
            throttled: 0.0,
            heating: None,
        }))
    }

    fn coldest(&self) -> Option<(KeyId, f64)> {
        let coldest = self.keys.iter().min_by(|(_, a), (_, b)| a.peak.units.total_cmp(&b.peak.units));
        coldest.map(|(id, key)| (id.clone(), key.peak.units))
    }

    /// For how long it was watched.
    pub fn time(&self) -> Duration {
        self.last.since(self.begun)
    }

    /// Requests, about.
    pub fn requests(&self) -> f64 {
        self.requests
    }

    /// Which share of them was throttled.
    pub fn throttled(&self) -> f64 {
        share(self.throttled, self.requests)
    }

    /// The tables of which something was counted.
    pub fn tables(&self) -> &BTreeSet<String> {
        &self.tables
    }

    /// What a key took at most that was never shown, in units a second.
    pub fn floor(&self) -> f64 {
        self.floor
    }

    /// Whether there were more tables than are counted apart.
    pub fn has_others(&self) -> bool {
        self.has_others
    }

    /// The keys, those that were hot the longest first, then the hottest.
    pub fn keys(&self) -> Vec<&SeenKey> {
        let mut keys: Vec<&SeenKey> = self.keys.values().collect();
        keys.sort_by(|a, b| {
            b.hot
                .cmp(&a.hot)
                .then(b.peak.filled().total_cmp(&a.peak.filled()))
                .then_with(|| a.peak.id.cmp(&b.peak.id))
        });
        keys
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heat(window: u64, keys: &[(&str, f64, f64)]) -> Heat {
        let keys: Vec<_> = keys
            .iter()
            .map(|(key, units, throttled)| {
                json!({ "key": { "S": key }, "units_per_s": units, "requests_per_s": units, "throttled_per_s": throttled })
            })
            .collect();
        serde_json::from_value(json!({
            "window": window,
            "advice": [{ "table": "t", "key": "a", "sentence": "spread it", "command": "start" }],
            "parts": [{ "table": "t", "index": null, "kind": "write", "units_per_s": 1.0, "requests_per_s": 100.0, "throttled_per_s": 25.0,
                "floor_units_per_s": 2.0, "keys": keys }],
        }))
        .unwrap()
    }

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_key_is_told_at_its_hottest_and_over_all_the_time() {
        let mut seen = Seen::new(at(10));
        seen.add(at(11), &heat(1, &[("a", 900.0, 0.0), ("b", 10.0, 0.0)]));
        seen.add(at(12), &heat(2, &[("a", 1_100.0, 550.0)]));
        seen.add(at(14), &heat(3, &[("a", 20.0, 0.0)]));
        let keys = seen.keys();
        let a = keys[0];
        assert_eq!((a.peak.key.as_str(), a.peak.units, a.hot), ("a", 1_100.0, Duration::from_secs(2)));
        assert_eq!((a.units, keys.len()), (2_040.0, 2));
        assert!((a.throttled() - 550.0 / 2_040.0).abs() < 1e-9);
        assert!(a.advice.is_some() && keys[1].advice.is_none());
        assert_eq!((seen.time(), seen.requests(), seen.throttled()), (Duration::from_secs(4), 400.0, 0.25));
        assert_eq!((seen.floor(), seen.tables().len(), seen.has_others()), (2.0, 1, false));
    }

    #[test]
    fn one_window_makes_no_key_hot() {
        let mut seen = Seen::new(at(0));
        // A window that is looked at twice is one, and a window without the key comes between.
        for (second, window, units) in [(1, 1, 900.0), (2, 1, 900.0), (3, 2, 100.0), (4, 3, 900.0)] {
            seen.add(at(second), &heat(window, &[("a", units, 0.0)]));
        }
        seen.add(at(5), &heat(4, &[]));
        seen.add(at(6), &heat(5, &[("a", 900.0, 0.0)]));
        assert_eq!(seen.keys()[0].hot, Duration::ZERO);
        seen.add(at(7), &heat(6, &[("a", 900.0, 0.0)]));
        seen.add(at(8), &heat(7, &[("a", 900.0, 0.0)]));
        assert_eq!(seen.keys()[0].hot, Duration::from_secs(3));
    }

    #[test]
    fn the_hottest_are_remembered_however_many_keys_come() {
        let mut seen = Seen::new(at(0));
        for second in 0..30 {
            let names: Vec<String> = (0..100).map(|n| format!("k{second}-{n}")).collect();
            let keys: Vec<_> = names.iter().map(|name| (name.as_str(), f64::from(second + 1), 0.0)).collect();
            seen.add(at(u64::try_from(second).unwrap() + 1), &heat(1, &keys));
        }
        assert_eq!(seen.keys().len(), KEYS);
        assert!(seen.keys().iter().all(|key| key.peak.units > 20.0));
    }
}
