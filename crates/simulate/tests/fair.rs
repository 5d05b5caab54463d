//! Who is throttled where several workloads share what is too little for them: each in proportion
//! to what it asks for.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use std::collections::BTreeMap;

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::simulate;
use proptest::prelude::*;

const TABLE: &str =
    "about = \"x\"\nduration = \"60s\"\nstrict_keys = true\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n";

fn read(text: &str) -> Loaded {
    let mut trace =
        |_: &str| Ok((0..3_000).map(|n| format!("{},put,k,,100\n", f64::from(n) / 50.0)).collect());
    Loaded::read("test.toml", text, &mut trace, false).unwrap()
}

fn puts(name: &str, rate: u32, rest: &str) -> String {
    format!(
        "[[workload]]\nname = \"{name}\"\ntable = \"T\"\noperation = \"put\"\nrate = {rate}\nkey = \"k\"\n{rest}\n"
    )
}

/// Offered and accepted by workload.
fn counts(text: &str) -> BTreeMap<String, (u64, u64)> {
    let run = simulate(&read(text), &mut |_| {}).runs.remove(0);
    run.workloads.iter().map(|load| (load.name.clone(), (load.offered, load.accepted))).collect()
}

fn throttled((offered, accepted): (u64, u64)) -> f64 {
    1.0 - accepted as f64 / offered as f64
}

/// Both are throttled alike, but for chance (four standard deviations) and for the size of a part.
fn alike(quiet: (u64, u64), hot: (u64, u64)) -> bool {
    let share = throttled(hot);
    let chance = 4.0 * (share * (1.0 - share) / quiet.0 as f64).sqrt();
    (throttled(quiet) - share).abs() <= chance + 1.0 / 32.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_quiet_workload_beside_a_hot_one_is_throttled_as_it_is(
        quiet in prop_oneof![Just(1_u32), Just(5), Just(10), 1_u32..400], hot in 1_200_u32..9_000, seed in 1_u32..1_000,
        sort in prop_oneof![Just(""), Just("sort = \"one\""), Just("item_bytes = { from = 100, to = 900 }")],
        first: bool, reoffer: bool,
    ) {
        let client = if reoffer { "[client]\nreoffer = true\nattempts = 3\n" } else { "" };
        let head = format!("seed = {seed}\n{}", TABLE.replace("[[table]]", &format!("{client}[[table]]")));
        let mut loads = [puts("quiet", quiet, sort), puts("hot", hot, sort)];
        if first {
            loads.reverse();
        }
        let found = counts(&format!("{head}{}", loads.concat()));
        prop_assert!(alike(found["quiet"], found["hot"]), "{found:?}");
        // Whichever comes first in the file: the same counts to the last.
        loads.reverse();
        prop_assert_eq!(counts(&format!("{head}{}", loads.concat())), found);
    }
}

#[test]
fn a_recorded_workload_is_throttled_as_the_hot_one_beside_it() {
    let trace = "[[workload]]\nname = \"quiet\"\ntable = \"T\"\ntrace = \"t.csv\"\n";
    let found = counts(&format!("{TABLE}{}{trace}", puts("hot", 4_000, "")));
    assert_eq!(found["quiet"].0, 3_000);
    assert!(alike(found["quiet"], found["hot"]), "{found:?}");
}

#[test]
fn two_loaders_share_a_partition_by_what_they_offer() {
    let found = counts(&format!(
        "{TABLE}{}{}",
        puts("quiet", 100, "items = 100_000\nwindow = 10"),
        puts("hot", 4_000, "items = 1_000_000\nwindow = 1_000")
    ));
    assert!(alike(found["quiet"], found["hot"]), "{found:?}");
}

#[test]
fn every_item_of_a_loader_is_counted_once() {
    for items in [1_000, 7_777, 40_000] {
        let found =
            counts(&format!("{TABLE}{}", puts("load", 8_000, &format!("items = {items}\nwindow = 1_000"))));
        assert_eq!(found["load"].1, items, "of {items}");
    }
}
