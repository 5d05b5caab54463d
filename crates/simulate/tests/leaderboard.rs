//! The account of the viral leaderboard: what each of the nine remedies does, and what the chance
//! of colliding shards comes to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::shipped::SHIPPED;
use heatsink_simulate::{Report, Run, simulate};

fn read(text: &str) -> Report {
    let loaded = Loaded::read("test.toml", text, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false);
    simulate(&loaded.unwrap(), &mut |_| {})
}

fn shares(run: &Run) -> (f64, f64) {
    (run.workloads[0].throttled_share, run.workloads[1].throttled_share)
}

#[test]
fn nine_remedies_side_by_side() {
    let (_, text) = SHIPPED.iter().find(|(name, _)| *name == "leaderboard").unwrap();
    let report = read(
        &text.replace("duration = \"15m\"", "duration = \"4m\"").replace("every = \"5m\"", "every = \"4m\""),
    );
    let names: Vec<&str> = report.runs.iter().map(|run| run.name.as_str()).collect();
    let (advised, names) = names.split_last().unwrap();
    // No count is within the risk that `heatsink shards` allows.
    assert_eq!(*advised, "Heatsink, N = 10, not advised: risk 54.8 %");
    assert_eq!(
        names,
        [
            "nothing",
            "raise capacity",
            "adaptive capacity",
            "on-demand",
            "read cache in front",
            "index on another key",
            "key turned round",
            "write sharding, N = 10",
            "ranges, N = 10",
            "the gateways' cache, 100 ms"
        ]
    );
    let run = |name: &str| report.runs.iter().find(|run| run.name.starts_with(name)).unwrap();
    let (writes, reads) = shares(run("nothing"));
    assert!((0.79..=0.83).contains(&writes), "{writes}");
    assert!(reads > 0.6, "{reads}");
    for useless in ["raise", "adaptive", "on-demand", "index"] {
        let (w, r) = shares(run(useless));
        assert!((w - writes).abs() < 0.01 && (r - reads).abs() < 0.01, "{useless}: {w} {r}");
    }
    assert!(run("raise").usd_per_month > 1.9 * run("nothing").usd_per_month);
    let (w, r) = shares(run("read cache"));
    assert!((w - writes).abs() < 0.01 && r == 0.0, "{w} {r}");
    let turned = run("key turned round");
    assert!(turned.workloads[0].throttled_share < 0.001);
    assert_eq!(turned.workloads[1].operation, "scan");
    assert!(turned.workloads[1].units_per_request > 10_000.0, "a Scan's cost is shown");
    assert!(turned.breaks.contains("Scan") && turned.breaks.contains('$'), "{}", turned.breaks);
    let sharded = run("write sharding");
    assert!(sharded.workloads[0].throttled_share < 0.05);
    assert_eq!(sharded.workloads[1].requests_per_request, 10);
    assert!((sharded.usd_per_month - run("nothing").usd_per_month).abs() < 1.0, "cost stays");
    assert!(sharded.p99_ms < run("nothing").p99_ms);
    let ranges = run("ranges");
    let (w, r) = shares(ranges);
    assert!(w < 0.05, "ranges take random scores as shards do: {w}");
    assert!((r - reads).abs() < 0.02, "but all of the top 100 is read from the last: {r}");
    assert_eq!(ranges.workloads[1].requests_per_request, 1);
    assert_eq!(ranges.workloads[1].units_per_request, run("nothing").workloads[1].units_per_request);
    let cache = run("the gateways' cache");
    let (w, r) = shares(cache);
    assert!((w - writes).abs() < 0.01, "writes pass through it: {w}");
    // 5,000 writes/s to 4,800 reads/s, 7,000 in bursts: not one read in two follows another.
    let saved = cache.workloads[1].cached as f64 / cache.workloads[1].offered as f64;
    assert!((0.46..0.49).contains(&saved), "{saved}");
    assert!(r > 0.1 && r < reads / 2.0, "{r}");
    assert!(cache.usd_per_month < run("nothing").usd_per_month + 1.0, "no nodes to pay for");
    let (w, r) = shares(run("Heatsink"));
    assert!(w < 0.05 && r < reads / 2.0, "{w} {r}");
}

/// Throttled share of 5,000 writes/s over ten shards of one key, in its first five minutes and its
/// last two.
fn sharded(game: usize) -> (f64, f64) {
    let text = format!(
        "about = \"x\"\nduration = \"14m\"\nstep = \"10s\"\nstrict_keys = true\n\
         [[table]]\nname = \"T\"\nmode = \"provisioned\"\nread = 90_000\nwrite = 30_000\n\
         [[workload]]\nname = \"w\"\ntable = \"T\"\noperation = \"put\"\nrate = 5_000\nkey = \"game_{game}\"\n\
         part = {{ uniform = {{ prefix = \"player_\", keys = 20_000 }} }}\n\
         [[remedy]]\nkind = \"write-sharding\"\nshards = 10\n"
    );
    let report = read(&text);
    let share = |from: f64, to: f64| {
        let points: Vec<_> = report.runs[0]
            .series
            .iter()
            .filter(|point| point.seconds > from && point.seconds <= to)
            .collect();
        points.iter().map(|point| point.throttled).sum::<f64>()
            / points.iter().map(|point| point.offered).sum::<f64>()
    };
    (share(10.0, 300.0), share(720.0, 840.0))
}

#[test]
fn fifty_key_names_before_and_after_dynamodb_parts_colliding_shards() {
    let found: Vec<(f64, f64)> = (0..50).map(sharded).collect();
    let over = |limit: f64| found.iter().filter(|(before, _)| *before > limit).count();
    // Ten keys on 60 partitions: two meet with 55 %, three with 3 % (exact); two that meet are just
    // at the ceiling.
    println!(
        "over 0.1 %: {}, over 5 %: {}, worst {:.3}",
        over(0.001),
        over(0.05),
        found.iter().map(|(before, _)| *before).fold(0.0, f64::max)
    );
    assert!((8..=40).contains(&over(0.000_5)), "{found:?}");
    assert!(over(0.05) <= 8, "{found:?}");
    let worst = found.iter().map(|(_, after)| *after).fold(0.0, f64::max);
    assert!(worst < 0.001, "DynamoDB's split can always part two keys: {found:?}");
}
