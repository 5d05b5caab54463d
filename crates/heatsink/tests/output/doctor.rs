//! `doctor` finds what is wrong, says what to do, and changes nothing.

use std::io::{Read, Write};

use serde_json::Value as Json;

use crate::command::{Server, TestDir, closed_port, report, text};

const RULES: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"calculated\"\nshards = 4\n";

/// What `doctor` says of a check: the state and the sentence of each finding.
fn found(place: &TestDir, arguments: &[&str], code: i32) -> Vec<(String, String, String)> {
    let done = place.run(&[&["doctor", "--output", "json"], arguments].concat());
    assert_eq!(done.status.code(), Some(code), "{}{}", text(&done.stdout), text(&done.stderr));
    let document: Json =
        serde_json::Deserializer::from_slice(&done.stdout).into_iter().next().unwrap().unwrap();
    let word = |one: &Json, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = document["findings"].as_array().unwrap();
    // Whatever is not right says what to do.
    assert!(all.iter().all(|one| one["state"] == "ok" || one["do"].is_string()), "{document}");
    all.iter().map(|one| (word(one, "check"), word(one, "state"), word(one, "said"))).collect()
}

fn says(found: &[(String, String, String)], check: &str, state: &str, said: &str) {
    let is = |one: &(String, String, String)| one.0 == check && one.1 == state && one.2.contains(said);
    assert!(found.iter().any(is), "no {check} {state} {said:?} in {found:#?}");
}

#[test]
fn of_a_store_in_order_all_is_well_and_nothing_changes() {
    let place = TestDir::new("doctor");
    place.data();
    place.file("none.toml", "");
    let before = found(&place, &["--data", "data.db", "--rules", "none.toml"], 0);
    says(&before, "registry", "ok", "no sign that there was one");
    says(&before, "transactions", "ok", "TransactWriteItems");
    report(&place, "reshard start Board OPS_LOG --shards 2 --data data.db --yes");
    let after = found(&place, &["--data", "data.db", "--rules", "none.toml"], 0);
    says(&after, "registry", "ok", "heatsink.registry is there");
    says(&after, "tables and rules", "ok", "tables: 2, of which 1 are sharded");
    says(&after, "rights", "ok", "tried on 2");
    says(&after, "writers past the gateways", "not_seen", "only what goes through it");
    let looked = report(&place, "verify Board --data data.db --rules none.toml");
    assert_eq!(looked["items"], 350, "{looked}");
}

#[test]
fn a_rule_that_cannot_hold_is_a_fault_with_a_command() {
    let place = TestDir::new("doctor-rules");
    place.data();
    place.file("rules.toml", RULES);
    let all = found(&place, &["--data", "data.db", "--rules", "rules.toml"], 1);
    says(&all, "tables and rules", "fault", "table Board");
    place.file("idle.toml", &RULES.replace("Board", "Nowhere"));
    says(
        &found(&place, &["--data", "data.db", "--rules", "idle.toml"], 0),
        "tables and rules",
        "warning",
        "rule 1 (line 1)",
    );
    place.file("wrong.toml", "[[rule]]\nshards = \"ten\"\n");
    says(
        &found(&place, &["--data", "data.db", "--rules", "wrong.toml"], 1),
        "configuration",
        "fault",
        "wrong.toml:2",
    );
    let words = place.run(&["doctor", "--data", "data.db", "--rules", "rules.toml"]);
    assert!(text(&words.stdout).contains("do: `heatsink adopt Board`"), "{}", text(&words.stdout));
}

#[test]
fn clients_are_looked_at_without_their_secrets() {
    let place = TestDir::new("doctor-clients");
    place.data();
    let look = |text: &str, code| {
        place.file("rules.toml", text);
        found(&place, &["--data", "data.db", "--rules", "rules.toml"], code)
    };
    says(&look("", 0), "clients", "ok", "none are named");
    let one = "[[client]]\nid = \"jobs\"\ncertificate = \"spiffe://a/jobs\"\n";
    let two = "[[client]]\nid = \"keys\"\nsecret_file = \"none\"\n";
    let all = look(&format!("{one}{two}"), 0);
    says(&all, "clients", "ok", "named: 2, of which 1 show a certificate");
    says(&all, "clients", "not_seen", "whether the gateway asks for certificates");
    let all = look(&format!("{one}expires = \"soon\"\n"), 1);
    says(&all, "clients", "fault", "rules.toml:4: client[1].expires: expected a moment");
    let all = look(&one.repeat(2).replacen("jobs", "other", 1), 1);
    says(&all, "configuration", "fault", "two clients have the certificate spiffe://a/jobs");
}

#[test]
fn a_store_that_is_not_there_or_says_no_is_told_as_that() {
    let place = TestDir::new("doctor-denied");
    place.file("rules.toml", RULES);
    let gone = format!("http://{}", closed_port());
    says(
        &found(&place, &["--upstream", &gone, "--rules", "rules.toml"], 1),
        "tables and rules",
        "fault",
        "Connection refused",
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let denies = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 65_536]);
            let _ = stream.read(&mut request);
            let body = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not you"}"#;
            let head =
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    let all = found(&place, &["--upstream", &denies, "--rules", "rules.toml"], 1);
    says(&all, "credentials", "ok", "signed for us-east-1");
    says(&all, "tables and rules", "fault", "refuses it");
    assert!(all.iter().all(|one| !one.2.contains("be reached")), "{all:#?}");
}

/// A gateway in front of the store answers `doctor` too, and is not what it should look at.
#[test]
fn a_server_of_heatsink_is_no_store() {
    let place = TestDir::new("doctor-server");
    place.file("rules.toml", RULES);
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0", "--rules", "rules.toml"]);
    let url = format!("http://{}", server.address());
    says(
        &found(&place, &["--upstream", &url, "--rules", "rules.toml"], 1),
        "store",
        "fault",
        "server of Heatsink",
    );
}
