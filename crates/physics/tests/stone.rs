//! A. Stone's load tests on one partition key with random sort keys
//! (docs/explain/partitions.md#tested-against): the shapes, not the minutes. An on-demand table;
//! reads are strongly consistent; split for heat is what is seen.

use crate::support::{MINUTE, SECOND, mean, on_demand, shuffled, splits, strong, write};
use heatsink_physics::{Demand, KeyPosition, KeyRange, ResourceId, SortKey, Tables, position};

/// Of all seeds a few: what is claimed holds for each.
const SEEDS: std::ops::Range<u64> = 1..3;

/// One of a great many items under `key`.
fn item(key: &str, nth: u64) -> KeyRange {
    KeyRange::At(KeyPosition::new(position(key.as_bytes()), SortKey::ordinal(shuffled(nth))))
}

/// Writes and reads side by side for a while, each at its own rate; what was admitted of both in
/// each second.
fn both(
    tables: &mut Tables,
    id: ResourceId,
    key: &str,
    from: u64,
    seconds: u64,
    rates: impl Fn(u64) -> (u64, u64),
) -> (Vec<u64>, Vec<u64>) {
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for second in 0..seconds {
        let (write_rate, read_rate) = rates(second);
        let (mut written, mut read) = (0, 0);
        let steps = write_rate.max(read_rate);
        for nth in 0..steps {
            let now = from + second * SECOND + nth * SECOND / steps;
            let number = second * steps + nth;
            let mut offer = |demand: Demand| u64::from(tables.offer(now, &[demand]).is_ok());
            // Evenly among the steps.
            if (nth + 1) * write_rate / steps > nth * write_rate / steps {
                written += offer(write(id, item(key, number)));
            }
            if (nth + 1) * read_rate / steps > nth * read_rate / steps {
                read += offer(strong(id, item(key, number ^ 1)));
            }
        }
        writes.push(written);
        reads.push(read);
    }
    (writes, reads)
}

fn total(admitted: &[u64]) -> u64 {
    admitted.iter().sum()
}

/// S1, the start of S2 to S4: 900 writes/s for ten minutes.
fn populated(seed: u64) -> (Tables, ResourceId, u64) {
    let (mut tables, id) = on_demand(seed);
    let (writes, _) = both(&mut tables, id, "UltimatePK", 0, 600, |_| (900, 0));
    assert_eq!(total(&writes), 540_000, "S1: no throttle");
    (tables, id, 600 * SECOND)
}

#[test]
fn s1_populating_at_900_writes_splits_once() {
    for seed in SEEDS {
        let (mut tables, _, _) = populated(seed);
        let splits = splits(&tables.take_events());
        assert_eq!(splits.len(), 1, "{splits:?}");
        assert!((3 * MINUTE..=10 * MINUTE).contains(&splits[0]), "{splits:?}");
    }
}

#[test]
fn s2_6_000_reads_are_reached_with_few_throttles() {
    for seed in SEEDS {
        let (mut tables, id, from) = populated(seed);
        let (_, reads) = both(&mut tables, id, "UltimatePK", from, 600, |_| (0, 6_000));
        let throttled = 1.0 - total(&reads) as f64 / 3.6e6;
        assert!(throttled < 0.05, "{throttled}");
    }
}

/// S3 and, on the same table, S4.
#[test]
fn s3_s4_a_plateau_at_6_000_reads_then_9_000_then_the_tables_own_limit() {
    for seed in SEEDS {
        let (mut tables, id, from) = populated(seed);
        let (_, reads) = both(&mut tables, id, "UltimatePK", from, 600, |_| (0, 9_900));
        let plateau = mean(&reads[2..300]);
        assert!((5_850.0..=6_050.0).contains(&plateau), "{plateau}");
        let end = mean(&reads[560..]);
        assert!(end >= 9_000.0, "{end}");
        // The first second has the partitions' bursts.
        let after = 2 + reads[2..].iter().position(|rate| *rate >= 6_500).unwrap();
        assert!((300..=540).contains(&after), "the first split after {after} s");

        let (_, reads) = both(&mut tables, id, "UltimatePK", from + 15 * MINUTE, 600, |_| (0, 12_600));
        assert!(mean(&reads[60..]) > 11_000.0, "{}", mean(&reads[60..]));
        assert!(
            reads[60..].iter().all(|rate| *rate <= 12_010),
            "12,000 is what a new on-demand table serves"
        );
    }
}

#[test]
fn s5_a_new_key_far_over_its_ceilings_is_heavily_throttled() {
    for seed in SEEDS {
        let (mut tables, id) = on_demand(seed);
        let (writes, reads) = both(&mut tables, id, "new", 0, 600, |_| (2_500, 6_000));
        assert!(mean(&writes[2..300]) < 1_010.0 && mean(&reads[2..300]) < 3_010.0);
        assert!(mean(&writes[540..]) > 1_500.0, "a split has helped: {}", mean(&writes[540..]));
    }
}

/// S6, then S7 on the same key.
#[test]
fn s6_s7_what_a_ramp_has_split_stays_split() {
    for seed in SEEDS {
        let (mut tables, id) = on_demand(seed);
        let ramp = |second: u64| {
            let factor = 1.15f64.powf((second / 60) as f64);
            #[allow(clippy::cast_possible_truncation, reason = "a rate, rounded down")]
            let rates = ((100.0 * factor) as u64, (300.0 * factor) as u64);
            rates
        };
        let (writes, _) = both(&mut tables, id, "ramp", 0, 1_200, ramp);
        let last = ramp(1_199).0;
        assert!((1_385..1_500).contains(&last), "{last}");
        assert!(mean(&writes[1_140..]) > 1_000.0, "more than one partition's");
        // The tests were started by hand, one after another: splits under way come to their end.
        let (writes, reads) = both(&mut tables, id, "ramp", 30 * MINUTE, 600, |_| (2_000, 6_000));
        assert_eq!((total(&writes), total(&reads)), (1_200_000, 3_600_000), "S7: no throttle");
    }
}

#[test]
fn s8_plateaus_change_at_random_times() {
    let mut firsts = Vec::new();
    for seed in SEEDS {
        let (mut tables, id) = on_demand(seed);
        let (writes, _) = both(&mut tables, id, "fresh", 0, 1_200, |_| (2_000, 6_000));
        assert!(mean(&writes[2..300]) < 1_010.0);
        assert!(mean(&writes[1_140..]) > 1_980.0, "{}", mean(&writes[1_140..]));
        firsts.push(splits(&tables.take_events())[0]);
    }
    firsts.sort_unstable();
    firsts.dedup();
    assert!(firsts.len() > 1, "each run at its own time");
}

#[test]
fn s9_each_split_adds_a_thousand_writes() {
    for seed in SEEDS {
        let (mut tables, id) = on_demand(seed);
        // The table's own limit of 4,000 is out of the way.
        tables.warm_up(0, id, 12_000, 8_000);
        let (writes, _) = both(&mut tables, id, "hot", 0, 2_400, |_| (5_000, 0));
        let splits: Vec<usize> =
            splits(&tables.take_events()).iter().map(|at| usize::try_from(at / SECOND).unwrap()).collect();
        assert!((4 * 60..10 * 60).contains(&splits[0]), "{splits:?}");
        assert!((990.0..=1_010.0).contains(&mean(&writes[2..splits[0]])));
        // Between two changes that are far enough apart to see a plateau.
        let mut steps = 0;
        for (nth, two) in splits.windows(2).enumerate() {
            let partitions = nth as f64 + 2.0;
            if two[1] - two[0] > 10 && partitions <= 4.0 {
                let plateau = mean(&writes[two[0] + 3..two[1] - 1]);
                assert!(
                    (plateau - 1_000.0 * partitions).abs() < 60.0,
                    "{plateau} on {partitions} partitions"
                );
                steps += 1;
            }
        }
        assert!(steps >= 1, "{splits:?}");
        assert!(mean(&writes[2_300..]) > 4_900.0);
    }
}
