//! What items of one key say of ranges of its sort key: whether the sort keys of each slot lie
//! between those of the others, and with them where the ranges begin.
//!
//! Not here: keys whose shards follow from a hash (`shard_traces`).

use std::collections::BTreeMap;

use heatsink_dynamo::KeyValue;
use heatsink_layout::{MOST_RANGES, MOST_SLOTS, SplitPoints, shortest_between};

/// The slots of one key by its items, as far as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeTraces {
    by_slot: BTreeMap<u16, Seen>,
}

/// The items of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    lowest: KeyValue<'static>,
    highest: KeyValue<'static>,
    items: u64,
}

/// The ranges that items name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldRanges {
    /// Where they begin, as far as the items tell: somewhere between two of them.
    pub split_points: SplitPoints,
    /// The slot of each, in order.
    pub slots: Vec<u16>,
    /// How likely it is that so many items lie so by chance.
    pub by_chance: f64,
}

impl RangeTraces {
    /// Counts an item of the key that lies in that slot. `None`: its sort key cannot be one.
    pub(crate) fn add(&mut self, sort: Option<KeyValue<'_>>, slot: u16) {
        let Some(sort) = sort.filter(|_| slot < MOST_SLOTS) else { return };
        // A key has at most so many ranges: with more it has none.
        if self.by_slot.len() > usize::from(MOST_RANGES) {
            return;
        }
        match self.by_slot.get_mut(&slot) {
            None => {
                let sort = sort.into_owned();
                self.by_slot.insert(slot, Seen { lowest: sort.clone(), highest: sort, items: 1 });
            }
            Some(seen) => {
                seen.items += 1;
                if sort < seen.lowest {
                    seen.lowest = sort.into_owned();
                } else if sort > seen.highest {
                    seen.highest = sort.into_owned();
                }
            }
        }
    }

    /// The ranges that the items name: `None` where those of two slots lie among each other, and
    /// where there is one slot.
    pub fn told(&self) -> Option<ToldRanges> {
        let mut slots: Vec<(u16, &Seen)> = self.by_slot.iter().map(|(slot, seen)| (*slot, seen)).collect();
        slots.sort_unstable_by(|(_, one), (_, other)| one.lowest.cmp(&other.lowest));
        let pairs = || slots.iter().zip(slots.iter().skip(1));
        if !pairs().all(|((_, one), (_, next))| one.highest < next.lowest) {
            return None;
        }
        let points = pairs().map(|((_, one), (_, next))| shortest_between(&one.highest, &next.lowest));
        let split_points = SplitPoints::new(points.collect()).ok()?;
        Some(ToldRanges {
            split_points,
            slots: slots.iter().map(|(slot, _)| *slot).collect(),
            by_chance: by_chance(&slots.iter().map(|(_, seen)| seen.items).collect::<Vec<_>>()),
        })
    }
}

/// How likely it is that items, so many of each slot, lie slot by slot in the order of their sort
/// keys, if every order is as likely: the slots' orders over all arrangements,
/// k! × n₁! × … × nₖ! ÷ n!.
#[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn by_chance(items: &[u64]) -> f64 {
    // Above that many by Stirling's formula, which is right to a thousandth there.
    let ln_factorial = |number: u64| match number as f64 {
        n if n > 100.0 => n * n.ln() - n + (2.0 * std::f64::consts::PI * n).ln() / 2.0,
        _ => (2..=number).map(|factor| (factor as f64).ln()).sum::<f64>(),
    };
    let slots = u64::try_from(items.len()).unwrap_or(u64::MAX);
    let each: f64 = items.iter().map(|items| ln_factorial(*items)).sum();
    (ln_factorial(slots) + each - ln_factorial(items.iter().sum())).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(items: &[(u16, &str)]) -> RangeTraces {
        let mut traces = RangeTraces::default();
        for (slot, sort) in items {
            traces.add(Some(KeyValue::S((*sort).into())), *slot);
        }
        traces
    }

    #[test]
    fn slots_that_lie_between_each_other_are_ranges() {
        let told = traces(&[(0, "a"), (5, "m"), (0, "f"), (5, "k"), (1, "t"), (1, "z")]).told().unwrap();
        assert_eq!((told.split_points.to_string().as_str(), &*told.slots), ("\"k\", \"t\"", &[0, 5, 1][..]));
        // Of 6 items in three pairs one arrangement of fifteen has the pairs side by side.
        assert!((told.by_chance - 1.0 / 15.0).abs() < 1e-9, "{}", told.by_chance);
        assert!(traces(&[(0, "a"), (1, "b"), (0, "c")]).told().is_none());
        assert!(traces(&[(1, "a"), (1, "b")]).told().is_none(), "one slot tells nothing");
    }

    #[test]
    fn many_items_leave_nothing_to_chance() {
        let mut traces = RangeTraces::default();
        for at in 0..20_000_u64 {
            let sort = KeyValue::N(heatsink_dynamo::Number::from(at));
            traces.add(Some(sort), u16::from(at >= 10_000));
        }
        let told = traces.told().unwrap();
        assert!(told.by_chance < 1e-9);
        assert_eq!(told.split_points.to_string(), "10000");
    }
}
