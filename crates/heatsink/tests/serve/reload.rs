//! Rules and limits that change while the server serves.

use std::fmt::Debug;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{Server, call, scratch};

pub const GENERATION: &str = "heatsink_config_generation";
pub const REFUSED: &str = "heatsink_config_refused_total";

fn rules(shards: u32) -> String {
    format!("[[rule]]\ntable = \"board*\"\nstrategy = \"calculated\"\nshards = {shards}\n")
}

fn table(name: &str) -> String {
    format!(
        r#"{{"TableName":"{name}","KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}],
        "AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"S"}},{{"AttributeName":"sk","AttributeType":"N"}}],
        "BillingMode":"PAY_PER_REQUEST"}}"#
    )
}

/// Waits until a metric has that value.
pub fn until(server: &Server, name: &str, value: f64) {
    // One that counts is not there before it has counted.
    let counted = || server.ask("/_heatsink/metrics").1.contains(name);
    until_so(name, || if counted() { server.metric(name) } else { 0.0 }, |now| *now >= value);
}

/// Waits until what is looked at is so.
fn until_so<T: Debug>(what: &str, look: impl Fn() -> T, mut is_so: impl FnMut(&T) -> bool) {
    let begun = Instant::now();
    loop {
        let now = look();
        if is_so(&now) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} is {now:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How many physical calls a Query of one key takes.
fn calls_of_a_query(server: &Server, table: &str) -> f64 {
    let sum = "heatsink_physical_calls_per_request_sum";
    let before = server.metric(sum);
    let query = format!(
        r#"{{"TableName":"{table}","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"g"}}}}}}"#
    );
    let (status, body) = call(&server.endpoint(), "Query", &query);
    assert_eq!(status, 200, "{body}");
    server.metric(sum) - before
}

fn start(file: &Path) -> Server {
    Server::start(&["--rules", file.to_str().unwrap()])
}

#[test]
fn other_rules_hold_for_tables_that_are_new() {
    let dir = scratch("reload");
    let file = dir.join("rules.toml");
    std::fs::write(&file, rules(4)).unwrap();
    let server = start(&file);
    assert_eq!(call(&server.endpoint(), "CreateTable", &table("board1")).0, 200);
    assert_eq!(calls_of_a_query(&server, "board1"), 4.0);
    // Found by what is in the file, without a signal. What is on record stays so.
    std::fs::write(&file, rules(6)).unwrap();
    until(&server, GENERATION, 2.0);
    assert_eq!(call(&server.endpoint(), "CreateTable", &table("board2")).0, 200);
    assert_eq!((calls_of_a_query(&server, "board1"), calls_of_a_query(&server, "board2")), (4.0, 6.0));
    let put = |n: u32| {
        let put = format!(r#"{{"TableName":"board1","Item":{{"pk":{{"S":"g"}},"sk":{{"N":"{n}"}}}}}}"#);
        assert_eq!(call(&server.endpoint(), "PutItem", &put).0, 200);
    };
    put(1);
    // One that is wrong is refused, by signal and by content, and nothing changes.
    for (nth, wrong) in
        ["[[rule]]\ntable = \"board*\"\nshard = 1\n", "[fence]\nregistry = \"other.registry\"\n"]
            .iter()
            .enumerate()
    {
        std::fs::write(&file, wrong).unwrap();
        server.signal("HUP");
        until(&server, REFUSED, (nth + 1) as f64);
        put(2);
        assert_eq!(calls_of_a_query(&server, "board2"), 6.0);
    }
    std::fs::remove_file(&file).unwrap();
    until(&server, REFUSED, 3.0);
    assert_eq!(server.metric(GENERATION), 2.0);
    std::fs::write(&file, rules(6)).unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 3.0);
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("rules.toml") && log.contains("stays in force"), "{log}");
    assert!(log.contains("The rules contradict the registry for table board1"), "{log}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_rule_with_another_number_of_shards_stops_no_start() {
    let dir = scratch("reload-start");
    let (file, data) = (dir.join("rules.toml"), dir.join("data.db"));
    let start = || Server::start(&["--rules", file.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    std::fs::write(&file, rules(4)).unwrap();
    let server = start();
    assert_eq!(call(&server.endpoint(), "CreateTable", &table("board1")).0, 200);
    let put = r#"{"TableName":"board1","Item":{"pk":{"S":"g"},"sk":{"N":"1"}}}"#;
    assert_eq!(call(&server.endpoint(), "PutItem", put).0, 200);
    assert_eq!(server.stop("TERM").0, Some(0));
    std::fs::write(&file, rules(6)).unwrap();
    let server = start();
    let get = r#"{"TableName":"board1","Key":{"pk":{"S":"g"},"sk":{"N":"1"}}}"#;
    assert!(call(&server.endpoint(), "GetItem", get).1.contains("\"N\":\"1\""));
    assert_eq!(calls_of_a_query(&server, "board1"), 4.0);
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("The rules contradict the registry for table board1"), "{log}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn limits_follow_the_file() {
    let dir = scratch("reload-limits");
    let file = dir.join("rules.toml");
    std::fs::write(&file, "").unwrap();
    let server = start(&file);
    let mut held = TcpStream::connect(server.address()).unwrap();
    assert_eq!(call(&server.endpoint(), "ListTables", "{}").0, 200);
    std::fs::write(&file, "[limits]\nconnections = 1\n").unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 2.0);
    // A silent connection is closed after a while, which may be over on a busy machine.
    let status = || call(&server.endpoint(), "ListTables", "{}").0;
    until_so("the answer beside a connection", status, |status| {
        let is_refused = *status == 503;
        if !is_refused {
            held = TcpStream::connect(server.address()).unwrap();
        }
        is_refused
    });
    drop(held);
    until_so("the answer alone", status, |status| *status == 200);
    std::fs::remove_dir_all(dir).unwrap();
}
