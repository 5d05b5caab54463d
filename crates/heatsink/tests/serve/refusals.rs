//! What `serve` does not start with: exit code and reason.

use std::net::TcpListener;

use crate::process::{run, scratch};

fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = run(args);
    assert!(output.stdout.is_empty(), "{args:?} printed {:?}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn bad_configuration_is_64_with_the_reason() {
    let dir = scratch("refusals");
    let bad = dir.join("bad.toml");
    std::fs::write(&bad, "[[rule]]\ntable = \"t\"\nstrategy = \"calculated\"\nshard = 10\n").unwrap();
    let bad = bad.to_str().unwrap();
    let missing = dir.join("missing.toml");
    for (args, reason) in [
        (&["serve", "--listen", "0.0.0.0:0"][..], "anyone who can reach the port"),
        (&["serve", "--listen", "192.168.1.1:8000"], "--tls-client-ca"),
        (&["serve", "--listen", "[::]:0"], "--insecure-listen"),
        (&["serve", "--listen", "nonsense"], "--listen"),
        (&["serve", "--data", "a", "--upstream", "http://127.0.0.1:1"], "cannot be used with"),
        (&["serve", "--upstream", "127.0.0.1:1"], "--upstream"),
        (&["serve", "--upstream", "http://user:word@127.0.0.1:1"], "must not hold credentials"),
        (&["serve", "--listen", "127.0.0.1:0", "--rules", bad], "shard"),
        (
            &["serve", "--listen", "127.0.0.1:0", "--rules", missing.to_str().unwrap()],
            "cannot read the rules",
        ),
        (&["serve", "--partitions", "maybe"], "--partitions"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        let (code, stderr) = refused(args);
        assert_eq!(code, Some(64), "{args:?}: {stderr}");
        assert!(stderr.contains(reason), "{args:?}: {stderr}");
    }
    let (_, stderr) = refused(&["serve", "--rules", bad]);
    assert!(stderr.contains("bad.toml") && stderr.contains('4'), "names file and line: {stderr}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_is_not_to_be_had_is_69() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, stderr) = refused(&["serve", "--listen", &address]);
    assert_eq!(code, Some(69), "{stderr}");
    assert!(stderr.contains(&address) && stderr.contains("in use"), "{stderr}");

    let dir = scratch("unavailable");
    let text = dir.join("text.db");
    std::fs::write(&text, "this is no database, it is a text of some length".repeat(100)).unwrap();
    let (code, stderr) = refused(&["serve", "--listen", "127.0.0.1:0", "--data", text.to_str().unwrap()]);
    assert_eq!(code, Some(69), "{stderr}");
    assert!(stderr.contains("text.db"), "{stderr}");

    let (code, stderr) = refused(&["serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(69), "{stderr}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn help_version_and_completions_are_asked_for() {
    for (args, says) in [
        (&["--help"][..], "serve"),
        (&["serve", "--help"], "--upstream"),
        (&["--version"], "heatsink"),
        (&["completions", "bash"], "_heatsink"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains(says), "{args:?}");
    }
}
