//! What a running server tells of its requests: times and totals in the metrics, lines in the log,
//! the heat of yesterday.

use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::process::{Server, call, scratch};

const TABLE: &str = r#"{"TableName":"Tab","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}"#;
const ITEM: &str = r#"{"TableName":"Tab","Item":{"pk":{"S":"secret_key"}}}"#;

fn told(server: &Server, path: &str) -> String {
    let (status, body) = server.ask(path);
    assert_eq!(status, 200, "{body}");
    body
}

/// Writes an item until what the server tells under a path holds for `holds`.
fn writing_until(server: &Server, path: &str, holds: impl Fn(&str) -> bool) -> String {
    let begun = Instant::now();
    loop {
        assert_eq!(call(&server.endpoint(), "PutItem", ITEM).0, 200);
        let told = told(server, path);
        if holds(&told) {
            return told;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{told}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn serving_a_table(args: &[&str]) -> Server {
    let server = Server::start(args);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    server
}

#[test]
fn times_and_totals_are_metrics() {
    let server = serving_a_table(&[]);
    let counted = |metrics: &str| {
        metrics.contains("heatsink_table_units_total{table=\"Tab\",index=\"\",kind=\"write\"} ")
    };
    let metrics = writing_until(&server, "/_heatsink/metrics", counted);
    let took = "heatsink_request_duration_seconds_bucket{operation=\"PutItem\",plan=\"forward\",le=";
    assert!(metrics.contains(took), "{metrics}");
    let count = "heatsink_request_duration_seconds_count{operation=\"PutItem\",plan=\"forward\"} ";
    let puts: u64 = metrics.lines().find_map(|line| line.strip_prefix(count)?.parse().ok()).unwrap();
    assert!(puts > 0);
    // Keys are never labels, and neither is a name that no table can have.
    let hostile = r#"{"TableName":"a\"} 1\nforged 2","Key":{"pk":{"S":"secret_key"}}}"#;
    assert_eq!(call(&server.endpoint(), "GetItem", hostile).0, 400);
    let later = told(&server, "/_heatsink/metrics");
    assert!(!later.contains("secret_key") && !later.contains("forged"), "{later}");
    // Pairs that nobody asked for have no lines.
    assert!(!metrics.contains("plan=\"scatter\",le="), "{metrics}");
}

#[test]
fn the_hottest_keys_are_metrics_where_that_is_asked_for() {
    let series = "heatsink_hot_key_units_per_second{table=\"Tab\",index=\"\",kind=\"write\",key=\"";
    let named = |names: &str| {
        let server = serving_a_table(&["--hot-key-metrics", names]);
        let metrics = writing_until(&server, "/_heatsink/metrics", |metrics| metrics.contains(series));
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)).unwrap();
        let (name, units) = line.split_once("\"} ").unwrap();
        assert!(units.parse::<f64>().unwrap() > 0.0, "{line}");
        assert!(metrics.contains("heatsink_hot_key_throttled_per_second{"), "{metrics}");
        // A server alone renews its lease as any gateway does.
        let lease = metrics.lines().find_map(|line| line.strip_prefix("heatsink_lease_left_ratio ")).unwrap();
        assert!((0.3..=1.0).contains(&lease.parse::<f64>().unwrap()), "{lease}");
        name.to_owned()
    };
    assert_eq!(named("plain"), "secret_key");
    let hashed = named("hashed");
    assert!(hashed.len() == 16 && hashed.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hashed}");
}

#[test]
fn requests_are_logged_where_that_is_asked_for_and_without_keys() {
    let server = serving_a_table(&["--access-log", "--log-format", "json"]);
    assert_eq!(call(&server.endpoint(), "PutItem", ITEM).0, 200);
    assert_eq!(
        call(&server.endpoint(), "GetItem", r#"{"TableName":"none","Key":{"pk":{"S":"secret_key"}}}"#).0,
        400
    );
    let (_, log) = server.stop("TERM");
    assert!(!log.contains("secret_key"), "{log}");
    let lines: Vec<Json> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |operation: &str| lines.iter().find(|line| line["operation"] == operation).unwrap();
    let put = line("PutItem");
    assert_eq!((&put["tables"], &put["bytes_in"]), (&"Tab".into(), &ITEM.len().into()), "{put}");
    assert!(put["milliseconds"].as_f64().unwrap() > 0.0 && put["failed"].is_null(), "{put}");
    assert_eq!(line("GetItem")["failed"], "ResourceNotFoundException");
}

#[test]
fn without_being_asked_for_no_request_is_logged() {
    let server = serving_a_table(&[]);
    assert_eq!(server.stop("TERM").1, "");
}

#[test]
fn the_history_of_the_heat_survives_a_restart() {
    let folder = scratch("heat-history");
    let data = folder.join("data.db");
    let args = ["--data", data.to_str().unwrap()];
    let server = serving_a_table(&args);
    writing_until(&server, "/_heatsink/heat/map?span=10m", |map| map.contains("secret_key"));
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    let server = Server::start(&args);
    let map = told(&server, "/_heatsink/heat/map?span=10m");
    assert!(map.contains("secret_key"), "{map}");
    drop(server);
    // A file that cannot be read is said, and holds nothing up.
    std::fs::write(folder.join("data.db.heat"), "{\"version\":9,\"rows\":[]}").unwrap();
    let server = Server::start(&args);
    assert!(!told(&server, "/_heatsink/heat/map?span=10m").contains("secret_key"));
    let (code, log) = server.stop("TERM");
    assert!(code == Some(0) && log.contains("begins anew") && log.contains("version 9"), "{log}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A dashboard that asks for what is not there shows empty panels to whoever is on call.
#[test]
fn the_dashboard_asks_for_metrics_that_are_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let documented = read("docs/reference/metrics.md");
    let dashboard: Json = serde_json::from_str(&read("examples/grafana/heatsink.json")).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
    let queries: Vec<&str> = targets.flatten().map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 15);
    for query in queries {
        let names = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for name in names.filter(|name| name.starts_with("heatsink_")) {
            let base =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(documented.contains(&format!("`{base}")), "{name} in {query}");
        }
    }
}
