//! On a data file, where the command carries a reshard out itself.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use super::{ITEMS, data, heatsink, physical_keys};

#[test]
fn a_key_goes_to_four_shards_and_back() {
    let data = data("back");
    let start = |shards: &str, more: &[&str]| {
        let args = [&["start", "Scores", "game", "--shards", shards], more].concat();
        heatsink(&data, &args)
    };
    let (code, plan) = start("4", &["--dry-run"]);
    assert_eq!((code, &plan["items"], &plan["from"], &plan["to"]), (0, &json!(ITEMS), &json!(1), &json!(4)));
    let next = format!("heatsink reshard start Scores game --data {} --shards 4", data.display());
    assert_eq!(plan["next_steps"], json!([next]));
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "a dry run writes nothing");

    let (code, report) = start("4", &[]);
    let moved = report["moved"].as_u64().unwrap();
    assert_eq!((code, &report["from"], &report["to"]), (0, &json!(1), &json!(4)));
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game#~")).count() as u64, moved);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game")).count(), ITEMS);
    assert!(
        ["game", "game#~1", "game#~2", "game#~3"].iter().all(|key| keys.iter().any(|found| found == key))
    );
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!((&status["keys"][0]["shards"], &status["keys"][0]["moves"]), (&json!(4), &Json::Null));
    assert_eq!(start("4", &[]).1["already"], true);

    assert_eq!(start("1", &[]).1["moved"], moved);
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| *key == "game").count(), ITEMS);
    assert!(!keys.iter().any(|key| key.starts_with("game#~")));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_half_changed() {
    let data = data("refused");
    let refused = |args: &[&str], code: i32, why: &str| {
        let (found, error) = heatsink(&data, args);
        let text = error.to_string();
        assert!(found == code && text.contains(why), "{args:?}: exit {found}, {text}");
    };
    refused(&["start", "Nowhere", "game", "--shards", "4"], 64, "no table Nowhere");
    refused(&["start", "Flat", "game", "--shards", "4"], 64, "has no sort key");
    refused(&["start", "Scores", "game", "--shards", "0"], 64, "1 to 1000 shards");
    refused(&["start", "Scores", "game", "--shards", "1001"], 64, "1 to 1000 shards");
    // A client's own item lies under a name that a shard would have.
    refused(&["start", "Scores", "taken", "--shards", "4"], 1, "taken#~2");
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!(
        (&status["keys"][0]["shards"], &status["keys"][0]["reserved"]),
        (&json!(1), &json!(1)),
        "{status}"
    );
    assert!(physical_keys(&data).contains(&"taken#~2".to_owned()));
    // With fewer shards that name is the client's own.
    assert_eq!(heatsink(&data, &["start", "Scores", "taken", "--shards", "2"]).0, 0);
}

#[test]
fn a_table_with_rules_that_is_not_on_record_with_them_is_refused() {
    let data = data("ruled");
    let rules = "[[rule]]\ntable = \"Scores\"\nkeys = \"other*\"\nstrategy = \"calculated\"\nshards = 4\n";
    std::fs::write(data.with_file_name("heatsink.toml"), rules).unwrap();
    let (code, refused) = heatsink(&data, &["start", "Scores", "game", "--shards", "4"]);
    assert_eq!(code, 64, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("heatsink adopt Scores"), "{refused}");
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "nothing is on record");
}

fn put(data: &Path, key: &str, sort: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let item = json!({ "TableName": "Scores", "Item": { "pk": { "S": key }, "sk": { "S": sort } } });
        store.call(Operation::PutItem, Bytes::from(item.to_string())).await.unwrap();
    });
}

/// A writer that bypasses Heatsink put it there: nobody may delete the only copy.
#[test]
fn an_item_that_lies_in_the_wrong_shard_alone_is_kept_and_ends_the_move() {
    let data = data("misplaced");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    // Of so many some belong to another shard than the first.
    for number in 0..20 {
        put(&data, "game", &format!("bypassing-{number}"));
    }
    let before = physical_keys(&data).len();
    let (code, error) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert!(code == 1 && error.to_string().contains("verify --repair"), "{code} {error}");
    assert_eq!(physical_keys(&data).len(), before, "nothing was deleted");
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"][0]["shards"], 4);
}

/// A copy whose item lies in its place is what an earlier move left, and is cleared.
#[test]
fn an_old_copy_is_cleared() {
    let data = data("orphan");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    for number in 0..ITEMS {
        put(&data, "game", &format!("{number:03}"));
    }
    let (code, report) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).count(), ITEMS);
}

#[test]
fn a_recorded_key_with_the_name_of_a_shard_is_not_taken_over() {
    let data = data("nested");
    assert_eq!(heatsink(&data, &["start", "Scores", "hot#~1", "--shards", "4"]).0, 0);
    let (code, error) = heatsink(&data, &["start", "Scores", "hot", "--shards", "4"]);
    assert!(code == 1 && error.to_string().contains("is itself a key on record"), "{code} {error}");
    let (code, error) = heatsink(&data, &["start", "Scores", "hot#~1#~2", "--shards", "4"]);
    assert!(code == 64 && error.to_string().contains("physical key of a shard"), "{code} {error}");
}

#[test]
fn a_key_gets_ranges_at_the_quantiles_of_its_items_or_where_it_is_said() {
    let data = data("ranges");
    let ranges = ["start", "Scores", "game", "--strategy", "range", "--shards", "4"];
    let (code, plan) = heatsink(&data, &[&ranges[..], &["--dry-run"]].concat());
    let points = plan["split_at"].clone();
    assert_eq!((code, points.as_array().map(Vec::len)), (0, Some(3)), "{plan}");
    let next = plan["next_steps"][0].as_str().unwrap();
    assert!(next.contains("--strategy range --split-at "), "{next}");
    let (code, report) = heatsink(&data, &ranges);
    assert_eq!((code, &report["split_at"]), (0, &points), "{report}");
    let under = |suffix: &str| {
        let name = format!("game{suffix}");
        physical_keys(&data).iter().filter(|key| **key == name).count()
    };
    let counts = ["", "#~1", "#~2", "#~3"].map(under);
    assert!(counts.iter().all(|count| count.abs_diff(ITEMS / 4) <= 1), "{counts:?}");
    // What begins where a range did stays.
    let (code, report) =
        heatsink(&data, &["start", "Scores", "game", "--split-at", points[1]["S"].as_str().unwrap()]);
    assert_eq!((code, report["moved"].as_u64()), (0, Some((counts[1] + counts[3]) as u64)), "{report}");
    let (code, error) = heatsink(&data, &["start", "Scores", "game", "--shards", "5"]);
    assert!(code == 64 && error.to_string().contains("lies in 2 ranges"), "{code} {error}");
    for (arguments, why) in [
        (&["--split-at", "b", "--split-at", "a"][..], "does not come after"),
        (&["--split-at", "b", "--strategy", "calculated"], "of --strategy range"),
        (&["--split-at", "b", "--shards", "5"], "1 split points make 2 ranges"),
        (&["--strategy", "range", "--shards", "400"], "2 to 64 ranges"),
        (&["--strategy", "range", "--shards", "64"], "too few for 64 ranges"),
    ] {
        let (code, error) = heatsink(&data, &[&["start", "Scores", "game"][..], arguments].concat());
        assert!(code == 64 && error.to_string().contains(why), "{arguments:?}: {code} {error}");
    }
    let (code, report) = heatsink(&data, &["start", "Scores", "game", "--shards", "1"]);
    assert_eq!((code, under("")), (0, ITEMS), "{report}");
}

#[test]
fn strategies_that_single_keys_cannot_have_are_refused_by_name() {
    let data = data("strategies");
    for (strategy, why) in [
        ("time_bucket", "needs a rule"),
        ("template", "needs a rule"),
        ("none", "--shards 1"),
        ("moon", "`random`, `range` or `counter`"),
    ] {
        let (code, error) =
            heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--strategy", strategy]);
        assert!(code == 64 && error.to_string().contains(why), "{strategy}: {code} {error}");
    }
    let part = ["start", "Scores", "game", "--shards", "4", "--separator", "1", "--part", "0"];
    assert_eq!(heatsink(&data, &part).0, 0);
    // As it is laid out already; by the whole sort key it is not.
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).1["already"], true);
    let (code, report) =
        heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--strategy", "random"]);
    assert!(code == 0 && report["moved"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).count(), ITEMS);
}

#[test]
fn a_dry_run_says_what_it_takes() {
    let data = data("plan");
    let plan = heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--dry-run"]).1;
    let phases =
        ["RESERVE", "PREPARE", "HOLD", "CHECK (only if some request was not answered)", "MOVE", "STABLE"];
    assert_eq!(plan["phases"], json!(phases));
    let number = |name: &str| plan[name].as_f64().unwrap_or_else(|| panic!("{name}: {plan}"));
    assert_eq!((number("to_move"), number("write_units")), (45.0, 45.0 * 12.0));
    assert!(number("bytes_to_move") > 0.0 && number("dollars") > 0.0 && number("stall_millis") > 0.0);
    assert_eq!(number("longest_stall_millis"), 32_600.0);
    assert!(number("page_units") >= 3.0, "{plan}");
    let empty = heatsink(&data, &["start", "Scores", "nobody", "--shards", "4", "--dry-run"]).1;
    assert_eq!((&empty["items"], &empty["to_move"], &empty["page_units"]), (&json!(0), &json!(0), &json!(3)));
}

#[test]
fn a_table_with_time_to_live_says_what_differs_and_is_resharded() {
    let data = data("expiry");
    let set = |enabled: bool| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let specification = json!({ "Enabled": enabled, "AttributeName": "gone" });
            let body = json!({ "TableName": "Scores", "TimeToLiveSpecification": specification });
            let store = Embedded::file(&data).unwrap();
            store.call(Operation::UpdateTimeToLive, Bytes::from(body.to_string())).await.unwrap();
        });
    };
    let plan = ["start", "Scores", "game", "--shards", "4", "--dry-run"];
    assert_eq!(heatsink(&data, &plan).1["time_to_live"], Json::Null);
    set(true);
    assert_eq!(heatsink(&data, &plan).1["time_to_live"], "gone");
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    let told = command.arg("reshard").args(plan).arg("--data").arg(&data).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("The table has time to live") && told.contains("\"gone\""), "{told}");
    let (code, report) = heatsink(&data, &plan[..5]);
    assert!(code == 0 && report["to"] == 4 && report["moved"].as_u64() > Some(0), "{report}");
    assert!(physical_keys(&data).iter().any(|key| key == "game#~1"));
}

#[test]
fn many_keys_are_named_in_a_file_or_by_how_they_begin() {
    let data = data("many");
    let file = data.with_file_name("keys");
    std::fs::write(&file, "game\nnobody\n\ngame\n").unwrap();
    let file = file.to_str().unwrap();
    let start = |more: &[&str]| heatsink(&data, &[&["start", "Scores", "--shards", "2"], more].concat());
    let plan = start(&["--file", file, "--dry-run"]).1;
    assert_eq!((plan["keys"].as_array().unwrap().len(), &plan["items"]), (2, &json!(ITEMS)));
    let report = start(&["--file", file]).1;
    assert_eq!(report["moved"].as_array().unwrap().len(), 2, "{report}");
    // Physical keys are read as the key that they are of.
    let report = start(&["--prefix", "ga"]).1;
    assert_eq!((&report["already"], &report["items_read"]), (&json!(["game"]), &json!(ITEMS + 1)));
    let (code, error) = start(&["--prefix", "zz"]);
    assert!(code == 64 && error.to_string().contains("61 items were read"), "{error}");
    std::fs::write(file, (0..1_001).map(|number| format!("{number}\n")).collect::<String>()).unwrap();
    let (code, error) = start(&["--file", file]);
    assert!(code == 64 && error.to_string().contains("1000 at most"), "{error}");
    let report = heatsink(&data, &["back", "Scores", "--all"]).1;
    assert_eq!(report["moved"].as_array().unwrap().len(), 2, "{report}");
    assert!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).all(|key| key == "game"));
    assert_eq!(heatsink(&data, &["back", "Scores", "--all"]).1["moved"], Json::Null);
}

#[test]
fn slots_by_name_are_asked_for_shown_and_brought_back() {
    let data = data("slots");
    let start = |args: &[&str]| heatsink(&data, &[&["start", "Scores", "game"], args].concat());
    for (args, why) in [
        (&["--slots", "0,4,4"][..], "slot 4 is named twice"),
        (&["--shards", "4", "--slots", "0,1"], "2 slots are named for 4 shards"),
        (&["--slots", "0,10000"], "no slot 10000"),
        (&["--slots", "0,1", "--strategy", "counter"], "no slots by name"),
    ] {
        let (code, error) = start(args);
        assert!(code == 64 && error.to_string().contains(why), "{args:?}: {code} {error}");
    }
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "nothing is on record");
    assert_eq!(start(&["--shards", "4"]).0, 0);
    let (code, plan) = start(&["--slots", "0,1,4,3", "--dry-run"]);
    assert_eq!((code, &plan["to_slots"]), (0, &json!([0, 1, 4, 3])), "{plan}");
    let next = plan["next_steps"][0].as_str().unwrap();
    assert!(next.contains("--shards 4 --slots 0,1,4,3"), "{next}");
    let (code, report) = start(&["--slots", "0,1,4,3"]);
    assert_eq!(
        (code, &report["slots"], &report["moved"]),
        (0, &json!([0, 1, 4, 3]), &plan["to_move"]),
        "{report}"
    );
    let keys = physical_keys(&data);
    assert!(keys.contains(&"game#~4".to_owned()) && !keys.contains(&"game#~2".to_owned()), "{keys:?}");
    assert_eq!(start(&["--slots", "0,1,4,3"]).1["already"], true);
    // Another count keeps them.
    assert_eq!(start(&["--shards", "5"]).1["slots"], json!([0, 1, 4, 3, 2]));
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!(status["keys"][0]["slots"], json!([0, 1, 4, 3, 2]), "{status}");
    let (code, report) = heatsink(&data, &["back", "Scores", "game"]);
    assert_eq!((code, &report["to"]), (0, &json!(1)), "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| *key == "game").count(), ITEMS);
    // A whole key lies under one other slot, and back.
    assert_eq!(start(&["--slots", "5"]).0, 0);
    assert_eq!(physical_keys(&data).iter().filter(|key| *key == "game#~5").count(), ITEMS);
    assert_eq!(heatsink(&data, &["back", "Scores", "--all"]).0, 0);
    assert_eq!(physical_keys(&data).iter().filter(|key| *key == "game").count(), ITEMS);
}
