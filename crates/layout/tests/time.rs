//! Buckets of time: the calendar, what a sort key says, and the codec with buckets.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

use heatsink_layout::codec::{bucket_decode, bucket_suffix, suffix};
use heatsink_layout::{
    Bucket, By, Epoch, Granularity, Hash, Layout, Slot, SortKey, Span, Strategy as Spread, Time, Unplaced,
};
use proptest::prelude::*;

const ALL: [Granularity; 3] = [Granularity::Hour, Granularity::Day, Granularity::Month];

fn time(granularity: Granularity, prefix: &str, epoch: Epoch) -> Time {
    Time { granularity, prefix: prefix.into(), epoch }
}

/// Computed by Python's `datetime.fromtimestamp(t, timezone.utc).strftime(…)`.
#[test]
fn golden_buckets() {
    for (seconds, [hour, day, month]) in [
        (0, ["1970-01-01T00", "1970-01-01", "1970-01"]),
        (86_399, ["1970-01-01T23", "1970-01-01", "1970-01"]),
        (951_782_400, ["2000-02-29T00", "2000-02-29", "2000-02"]),
        (1_718_000_000, ["2024-06-10T06", "2024-06-10", "2024-06"]),
        (1_782_090_000, ["2026-06-22T01", "2026-06-22", "2026-06"]),
        (4_107_542_399, ["2100-02-28T23", "2100-02-28", "2100-02"]),
        (253_402_300_799, ["9999-12-31T23", "9999-12-31", "9999-12"]),
    ] {
        let written = ALL.map(|granularity| Bucket::at(seconds, granularity).unwrap().to_string());
        assert_eq!(written, [hour, day, month], "{seconds}");
    }
    for outside in [-1, 253_402_300_800] {
        assert_eq!(ALL.map(|granularity| Bucket::at(outside, granularity)), [None; 3]);
    }
}

/// Computed by Python's `datetime.fromtimestamp(t, timezone.utc).isocalendar()`; years that begin
/// and end within a week, and one of 53.
#[test]
fn golden_weeks() {
    for (seconds, date, week) in [
        (0, "1970-01-01", "1970-W01"),
        (951_782_400, "2000-02-29", "2000-W09"),
        (1_230_768_000, "2009-01-01", "2009-W01"),
        (1_609_459_200, "2021-01-01", "2020-W53"),
        (1_718_000_000, "2024-06-10", "2024-W24"),
        (1_735_430_400, "2024-12-29", "2024-W52"),
        (1_735_516_800, "2024-12-30", "2025-W01"),
        (1_782_090_000, "2026-06-22", "2026-W26"),
        (253_402_300_799, "9999-12-31", "9999-W52"),
    ] {
        let bucket = Bucket::at(seconds, Granularity::Week).unwrap();
        assert_eq!(bucket.to_string(), week, "{seconds}");
        assert_eq!(Bucket::read(week.as_bytes(), Granularity::Week, "%G-W%V"), Some(bucket));
        let weekly = time(Granularity::Week, "", Epoch::Seconds);
        assert_eq!(weekly.bucket_of(SortKey::S(&format!("{date}T01:00"))), Some(bucket), "{date}");
    }
    for none in ["2026-W00", "2025-W53", "2020-W54", "2026-W2", "2026-26"] {
        assert_eq!(Bucket::read(none.as_bytes(), Granularity::Week, "%G-W%V"), None, "{none}");
    }
    assert!(Bucket::read(b"2020-W53", Granularity::Week, "%G-W%V").is_some());
    // It lies in a week of the year before 0, which four digits cannot say.
    let weekly = time(Granularity::Week, "", Epoch::Seconds);
    assert_eq!(weekly.bucket_of(SortKey::S("0000-01-01")), None);
    let written = |text: &str| weekly.bucket_of(SortKey::S(text)).map(|bucket| bucket.to_string());
    assert_eq!(written("0000-01-03").as_deref(), Some("0000-W01"));
    assert_eq!(
        weekly.span(Bucket::at(1_782_090_000, Granularity::Week).unwrap(), false),
        Span::Within("2026-06-22".into(), "2026-06-29".into())
    );
}

/// Bounds of a Query can lie past the last bucket, and before the first.
#[test]
fn beyond_the_calendar_buckets_still_sort() {
    for granularity in ALL.into_iter().chain([Granularity::Week]) {
        let last = Bucket::at(253_402_300_799, granularity).unwrap();
        let (text, after) = (time(granularity, "p#", Epoch::Seconds), last.next());
        assert!(after > last && after.to_string() > last.to_string(), "{after}");
        assert_eq!(text.span(last, true), Span::Between(last.start() as u64, 253_402_300_800));
        let before = Bucket::at(0, granularity).unwrap().back(100_000_000);
        assert!(before < last && before.to_string().as_str() < "0" && before.start() < 0, "{before}");
    }
    let weekly = time(Granularity::Week, "p#", Epoch::Seconds);
    let last = Bucket::at(253_402_300_799, Granularity::Week).unwrap();
    assert_eq!(weekly.span(last, false), Span::Within("p#9999-12-27".into(), "p#:".into()));
}

#[test]
fn a_sort_key_begins_with_its_time_or_holds_none() {
    let day = time(Granularity::Day, "", Epoch::Seconds);
    let hour = time(Granularity::Hour, "", Epoch::Seconds);
    let month = time(Granularity::Month, "ALERT#", Epoch::Seconds);
    let bucket = |time: &Time, text| time.bucket_of(SortKey::S(text)).map(|bucket| bucket.to_string());
    assert_eq!(bucket(&day, "2026-06-22T01:00:00Z#agent").as_deref(), Some("2026-06-22"));
    assert_eq!(bucket(&day, "2026-06-22").as_deref(), Some("2026-06-22"));
    assert_eq!(bucket(&day, "0000-02-29").as_deref(), Some("0000-02-29"));
    assert_eq!(bucket(&hour, "2026-06-22T01:00:00Z").as_deref(), Some("2026-06-22T01"));
    assert_eq!(bucket(&month, "ALERT#2026-06-22T01").as_deref(), Some("2026-06"));
    for none in
        ["", "2026-06", "2026-6-22", "2026-06-31", "2026-02-29", "2026-13-01", "x2026-06-22", "20260622"]
    {
        assert_eq!(bucket(&day, none), None, "{none}");
    }
    // A lenient parser of dates takes these.
    for none in
        ["+026-06-22", "-026-06-22", " 026-06-22", "2026- 6-22", "2026-+6-22", "2026-06-22".get(1..).unwrap()]
    {
        assert_eq!(bucket(&day, none), None, "{none}");
    }
    for none in ["2026-06-22", "2026-06-22 01:00", "2026-06-22T24"] {
        assert_eq!(bucket(&hour, none), None, "{none}");
    }
    assert_eq!(bucket(&month, "2026-06-22"), None);
    let number = |epoch, text| {
        time(Granularity::Day, "", epoch).bucket_of(SortKey::N(text)).map(|bucket| bucket.to_string())
    };
    assert_eq!(number(Epoch::Seconds, "1.7820900005e9").as_deref(), Some("2026-06-22"));
    assert_eq!(number(Epoch::Milliseconds, "1782090000123").as_deref(), Some("2026-06-22"));
    for none in ["-1", "-0.5", "1E100", "253402300800"] {
        assert_eq!(number(Epoch::Seconds, none), None, "{none}");
    }
    assert_eq!(day.bucket_of(SortKey::B(b"2026-06-22")), None);
}

#[test]
fn what_holds_no_time_lies_in_shard_0() {
    let time = time(Granularity::Day, "", Epoch::Seconds);
    let strategy = Spread::Bucket { time, by: By::SortKey, earlier: Vec::new() };
    let layout = Layout { strategy, shards: 1000, hash: Hash::JumpXxh3, version: 1 };
    assert_eq!(layout.slot_of(Some(SortKey::S("META"))), Ok::<_, Unplaced>(Slot::default()));
    let slot = layout.slot_of(Some(SortKey::S("2026-06-22#a"))).unwrap();
    assert_eq!(slot.bucket.unwrap().to_string(), "2026-06-22");
    assert_eq!(slot.shard, heatsink_layout::hash::jump_xxh3(b"2026-06-22#a", 1000));
}

#[test]
fn golden_codec() {
    let day = Bucket::read(b"2026-06-22", Granularity::Day, "%Y-%m-%d");
    let month = Bucket::read(b"2026-06", Granularity::Month, "%Y-%m");
    let hour = Bucket::read(b"2026-06-22T01", Granularity::Hour, "%Y-%m-%dT%H");
    let week = Bucket::read(b"2026-W26", Granularity::Week, "%G-W%V");
    for (logical, bucket, shard, physical) in [
        ("OPS_LOG", None, 0, "OPS_LOG"),
        ("OPS_LOG", day, 0, "OPS_LOG#~2026-06-22"),
        ("OPS_LOG", day, 3, "OPS_LOG#~2026-06-22#~3"),
        ("OPS_LOG", month, 0, "OPS_LOG#~2026-06"),
        ("OPS_LOG", hour, 12, "OPS_LOG#~2026-06-22T01#~12"),
        ("OPS_LOG", week, 2, "OPS_LOG#~2026-W26#~2"),
        ("x#~2026-W26", None, 0, "x#~2026-W26#~0"),
        ("x#~2026-06-22", None, 0, "x#~2026-06-22#~0"),
        ("x#~2026-06-22", day, 1, "x#~2026-06-22#~0#~2026-06-22#~1"),
        ("x#~3", day, 0, "x#~3#~0#~2026-06-22"),
        ("x#~2026-06-31", None, 0, "x#~2026-06-31"),
    ] {
        let slot = Slot { bucket, shard };
        assert_eq!(format!("{logical}{}", bucket_suffix(logical.as_bytes(), slot)), physical);
        assert_eq!(bucket_decode(physical.as_bytes()), (logical.len(), slot), "{physical}");
    }
}

fn bucket() -> impl Strategy<Value = Option<Bucket>> {
    let at = (0..253_402_300_800_i64, prop::sample::select(ALL.to_vec()));
    prop::option::of(at.prop_map(|(seconds, granularity)| Bucket::at(seconds, granularity).unwrap()))
}

fn tricky() -> impl Strategy<Value = String> {
    let pieces = ["a", "#~", "0", "3", "#~0", "#~1", "#~2026-06-22", "#~2026-06", "#~2026-06-22T01", "T01"];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn decoding_undoes_encoding(logical in tricky(), bucket in bucket(), shard in any::<u16>()) {
        let slot = Slot { bucket, shard };
        let physical = format!("{logical}{}", bucket_suffix(logical.as_bytes(), slot));
        prop_assert_eq!(bucket_decode(physical.as_bytes()), (logical.len(), slot));
    }

    #[test]
    fn without_buckets_the_codec_is_the_plain_one(logical in "[a#~0-9]{0,8}", shard in any::<u16>()) {
        prop_assert_eq!(
            bucket_suffix(logical.as_bytes(), Slot::shard(shard)),
            suffix(logical.as_bytes(), shard)
        );
    }

    #[test]
    fn any_bytes_decode_to_a_prefix(physical in prop::collection::vec(any::<u8>(), 0..40)) {
        prop_assert!(bucket_decode(&physical).0 <= physical.len());
    }

    /// Buckets lie in the order of their sort keys, and a sort key within the span of its own
    /// bucket only.
    #[test]
    fn buckets_follow_the_order_of_sort_keys(
        a in 0..253_402_300_800_000_u64, near in 0..10_000_000_000_u64,
        granularity in prop::sample::select(ALL.to_vec()),
    ) {
        let b = a.saturating_add(near).min(253_402_300_799_999);
        let numeric = time(granularity, "", Epoch::Milliseconds);
        let of = |at: u64| numeric.bucket_of(SortKey::N(&at.to_string())).unwrap();
        prop_assert!(of(a) <= of(b));
        let Span::Between(from, to) = numeric.span(of(a), true) else { panic!("numbers") };
        prop_assert!((from..to).contains(&a));
        prop_assert_eq!((from..to).contains(&b), of(a) == of(b));
        let text = time(granularity, "p#", Epoch::Seconds);
        let key = |at: u64| format!("p#{}:59", Bucket::at((at / 1000) as i64, Granularity::Hour).unwrap());
        let (first, second) = (key(a), key(b));
        prop_assert!(first <= second);
        let of = |key: &str| text.bucket_of(SortKey::S(key)).unwrap();
        let weekly = time(Granularity::Week, "p#", Epoch::Seconds);
        let of_week = |key: &str| weekly.bucket_of(SortKey::S(key)).unwrap();
        let Span::Within(from, to) = weekly.span(of_week(&first), false) else { panic!("text") };
        prop_assert!((&from..&to).contains(&&first), "{} {}", from, to);
        prop_assert_eq!((&from..&to).contains(&&second), of_week(&first) == of_week(&second));
        prop_assert!(of_week(&first) <= of_week(&second));
        let numbers = time(Granularity::Week, "", Epoch::Milliseconds);
        prop_assert_eq!(numbers.bucket_of(SortKey::N(&a.to_string())), Some(of_week(&first)));
        prop_assert_eq!(of_week(&first).next().back(1), of_week(&first));
        prop_assert_eq!(Bucket::read(of_week(&first).to_string().as_bytes(), Granularity::Week, "%G-W%V"), Some(of_week(&first)));
        let Span::BeginsWith(prefix) = text.span(of(&first), false) else { panic!("text") };
        prop_assert!(first.starts_with(&prefix));
        prop_assert_eq!(second.starts_with(&prefix), of(&first) == of(&second));
    }

    /// Whatever the order of its fields, a bucket is read back from what is written.
    #[test]
    fn reading_undoes_writing(seconds in 0..253_402_300_800_i64, nth in 0..4_usize) {
        let (granularity, formats) = [
            (Granularity::Hour, ["%Y-%m-%dT%H", "%Y%m%d%H", "%H.%d/%m %Y"]),
            (Granularity::Day, ["%Y-%m-%d", "%Y%m%d", "at %d  %m-%Y"]),
            (Granularity::Month, ["%Y-%m", "%Y%m", "%m/%Y"]),
            (Granularity::Week, ["%G-W%V", "%G%V", "%V %G"]),
        ][nth];
        let bucket = Bucket::at(seconds, granularity).unwrap();
        for format in formats {
            let text = bucket.write(format);
            prop_assert_eq!(Bucket::read(text.as_bytes(), granularity, format), Some(bucket), "{}", text);
        }
        prop_assert!(bucket.start() <= seconds && seconds < bucket.next().start());
    }

    #[test]
    fn any_text_is_harmless(text in "[0-9T:-]{0,14}|.{0,12}") {
        for granularity in ALL {
            if let Some(bucket) = time(granularity, "", Epoch::Seconds).bucket_of(SortKey::S(&text)) {
                prop_assert!(text.starts_with(&bucket.to_string()));
            }
            let _ = time(granularity, "", Epoch::Seconds).bucket_of(SortKey::N(&text));
        }
    }
}
