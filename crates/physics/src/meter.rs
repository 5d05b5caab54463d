//! How much went by: since the start, and over the last second.

const SLOT: u64 = 100_000_000;
/// Ten whole slots make the last second; the eleventh is being filled.
const SLOTS: usize = 11;

/// A running total and its last second, in steps of 100 ms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    total: u64,
    slots: [u64; SLOTS],
    /// The slot being filled, counted from the clock's zero.
    slot: u64,
}

impl Meter {
    pub(crate) fn add(&mut self, now: u64, amount: u64) {
        let slot = self.turn(now);
        self.slots[slot] = self.slots[slot].saturating_add(amount);
        self.total = self.total.saturating_add(amount);
    }

    /// Takes out what turned out not to have gone by.
    pub(crate) fn take_back(&mut self, now: u64, amount: u64) {
        let slot = self.turn(now);
        self.slots[slot] = self.slots[slot].saturating_sub(amount);
        self.total = self.total.saturating_sub(amount);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What went by in the ten whole slots before `now`.
    pub(crate) fn last_second(&mut self, now: u64) -> u64 {
        let filling = self.turn(now);
        self.slots.iter().enumerate().filter(|(slot, _)| *slot != filling).map(|(_, amount)| amount).sum()
    }

    fn turn(&mut self, now: u64) -> usize {
        let slot = (now / SLOT).max(self.slot);
        let ring = |slot: u64| usize::try_from(slot % SLOTS as u64).unwrap_or(0);
        for passed in 0..(slot - self.slot).min(SLOTS as u64) {
            self.slots[ring(slot - passed)] = 0;
        }
        self.slot = slot;
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
            meter.add(tick * 1_000_000, 2);
        }
        assert_eq!(meter.last_second(3_000_000_000), 2_000);
        assert_eq!(meter.last_second(3_500_000_000), 1_000);
        assert_eq!(meter.last_second(9_000_000_000), 0);
        assert_eq!(meter.total(), 6_000);
    }
}
