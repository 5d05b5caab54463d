//! What was measured on AWS, run as the shipped scenarios:
//! docs/explain/partitions.md#tested-against, the runs B1 to B5 and S1 to S9.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use heatsink_simulate::shipped::shipped;
use heatsink_simulate::{Point, Report, Run, simulate};

fn report(name: &str) -> Report {
    simulate(&shipped(name).unwrap().unwrap(), &mut |_| {})
}

fn only(name: &str) -> Run {
    report(name).runs.remove(0)
}

/// Mean of a reading over the points that end within a stretch of seconds.
fn mean(run: &Run, from: f64, to: f64, of: fn(&Point) -> f64) -> f64 {
    let points: Vec<f64> =
        run.series.iter().filter(|point| point.seconds > from && point.seconds <= to).map(of).collect();
    points.iter().sum::<f64>() / points.len() as f64
}

fn writes(run: &Run, from: f64, to: f64) -> f64 {
    mean(run, from, to, |point| point.write_units)
}

fn reads(run: &Run, from: f64, to: f64) -> f64 {
    mean(run, from, to, |point| point.read_units)
}

/// When the last item of a load was in.
fn done(run: &Run) -> f64 {
    run.series.iter().filter(|point| point.accepted > 0.0).map(|point| point.seconds).fold(0.0, f64::max)
}

#[test]
fn b1_one_key_takes_a_flat_thousand() {
    let run = only("aws-b1");
    for minute in 1..5 {
        let rate = writes(&run, f64::from(minute) * 60.0, f64::from(minute + 1) * 60.0);
        assert!((980.0..=1_020.0).contains(&rate), "{rate}");
    }
    assert_eq!(run.partitions, 4, "ascending sort keys: no split");
}

#[test]
fn b2_a_rolling_hot_partition() {
    let run = only("aws-b2");
    let rate = run.accepted as f64 / done(&run);
    assert!((1_000.0..=1_500.0).contains(&rate), "{rate}");
}

#[test]
fn b3_shuffled_uses_all_four_partitions() {
    let run = only("aws-b3");
    let minute = writes(&run, 20.0, 80.0);
    assert!((3_400.0..=4_000.0).contains(&minute), "{minute}");
    assert!(run.accepted == 360_000 && done(&run) < 120.0, "{} in {}", run.accepted, done(&run));
}

#[test]
fn b4_ten_thousand_provisioned() {
    let run = only("aws-b4");
    let rate = writes(&run, 0.0, 60.0);
    assert!(rate >= 5_999.0, "{rate}");
    let peak = run.series.iter().map(|point| point.write_units).fold(0.0, f64::max);
    assert!(peak > 7_000.0, "{peak}");
    assert!(done(&run) < 60.0);
}

#[test]
fn b5_three_replicas_answer_eventual_reads() {
    let run = only("aws-b5");
    let rates: Vec<f64> = run.workloads.iter().map(|load| load.accepted as f64 / 300.0).collect();
    assert!((8_900.0..=9_100.0).contains(&rates[0]), "{rates:?}");
    assert!((2_980.0..=3_020.0).contains(&rates[1]), "{rates:?}");
}

#[test]
fn s1_s2_filling_then_reading() {
    // A split's halves share what the bucket held, which may cost a handful.
    assert!(only("stone-s1").throttled_share < 0.000_1);
    let run = only("stone-s2");
    assert!(run.workloads[1].throttled_share < 0.03, "{:?}", run.workloads[1]);
    assert!(reads(&run, 1_100.0, 1_200.0) > 5_900.0);
}

#[test]
fn s3_a_plateau_then_a_split() {
    let run = only("stone-s3");
    let plateau = reads(&run, 660.0, 900.0);
    assert!((5_800.0..=6_200.0).contains(&plateau), "{plateau}");
    let after = reads(&run, 1_140.0, 1_200.0);
    assert!(after > 8_900.0, "{after}");
    let risen = run.series.iter().find(|point| point.seconds > 620.0 && point.read_units > 8_000.0);
    let minutes = (risen.unwrap().seconds - 600.0) / 60.0;
    assert!((5.0..=9.0).contains(&minutes), "split after {minutes} minutes; measured about 8");
}

#[test]
fn s4_more_on_what_was_split() {
    let run = only("stone-s4");
    let share = run.workloads[2].throttled_share;
    assert!(share > 0.0 && share < 0.12, "small throttling: {share}");
}

#[test]
fn s5_at_once_throttles_heavily() {
    let run = only("stone-s5");
    assert!(run.throttled_share > 0.25, "{}", run.throttled_share);
}

#[test]
fn s6_s7_s8_splits_stay_with_their_key() {
    let ramp = only("stone-s6");
    assert!(ramp.throttled > 0 && ramp.throttled_share < 0.1, "{}", ramp.throttled_share);
    let again = only("stone-s7");
    let fresh = only("stone-s8");
    let (settled, new) = (again.workloads[2].throttled_share, fresh.workloads[0].throttled_share);
    assert_eq!(
        again.workloads.iter().map(|load| load.name.as_str()).collect::<Vec<_>>()[2..],
        ["write", "read"]
    );
    assert_eq!((settled, again.workloads[3].throttled_share), (0.0, 0.0), "measured: none");
    assert!(new > 0.1, "a new key starts over: {new}");
}

#[test]
fn s9_every_change_adds_a_thousand() {
    let run = only("stone-s9");
    let rates: Vec<f64> = run.series.iter().map(|point| point.write_units).collect();
    // Plateaus lie near whole thousands, and rise by one at a time, at random distances.
    let level = |rate: f64| (rate / 1_000.0).round();
    let mut levels: Vec<(f64, f64)> = Vec::new();
    for (rate, point) in rates.iter().zip(&run.series).skip(2) {
        if levels.last().is_none_or(|(last, _)| level(*rate) > *last) {
            levels.push((level(*rate), point.seconds));
        }
    }
    let steps: Vec<f64> = levels.iter().map(|(level, _)| *level).collect();
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0], "{levels:?}");
    assert!(levels[1].1 - levels[0].1 > 240.0, "minutes, not seconds: {levels:?}");
    assert!(levels[3].1 - levels[0].1 < 4_800.0, "{levels:?}");
}
