//! `heatsink watch`: what it sends by itself, what it says, and when it refuses.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::process::{PATIENCE, Server, call, heatsink, post, run, scratch};
use crate::recorded::Recorder;

const BOARD: &str = r#"{"TableName":"board","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;

fn watch(upstream: &str, more: &[&str]) -> Server {
    let mut command = heatsink();
    Server::of(
        command
            .args(["watch", "--listen", "127.0.0.1:0", "--upstream", upstream, "--output", "json"])
            .args(more)
            .env("AWS_REGION", "us-east-1"),
    )
}

fn put(key: &str, sort: u32) -> String {
    // Spaces and the order of members are the client's, and have to stay.
    format!(
        "{{ \"Item\" : {{\"sk\":{{\"S\":\"{sort:06}\"}} ,\"pk\":{{\"S\":\"{key}\"}}}},\"TableName\":\"board\"  }}"
    )
}

#[test]
fn the_store_sees_the_requests_of_clients_and_reads_for_watching() {
    let store = Server::start(&["--partitions", "off"]);
    let recorder = Recorder::before(&store.address());
    let server = watch(&recorder.endpoint, &[]);
    let printed: Json = serde_json::from_str(server.printed()).unwrap();
    assert_eq!((&printed["event"], &printed["writes"]), (&json!("watching"), &json!(false)));
    let endpoint = server.endpoint();
    let query = r#"{"TableName":"board","KeyConditionExpression":"pk = :p",  "ExpressionAttributeValues":{":p":{"S":"a"}}}"#;
    let mut sent: Vec<(String, String)> = vec![("CreateTable".into(), BOARD.into())];
    sent.extend((0..50).map(|n| ("PutItem".to_owned(), put("a", n))));
    let batch = r#"{"RequestItems":{"board":[{"PutRequest":{"Item":{"pk":{"S":"b"},"sk":{"S":"1"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"b"},"sk":{"S":"0"}}}}]}}"#;
    for (operation, body) in [
        ("Query", query),
        ("BatchWriteItem", batch),
        (
            "GetItem",
            r#"{"TableName":"board","Key":{"sk":{"S":"1"},"pk":{"S":"b"}},"ReturnConsumedCapacity":"TOTAL"}"#,
        ),
        ("GetItem", r#"{"TableName":"board","Key":{"pk":{"S":"b"}}}"#),
        ("GetItem", r#"{"TableName":"none","Key":{"pk":{"S":"b"}}}"#),
        ("ExecuteStatement", r#"{"Statement":"SELECT * FROM \"board\" WHERE pk = 'a'"}"#),
        (
            "TransactWriteItems",
            r#"{"TransactItems":[{"Delete":{"TableName":"board","Key":{"pk":{"S":"a"},"sk":{"S":"000001"}}}}]}"#,
        ),
        ("Scan", r#"{"TableName":"board","Limit":3}"#),
        ("ListTables", "{}"),
        (
            "UpdateTimeToLive",
            r#"{"TableName":"board","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"ttl"}}"#,
        ),
        ("DeleteTable", r#"{"TableName":"board"}"#),
    ] {
        sent.push((operation.into(), body.into()));
    }
    for (operation, body) in &sent {
        let through = call(&endpoint, operation, body);
        // An error has the bytes of the store too, which
        // `forwards_to_another_endpoint_and_keeps_its_errors` compares.
        assert!([200, 400].contains(&through.0), "{operation} {body}: {through:?}");
    }
    std::thread::sleep(Duration::from_millis(6_000));
    let own = |operation: &str, body: &[u8]| {
        let body: Json = serde_json::from_slice(body).unwrap();
        match operation {
            "DescribeTable" | "ListTagsOfResource" => true,
            "GetItem" => body["TableName"] == "heatsink.registry",
            "ListTables" => body["Limit"] == 100,
            "Scan" => body["ProjectionExpression"] == "#p, #s",
            _ => false,
        }
    };
    let (by_itself, of_clients): (Vec<_>, Vec<_>) =
        recorder.calls().into_iter().partition(|(operation, body)| own(operation, body));
    // What requests cost is asked for where the client does not ask, and nothing else is changed.
    let without = |body: &str| {
        let asks = |what: &str| format!(r#","ReturnConsumedCapacity":"{what}"}}"#);
        body.replace(&asks("INDEXES"), "}").replace(&asks("TOTAL"), "}")
    };
    let of_clients: Vec<(String, String)> = of_clients
        .into_iter()
        .map(|(operation, body)| (operation, without(&String::from_utf8(body).unwrap())))
        .collect();
    let sent: Vec<_> = sent.into_iter().map(|(operation, body)| (operation, without(&body))).collect();
    assert_eq!(of_clients, sent, "each request of the client, byte for byte, in its order, and no other");
    let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (operation, body) in by_itself {
        let body: Json = serde_json::from_slice(&body).unwrap();
        let table = body["TableName"].as_str().map(str::to_owned);
        let of_arn =
            || body["ResourceArn"].as_str().and_then(|arn| arn.rsplit('/').next()).map(str::to_owned);
        *counted.entry((operation, table.or_else(of_arn).unwrap_or_default())).or_default() += 1;
    }
    let of = |operation: &str, table: &str| {
        counted.get(&(operation.to_owned(), table.to_owned())).copied().unwrap_or(0)
    };
    assert_eq!(of("DescribeTable", "heatsink.registry"), 1, "{counted:?}");
    // A table that was changed, or was missing, is described again.
    assert!((1..=4).contains(&of("DescribeTable", "board")), "{counted:?}");
    assert!((2..=6).contains(&of("GetItem", "heatsink.registry")), "every 5 s: {counted:?}");
    // Whether it was sharded is looked at once.
    for once in [of("ListTagsOfResource", "board"), of("Scan", "board"), of("ListTables", "")] {
        assert_eq!(once, 1, "{counted:?}");
    }
    assert!(
        // A gateway of another test may have had this port for its store.
        counted.keys().all(|(_, table)| [
            "heatsink.registry",
            "board",
            "none",
            "Events",
            "Logs",
            "scores",
            ""
        ]
        .contains(&table.as_str())),
        "{counted:?}"
    );
    assert_eq!(server.stop("INT").0, Some(0));
}

#[test]
fn it_tells_what_is_hot_and_reports_at_the_end() {
    let store = Server::start(&["--partitions", "off"]);
    assert_eq!(call(&store.endpoint(), "CreateTable", BOARD).0, 200);
    let hostile = r"evil\n\u001b[31m\u202e";
    let watched = |text: bool| {
        let mut command = heatsink();
        command.args(["watch", "--listen", "127.0.0.1:0", "--upstream", &store.endpoint(), "--seconds", "4"]);
        command.env("AWS_REGION", "us-east-1").env("COLUMNS", "100");
        let output = if text { "text" } else { "json" };
        let child = command.args(["--output", output]).stdout(Stdio::piped()).spawn().unwrap();
        load(child, hostile)
    };
    let text = watched(true);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "byte for byte",
        "It writes nothing to the store",
        "GetItem every 5 s, for the table",
        "export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:",
        "Watched for 4 s: about ",
        "Not seen:",
        r"evil\n\u{1b}[31m\u{202e}",
    ] {
        assert!(words.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    let lines: Vec<Json> = watched(false).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "watching");
    let report = lines.last().unwrap();
    assert_eq!(report["event"], "report", "{report}");
    assert_eq!(report["tables"], json!(["board"]));
    assert!(report["keys"][0]["peak_units_per_s"].as_f64().unwrap() > 1.0, "{report}");
    assert!(
        report["requests"].as_f64().unwrap() > 10.0 && report["not_seen"].as_array().unwrap().len() >= 3,
        "{report}"
    );
}

/// Writes to one key until the command ends, and gives what it printed.
fn load(mut child: Child, key: &str) -> String {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    let endpoint = loop {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "{printed}");
        printed += &line;
        let found =
            line.split_once("AWS_ENDPOINT_URL_DYNAMODB=").or_else(|| line.split_once("\"endpoint\":\""));
        if let Some((_, rest)) = found {
            break rest.split(['"', '\n']).next().unwrap().to_owned();
        }
    };
    // Until nobody listens any more.
    for n in 0..5_000 {
        if answered(&endpoint, "PutItem", &put(key, n)).is_none() {
            break;
        }
    }
    out.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    printed
}

/// The status and the body; `None` where nobody answers.
fn answered(endpoint: &str, operation: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(endpoint.trim_start_matches("http://")).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&post(&format!("DynamoDB_20120810.{operation}"), body.as_bytes())).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

#[test]
fn a_store_with_sharded_tables_is_refused_and_one_that_becomes_so_ends_it() {
    let dir = scratch("watch");
    let rules = dir.join("sharded.toml");
    // The store is a Heatsink too, and keeps the usual name of a registry for itself.
    let fence = dir.join("fence.toml");
    std::fs::write(&fence, "[fence]\nregistry = \"watched.registry\"\n").unwrap();
    std::fs::write(&rules, "[fence]\nregistry = \"watched.registry\"\n[[rule]]\ntable = \"board\"\nstrategy = \"calculated\"\nshards = 4\n").unwrap();
    let store = Server::start(&["--partitions", "off"]);
    let recorder = Recorder::before(&store.address());
    let watching = watch(&recorder.endpoint, &["--rules", fence.to_str().unwrap()]);
    let ask = r#"{"TableName":"other","Key":{"pk":{"S":"b"}}}"#;
    assert_eq!(call(&watching.endpoint(), "GetItem", ask).0, 400, "there is no such table, says the store");
    let sharding = {
        let mut command = heatsink();
        let args = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--output",
            "json",
            "--upstream",
            &store.endpoint(),
            "--rules",
            rules.to_str().unwrap(),
        ];
        Server::of(command.args(args).env("AWS_REGION", "us-east-1"))
    };
    // It has made its registry when it listens. Who saw none has ten seconds to notice.
    let (endpoint, mut refused) = (watching.endpoint(), None);
    for _ in 0..100 {
        refused = answered(&endpoint, "GetItem", ask);
        match &refused {
            Some((400, _)) => std::thread::sleep(Duration::from_millis(100)),
            _ => break,
        }
    }
    if let Some((status, body)) = refused {
        assert!(status == 503 && body.contains("has a registry of sharded tables"), "{body}");
    }
    let (code, stderr) = watching.wait();
    assert_eq!(code, Some(69), "{stderr}");
    assert!(stderr.contains("another Heatsink has begun to shard"), "{stderr}");
    let writes = ["PutItem", "UpdateItem", "CreateTable", "TransactWriteItems", "DeleteItem", "TagResource"];
    assert!(
        recorder.calls().iter().all(|(operation, _)| !writes.contains(&operation.as_str())),
        "nothing was registered"
    );

    let mut command = heatsink();
    let args = [
        "watch",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &store.endpoint(),
        "--rules",
        fence.to_str().unwrap(),
    ];
    let again = command.args(args).env("AWS_REGION", "us-east-1").output().unwrap();
    let stderr = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(64), "{stderr}");
    assert!(
        stderr.contains("watched.registry") && stderr.contains("heatsink serve --upstream http"),
        "{stderr}"
    );
    drop(sharding);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_cannot_be_watched_is_said() {
    for (args, code, reason) in [
        (&["watch"][..], 64, "--upstream"),
        (&["watch", "--upstream", "nonsense"], 64, "--upstream"),
        (&["watch", "--upstream", "http://127.0.0.1:1", "--listen", "0.0.0.0:0"], 64, "only loopback"),
        (&["watch", "--upstream", "http://127.0.0.1:1", "--seconds", "0"], 64, "--seconds"),
    ] {
        let output = run(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(reason), "{args:?}: {stderr}");
    }
    let mut command = heatsink();
    let args = ["watch", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"];
    let output = command.args(args).env("AWS_REGION", "us-east-1").output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{}", String::from_utf8_lossy(&output.stderr));
}
