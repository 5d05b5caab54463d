//! Beside gateways in processes of their own, which carry out what the command asks for.

use std::process::{Command, Stdio};

use heatsink_dynamo::Operation;
use serde_json::json;

use super::{Server, Town, data, local};

#[test]
fn a_gateway_carries_out_what_the_command_asks_for() {
    let town = Town::new("asked");
    let start = |more: &[&str]| town.reshard(&[&["start", "Scores"], more].concat());
    let (code, error) = start(&["game", "--shards", "4"]);
    assert!(code == 69 && error.to_string().contains("--here"), "{code} {error}");
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]), "nothing was written");
    assert_eq!(start(&["game", "--shards", "2", "--here"]).1["to"], 2);

    let gateway = town.gateway();
    let (code, asked) = start(&["game", "--shards", "4"]);
    assert_eq!((code, &asked["asked"], &asked["gateways"]), (0, &json!(["game"]), &json!(1)));
    let next = ["status Scores", "pause Scores game", "cancel Scores game"]
        .map(|step| format!("heatsink reshard {step}{}", town.words()));
    assert_eq!(asked["next_steps"], json!(next));
    let (code, report) = start(&["game", "--shards", "4", "--wait"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    let (code, report) = start(&["--prefix", "g", "--shards", "8", "--wait"]);
    assert_eq!(
        (code, &report["moved"][0]["from"], &report["moved"][0]["to"]),
        (0, &json!(4), &json!(8)),
        "{report}"
    );
    // An item of a client stands in the way: the gateway says so, and nothing has changed.
    let (code, error) = start(&["taken", "--shards", "4", "--wait"]);
    assert!(code == 1 && error.to_string().contains("taken#~2"), "{code} {error}");
    let status = town.until("that it stopped", |one| one["key"] == "game" || one["ended"]["as"] == "stopped");
    let next = format!("start Scores taken{} --shards 4", town.words());
    assert!(status["next_steps"].to_string().contains(&next), "{status}");
    assert_eq!(start(&["taken", "--shards", "2", "--wait"]).0, 0);
    let (code, report) = town.reshard(&["back", "Scores", "--all", "--wait"]);
    assert_eq!((code, report["moved"].as_array().unwrap().len()), (0, 2), "{report}");
    let keys = town.reshard(&["status", "Scores"]).1["keys"].clone();
    assert!(keys.as_array().unwrap().iter().all(|key| key["shards"] == 1), "{keys}");
    assert_eq!(town.run(&["freeze"]).0, 0);
    let (code, error) = start(&["game", "--shards", "4"]);
    assert!(code == 1 && error.to_string().contains("--thaw"), "{code} {error}");
    gateway.signal("TERM");
}

#[test]
fn the_first_reshard_of_a_store_finds_the_gateways_that_run_without_a_registry() {
    let town = Town::over(&data("first"));
    let _gateways = [town.gateway(), town.gateway()];
    let (code, asked) = town.reshard(&["start", "Scores", "game", "--shards", "4"]);
    assert_eq!((code, &asked["asked"]), (0, &json!(["game"])), "{asked}");
    assert_eq!(town.reshard(&["status"]).1["reshards"][0]["key"], "game");
}

#[test]
fn what_is_asked_for_can_be_paused_resumed_and_taken_back() {
    let town = Town::new("taken-back");
    let gateway = town.gateway();
    let change = |what: &str| town.reshard(&[what, "Scores", "game"]);
    for what in ["pause", "resume", "cancel"] {
        let (code, error) = change(what);
        assert!(code == 64 && error.to_string().contains("no reshard of the key"), "{code} {error}");
    }
    // It carries nothing out for now.
    gateway.signal("STOP");
    let start = |shards: &str| town.reshard(&["start", "Scores", "game", "--shards", shards]);
    assert_eq!(start("4").0, 0);
    assert_eq!(start("4").0, 0, "the same again is no other reshard");
    let (code, error) = start("8");
    assert!(code == 64 && error.to_string().contains("asked for already"), "{code} {error}");
    let (code, error) = town.reshard(&["start", "Scores", "game", "--shards", "4", "--here"]);
    assert!(
        code == 64 && error.to_string().contains("reshard cancel Scores game --upstream"),
        "{code} {error}"
    );
    assert_eq!(change("pause").1["pause"], json!(["game"]));
    let status = town.reshard(&["status", "Scores"]).1;
    assert_eq!((&status["reshards"][0]["paused"], &status["keys"]), (&json!(true), &json!([])));
    let next = format!("heatsink reshard resume Scores game{}", town.words());
    assert_eq!(status["next_steps"], json!([next]));
    assert_eq!(change("resume").1["resume"], json!(["game"]));
    assert_eq!(change("cancel").1["removed"], json!(["game"]));
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]));
    gateway.signal("CONT");

    // Past the point of no return.
    let slow = ["start", "Scores", "game", "--shards", "4", "--rate", "40"];
    assert_eq!(town.reshard(&slow).0, 0);
    town.until("that items move", |one| one["items_moved"].as_u64() > Some(0));
    let (code, error) = change("cancel");
    let text = error.to_string();
    let back = format!("reshard start Scores game{} --shards 1", town.words());
    assert!(code == 1 && text.contains(&back) && text.contains("pause"), "{code} {text}");
}

#[test]
fn another_gateway_goes_on_where_one_was_killed() {
    let town = Town::new("killed");
    let first = town.gateway();
    assert_eq!(town.reshard(&["start", "Scores", "game", "--shards", "4", "--rate", "60"]).0, 0);
    town.until("that items move", |one| one["items_moved"].as_u64() > Some(0));
    drop(first);
    let second = town.gateway();
    let (code, report) =
        town.reshard(&["start", "Scores", "game", "--shards", "4", "--rate", "60", "--wait"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    second.signal("TERM");
    let status = town.reshard(&["status", "Scores"]).1;
    assert_eq!((&status["keys"][0]["shards"], &status["keys"][0]["settled"]), (&json!(4), &json!(true)));
}

/// What a command that carries it out itself has begun, in a process that can be killed.
fn here(town: &Town, rate: &str) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(["reshard", "start", "Scores", "game", "--shards", "4", "--here", "--rate", rate]);
    command.args(["--upstream", &town.store.endpoint, "--rules", &town.rules()]);
    local(&mut command).stdout(Stdio::null()).stderr(Stdio::null());
    let command = Server { child: command.spawn().unwrap(), endpoint: String::new() };
    town.until("that items move", |one| one["items_moved"].as_u64() > Some(0));
    command
}

#[test]
fn a_gateway_goes_on_where_a_command_was_killed_that_carried_it_out_itself() {
    let town = Town::new("killed-here");
    let gateway = town.gateway();
    let command = here(&town, "8");
    let one = town.reshard(&["status"]).1["reshards"][0].clone();
    assert!(one["gateway"]["name"].as_str().unwrap().starts_with("a command"), "{one}");
    // Another one leaves it alone, and says how to follow it.
    let (code, error) = town.reshard(&["start", "Scores", "game", "--shards", "4", "--here"]);
    let text = error.to_string();
    assert!(code == 64 && text.contains("a command") && text.contains("status Scores"), "{code} {text}");
    drop(command);
    let one = town.until("that the gateway goes on", |one| {
        one["gateway"]["id"].as_str().is_some_and(|id| !id.is_empty())
    });
    assert_eq!(one["reshards"][0]["key"], "game");
    assert_eq!(one["unasked"], json!([]));
    let (code, report) =
        town.reshard(&["start", "Scores", "game", "--shards", "4", "--rate", "1000", "--wait"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    gateway.signal("TERM");
}

#[test]
fn what_nobody_asks_for_on_record_is_shown_with_what_goes_on_with_it() {
    let town = Town::new("without-intent");
    drop(here(&town, "8"));
    assert_eq!(town.reshard(&["status"]).1["unasked"], json!([]));
    // As a command of an older build leaves it.
    let of_intents = json!({
        "TableName": "heatsink.registry", "KeyConditionExpression": "pk = :r", "ExpressionAttributeValues": { ":r": { "S": "reshards" } },
    });
    let intent = town.past(Operation::Query, &of_intents)["Items"][0].clone();
    let key = json!({ "pk": intent["pk"], "sk": intent["sk"] });
    town.past(Operation::DeleteItem, &json!({ "TableName": "heatsink.registry", "Key": key }));
    let next = format!("heatsink reshard start Scores game{} --shards 4", town.words());
    for status in [town.reshard(&["status"]).1, town.reshard(&["status", "Scores"]).1] {
        let one = &status["unasked"][0];
        assert_eq!(
            (&one["table"], &one["key"], &one["moves"]["phase"]),
            (&json!("Scores"), &json!("game"), &json!("MOVE")),
            "{status}"
        );
        assert_eq!((&status["reshards"], &status["next_steps"]), (&json!([]), &json!([next])));
    }
    let (code, report) = town.reshard(&["start", "Scores", "game", "--shards", "4", "--here"]);
    assert!(code == 0 && report["to"] == 4, "{code} {report}");
    let status = town.reshard(&["status"]).1;
    assert_eq!((&status["reshards"], &status["unasked"]), (&json!([]), &json!([])));
}
