//! The counts that are recommended, what they cost, and why.

use super::*;

fn asked(peak: f64, partitions: u32) -> Asked {
    Asked {
        writes: peak,
        peak,
        reads: 0.0,
        item_bytes: 400,
        page: 100,
        partitions: Some(partitions),
        risk: 0.01,
    }
}

fn risk(peak: f64, partitions: u32, shards: u16) -> f64 {
    row(&asked(peak, partitions), 1.0, partitions, shards).risk
}

#[test]
fn the_figures_of_the_design_hold() {
    let ten = risk(5000.0, 60, 10);
    assert!((0.54..0.56).contains(&ten), "{ten}");
    let thirty = risk(7000.0, 60, 30);
    assert!((0.007..0.009).contains(&thirty), "{thirty}");
}

#[test]
fn the_recommended_count_is_the_smallest_within_the_risk() {
    let advice = advise(asked(7000.0, 60));
    let found = advice.recommended.unwrap();
    assert!(found.risk <= 0.01);
    assert!((1..found.shards).all(|fewer| risk(7000.0, 60, fewer) > 0.01));
    assert_eq!((advice.simple.shards, advice.simple_with_headroom.shards), (7, 9));
    assert!(advice.simple.risk > 0.99, "seven shards of 1,000/s each are all full");
}

proptest::proptest! {
    /// The bound that spares most of the counting changes no answer.
    #[test]
    fn it_is_the_smallest_whatever_is_asked(peak in 100.0..15_000.0, reads in 0.0..900.0, partitions in 4_u32..90) {
        let asked = Asked { reads, risk: 0.05, ..asked(peak, partitions) };
        let every = (1..=60).map(|shards| row(&asked, 1.0, partitions, shards)).find(|row| row.risk <= asked.risk);
        let found = advise(asked).recommended.filter(|row| row.shards <= 60);
        proptest::prop_assert_eq!(found, every);
    }
}

#[test]
fn large_items_count_by_the_kilobyte() {
    let small = advise(asked(900.0, 60));
    assert_eq!(small.recommended.unwrap().shards, 1, "900 units/s need no sharding");
    let large = advise(Asked { item_bytes: 1500, ..asked(900.0, 60) });
    assert_eq!(large.units_per_write, 2.0);
    assert!(large.recommended.unwrap().shards > 2);
}

#[test]
fn reads_cost_what_the_gather_asks_for() {
    let costs = row(&asked(5000.0, 60), 1.0, 60, 10).costs;
    // Ten shares of 19 items of 400 bytes, two steps each; one Query of 100 is ten steps.
    assert_eq!((costs.page, costs.page_unsharded, costs.counter), (10.0, 5.0, 5.0));
}

#[test]
fn a_key_that_nothing_helps_gets_no_number() {
    assert!(advise(asked(2_000_000.0, 4)).recommended.is_none());
}

#[test]
fn shares_that_fill_a_partition_exactly_fill_it() {
    // 3 × 5,000 / 15 is 1,000, though 1,000 / (5,000 / 15) is above 3 in floating point.
    assert_eq!(row(&asked(5_000.0, 60), 1.0, 60, 15).too_many_together, 3);
    for shards in 1..=1_000 {
        assert_eq!(
            row(&asked(f64::from(shards) * 250.0, 60), 1.0, 60, shards).too_many_together,
            4,
            "{shards}"
        );
    }
}

#[test]
fn the_cause_is_what_binds() {
    let reading = |writes: f64, reads: f64| advise(Asked { reads, ..asked(writes, 600) });
    assert_eq!(advise(asked(900.0, 60)).cause, Cause::OnePartition);
    assert_eq!(advise(asked(7_000.0, 60)).cause, Cause::Writes);
    // 2,000 pages of five units a second are more than the 3,000 that a partition takes; 500 writes
    // are not.
    let read = reading(500.0, 2_000.0);
    assert_eq!(read.cause, Cause::Reads);
    assert!(read.recommended.unwrap().costs.page_per_shard < 3_000.0);
    assert_eq!(reading(5_000.0, 10.0).cause, Cause::Writes);
    assert_eq!(reading(500.0, 10_000.0).cause, Cause::EveryRead);
    assert_eq!(advise(asked(20_000.0, 4)).cause, Cause::TableTooSmall);
    assert_eq!(advise(asked(2_000_000.0, 5_000)).cause, Cause::MostShards);
    assert_eq!(advise(Asked { risk: 1e-12, ..asked(3_900.0, 4) }).cause, Cause::Risk);
}
