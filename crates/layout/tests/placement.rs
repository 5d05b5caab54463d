//! Placements: every layout gives slots that are its own, and different items of one key agree
//! where they must.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::HashSet;
use std::sync::Arc;

use heatsink_layout::{
    By, Hash, InForce, Layout, Moving, Phase, Placement, Slot, SortKey, Strategy as Spread, Template,
};
use proptest::prelude::*;

fn layout(strategy: Spread, shards: u16, hash: Hash) -> Layout {
    Layout { strategy, shards, hash, version: 1 }
}

fn template(by: By) -> Spread {
    Spread::Template { template: Template::read("{pk}#{shard}").unwrap(), by, time: None }
}

fn counter() -> Spread {
    Spread::Counter { attributes: vec!["likes".to_owned(), "views".to_owned()] }
}

fn any_layout() -> impl Strategy<Value = Layout> {
    let strategy = prop_oneof![
        Just((Spread::None, Hash::JumpXxh3)),
        Just((Spread::calculated(By::SortKey), Hash::JumpXxh3)),
        Just((counter(), Hash::JumpXxh3)),
        Just((template(By::SortKey), Hash::Crc32)),
        Just((template(By::SortKey), Hash::Random)),
    ];
    let usual = (strategy, 1_u16..40).prop_map(|((strategy, hash), shards)| layout(strategy, shards, hash));
    let named = (1_u16..40, 0_u16..50).prop_map(|(shards, from)| {
        let slots: Vec<u16> = (from..from + shards).rev().collect();
        layout(Spread::calculated(By::SortKey), shards, Hash::JumpXxh3).with_slots(&slots).unwrap()
    });
    prop_oneof![usual, named]
}

#[test]
fn a_key_that_is_not_sharded_has_one_slot() {
    assert_eq!(Layout::none().placement(Some(SortKey::S("a"))), Ok(Placement::One(Slot::default())));
    assert_eq!(Layout::none().placement(None), Ok(Placement::One(Slot::default())));
}

#[test]
fn a_counter_is_summed_over_its_base_fragment_and_the_others() {
    let placement = layout(counter(), 3, Hash::JumpXxh3).placement(Some(SortKey::S("a")));
    let others = vec![Slot::shard(1), Slot::shard(2)];
    let attributes = vec!["likes".to_owned(), "views".to_owned()];
    assert_eq!(placement, Ok(Placement::SumOf { base: Slot::default(), others, attributes, adds: 3 }));
}

#[test]
fn a_counter_of_one_shard_is_still_a_counter() {
    let placement = layout(counter(), 1, Hash::JumpXxh3).placement(None).unwrap();
    assert!(matches!(&placement, Placement::SumOf { others, .. } if others.is_empty()), "{placement:?}");
}

#[test]
fn the_placement_in_force_is_that_of_the_layout() {
    let layout = layout(Spread::calculated(By::SortKey), 10, Hash::JumpXxh3);
    let sort = Some(SortKey::S("0000123#player_7"));
    assert_eq!(InForce::Stable(layout.clone().into()).placement(sort), layout.placement(sort).map(Some));
}

proptest! {
    /// While a key moves, an item whose slot changes has both slots, the new one first; others keep
    /// the one that they have. In which phase a request is for which: `heatsink_reshard::act`.
    #[test]
    fn a_key_that_moves_has_both_slots(from in 1_u16..20, to in 1_u16..20, sort in "[a-z0-9]{1,8}") {
        let one = |shards| Arc::new(layout(Spread::calculated(By::SortKey), shards, Hash::JumpXxh3));
        let sort = Some(SortKey::S(&sort));
        let (from, to) = (one(from), one(to));
        let (old, new) = (from.slot_of(sort).unwrap(), to.slot_of(sort).unwrap());
        for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Check, Phase::Move] {
            let moving = Moving { from: Arc::clone(&from), to: Arc::clone(&to), phase, expires: None, marks: false, high_water: None };
            let slots = moving.slots(sort).unwrap();
            let slots = slots.map(|slots| Placement::Moving(slots).slots().collect::<Vec<_>>());
            prop_assert_eq!(slots, (old != new).then(|| vec![new, old]));
            let stays = (old == new).then_some(Placement::One(old));
            prop_assert_eq!(InForce::Moving(Arc::new(moving)).placement(sort), Ok(stays));
        }
    }

    #[test]
    fn slots_are_distinct_and_within_the_layout(layout in any_layout(), sort in "[a-z0-9]{1,8}") {
        let placement = layout.placement(Some(SortKey::S(&sort))).unwrap();
        let slots: Vec<Slot> = placement.slots().collect();
        prop_assert_eq!(slots.iter().collect::<HashSet<_>>().len(), slots.len());
        let numbers: Vec<u16> = layout.slot_numbers().collect();
        prop_assert!(slots.iter().all(|slot| numbers.contains(&slot.shard) && slot.bucket.is_none()));
        prop_assert_eq!(slots.first(), Some(&placement.first()));
        let expected = match placement {
            Placement::One(_) => 1,
            Placement::AnyOf { .. } | Placement::SumOf { .. } => usize::from(layout.shards),
            Placement::Moving(_) => 2,
        };
        prop_assert_eq!(slots.len(), expected);
    }

    /// Where code that asks for one slot, or for all of them, is answered, it is answered alike.
    #[test]
    fn a_placement_agrees_with_the_slots_of_the_layout(layout in any_layout(), sort in "[a-z0-9]{1,8}") {
        let sort = Some(SortKey::S(&sort));
        let placement = layout.placement(sort).unwrap();
        if let Placement::One(slot) = placement {
            prop_assert_eq!(layout.slot_of(sort), Ok(slot));
        }
        if let Placement::AnyOf { hashed, .. } = placement {
            prop_assert_eq!(layout.hashed_slot(sort), Ok(hashed));
            let mut slots: Vec<Slot> = placement.slots().collect();
            slots.sort_unstable();
            prop_assert_eq!(layout.slots_of(sort), Ok(slots));
        }
    }

    /// Spellings of one number are one item.
    #[test]
    fn equal_sort_keys_have_one_placement(layout in any_layout(), number in 0_u32..100_000, zeros in 1_usize..4) {
        let (plain, spelt) = (number.to_string(), format!("{number}.{}", "0".repeat(zeros)));
        prop_assert_eq!(layout.placement(Some(SortKey::N(&plain))), layout.placement(Some(SortKey::N(&spelt))));
    }

    /// Other writers that add shards do not move what Heatsink puts: most hashed slots stay.
    #[test]
    fn an_item_that_other_writers_may_place_is_put_into_its_hashed_slot(shards in 2_u16..40, sort in "[a-z0-9]{1,8}") {
        let sort = Some(SortKey::S(&sort));
        let random = layout(template(By::SortKey), shards, Hash::Random).placement(sort).unwrap();
        let hashed = layout(template(By::SortKey), shards, Hash::JumpXxh3).slot_of(sort);
        prop_assert_eq!(Ok(random.first()), hashed);
    }
}
