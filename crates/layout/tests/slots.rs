//! Slots by name: a list says where shards lie and changes nothing else.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::BTreeSet;

use heatsink_layout::{
    BadSlots, By, Hash, Layout, MOST_SLOTS, Moving, Slot, SortKey, Strategy as Spread, check_slots,
};
use proptest::prelude::*;

fn calculated(shards: u16) -> Layout {
    Layout { strategy: Spread::calculated(By::SortKey), shards, hash: Hash::JumpXxh3, version: 1 }
}

fn named(slots: &[u16]) -> Layout {
    calculated(u16::try_from(slots.len()).unwrap()).with_slots(slots).unwrap()
}

/// Distinct slots, in any order; often the usual ones among them.
fn slots() -> impl Strategy<Value = Vec<u16>> {
    let numbers = prop_oneof![0_u16..12, 0_u16..MOST_SLOTS];
    proptest::collection::hash_set(numbers, 1..12)
        .prop_map(|set| set.into_iter().collect::<Vec<u16>>())
        .prop_shuffle()
}

#[test]
fn a_list_that_is_none_is_refused_with_the_reason() {
    assert_eq!(check_slots(&[0, 1], 3), Err(BadSlots::Count { named: 2, shards: 3 }));
    assert_eq!(check_slots(&[0, 1, 2, 3], 3), Err(BadSlots::Count { named: 4, shards: 3 }));
    assert_eq!(check_slots(&[4, 1, 4], 3), Err(BadSlots::Twice(4)));
    assert_eq!(check_slots(&[0, 10_000, 1], 3), Err(BadSlots::Above(10_000)));
    assert_eq!(check_slots(&[9_999, 0, 1], 3), Ok(()));
    let counter = Spread::Counter { attributes: vec!["n".to_owned()] };
    let counter = Layout { strategy: counter, ..calculated(2) };
    assert_eq!(counter.with_slots(&[1, 0]), Err(BadSlots::Strategy));
}

#[test]
fn the_usual_list_is_none() {
    assert_eq!(calculated(4).with_slots(&[0, 1, 2, 3]), Ok(calculated(4)));
    assert_eq!(named(&[2, 1]).with_slots(&[0, 1]), Ok(calculated(2)));
    assert_eq!(Layout::none().with_slots(&[0]), Ok(Layout::none()));
}

#[test]
fn a_whole_key_in_another_slot_does_not_lie_whole_under_itself() {
    let elsewhere = Layout::none().with_slots(&[5]).unwrap();
    for sort in [None, Some(SortKey::S("a"))] {
        assert_eq!(elsewhere.slot_of(sort), Ok(Slot::shard(5)));
    }
    assert!(!elsewhere.lies_whole() && !elsewhere.places_as(&Layout::none()));
    assert!(named(&[0]).lies_whole() && named(&[0]).places_as(&Layout::none()));
    assert!(!Moving::widens(&elsewhere, &counter_of(3)), "its items lie under no base fragment");
    assert!(Moving::is_possible(&elsewhere, &Layout::none()));
}

fn counter_of(shards: u16) -> Layout {
    Layout { strategy: Spread::Counter { attributes: vec!["n".to_owned()] }, ..calculated(shards) }
}

proptest! {
    /// An item lies in the slot that its shard has by the list.
    #[test]
    fn a_list_places_the_shards_that_the_hash_gives(slots in slots(), sort in "[a-z0-9]{1,8}") {
        let layout = named(&slots);
        let sort = Some(SortKey::S(&sort));
        let shard = calculated(layout.shards).shard_of(sort);
        prop_assert_eq!(layout.slot_of(sort), Ok(Slot::shard(slots[usize::from(shard)])));
        prop_assert_eq!(layout.shard_in(layout.shard_of(sort)), Some(shard));
    }

    #[test]
    fn the_numbers_are_those_of_the_list(slots in slots()) {
        let layout = named(&slots);
        prop_assert_eq!(layout.slot_numbers().collect::<Vec<u16>>(), slots.clone());
        prop_assert_eq!(layout.slot_bound(), slots.iter().max().unwrap() + 1);
        prop_assert!(layout.has_sound_slots());
        let (mut walked, mut at) = (Vec::new(), None);
        while let Some(next) = layout.next_slot(at) {
            walked.push(next);
            at = Some(next);
        }
        prop_assert_eq!(walked, slots.iter().copied().collect::<BTreeSet<u16>>().into_iter().collect::<Vec<u16>>());
        for number in 0..20 {
            prop_assert_eq!(layout.shard_in(number).is_some(), slots.contains(&number));
        }
    }

    /// A shard that gets another slot takes its own items along; the others stay.
    #[test]
    fn only_items_of_shards_with_another_slot_move(from in slots(), to in slots(), sort in "[a-z0-9]{1,8}") {
        let shards = from.len().min(to.len());
        let (from, to) = (named(&from[..shards]), named(&to[..shards]));
        let sort = Some(SortKey::S(&sort));
        let (old, new) = (from.shard_of(sort), to.shard_of(sort));
        prop_assert_eq!(from.shard_in(old), to.shard_in(new));
        prop_assert_eq!(from.keeps_slot(&to, old), old == new);
        let other_count = calculated(from.shards + 1);
        prop_assert!(!from.keeps_slot(&other_count, old), "what grows may send items from every slot");
    }

    /// Items that stay in their shard stay in their slot, and no two shards share one.
    #[test]
    fn another_count_keeps_the_slots_of_the_shards_that_stay(from in slots(), shards in 1_u16..16, sort in "[a-z0-9]{1,8}") {
        let from = named(&from);
        let list = from.slots_for(shards);
        let to = calculated(shards).with_slots(&list).unwrap();
        let kept = from.shards.min(shards);
        prop_assert!((0..kept).all(|shard| from.slot_number(shard) == to.slot_number(shard)));
        let kept: Vec<u16> = list[..usize::from(kept)].to_vec();
        let free: Vec<u16> = (0..MOST_SLOTS).filter(|number| !kept.contains(number)).take(list.len() - kept.len()).collect();
        prop_assert_eq!(&list[kept.len()..], &free[..]);
        let sort = Some(SortKey::S(&sort));
        let shard = |layout: &Layout| layout.shard_in(layout.shard_of(sort));
        if shard(&from) == shard(&to) {
            prop_assert_eq!(from.slot_of(sort), to.slot_of(sort));
        }
    }

    #[test]
    fn free_slots_are_the_lowest_that_no_shard_has(slots in slots(), count in 0_u16..20, from in 0_u16..20) {
        let layout = named(&slots);
        let free = layout.lowest_free_slots(count, from);
        prop_assert_eq!(free.len(), usize::from(count));
        prop_assert!(free.iter().all(|number| *number >= from && !slots.contains(number)));
        let last = free.last().copied().unwrap_or(from);
        prop_assert!((from..last).all(|number| free.contains(&number) || slots.contains(&number)));
    }
}
