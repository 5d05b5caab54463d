//! On Linux. Measures the simulator: simulated requests per second of one core, and the time for a
//! day of the leaderboard.
//!
//! `cargo run --release -p heatsink-simulate --example measure` prints the table of
//! docs/explain/performance.md. With the name of a shipped scenario or a file it runs that one and
//! prints its runs.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measurement, run by hand"
)]

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::shipped::{SHIPPED, shipped};
use heatsink_simulate::{Report, simulate};

fn main() {
    match std::env::args().nth(1) {
        Some(name) => show(&name, std::env::args().nth(2)),
        None => measure(),
    }
}

fn show(name: &str, picture: Option<String>) {
    let loaded = match shipped(name) {
        Some(loaded) => loaded.unwrap(),
        None => read(&std::fs::read_to_string(name).unwrap()),
    };
    let (report, seconds) = timed(&loaded);
    println!("{}: {seconds:.2} s", report.about);
    for run in &report.runs {
        println!(
            "{}: {:.0} writes/s {:.0} reads/s ${:.0} {} partitions; {}",
            run.name,
            run.write_units_per_s,
            run.read_units_per_s,
            run.usd_per_month,
            run.partitions,
            run.breaks
        );
        for load in &run.workloads {
            println!(
                "    {} ({}): {:.2} % of {} throttled, p99 {:?}",
                load.name,
                load.operation,
                load.throttled_share * 100.0,
                load.offered,
                load.p99_ms
            );
        }
        println!("    {}", run.diagnosis);
    }
    if let Some(picture) = picture {
        std::fs::write(picture, report.svg()).unwrap();
    }
}

fn read(text: &str) -> Loaded {
    Loaded::read("measured.toml", text, &mut |path| std::fs::read_to_string(path), false).unwrap()
}

fn timed(loaded: &Loaded) -> (Report, f64) {
    let start = core_seconds();
    let report = simulate(loaded, &mut |_| {});
    (report, core_seconds() - start)
}

fn measure() {
    let zipf = "about = \"zipf\"\nduration = \"5m\"\n[[table]]\nname = \"T\"\nmode = \"provisioned\"\nread = 40_000\nwrite = 60_000\n\
        [[workload]]\nname = \"w\"\ntable = \"T\"\noperation = \"put\"\nrate = 50_000\nkey = { zipf = { prefix = \"k\", keys = 1_000_000 } }\n";
    let constant = "about = \"constant\"\nduration = \"1h\"\n[[table]]\nname = \"T\"\nmode = \"on-demand\"\n\
        [[workload]]\nname = \"w\"\ntable = \"T\"\noperation = \"put\"\nrate = 5_000\nkey = \"k\"\nsort = \"ascending\"\n";
    let (_, leaderboard) = SHIPPED.iter().find(|(name, _)| *name == "leaderboard").unwrap();
    let day = leaderboard
        .replace("duration = \"15m\"", "duration = \"24h\"")
        .replace("step = \"10s\"", "step = \"5m\"");
    for (what, text) in [
        ("zipf over a million keys", zipf),
        ("constant rate, one key", constant),
        ("a day of the leaderboard, all runs", &day),
    ] {
        let loaded = read(text);
        let (report, seconds) = timed(&loaded);
        let requests: u64 = report.runs.iter().map(|run| run.offered).sum();
        println!(
            "{what}: {requests} requests in {seconds:.2} s of one core: {:.1} million/s; peak memory {} MB",
            requests as f64 / seconds / 1e6,
            peak()
        );
    }
}

/// Seconds that this process had a core for, so that what else runs on the machine does not count.
fn core_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Most memory the process ever held, in MB; 0 where the system does not say.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1_024
}
