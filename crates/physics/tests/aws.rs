//! AWS's own experiments (docs/explain/partitions.md#tested-against): one loader, a table of IP
//! ranges, partition keys chosen well and badly.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use crate::support::{SECOND, eventual, mean, on_demand, shuffled, splits, steady, strong, write};
use heatsink_physics::{Demand, KeyPosition, KeyRange, Mode, Rules, SortKey, Tables, position};

/// About as many as AWS's rates imply.
const ITEMS: u64 = 360_000;
/// First octets of addresses.
const OCTETS: u64 = 220;

/// The loader is one loop: it sends item after item, 10,000 a second at best, and each again until
/// it is taken. Items admitted in each second.
fn loader(tables: &mut Tables, items: impl Iterator<Item = Demand>, limit: u64) -> Vec<u64> {
    let mut seconds = Vec::new();
    let mut attempt = 0;
    for item in items {
        loop {
            let now = attempt * (SECOND / 10_000);
            attempt += 1;
            let second = usize::try_from(now / SECOND).unwrap();
            if second as u64 >= limit {
                return seconds;
            }
            seconds.resize(second + 1, 0);
            if tables.offer(now, &[item]).is_ok() {
                seconds[second] += 1;
                break;
            }
        }
    }
    seconds
}

/// First octets in the order of the file: runs of 600 to 2,700 ranges.
fn sequential() -> Vec<u64> {
    let run =
        |octet: u64| std::iter::repeat_n(octet, usize::try_from(600 + shuffled(octet) % 2_100).unwrap());
    (0..OCTETS).flat_map(run).take(usize::try_from(ITEMS).unwrap()).collect()
}

fn shuffled_file() -> Vec<u64> {
    let mut octets = sequential();
    for nth in (1..octets.len()).rev() {
        octets.swap(nth, usize::try_from(shuffled(nth as u64) % (nth as u64 + 1)).unwrap());
    }
    octets
}

fn octet(nth: u64, octet: u64) -> KeyRange {
    KeyRange::At(KeyPosition::new(position(octet.to_string().as_bytes()), SortKey::ordinal(nth)))
}

#[test]
fn b1_one_partition_key_takes_a_flat_thousand_writes() {
    let (mut tables, id) = on_demand(0);
    let items = (0..ITEMS)
        .map(|nth| write(id, KeyRange::At(KeyPosition::new(position(b"ip"), SortKey::ordinal(nth)))));
    let admitted = loader(&mut tables, items, 3_600);
    assert!((353..=367).contains(&admitted.len()), "{} seconds", admitted.len());
    assert!(admitted[1..admitted.len() - 1].iter().all(|rate| (980..=1_020).contains(rate)), "{admitted:?}");
    assert!(splits(&tables.take_events()).is_empty(), "its sort keys only rise");
}

#[test]
fn b2_a_file_in_order_rolls_over_the_partitions() {
    let (mut tables, id) = on_demand(0);
    let items = sequential().into_iter().enumerate().map(|(nth, key)| write(id, octet(nth as u64, key)));
    let rate = mean(&loader(&mut tables, items, 3_600));
    assert!((1_000.0..=1_500.0).contains(&rate), "{rate}");
}

#[test]
fn b3_a_shuffled_file_uses_all_four_partitions() {
    let (mut tables, id) = on_demand(0);
    let items = shuffled_file().into_iter().enumerate().map(|(nth, key)| write(id, octet(nth as u64, key)));
    let admitted = loader(&mut tables, items, 3_600);
    assert!(admitted.len() < 120, "{} seconds", admitted.len());
    let minute = mean(&admitted[20..80]);
    assert!((3_400.0..=4_000.0).contains(&minute), "{minute}");
}

#[test]
fn b4_provisioned_with_10_000_units_takes_less_than_a_minute() {
    let mut tables = Tables::new(Rules::default());
    let id = tables.create(0, "table".into(), Mode::Provisioned { read: 1, write: 10_000 });
    assert!(tables.snapshot(0, "table").unwrap()[0].partitions.len() >= 10);
    let items = shuffled_file().into_iter().enumerate().map(|(nth, key)| write(id, octet(nth as u64, key)));
    let admitted = loader(&mut tables, items, 3_600);
    let total: u64 = admitted.iter().sum();
    assert!(admitted.len() <= 60 && total / 60 >= 6_000, "{total} in {} s", admitted.len());
}

#[test]
fn b5_one_partition_answers_9_000_eventually_consistent_queries_or_3_000_strong_ones() {
    let place = KeyRange::key(position(b"ip"));
    for (rate, per_query, query) in
        [(9_000, 0.5, eventual as fn(_, _) -> _), (3_000, 1.0, strong as fn(_, _) -> _)]
    {
        let (mut tables, id) = on_demand(0);
        steady(&mut tables, 0, 5, 30_000, &[query(id, place)]);
        let tally = steady(&mut tables, 5 * SECOND, 300, 30_000, &[query(id, place)]);
        let admitted = tally.admitted / 300;
        assert!((rate * 99 / 100..=rate * 101 / 100).contains(&admitted), "{admitted} of {rate}");
        let units = tables.snapshot(305 * SECOND, "table").unwrap().remove(0);
        let hottest = units.partitions.iter().map(|one| one.reads_per_second).fold(0.0, f64::max);
        assert!((hottest - rate as f64 * per_query).abs() < 50.0, "{hottest} read units/s");
    }
}
