//! What ranges, the gateways' cache and combined writes leave for the partitions, in exact figures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::{Load, Run, simulate};

/// Runs workloads on a table whose 40 partitions are no limit, for 60 seconds under a remedy.
fn run(workloads: &str, remedy: &str) -> Run {
    let text = format!(
        "about = \"x\"\nduration = \"60s\"\nstrict_keys = true\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n\
         warm_write = 40_000\nwarm_read = 120_000\nitems = 1_000\n{workloads}\n[[remedy]]\n{remedy}\n"
    );
    let loaded = Loaded::read("t.toml", &text, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false);
    simulate(&loaded.unwrap(), &mut |_| {}).runs.remove(0)
}

fn load(name: &str, operation: &str, rate: u32, rest: &str) -> String {
    format!(
        "[[workload]]\nname = \"{name}\"\ntable = \"T\"\noperation = \"{operation}\"\nrate = {rate}\nkey = \"k\"\n{rest}\n"
    )
}

fn of<'a>(run: &'a Run, name: &str) -> &'a Load {
    run.workloads.iter().find(|load| load.name == name).unwrap()
}

/// Another key is on another partition, whose replicas are asked by other chances.
fn about(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 100 < expected
}

const RANGES: &str = "kind = \"range\"\nshards = 4";

#[test]
fn ranges_take_random_writes_evenly_and_growing_ones_at_their_end() {
    let with = |sort: &str, remedy: &str| {
        let run = run(&load("w", "put", 3_200, &format!("sort = \"{sort}\"")), remedy);
        (of(&run, "w").accepted, run.throttled)
    };
    // A table on demand begins with little to spare.
    let (_, throttled) = with("random", RANGES);
    assert!(throttled < 100, "{throttled} of 192,000");
    let whole = with("ascending", "kind = \"nothing\"").1;
    assert!(whole > 90_000, "{whole}");
    assert!(about(with("ascending", RANGES).1, whole), "one range takes what one key took");
    let both = load("one", "put", 3_200, "sort = \"one\"") + &load("r", "query", 1, "");
    assert_eq!(
        run(&both, RANGES).throttled,
        run(&both, "kind = \"nothing\"").throttled,
        "range 0 is the key"
    );
}

#[test]
fn a_page_costs_what_it_costs_of_one_key_as_long_as_its_range_holds_it() {
    for (limit, requests, units) in [(100, 1, 2.5), (250, 1, 6.5), (251, 3, 7.5), (1_000, 4, 26.0)] {
        let run = run(&load("r", "query", 10, &format!("limit = {limit}")), RANGES);
        let page = of(&run, "r");
        assert_eq!((page.requests_per_request, page.units_per_request), (requests, units), "{limit}");
    }
}

#[test]
fn pages_at_one_end_are_read_from_one_range_and_others_from_all() {
    // 2.5 units each: 10,000 units/s of 3,000 that a range takes.
    let with = |page: &str, remedy: &str| {
        run(&load("r", "query", 4_000, &format!("limit = 100\n{page}")), remedy).throttled
    };
    let whole = with("", "kind = \"nothing\"");
    assert!(whole > 100_000, "{whole}");
    for page in ["page = \"last\"", "page = \"first\"", ""] {
        assert!(about(with(page, RANGES), whole), "{page}");
    }
    let anywhere = with("page = \"any\"", RANGES);
    assert!(anywhere < 100, "{anywhere} of 240,000");
}

#[test]
fn single_items_are_read_from_their_ranges() {
    let parts = "part = { uniform = { prefix = \"p\", keys = 10_000 } }";
    for rest in [parts, ""] {
        let run = run(&load("g", "get", 12_000, rest), RANGES);
        assert!(run.throttled < 300, "{} of 720,000, {rest}", run.throttled);
        assert_eq!((of(&run, "g").requests_per_request, of(&run, "g").units_per_request), (1, 0.5));
    }
}

#[test]
fn other_keys_than_the_remedys_stay_whole() {
    let run = run(&load("w", "put", 4_000, ""), &format!("{RANGES}\nkey = \"other\""));
    assert!(of(&run, "w").throttled_share > 0.7);
}

#[test]
fn equal_reads_reach_the_table_once_for_each_gateway_and_age() {
    for (more, sent) in [("", 30 * 60), ("max_age = \"10ms\"\ngateways = 2", 200 * 60)] {
        let run =
            run(&load("r", "query", 12_000, "limit = 100"), &format!("kind = \"gateway-cache\"\n{more}"));
        let page = of(&run, "r");
        assert_eq!((page.offered - page.cached, page.throttled), (sent, 0), "{more}");
        assert!((run.read_units_per_s - sent as f64 / 60.0 * 2.5).abs() < 1e-3);
    }
    // Reads that are not equal, not eventually consistent or of other items are sent.
    for rest in ["limit = 100\npage = \"any\"", "limit = 100\nconsistency = \"strong\""] {
        let both = load("r", "query", 100, rest) + &load("g", "get", 100, "sort = \"one\"");
        let run = run(&both, "kind = \"gateway-cache\"");
        assert_eq!((of(&run, "r").cached, of(&run, "g").cached), (0, 60 * (100 - 30)), "{rest}");
    }
}

#[test]
fn a_write_of_the_key_drops_its_answers() {
    let with = |writes: u32, key: &str| {
        let puts = load("w", "put", writes, "").replace("\"k\"", key);
        let run = run(&(load("r", "query", 900, "limit = 100") + &puts), "kind = \"gateway-cache\"");
        of(&run, "r").offered - of(&run, "r").cached
    };
    // As many writes as reads: of those that an answer's age would let pass every second one.
    assert_eq!(with(900, "\"k\""), 60 * 30 + 60 * (900 - 30) / 2);
    assert_eq!(with(100, "\"k\""), 60 * 30 + 60 * (900 - 30) / 10);
    assert_eq!(with(900, "\"another\""), 60 * 30);
}

#[test]
fn writes_of_one_item_go_as_many_as_gateways_have_under_way() {
    for (more, sent) in [("", 600), ("gateways = 1", 200), ("latency = \"20ms\"\ngateways = 4", 200)] {
        let run = run(&load("w", "update", 5_000, "sort = \"one\""), &format!("kind = \"combine\"\n{more}"));
        let adds = of(&run, "w");
        assert_eq!((adds.offered, adds.accepted), (300_000, 300_000), "{more}");
        assert!((run.write_units_per_s - f64::from(sent)).abs() < 1e-3, "{} {more}", run.write_units_per_s);
    }
    // Few writes are not held back, and others are not combined.
    let few = run(&load("w", "update", 20, "sort = \"one\""), "kind = \"combine\"");
    assert!((few.write_units_per_s - 20.0).abs() < 1e-3);
    let both = load("w", "put", 900, "") + &load("v", "put", 10, "sort = \"one\"");
    assert!((run(&both, "kind = \"combine\"").write_units_per_s - 910.0).abs() < 1e-3);
}

#[test]
fn a_refused_write_is_refused_for_all_that_went_with_it() {
    // 600 writes/s of 5 units each: three thirds of a partition are not enough.
    let run = run(&load("w", "update", 5_000, "sort = \"one\"\nitem_bytes = 5_000"), "kind = \"combine\"");
    let share = of(&run, "w").throttled_share;
    assert!((0.6..0.68).contains(&share), "{share}");
}

#[test]
fn a_cache_knows_the_items_of_a_key_apart() {
    let parts = "part = { uniform = { prefix = \"p\", keys = 10_000 } }";
    for (kind, most) in [("read-cache", 600 * 60), ("gateway-cache", 60 * 60)] {
        let run = run(&load("g", "get", 1_000, parts), &format!("kind = \"{kind}\""));
        // An item is asked for every ten seconds, at one of three nodes.
        assert!(of(&run, "g").cached < most / 10, "{kind}: {}", of(&run, "g").cached);
    }
}
