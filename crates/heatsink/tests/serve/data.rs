//! The data file of a server: one process at a time, nobody else's, and whole after a kill.

use std::fs;
use std::io::Write;
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
        let listed = || fs::read_dir(&dir).unwrap().map(|one| one.unwrap());
        for one in listed() {
            let mode = one.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{umask}: {:?}", one.path());
        }
        assert_eq!(server.stop("TERM").0, Some(0));
        for one in listed() {
            let mode = one.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{umask}: {:?}", one.path());
        }
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
        // Sometimes before it is carried out, sometimes between that and the answer, sometimes behind both.
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
