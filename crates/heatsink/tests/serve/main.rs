//! `heatsink serve` as a process: what it prints, what it refuses, how it ends, and what bad
//! requests get from it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "processes and sockets keep real time")]

mod admin;
mod bad_input;
mod certified;
mod clients;
mod data;
mod ending;
mod front;
mod heatmap;
mod life;
mod observed;
mod operator_socket;
mod pauses;
mod process;
mod record;
mod recorded;
mod refusals;
mod reload;
mod secured;
mod stream;
#[cfg(feature = "top")]
mod top;
mod torn;
mod unfit;
mod upstream;
mod watch;
mod webhook;

use process::{Server, call};

const TABLE: &str = r#"{"TableName":"scores","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;

#[test]
fn prints_the_endpoint_and_lines_to_paste_and_leaves_with_zero() {
    for signal in ["INT", "TERM"] {
        let server = Server::start_text(&[]);
        let printed = server.printed().to_owned();
        let endpoint = server.endpoint();
        assert!(printed.contains(&format!("--endpoint-url {endpoint}")), "{printed}");
        assert!(printed.contains(&format!("endpoint_url=\"{endpoint}\"")), "{printed}");
        assert!(printed.contains(&format!("endpoint: \"{endpoint}\"")), "{printed}");
        assert!(printed.contains("in memory"), "{printed}");
        assert_eq!(call(&endpoint, "ListTables", "{}"), (200, r#"{"TableNames":[]}"#.to_owned()));
        let (code, stderr) = server.stop(signal);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_data_file_keeps_the_data() {
    let dir = process::scratch("keeps");
    let file = dir.join("heatsink.db");
    let file = file.to_str().unwrap();
    let first = Server::start(&["--data", file]);
    assert_eq!(call(&first.endpoint(), "CreateTable", TABLE).0, 200);
    let put = r#"{"TableName":"scores","Item":{"pk":{"S":"a"},"n":{"N":"1"}}}"#;
    assert_eq!(call(&first.endpoint(), "PutItem", put).0, 200);
    assert_eq!(first.stop("INT").0, Some(0));

    let second = Server::start(&["--data", file, "--partitions", "off"]);
    let (status, body) =
        call(&second.endpoint(), "GetItem", r#"{"TableName":"scores","Key":{"pk":{"S":"a"}}}"#);
    assert_eq!(status, 200);
    let item: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(item["Item"]["n"]["N"], "1");
    assert_eq!(second.stop("TERM").0, Some(0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn rules_shard_what_clients_see_whole() {
    let dir = process::scratch("rules");
    let rules = dir.join("heatsink.toml");
    std::fs::write(&rules, "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n").unwrap();
    let server = Server::start(&["--rules", rules.to_str().unwrap()]);
    let endpoint = server.endpoint();
    let table = r#"{"TableName":"board","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],
        "BillingMode":"PAY_PER_REQUEST"}"#;
    assert_eq!(call(&endpoint, "CreateTable", table).0, 200);
    for n in 0..20 {
        let put = format!(r#"{{"TableName":"board","Item":{{"pk":{{"S":"g"}},"sk":{{"N":"{n}"}}}}}}"#);
        assert_eq!(call(&endpoint, "PutItem", &put), (200, "{}".to_owned()));
    }
    let query = r#"{"TableName":"board","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"g"}},"ScanIndexForward":false,"Limit":5}"#;
    let (status, body) = call(&endpoint, "Query", query);
    assert_eq!(status, 200, "{body}");
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    let keys: Vec<&str> =
        page["Items"].as_array().unwrap().iter().map(|item| item["sk"]["N"].as_str().unwrap()).collect();
    assert_eq!(keys, ["19", "18", "17", "16", "15"]);
    assert_eq!(page["LastEvaluatedKey"]["pk"]["S"], "g");

    let (status, metrics) = server.ask("/_heatsink/metrics");
    assert_eq!(status, 200);
    for line in [
        "heatsink_requests_total{operation=\"PutItem\",outcome=\"ok\"} 20\n",
        "heatsink_plans_total{plan=\"scatter\"} 1\n",
        "heatsink_physical_calls_per_request_count 21\n",
        "heatsink_partial_answers_total 0\n",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }

    let audit = ["audit", "board", "--upstream", &endpoint, "--output", "json"];
    let audited = process::heatsink().args(audit).env("AWS_REGION", "us-east-1").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&audited.stdout).unwrap();
    let pattern = &report["patterns"][0];
    assert_eq!(
        (&pattern["pattern"], &pattern["keys"], &pattern["items"]),
        (&"g".into(), &1.into(), &20.into())
    );
    assert_eq!(pattern["verdict"]["action"], "measure", "numbers from 0 to 19 are no times: {report}");
    assert_eq!(server.stop("INT").0, Some(0));
    std::fs::remove_dir_all(dir).unwrap();
}
