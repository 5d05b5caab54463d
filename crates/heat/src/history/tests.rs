//! Rates over time, and that rows and bytes are bounded.

use std::sync::Arc;

use heatsink_dynamo::KeyType;

use super::*;
use crate::detect::{Access, Detector, Key, Kind, Outcome};

/// Counts so many units of each key in a second, and adds them to the history.
fn second(history: &mut History, detector: &mut Detector, now: u64, keys: &[(&str, u64)]) {
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    for (key, units) in keys {
        let key = Some(Key { kind: KeyType::S, text: key.as_bytes() });
        detector.count(
            now,
            part,
            &Access { key, units: units * 1_000, weight: 1, outcome: Outcome::Throttled },
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
    detector.count(0, part, &Access { key, units: 30_000, weight: 1, outcome: Outcome::Done });
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
        detector.count(at * 1_000, part, &Access { key, units: 9_000, weight: 1, outcome: Outcome::Done });
        detector.advance((at + 1) * 1_000);
        history.add((at + 1) * 1_000, detector.window(), &detector.heat(100), |_, _| counts(at));
    }
    let shards = |span, now| history.map(span, now, 10).rows[0].shards.clone();
    assert_eq!(shards(Span::TenMinutes, 599_999), [(10, 4), (62, 7), (65, 2)]);
    // What changed before the first column holds from it on.
    assert_eq!(shards(Span::TenMinutes, 599_999 + 63_000), [(0, 7), (2, 2)]);
    // Of several in a column, the last.
    assert_eq!(shards(Span::SixHours, 21_599_999), [(0, 4), (1, 2)]);
    let mut row = Row::default();
    (0..1_000).for_each(|at| row.has_shards(at, 1 + u16::try_from(at % 2).unwrap()));
    assert_eq!(row.shards.len(), CHANGES);
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
