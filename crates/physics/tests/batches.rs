//! Batching changes no count: the same requests in batches and one by one end in the same state.

use crate::support::{self, SECOND};
use heatsink_physics::{
    Access, Batch, Demand, KeyPosition, KeyRange, Mode, ResourceId, Rules, SortKey, Tables, Tally, Units,
    position,
};
use proptest::prelude::*;

fn model(mode: Mode, rules: Rules) -> (Tables, [ResourceId; 2]) {
    let mut tables = Tables::new(rules);
    let own = tables.create(0, "t".into(), mode);
    let index = tables.set_indexes(0, "t", &[("i".into(), mode)])[0];
    (tables, [own, index])
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::ON_DEMAND),
        (100u64..6_000, 50u64..3_000).prop_map(|(read, write)| Mode::Provisioned { read, write }),
        (100u64..6_000).prop_map(|max| Mode::OnDemand { max_read: Some(max), max_write: Some(max) }),
    ]
}

fn one_by_one(tables: &mut Tables, batch: Batch, demands: &[Demand]) -> Tally {
    let mut tally = Tally::default();
    for nth in 0..batch.count {
        match tables.offer(batch.first + nth * batch.step, demands) {
            Ok(()) => tally.admitted += 1,
            Err(throttle) => {
                tally.causes[throttle.cause as usize] += 1;
                tally.by_index += u64::from(throttle.index);
            }
        }
    }
    tally
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn batching_changes_no_count(
        mode in mode(),
        seed in any::<u64>(),
        legacy_linear in any::<bool>(),
        batches in prop::collection::vec(
            (0u64..120 * SECOND, 0u64..4_000_000, 1u64..4_000, 0u8..3, 0u64..3, 1u64..6, 0u8..3), 1..24),
    ) {
        let rules = Rules { seed, legacy_linear, split_delay_seconds: (20, 40), ..Rules::default() };
        let (mut one, [own, index]) = model(mode, rules.clone());
        let (mut many, _) = model(mode, rules);
        let mut now = 0;
        for (rest, step, count, access, key, halves, entry) in batches {
            let access = [Access::Strong, Access::Eventual, Access::Write][usize::from(access)];
            let place = KeyRange::At(KeyPosition::new(key << 62, SortKey::ordinal(u64::from(access.writes()))));
            let first = Demand { on: own, access, place, units: Units::HALF.times(halves) };
            let mut demands = vec![first];
            if access.writes() && entry > 0 {
                demands.push(Demand { on: index, place: KeyRange::key(7), units: Units::whole(entry.into()), ..first });
            }
            let batch = Batch { first: now, step, count };
            prop_assert_eq!(one_by_one(&mut one, batch, &demands), many.offer_batch(batch, &demands));
            now += step * count + rest;
        }
        // What each partition holds, and what happened on the way.
        now += 2 * SECOND;
        prop_assert_eq!(one.snapshot(now, "t"), many.snapshot(now, "t"));
        prop_assert_eq!(one.take_events(), many.take_events());
    }

    /// Requests that differ in one point, together and one by one.
    #[test]
    fn requests_alike_but_for_a_point_are_counted_together(
        mode in mode(),
        seed in any::<u64>(),
        legacy_linear in any::<bool>(),
        moments in prop::collection::vec((0u64..2 * SECOND, 0usize..400, 0u8..3, 1u64..6, 0u8..4, any::<u64>()), 1..80),
        keys in 1u64..40,
    ) {
        let rules = Rules { seed, legacy_linear, split_delay_seconds: (20, 40), ..Rules::default() };
        let (mut one, [own, index]) = model(mode, rules.clone());
        let (mut many, _) = model(mode, rules);
        let mut now = 0;
        for (rest, count, access, halves, shares, draw) in moments {
            let access = [Access::Strong, Access::Eventual, Access::Write][usize::from(access)];
            let each = Demand { on: own, access, place: KeyRange::key(0), units: Units::HALF.times(halves) };
            let entry = Demand { on: index, access: Access::Write, place: KeyRange::key(7), units: Units::ONE };
            // None, the index, or (one by one) the table itself and what is not a point.
            let shared = match shares {
                0 | 1 => vec![],
                2 => vec![entry],
                _ if draw % 2 == 0 => vec![Demand { on: own, ..entry }],
                _ => vec![Demand { place: KeyRange::All, ..entry }],
            };
            let points: Vec<KeyPosition> = (0..count as u64)
                .map(|nth| {
                    let key = position(&(nth.wrapping_mul(draw | 1) % keys).to_le_bytes());
                    KeyPosition::new(key, SortKey::ordinal(nth ^ draw))
                })
                .collect();
            let demands = |point: &KeyPosition| -> Vec<Demand> {
                shared.iter().copied().chain([Demand { place: KeyRange::At(*point), ..each }]).collect()
            };
            let admitted = points.iter().filter(|point| one.offer(now, &demands(point)).is_ok()).count() as u64;
            let (mut fresh, mut found) = (many.clone(), 0);
            while found < count as u64 && fresh.offer(now, &shared).is_ok() {
                found += 1;
            }
            let room = many.room(now, &shared, count as u64);
            prop_assert!(room == found || shares == 3 && room == found.min(1), "{room} of {found}");
            prop_assert_eq!(admitted, many.offer_each(now, &shared, &each, &points));
            now += rest;
        }
        now += 2 * SECOND;
        prop_assert_eq!(one.snapshot(now, "t"), many.snapshot(now, "t"));
        prop_assert_eq!(one.take_events(), many.take_events());
    }

    /// One key under a steady load until its partition splits, and beyond.
    #[test]
    fn nor_across_splits(seed in any::<u64>(), rate in 500u64..9_000, keys in 1u64..4) {
        let rules = Rules { seed, split_delay_seconds: (10, 30), ..Rules::default() };
        let (mut one, [own, _]) = model(Mode::ON_DEMAND, rules.clone());
        let (mut many, _) = model(Mode::ON_DEMAND, rules);
        for turn in 0..150 {
            let demand = support::write(own, KeyRange::key(1 + turn % keys));
            for batch in Batch::spread(turn * SECOND, SECOND, rate) {
                prop_assert_eq!(one_by_one(&mut one, batch, &[demand]), many.offer_batch(batch, &[demand]));
            }
        }
        let events = one.take_events();
        if rate > 1_000 && keys > 1 {
            prop_assert!(!support::splits(&events).is_empty());
        }
        prop_assert_eq!(events, many.take_events());
    }

    /// Nor where they differ in one point: what is seen in turn decides where the split falls.
    #[test]
    fn nor_together_across_splits(seed in any::<u64>(), rate in 500u64..2_000, keys in 1u64..6) {
        let rules = Rules { seed, split_delay_seconds: (10, 30), ..Rules::default() };
        let (mut one, [own, _]) = model(Mode::ON_DEMAND, rules.clone());
        let (mut many, _) = model(Mode::ON_DEMAND, rules);
        for turn in 0..600 {
            let now = turn * SECOND / 4;
            let point = |nth: u64| KeyPosition::new(1 + nth % keys, SortKey::ordinal(nth.wrapping_mul(seed)));
            let points: Vec<KeyPosition> = (0..rate / 4).map(point).collect();
            let each = support::write(own, KeyRange::key(0));
            let by_one = points.iter().filter(|point| one.offer(now, &[Demand { place: KeyRange::At(**point), ..each }]).is_ok());
            prop_assert_eq!(by_one.count() as u64, many.offer_each(now, &[], &each, &points));
        }
        let events = one.take_events();
        if rate > 1_000 && keys > 1 {
            prop_assert!(!support::splits(&events).is_empty());
        }
        prop_assert_eq!(events, many.take_events());
    }
}

#[test]
fn spread_is_even_and_complete() {
    for (span, count) in [(SECOND, 7), (SECOND, 1_000), (10, 3), (3, 10), (SECOND, 1)] {
        let [a, b] = Batch::spread(100, span, count);
        assert_eq!(a.count + b.count, count);
        let last = b.first + b.step * b.count;
        assert_eq!(last, 100 + span, "{span} {count}");
    }
    assert_eq!(Batch::spread(0, SECOND, 0).map(|batch| batch.count), [0, 0]);
}
