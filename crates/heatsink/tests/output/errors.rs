//! Errors: in plain words on stderr, or as one JSON document there; and the exit codes that
//! docs/reference/errors.md lists.

use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::command::{Server, TestDir, closed_port, text};

/// What no text for people holds: Rust's notation, numbers of system errors, JSON, names of the
/// SDK's types.
const NOT_WORDS: [&str; 8] =
    ["os error", "Some(", "None", "Err(", "{\"", "SystemTime", "provider", "InternalServerError"];

/// Runs a command that fails, for people and for scripts, and gives what it says in words.
fn fails(place: &TestDir, arguments: &[&str], code: i32, kind: &str) -> String {
    let plain = place.run(arguments);
    let said = text(&plain.stderr);
    assert_eq!(plain.status.code(), Some(code), "{arguments:?}: {said}");
    for wrong in NOT_WORDS {
        assert!(!said.contains(wrong), "{arguments:?} says {wrong:?}: {said}");
    }

    let scripted = place.run(&[arguments, &["--output", "json"]].concat());
    let stderr = text(&scripted.stderr);
    assert_eq!(scripted.status.code(), Some(code), "{arguments:?}: {stderr}");
    let document: Json = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{arguments:?}: {stderr}"));
    let error = &document["error"];
    assert_eq!(
        (&error["exit_code"], &error["kind"]),
        (&code.into(), &kind.into()),
        "{arguments:?}: {stderr}"
    );
    assert!(error["retryable"].is_boolean(), "{stderr}");
    let message = error["message"].as_str().unwrap();
    assert!(said.contains(message.lines().next().unwrap()), "{said}\n{message}");
    if !scripted.stdout.is_empty() {
        serde_json::from_slice::<Json>(&scripted.stdout).unwrap();
    }
    said
}

#[test]
fn wrong_arguments_and_rules_are_64() {
    let place = TestDir::new("usage");
    place.data();
    place.file("bad.toml", "[[rule]]\ntable = 5\n");
    place.file("rules.toml", "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n");
    place.file("empty.json", "{}");
    place.file("text.json", "[");
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0"]);
    let address = server.address();
    for (arguments, says) in [
        (&["nonsense"][..], "nonsense"),
        (&["serve", "--no-such-flag"], "--no-such-flag"),
        (&["serve", "--partitions", "maybe"], "--partitions"),
        (&["shards", "--writes", "9", "--risk", "0"], "--risk"),
        (&["serve", "--listen", "9500"], "expected HOST:PORT"),
        (&["serve", "--listen", "0.0.0.0:9500"], "--insecure-listen"),
        (&["serve", "--listen", "http://localhost:9500"], "without http://"),
        (
            &["serve", "--rules", "missing.toml"],
            "cannot read the rules in missing.toml: No such file or directory",
        ),
        (&["config", "check"], "there is no heatsink.toml in the working directory"),
        (&["config", "check", "--rules", "bad.toml"], "bad.toml:2: rule[1].table"),
        (&["config", "check", "--rules", "rules.toml", "--data", "data.db"], "cannot hold for 1 table"),
        (&["explain", "missing.json", "--op", "Query", "--data", "data.db"], "cannot read missing.json"),
        (&["explain", "missing.json", "--op", "Nope", "--data", "data.db"], "no operation Nope"),
        (&["explain", "empty.json", "--op", "Query", "--data", "data.db"], "no valid request for Query"),
        (&["explain", "text.json", "--op", "Query", "--data", "data.db"], "no valid request for Query"),
        (&["audit", "Nope", "--data", "data.db"], "There is no table Nope"),
        (&["audit", "Nope", "--data", "missing.db"], "there is no such file"),
        (&["adopt", "Nope", "--data", "data.db", "--rules", "rules.toml", "--yes"], "There is no table Nope"),
        (&["adopt", "Board", "--data", "data.db", "--rules", "rules.toml"], "say --yes"),
        (&["adopt", "Board", "--data", "data.db", "--back", "--yes"], "nothing to bring back"),
        (&["status", "Nope", "--data", "data.db"], "There is no table Nope"),
        (&["leave", "Nope", "--data", "data.db"], "There is no table Nope"),
        (&["simulate", "nope"], "no shipped scenario named nope"),
        (&["demo", "leaderboard", "--writes", "100000"], "no shard count carries"),
        (&["partitions", "Nope", "--server", &address], "there is no table Nope"),
    ] {
        let said = fails(&place, arguments, 64, "usage");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_not_to_be_had_is_69() {
    let place = TestDir::new("unavailable");
    place.file("rules.toml", "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n");
    place.file("notadb", &"this is no database, it is a text of some length".repeat(100));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let without = Server::start(&place, &["serve", "--listen", "127.0.0.1:0", "--partitions", "off"]);
    let (without, nobody) = (without.address(), closed_port());
    let upstream = format!("http://{nobody}");
    for (arguments, says) in [
        (&["serve", "--listen", &taken][..], "in use"),
        (&["serve", "--listen", "127.0.0.1:0", "--upstream", &upstream], "cannot be reached"),
        (&["config", "check", "--rules", "rules.toml", "--upstream", &upstream], "Connection refused"),
        (&["audit", "T", "--upstream", &upstream], "Connection refused"),
        (&["adopt", "T", "--rules", "rules.toml", "--upstream", &upstream, "--yes"], "nothing was changed"),
        (&["status", "--upstream", &upstream], "Connection refused"),
        (&["leave", "--upstream", &upstream], "Connection refused"),
        (&["partitions", "T", "--server", &nobody], "is `heatsink serve` running?"),
        (&["partitions", "T", "--server", &without], "no partitions"),
    ] {
        let said = fails(&place, arguments, 69, "unavailable");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0", "--data", "notadb"][..],
        &["audit", "T", "--data", "notadb"],
        &["config", "check", "--rules", "rules.toml", "--data", "notadb"],
    ] {
        let done = place.run(arguments);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(69), "{said}");
        assert!(said.contains("the data file notadb") && !said.contains("InternalServerError"), "{said}");
    }
}

#[test]
fn a_half_done_or_unsettled_command_is_1() {
    let place = TestDir::new("failed");
    place.data();
    place.file("idle.toml", "[[rule]]\ntable = \"Nope\"\nstrategy = \"none\"\n");
    let said = fails(&place, &["config", "check", "--rules", "idle.toml", "--data", "data.db"], 1, "failed");
    assert!(said.contains("matches no table"), "{said}");
}

/// Where nothing tells who the operator is, the command says what to set, and does not wait for a
/// machine that is not there.
#[test]
fn missing_credentials_are_said_in_words_and_at_once() {
    let place = TestDir::new("credentials");
    let started = Instant::now();
    let mut command =
        place.command(&["serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let done = command.output().unwrap();
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{said}");
    for name in ["no AWS credentials were found", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"]
    {
        assert!(said.contains(name), "{said}");
    }
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(NOT_WORDS.iter().all(|wrong| !said.contains(wrong)), "{said}");
    assert!(started.elapsed() < Duration::from_secs(5), "it waited {:?}", started.elapsed());

    let mut command = place.command(&["audit", "T", "--upstream", "http://127.0.0.1:1"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").env("AWS_PROFILE", "night");
    let said = text(&command.output().unwrap().stderr);
    assert!(said.contains("the profile night (AWS_PROFILE) has no usable credentials"), "{said}");
}

#[test]
fn a_host_name_is_resolved() {
    let place = TestDir::new("localhost");
    let server = Server::start(&place, &["serve", "--listen", "localhost:0"]);
    let address: std::net::SocketAddr = server.address().parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
    crate::rules::post(
        &server.address(),
        "CreateTable",
        r#"{"TableName":"votes","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}"#,
    );
    for server in [format!("localhost:{}", address.port()), format!("http://{address}/")] {
        let done = place.run(&["partitions", "votes", "--server", &server]);
        assert!(text(&done.stdout).starts_with("votes: on-demand"), "{}", text(&done.stderr));
    }
}

#[test]
fn a_command_of_the_laboratory_is_named_with_its_program() {
    let place = TestDir::new("laboratory");
    for name in ["demo", "picture", "plan", "simulate"] {
        for more in [&[][..], &["--output", "json"], &["votes"]] {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_heatsink"));
            let done = command.arg(name).args(more).current_dir(&place.0).output().unwrap();
            assert_eq!(done.status.code(), Some(64), "{done:?}");
            assert!(done.stdout.is_empty(), "{done:?}");
            assert!(text(&done.stderr).contains(&format!("heatsink-lab {name}")), "{done:?}");
        }
    }
}
