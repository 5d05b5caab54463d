//! A gateway's recording: what a sample stands for is what is replayed, and the remedies act on it
//! as on the traffic itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use std::borrow::Cow;

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::{Report, Run, scenario_of_trace, simulate};
use heatsink_trace::{Access, End, Ended, Header, Line, Operation, VERSION};

const SECONDS: u64 = 60;

/// The recording of a table with one hot key, of which one request in `weight` is kept.
struct Traffic {
    weight: u32,
    lines: Vec<u8>,
    /// Of so many requests one was throttled; 0 for none.
    throttled: u64,
}

impl Traffic {
    fn new(weight: u32) -> Traffic {
        let mut lines = Vec::new();
        Line::Trace(Header { version: VERSION, ..Header::default() }).write(&mut lines);
        Traffic { weight, lines, throttled: 0 }
    }

    /// `rate` requests a second; `sort`: what tells the nth of them from others.
    fn add(&mut self, op: Operation, key: &str, rate: u64, sort: impl Fn(u64) -> String) {
        let kept = rate * SECONDS / u64::from(self.weight);
        for nth in 0..kept {
            let writes = matches!(op, Operation::Put | Operation::Update);
            let told = Some(Cow::Owned(sort(nth)));
            let access = Access {
                us: nth * 1_000_000 * u64::from(self.weight) / rate,
                table: Cow::Borrowed("T"),
                index: None,
                op,
                key: Some(Cow::Borrowed(key)),
                sort: told.clone().filter(|_| writes),
                grows: false,
                page: told.filter(|_| !writes),
                units: if op == Operation::Query { 5_000 } else { 1_000 },
                bytes: if op == Operation::Query { 40_000 } else { 400 },
                items: if op == Operation::Query { 100 } else { 1 },
                strong: false,
                throttled: self.throttled > 0 && nth % self.throttled == 0,
                weight: self.weight,
            };
            Line::Access(access).write(&mut self.lines);
        }
    }

    /// The scenario that is made of it.
    fn scenario(&self) -> String {
        let mut lines = self.lines.clone();
        let us = SECONDS * 1_000_000;
        Line::End(End { us, recorded: 0, dropped: 0, because: Ended::Stopped }).write(&mut lines);
        scenario_of_trace("t", &String::from_utf8(lines).unwrap(), false).unwrap()
    }

    fn report(mut self) -> Report {
        let us = SECONDS * 1_000_000;
        Line::End(End { us, recorded: 0, dropped: 0, because: Ended::Stopped }).write(&mut self.lines);
        let text = String::from_utf8(self.lines).unwrap();
        let scenario = scenario_of_trace("t", &text, false).unwrap();
        let loaded = Loaded::read("t.toml", &scenario, &mut |_| Ok(text.clone()), false).unwrap();
        simulate(&loaded, &mut |_| {})
    }
}

fn run<'a>(report: &'a Report, name: &str) -> &'a Run {
    report.runs.iter().find(|run| run.name.starts_with(name)).unwrap()
}

/// Spread over all sort keys.
fn scattered(nth: u64) -> String {
    format!("{:016x}", nth.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
fn a_sample_fares_as_the_traffic_that_it_stands_for() {
    let of = |weight| {
        let mut traffic = Traffic::new(weight);
        traffic.add(Operation::Put, "hot", 3_000, scattered);
        traffic.add(Operation::Put, "cold", 200, scattered);
        traffic.report()
    };
    let (whole, sampled) = (of(1), of(32));
    for name in ["nothing", "write sharding", "Heatsink"] {
        let (whole, sampled) = (run(&whole, name), run(&sampled, name));
        let off = (sampled.offered as f64 / whole.offered as f64 - 1.0).abs();
        assert!(off < 0.01, "{name}: {} of {}", sampled.offered, whole.offered);
        assert_eq!(sampled.name, whole.name);
        let shares = (whole.throttled_share, sampled.throttled_share);
        assert!((shares.0 - shares.1).abs() < 0.03, "{name}: {shares:?}");
    }
    assert!(run(&whole, "nothing").throttled_share > 0.55);
    assert!(run(&whole, "Heatsink, advised N = ").throttled_share < 0.01);
}

#[test]
fn a_split_helps_scattered_sort_keys_and_shards_help_those_that_grow() {
    let mut traffic = Traffic::new(1);
    traffic.add(Operation::Put, "log", 2_500, |nth| format!("{nth:012}"));
    let report = traffic.report();
    let nothing = run(&report, "nothing").throttled_share;
    assert!(nothing > 0.5, "{nothing}");
    assert!((run(&report, "waiting").throttled_share - nothing).abs() < 0.02);
    assert!(run(&report, "Heatsink, advised N = ").throttled_share < 0.01);
}

#[test]
fn one_item_is_not_helped_by_shards_and_one_page_is_by_a_cache() {
    let mut traffic = Traffic::new(32);
    traffic.add(Operation::Update, "counter", 3_000, |_| "total".to_owned());
    traffic.add(Operation::Query, "board", 2_000, |_| "top 100".to_owned());
    let report = traffic.report();
    let load = |name: &str, of: &str| {
        let loads = &run(&report, name).workloads;
        loads.iter().find(|load| load.name.starts_with(of)).unwrap().throttled_share
    };
    assert!(load("nothing", "update") > 0.6 && load("write sharding", "update") > 0.6);
    assert!(load("nothing", "query") > 0.4 && load("read cache", "query") < 0.001);
    let advised = run(&report, "Heatsink, advised: nothing");
    let settings = ["`cache_max_age_ms = 100`", "`combine = true`"];
    assert!(settings.iter().all(|setting| advised.breaks.contains(setting)), "{}", advised.breaks);
}

#[test]
fn pages_over_shards_cost_what_the_gateway_would_pay() {
    let mut traffic = Traffic::new(1);
    traffic.add(Operation::Query, "board", 100, scattered);
    let report = traffic.report();
    let of = |name: &str| &run(&report, name).workloads[0];
    assert_eq!((of("nothing").units_per_request, of("nothing").requests_per_request), (5.0, 1));
    let sharded = of("write sharding, N = 10");
    assert_eq!((sharded.units_per_request, sharded.requests_per_request), (10.0, 10));
}

#[test]
fn a_table_that_refused_takes_what_it_took_and_a_full_partition_says_nothing_of_it() {
    let mut table = Traffic { throttled: 5, ..Traffic::new(1) };
    for key in 0..10 {
        table.add(Operation::Put, &format!("warm-{key}"), 100, scattered);
    }
    let scenario = table.scenario();
    assert!(
        scenario.contains("measured = \"20.0 % of all requests were throttled in the recording\""),
        "{scenario}"
    );
    assert!(scenario.contains("\nwrite = 800\n") && !scenario.contains("\nread = "), "{scenario}");
    let report = table.report();
    let share = run(&report, "nothing").throttled_share;
    assert!((share - 0.2).abs() < 0.02, "{share}");

    let mut partition = Traffic { throttled: 5, ..Traffic::new(1) };
    partition.add(Operation::Put, "hot", 1_250, scattered);
    let scenario = partition.scenario();
    assert!(!scenario.contains("\nwrite = "), "{scenario}");
}
