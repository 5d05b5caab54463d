//! Requests that are wrong: DynamoDB's own error and status, and a server that goes on.

use std::io::Write;
use std::net::TcpStream;

use crate::process::{Server, call, post, send};

/// Target, body, status, error name, and what the message says.
type Case = (&'static str, &'static str, u16, &'static str, &'static str);

const CASES: &[Case] = &[
    ("DynamoDB_20120810.GetItem", "", 400, "SerializationException", ""),
    ("DynamoDB_20120810.GetItem", "{", 400, "SerializationException", ""),
    ("DynamoDB_20120810.GetItem", "hello", 400, "SerializationException", ""),
    ("DynamoDB_20120810.GetItem", "\u{0}\u{1}", 400, "SerializationException", ""),
    ("DynamoDB_20120810.Nope", "{}", 400, "UnknownOperationException", ""),
    ("DynamoDB_20120810.Nope", "{", 400, "SerializationException", ""),
    ("DynamoDB_20120810.", "{}", 400, "UnknownOperationException", ""),
    ("PutItem", "{}", 400, "UnknownOperationException", ""),
    (
        "DynamoDB_20120810.GetItem",
        r#"{"TableName":5}"#,
        400,
        "SerializationException",
        "NUMBER_VALUE cannot be converted to String",
    ),
    ("DynamoDB_20120810.GetItem", r#"{"TableName":"scores","Key":[]}"#, 400, "SerializationException", ""),
    ("DynamoDB_20120810.GetItem", r#"{"Key":{"pk":{"S":"a"}}}"#, 400, "ValidationException", "tableName"),
    (
        "DynamoDB_20120810.GetItem",
        r#"{"TableName":"a","Key":{"pk":{"S":"a"}}}"#,
        400,
        "ValidationException",
        "length greater than or equal to 3",
    ),
    (
        "DynamoDB_20120810.GetItem",
        r#"{"TableName":"missing","Key":{"pk":{"S":"a"}}}"#,
        400,
        "ResourceNotFoundException",
        "Requested resource not found",
    ),
    (
        "DynamoDB_20120810.PutItem",
        r#"{"TableName":"scores","Item":{"pk":{"N":"1"}}}"#,
        400,
        "ValidationException",
        "Type mismatch for key",
    ),
    (
        "DynamoDB_20120810.PutItem",
        r#"{"TableName":"scores","Item":{"n":{"N":"1"}}}"#,
        400,
        "ValidationException",
        "Missing the key pk in the item",
    ),
];

#[test]
fn dynamodbs_own_errors_and_a_server_that_goes_on() {
    let server = Server::start(&[]);
    let address = server.address();
    assert_eq!(call(&server.endpoint(), "CreateTable", crate::TABLE).0, 200);
    for (target, body, status, error, message) in CASES {
        let (found, answer) = send(&address, &post(target, body.as_bytes()));
        let parsed: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let name = parsed["__type"].as_str().unwrap().rsplit('#').next().unwrap();
        let said = parsed["message"].as_str().or(parsed["Message"].as_str()).unwrap_or_default();
        assert_eq!((found, name), (*status, *error), "{target} {body}: {answer}");
        assert!(said.contains(message), "{target} {body}: {answer}");
    }
    survives(&server);
}

#[test]
fn deep_nesting_is_refused_and_kills_nothing() {
    let server = Server::start(&[]);
    assert_eq!(call(&server.endpoint(), "CreateTable", crate::TABLE).0, 200);
    for depth in [40, 200, 100_000] {
        let value = format!("{}{{\"S\":\"x\"}}{}", r#"{"L":["#.repeat(depth), "]}".repeat(depth));
        let body = format!(r#"{{"TableName":"scores","Item":{{"pk":{{"S":"a"}},"deep":{value}}}}}"#);
        let (status, answer) = call(&server.endpoint(), "PutItem", &body);
        assert_eq!(status, 400, "depth {depth}: {answer}");
    }
    let brackets = "[".repeat(1_000_000);
    assert_eq!(call(&server.endpoint(), "GetItem", &brackets).0, 400);
    assert_eq!(call(&server.endpoint(), "Nope", &brackets).0, 400);
    survives(&server);
}

#[test]
fn seventeen_megabytes_are_413() {
    let server = Server::start(&[]);
    let body =
        format!(r#"{{"TableName":"scores","Item":{{"pk":{{"S":"{}"}}}}}}"#, "x".repeat(17 * 1024 * 1024));
    let (status, answer) = call(&server.endpoint(), "PutItem", &body);
    assert_eq!(status, 413, "{answer}");
    survives(&server);
}

#[test]
fn a_client_that_hangs_up_writes_nothing() {
    let server = Server::start(&[]);
    assert_eq!(call(&server.endpoint(), "CreateTable", crate::TABLE).0, 200);
    let whole = post("DynamoDB_20120810.PutItem", br#"{"TableName":"scores","Item":{"pk":{"S":"half"}}}"#);
    for cut in [5, whole.len() / 2, whole.len() - 1] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&whole[..cut]).unwrap();
    }
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").unwrap();
    drop(stream);
    let (_, answer) = call(&server.endpoint(), "Scan", r#"{"TableName":"scores"}"#);
    assert!(answer.contains(r#""Count":0"#), "{answer}");
    survives(&server);
}

fn survives(server: &Server) {
    assert_eq!(call(&server.endpoint(), "ListTables", "{}").0, 200);
}
