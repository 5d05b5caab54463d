//! Brings a key's items over: walks the old copies and has each pulled, as fast as it may.
//!
//! A walk from the very beginning that finds nothing to pull ends the move; until then there is
//! another walk. Whoever takes over begins where the dead mover's claim says, and ends with such a
//! walk all the same. In MOVE no old copy is ever added, so the walks get shorter. Every read of a
//! walk is strongly consistent and sent in this MOVE: a replica that lags may lack an item, or show
//! one as it was.
//!
//! Not here: the transactions of a pull ([`Pull`](crate::Pull)), the right to send them
//! ([`Claim`](crate::Claim)).

use std::collections::{BTreeSet, VecDeque};

use heatsink_env::MonotonicInstant;

use crate::pace::Pace;
use crate::pull::Pulled;
use crate::range::Page;
use crate::rules::{Rule, Rules};

/// How many items that do not fit are named.
const NAMED: usize = 20;

/// A mover. `K` is an item's place in the order of a walk, `T` the item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mover<K, T> {
    /// Everything up to here is pulled, or does not fit.
    cursor: Option<K>,
    whole_walk: bool,
    pulled: bool,
    page: Option<Page<K, T>>,
    rows: VecDeque<(K, T)>,
    flying: BTreeSet<K>,
    parallel: usize,
    moved: Moved<K>,
    over: bool,
    stopped: bool,
    pace: Pace,
    /// Of reads. A partition has read units beside its write units.
    reads: Pace,
    rules: Rules,
}

/// How a mover ended, or how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moved<K> {
    /// How many items were pulled.
    pub items: u64,
    /// How many items of the last walk do not fit under their new keys.
    pub left: u64,
    /// The first of them.
    pub named: Vec<K>,
}

/// What a mover wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MoverDo<K, T> {
    /// Read a page of old copies after this place, and give those that belong elsewhere to
    /// [`Mover::page`].
    Read {
        /// Where to begin, exclusively.
        after: Option<K>,
        /// Always, in production.
        strong: bool,
    },
    /// Pull this item, and tell [`Mover::pulled`]. Others may be asked for meanwhile.
    Pull(K, T),
    /// Nothing before a pull that is under way has ended.
    AwaitPulls,
    /// Nothing before this moment; with `None`, before there is a rate again.
    Wait {
        /// When to go on.
        until: Option<MonotonicInstant>,
    },
    /// The move is over, as far as it goes.
    Finished(Moved<K>),
    /// The claim is gone.
    Stopped,
}

impl<K: Ord + Clone, T> Mover<K, T> {
    /// A mover that begins at the place where another one came to, and has at most `parallel` pulls
    /// under way.
    pub fn new(from: Option<K>, parallel: usize, rules: Rules) -> Self {
        Mover {
            whole_walk: from.is_none(),
            cursor: from,
            pulled: false,
            page: None,
            rows: VecDeque::new(),
            flying: BTreeSet::new(),
            parallel: parallel.max(1),
            moved: Moved { items: 0, left: 0, named: Vec::new() },
            over: false,
            stopped: false,
            pace: Pace::default(),
            reads: Pace::default(),
            rules,
        }
    }

    /// What to do next, at a rate of so many units per second; at none it is paused.
    pub fn next(&mut self, now: MonotonicInstant, rate: u32) -> MoverDo<K, T> {
        if self.stopped {
            return MoverDo::Stopped;
        }
        if self.rows.is_empty() && self.flying.is_empty() {
            self.end_page();
        }
        if self.over {
            return MoverDo::Finished(self.moved.clone());
        }
        if rate == 0 {
            return MoverDo::Wait { until: None };
        }
        let reads = if self.page.is_none() { self.reads.wait(now) } else { None };
        if let Some(until) = self.pace.wait(now).max(reads) {
            return MoverDo::Wait { until: Some(until) };
        }
        if self.page.is_none() {
            let strong = self.rules.keep(Rule::MoverReadsStrongly);
            return MoverDo::Read { after: self.cursor.clone(), strong };
        }
        if self.flying.len() >= self.parallel {
            return MoverDo::AwaitPulls;
        }
        match self.rows.pop_front() {
            Some((key, item)) => {
                self.flying.insert(key.clone());
                MoverDo::Pull(key, item)
            }
            None => MoverDo::AwaitPulls,
        }
    }

    /// Takes a page of old copies that belong elsewhere.
    pub fn page(&mut self, mut page: Page<K, T>) {
        self.rows = page.rows.drain(..).collect();
        self.page = Some(page);
    }

    /// A pull has ended.
    pub fn pulled(&mut self, key: &K, pulled: Pulled) {
        if !self.flying.remove(key) {
            return;
        }
        match pulled {
            Pulled::Clear => {
                self.pulled = true;
                self.moved.items += 1;
            }
            Pulled::TooLarge => {
                self.moved.left += 1;
                if self.moved.named.len() < NAMED {
                    self.moved.named.push(key.clone());
                }
            }
            Pulled::ClaimGone => self.stopped = true,
        }
    }

    /// `units` of the old partition were spent on a pull, at this rate.
    pub fn spent(&mut self, now: MonotonicInstant, units: u32, rate: u32) {
        self.pace.spent(now, units, rate);
    }

    /// `units` of the old partition were spent on a page, at this rate. They hold up the next page,
    /// and no pull.
    pub fn spent_reading(&mut self, now: MonotonicInstant, units: u32, rate: u32) {
        self.reads.spent(now, units, rate);
    }

    /// Where another mover would begin, to be kept in the claim. A walk that only looks is not
    /// continued.
    pub fn cursor(&self) -> Option<&K> {
        self.cursor.as_ref()
    }

    /// How far it is.
    pub fn progress(&self) -> &Moved<K> {
        &self.moved
    }

    /// Everything of a page is done.
    fn end_page(&mut self) {
        let Some(page) = self.page.take() else { return };
        self.cursor = page.end;
        if self.cursor.is_some() {
            return;
        }
        if self.whole_walk && !self.pulled {
            self.over = true;
        } else {
            self.whole_walk = true;
            self.pulled = false;
            self.moved.left = 0;
            self.moved.named.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: MonotonicInstant = MonotonicInstant(0);

    fn page(rows: &[u8], end: Option<u8>) -> Page<u8, ()> {
        Page { rows: rows.iter().map(|row| (*row, ())).collect(), end }
    }

    fn read(after: Option<u8>) -> MoverDo<u8, ()> {
        MoverDo::Read { after, strong: true }
    }

    #[test]
    fn it_walks_until_a_whole_walk_finds_nothing() {
        let mut mover = Mover::new(Some(3), 2, Rules::ALL);
        assert_eq!(mover.next(NOW, 1), read(Some(3)));
        mover.page(page(&[4, 5, 6], Some(6)));
        assert_eq!(mover.next(NOW, 1), MoverDo::Pull(4, ()));
        assert_eq!(mover.next(NOW, 1), MoverDo::Pull(5, ()));
        assert_eq!(mover.next(NOW, 1), MoverDo::AwaitPulls);
        mover.pulled(&5, Pulled::Clear);
        assert_eq!(mover.next(NOW, 1), MoverDo::Pull(6, ()));
        mover.pulled(&6, Pulled::TooLarge);
        assert_eq!((mover.next(NOW, 1), mover.cursor()), (MoverDo::AwaitPulls, Some(&3)));
        mover.pulled(&4, Pulled::Clear);
        assert_eq!(mover.next(NOW, 1), read(Some(6)));
        mover.page(page(&[], None));
        assert_eq!(mover.next(NOW, 1), read(None), "a whole walk");
        mover.page(page(&[6], None));
        assert_eq!(mover.next(NOW, 1), MoverDo::Pull(6, ()));
        mover.pulled(&6, Pulled::TooLarge);
        assert_eq!(mover.next(NOW, 1), MoverDo::Finished(Moved { items: 2, left: 1, named: vec![6] }));
    }

    #[test]
    fn a_page_holds_up_the_next_page_and_no_pull() {
        let mut mover = Mover::new(None, 2, Rules::ALL);
        assert_eq!(mover.next(NOW, 100), read(None));
        mover.spent_reading(NOW, 256, 100);
        mover.page(page(&[1], Some(1)));
        assert_eq!(mover.next(NOW, 100), MoverDo::Pull(1, ()));
        mover.spent(NOW, 4, 100);
        mover.pulled(&1, Pulled::Clear);
        assert_eq!(mover.next(NOW, 100), MoverDo::Wait { until: Some(MonotonicInstant(2_560_000_000)) });
        assert_eq!(mover.next(MonotonicInstant(2_560_000_000), 100), read(Some(1)));
    }

    #[test]
    fn it_keeps_to_its_rate_rests_without_one_and_stops_without_a_claim() {
        let mut mover = Mover::new(None, 1, Rules::ALL);
        assert_eq!(mover.next(NOW, 0), MoverDo::Wait { until: None });
        mover.page(page(&[1], None));
        assert_eq!(mover.next(NOW, 10), MoverDo::Pull(1, ()));
        mover.spent(NOW, 5, 10);
        mover.pulled(&1, Pulled::Clear);
        assert_eq!(mover.next(NOW, 10), MoverDo::Wait { until: Some(MonotonicInstant(500_000_000)) });
        let later = MonotonicInstant(500_000_000);
        assert_eq!(mover.next(later, 10), read(None));
        mover.page(page(&[2], None));
        assert_eq!(mover.next(later, 10), MoverDo::Pull(2, ()));
        mover.pulled(&2, Pulled::ClaimGone);
        assert_eq!(mover.next(later, 10), MoverDo::Stopped);
    }
}
