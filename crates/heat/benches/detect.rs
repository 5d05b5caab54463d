//! What it costs to count a thousand accesses.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use divan::Bencher;
use heatsink_dynamo::KeyType;
use heatsink_heat::detect::{Access, Detector, Key, Kind};

/// So many accesses are one iteration.
const ACCESSES: usize = 1_000;

/// Counts these keys in turn behind the mutex in which a gateway keeps the detector: 100,000 a
/// second of the detector's clock.
fn count(bencher: Bencher<'_, '_>, keys: &[String]) {
    let detector = Mutex::new(Detector::new(7, 0));
    let part =
        detector.lock().unwrap_or_else(PoisonError::into_inner).part(&Arc::from("games"), None, Kind::Write);
    let mut turn = 0_usize;
    bencher.counter(divan::counter::ItemsCount::new(ACCESSES)).bench_local(|| {
        for _ in 0..ACCESSES {
            turn += 1;
            let text = keys[turn % keys.len()].as_bytes();
            let key = Some(Key { kind: KeyType::S, text: black_box(text) });
            let access = Access { key, units: 1_000, ..Access::default() };
            let mut detector = detector.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(signs) = detector.count(turn as u64 / 100, part, &access) {
                signs.writes(text);
            }
        }
    });
}

/// Draws from a Zipf distribution with exponent 1 over so many keys.
fn zipf(keys: usize) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(7);
    let total: f64 = (1..=keys).map(|rank| 1.0 / rank as f64).sum();
    let mut sums = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += 1.0 / rank as f64 / total;
        sums.push(sum);
    }
    let draw = |_| sums.partition_point(|sum| *sum < random.f64());
    (0..1 << 20).map(draw).map(|rank| format!("game_{rank:08}")).collect()
}

#[divan::bench]
fn one_key(bencher: Bencher<'_, '_>) {
    count(bencher, &["game_x".to_owned()]);
}

#[divan::bench]
fn zipf_million_keys(bencher: Bencher<'_, '_>) {
    count(bencher, &zipf(1_000_000));
}

/// Every access takes a counter from another key: the worst case.
#[divan::bench]
fn keys_that_never_come_again(bencher: Bencher<'_, '_>) {
    count(bencher, &(0..1 << 20).map(|at| format!("game_{at:08}")).collect::<Vec<_>>());
}

/// The same with keys of 2,048 bytes.
#[divan::bench]
fn long_keys_that_never_come_again(bencher: Bencher<'_, '_>) {
    count(bencher, &(0..1 << 14).map(|at| format!("{at:02048}")).collect::<Vec<_>>());
}

fn main() {
    divan::main();
}
