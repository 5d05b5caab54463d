//! Figures that AWS's documentation gives, exactly (docs/explain/partitions.md#sources). The
//! numbers in the tests' names are those of the notes that they were collected in: s1 ceilings, s2
//! counts of partitions, s4 and s6 splits, s7 growth, s11 to s15 units and sizes.

use crate::support::{MINUTE, SECOND, eventual, load, mean, on_demand, shuffled, steady, strong, write};
use heatsink_dynamo::capacity::{Consistency, read_units, write_units};
use heatsink_physics::{
    CollectionFull, EventKind, KeyPosition, KeyRange, Mode, PARTITION_BYTES, Quotas, ResourceId, Rules,
    SortKey, Tables, Units,
};

#[test]
fn s1_2_reads_and_writes_shared_one_budget_until_2020() {
    let (mut today, id) = on_demand(0);
    let mut legacy = Tables::new(Rules { legacy_linear: true, ..Rules::default() });
    assert_eq!(legacy.create(0, "table".into(), Mode::ON_DEMAND), id);
    let place = KeyRange::key(7);
    let both = |tables: &mut Tables| {
        // 1,000 writes and 3,000 strong reads a second, one after the other in every millisecond.
        let (mut writes, mut reads) = (0, 0);
        for millisecond in 0..20_000 {
            let now = millisecond * SECOND / 1_000;
            writes += u64::from(tables.offer(now, &[write(id, place)]).is_ok());
            reads += (0..3).filter(|_| tables.offer(now, &[strong(id, place)]).is_ok()).count() as u64;
        }
        writes as f64 / 20_000.0 + reads as f64 / 60_000.0
    };
    let full = both(&mut today);
    assert!((1.99..=2.0).contains(&full), "{full} partitions' worth");
    let full = both(&mut legacy);
    assert!((0.99..=1.04).contains(&full), "{full} partitions' worth");
}

#[test]
fn s1_4_followers_answer_eventually_consistent_reads_beside_strong_ones() {
    let (mut tables, id) = on_demand(0);
    let place = KeyRange::key(7);
    let mut admitted = [0; 2];
    for nth in 0..40 * 10_000 {
        let now = nth * SECOND / 10_000;
        admitted[0] += u64::from(tables.offer(now, &[strong(id, place)]).is_ok());
        admitted[1] += u64::from(tables.offer(now, &[eventual(id, place)]).is_ok());
    }
    assert!((3_000..3_100).contains(&(admitted[0] / 40)), "{admitted:?}");
    assert!((6_000..6_200).contains(&(admitted[1] / 40)), "{admitted:?}");
}

#[test]
fn s2_3_and_s2_4_raising_doubles_and_lowering_keeps() {
    let mut tables = Tables::default();
    let id = tables.create(0, "table".into(), Mode::Provisioned { read: 5_000, write: 2_000 });
    let mut count = |mode: Mode| {
        tables.update(0, id, mode);
        tables.snapshot(0, "table").unwrap()[0].partitions.len()
    };
    assert_eq!(count(Mode::Provisioned { read: 5_000, write: 2_000 }), 4);
    assert_eq!(count(Mode::Provisioned { read: 8_000, write: 2_000 }), 8);
    assert_eq!(count(Mode::Provisioned { read: 1, write: 1 }), 8);
    assert_eq!(count(Mode::ON_DEMAND), 8);

    let mut tables = Tables::default();
    let id = tables.create(0, "table".into(), Mode::Provisioned { read: 0, write: 3_200 });
    let mut count = |write: u64| {
        tables.update(0, id, Mode::Provisioned { read: 0, write });
        tables.snapshot(0, "table").unwrap()[0].partitions.len()
    };
    assert_eq!([3_200, 3_600, 6_000, 5_000].map(&mut count), [4, 4, 8, 8]);
}

/// Seconds of uniform traffic at exactly `rate` writes/s; the share throttled.
fn uniform(tables: &mut Tables, id: ResourceId, from: u64, rate: u64) -> f64 {
    let seconds = 30;
    let key = |nth: u64| KeyRange::key(shuffled(from ^ nth));
    let admitted: u64 = load(tables, from, seconds, rate, |nth| write(id, key(nth))).into_iter().sum();
    1.0 - admitted as f64 / (seconds * rate) as f64
}

#[test]
fn s7_3_a_table_at_its_warm_rate_over_uniform_keys_is_not_throttled() {
    for rate in [4_000, 4_100, 4_900, 5_000, 6_500, 7_000, 9_000, 13_000, 29_000] {
        // Warmed from the start, grown by use, switched to on-demand, and raised while it is
        // provisioned.
        let rules = || Rules { quotas: Quotas::NONE, splits: false, ..Rules::default() };
        let mut warmed = Tables::new(rules());
        let id = warmed.create(0, "table".into(), Mode::ON_DEMAND);
        warmed.warm_up(0, id, 0, rate);
        let mut raised = Tables::new(rules());
        raised.create(0, "table".into(), Mode::Provisioned { read: 1, write: 3_200 });
        raised.update(0, id, Mode::Provisioned { read: 1, write: rate });
        let mut switched = Tables::new(rules());
        switched.create(0, "table".into(), Mode::Provisioned { read: 1, write: 1 });
        switched.update(0, id, Mode::ON_DEMAND);
        switched.warm_up(0, id, 0, rate);
        let mut grown = Tables::new(rules());
        grown.create(0, "table".into(), Mode::ON_DEMAND);
        let half = heatsink_physics::Demand { units: Units::whole(rate / 2), ..write(id, KeyRange::All) };
        for second in 0..40 * 60 {
            let _ = grown.offer(second * SECOND, &[half]);
        }
        for (how, tables) in [
            ("warmed", &mut warmed),
            ("raised", &mut raised),
            ("switched", &mut switched),
            ("grown", &mut grown),
        ] {
            let from = 41 * MINUTE;
            let served = tables.snapshot(from, "table").unwrap()[0].writes.min(rate);
            let share = uniform(tables, id, from, served);
            assert!(share < 0.002, "{how} to {rate}/s, {served} served: {share} throttled");
        }
    }
}

#[test]
fn a_table_that_was_split_for_heat_still_carries_what_it_is_raised_to() {
    let mut tables = Tables::new(Rules { quotas: Quotas::NONE, ..Rules::default() });
    let id = tables.create(0, "table".into(), Mode::Provisioned { read: 1, write: 4_000 });
    // One key with random sort keys is split again and again: many partitions, three of them as
    // wide as before.
    load(&mut tables, 0, 1_500, 3_500, |nth| {
        write(id, KeyRange::At(KeyPosition::new(7, SortKey::ordinal(shuffled(nth)))))
    });
    let now = 1_500 * SECOND;
    assert!(tables.snapshot(now, "table").unwrap()[0].partitions.len() > 5);
    tables.update(now, id, Mode::Provisioned { read: 1, write: 8_000 });
    let share = uniform(&mut tables, id, now, 8_000);
    assert!(share < 0.002, "{share}");
}

#[test]
fn s6_2_no_split_inside_a_collection_with_a_local_index() {
    for (local, strict, why) in [(true, false, "local-index"), (false, true, "one-key")] {
        let mut tables = Tables::new(Rules { one_key_one_partition: strict, ..Rules::default() });
        let id = tables.create(0, "table".into(), Mode::ON_DEMAND);
        tables.set_local_indexes(id, local);
        let admitted = load(&mut tables, 0, 900, 2_000, |nth| {
            write(id, KeyRange::At(KeyPosition::new(7, SortKey::ordinal(shuffled(nth)))))
        });
        assert!((999.0..=1_001.0).contains(&mean(&admitted[1..])), "{why}");
        let refused = tables.take_events().into_iter().find_map(|event| match event.kind {
            EventKind::SplitRefused { why, .. } => Some(why.name()),
            _ => None,
        });
        assert_eq!(refused, Some(why));
    }
}

#[test]
fn s6_2_a_single_hot_item_is_not_split() {
    let (mut tables, id) = on_demand(0);
    steady(&mut tables, 0, 3_600, 5_000, &[write(id, KeyRange::key(7))]);
    let partitions = &tables.snapshot(3_600 * SECOND, "table").unwrap()[0].partitions;
    assert_eq!(partitions.len(), 4);
    assert!(matches!(partitions[0].health, heatsink_physics::Health::Stuck(_)), "{partitions:?}");
}

/// Another key's traffic on the same partition is parted from a hot item, which then has its
/// ceiling for itself.
#[test]
fn s4_4_a_hot_item_is_isolated() {
    let (mut tables, id) = on_demand(0);
    let quarter = u64::MAX / 4;
    let demand = |nth: u64| match nth % 10 {
        0..6 => write(id, KeyRange::key(quarter / 2)),
        _ => write(id, KeyRange::key(shuffled(nth) % quarter)),
    };
    load(&mut tables, 0, 3_600, 1_600, demand);
    let partitions = tables.snapshot(3_600 * SECOND, "table").unwrap().remove(0).partitions;
    let hot = partitions.iter().find(|one| (one.first..=one.last).contains(&(quarter / 2))).unwrap();
    assert!((940.0..=1_000.0).contains(&hot.writes_per_second), "{hot:?}");
    let others: f64 = partitions.iter().map(|one| one.writes_per_second).sum::<f64>() - hot.writes_per_second;
    assert!(others > 600.0, "{partitions:?}");
    assert!(partitions.iter().all(|one| one.throttles_per_second == 0), "{partitions:?}");
}

#[test]
fn s7_1_a_new_on_demand_table() {
    let (mut tables, id) = on_demand(0);
    let shown = tables.snapshot(0, "table").unwrap().remove(0);
    assert_eq!((shown.warm_reads, shown.warm_writes, shown.partitions.len()), (12_000, 4_000, 4));
    let admitted = load(&mut tables, 0, 30, 6_000, |nth| write(id, KeyRange::key(shuffled(nth))));
    assert!((3_950.0..=4_000.0).contains(&mean(&admitted[2..])), "{admitted:?}");
}

#[test]
fn s7_2_capacity_doubles_when_a_peak_has_stood_for_half_an_hour() {
    let mut tables = Tables::new(Rules { quotas: Quotas::NONE, splits: false, ..Rules::default() });
    let id = tables.create(0, "table".into(), Mode::ON_DEMAND);
    // 50,000 was the previous peak: 100,000 at once, and after half an hour 200,000.
    tables.warm_up(0, id, 0, 100_000);
    let mut limits = Vec::new();
    for minute in 0..40 {
        // As much as it serves, in equal shares over all partitions.
        let rate = tables.snapshot(minute * MINUTE, "table").unwrap()[0].writes;
        limits.push(rate);
        for second in 0..60 {
            let now = minute * MINUTE + second * SECOND;
            let all = heatsink_physics::Demand { units: Units::whole(rate), ..write(id, KeyRange::All) };
            assert!(tables.offer(now, &[all]).is_ok() || second == 0, "at {minute}:{second}");
        }
    }
    assert_eq!((limits[0], limits[29], limits[33]), (100_000, 100_000, 200_000));
    let doubled = tables.take_events().into_iter().find_map(|event| match event.kind {
        EventKind::PeakRegistered { writes: true, peak, limit } => Some((peak, limit, event.at / MINUTE)),
        _ => None,
    });
    assert_eq!(doubled, Some((100_000, 200_000, 31)));
    assert!(tables.snapshot(40 * MINUTE, "table").unwrap()[0].partitions.len() >= 200);
}

#[test]
fn s7_4_what_was_provisioned_once_stays_warm() {
    let mut tables = Tables::default();
    for (made, now, served) in [
        (Mode::Provisioned { read: 24_000, write: 8_000 }, Mode::ON_DEMAND, (24_000, 8_000)),
        (Mode::Provisioned { read: 10_000, write: 10_000 }, Mode::ON_DEMAND, (12_000, 10_000)),
        (Mode::Provisioned { read: 1, write: 1 }, Mode::ON_DEMAND, (12_000, 4_000)),
    ] {
        let id = tables.create(0, "table".into(), made);
        tables.update(0, id, Mode::Provisioned { read: 10, write: 10 });
        tables.update(0, id, now);
        let shown = tables.snapshot(0, "table").unwrap().remove(0);
        assert_eq!((shown.reads, shown.writes), served);
        assert!(shown.partitions.len() as u64 >= served.1 / 1_000);
    }
}

#[test]
fn s11_a_partition_at_its_ceiling_for_a_minute_is_180_000_consumed_throughput_units() {
    let (mut tables, id) = on_demand(0);
    let place = KeyRange::key(7);
    steady(&mut tables, 0, 10, 5_000, &[write(id, place)]);
    let writes = steady(&mut tables, 10 * SECOND, 60, 5_000, &[write(id, place)]).admitted;
    steady(&mut tables, 70 * SECOND, 10, 9_000, &[strong(id, place)]);
    let reads = steady(&mut tables, 80 * SECOND, 60, 9_000, &[strong(id, place)]).admitted;
    assert!((179_990..=180_010).contains(&(3 * writes)), "{writes}");
    assert!((179_990..=180_010).contains(&reads), "{reads}");
}

#[test]
fn s13_an_item_collection_under_a_local_index_holds_10_gb() {
    let mut tables = Tables::default();
    let id = tables.create(0, "table".into(), Mode::ON_DEMAND);
    tables.set_local_indexes(id, true);
    let point = KeyPosition::first(7);
    let half = i64::try_from(PARTITION_BYTES / 2).unwrap();
    assert_eq!(tables.store(id, point, half), Ok(()));
    assert_eq!(tables.store(id, point, half), Ok(()));
    assert_eq!(tables.store(id, point, 1), Err(CollectionFull));
    assert_eq!(tables.store(id, KeyPosition::first(8), 1), Ok(()), "another collection");
    assert_eq!(tables.store(id, point, -10), Ok(()));
    assert_eq!(tables.store(id, point, 10), Ok(()));
}

#[test]
fn s2_5_a_partition_over_10_gb_splits() {
    let (mut tables, id) = on_demand(0);
    let size = i64::try_from(PARTITION_BYTES).unwrap();
    tables.store(id, KeyPosition::first(7), size).unwrap();
    tables.advance(20 * MINUTE);
    assert_eq!(tables.snapshot(20 * MINUTE, "table").unwrap()[0].partitions.len(), 4);
    tables.store(id, KeyPosition::first(7), 1).unwrap();
    tables.advance(40 * MINUTE);
    assert_eq!(tables.snapshot(40 * MINUTE, "table").unwrap()[0].partitions.len(), 5);
}

#[test]
fn s14_rounding() {
    let kb = 1024;
    // A query rounds the sum, a batch each item: 1.5 KB and 6.5 KB are 12 KB there.
    assert_eq!(read_units(41_779, Consistency::Strong), 11.0, "40.8 KB is 44 KB");
    assert_eq!(read_units(1_500 * 64, Consistency::Strong), 24.0, "96 KB");
    assert_eq!(
        read_units(3 * kb / 2, Consistency::Strong) + read_units(13 * kb / 2, Consistency::Strong),
        3.0
    );
    assert_eq!(read_units(20 * kb, Consistency::Strong), 5.0);
    assert_eq!(read_units(1, Consistency::Eventual), 0.5);
    assert_eq!(write_units(300 * kb, 310 * kb), 310.0);
    assert_eq!(write_units(0, 500) + write_units(0, 3_584), 5.0, "500 B and 3.5 KB in a batch");
}

#[test]
fn s15_an_item_of_23_bytes() {
    let item =
        heatsink_dynamo::value::read_item(br#"{"shirt-color":{"S":"R"},"shirt-size":{"S":"M"}}"#).unwrap();
    assert_eq!(heatsink_dynamo::size::item_size(&item), 23);
}

#[test]
fn what_was_split_is_saved_and_restored() {
    let (mut tables, id) = on_demand(3);
    tables.set_indexes(0, "table", &[("i".into(), Mode::ON_DEMAND)]);
    let revision = tables.revision();
    load(&mut tables, 0, 1_200, 2_000, |nth| {
        write(id, KeyRange::At(KeyPosition::new(7, SortKey::ordinal(shuffled(nth)))))
    });
    assert_ne!(tables.revision(), revision);
    let saved = tables.save("table").unwrap();
    let (mut other, _) = on_demand(3);
    other.set_indexes(0, "table", &[("i".into(), Mode::ON_DEMAND)]);
    assert_eq!(other.restore(0, "table", &saved), Ok(()));
    assert_eq!(other.save("table").unwrap(), saved);
    let ranges = |tables: &mut Tables| -> Vec<(u64, KeyPosition)> {
        let shown = tables.snapshot(1_200 * SECOND, "table").unwrap().remove(0);
        shown.partitions.iter().map(|one| (one.id, one.from)).collect()
    };
    let (kept, restored) = (ranges(&mut tables), ranges(&mut other));
    assert!(kept.len() > 4 && kept.iter().any(|(_, from)| from.position == 7 && from.sort > SortKey::MIN));
    assert_eq!(kept, restored);
}
