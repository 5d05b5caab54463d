//! What `status` and `leave` print: the shape for programs, and the words for people.

use serde_json::{Value as Json, json};

use crate::command::{TestDir, report, text};

/// The names of an object's members.
fn members(document: &Json) -> Vec<&str> {
    document.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn what_is_sharded_is_listed_with_its_way_back_and_its_cost() {
    let place = TestDir::new("status");
    place.data();
    let empty = report(&place, "status --data data.db");
    assert_eq!(
        (&empty["there"], &empty["tables"], &empty["next_steps"]),
        (&json!(false), &json!([]), &json!([]))
    );
    report(&place, "reshard start Board OPS_LOG --shards 4 --data data.db --yes");

    let all = report(&place, "status --data data.db");
    let of_store = ["directory", "frozen_since", "gateways", "next_steps", "registry", "tables", "there"];
    assert_eq!(members(&all), of_store);
    let board = &all["tables"][0];
    let of_table = [
        "by_hand",
        "bytes",
        "command",
        "exists",
        "former_forms",
        "id",
        "items",
        "keys",
        "keys_in_shards",
        "keys_whole",
        "rules",
        "state",
        "steps",
        "table",
        "values",
        "values_in_shards",
    ];
    assert_eq!(members(board), of_table);
    assert_eq!((&board["state"], &board["steps"]), (&json!("ACTIVE"), &json!(["keys", "off_record"])));
    assert_eq!(board["command"], "heatsink leave Board --data data.db");
    let key = &board["keys"][0];
    let of_key = ["command", "counter", "key", "moves_to", "refused", "shards", "takes", "with_table"];
    assert_eq!(members(key), of_key);
    assert_eq!(key["command"], "heatsink reshard back Board OPS_LOG --data data.db");
    let of_cost = ["bytes_to_move", "dollars", "items", "read_units", "seconds", "to_move", "write_units"];
    assert_eq!(members(&key["takes"]), of_cost);
    assert_eq!(key["takes"]["items"], 350);

    let words = place.run(&["status", "Board", "--data", "data.db"]);
    let words = text(&words.stdout);
    for says in [
        "key \"OPS_LOG\": 4 shards",
        "heatsink reshard back Board OPS_LOG",
        "write and",
        "all of it: heatsink leave Board",
    ] {
        assert!(words.contains(says), "no {says:?} in {words}");
    }

    let plan = report(&place, "leave --dry-run --data data.db");
    let steps: Vec<&str> =
        plan["steps"].as_array().unwrap().iter().map(|one| one["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["keys", "off_record", "registry"]);
    assert_eq!(plan["in_the_way"], json!([]));
    let left = report(&place, "leave --yes --data data.db");
    let of_way =
        ["direct_access", "left_alone", "next_steps", "registry_removed", "steps", "table", "untagged"];
    assert_eq!(members(&left), of_way);
    assert_eq!(members(&left["steps"][0]), ["looked_at", "moved", "step", "table"]);
    assert_eq!((&left["steps"][1]["looked_at"], &left["registry_removed"]), (&json!(350), &json!(true)));
    assert_eq!(report(&place, "status --data data.db"), empty);
}

/// Of many keys the first are listed and counted, and the others numbered.
#[test]
fn many_keys_are_bounded() {
    let place = TestDir::new("status-many");
    place.data();
    place.file("keys", &(0..25).map(|number| format!("k{number}\n")).collect::<String>());
    report(&place, "reshard start Board --file keys --shards 2 --data data.db --yes");
    let board = report(&place, "status Board --data data.db")["tables"][0].clone();
    assert_eq!((board["keys"].as_array().unwrap().len(), &board["keys_in_shards"]), (20, &json!(25)));
    let words = text(&place.run(&["status", "--data", "data.db"]).stdout);
    assert!(words.contains("and 5 more keys in shards"), "{words}");
}
