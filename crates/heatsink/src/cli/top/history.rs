//! What was seen of each key in the last minute, while it was looked at.

use std::collections::{HashMap, VecDeque};

use heatsink_terminal::heatmap::text::letter;

use crate::cli::hot_keys::{HotKey, KeyId};

/// How far back it goes, in milliseconds.
const SPAN: u64 = 60_000;
/// Of each answer the first keys are kept.
const KEYS: usize = 200;

/// Shares of what one partition gives, by key.
#[derive(Debug, Default)]
pub struct History {
    of: HashMap<KeyId, VecDeque<Sample>>,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: u64,
    filled: f64,
    is_throttled: bool,
}

impl History {
    /// Adds an answer of that time by the server's clock, in milliseconds. A server with another
    /// clock begins anew.
    pub fn add(&mut self, now: u64, keys: &[HotKey]) {
        if now < self.now || now - self.now > SPAN {
            self.of.clear();
        }
        self.now = now;
        for key in keys.iter().take(KEYS) {
            let sample = Sample { at: now, filled: key.filled(), is_throttled: key.throttled_requests > 0.0 };
            self.of.entry(key.id.clone()).or_default().push_back(sample);
        }
        self.of.retain(|_, samples| {
            while samples.front().is_some_and(|first| now - first.at >= SPAN) {
                samples.pop_front();
            }
            !samples.is_empty()
        });
    }

    /// The last minute of a key in so many letters, the newest last, as `heatsink heatmap --text`
    /// writes them. Of looks that share a letter the hottest counts; a space is a time without a
    /// look.
    pub fn letters(&self, id: &KeyId, columns: usize) -> String {
        let width = u64::try_from(columns).unwrap_or(u64::MAX).max(1);
        let mut cells: Vec<Option<(f64, bool)>> = vec![None; columns];
        for sample in self.of.get(id).into_iter().flatten() {
            let ago = (self.now - sample.at).min(SPAN - 1) * width / SPAN;
            let cell = usize::try_from(width - 1 - ago).ok().and_then(|at| cells.get_mut(at));
            if let Some(cell) = cell {
                let (filled, is_throttled) = cell.unwrap_or_default();
                *cell = Some((filled.max(sample.filled), is_throttled || sample.is_throttled));
            }
        }
        cells
            .into_iter()
            .map(|cell| cell.map_or(' ', |(filled, is_throttled)| letter(filled, is_throttled)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cli::hot_keys::Kind;

    fn key(units: f64, throttled: f64) -> HotKey {
        let key = BTreeMap::from([("S".to_owned(), "k".to_owned())]);
        let id = KeyId { table: Some("t".to_owned()), index: None, kind: Kind::Write, key };
        HotKey { units, throttled_requests: throttled, ..HotKey::silent(id) }
    }

    #[test]
    fn a_minute_in_letters_the_newest_last() {
        let mut history = History::default();
        let id = key(0.0, 0.0).id;
        assert_eq!(history.letters(&id, 4), "    ");
        for second in 0..30 {
            history.add(1_000_000 + second * 1_000, &[key(500.0, 0.0)]);
        }
        history.add(1_030_000, &[key(2_000.0, 900.0)]);
        assert_eq!(history.letters(&id, 4), " ▄▄!");
        history.add(1_089_000, &[key(1_000.0, 0.0)]);
        assert_eq!(history.letters(&id, 6), "!    █");
        history.add(5_000, &[key(10.0, 0.0)]);
        assert_eq!(history.letters(&id, 3), "  ▁", "the server has another clock");
        history.add(65_000, &[]);
        assert_eq!((history.letters(&id, 3), history.letters(&id, 0)), ("   ".to_owned(), String::new()));
    }
}
