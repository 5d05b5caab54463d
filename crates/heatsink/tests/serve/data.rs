//! The data file of a server: one process at a time, nobody else's, and whole after a kill.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use crate::TABLE;
use crate::process::{Server, call, heatsink, post, run, scratch};

#[test]
fn a_second_process_is_told_who_has_the_file() {
    let dir = scratch("second");
    let file = dir.join("heatsink.db");
    let file = file.to_str().unwrap();
    let rules = dir.join("heatsink.toml");
    fs::write(&rules, "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n").unwrap();
    let rules = rules.to_str().unwrap();
    let server = Server::start(&["--data", file]);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    for args in [
        &["serve", "--listen", "127.0.0.1:0", "--data", file][..],
        &["adopt", "scores", "--rules", rules, "--data", file, "--yes"],
        &["audit", "scores", "--data", file],
        &["config", "check", "--rules", rules, "--data", file],
    ] {
        let refused = run(args);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(69), "{args:?}: {stderr}");
        assert!(stderr.contains(file) && stderr.contains("is in use: process "), "{args:?}: {stderr}");
    }
    assert_eq!(call(&server.endpoint(), "ListTables", "{}").1, r#"{"TableNames":["scores"]}"#);
    assert_eq!(server.stop("TERM").0, Some(0));
    let names: Vec<_> = fs::read_dir(&dir).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_str().unwrap().ends_with(".lock")), "{names:?}");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn every_file_of_a_server_is_its_owners_alone_whatever_the_umask() {
    let dir = scratch("modes");
    let file = dir.join("heatsink.db");
    for umask in ["000", "022"] {
        let script = format!(
            "umask {umask}; exec {:?} serve --listen 127.0.0.1:0 --output json --data {:?}",
            heatsink().get_program(),
            file
        );
        let server = Server::of(Command::new("sh").args(["-c", &script]));
        let table = TABLE.replace("scores", &format!("scores{umask}"));
        assert_eq!(call(&server.endpoint(), "CreateTable", &table).0, 200);
        let check_modes = || {
            for one in fs::read_dir(&dir).unwrap().map(|one| one.unwrap()) {
                match one.metadata() {
                    // It was there for a moment.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    metadata => {
                        let mode = metadata.unwrap().permissions().mode() & 0o777;
                        assert_eq!(mode, 0o600, "{umask}: {:?}", one.path());
                    }
                }
            }
        };
        check_modes();
        assert_eq!(server.stop("TERM").0, Some(0));
        check_modes();
        assert!(dir.join("heatsink.db.partitions").exists());
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_token_holds_across_a_kill_at_any_moment() {
    let dir = scratch("kill");
    let file = dir.join("heatsink.db");
    let file = file.to_str().unwrap();
    let start = || Server::start(&["--data", file, "--partitions", "off"]);
    let mut server = start();
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    let get = r#"{"TableName":"scores","Key":{"pk":{"S":"a"}}}"#;
    let counted = |server: &Server| {
        let answer: serde_json::Value =
            serde_json::from_str(&call(&server.endpoint(), "GetItem", get).1).unwrap();
        answer["Item"]["n"]["N"].as_str().map_or(0, |n| n.parse::<u32>().unwrap())
    };
    let requests = |round: u32| {
        let transact = format!(
            r#"{{"ClientRequestToken":"round-{round}","TransactItems":[{{"Update":{{"TableName":"scores","Key":{{"pk":{{"S":"a"}}}},
            "UpdateExpression":"ADD n :one","ExpressionAttributeValues":{{":one":{{"N":"1"}}}}}}}}]}}"#
        );
        let statement = format!(
            r#"{{"ClientRequestToken":"round-{round}","TransactStatements":[{{"Statement":"UPDATE scores SET n = n + 1 WHERE pk = 'a'"}}]}}"#
        );
        if round.is_multiple_of(2) {
            ("TransactWriteItems", transact)
        } else {
            ("ExecuteTransaction", statement)
        }
    };
    let mut applied_before_the_kill = 0;
    for round in 0..8_u32 {
        let before = counted(&server);
        let (operation, body) = requests(round);
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&post(&format!("DynamoDB_20120810.{operation}"), body.as_bytes())).unwrap();
        // Sometimes before it is carried out, sometimes between that and the answer, sometimes
        // behind both.
        std::thread::sleep(Duration::from_millis(u64::from(round) * 4));
        server.stop("KILL");
        server = start();
        applied_before_the_kill += u32::from(counted(&server) > before);
        for _ in 0..2 {
            let (status, answer) = call(&server.endpoint(), operation, &body);
            assert_eq!(status, 200, "{answer}");
            assert_eq!(counted(&server), before + 1, "round {round}");
        }
    }
    assert!(applied_before_the_kill > 0, "no kill came behind the write: the test shows nothing");
    fs::remove_dir_all(dir).unwrap();
}

/// Writers put while the server is killed. Every put that was acknowledged is found after the
/// restart.
#[test]
fn a_kill_loses_no_acknowledged_put() {
    for synchronous in ["normal", "full"] {
        let dir = scratch(&format!("killed-{synchronous}"));
        let file = dir.join("heatsink.db");
        let file = file.to_str().unwrap();
        let start = || Server::start(&["--data", file, "--partitions", "off", "--synchronous", synchronous]);
        let mut server = start();
        assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
        let mut acknowledged = BTreeSet::new();
        for round in 0..4_u32 {
            let address = server.address();
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let address = address.clone();
                    std::thread::spawn(move || put_until_it_ends(&address, &format!("{round}-{writer}")))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(200 + u64::from(round) * 37));
            server.stop("KILL");
            let before = acknowledged.len();
            acknowledged.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
            assert!(acknowledged.len() > before, "{synchronous}: no put was acknowledged before the kill");
            server = start();
            let stored = stored_keys(&server.endpoint());
            let lost: Vec<_> = acknowledged.difference(&stored).collect();
            assert!(
                lost.is_empty(),
                "{synchronous}, round {round}: {} of {}",
                lost.len(),
                acknowledged.len()
            );
        }
        assert_eq!(server.stop("TERM").0, Some(0));
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Puts items one after another, each on a connection of its own, until the server is gone: the
/// keys of the acknowledged ones.
fn put_until_it_ends(address: &str, writer: &str) -> Vec<String> {
    let mut acknowledged = Vec::new();
    loop {
        let key = format!("{writer}-{}", acknowledged.len());
        let body = format!(r#"{{"TableName":"scores","Item":{{"pk":{{"S":"{key}"}}}}}}"#);
        let mut answer = Vec::new();
        let answered = TcpStream::connect(address).and_then(|mut stream| {
            stream.write_all(&post("DynamoDB_20120810.PutItem", body.as_bytes()))?;
            stream.read_to_end(&mut answer)
        });
        // The answer's body is `{}`: with it the put is acknowledged.
        if answered.is_err() || !answer.starts_with(b"HTTP/1.1 200") || !answer.ends_with(b"{}") {
            return acknowledged;
        }
        acknowledged.push(key);
    }
}

/// The partition keys of all items.
fn stored_keys(endpoint: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut start = String::new();
    loop {
        let (status, page) = call(endpoint, "Scan", &format!(r#"{{"TableName":"scores"{start}}}"#));
        assert_eq!(status, 200, "{page}");
        let page: serde_json::Value = serde_json::from_str(&page).unwrap();
        let items = page["Items"].as_array().unwrap();
        keys.extend(items.iter().map(|item| item["pk"]["S"].as_str().unwrap().to_owned()));
        let Some(last) = page.get("LastEvaluatedKey") else { return keys };
        start = format!(r#","ExclusiveStartKey":{last}"#);
    }
}

#[test]
fn durability_is_asked_of_a_data_file_alone() {
    let refused = run(&["serve", "--listen", "127.0.0.1:0", "--synchronous", "full"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--data"));
}
