//! What is advised for keys that burn, that DynamoDB heals, and that no shards help; and the bounds
//! of it for any key.

use proptest::prelude::*;

use super::*;

/// 5,000 scores a second on one leaderboard, with growing sort keys or not.
fn viral() -> Observed {
    Observed {
        writes: 5_000.0,
        peak_writes: 5_200.0,
        queries: 20.0,
        page: 100,
        reads: 90.0,
        throttled: 0.78,
        item_bytes: 300,
        shards: 1,
        sort_key: true,
        partitions: Some(60),
        ..Observed::default()
    }
}

#[test]
fn a_viral_key_is_sharded_as_the_command_recommends() {
    let seen = Observed { growing: 1.0, ..viral() };
    let diagnosis = diagnose(&seen);
    let recommended = advise(seen.as_asked()).recommended.map(|row| row.shards);
    assert_eq!(diagnosis.action, Action::Shard { shards: recommended.unwrap() });
    assert_eq!(diagnosis.split, Split::GrowingSortKey);
    assert!(diagnosis.dollars_more_a_day.unwrap() > 0.0);
    assert!(diagnosis.sentence.contains("5200 write units"), "{}", diagnosis.sentence);
}

#[test]
fn what_dynamodb_splits_by_itself_is_waited_for() {
    let diagnosis = diagnose(&viral());
    assert!(matches!(diagnosis.action, Action::Wait { shards } if shards > 5), "{diagnosis:?}");
    assert_eq!(diagnosis.split, Split::InMinutes);
    let local = diagnose(&Observed { local_index: true, ..viral() });
    assert_eq!((local.split, matches!(local.action, Action::Shard { .. })), (Split::LocalIndex, true));
}

#[test]
fn one_item_is_never_sharded() {
    for seen in [Observed { one_item: 0.8, ..viral() }, Observed { sort_key: false, ..viral() }] {
        assert_eq!(diagnose(&seen).action, Action::ChangeItem);
    }
}

#[test]
fn a_page_that_is_read_again_and_again_is_cached() {
    let seen = Observed {
        writes: 10.0,
        peak_writes: 10.0,
        reads: 2_900.0,
        queries: 644.0,
        same_page: 0.9,
        throttled: 0.0,
        ..viral()
    };
    let diagnosis = diagnose(&seen);
    assert_eq!((diagnosis.action, diagnosis.setting), (Action::Cache, Some("cache_max_age_ms = 100")));
    assert!(
        diagnosis.sentence.contains("at most ten times a second, for 40 units"),
        "{}",
        diagnosis.sentence
    );
}

#[test]
fn writes_of_one_item_are_combined_and_its_reads_cached() {
    let written = diagnose(&Observed { one_item: 0.8, ..viral() });
    assert_eq!((written.action, written.setting), (Action::ChangeItem, Some("combine = true")));
    assert!(written.sentence.contains("`combine = true` in its rule"), "{}", written.sentence);
    let read = diagnose(&Observed {
        sort_key: false,
        reads: 9_000.0,
        gets: 9_000.0,
        writes: 1.0,
        peak_writes: 1.0,
        ..viral()
    });
    assert_eq!((read.action, read.setting), (Action::ChangeItem, Some("cache_max_age_ms = 100")));
}

#[test]
fn a_key_that_is_read_in_pages_gets_ranges_for_no_more_units() {
    let seen = Observed { divides: true, ..viral() };
    let (ranges, hash) = (diagnose(&seen), diagnose(&viral()));
    assert_eq!((ranges.strategy, hash.strategy), (Some(Spread::Range), Some(Spread::Calculated)));
    assert_eq!((ranges.shards(), ranges.dollars_more_a_day), (hash.shards(), Some(0.0)));
    assert!(ranges.sentence.contains("ranges of its sort key keep"), "{}", ranges.sentence);
    assert!(
        ranges
            .sentence
            .ends_with("a page of 100 items is of one of them, and costs 4.0 read units, as of a whole key")
    );
}

#[test]
fn a_key_with_enough_shards_is_left_although_it_is_throttled() {
    let seen = Observed { shards: 40, growing: 1.0, throttled: 0.05, ..viral() };
    let diagnosis = diagnose(&seen);
    assert_eq!(diagnosis.action, Action::Leave, "{}", diagnosis.sentence);
}

#[test]
fn a_table_with_too_few_partitions_is_taken_to_grow() {
    let shards = |partitions| diagnose(&Observed { growing: 1.0, partitions, ..viral() }).shards().unwrap();
    assert_eq!(shards(Some(4)), shards(None));
    assert!(shards(Some(60)) < shards(None));
}

#[test]
fn a_key_that_no_shard_count_carries_is_said() {
    let seen = Observed { growing: 1.0, writes: 2_000_000.0, ..viral() };
    assert_eq!(diagnose(&seen).action, Action::SeveralKeys);
}

proptest! {
    /// Advice is for keys that need it, never fewer shards than there are, and never beyond what a
    /// rule takes.
    #[test]
    fn advice_holds_its_bounds(
        writes in 0.0..20_000.0f64, over in 1.0..2.0f64, reads in 0.0..9_000.0f64, queries in 0.0..500.0f64,
        throttled in 0.0..1.0f64, item_bytes in 0..500_000u32, growing in 0.0..=1.0f64, one_item in 0.0..=1.0f64,
        same_page in 0.0..=1.0f64, (shards, error) in (0..1_000u16, prop_oneof![Just(0.0), 0.0..1.2f64]), sort_key: bool, local_index: bool, partitions in proptest::option::of(1..500u32),
    ) {
        let seen = Observed {
            writes, peak_writes: writes * over, reads, write_error: writes * error, read_error: reads * error, queries, page: 100, throttled, item_bytes, growing, one_item, same_page, shards, sort_key,
            local_index, items: None, partitions, ..Observed::default()
        };
        let diagnosis = diagnose(&seen);
        if let Some(wanted) = diagnosis.shards() {
            prop_assert!(wanted > shards.max(1) && wanted <= 1_000);
            prop_assert!(seen.is_hot() && sort_key && one_item < 0.5);
            prop_assert!(diagnosis.risk.is_some_and(|risk| risk <= DEFAULT_RISK));
        }
        let exact = Observed { write_error: 0.0, read_error: 0.0, ..seen };
        prop_assert!(!seen.is_hot() || exact.is_hot());
        if !seen.is_hot() {
            prop_assert_eq!(diagnosis.action, Action::Leave);
        }
        prop_assert!(!diagnosis.sentence.contains("NaN") && !diagnosis.sentence.contains("inf"));
    }
}
