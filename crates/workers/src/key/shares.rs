//! What the movers of a gateway take together: each what its partition leaves, and all of them no
//! more than some. Who leaves a part of its share, because its partition is still hot, leaves it to
//! the others.
//!
//! Not here: what a partition leaves (`spare`), when units may be spent (`heatsink_reshard::Pace`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all movers take together, as a multiple of the highest rate of any: so many keys move as
/// fast as they may, and more share.
pub(crate) const AS_MANY: u32 = 4;
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
}

/// The most units a second that a mover may take, and those that it could take now.
struct Wants {
    most: u32,
    now: u32,
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
        movers.each.insert(number, Wants { most, now: most });
        drop(movers);
        Share { of: Arc::clone(self), number }
    }

    fn movers(&self) -> MutexGuard<'_, Movers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// How many units a second it takes, where its partition leaves `spare`.
    pub(crate) fn rate(&self, spare: u32) -> u32 {
        let mut movers = self.of.movers();
        if let Some(own) = movers.each.get_mut(&self.number) {
            own.now = spare;
        }
        spare.min(movers.level())
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
    /// The most that any may take: those that could take less leave the rest to the others.
    fn level(&self) -> u32 {
        let most = self.each.values().map(|wants| wants.most).max().unwrap_or(0);
        let mut left = most.saturating_mul(AS_MANY);
        let mut wanted: Vec<u32> = self.each.values().map(|wants| wants.now).collect();
        wanted.sort_unstable();
        let mut among = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        for one in wanted {
            let fair = left / among.max(1);
            if one > fair {
                return fair.max(1);
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

    #[test]
    fn few_take_all_that_they_may_and_many_share() {
        let shares = Arc::new(Shares::default());
        let few: Vec<Share> = (0..4).map(|_| shares.join(1_000)).collect();
        assert!(few.iter().all(|share| share.rate(1_000) == 1_000 && share.parallel(10) == 10));
        let more: Vec<Share> = (0..36).map(|_| shares.join(1_000)).collect();
        assert!(few.iter().chain(&more).all(|share| share.rate(1_000) == 100 && share.parallel(10) == 2));
        drop(more);
        assert_eq!(few[0].rate(1_000), 1_000);
    }

    #[test]
    fn what_a_hot_partition_does_not_leave_goes_to_the_others() {
        let shares = Arc::new(Shares::default());
        let all: Vec<Share> = (0..10).map(|_| shares.join(1_000)).collect();
        for hot in &all[..8] {
            hot.rate(40);
        }
        // 4,000 less 8 times 40, for two: each may take all of its own.
        assert_eq!((all[9].rate(1_000), all[8].rate(1_000), all[0].rate(40)), (1_000, 1_000, 40));
        for hot in &all[..8] {
            hot.rate(450);
        }
        // 4,000 among ten is 400, and those that want 450 leave nothing.
        assert!(all.iter().all(|share| share.rate(1_000).min(450) <= 450));
        let taken: u32 = all[..8].iter().map(|hot| hot.rate(450)).sum::<u32>() + 2 * all[9].rate(1_000);
        assert!(taken <= 4_000, "{taken}");
    }

    #[test]
    fn one_that_is_alone_is_never_held_back() {
        let shares = Arc::new(Shares::default());
        assert_eq!(shares.join(u32::MAX).rate(u32::MAX), u32::MAX);
    }
}
