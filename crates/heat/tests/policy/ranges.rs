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
fn ten_ranges_that_burn_are_relieved() {
    let points: Vec<u64> = (1..10).map(|at| at * 30_000).collect();
    // Of 5,000 units 3,650 are for the last range.
    let seconds = relief(&Scene::in_ranges(&points, 5_000.0, true));
    println!("ten ranges: {seconds:?} s");
    assert!(seconds.is_some_and(|seconds| seconds <= 8), "{seconds:?}");
}
