//! Keys that lie in ranges of their sort keys: which range a slot has, and which slots other ranges
//! of the key get.
//!
//! Not here: the points themselves ([`SplitPoints`]).

use heatsink_dynamo::KeyValue;

use crate::{Layout, SplitPoints, Strategy};

impl Layout {
    /// The split points, where an item's shard is the range of its sort key.
    pub fn split_points(&self) -> Option<&SplitPoints> {
        match &self.strategy {
            Strategy::Range { split_points, .. } => Some(split_points),
            _ => None,
        }
    }

    /// The sort keys of the shard that has the slot of that number, where they are a range: those of
    /// a key that lies whole are one. `None` where the shard is no range, or there is none.
    pub(crate) fn range_in_slot(
        &self,
        number: u16,
    ) -> Option<(Option<&KeyValue<'static>>, Option<&KeyValue<'static>>)> {
        let shard = self.shard_in(number)?;
        match &self.strategy {
            Strategy::Range { split_points, .. } => Some(split_points.bounds(shard)),
            Strategy::None => Some((None, None)),
            Strategy::Calculated { .. } if self.shards <= 1 => Some((None, None)),
            _ => None,
        }
    }

    /// The slots of these ranges of the same key: one that begins where a range of this layout does
    /// keeps its slot, so that only what lies above a new point moves; others get the lowest free
    /// ones.
    pub fn slots_for_ranges(&self, points: &SplitPoints) -> Vec<u16> {
        let own = |range: u16| {
            let (from, _) = points.bounds(range);
            let mut slots = self.slot_numbers();
            slots.find(|slot| self.range_in_slot(*slot).is_some_and(|(begins, _)| begins == from))
        };
        let kept: Vec<Option<u16>> = (0..points.ranges()).map(own).collect();
        let mut free = (0..crate::MOST_SLOTS).filter(|slot| !kept.contains(&Some(*slot)));
        kept.iter().map(|slot| slot.or_else(|| free.next()).unwrap_or_default()).collect()
    }

    /// Whether another layout of the key puts the same items into the slot of that number, so that
    /// none of them moves between the two. `false` where that does not follow from the layouts.
    pub fn keeps_slot(&self, other: &Layout, number: u16) -> bool {
        let shard = self.shard_in(number);
        let same_range = || {
            let range = self.range_in_slot(number);
            range.is_some() && range == other.range_in_slot(number)
        };
        let same_shard = || shard.is_some() && shard == other.shard_in(number) && self.spreads_as(other);
        same_shard() || same_range()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hash, SortKey};

    fn points(texts: &[&str]) -> SplitPoints {
        SplitPoints::new(texts.iter().map(|text| KeyValue::S((*text).to_owned().into())).collect()).unwrap()
    }

    fn layout(texts: &[&str]) -> Layout {
        let split_points = points(texts);
        let shards = split_points.ranges();
        let strategy = Strategy::range(split_points);
        Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
    }

    #[test]
    fn a_record_of_ranges_is_read_as_it_was_written_and_damage_is_refused() {
        let layout = layout(&["b", "m"]).with_slots(&[0, 7, 1]).unwrap();
        let text = serde_json::to_string(&layout).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), layout);
        assert!(layout.is_sound());
        for (right, wrong) in
            [("\"b\"", "\"z\""), ("{\"S\":\"b\"}", "{\"BOOL\":true}"), ("{\"S\":\"b\"}", "{\"N\":\"1\"}")]
        {
            assert!(text.contains(right), "{text}");
            assert!(serde_json::from_str::<Layout>(&text.replace(right, wrong)).is_err(), "{wrong}");
        }
        let fewer = Layout { shards: 2, ..layout };
        assert!(!fewer.is_sound());
    }

    #[test]
    fn a_split_moves_what_lies_above_the_new_point_and_nothing_else() {
        let whole = Layout::none();
        assert_eq!(whole.slots_for_ranges(&points(&["m"])), [0, 1]);
        let two = layout(&["m"]);
        let slots = two.slots_for_ranges(&points(&["g", "m", "t"]));
        assert_eq!(slots, [0, 2, 1, 3]);
        let four = layout(&["g", "m", "t"]).with_slots(&slots).unwrap();
        assert!([0, 1].iter().all(|slot| !two.keeps_slot(&four, *slot)));
        let upper = layout(&["m", "t"]);
        let upper = upper.clone().with_slots(&two.slots_for_ranges(upper.split_points().unwrap())).unwrap();
        assert!(two.keeps_slot(&upper, 0) && !two.keeps_slot(&upper, 1));
        // Merging gives the slot of the upper part back.
        assert_eq!(four.slots_for_ranges(&points(&["m"])), [0, 1]);
        assert!(!four.keeps_slot(&two, 0) && !four.keeps_slot(&two, 3));
    }

    #[test]
    fn an_item_without_a_sort_key_lies_in_the_first_range() {
        let layout = layout(&["b", "m"]).with_slots(&[4, 0, 1]).unwrap();
        assert_eq!((layout.shard_of(None), layout.shard_of(Some(SortKey::S("m")))), (4, 1));
    }
}
