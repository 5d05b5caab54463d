//! The two gates: what the documentation says they let through, and that nothing ever gets more.

use crate::support::{self, SECOND};
use heatsink_physics::{Access, Cause, Demand, KeyRange, Mode, Tables, Units, position};
use proptest::prelude::*;

/// On the only table of [`table`].
fn demand(access: Access, place: KeyRange, units: Units) -> Demand {
    Demand { on: support::first_id(), access, place, units }
}

fn table(mode: Mode) -> Tables {
    let mut tables = Tables::default();
    assert_eq!(tables.create(0, "t".into(), mode), support::first_id());
    tables
}

const fn at(position: u64) -> KeyRange {
    KeyRange::key(position)
}

/// Sends `rate` requests per second of `units` each for `seconds`; how many were admitted.
fn offer(tables: &mut Tables, from: u64, seconds: u64, rate: u64, demand: &Demand) -> u64 {
    let times = (0..seconds * rate).map(|nth| from * SECOND + nth * SECOND / rate);
    times.filter(|now| tables.admit(*now, std::slice::from_ref(demand)).is_ok()).count() as u64
}

#[test]
fn six_hundred_strong_reads_of_a_20_kb_item() {
    // docs/explain/partitions.md#two-gates: 20 KB is 5 units, so 600 reads a second are 3,000
    // units.
    let read = demand(Access::Strong, at(7), Units::whole(5));
    assert_eq!(offer(&mut table(Mode::ON_DEMAND), 0, 20, 600, &read), 12_000);
    let admitted = offer(&mut table(Mode::ON_DEMAND), 0, 20, 1_200, &read);
    assert!((12_000..=12_301).contains(&admitted), "{admitted}");
}

#[test]
fn four_hundred_units_over_four_partitions() {
    // docs/explain/partitions.md#two-gates: three partitions at 50/s and one at 150/s, 300 of the
    // table's 400. Instant adaptive capacity: no throttle.
    let mut tables = table(Mode::ON_DEMAND);
    tables.update(0, support::first_id(), Mode::Provisioned { read: 400, write: 400 });
    let partitions = &tables.snapshot(0, "t").unwrap()[0].partitions;
    let firsts: Vec<u64> = partitions.iter().map(|partition| partition.first).collect();
    assert_eq!(firsts.len(), 4, "a table keeps its partitions");
    for tick in 0..600 * 50 {
        let now = tick * SECOND / 50;
        for (partition, writes) in [(0, 1), (1, 1), (2, 1), (3, 3)] {
            for _ in 0..writes {
                let write = demand(Access::Write, at(firsts[partition]), Units::ONE);
                assert_eq!(tables.admit(now, &[write]), Ok(()), "at {now}");
            }
        }
    }
}

#[test]
fn credit_of_300_seconds_and_no_more() {
    let mut tables = table(Mode::Provisioned { read: 1, write: 10 });
    let write = demand(Access::Write, at(0), Units::ONE);
    // A new table has left nothing unused: one second's worth, then its rate.
    assert!((10..=21).contains(&offer(&mut tables, 0, 1, 1_000, &write)));
    // After a long rest it has 3,000 units, which the partition lets out at no more than 1,000 a
    // second (+ its own half second).
    let admitted = offer(&mut tables, 10_000, 1, 5_000, &write);
    assert!((1_499..=1_501).contains(&admitted), "{admitted}");
    let admitted = offer(&mut tables, 10_001, 10, 5_000, &write);
    assert!((1_500..=1_611).contains(&admitted), "{admitted}");
    let refused = tables.admit(10_011 * SECOND, &[write, write]).unwrap_err();
    assert!(refused.iter().all(|throttle| throttle.reason() == "TableWriteProvisionedThroughputExceeded"));
    assert_eq!(refused.iter().map(|throttle| throttle.demand).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn reads_and_writes_do_not_touch_each_other() {
    let mut tables = table(Mode::ON_DEMAND);
    let write = demand(Access::Write, at(1), Units::whole(5_000));
    let read = demand(Access::Strong, at(1), Units::whole(5_000));
    assert_eq!(tables.admit(0, std::slice::from_ref(&write)), Ok(()));
    assert_eq!(tables.admit(0, &[write]).unwrap_err()[0].reason(), "TableWriteKeyRangeThroughputExceeded");
    assert_eq!(tables.admit(0, std::slice::from_ref(&read)), Ok(()));
    assert_eq!(tables.admit(0, &[read]).unwrap_err()[0].reason(), "TableReadKeyRangeThroughputExceeded");
}

#[test]
fn an_on_demand_table_has_what_it_grew_to_its_quota_or_its_maximum() {
    let many = demand(Access::Write, KeyRange::Unknown, Units::whole(100));
    let mut new = table(Mode::ON_DEMAND);
    let admitted = offer(&mut new, 0, 10, 1_000, &many);
    assert!((440..=441).contains(&admitted), "{admitted}");
    assert_eq!(new.admit(10 * SECOND - 1, &[many]).unwrap_err()[0].cause, Cause::Scaling);

    let mut warm = table(Mode::ON_DEMAND);
    warm.warm_up(0, support::first_id(), 0, 100_000);
    assert_eq!(warm.snapshot(0, "t").unwrap()[0].partitions.len(), 100);
    let admitted = offer(&mut warm, 0, 10, 1_000, &many);
    assert!((4_000..=4_401).contains(&admitted), "{admitted}");
    let refused = warm.admit(10 * SECOND - 1, &[many]).unwrap_err();
    assert_eq!(refused[0].reason(), "TableWriteAccountLimitExceeded");

    let mut limited = table(Mode::OnDemand { max_read: None, max_write: Some(100) });
    assert_eq!(offer(&mut limited, 0, 1, 1, &many), 1);
    assert_eq!(limited.admit(0, &[many]).unwrap_err()[0].reason(), "TableWriteMaxOnDemandThroughputExceeded");
    let read = demand(Access::Strong, KeyRange::Unknown, Units::whole(40_000));
    assert_eq!(limited.admit(0, &[read]), Ok(()));
    let refused = limited.admit(0, &[read]).unwrap_err();
    assert_eq!(
        (refused[0].cause, refused[0].reason().as_str()),
        (Cause::Scaling, "TableReadKeyRangeThroughputExceeded")
    );
}

#[test]
fn live_rates_per_partition() {
    let mut tables = table(Mode::ON_DEMAND);
    let position = position(b"game_x");
    let place = at(position);
    for millisecond in 0..5_000 {
        let _ = tables.admit(millisecond * 1_000_000, &vec![demand(Access::Write, place, Units::ONE); 5]);
        let _ =
            tables.admit(millisecond * 1_000_000, &[demand(Access::Strong, KeyRange::All, Units::whole(2))]);
    }
    let shown = tables.snapshot(5 * SECOND, "t").unwrap().remove(0);
    assert_eq!(shown.partitions.iter().map(|partition| partition.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(shown.partitions[3].last, u64::MAX);
    let hot = shown.partitions.iter().find(|one| (one.first..=one.last).contains(&position)).unwrap();
    assert!((995.0..=1_005.0).contains(&hot.writes_per_second), "{hot:?}");
    assert!(hot.throttles_per_second > 3_000);
    assert!(shown.partitions.iter().all(|one| (499.0..=501.0).contains(&one.reads_per_second)), "{shown:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is asked, and however late the real cost comes: each partition gives at most its
    /// ceiling over the time, half a second's burst, and what the requests in flight cost beyond
    /// what they had paid.
    #[test]
    fn never_more_than_the_ceilings(
        trace in prop::collection::vec((0u64..400_000_000, 0u64..4, any::<bool>(), 1u64..800, 0u64..1_200), 1..400),
        in_flight in 0usize..5,
        provisioned in prop::option::of((1u64..5_000, 1u64..5_000)),
    ) {
        let mode = provisioned.map_or(Mode::ON_DEMAND, |(read, write)| Mode::Provisioned { read, write });
        let mut tables = table(Mode::ON_DEMAND);
        tables.update(0, support::first_id(), mode);
        let mut now = 0;
        let mut flying = std::collections::VecDeque::new();
        let mut spent = [[0u64; 2]; 4];
        let overshoot = 1_200 * (in_flight as u64 + 1);
        for (wait, partition, write, bound, real) in trace {
            now += wait;
            let access = if write { Access::Write } else { Access::Strong };
            let one = demand(access, at(partition << 62), Units::whole(bound));
            if tables.admit(now, std::slice::from_ref(&one)).is_ok() {
                flying.push_back((one, partition, real.max(bound)));
            }
            while flying.len() > in_flight {
                let Some((one, partition, real)) = flying.pop_front() else { break };
                tables.debit(now, &one, Units::whole(real));
                spent[usize::try_from(partition).unwrap()][usize::from(one.access == Access::Write)] += real;
            }
            for partition in spent {
                for (spent, ceiling) in partition.into_iter().zip([3_000u64, 1_000]) {
                    let allowed = u128::from(ceiling) * u128::from(now) / u128::from(SECOND) + u128::from(ceiling / 2 + overshoot);
                    prop_assert!(u128::from(spent) <= allowed, "{spent} > {allowed} at {now}");
                }
            }
            if let Some((read, write)) = provisioned {
                for (side, rate) in [(0, read), (1, write)] {
                    let spent: u64 = spent.iter().map(|partition| partition[side]).sum();
                    // The bucket held the on-demand quota's second when the mode changed: up to 300
                    // s of the new rate.
                    let start = (300 * rate).min(40_000);
                    let allowed = u128::from(rate) * u128::from(now) / u128::from(SECOND) + u128::from(start + overshoot);
                    prop_assert!(u128::from(spent) <= allowed, "{spent} > {allowed} at {now}");
                }
            }
        }
    }

    /// Refunds never mint tokens: what is refused as invalid costs nothing, and nothing is gained
    /// by it.
    #[test]
    fn a_refund_is_no_gain(refused in 0u64..100, rate in 1u64..2_000) {
        let mut tables = table(Mode::Provisioned { read: 1, write: rate });
        let write = demand(Access::Write, at(0), Units::ONE);
        for _ in 0..refused {
            let invalid = demand(Access::Write, at(0), Units::whole(400));
            if tables.admit(0, std::slice::from_ref(&invalid)).is_ok() {
                tables.debit(0, &invalid, Units::ZERO);
            }
        }
        let admitted = (0..3_000).filter(|_| tables.admit(0, std::slice::from_ref(&write)).is_ok()).count() as u64;
        prop_assert_eq!(admitted, rate.min(500));
    }

    /// Every position lies in exactly one partition's range.
    #[test]
    fn ranges_cover_the_line(write in 1u64..40_000, position in any::<u64>()) {
        let mut tables = table(Mode::Provisioned { read: 1, write });
        let partitions = tables.snapshot(0, "t").unwrap().remove(0).partitions;
        prop_assert_eq!(partitions[0].first, 0);
        prop_assert_eq!(partitions.iter().filter(|one| (one.first..=one.last).contains(&position)).count(), 1);
        tables.admit(0, &[demand(Access::Write, at(position), Units::ONE)]).unwrap();
        let after = tables.snapshot(0, "t").unwrap().remove(0).partitions;
        let hit: Vec<_> = after.iter().filter(|one| one.writes > 0.0).collect();
        prop_assert_eq!(hit.len(), 1);
        prop_assert!((hit[0].first..=hit[0].last).contains(&position));
    }
}
