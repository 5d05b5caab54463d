//! What `heatsink reshard` says before, after and while a key gets other shards.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value as Json, json};

use super::{Server, Town, data, heatsink, local, pause};

/// A command beside a server, for people.
fn reshard(server: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.arg("reshard").args(args).args(["--server", server.trim_start_matches("http://")]);
    local(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn the_time_of_a_dry_run_follows_from_the_size_of_the_items() {
    let data = data("size");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&data).unwrap();
        for nth in 0..40 {
            let item = json!({ "pk": { "S": "large" }, "sk": { "S": format!("{nth:03}") }, "v": { "S": "x".repeat(120_000) } });
            let put = json!({ "TableName": "Scores", "Item": item });
            store.call(Operation::PutItem, Bytes::from(put.to_string())).await.unwrap();
        }
    });
    let plan = heatsink(&data, &["start", "Scores", "large", "--shards", "8", "--dry-run"]).1;
    // 35 items of 118 KB, four units a KB, at a rate that grows to 1,000 units a second: 20.4 s.
    assert!((19..=22).contains(&plan["seconds"].as_u64().unwrap()), "{plan}");
    let small = heatsink(&data, &["start", "Scores", "game", "--shards", "4", "--dry-run"]).1;
    assert_eq!(small["seconds"], 1, "{small}");
}

#[test]
fn what_is_odd_is_a_warning() {
    let data = data("odd");
    let warnings = |args: &[&str]| {
        let (code, document) = heatsink(&data, args);
        assert_eq!(code, 0, "{document}");
        document["warnings"].to_string()
    };
    let unknown = ["start", "Scores", "gmae", "--shards", "4"];
    for args in [&[&unknown[..], &["--dry-run"]].concat()[..], &unknown] {
        assert!(warnings(args).contains("no item with the key"), "{args:?}");
    }
    let known = ["start", "Scores", "game", "--shards", "4"];
    assert_eq!(warnings(&[&known[..], &["--dry-run"]].concat()), "[]");
}

/// A screen, and the terminal that it shows.
fn terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    (File::from(screen), File::options().read(true).write(true).open(name).unwrap())
}

#[test]
fn everything_has_to_go_through_gateways_before_the_first_shards_of_a_table() {
    let town = Town::new("through");
    let _gateway = town.gateway();
    let dry_run = ["start", "Scores", "game", "--shards", "2", "--dry-run"];
    let through = |document: &Json| document["warnings"].to_string().contains("has to go through gateways");
    assert!(through(&town.reshard(&dry_run).1));
    // Whoever sits at a terminal is asked.
    let (mut screen, terminal) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(["reshard", "start", "Scores", "game", "--shards", "2", "--upstream", &town.store.endpoint]);
    command.args(["--rules", &town.rules()]);
    local(&mut command).stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let asked = command.spawn().unwrap();
    screen.write_all(b"n\n").unwrap();
    let (code, text) = said(&asked.wait_with_output().unwrap());
    assert!(
        code == 64 && text.contains("Go on? [y/N]") && text.contains("nothing was changed"),
        "{code} {text}"
    );
    let (code, report) = town.reshard(&["start", "Scores", "game", "--shards", "2", "--wait"]);
    assert!(code == 0 && through(&report), "{code} {report}");
    assert!(!through(&town.reshard(&["start", "Scores", "other", "--shards", "2", "--dry-run"]).1));
}

#[test]
fn a_cancel_that_comes_too_late_names_the_end_and_the_way_back() {
    let data = data("late");
    let (code, error) = heatsink(&data, &["cancel", "Scores", "never"]);
    assert!(code == 64 && error.to_string().contains("no reshard of the key"), "{code} {error}");
    let (code, error) = heatsink(&data, &["cancel", "--all"]);
    assert!(code == 64 && error.to_string().contains("no reshard is asked for"), "{code} {error}");

    let server = Server::start(&["--data", data.to_str().unwrap(), "--partitions", "off"]);
    let run = |args: &[&str]| said(&reshard(&server.endpoint, args).output().unwrap());
    assert_eq!(run(&["start", "Scores", "game", "--shards", "4", "--wait"]).0, 0);
    let (code, text) = run(&["cancel", "Scores", "game"]);
    assert!(code == 1 && text.contains("has ended: the key has 4 shards"), "{code} {text}");
    assert!(text.contains("`heatsink reshard back Scores game --server"), "{text}");
    assert_eq!(run(&["cancel", "--all"]).0, 64, "what ended well is not meant");
    let (code, text) = run(&["back", "Scores", "game", "--wait"]);
    assert!(code == 0 && text.contains("has 1 shard; it had 4"), "{code} {text}");

    drop(server);
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "2"]).0, 0);
    let (code, error) = heatsink(&data, &["cancel", "Scores", "game"]);
    assert!(code == 1 && error.to_string().contains("it has 2 shards. The way back"), "{code} {error}");
}

#[test]
fn a_server_that_the_other_flag_is_for_is_named() {
    let server = Server::start(&["--partitions", "off"]);
    let upstream = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(args).args(["--upstream", &server.endpoint]);
        said(&local(&mut command).current_dir(std::env::temp_dir()).output().unwrap())
    };
    for args in [
        &["reshard", "status"][..],
        &["reshard", "start", "Scores", "game", "--shards", "4"],
        &["freeze"],
        &["gateways"],
        &["verify", "Scores"],
    ] {
        let (code, text) = upstream(args);
        assert!(code == 64 && text.contains("say --server 127.0.0.1:"), "{args:?}: {code} {text}");
        assert!(!text.contains("goes on"), "{text}");
    }
}

/// A server of a data file at this address, 127.0.0.1:0 for any.
fn serve(data: &Path, address: &str) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    let file = data.to_str().unwrap();
    command.args(["serve", "--listen", address, "--output", "json", "--data", file, "--partitions", "off"]);
    let mut child = local(&mut command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let printed = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(printed), &mut line).unwrap();
    let banner: Json = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
    (child, banner["endpoint"].as_str().unwrap().trim_start_matches("http://").to_owned())
}

#[test]
fn who_follows_a_reshard_outlives_a_restart_of_the_server_and_says_at_ctrl_c_what_goes_on() {
    let data = data("followed");
    let (mut first, address) = serve(&data, "127.0.0.1:0");
    let slow = ["start", "Scores", "game", "--shards", "4", "--rate", "20", "--wait"];
    let following = reshard(&address, &slow).spawn().unwrap();
    pause(Duration::from_secs(3));
    let interrupted = reshard(&address, &slow).spawn().unwrap();
    pause(Duration::from_secs(1));
    let id = interrupted.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let (code, text) = said(&interrupted.wait_with_output().unwrap());
    assert!(code == 130 && text.contains("goes on without this command"), "{code} {text}");

    first.kill().unwrap();
    first.wait().unwrap();
    pause(Duration::from_secs(2));
    let (mut second, _) = serve(&data, &address);
    let (code, text) = said(&following.wait_with_output().unwrap());
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(code == 0 && text.contains("has 4 shards"), "{code} {text}");
}
