//! The pictures of the documentation are those that the simulator draws, byte for byte, and a
//! picture's colours are the run's figures.
//!
//! `HEATSINK_DRAW=1 cargo test -p heatsink-simulate --test simulate pictures` draws them anew.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking; the files compared are the repository's own"
)]

use std::path::Path;

use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::shipped::shipped;
use heatsink_simulate::simulate;

fn draw(loaded: &Loaded) -> String {
    simulate(loaded, &mut |_| {}).svg()
}

fn read(name: &str, text: &str) -> Loaded {
    Loaded::read(name, text, &mut |_| Err(std::io::ErrorKind::NotFound.into()), false).unwrap()
}

fn compare(name: &str, drawn: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures").join(format!("{name}.svg"));
    if std::env::var_os("HEATSINK_DRAW").is_some() {
        std::fs::write(&file, drawn).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    let place = kept.lines().zip(drawn.lines()).position(|(a, b)| a != b);
    assert!(
        kept == drawn,
        "docs/pictures/{name}.svg is not what the simulator draws (first at line {:?}); HEATSINK_DRAW=1 draws it anew",
        place.map(|line| line + 1)
    );
}

#[test]
fn the_leaderboard_is_drawn_as_it_is_now() {
    compare("leaderboard", &draw(&shipped("leaderboard").unwrap().unwrap()));
}

#[test]
fn the_pictures_of_the_model_are_drawn_as_it_is_now() {
    for name in ["burst", "index-back-pressure", "on-demand-doubling", "replicas", "split-for-heat"] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios").join(format!("{name}.toml"));
        compare(name, &draw(&read(&format!("{name}.toml"), &std::fs::read_to_string(file).unwrap())));
    }
}

/// The fills of a picture's shapes, apart from the legend's.
fn fills(table: &str, workload: &str) -> Vec<String> {
    let text = format!(
        "about = \"x\"\nduration = \"60s\"\nstrict_keys = true\n[[table]]\nname = \"T\"\n{table}\n\
         [[workload]]\nname = \"w\"\ntable = \"T\"\n{workload}\n"
    );
    let svg = draw(&read("x.toml", &text));
    let paths = svg.lines().filter(|line| line.starts_with("<path") && line.contains("fill=\"#"));
    paths.filter_map(|line| Some(line.rsplit_once("fill=\"")?.1.get(..7)?.to_owned())).collect()
}

const CEILING: &str = "#d73a1f";
const TWICE: &str = "#ad1a1b";
const FIVE_TIMES: &str = "#26061a";
const THROTTLED: &str = "#e4572e";

#[test]
fn reads_are_measured_by_the_ceiling_of_reads() {
    let read = |consistency: &str, rate: u32| {
        let workload = format!(
            "operation = \"get\"\nconsistency = \"{consistency}\"\nrate = {rate}\nkey = \"k\"\nsort = \"one\""
        );
        fills("mode = \"on-demand\"", &workload)
    };
    for (consistency, ceiling) in [("strong", 3_000), ("eventual", 9_000)] {
        let full = read(consistency, ceiling);
        assert!(full.contains(&CEILING.to_owned()) && !full.contains(&TWICE.to_owned()), "{full:?}");
        let twice = read(consistency, 2 * ceiling);
        assert!(twice.contains(&TWICE.to_owned()) && !twice.contains(&FIVE_TIMES.to_owned()), "{twice:?}");
    }
    let five =
        fills("mode = \"on-demand\"", "operation = \"put\"\nrate = 5_000\nkey = \"k\"\nsort = \"one\"");
    assert!(five.contains(&FIVE_TIMES.to_owned()), "{five:?}");
}

#[test]
fn what_the_table_refuses_is_not_painted_on_its_partitions() {
    let found = fills(
        "mode = \"provisioned\"\nread = 10\nwrite = 200",
        "operation = \"put\"\nrate = 4_000\nkey = { uniform = { prefix = \"k\", keys = 1_000 } }",
    );
    assert!(found.contains(&THROTTLED.to_owned()), "most requests are throttled: {found:?}");
    assert!(![CEILING, TWICE, FIVE_TIMES].iter().any(|hot| found.contains(&(*hot).to_owned())), "{found:?}");
}
