//! `heatsink-lab plan`: the same shard count as `heatsink shards`, and nothing where nothing is
//! needed.

use serde_json::Value as Json;

use crate::command::{TestDir, text};

fn plan(place: &TestDir, arguments: &str) -> Json {
    let arguments: Vec<&str> = arguments.split(' ').chain(["--output", "json"]).collect();
    let done = place.run(&arguments);
    assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_advised_shards_carry_the_load() {
    let place = TestDir::new("plan");
    let rates = "--writes 5000 --peak 7000 --reads 600 --page 100";
    let shards =
        &plan(&place, &format!("shards {rates} --item-bytes 400 --partitions 60"))["recommended"]["shards"];
    let planned = plan(
        &place,
        &format!("plan {rates} --item 400 --partitions 60 --growing --table Boards --key game_x"),
    );
    let recommended = &planned["recommendation"];
    assert_eq!(&recommended["diagnosis"]["shards"], shards, "{planned}");
    assert_eq!(
        recommended["command"],
        format!("heatsink reshard start Boards game_x --shards {shards} --upstream URL")
    );
    let rule = recommended["rule"].as_str().unwrap();
    assert!(
        rule.contains("table    = \"Boards\"") && rule.contains(&format!("shards   = {shards}")),
        "{rule}"
    );
    let remedies = planned["remedies"].as_array().unwrap();
    let names: Vec<&str> = remedies.iter().map(|remedy| remedy["name"].as_str().unwrap()).collect();
    let advised = format!("Heatsink, advised N = {shards}");
    assert_eq!(
        names,
        [
            "nothing",
            "waiting for DynamoDB's split",
            "read cache in front",
            "the gateways' cache, 100 ms",
            "daily bucket",
            advised.as_str()
        ],
        "no ranges where sort keys grow"
    );
    let share = |nth: usize| remedies[nth]["writes_throttled_share"].as_f64().unwrap();
    assert!(
        share(0) > 0.75 && share(1) > 0.75 && share(2) > 0.75,
        "sort keys that grow are not split: {planned}"
    );
    assert!(share(5) < 0.001, "{planned}");
    assert!(recommended["usd_more_per_month"].as_f64().unwrap() > 0.0);
}

#[test]
fn ranges_stand_beside_as_many_shards() {
    let place = TestDir::new("plan-ranges");
    let planned = plan(&place, "plan --writes 2500 --reads 400 --partitions 60");
    let shards = &planned["recommendation"]["diagnosis"]["shards"];
    let of = |name: String| {
        let remedies = planned["remedies"].as_array().unwrap();
        remedies
            .iter()
            .find(|remedy| remedy["name"] == name.as_str())
            .unwrap_or_else(|| panic!("{name}: {planned}"))
    };
    let (ranges, hashed) =
        (of(format!("ranges, N = {shards}")), of(format!("Heatsink, advised N = {shards}")));
    for remedy in [ranges, hashed] {
        assert!(remedy["throttled_share"].as_f64().unwrap() < 0.001, "{planned}");
    }
    let recommended = &planned["recommendation"];
    assert_eq!(recommended["diagnosis"]["strategy"], "range", "{planned}");
    assert!(recommended["command"].as_str().unwrap().contains("--strategy range --shards"), "{planned}");
    assert!(recommended["rule"].is_null(), "its points are not known: {planned}");
    // A page of one range against a page of every shard.
    let month = |remedy: &Json| remedy["usd_per_month"].as_f64().unwrap();
    assert!(month(ranges) < month(hashed), "{planned}");
    assert_eq!(
        plan(&place, "plan --writes 300")["remedies"].as_array().unwrap().len(),
        5,
        "no cache without reads"
    );
}

#[test]
fn what_dynamodb_splits_is_waited_for_and_what_is_cold_is_left_alone() {
    let place = TestDir::new("plan-leave");
    let split = plan(&place, "plan --writes 3000");
    assert_eq!(split["recommendation"]["diagnosis"]["do"], "wait", "{split}");
    let remedies = split["remedies"].as_array().unwrap();
    let share = |nth: usize| remedies[nth]["throttled_share"].as_f64().unwrap();
    assert!(share(1) < share(0) * 0.7, "its split comes within the quarter of an hour: {split}");
    let cold = place.run(&["plan", "--writes", "300", "--reads", "10"]);
    let said = text(&cold.stdout);
    assert!(said.contains("Leave it alone. ") && !said.contains("reshard start"), "{said}");
    let nothing = text(&place.run(&["shards", "--writes", "10", "--reads=-0"]).stdout);
    assert!(!nothing.contains("-0"), "{nothing}");
    for wrong in [
        &["plan"][..],
        &["plan", "--writes", "10", "--peak", "5"],
        &["plan", "--writes", "1e9"],
        &["plan", "--writes", "nan"],
    ] {
        assert_eq!(place.run(wrong).status.code(), Some(64), "{wrong:?}");
    }
}
