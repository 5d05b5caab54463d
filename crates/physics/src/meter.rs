//! Running totals: since the start, and over the last second.

const SLOT: u64 = 100_000_000;
/// Ten whole slots make the last second; the eleventh is being filled.
const SLOTS: usize = 11;

/// What is counted: read units and write units in billionths, and throttled requests.
pub(crate) const READS: usize = 0;
pub(crate) const WRITES: usize = 1;
pub(crate) const THROTTLES: usize = 2;

/// Running totals and their last second, in steps of 100 ms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    totals: [u64; 3],
    slots: [[u64; 3]; SLOTS],
    /// The slot being filled, counted from the clock's zero.
    slot: u64,
}

impl Meter {
    #[inline]
    pub(crate) fn add(&mut self, now: u64, what: usize, amount: u64) {
        let slot = self.turn(now);
        self.slots[slot][what] = self.slots[slot][what].saturating_add(amount);
        self.totals[what] = self.totals[what].saturating_add(amount);
    }

    /// Takes out what turned out not to have gone by.
    pub(crate) fn take_back(&mut self, now: u64, what: usize, amount: u64) {
        let slot = self.turn(now);
        self.slots[slot][what] = self.slots[slot][what].saturating_sub(amount);
        self.totals[what] = self.totals[what].saturating_sub(amount);
    }

    pub(crate) fn total(&self, what: usize) -> u64 {
        self.totals[what]
    }

    /// What went by in the ten whole slots before `now`.
    pub(crate) fn last_second(&mut self, now: u64, what: usize) -> u64 {
        let filling = self.turn(now);
        let whole = self.slots.iter().enumerate().filter(|(slot, _)| *slot != filling);
        whole.map(|(_, amounts)| amounts[what]).sum()
    }

    #[inline]
    fn turn(&mut self, now: u64) -> usize {
        let slot = (now / SLOT).max(self.slot);
        let ring = |slot: u64| usize::try_from(slot % SLOTS as u64).unwrap_or(0);
        if slot != self.slot {
            for passed in 0..(slot - self.slot).min(SLOTS as u64) {
                self.slots[ring(slot - passed)] = [0; 3];
            }
            self.slot = slot;
        }
        ring(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_and_no_more() {
        let mut meter = Meter::default();
        for tick in 0..3_000 {
            meter.add(tick * 1_000_000, WRITES, 2);
        }
        assert_eq!(meter.last_second(3_000_000_000, WRITES), 2_000);
        assert_eq!(meter.last_second(3_500_000_000, WRITES), 1_000);
        assert_eq!(meter.last_second(9_000_000_000, WRITES), 0);
        assert_eq!((meter.total(WRITES), meter.total(READS)), (6_000, 0));
    }
}
