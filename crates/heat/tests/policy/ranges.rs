//! Keys that lie in ranges of their sort keys: one that burns is split, and relieved.

use crate::scene::{BEGIN, Scene};
use crate::world::play;

/// Seconds from the first refusal on until less than 1 % is refused in each later second.
fn relief(scene: &Scene) -> Option<usize> {
    let story = play(scene, true);
    for change in &story.changes {
        println!("{} ms: {}", change.at, change.sentence);
    }
    for (reason, sentence) in story.left.values() {
        println!("left alone: {reason:?}: {sentence}");
    }
    let burns = |(asked, refused): &(u32, u32)| *refused * 100 >= *asked && *asked > 0;
    let first = story.bins[0].iter().position(burns)?;
    let last = story.bins[0].iter().rposition(burns)?;
    assert!(first >= BEGIN as usize);
    (last + 1 < story.bins[0].len()).then_some(last + 1 - first)
}

#[test]
fn a_range_that_burns_is_relieved_in_five_seconds() {
    for told in [true, false] {
        // Nine tenths of 2,500 units are for the second range.
        let seconds = relief(&Scene::in_ranges(&[100_000], 2_500.0, told));
        println!("a range, partitions told: {told}: {seconds:?} s");
        assert!(seconds.is_some_and(|seconds| seconds <= 5), "{seconds:?}");
    }
}

#[test]
fn a_whole_key_whose_pages_are_read_gets_ranges() {
    for told in [true, false] {
        let scene = Scene::read_in_pages(5_000.0, told);
        let story = play(&scene, true);
        assert!(story.changes.iter().all(|change| change.in_ranges), "{:?}", story.changes);
        let seconds = relief(&scene);
        println!("a whole key of 5,000 units, partitions told: {told}: {seconds:?} s");
        assert!(seconds.is_some_and(|seconds| seconds <= 8), "{seconds:?}");
        // Where sort keys grow, all new items would lie in the last range.
        let mut growing = Scene::read_in_pages(5_000.0, told);
        growing.keys[0].growing = true;
        let story = play(&growing, true);
        assert!(!story.changes.is_empty() && story.changes.iter().all(|change| !change.in_ranges));
    }
}

#[test]
fn ten_ranges_that_burn_are_relieved() {
    let points: Vec<u64> = (1..10).map(|at| at * 30_000).collect();
    // Of 5,000 units 3,650 are for the last range.
    let seconds = relief(&Scene::in_ranges(&points, 5_000.0, true));
    println!("ten ranges: {seconds:?} s");
    assert!(seconds.is_some_and(|seconds| seconds <= 8), "{seconds:?}");
}
