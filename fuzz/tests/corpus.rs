//! The kept corpus, and small random changes of it, through every target: a smoke test of what
//! `fuzz/run` does for longer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use fastrand::Rng;
use heatsink_fuzz::{TARGETS, Target};

/// Changes of each seed.
const CHANGES: usize = 400;

fn smoke(name: &str, target: Target) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5, "{} has few seeds", folder.display());
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut rng = Rng::with_seed(1);
    for seed in &seeds {
        target(seed);
        for _ in 0..CHANGES {
            let mut changed = seed.clone();
            for _ in 0..rng.usize(1..4) {
                change(&mut rng, &mut changed, &seeds);
            }
            target(&changed);
        }
    }
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = rng.usize(..=bytes.len());
    match rng.u32(..5) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, rng.u8(..)),
        2 if at < bytes.len() => bytes[at] = rng.u8(..),
        3 if at < bytes.len() => drop(bytes.remove(at)),
        _ => {
            let other = &seeds[rng.usize(..seeds.len())];
            let from = rng.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

#[test]
fn nothing_in_the_corpus_and_near_it_panics() {
    for (name, target) in TARGETS {
        smoke(name, target);
    }
}
