//! Files of the configuration that somebody writes in pieces: a beginning that is whole by itself,
//! and gives more rights than all of it, is not taken.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::TABLE;
use crate::clients::{ALL, RULES, TEAM, ask, folder, refused};
use crate::process::Server;
use crate::reload::{GENERATION, REFUSED, until};

/// A write that `team` may not do.
const PUT: &str = r#"{"TableName":"scores","Item":{"pk":{"S":"team2#a"}}}"#;

/// The rules up to the line that says which keys `team` may have.
fn beginning() -> &'static str {
    RULES.split("tables = ").next().unwrap()
}

fn wait(pause: Duration) {
    std::thread::sleep(pause);
}

fn begun(name: &str) -> (Server, PathBuf, String) {
    let (folder, rules) = folder(name, RULES);
    let server = Server::start(&["--rules", &rules]);
    assert_eq!(ask(&server, "CreateTable", TABLE, ALL).0, 200);
    refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
    (server, folder, rules)
}

#[test]
fn a_beginning_that_is_found_by_content_is_not_taken() {
    let (server, folder, rules) = begun("torn-content");
    // Longer than most waits between two looks, and shorter than each.
    for _ in 0..3 {
        std::fs::write(&rules, beginning()).unwrap();
        let end = Instant::now() + Duration::from_millis(4_500);
        while Instant::now() < end {
            refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
            wait(Duration::from_millis(20));
        }
        std::fs::write(&rules, RULES).unwrap();
        wait(Duration::from_millis(100));
    }
    assert_eq!(server.metric(GENERATION), 1.0);
    // Nor is one that is there each time that somebody looks, and is written anew in between.
    let end = Instant::now() + Duration::from_secs(12);
    while Instant::now() < end {
        std::fs::write(&rules, beginning()).unwrap();
        refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
        wait(Duration::from_millis(50));
    }
    assert_eq!(server.metric(GENERATION), 1.0);
    std::fs::write(&rules, RULES.replace("team1#*", "team*")).unwrap();
    until(&server, GENERATION, 2.0);
    assert_eq!(ask(&server, "PutItem", PUT, TEAM).0, 200);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_beginning_is_not_taken_at_a_signal() {
    let (server, folder, rules) = begun("torn-signal");
    std::fs::write(&rules, beginning()).unwrap();
    server.signal("HUP");
    wait(Duration::from_millis(100));
    refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
    std::fs::write(&rules, RULES).unwrap();
    until(&server, GENERATION, 2.0);
    refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
    // Nor what goes on changing.
    server.signal("HUP");
    let begun = Instant::now();
    while server.metric(REFUSED) < 1.0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is never told");
        std::fs::write(&rules, beginning()).unwrap();
        refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
        wait(Duration::from_millis(50));
    }
    std::fs::write(&rules, RULES.replace("team1#*", "team*")).unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 3.0);
    assert_eq!(ask(&server, "PutItem", PUT, TEAM).0, 200);
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("its files change while they are read: write each aside, and rename it"), "{log}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_beginning_is_not_taken_at_the_start() {
    let (folder, rules) = folder("torn-start", RULES);
    std::fs::write(&rules, beginning()).unwrap();
    let whole = rules.clone();
    let writer = std::thread::spawn(move || {
        wait(Duration::from_millis(150));
        std::fs::write(whole, RULES).unwrap();
    });
    let server = Server::start(&["--rules", &rules]);
    writer.join().unwrap();
    assert_eq!(ask(&server, "CreateTable", TABLE, ALL).0, 200);
    refused(ask(&server, "PutItem", PUT, TEAM), "AccessDeniedException");
    std::fs::remove_dir_all(folder).unwrap();
}
