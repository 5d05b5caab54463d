//! What is drawn, counted and shown of loads whose exact counts are known, as a gateway does it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of keys, below a million"
)]

use std::collections::HashMap;
use std::sync::Arc;

use fastrand::Rng;
use heatsink_dynamo::KeyType;
use proptest::prelude::*;

use super::*;
use crate::detect::{Access, Detector, Key, KeyHeat, Kind, PartId};
use crate::{KeyLoad, Recent};

/// Each bound holds in at least this share of windows and keys (docs/explain/heat.md).
const PROMISED: f64 = 0.997;

/// What a gateway does beside its requests, and the exact units of each key in the window.
struct Counting {
    drawing: Drawing,
    pace: Pace,
    detector: Detector,
    part: PartId,
    now: u64,
    exact: HashMap<u64, u64>,
    recent: Recent,
}

impl Counting {
    fn new(seed: u64) -> Self {
        let mut detector = Detector::new(seed, 0);
        let part = detector.part(&Arc::from("Games"), None, Kind::Write);
        let (drawing, pace) = (Drawing::new(seed), Pace::default());
        Counting { drawing, pace, detector, part, now: 0, exact: HashMap::new(), recent: Recent::default() }
    }

    fn put(&mut self, key: u64, units: u64) {
        *self.exact.entry(key).or_default() += units;
        if let Some(draw) = self.drawing.request(self.now) {
            self.count(draw, &[(key, units)]);
        }
    }

    fn batch(&mut self, items: &[(u64, u64)]) {
        items.iter().for_each(|(key, units)| *self.exact.entry(*key).or_default() += units);
        let draw = self.drawing.batch(self.now);
        let chosen = self.drawing.choose(draw, 25);
        let chosen: Vec<_> =
            items.iter().enumerate().filter(|(at, _)| chosen.has(*at)).map(|(_, item)| *item).collect();
        if !chosen.is_empty() {
            self.count(draw, &chosen);
        }
    }

    fn count(&mut self, draw: Draw, items: &[(u64, u64)]) {
        for (key, units) in items {
            let text = key.to_string();
            let key = Some(Key { kind: KeyType::S, text: text.as_bytes() });
            let access = Access { key, units: *units, weight: draw.weight(), ..Access::default() };
            self.detector.count(self.now, self.part, &access);
        }
        let window = (self.detector.number(), self.detector.ends());
        let weight = self.drawing.counted(&mut self.pace, window, draw, items.len());
        self.detector.draws(weight);
    }

    /// A second in which each of its milliseconds has this traffic. Gives the keys that are shown,
    /// and the exact units of each.
    fn second(&mut self, mut traffic: impl FnMut(&mut Self, u64)) -> Vec<(f64, KeyHeat)> {
        for milli in 0..1_000 {
            traffic(self, milli);
            self.now += 1;
        }
        self.detector.advance(self.now);
        let exact = std::mem::take(&mut self.exact);
        let keys: Vec<KeyHeat> = self.detector.heat(100).into_iter().flat_map(|part| part.keys).collect();
        self.recent.ended(self.detector.number(), || keys.iter().map(load).collect());
        let units = |key: &KeyHeat| {
            exact.get(&key.key.text.parse().unwrap()).map_or(0.0, |units| *units as f64 / 1_000.0)
        };
        keys.into_iter().map(|key| (units(&key), key)).collect()
    }
}

fn load(heat: &KeyHeat) -> KeyLoad {
    let mut load =
        KeyLoad { table: "Games".to_owned(), key: heat.key.text.clone().into_bytes(), ..KeyLoad::default() };
    load.take(Kind::Write, heat);
    load
}

/// Whether the true rate lies within what is shown.
fn holds((exact, key): &(f64, KeyHeat)) -> bool {
    let slack = 1e-6 * exact;
    let least = key.units_per_s - key.error_units_per_s - key.sampling_error_units_per_s;
    let most = key.units_per_s + key.sampling_error_units_per_s;
    least <= key.least_units_per_s() + slack
        && (key.least_units_per_s() - slack..=most + slack).contains(exact)
}

fn units(shown: &[(f64, KeyHeat)], key: u64) -> f64 {
    let text = key.to_string();
    shown.iter().find(|(_, shown)| shown.key.text == text).map_or(0.0, |(_, shown)| shown.units_per_s)
}

#[test]
fn a_key_that_takes_1500_units_by_batches_is_shown_in_each_window() {
    let mut counting = Counting::new(7);
    let seen: Vec<f64> = (0..60)
        .map(|_| {
            let shown = counting.second(|counting, milli| {
                if milli % 50 < 3 {
                    counting.batch(&[(1, 1_000); 25]);
                }
            });
            assert!(shown.iter().all(holds), "{shown:?}");
            units(&shown, 1)
        })
        .collect();
    assert!(seen.iter().all(|units| (1_000.0..2_250.0).contains(units)), "{seen:?}");
    let mean = seen.iter().sum::<f64>() / 60.0;
    assert!((mean - 1_500.0).abs() < 80.0, "{mean}");
    // N is for the load, and not for a draw of it.
    let hot = counting.recent.hot(|_| 1);
    assert!((1_200.0..1_900.0).contains(&hot[0].writes), "{hot:?}");
}

#[test]
fn the_draws_of_a_window_end_with_it() {
    for pause in 0..3 {
        let mut counting = Counting::new(7);
        counting.second(|counting, milli| {
            if milli % 2 == 0 {
                counting.batch(&[(1, 1_000); 25]);
                counting.put(1, 1_000);
                counting.put(1, 1_000);
                counting.put(1, 1_000);
            }
        });
        (0..pause).for_each(|_| drop(counting.second(|_, _| {})));
        let shown = counting.second(|counting, milli| {
            if milli % 100 == 0 {
                counting.batch(&[(2, 1_000); 25]);
                counting.put(3, 1_000);
            }
        });
        assert_eq!((units(&shown, 2), units(&shown, 3)), (250.0, 10.0));
        assert!(shown.iter().all(|(_, key)| key.sampling_error_units_per_s == 0.0));
    }
}

#[test]
fn cold_keys_never_look_hot() {
    for batches in [150, 1_000, 3_000] {
        let (mut counting, mut random) = (Counting::new(7), Rng::with_seed(7));
        for _ in 0..60 {
            let mut sent = 0;
            counting.second(|counting, milli| {
                while sent * 1_000 < (milli + 1) * batches {
                    let items: Vec<_> = (0..25).map(|_| (random.u64(0..5_000), 1_000)).collect();
                    counting.batch(&items);
                    sent += 1;
                }
            });
            assert!(counting.recent.hot(|_| 1).is_empty(), "{batches}: {:?}", counting.recent.hot(|_| 1));
        }
    }
}

#[test]
fn a_hot_key_is_found_among_many_requests() {
    let (mut counting, mut random) = (Counting::new(7), Rng::with_seed(7));
    let mut found = 0;
    for _ in 0..60 {
        counting.second(|counting, milli| {
            (0..10).for_each(|_| counting.put(random.u64(10..100_000), 1_000));
            (0..1 + milli % 2).for_each(|_| counting.put(1, 1_000));
        });
        found += usize::from(counting.recent.hot(|_| 1).iter().any(|load| load.key == b"1"));
    }
    // Two windows in a row are certain in two thirds of all. Who acts takes more windows together.
    assert!(found >= 40, "{found} of 60 windows");
}

/// The bounds of a load, some of it in batches: how many of them were judged, and how many hold.
fn judged(
    seed: u64,
    per_milli: u64,
    batched: bool,
    exponent: f64,
    most_units: u64,
    windows: u64,
) -> (usize, usize) {
    let (mut counting, mut random) = (Counting::new(seed), Rng::with_seed(seed));
    let mut next =
        move || ((3_000_f64.powf(random.f64().powf(exponent))) as u64, random.u64(1..=most_units) * 500);
    let (mut all, mut held) = (0, 0);
    for _ in 0..windows {
        let shown = counting.second(|counting, milli| {
            // Every second is its own, so that windows do not all begin alike.
            let count = per_milli + milli % 2;
            if batched && milli % 4 == 0 {
                let items: Vec<_> = (0..25).map(|_| next()).collect();
                counting.batch(&items);
            }
            for _ in 0..count {
                let (key, units) = next();
                counting.put(key, units);
            }
        });
        all += shown.len();
        held += shown.iter().filter(|one| holds(one)).count();
    }
    (all, held)
}

#[test]
fn bounds_hold_in_the_share_that_is_promised() {
    // 2,500 puts a second, zipf.
    let (all, held) = judged(7, 2, false, 1.0, 2, 60);
    assert!(all >= 6_000 && held as f64 >= PROMISED * all as f64, "{held} of {all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn bounds_hold_whatever_the_load(
        seed in 0_u64..1_000_000, per_milli in 0_u64..12, batched: bool, exponent in 0.5..2.0f64, most_units in 1_u64..12,
    ) {
        let (all, held) = judged(seed, per_milli, batched, exponent, most_units, 10);
        // Of ten windows a few more may be outside by chance.
        prop_assert!(held as f64 >= PROMISED * all as f64 - 6.0, "{held} of {all}");
    }
}

#[test]
fn each_item_is_drawn_by_itself() {
    let drawing = Drawing::new(7);
    let (mut all, mut pairs) = (0_u32, 0_u32);
    for _ in 0..32_000 {
        let chosen = drawing.choose(Draw::Items(DRAWN), 25);
        let of = |at: usize| u32::from(chosen.has(at));
        all += (0..25).map(of).sum::<u32>();
        pairs += (0..24).map(|at| of(at) * of(at + 1)).sum::<u32>();
    }
    // 25,000 and 750 are expected.
    assert!((24_400..25_600).contains(&all) && (640..860).contains(&pairs), "{all} {pairs}");
    assert!(drawing.choose(Draw::Items(1), 100).has(99) && !Chosen::ALL.has(128));
}
