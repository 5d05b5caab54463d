//! What a key gets that lies in ranges of its sort key, or is to: ranges that burn are split where
//! its writes divide, and cold neighbours become one. A whole key is one range.
//!
//! Not here: which of its ranges burn (`crowds`), which keys get ranges (`advice`).

use std::collections::BTreeSet;

use heatsink_dynamo::KeyValue;
use heatsink_layout::{Hash, Layout, MOST_RANGES, SplitPoints, Strategy, shortest_between};

use super::crowds::{Fate, MOST_FILLED};
use super::decision::Change;
use super::hot::ceiling;
use super::judged::Judged;
use super::placing::{Ground, lowest};
use super::planned::{FILLED, ITEMS, Plan, units_of_move};
use super::reason::Reason;
use crate::KeyLoad;
use crate::advice::asked_of;

/// A range is not split by fewer sort keys of its writes for each part.
const LEAST_OF_PART: usize = 4;
/// A range is split into so many at once, at most: what is known of its writes divides no finer.
const MOST_PARTS: usize = 12;
/// From this share of growing sort keys on, all new ones would lie in the last range.
const GROWING: f64 = 0.9;
/// A key in ranges: where they begin, nowhere in a whole key; and the slot of each.
pub(super) struct InRanges<'a> {
    pub(super) points: Option<&'a SplitPoints>,
    pub(super) slots: &'a [u16],
}

impl InRanges<'_> {
    fn ranges(&self) -> u16 {
        self.points.map_or(1, SplitPoints::ranges)
    }

    fn range_of(&self, sort: &KeyValue<'_>) -> u16 {
        self.points.map_or(0, |points| points.range_of(sort))
    }

    /// The slots of other ranges, in so far as these have them already.
    fn slots_for(&self, points: &SplitPoints) -> Vec<u16> {
        let (strategy, shards) = match self.points {
            Some(own) => (Strategy::range(own.clone()), own.ranges()),
            None => (Strategy::None, 1),
        };
        let layout = Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 };
        let layout = layout.clone().with_slots(self.slots).unwrap_or(layout);
        layout.slots_for_ranges(points)
    }

    /// Splits the ranges that grow. `used`: slots that burned before.
    pub(super) fn split(
        &self,
        judged: &Judged,
        fates: &[Fate],
        used: &BTreeSet<u16>,
        ground: Option<&Ground<'_>>,
    ) -> Result<Plan, Reason> {
        if judged.seen.growing >= GROWING {
            return Err(Reason::GrowingSortKeys);
        }
        let facts = &judged.facts;
        let sorts = judged.hot.mean.sort_keys();
        let mut points: Vec<KeyValue<'static>> = Vec::new();
        let mut moved = 0.0;
        for (range, fate) in (0..self.ranges()).zip(fates) {
            points.extend(self.points.and_then(|points| points.bounds(range).0).cloned());
            if fate.grows {
                let own: Vec<&KeyValue<'static>> =
                    sorts.iter().filter(|sort| self.range_of(sort) == range).collect();
                let parts = self.parts(judged, range, own.len()).min(own.len() / LEAST_OF_PART);
                if parts < 2 {
                    return Err(Reason::UnknownSortKeys);
                }
                let new = dividing(&own, parts);
                if new.is_empty() {
                    return Err(Reason::OneItem);
                }
                moved += share(new.len(), new.len() + 1);
                points.extend(new);
            } else if fate.leaves {
                moved += 1.0;
            }
        }
        let split_at = SplitPoints::new(points).map_err(|_| Reason::MostShards)?;
        let shards = split_at.ranges();
        let most = facts.settings.most.clamp(1, MOST_RANGES);
        if shards > most && shards > self.ranges() {
            return Err(Reason::MostShards);
        }
        let taken: BTreeSet<u16> = self.slots.iter().chain(used).copied().collect();
        let leaves = |slot: &u16| {
            let at = self.slots.iter().position(|own| own == slot);
            at.and_then(|at| fates.get(at)).is_some_and(|fate| fate.leaves && !fate.grows)
        };
        let kept = self.slots_for(&split_at);
        let keep: Vec<Option<u16>> = kept
            .iter()
            .map(|slot| Some(*slot).filter(|slot| self.slots.contains(slot) && !leaves(slot)))
            .collect();
        let placed = ground.and_then(|ground| {
            ground.place(&judged.name.key, &keep, &taken, shards..=shards, |n| judged.each(n))
        });
        let slots = match placed {
            Some(slots) => slots,
            None => lowest(&keep, shards, &taken).ok_or(Reason::SeveralKeys)?,
        };
        let left = self.slots.iter().filter(|slot| !slots.contains(slot)).copied().collect();
        #[allow(clippy::cast_precision_loss, reason = "at most 64")]
        let moved = moved / f64::from(self.ranges());
        let units = moved * units_of_move(facts.items.unwrap_or(ITEMS), judged.seen.item_bytes);
        let change = Change::Ranges { split_at, slots: slots.clone() };
        Ok(Plan { change, slots, each: judged.each(shards), left, units })
    }

    /// Into how many parts a range has to be split, of which so many sort keys are known: by what it
    /// was counted to be asked for, and by what it refused. Of few sort keys the parts are uneven: a
    /// part of n of them is as large as n + 2√n would be, once in fifty.
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    fn parts(&self, judged: &Judged, range: u16, known: usize) -> usize {
        let load = &judged.hot.mean;
        let all: f64 = load.slots.iter().map(|one| one.units).sum();
        let slot = self.slots.get(usize::from(range));
        let own = slot.and_then(|slot| load.slots.iter().find(|one| one.slot == *slot));
        let ceiling = ceiling(judged.kind);
        let asked = match own.filter(|_| all > 0.0) {
            _ if self.points.is_none() => judged.asked() / ceiling,
            None => return 2,
            Some(own) => {
                let refused = if own.requests > 0.0 { (own.throttled / own.requests).min(1.0) } else { 0.0 };
                let counted = load.units(judged.kind) * own.units / all;
                counted.max(asked_of(ceiling, refused)) / ceiling
            }
        };
        let fits = |parts: &usize| {
            let part = known as f64 / *parts as f64;
            let largest = (1.0 + 2.0 / part.max(1.0).sqrt()) * asked / *parts as f64;
            largest <= MOST_FILLED && asked / *parts as f64 <= FILLED
        };
        (2..MOST_PARTS).find(fits).unwrap_or(MOST_PARTS)
    }

    /// The same key in so many ranges: neighbours become one, those first that are asked for least
    /// together.
    pub(super) fn merged(&self, load: &KeyLoad, wanted: u16) -> Option<Change> {
        let units = |slot: &u16| load.slots.iter().find(|one| one.slot == *slot).map_or(0.0, |one| one.units);
        let mut loads: Vec<f64> = self.slots.iter().map(units).collect();
        let mut points: Vec<KeyValue<'static>> =
            self.points.into_iter().flat_map(SplitPoints::iter).cloned().collect();
        while loads.len() > usize::from(wanted.max(2)) {
            let pair = |at: &usize| loads[*at] + loads[at + 1];
            let at = (0..loads.len() - 1).min_by(|a, b| pair(a).total_cmp(&pair(b)))?;
            loads[at] += loads.remove(at + 1);
            points.remove(at);
        }
        if wanted < 2 {
            return Some(Change::Shards { shards: 1, slots: None });
        }
        let split_at = SplitPoints::new(points).ok()?;
        let slots = self.slots_for(&split_at);
        Some(Change::Ranges { split_at, slots })
    }
}

/// Where sorted sort keys divide into that many parts of about equal size; fewer points where many
/// of them are equal.
fn dividing(sorts: &[&KeyValue<'static>], parts: usize) -> Vec<KeyValue<'static>> {
    let mut points: Vec<KeyValue<'static>> = Vec::new();
    for part in 1..parts {
        let at = part * sorts.len() / parts;
        // The next place at which two differ.
        let differs = |at: &usize| *at > 0 && sorts[at - 1] < sorts[*at];
        let Some(at) = (at..sorts.len()).chain((0..at).rev()).find(differs) else { continue };
        let point = shortest_between(sorts[at - 1], sorts[at]);
        if points.last().is_none_or(|last| *last < point) {
            points.push(point);
        }
    }
    points
}

#[allow(clippy::cast_precision_loss, reason = "at most 64")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(text: &str) -> KeyValue<'static> {
        KeyValue::S(text.to_owned().into())
    }

    #[test]
    fn writes_are_divided_where_they_differ() {
        let sorts: Vec<KeyValue<'static>> = ["a", "b", "c", "d", "d", "d", "d", "e"].map(s).to_vec();
        let all: Vec<&KeyValue<'static>> = sorts.iter().collect();
        assert_eq!(dividing(&all, 2), [s("e")], "the half of them are equal");
        assert_eq!(dividing(&all[..4], 2), [s("c")]);
        assert_eq!(dividing(&all[3..7], 2), [], "all are equal");
    }

    #[test]
    fn the_coolest_neighbours_become_one() {
        let points = SplitPoints::new(["d", "h", "m"].map(s).to_vec()).unwrap();
        let key = InRanges { points: Some(&points), slots: &[0, 3, 1, 2] };
        let slot =
            |slot, units| crate::SlotLoad { slot, units, requests: units, throttled: 0.0, counted: 0.0 };
        let load = KeyLoad {
            slots: vec![slot(0, 50.0), slot(3, 10.0), slot(1, 5.0), slot(2, 40.0)],
            ..KeyLoad::default()
        };
        let Some(Change::Ranges { split_at, slots }) = key.merged(&load, 3) else { panic!() };
        assert_eq!((split_at.to_string().as_str(), &*slots), ("\"d\", \"m\"", &[0, 3, 2][..]));
        assert_eq!(key.merged(&load, 1), Some(Change::Shards { shards: 1, slots: None }));
    }
}
