//! Hot keys that get something else than shards by a hash without being asked for: ranges of their
//! sort keys, and answers from memory.
//!
//! Not here: which remedy fits (`heatsink_heat`), how an answer is given again (`heatsink_gateway`).

use heatsink_heat::{KeyLoad, Refused};

use crate::automatic::{hot, rules, sees};
use crate::town::Town;

/// The same load, of which pages are read, with writes to these items.
fn read_in_pages(load: KeyLoad, written: impl Iterator<Item = usize>) -> KeyLoad {
    let written = written.map(|number| format!("{{\"S\":\"x{number:04}-old\"}}")).collect();
    KeyLoad { growing: 0.0, reads: 30.0, queries: 10.0, written, ..load }
}

#[test]
fn a_key_that_is_read_in_pages_gets_ranges_where_its_section_allows_it() {
    for allowed in [true, false] {
        let section = format!("mode = \"auto\"\npatience = \"0s\"\nranges = {allowed}");
        let town = Town::new(&rules(&section));
        let _carried = town.carry();
        town.fill("game_x", 200);
        // The deciding gateway knows the sort keys that another one saw.
        let blind = read_in_pages(hot("game_x", 1_500.0, 3_000.0), 0..0);
        let seeing = read_in_pages(hot("game_x", 1_500.0, 3_000.0), (0..200).step_by(5));
        let _acting = sees(&town, &[blind.clone(), seeing, blind].map(|load| vec![load]));
        town.until("shards", || (town.shards("game_x") > 1).then_some(()));
        town.ended("game_x");
        let record = town.record("game_x").unwrap();
        let points = record.layout.split_points().map(ToString::to_string);
        assert_eq!(points.is_some(), allowed, "{points:?}");
        assert_eq!(town.old(), 200);
        let most = town.lies("game_x").into_values().max().unwrap();
        assert!(most <= 70, "the largest of its parts has {most} of 200 items");
    }
}

#[test]
fn what_is_read_again_and_again_is_answered_from_memory_by_all_gateways() {
    let again = |key: &str| KeyLoad {
        reads: 1_800.0,
        queries: 450.0,
        requests: 450.0,
        throttled: 200.0,
        reads_refused: Refused {
            requests: 450.0,
            throttled: 200.0,
            by_partition: 200.0,
            ..Refused::default()
        },
        same_page: 0.9,
        ..KeyLoad { writes: 0.0, writes_refused: Refused::default(), growing: 0.0, ..hot(key, 1.0, 1.0) }
    };
    let section = "keys = \"game_*\"\nmode = \"auto\"\ncache_max_age_ms = 100";
    let town = Town::new(&rules(section));
    let third = vec![again("game_x"), again("user_x")];
    let acting = sees(&town, &[third.clone(), third.clone(), third]);
    town.until("answers from memory", || {
        town.controls.iter().all(heatsink_control::Control::shares_calls).then_some(())
    });
    let decided = town.until("a decision", || {
        let shown = acting.iter().map(|one| one.acts.shown());
        shown.flat_map(|shown| shown["decisions"].as_array().cloned().unwrap()).next()
    });
    assert_eq!(
        (&decided["key"], &decided["what"], &decided["outcome"]),
        (&"game_x".into(), &"cache".into(), &"asked".into())
    );
    assert!(town.intent("game_x").is_none() && town.record("game_x").is_none(), "nothing is on record");
    assert!(acting.iter().all(|one| one.reason("game_x").is_none()), "it is not left alone");
}
