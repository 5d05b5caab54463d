//! What a request explains, what a move is, and what is told where not all requests are recorded.

use std::borrow::Cow;

use heatsink_layout::SortKey;
use heatsink_trace::{Access, End, Ended, Header, Line, Operation, VERSION};

use super::*;

/// 2026-06-22T18:00:00Z.
const BEGIN: i64 = 1_782_151_200;

fn put(second: u64, key: &'static str, sort: &'static str) -> Access<'static> {
    Access {
        us: second * 1_000_000 + 500_000,
        table: Cow::Borrowed("T"),
        index: None,
        op: Operation::Put,
        key: Some(Cow::Borrowed(key)),
        sort: Some(Cow::Borrowed(sort)),
        grows: false,
        page: None,
        units: 1_000,
        bytes: 0,
        items: 0,
        strong: false,
        throttled: false,
        weight: 1,
    }
}

/// A recording of 100 seconds.
fn trace(requested: &mut Requested, hashed: bool, accesses: impl IntoIterator<Item = Access<'static>>) {
    let millis = u64::try_from(BEGIN).unwrap() * 1_000;
    requested.line(&Line::Trace(Header { version: VERSION, hashed, unix_millis: millis }));
    accesses.into_iter().for_each(|access| requested.line(&Line::Access(access)));
    requested.line(&Line::End(End { us: 100_000_000, recorded: 0, dropped: 3, because: Ended::Stopped }));
}

fn recorded(accesses: impl IntoIterator<Item = Access<'static>>) -> Requested {
    let mut requested = Requested::default();
    trace(&mut requested, false, accesses);
    requested
}

fn streamed(records: &[(i64, &str, &str, Event)]) -> Streamed {
    let mut streamed = Streamed::default();
    for (second, key, sort, event) in records {
        streamed.add(key.as_bytes(), Some(SortKey::S(sort)), BEGIN + second, *event);
    }
    streamed
}

fn named(bypass: &Bypass) -> Vec<(&str, u64, u64)> {
    bypass.keys.iter().map(|one| (one.key.as_str(), one.writes, one.unexplained)).collect()
}

#[test]
fn a_request_explains_one_record_of_its_item_at_about_its_time() {
    let requested = recorded([put(50, "a", "1"), put(50, "a", "2"), put(50, "b", "1")]);
    let modify = Event::Modify;
    let streamed = streamed(&[
        (50, "a", "1", modify),
        (58, "a", "2", modify),
        // The second one of an item that was asked for once, another item, another key, much later.
        (51, "a", "1", modify),
        (50, "a", "3", modify),
        (50, "c", "1", modify),
        (80, "b", "1", modify),
        // The recordings tell nothing of these.
        (-50, "a", "1", modify),
        (3, "a", "1", modify),
        (97, "a", "1", modify),
    ]);
    let bypass = Bypass::of("T", &streamed, &requested);
    assert_eq!((bypass.writes, bypass.outside, bypass.unexplained, bypass.at_least), (6, 3, 4, false));
    assert_eq!(named(&bypass), [("a", 4, 2), ("b", 1, 1), ("c", 1, 1)]);
    assert_eq!((bypass.dropped, bypass.without_key), (3, 0));
    // A table of which nothing is recorded was written past the gateways.
    assert_eq!(Bypass::of("Other", &streamed, &requested).unexplained, 6);
}

#[test]
fn reads_throttled_writes_and_writes_of_indexes_explain_nothing() {
    let requested = recorded([
        Access { op: Operation::Get, ..put(50, "a", "1") },
        Access { throttled: true, ..put(50, "a", "1") },
        Access { index: Some(Cow::Borrowed("i")), ..put(50, "a", "1") },
        Access { key: None, ..put(50, "a", "1") },
    ]);
    let bypass = Bypass::of("T", &streamed(&[(50, "a", "1", Event::Modify)]), &requested);
    assert_eq!((bypass.unexplained, bypass.without_key), (1, 1));
}

#[test]
fn shards_and_buckets_are_their_logical_keys() {
    let requested = recorded([put(50, "a", "1"), put(50, "b", "2"), put(50, "c#~2", "3"), put(50, "d", "4")]);
    let insert = Event::Insert;
    let streamed = streamed(&[
        (50, "a#~3", "1", insert),
        (50, "b#~2026-06-22#~3", "2", insert),
        // A client's own key in the reserved form, escaped.
        (50, "c#~2#~0", "3", insert),
        // A counter's item is written in several fragments.
        (50, "d", "4", insert),
        (50, "d#~1", "4", insert),
        (50, "d#~2", "4", insert),
        // Past the gateways, under a shard's key.
        (50, "e#~4", "1", insert),
    ]);
    let bypass = Bypass::of("T", &streamed, &requested);
    assert_eq!(named(&bypass), [("e", 1, 1)], "{bypass:?}");
}

#[test]
fn an_item_that_leaves_one_physical_key_for_another_was_moved() {
    let streamed = streamed(&[
        (50, "a#~3", "1", Event::Insert),
        (51, "a", "1", Event::Remove),
        (52, "a", "2", Event::Remove),
        (50, "a#~3", "2", Event::Insert),
        // Not moved: a delete alone, a new item under the same key, one much later.
        (50, "a", "3", Event::Remove),
        (50, "a", "4", Event::Remove),
        (51, "a", "4", Event::Insert),
        (30, "a", "5", Event::Remove),
        (60, "a#~3", "5", Event::Insert),
    ]);
    let bypass = Bypass::of("T", &streamed, &recorded([]));
    assert_eq!((bypass.moved, bypass.unexplained), (4, 5));
    // Moves are told by the records alone.
    let mut hashed = Requested::default();
    trace(&mut hashed, true, []);
    let bypass = Bypass::of("T", &streamed, &hashed);
    assert_eq!((bypass.moved, bypass.unexplained), (4, 5));
}

#[test]
fn an_item_that_was_just_written_and_moved_is_explained() {
    let requested = recorded([put(50, "a", "1"), put(58, "a", "1")]);
    let streamed = streamed(&[
        (50, "a", "1", Event::Insert),
        (54, "a#~3", "1", Event::Insert),
        (54, "a", "1", Event::Remove),
        (58, "a#~3", "1", Event::Modify),
    ]);
    let bypass = Bypass::of("T", &streamed, &requested);
    assert_eq!((bypass.moved, bypass.unexplained), (2, 0));
}

#[test]
fn numbers_and_binary_keys_are_as_traces_have_them() {
    let requested = recorded([put(50, "AQI=", "c01c000000000000"), put(50, "n", "AQI=")]);
    let mut streamed = Streamed::default();
    streamed.add(&[1, 2], Some(SortKey::N("7")), BEGIN + 50, Event::Insert);
    streamed.add(b"n", Some(SortKey::B(&[1, 2])), BEGIN + 50, Event::Insert);
    assert_eq!(Bypass::of("T", &streamed, &requested).unexplained, 0);
}

#[test]
fn of_a_sample_only_what_chance_does_not_explain_is_told() {
    let records =
        |key: &'static str, count: i64| (0..count).map(move |nth| (20 + nth % 60, key, "1", Event::Modify));
    let all: Vec<_> =
        records("honest", 3_200).chain(records("past", 3_200)).chain(records("rare", 40)).collect();
    let some = (0..100).map(|nth| Access { weight: 32, ..put(20 + nth % 60, "honest", "1") });
    let bypass = Bypass::of("T", &streamed(&all), &recorded(some.clone()));
    assert_eq!((bypass.at_least, bypass.writes), (true, 6_440));
    // 3,200 less three standard deviations, 945; 40 that nobody drew are no surprise.
    assert_eq!(named(&bypass), [("past", 3_200, 2_255)]);

    // Of hashed keys the sum is told, and no name.
    let mut hashed = Requested::default();
    trace(&mut hashed, true, some);
    let bypass = Bypass::of("T", &streamed(&all), &hashed);
    assert!(bypass.keys.is_empty() && (1_000..3_240).contains(&bypass.unexplained), "{bypass:?}");
}

#[test]
fn several_gateways_are_one() {
    let mut requested = Requested::default();
    trace(&mut requested, false, [put(50, "a", "1")]);
    let modify = Event::Modify;
    let records = streamed(&[(50, "a", "1", modify), (50, "a", "1", modify)]);
    assert_eq!(Bypass::of("T", &records, &requested).unexplained, 1);
    trace(&mut requested, false, [put(55, "a", "1")]);
    assert_eq!(Bypass::of("T", &records, &requested).unexplained, 0);
}

proptest::proptest! {
    /// What came through and was recorded is never named, in whatever order and however often.
    #[test]
    fn what_was_recorded_is_explained(writes in proptest::collection::vec((15_u64..85, 0_usize..3, 0_usize..3, -9_i64..9), 0..60)) {
        let names = ["a", "b", "c"];
        let name = |at: &usize| names[*at];
        let requested = recorded(writes.iter().map(|(at, key, sort, _)| put(*at, name(key), name(sort))));
        let records: Vec<_> = writes
            .iter()
            .map(|(at, key, sort, late)| (i64::try_from(*at).unwrap() + late, name(key), name(sort), Event::Modify))
            .collect();
        proptest::prop_assert_eq!(Bypass::of("T", &streamed(&records), &requested).unexplained, 0);
    }
}
