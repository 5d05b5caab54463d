//! Rates over time, and that rows and bytes are bounded.

use std::sync::Arc;

use heatsink_dynamo::KeyType;

use super::*;
use crate::detect::{Access, Detector, Key, KeyHeat, Kind, Outcome, ShardHeat};

/// Counts so many units of each key in a second, and adds them to the history.
fn second(history: &mut History, detector: &mut Detector, now: u64, keys: &[(&str, u64)]) {
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    for (key, units) in keys {
        let key = Some(Key { kind: KeyType::S, text: key.as_bytes() });
        detector.count(
            now,
            part,
            &Access { key, units: units * 1_000, outcome: Outcome::Throttled, ..Access::default() },
        );
    }
    detector.advance(now + 1_000);
    history.add(now + 1_000, detector.window(), &detector.heat(100), |_, _| 1);
}

#[test]
fn what_coarse_steps_show_is_the_sum_of_the_fine_ones() {
    // A full hour, more than 28 days after 1970.
    let begin = 833 * 3_600_000;
    let (mut history, mut detector) = (History::default(), Detector::new(7, begin));
    for at in 0..7_200 {
        second(&mut history, &mut detector, begin + at * 1_000, &[("a", 10), ("b", at % 60)]);
    }
    let now = begin + 7_199_999;
    for (span, shown) in [
        (Span::TenMinutes, 600.0),
        (Span::SixHours, 7_200.0),
        (Span::FourDays, 7_200.0),
        (Span::FourWeeks, 7_200.0),
    ] {
        let map = history.map(span, now, 200);
        let seconds = map.step as f64 / 1_000.0;
        assert_eq!((map.columns, map.rows.len()), (span.columns(), 2));
        assert_eq!(map.from + map.step * map.columns as u64, (now / map.step + 1) * map.step);
        let sum = |row: &MapRow| row.units.iter().sum::<f64>() * seconds;
        assert!((sum(&map.rows[1]) / (shown * 10.0) - 1.0).abs() < 1e-3, "{span:?}");
        assert!((sum(&map.rows[0]) / (shown * 29.5) - 1.0).abs() < 1e-3, "{span:?}");
        assert!((map.rows[1].units[map.columns - 1] - 10.0).abs() < 0.01, "{span:?}");
        assert!((map.rows[1].throttled[map.columns - 1] - 1.0).abs() < 0.01, "{span:?}");
    }
}

#[test]
fn a_window_that_stalled_is_spread_over_its_time() {
    let (mut history, mut detector) = (History::default(), Detector::new(7, 0));
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    let key = Some(Key { kind: KeyType::S, text: b"a" });
    detector.count(0, part, &Access { key, units: 30_000, ..Access::default() });
    detector.advance(3_500);
    history.add(3_500, detector.window(), &detector.heat(100), |_, _| 1);
    let map = history.map(Span::TenMinutes, 3_500, 200);
    let units = &map.rows[0].units;
    let near = |at: usize, rate: f64| (units[at] - rate).abs() < 0.01;
    assert!(near(0, 60.0 / 7.0) && near(1, 60.0 / 7.0) && near(3, 30.0 / 7.0), "{:?}", &units[..5]);
}

#[test]
fn a_hotter_key_takes_the_row_of_the_coldest() {
    let (mut history, mut detector) = (History::default(), Detector::new(7, 0));
    for at in 0..ROWS as u64 {
        let keys: Vec<(String, u64)> = (0..10).map(|key| (format!("k{}", at * 10 + key), 5)).collect();
        let keys: Vec<(&str, u64)> = keys.iter().map(|(key, units)| (key.as_str(), *units)).collect();
        second(&mut history, &mut detector, at * 1_000, &keys);
    }
    assert_eq!(history.rows.len(), ROWS);
    second(&mut history, &mut detector, 1_000_000, &[("hot", 5_000), ("cold", 0)]);
    let map = history.map(Span::TenMinutes, 1_001_000, 200);
    assert_eq!((history.rows.len(), map.rows[0].name.key.text.as_str()), (ROWS, "hot"));
}

#[test]
fn it_tells_since_when_a_key_has_how_many_shards() {
    let (mut history, mut detector) = (History::default(), Detector::new(7, 0));
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    let counts = |at: u64| match at {
        0..10 => 1,
        10..62 => 4,
        62..65 => 7,
        _ => 2,
    };
    for at in 0..100 {
        let key = Some(Key { kind: KeyType::S, text: b"a" });
        detector.count(at * 1_000, part, &Access { key, units: 9_000, ..Access::default() });
        detector.advance((at + 1) * 1_000);
        history.add((at + 1) * 1_000, detector.window(), &detector.heat(100), |_, _| counts(at));
    }
    let shards = |span, now| history.map(span, now, 10).rows[0].shards.clone();
    assert_eq!(shards(Span::TenMinutes, 599_999), [(10, 4), (62, 7), (65, 2)]);
    // What changed before the first column holds from it on.
    assert_eq!(shards(Span::TenMinutes, 599_999 + 63_000), [(0, 7), (2, 2)]);
    // Of several in a column, the last.
    assert_eq!(shards(Span::SixHours, 21_599_999), [(0, 4), (1, 2)]);
}

#[test]
fn it_survives_being_saved() {
    let (mut history, mut detector) = (History::default(), Detector::new(7, 0));
    for at in 0..100 {
        second(&mut history, &mut detector, at * 1_000, &[("a\u{0}\u{1b}\"", 10), ("b", at + 1)]);
    }
    let saved = serde_json::to_vec(&history.save()).unwrap();
    let mut read = History::read(serde_json::from_slice(&saved).unwrap());
    assert_eq!(read.map(Span::SixHours, 100_000, 200), history.map(Span::SixHours, 100_000, 200));
    second(&mut read, &mut detector, 100_000, &[("a\u{0}\u{1b}\"", 10)]);
    // One that was tampered with is read without harm.
    let text = String::from_utf8(saved).unwrap().replace("\"end\":100", "\"end\":1");
    let read = History::read(serde_json::from_str(&text).unwrap());
    assert!(read.map(Span::TenMinutes, 100_000, 200).rows.len() <= 2);
}

/// A key is warm for an hour, beside so many others.
fn hour(history: &mut History, keys: u64, begin: u64) {
    let (mut parts, _) = parts(keys);
    for second in 0..3_600 {
        for (at, key) in parts.iter_mut().flat_map(|part| &mut part.keys).enumerate() {
            key.units_per_s = 1.0 + ((second + at as u64) % 97) as f64;
            key.refused.all.per_s = (second % 3) as f64;
        }
        history.add(begin + (second + 1) * 1_000, 1_000, &parts, |_, _| 1);
    }
}

/// Parts of 100 keys, as many as a detector tells.
fn parts(keys: u64) -> (Vec<PartHeat>, Vec<RowName>) {
    let (mut parts, mut names) = (Vec::<PartHeat>::new(), Vec::new());
    for key in 0..keys {
        if key % 100 == 0 {
            let name = PartName {
                table: Some(format!("table_{}", key / 100).into()),
                index: None,
                kind: Kind::Write,
            };
            parts.push(PartHeat {
                name,
                units_per_s: 0.0,
                requests_per_s: 0.0,
                throttled_per_s: 0.0,
                floor_units_per_s: 0.0,
                keys: Vec::new(),
            });
        }
        let part = parts.last_mut().unwrap();
        let key = ShownKey { kind: KeyType::S, text: format!("player_{key:08}") };
        names.push(RowName { part: part.name.clone(), key: key.clone() });
        part.keys.push(KeyHeat::silent(key));
    }
    (parts, names)
}

#[test]
fn a_thousand_keys_that_are_warm_for_an_hour_have_rows() {
    let begin = 833 * 3_600_000;
    let mut history = History::default();
    hour(&mut history, ROWS as u64, begin);
    assert!(history.bytes() <= BYTES && history.bytes() == history.counted(), "{}", history.bytes());
    let map = history.map(Span::SixHours, begin + 3_599_999, ROWS);
    assert_eq!(map.rows.len(), ROWS);
    let warm = |row: &MapRow| row.units[300..].iter().filter(|units| **units > 0.0).count();
    assert!(map.rows.iter().all(|row| warm(row) == 60));
}

/// Rows that grow are bounded by bytes: the coldest go, and what is counted is what is there.
#[test]
fn rows_that_grow_take_no_more_than_they_may() {
    let (mut parts, names) = parts(ROWS as u64);
    let mut history = History::default();
    let begin = 833 * 3_600_000;
    // An hour in each step, so that in 28 days every ring is full.
    for hour in 0..672_u64 {
        for (at, key) in parts.iter_mut().flat_map(|part| &mut part.keys).enumerate() {
            key.units_per_s = if at % 10 == 0 { 900.0 } else { 1.0 };
        }
        history.add(begin + (hour + 1) * 3_600_000, 3_600_000, &parts, |_, _| 1);
        assert!(history.bytes() <= BYTES, "{}", history.bytes());
    }
    assert_eq!(history.bytes(), history.counted());
    let kept = history.rows.len();
    assert!((350..500).contains(&kept), "{kept} rows");
    let hot = names.iter().step_by(10);
    assert!(
        hot.clone().count() == 100 && hot.into_iter().all(|name| history.rows.contains_key(name)),
        "the hottest stay"
    );
    let read = History::read(history.save());
    assert!(read.bytes() <= BYTES && read.rows.len() > 350);
}

#[test]
fn shards_that_are_measured_have_rows_of_their_own() {
    let (mut parts, _) = parts(1);
    let mut history = History::default();
    let shard = |units_per_s, throttled_per_s| ShardHeat {
        slot: 0,
        units_per_s,
        requests_per_s: units_per_s,
        throttled_per_s,
        counted_per_s: (units_per_s, throttled_per_s),
    };
    for second in 0..60_u64 {
        let key = &mut parts[0].keys[0];
        key.units_per_s = 100.0;
        key.shards = if second < 30 { Vec::new() } else { vec![shard(70.0, 0.0), shard(30.0, 5.0)] };
        history.add((second + 1) * 1_000, 1_000, &parts, |_, _| 2);
    }
    let row = &history.map(Span::TenMinutes, 599_999, 10).rows[0];
    let measured: Vec<_> =
        row.measured.iter().map(|shard| (shard.units[29], shard.units[30], shard.units[59])).collect();
    assert_eq!(measured, [(0.0, 70.0, 70.0), (0.0, 30.0, 30.0)]);
    assert_eq!((row.measured[0].throttled.len(), row.measured[1].throttled[45]), (0, 5.0));
    let row = &history.map(Span::SixHours, 21_599_999, 10).rows[0];
    assert!((row.measured[0].units[0] - 35.0).abs() < 0.1, "half of the minute was measured");
    // They are saved with their key, and forgotten when no map shows them any more.
    let saved = serde_json::to_vec(&history.save()).unwrap();
    let mut read = History::read(serde_json::from_slice(&saved).unwrap());
    assert_eq!(read.map(Span::TenMinutes, 599_999, 10), history.map(Span::TenMinutes, 599_999, 10));
    read.trim(40 * 86_400_000);
    assert_eq!((read.rows.len(), read.bytes()), (0, 0));
}

/// What builds before this one wrote has no shards, and cells of full precision.
#[test]
fn a_history_of_before_is_read() {
    let ring = r#"{"end":600,"cells":[[10.0,0.0],[5.0,1.0]]}"#;
    let none = r#"{"end":0,"cells":[]}"#;
    let name = r#"{"part":{"table":"games","index":null,"kind":"Write"},"key":{"kind":"S","text":"a"}}"#;
    let saved = format!(
        r#"{{"rows":[[{name},{{"rings":[{ring},{none},{none},{none}],"sum":15.0,"at":600000,"shards":[[598000,4]]}}]]}}"#
    );
    let history = History::read(serde_json::from_str(&saved).unwrap());
    let map = history.map(Span::TenMinutes, 599_999, 10);
    assert_eq!(
        (map.rows[0].units[598], map.rows[0].units[599], map.rows[0].throttled[599]),
        (10.0, 5.0, 1.0)
    );
    assert_eq!((&map.rows[0].shards[..], map.rows[0].measured.len()), (&[(598, 4)][..], 0));
}
