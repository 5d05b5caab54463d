//! What the generator of a load counts: of each key and tenth of a second what was offered, accepted
//! and refused, and of each item what has to be stored at the end.
//!
//! Not here: what is offered (`loads::subject`), what follows from the counts (`loads::measure`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use heatsink_env::{Env, MonotonicInstant};
use serde::Serialize;

/// Each interval of the account, in milliseconds.
pub const STEP: u32 = 100;
/// Intervals of a second.
pub const SECOND: usize = 10;

/// What was counted in one interval, in items. What was offered counts when it was sent, the rest
/// when it was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Items that requests were sent for.
    pub offered: u32,
    /// Of them: carried out.
    pub accepted: u32,
    /// Of them: refused for lack of throughput.
    pub refused: u32,
}

impl Interval {
    /// All of them together.
    pub fn sum(of: &[Interval]) -> Interval {
        of.iter().fold(Interval::default(), |sum, one| Interval {
            offered: sum.offered + one.offered,
            accepted: sum.accepted + one.accepted,
            refused: sum.refused + one.refused,
        })
    }

    /// Refused ÷ answered, 0 to 1; 0 where nothing was answered.
    pub fn share(self) -> f64 {
        let answered = self.accepted + self.refused;
        if self.refused == 0 { 0.0 } else { f64::from(self.refused) / f64::from(answered) }
    }
}

/// What became of one item of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was carried out.
    Accepted,
    /// It was refused for lack of throughput.
    Refused,
    /// It may have been carried out.
    Unknown,
}

#[derive(Default)]
struct Cell {
    offered: AtomicU32,
    accepted: AtomicU32,
    refused: AtomicU32,
}

/// The writes of one item. Writes of one item are far apart, so the last one that was accepted is
/// what is stored.
#[derive(Default)]
struct Written {
    sent: AtomicU32,
    accepted: AtomicU32,
    refused: AtomicU32,
    /// The number of the last accepted write, plus 1.
    last: AtomicU32,
}

/// The account of one key.
struct Subject {
    cells: Vec<Cell>,
    items: Vec<Written>,
}

/// What an item holds that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The number of the write that made it.
    Write(u32),
    /// The sum of so many writes that add 1 each.
    Sum(u32),
    /// Nothing that the load wrote.
    Nothing,
}

/// How the items that were found compare with the account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Items that were found.
    pub found: u64,
    /// Writes that were accepted.
    pub accepted: u64,
    /// Items without a write that was accepted: they are missing, or hold an older one.
    pub lost: u64,
    /// Items that nobody wrote, or that hold more than was accepted.
    pub unexpected: u64,
    /// Writes that failed or have no answer: they may be stored or not.
    pub unknown: u64,
}

impl Count {
    /// Whether everything that was accepted is stored, and nothing else.
    pub fn is_exact(&self) -> bool {
        self.lost + self.unexpected == 0
    }

    /// Both together.
    pub fn add(&mut self, other: Count) {
        self.found += other.found;
        self.accepted += other.accepted;
        self.lost += other.lost;
        self.unexpected += other.unexpected;
        self.unknown += other.unknown;
    }
}

/// The account of all keys of a load.
pub struct Account {
    env: Arc<dyn Env>,
    start: MonotonicInstant,
    subjects: Vec<Subject>,
}

impl Account {
    /// An account of a load of so many seconds that begins now. `items`: how many items each key has.
    pub fn new(env: Arc<dyn Env>, seconds: u64, items: &[usize]) -> Self {
        // Answers that come in late fall into further seconds.
        let cells =
            (usize::try_from(seconds).unwrap_or(usize::MAX).saturating_add(10)).saturating_mul(SECOND);
        let subjects = items.iter().map(|&items| Subject {
            cells: std::iter::repeat_with(Cell::default).take(cells).collect(),
            items: std::iter::repeat_with(Written::default).take(items).collect(),
        });
        Account { start: env.now(), subjects: subjects.collect(), env }
    }

    /// Milliseconds since the load began.
    pub fn millis(&self) -> u32 {
        u32::try_from(self.env.now().since(self.start).as_millis()).unwrap_or(u32::MAX)
    }

    fn cell(&self, subject: &Subject, count: impl Fn(&Cell) -> &AtomicU32, by: u32) {
        let nth = usize::try_from(self.millis() / STEP).unwrap_or(usize::MAX);
        if let Some(cell) = subject.cells.get(nth) {
            count(cell).fetch_add(by, Ordering::Relaxed);
        }
    }

    /// A request for these items of a key is sent.
    pub fn sent(&self, subject: usize, items: impl Iterator<Item = usize>) {
        let Some(subject) = self.subjects.get(subject) else { return };
        let mut count = 0;
        for item in items {
            count += 1;
            if let Some(item) = subject.items.get(item) {
                item.sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.cell(subject, |cell| &cell.offered, count);
    }

    /// The request with that number of a key is answered for an item.
    pub fn answered(&self, subject: usize, nth: u64, item: usize, verdict: Verdict) {
        let Some(subject) = self.subjects.get(subject) else { return };
        let Some(item) = subject.items.get(item) else { return };
        match verdict {
            Verdict::Accepted => {
                item.accepted.fetch_add(1, Ordering::Relaxed);
                let number = u32::try_from(nth).unwrap_or(u32::MAX).saturating_add(1);
                item.last.fetch_max(number, Ordering::Relaxed);
                self.cell(subject, |cell| &cell.accepted, 1);
            }
            Verdict::Refused => {
                item.refused.fetch_add(1, Ordering::Relaxed);
                self.cell(subject, |cell| &cell.refused, 1);
            }
            Verdict::Unknown => {}
        }
    }

    /// What was counted of a key, by interval, of the first so many seconds.
    pub fn intervals(&self, subject: usize, seconds: u64) -> Vec<Interval> {
        let most = usize::try_from(seconds).unwrap_or(usize::MAX).saturating_mul(SECOND);
        let cells = self.subjects.get(subject).map(|subject| subject.cells.as_slice()).unwrap_or_default();
        let read = |count: &AtomicU32| count.load(Ordering::Relaxed);
        let of = |cell: &Cell| Interval {
            offered: read(&cell.offered),
            accepted: read(&cell.accepted),
            refused: read(&cell.refused),
        };
        cells.iter().take(most).map(of).collect()
    }

    /// Compares the items of a key that were found, by their number, with the account. `old`: each
    /// was there before the load.
    pub fn count(&self, subject: usize, old: bool, found: &HashMap<usize, Holds>) -> Count {
        let items = self.subjects.get(subject).map(|subject| subject.items.as_slice()).unwrap_or_default();
        let mut count = Count { found: found.len() as u64, ..Count::default() };
        let beyond = found.keys().filter(|item| **item >= items.len()).count();
        count.unexpected += beyond as u64;
        for (nth, item) in items.iter().enumerate() {
            let read = |count: &AtomicU32| count.load(Ordering::Relaxed);
            let (sent, accepted, refused) = (read(&item.sent), read(&item.accepted), read(&item.refused));
            let unknown = sent.saturating_sub(accepted + refused);
            let last = read(&item.last);
            count.accepted += u64::from(accepted);
            count.unknown += u64::from(unknown);
            // A write of unknown outcome may take effect at any time.
            let (lost, unexpected) = match found.get(&nth) {
                None => (old || accepted > 0, false),
                Some(Holds::Write(number)) => {
                    (number + 1 < last && unknown == 0, number + 1 > last && unknown == 0)
                }
                Some(Holds::Sum(sum)) => (*sum < accepted, *sum > accepted + unknown),
                Some(Holds::Nothing) => (false, !old),
            };
            count.lost += u64::from(lost);
            count.unexpected += u64::from(unexpected);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use heatsink_env::ManualEnv;

    use super::*;

    #[test]
    fn counts_fall_into_tenths_of_a_second() {
        let env = Arc::new(ManualEnv::seeded(1));
        let account = Account::new(env.clone(), 1, &[3]);
        account.sent(0, [0, 1].into_iter());
        env.advance(Duration::from_millis(250));
        account.answered(0, 7, 0, Verdict::Accepted);
        account.answered(0, 7, 1, Verdict::Refused);
        let intervals = account.intervals(0, 1);
        assert_eq!(intervals.len(), SECOND);
        assert_eq!(intervals[0], Interval { offered: 2, accepted: 0, refused: 0 });
        assert_eq!(intervals[2], Interval { offered: 0, accepted: 1, refused: 1 });
        assert!((Interval::sum(&intervals).share() - 0.5).abs() < 1e-9);
    }

    fn counted(verdicts: &[Verdict], old: bool, found: Option<Holds>) -> Count {
        let account = Account::new(Arc::new(ManualEnv::seeded(1)), 1, &[1]);
        for (nth, verdict) in (0..).zip(verdicts) {
            account.sent(0, std::iter::once(0));
            account.answered(0, nth, 0, *verdict);
        }
        account.count(0, old, &found.map(|holds| (0, holds)).into_iter().collect())
    }

    #[test]
    fn an_item_holds_its_last_accepted_write() {
        use Verdict::{Accepted, Refused, Unknown};
        let faults = |count: Count| (count.lost, count.unexpected);
        let is = |verdicts: &[Verdict], holds| faults(counted(verdicts, false, holds));
        assert_eq!(is(&[Accepted, Accepted], Some(Holds::Write(1))), (0, 0));
        assert_eq!(is(&[Accepted, Accepted], Some(Holds::Write(0))), (1, 0));
        assert_eq!(is(&[Accepted, Refused], Some(Holds::Write(1))), (0, 1));
        assert_eq!(is(&[Accepted, Unknown], Some(Holds::Write(1))), (0, 0));
        assert_eq!(is(&[Unknown, Accepted], Some(Holds::Write(0))), (0, 0));
        assert_eq!(is(&[Accepted], None), (1, 0));
        assert_eq!(is(&[Refused], None), (0, 0));
        assert_eq!(is(&[], Some(Holds::Nothing)), (0, 1));
    }

    #[test]
    fn a_sum_lies_between_what_is_certain_and_what_may_be() {
        use Verdict::{Accepted, Refused, Unknown};
        let faults = |sum| {
            let count = counted(&[Accepted, Unknown, Refused], true, Some(Holds::Sum(sum)));
            (count.lost, count.unexpected)
        };
        assert_eq!([0, 1, 2, 3].map(faults), [(1, 0), (0, 0), (0, 0), (0, 1)]);
        assert_eq!(counted(&[], true, None).lost, 1);
    }
}
