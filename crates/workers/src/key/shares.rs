//! What the movers of a gateway take together: each what its partition leaves, and all of them no
//! more than some. Who leaves a part of its share, because its partition is still hot, leaves it to
//! the others.
//!
//! Of a crowd several share a partition, and none of them sees often enough that it is full: what is
//! left to all of them is found by what is refused to any.
//!
//! Not here: what a partition leaves (`spare`), when units may be spent (`heatsink_reshard::Pace`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::key::spare::Spare;

/// What all movers take together, as a multiple of the highest rate of any: so many keys move as
/// fast as they may, and more share.
pub(crate) const AS_MANY: u32 = 4;
/// More movers than so many are a crowd: those of a table, not of some hot keys, of which each may
/// have a partition of its own.
const CROWD: usize = 24;
/// What a crowd takes at first, as a share of what it may: as much as one mover alone.
const FIRST: u32 = 10;
/// How many items all movers move at once, if that is enough for [`FEWEST`] of each.
const PULLS: usize = 40;
/// The fewest items that a mover moves at once.
const FEWEST: usize = 2;

/// The movers of a gateway.
#[derive(Default)]
pub(crate) struct Shares(Mutex<Movers>);

#[derive(Default)]
struct Movers {
    last: u64,
    each: BTreeMap<u64, Wants>,
    /// How many of their requests were throttled.
    throttles: u64,
    /// What is left to a crowd.
    crowd: Option<Spare>,
    /// When somebody last looked whether a table is the same, by its id.
    looks: BTreeMap<String, MonotonicInstant>,
}

/// The most units a second that a mover may take, and those that it could take now.
struct Wants {
    most: u32,
    now: u32,
    /// How many of its requests were throttled, once that is known.
    throttles: Option<u64>,
}

/// One mover's share. It leaves when this is dropped.
pub(crate) struct Share {
    of: Arc<Shares>,
    number: u64,
}

impl Shares {
    /// Another mover, which may take so many units a second.
    pub(crate) fn join(self: &Arc<Self>, most: u32) -> Share {
        let mut movers = self.movers();
        movers.last += 1;
        let number = movers.last;
        movers.each.insert(number, Wants { most, now: most, throttles: None });
        drop(movers);
        Share { of: Arc::clone(self), number }
    }

    fn movers(&self) -> MutexGuard<'_, Movers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// How many units a second it takes, where its partition leaves `spare`. `throttles`: how many of
    /// its requests were throttled.
    pub(crate) fn rate(&self, now: MonotonicInstant, spare: u32, throttles: u64) -> u32 {
        let mut movers = self.of.movers();
        if let Some(own) = movers.each.get_mut(&self.number) {
            own.now = spare;
            let before = own.throttles.replace(throttles).unwrap_or(throttles);
            movers.throttles += throttles.saturating_sub(before);
        }
        spare.min(movers.level(now, self.number))
    }

    /// Whether it is this mover's turn to look whether the table with this id is the same: nobody has
    /// for so long, and the others rely on it.
    pub(crate) fn is_to_look(&self, table_id: &str, now: MonotonicInstant, every: Duration) -> bool {
        let mut movers = self.of.movers();
        let is_due = movers.looks.get(table_id).is_none_or(|at| now.since(*at) >= every);
        if is_due {
            movers.looks.retain(|_, at| now.since(*at) < every);
            movers.looks.insert(table_id.to_owned(), now);
        }
        is_due
    }

    /// It is not, or the store does not say.
    pub(crate) fn looked_in_vain(&self, table_id: &str) {
        self.of.movers().looks.remove(table_id);
    }

    /// It took so many units.
    pub(crate) fn spent(&self, now: MonotonicInstant, units: f64) {
        if let Some(crowd) = &mut self.of.movers().crowd {
            crowd.spent(now, units);
        }
    }

    /// How many items it moves at once, at most `most`.
    pub(crate) fn parallel(&self, most: usize) -> usize {
        (PULLS / self.of.movers().each.len().max(1)).clamp(FEWEST.min(most), most)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.movers().each.remove(&self.number);
    }
}

impl Movers {
    /// The most that this one may take: those that could take less leave the rest to the others.
    fn level(&mut self, now: MonotonicInstant, number: u64) -> u32 {
        let most = self.each.values().map(|wants| wants.most).max().unwrap_or(0).saturating_mul(AS_MANY);
        let mut left = match self.each.len() > CROWD {
            true => {
                let begins = || Spare::beginning_with(now, most, most / FIRST);
                self.crowd.get_or_insert_with(begins).rate(now, self.throttles)
            }
            false => most,
        };
        let mut wanted: Vec<u32> = self.each.values().map(|wants| wants.now).collect();
        wanted.sort_unstable();
        let mut among = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        for one in wanted {
            let fair = left / among.max(1);
            if one > fair {
                // Of a crowd each takes a few: what does not divide is much of it.
                let among = u64::from(among.max(1));
                let more = number % among < u64::from(left) % among;
                return (fair + u32::from(more)).max(1);
            }
            left -= one;
            among -= 1;
        }
        u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicInstant {
        MonotonicInstant(millis * 1_000_000)
    }

    #[test]
    fn few_take_all_that_they_may_and_many_share() {
        let shares = Arc::new(Shares::default());
        let few: Vec<Share> = (0..4).map(|_| shares.join(1_000)).collect();
        assert!(few.iter().all(|share| share.rate(at(0), 1_000, 0) == 1_000 && share.parallel(10) == 10));
        let more: Vec<Share> = (0..16).map(|_| shares.join(1_000)).collect();
        assert!(
            few.iter()
                .chain(&more)
                .all(|share| share.rate(at(0), 1_000, 0) == 200 && share.parallel(10) == 2)
        );
        drop(more);
        assert_eq!(few[0].rate(at(0), 1_000, 0), 1_000);
    }

    #[test]
    fn what_a_hot_partition_does_not_leave_goes_to_the_others() {
        let shares = Arc::new(Shares::default());
        let all: Vec<Share> = (0..10).map(|_| shares.join(1_000)).collect();
        for hot in &all[..8] {
            hot.rate(at(0), 40, 0);
        }
        // 4,000 less 8 times 40, for two: each may take all of its own.
        assert_eq!(
            (all[9].rate(at(0), 1_000, 0), all[8].rate(at(0), 1_000, 0), all[0].rate(at(0), 40, 0)),
            (1_000, 1_000, 40)
        );
        for hot in &all[..8] {
            hot.rate(at(0), 450, 0);
        }
        // 4,000 among ten is 400, and those that want 450 leave nothing.
        assert!(all.iter().all(|share| share.rate(at(0), 1_000, 0).min(450) <= 450));
        let taken: u32 = all[..8].iter().map(|hot| hot.rate(at(0), 450, 0)).sum::<u32>()
            + 2 * all[9].rate(at(0), 1_000, 0);
        assert!(taken <= 4_000, "{taken}");
    }

    #[test]
    fn one_of_the_movers_of_a_table_looks_for_all() {
        let shares = Arc::new(Shares::default());
        let [one, other] = [shares.join(1_000), shares.join(1_000)];
        let looks =
            |share: &Share, table, millis| share.is_to_look(table, at(millis), Duration::from_secs(10));
        assert_eq!(
            [looks(&one, "a", 0), looks(&other, "a", 9_999), looks(&other, "b", 9_999)],
            [true, false, true]
        );
        assert_eq!([looks(&other, "a", 10_000), looks(&one, "a", 10_001)], [true, false]);
        other.looked_in_vain("a");
        assert_eq!([looks(&one, "a", 10_002), looks(&other, "a", 10_002)], [true, false]);
    }

    #[test]
    fn one_that_is_alone_is_never_held_back() {
        let shares = Arc::new(Shares::default());
        assert_eq!(shares.join(u32::MAX).rate(at(0), u32::MAX, 0), u32::MAX);
    }

    /// What a crowd takes of partitions that leave so many units a second, and asks for in excess,
    /// both as shares of that.
    fn crowd(left: f64) -> (f64, f64) {
        let shares = Arc::new(Shares::default());
        let all: Vec<Share> = (0..96).map(|_| shares.join(1_000)).collect();
        let mut throttles = [0; 96];
        let (mut taken, mut excess, seconds) = (0.0, 0.0, 100_u64);
        for step in 0..seconds * 100 {
            let now = at(step * 10);
            let asked: Vec<f64> = all
                .iter()
                .zip(throttles)
                .map(|(one, throttles)| f64::from(one.rate(now, 1_000, throttles)))
                .collect();
            let sum: f64 = asked.iter().sum();
            let over = (sum - left).max(0.0);
            // Whose request it is that is refused is chance.
            if over > 0.0 {
                throttles[usize::try_from(step).unwrap() * 7 % 96] += 1;
            }
            for (one, asked) in all.iter().zip(asked) {
                one.spent(now, 0.01 * asked * (1.0 - over / sum));
            }
            taken += 0.01 * (sum - over);
            excess += 0.01 * over;
        }
        let whole = left * seconds as f64;
        (taken / whole, excess / whole)
    }

    #[test]
    fn a_crowd_finds_what_is_left_to_it_by_what_is_refused_to_any() {
        for left in [500.0, 2_000.0] {
            let (taken, excess) = crowd(left);
            assert!(taken > 0.8 && excess < 0.02, "{left}: {taken} {excess}");
        }
    }
}
