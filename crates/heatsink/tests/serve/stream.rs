//! `heatsink stream`: what it prints of a table whose key was resharded, and where it goes on.

use std::path::Path;
use std::process::Output;

use heatsink_store::embedded::Embedded;
use serde_json::Value as Json;

use crate::process::{Server, call, run, scratch};

const TABLE: &str = r#"{"TableName":"scores","BillingMode":"PAY_PER_REQUEST",
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
    "StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}"#;
const ITEMS: usize = 20;

fn records(output: &Output) -> Vec<Json> {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names<'a>(records: &'a [Json], event: &str) -> Vec<&'a str> {
    let of_event = records.iter().filter(|record| record["eventName"] == event);
    of_event.map(|record| record["dynamodb"]["Keys"]["sk"]["S"].as_str().unwrap()).collect()
}

fn delete(endpoint: &str, sort: &str) {
    let body = format!(r#"{{"TableName":"scores","Key":{{"pk":{{"S":"game"}},"sk":{{"S":"{sort}"}}}}}}"#);
    assert_eq!(call(endpoint, "DeleteItem", &body).0, 200);
}

#[test]
fn records_of_a_resharded_key_are_printed_once_with_their_logical_key() {
    let place = scratch("stream");
    let checkpoint = place.join("checkpoint.json").to_str().unwrap().to_owned();
    // To the store the gateways' registry is a table as any other.
    let rules = place.join("store.toml");
    std::fs::write(&rules, "rule = []\n[fence]\nregistry = \"other.registry\"\n").unwrap();
    let data = place.join("data.db").to_str().unwrap().to_owned();
    drop(Embedded::file(Path::new(&data)).unwrap());
    // The registry is there, and nobody is left who has not noticed it.
    assert_eq!(run(&["freeze", "--thaw", "--data", &data]).status.code(), Some(0));
    let server = Server::start(&["--data", &data, "--partitions", "off", "--rules", rules.to_str().unwrap()]);
    let store = server.endpoint();
    assert_eq!(call(&store, "CreateTable", TABLE).0, 200);
    for sort in 0..ITEMS {
        let put = format!(
            r#"{{"TableName":"scores","Item":{{"pk":{{"S":"game"}},"sk":{{"S":"{sort:02}"}},"n":{{"N":"1"}}}}}}"#
        );
        assert_eq!(call(&store, "PutItem", &put).0, 200);
    }
    let start = ["reshard", "start", "scores", "game", "--shards", "4", "--confirm-streams", "--yes"];
    let done = run(&[&start[..], &["--here", "--upstream", &store]].concat());
    assert_eq!(done.status.code(), Some(0), "{done:?}");

    let args = ["stream", "scores", "--upstream", &store, "--idle", "2", "--checkpoint", &checkpoint];
    let first = records(&run(&args));
    // Each item as a client put it, and each that moved once more, without what a move does beside.
    let (inserts, removes) = (names(&first, "INSERT"), names(&first, "REMOVE"));
    assert!(inserts.len() > ITEMS && inserts.len() < 2 * ITEMS, "{inserts:?}");
    assert_eq!((inserts.len() + removes.len(), removes.len()), (first.len(), 0), "{first:?}");
    assert!(first.iter().all(|record| record["dynamodb"]["Keys"]["pk"]["S"] == "game"), "{first:?}");
    assert!(!Json::from(first.clone()).to_string().contains("#~"));

    let gateway = Server::start(&["--upstream", &store]);
    for sort in ["03", "17"] {
        delete(&gateway.endpoint(), sort);
    }
    let second = records(&run(&args));
    assert_eq!((names(&second, "REMOVE"), second.len()), (vec!["03", "17"], 2), "{second:?}");
    assert_eq!(records(&run(&args)), Vec::<Json>::new());
    // Without the checkpoint all of it comes again, and from the newest nothing does.
    let again = records(&run(&args[..6]));
    assert_eq!(again.len(), inserts.len() + 2);
    assert!(records(&run(&[&args[..6], &["--from", "newest"]].concat())).is_empty());
    assert_eq!(gateway.stop("TERM").0, Some(0));
}

#[test]
fn what_is_no_stream_of_the_table_is_told() {
    let place = scratch("no-stream");
    let data = place.join("data.db").to_str().unwrap().to_owned();
    let checkpoint = place.join("checkpoint.json").to_str().unwrap().to_owned();
    let server = Server::start(&["--data", &data]);
    assert_eq!(call(&server.endpoint(), "CreateTable", TABLE).0, 200);
    assert_eq!(call(&server.endpoint(), "CreateTable", &crate::TABLE.replace("scores", "plain")).0, 200);
    assert_eq!(server.stop("TERM").0, Some(0));
    let stream = |args: &[&str]| run(&[&["stream", "--data", &data, "--idle", "1"], args].concat());
    let said = |args: &[&str]| {
        let output = stream(args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["missing"]).contains("there is no table missing"));
    assert!(said(&["plain"]).contains("has no stream"));
    std::fs::write(&checkpoint, "{").unwrap();
    assert!(said(&["scores", "--checkpoint", &checkpoint]).contains("no checkpoint"));
    std::fs::write(&checkpoint, r#"{"table":"plain","stream":"a","shards":{}}"#).unwrap();
    assert!(said(&["scores", "--checkpoint", &checkpoint]).contains("it is of table plain, not of scores"));
    std::fs::write(&checkpoint, r#"{"table":"scores","stream":"former","shards":{}}"#).unwrap();
    assert!(said(&["scores", "--checkpoint", &checkpoint]).contains("begin with another file"));
    assert_eq!(stream(&["scores"]).status.code(), Some(0));
}
