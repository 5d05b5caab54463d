//! The bounds that Space-Saving promises, on streams that are kind to it and on streams that are
//! not.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of keys, below a million"
)]

use std::collections::{HashMap, HashSet};
use std::io::Write;

use heatsink_dynamo::KeyType;
use proptest::prelude::*;

use super::*;

/// A detector of one part beside exact counts of the window.
struct Judge {
    detector: Detector,
    part: PartId,
    /// Units and requests of each key, by its number.
    exact: HashMap<u64, (u64, u64), FixedState>,
}

impl Judge {
    fn new(counters: usize, bytes: usize) -> Self {
        let mut detector = Detector::with(7, 0, counters, bytes);
        let part = detector.part(&Arc::from("games"), None, Kind::Write);
        Judge { detector, part, exact: HashMap::default() }
    }

    /// Counts an access to the key of that number, whose text is so long.
    fn count(&mut self, now: u64, key: u64, length: usize, units: u64) {
        let mut text = [b'.'; 100];
        write!(&mut text[..], "{key}").unwrap();
        let key_text = Key { kind: KeyType::S, text: &text[..length] };
        let access = Access { key: Some(key_text), units, ..Access::default() };
        self.detector.count(now, self.part, &access);
        let (sum, requests) = self.exact.entry(key).or_default();
        *sum += units;
        *requests += 1;
    }

    /// Ends the window, which has begun at `began`, and judges what is shown of it. Keys of that
    /// share of all units must be shown.
    fn judge(&mut self, began: u64, now: u64, share: f64) -> Vec<(u64, KeyHeat)> {
        self.detector.advance(now);
        assert_eq!(self.detector.window(), now - began);
        let seconds = (now - began) as f64 / 1_000.0;
        let heat = self.detector.heat(usize::MAX);
        let total: u64 = self.exact.values().map(|(units, _)| units).sum();
        let total = total as f64 / 1_000.0 / seconds;
        let Some(part) = heat.into_iter().next() else {
            assert!(self.exact.is_empty());
            return Vec::new();
        };
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.max(1.0);
        assert!(near(part.units_per_s, total));
        // The keys share out the total: Space-Saving loses nothing.
        assert!(near(part.keys.iter().map(|key| key.units_per_s).sum(), total));
        let requests: u64 = self.exact.values().map(|(_, requests)| requests).sum();
        assert!(near(part.requests_per_s, requests as f64 / seconds));
        let slack = 1e-9 * total;
        let number = |key: KeyHeat| (key.key.text.trim_end_matches('.').parse().unwrap(), key);
        let keys: Vec<(u64, KeyHeat)> = part.keys.into_iter().map(number).collect();
        for (number, key) in &keys {
            let (units, requests) = self.exact[number];
            let (units, requests) = (units as f64 / 1_000.0 / seconds, requests as f64 / seconds);
            assert!(units <= key.units_per_s + slack, "{units} {key:?}");
            assert!(units >= key.units_per_s - key.error_units_per_s - slack, "{units} {key:?}");
            assert!(key.error_units_per_s <= part.floor_units_per_s + slack, "{key:?}");
            assert!(key.requests_per_s <= requests + slack);
        }
        let shown: HashSet<u64> = keys.iter().map(|(number, _)| *number).collect();
        assert_eq!(shown.len(), keys.len(), "a key is shown twice");
        for (key, (units, _)) in &self.exact {
            let units = *units as f64 / 1_000.0 / seconds;
            assert!(units <= part.floor_units_per_s + slack || shown.contains(key), "{key}: {units}");
            assert!(units < share * total || shown.contains(key), "{key}: {units} of {total}");
        }
        self.exact.clear();
        keys
    }
}

proptest! {
    #[test]
    fn bounds_hold_whatever_comes(
        counters in 1_usize..40,
        bytes in prop_oneof![Just(0_usize), Just(10_000), Just(1 << 20)],
        stream in prop::collection::vec((0_u64..120, 1_u64..5_000, 0_u64..40), 0..3_000),
    ) {
        let mut judge = Judge::new(counters, bytes);
        let (mut now, mut began) = (0, 0);
        for (key, units, pause) in stream {
            now += pause;
            if now - began >= WINDOW {
                judge.judge(began, now, 1.1);
                began = now;
            }
            // Some are too long to be kept without a grant.
            judge.count(now, key, if key % 3 == 0 { 90 } else { 10 }, units);
        }
        judge.judge(began, now + 1_000, 1.1);
    }
}

/// 10 million operations over a million keys, 1 million a second. Every key of one percent is found
/// within two windows, which here is the first that ends.
fn stream(mut next: impl FnMut(u64) -> (u64, u64)) -> Vec<Vec<(u64, KeyHeat)>> {
    let mut judge = Judge::new(COUNTERS, BYTES);
    let windows = (0..10).map(|window: u64| {
        for at in 0..1_000_000 {
            let (key, units) = next(window * 1_000_000 + at);
            judge.count(window * 1_000 + at / 1_000, key, 12, units);
        }
        judge.judge(window * 1_000, (window + 1) * 1_000, 0.01)
    });
    let windows = windows.collect();
    assert!(judge.detector.bytes() <= BYTES);
    windows
}

/// Only in release builds: seconds there, minutes without.
const LARGE: bool = !cfg!(debug_assertions);

#[test]
fn zipf_over_a_million_keys() {
    if LARGE {
        let mut random = fastrand::Rng::with_seed(7);
        // By inversion of the continuous distribution with exponent 1.
        let found = stream(|_| (1_000_000_f64.powf(random.f64()) as u64, 1_000));
        assert!(found.iter().all(|keys| keys[0].0 == 1));
    }
}

#[test]
fn uniform_over_a_million_keys() {
    if LARGE {
        let mut random = fastrand::Rng::with_seed(7);
        let found = stream(|_| (random.u64(0..1_000_000), 500 + u64::from(random.bool()) * 500));
        // Nothing is hot, and nothing can be taken for hot: what is certain of each is little.
        let certain = |key: &KeyHeat| key.units_per_s - key.error_units_per_s;
        assert!(found.iter().flatten().all(|(_, key)| certain(key) < 0.005 * 750_000.0));
    }
}

/// A key of 1.2 percent, all of it at the beginning of each thousand; then keys that come once each
/// push at its counter, with large writes among them.
#[test]
fn keys_that_rotate_to_evade() {
    if LARGE {
        let found = stream(|at| match at % 1_000 {
            0..12 => (0, 1_000),
            spike if spike.is_multiple_of(97) => (at, 2_000),
            _ => (at, 1_000),
        });
        assert!(found.iter().all(|keys| keys[0].0 == 0));
    }
}

/// Batches of 25: the last member of each is the hot key, the others never come again.
#[test]
fn batches_alone() {
    if LARGE {
        let found = stream(|at| (if at % 25 == 24 { 0 } else { at }, 1_000));
        assert!(found.iter().all(|keys| keys[0].0 == 0));
    }
}

#[test]
fn a_window_that_stalled_is_as_long_as_it_took() {
    let mut judge = Judge::new(COUNTERS, BYTES);
    for at in 0..100 {
        judge.count(at, 1, 9, 1_000);
    }
    // Nobody calls for ten seconds.
    let keys = judge.judge(0, 10_000, 0.01);
    assert!((keys[0].1.units_per_s - 10.0).abs() < 1e-9);
    judge.count(10_500, 2, 9, 1_000);
    assert_eq!(judge.detector.window(), 10_000);
    judge.judge(10_000, 11_000, 0.01);
    // Nothing was counted in the next one.
    judge.detector.advance(12_000);
    assert!(judge.detector.heat(100).is_empty());
}

/// One in eight of 1,000 keys' accesses: the true rates are within the sampling error.
#[test]
fn drawn_accesses_stand_for_all() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut detector = Detector::new(7, 0);
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    let mut exact = HashMap::<String, u64>::new();
    let mut total = 0;
    for _ in 0..200_000 {
        let text = format!("{}", 1_000_f64.powf(random.f64()) as u64);
        let units = random.u64(1..4) * 500;
        total += units;
        *exact.entry(text.clone()).or_default() += units;
        if random.u32(0..8) == 0 {
            let key = Some(Key { kind: KeyType::N, text: text.as_bytes() });
            detector.count(1, part, &Access { key, units, weight: 8, ..Access::default() });
        }
    }
    detector.advance(1_000);
    let part = detector.heat(100).remove(0);
    assert!((part.units_per_s / (total as f64 / 1_000.0) - 1.0).abs() < 0.03, "{}", part.units_per_s);
    let off = |key: &KeyHeat| (key.units_per_s - exact[&key.key.text] as f64 / 1_000.0).abs();
    let beyond = part.keys.iter().filter(|key| off(key) > key.sampling_error_units_per_s).count();
    assert!(beyond <= 1, "{beyond} of 100 are beyond three standard deviations");
    assert!(part.keys[0].sampling_error_units_per_s < 0.08 * part.keys[0].units_per_s);
}

#[test]
fn parts_are_bounded_and_nothing_is_lost_beyond_them() {
    let mut detector = Detector::new(7, 0);
    for at in 0..PARTS + 100 {
        let part = detector.part(&Arc::from(format!("t{at}")), None, Kind::Write);
        let again = detector.part(&Arc::from(format!("t{at}")), None, Kind::Write);
        assert_eq!(part, again);
        let key = Some(Key { kind: KeyType::S, text: b"a" });
        detector.count(
            1,
            part,
            &Access { key, units: 1_000, outcome: Outcome::Throttled, ..Access::default() },
        );
        detector.count(
            1,
            part,
            &Access { units: 1_000, outcome: Outcome::ThrottledByPartition, ..Access::default() },
        );
    }
    detector.advance(1_000);
    let heat = detector.heat(1);
    assert_eq!(heat.len(), PARTS - 1);
    assert!(
        (heat.iter().map(|part| part.units_per_s).sum::<f64>() - 2.0 * (PARTS + 100) as f64).abs() < 1e-6
    );
    let other = heat.iter().find(|part| part.name.table.is_none()).unwrap();
    assert!((other.throttled_per_s - 204.0).abs() < 1e-6, "{other:?}");
    assert_eq!(other.keys[0].refused.by_partition.per_s, 0.0);
}

#[test]
fn the_clients_of_a_key_are_told_for_each_window_apart() {
    let mut detector = Detector::with(7, 0, 1, BYTES);
    let part = detector.part(&Arc::from("games"), None, Kind::Write);
    let [many, few]: [Arc<str>; 2] = [Arc::from("many"), Arc::from("few")];
    let count = |detector: &mut Detector, now, text: &[u8], client: Option<&Arc<str>>, weight| {
        let key = Some(Key { kind: KeyType::S, text });
        detector.count(now, part, &Access { key, units: 1_000, weight, client, ..Access::default() });
    };
    let told = |detector: &Detector| -> Vec<(String, f64)> {
        let clients = detector.heat(1).remove(0).keys.remove(0).clients;
        clients.iter().map(|one| (one.client.to_string(), one.least_units_per_s)).collect()
    };
    // What was drawn counts for what it stands for, and what no client asked for is nobody's.
    for _ in 0..10 {
        count(&mut detector, 1, b"a", Some(&many), 8);
        count(&mut detector, 1, b"a", Some(&few), 1);
        count(&mut detector, 1, b"a", None, 1);
    }
    detector.advance(1_000);
    assert_eq!(told(&detector), [("many".to_owned(), 80.0), ("few".to_owned(), 10.0)]);
    let key = detector.heat(1).remove(0).keys.remove(0);
    assert_eq!(key.own_units_per_s(), 100.0);
    // A key that takes the counter has its own clients.
    count(&mut detector, 1_001, b"a", Some(&many), 1);
    count(&mut detector, 1_001, b"b", Some(&few), 1);
    detector.advance(2_000);
    assert_eq!(told(&detector), [("few".to_owned(), 1.0)]);
    let key = detector.heat(1).remove(0).keys.remove(0);
    assert_eq!((key.units_per_s, key.own_units_per_s()), (2.0, 1.0));
    count(&mut detector, 2_001, b"a", None, 1);
    detector.advance(3_000);
    assert_eq!(told(&detector), []);
}

/// Many parts of long keys that never come again take no more than the bound, and give it back.
#[test]
fn the_memory_is_bounded() {
    let mut detector = Detector::with(7, 0, COUNTERS, 1 << 20);
    let parts: Vec<PartId> =
        (0..50).map(|at| detector.part(&Arc::from(format!("t{at}")), None, Kind::Read)).collect();
    let clients = ["a", "b", "c"].map(Arc::<str>::from);
    for at in 0..100_000_u64 {
        let text = format!("{at:03000}");
        let key = Some(Key { kind: KeyType::B, text: text.as_bytes() });
        let part = parts[at as usize % parts.len()];
        let client = Some(&clients[at as usize % 3]);
        detector.count(at / 20, part, &Access { key, units: 500, client, ..Access::default() });
        assert!(detector.bytes() <= 1 << 20);
    }
    let heat = detector.heat(usize::MAX);
    assert!(heat.iter().any(|part| part.keys.iter().any(|key| !key.clients.is_empty())));
    assert!(heat.iter().all(|part| part.keys.iter().all(|key| key.key.text.len() <= key::LONGEST)));
    for now in [6_000, 7_000, 8_000, 9_000] {
        detector.advance(now);
        let key = Some(Key { kind: KeyType::S, text: b"a" });
        for part in &parts {
            detector.count(now, *part, &Access { key, units: 500, ..Access::default() });
        }
    }
    drop(heat);
    assert_eq!(detector.bytes(), 0);
    assert!(clients.iter().all(|client| Arc::strong_count(client) == 1));
}
