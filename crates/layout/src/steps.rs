//! How many shards each bucket of a key has: a step function of the bucket, where the number has
//! changed.
//!
//! A bucket keeps its number for ever, since its items lie by it. A change gives another number to
//! all buckets from one on that nothing was written to yet ([`Layout::stepped`]), so no item moves.
//! Not here: how that bucket is chosen, and how it is proved empty (`mover`).

use crate::{Bucket, Layout, Step, Strategy};

/// The most former numbers of one key. With them its record takes some 4 KB.
pub const MAX_STEPS: usize = 64;

impl Layout {
    /// The former numbers of shards, the oldest first; none for a layout without buckets.
    pub fn steps(&self) -> &[Step] {
        match &self.strategy {
            Strategy::Bucket { earlier, .. } => earlier,
            _ => &[],
        }
    }

    /// How many shards a bucket has.
    pub fn shards_in(&self, bucket: Bucket) -> u16 {
        let step = self.steps().iter().find(|step| bucket < step.before);
        step.map_or(self.shards, |step| step.shards)
    }

    /// The most shards that any bucket has.
    pub fn most_shards(&self) -> u16 {
        self.steps().iter().map(|step| step.shards).fold(self.shards, u16::max)
    }

    /// The bucket from which on the newest number holds; `None` where no other ever held.
    pub fn newest_from(&self) -> Option<Bucket> {
        self.steps().last().map(|step| step.before)
    }

    /// The same layout with so many shards in every bucket from that one on; neighbours that are
    /// equal become one step. `None` for a layout without buckets, or with more than [`MAX_STEPS`]
    /// steps.
    #[must_use]
    pub fn stepped(&self, from: Bucket, shards: u16) -> Option<Layout> {
        let Strategy::Bucket { time, by, earlier } = &self.strategy else { return None };
        let mut steps: Vec<Step> = earlier.iter().copied().filter(|step| step.before < from).collect();
        let before = self.shards_in(from.back(1));
        if before != shards {
            steps.push(Step { before: from, shards: before });
        }
        let strategy = Strategy::Bucket { time: time.clone(), by: by.clone(), earlier: steps };
        let stepped = Layout { strategy, shards, version: self.version + 1, ..self.clone() };
        (stepped.steps().len() <= MAX_STEPS).then_some(stepped)
    }

    /// The first bucket to which another layout of the key gives another number of shards; `None`
    /// where there is none, where all buckets differ, or where the two differ in more than these
    /// numbers.
    pub fn differs_from(&self, other: &Layout) -> Option<Bucket> {
        let same_but_for_steps = match (&self.strategy, &other.strategy) {
            (Strategy::Bucket { time, by, .. }, Strategy::Bucket { time: others, by: other_by, .. }) => {
                time == others && by == other_by && self.hash == other.hash
            }
            _ => false,
        };
        if !same_but_for_steps {
            return None;
        }
        let mut bounds: Vec<Bucket> =
            self.steps().iter().chain(other.steps()).map(|step| step.before).collect();
        bounds.sort_unstable();
        let differs = |bucket: Bucket| self.shards_in(bucket) != other.shards_in(bucket);
        let lowest = bounds.first()?.back(1);
        if differs(lowest) {
            return None;
        }
        bounds.into_iter().find(|bound| differs(*bound))
    }

    /// Whether its steps are as [`stepped`](Self::stepped) makes them: a record that says otherwise
    /// is damaged.
    pub fn has_sound_steps(&self) -> bool {
        let steps = self.steps();
        let granularity = self.time().map(|time| time.granularity);
        let next = steps.iter().skip(1).map(|step| step.shards).chain([self.shards]);
        steps.len() <= MAX_STEPS
            && steps.iter().zip(steps.iter().skip(1)).all(|(step, next)| step.before < next.before)
            && steps.iter().zip(next).all(|(step, next)| step.shards != next)
            && steps.iter().all(|step| step.shards > 0 && Some(step.before.granularity()) == granularity)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{By, Epoch, Granularity, Hash, SortKey, Time};

    fn day(number: i64) -> Bucket {
        Bucket::at(number * 86_400, Granularity::Day).unwrap()
    }

    fn layout(shards: u16) -> Layout {
        let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
        let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
        Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
    }

    /// All changes of a few numbers at a few buckets, one after the other: each bucket has what the
    /// last change at or before it said, and a slot before the change is the slot after it.
    #[test]
    fn a_change_changes_the_buckets_from_its_own_on_and_no_other() {
        let changes: Vec<(i64, u16)> = (10..14).flat_map(|at| [1, 2, 5].map(|shards| (at, shards))).collect();
        let key = |bucket: Bucket| bucket.start().to_string();
        for first in [1, 2] {
            let mut known = vec![(layout(first), BTreeMap::from_iter((8..16).map(|at| (at, first))))];
            for _ in 0..3 {
                let mut next = Vec::new();
                for ((before, numbers), (at, shards)) in
                    known.iter().flat_map(|one| changes.iter().map(move |change| (one, *change)))
                {
                    let after = before.stepped(day(at), shards).unwrap();
                    let mut numbers = numbers.clone();
                    numbers.iter_mut().filter(|(of, _)| **of >= at).for_each(|(_, number)| *number = shards);
                    for (of, number) in &numbers {
                        assert_eq!(after.shards_in(day(*of)), *number, "{before} then {shards} from {at}");
                        if *of < at {
                            let slot = |layout: &Layout| layout.slot_of(Some(SortKey::N(&key(day(*of)))));
                            assert_eq!(slot(&after), slot(before));
                        }
                    }
                    assert!(after.has_sound_steps(), "{after:?}");
                    assert_eq!(after.most_shards(), *numbers.values().max().unwrap());
                    let changed = (8..16).find(|of| before.shards_in(day(*of)) != numbers[of]);
                    assert_eq!(before.differs_from(&after), changed.map(day), "{before:?} {after:?}");
                    next.push((after, numbers));
                }
                next.truncate(200);
                known = next;
            }
        }
    }

    #[test]
    fn a_step_that_has_not_begun_is_replaced_and_equal_neighbours_become_one() {
        let four = layout(1).stepped(day(20), 4).unwrap();
        assert_eq!(four.steps(), [Step { before: day(20), shards: 1 }]);
        assert_eq!(four.newest_from(), Some(day(20)));
        // Another number from the same bucket, or an earlier one, on.
        let eight = four.stepped(day(15), 8).unwrap();
        assert_eq!(eight.steps(), [Step { before: day(15), shards: 1 }]);
        // Back to what held before.
        let back = four.stepped(day(18), 1).unwrap();
        assert_eq!((back.steps(), back.shards), (&[][..], 1));
        // One that has begun stays.
        let both = four.stepped(day(30), 2).unwrap();
        assert_eq!(both.steps(), [Step { before: day(20), shards: 1 }, Step { before: day(30), shards: 4 }]);
        assert_eq!(four.stepped(day(30), 4).unwrap().steps(), four.steps());
    }

    #[test]
    fn the_steps_of_a_key_are_bounded() {
        let mut long = layout(1);
        for number in 0..MAX_STEPS {
            let at = i64::try_from(number).unwrap();
            long = long.stepped(day(at), 2 + u16::from(number % 2 == 0)).unwrap();
        }
        assert_eq!(long.steps().len(), MAX_STEPS);
        assert!(long.stepped(day(1_000), 1).is_none());
        assert!(long.stepped(day(1), 1).is_some(), "what has not begun is replaced");
        assert!(serde_json::to_string(&long).unwrap().len() < 4_096);
    }

    #[test]
    fn steps_are_written_as_buckets_and_damaged_ones_are_refused() {
        let stepped = layout(1).stepped(day(20), 4).unwrap();
        let text = serde_json::to_string(&stepped).unwrap();
        assert!(text.contains(r#""earlier":[{"before":"1970-01-21","shards":1}]"#), "{text}");
        assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), stepped);
        // A layout without steps is written as it always was.
        assert!(!serde_json::to_string(&layout(4)).unwrap().contains("earlier"));
        for broken in ["1970-01-41", "70-01-21", "", "1970-01-21 "] {
            assert!(serde_json::from_str::<Layout>(&text.replace("1970-01-21", broken)).is_err(), "{broken}");
        }
        for unsound in [
            text.replace("1970-01-21", "1970-01"),
            text.replace(r#"1970-01-21","shards":1"#, r#"1970-01-21","shards":4"#),
            text.replace(r#"1970-01-21","shards":1"#, r#"1970-01-21","shards":0"#),
        ] {
            assert!(!serde_json::from_str::<Layout>(&unsound).unwrap().has_sound_steps(), "{unsound}");
        }
        let unordered = [day(20), day(10)]
            .map(|before| Step { before, shards: u16::try_from(before.until(day(21))).unwrap() });
        let Strategy::Bucket { time, by, .. } = layout(1).strategy else { unreachable!() };
        let strategy = Strategy::Bucket { time, by, earlier: unordered.to_vec() };
        assert!(!Layout { strategy, ..layout(5) }.has_sound_steps());
    }
}
