//! The loads of the last two windows. What one window alone shows may be chance, or over before
//! anybody acts.
//!
//! Not here: what follows from them ([`advice`](crate::advice)), and patience over minutes
//! ([`policy`](crate::policy)).

use crate::KeyLoad;

/// The most keys of a window that are kept: those with the highest loads.
const KEYS: usize = 100;

/// The last two windows.
#[derive(Debug, Default)]
pub struct Recent {
    number: u64,
    last: Vec<KeyLoad>,
    before: Vec<KeyLoad>,
}

impl Recent {
    /// The window of that number has ended, with these loads, the highest first. One that was told
    /// before is not asked for again.
    pub fn ended(&mut self, number: u64, loads: impl FnOnce() -> Vec<KeyLoad>) {
        if number <= self.number {
            return;
        }
        self.number = number;
        let mut loads = loads();
        loads.truncate(KEYS);
        self.before = std::mem::replace(&mut self.last, loads);
    }

    /// The keys that were near a ceiling or over it in both windows, each with the mean of both.
    /// `shards`: how many a key has.
    pub fn hot(&self, shards: impl Fn(&KeyLoad) -> u16) -> Vec<KeyLoad> {
        let is_hot = |load: &KeyLoad| load.observed(shards(load), false).is_hot();
        let hot = self.last.iter().filter_map(|load| {
            let before = self.before.iter().find(|before| before.is_of(load))?;
            (is_hot(load) && is_hot(before)).then(|| load.mean(before))
        });
        hot.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Drawn;

    fn load(key: u8, writes: f64) -> KeyLoad {
        KeyLoad { table: "t".to_owned(), key: vec![key], writes, requests: writes, ..KeyLoad::default() }
    }

    #[test]
    fn a_key_has_to_be_hot_in_both_windows() {
        let mut recent = Recent::default();
        let hot = |recent: &Recent| -> Vec<(u8, f64)> {
            recent.hot(|_| 1).iter().map(|load| (load.key[0], load.writes)).collect()
        };
        recent.ended(1, || vec![load(1, 3_000.0), load(2, 900.0), load(3, 800.0)]);
        assert!(hot(&recent).is_empty());
        recent.ended(1, || panic!("it was told"));
        recent.ended(2, || vec![load(1, 1_000.0), load(4, 990.0), load(3, 100.0)]);
        assert_eq!(hot(&recent), [(1, 2_000.0)]);
        recent.ended(3, || vec![load(4, 1_010.0), load(1, 10.0)]);
        assert_eq!(hot(&recent), [(4, 1_000.0)]);
        assert!(recent.hot(|_| 8).is_empty(), "its shards carry it");
    }

    #[test]
    fn what_drawing_may_have_added_makes_no_key_hot() {
        let mut recent = Recent::default();
        // Three draws that stand for 256 each.
        let drawn = Drawn { units: 768.0, variance: 768.0 * 256.0, one: 256.0 };
        let chance = KeyLoad { writes_drawn: drawn, ..load(1, 768.0) };
        (1..=2).for_each(|number| recent.ended(number, || vec![chance.clone()]));
        assert!(recent.hot(|_| 1).is_empty());
    }
}
