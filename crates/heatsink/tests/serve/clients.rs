//! `[[client]]`: who is served, what each may do, what the command refuses to start with, and that
//! no secret stands anywhere.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use heatsink_signature::SigningKey;

use crate::TABLE;
use crate::process::{Server, call, heatsink, run, scratch, send};
use crate::reload::{GENERATION, REFUSED, until};

const SECRETS: [&str; 4] = ["canary-secret-a", "canary-secret-b", "canary-former", "canary/token=="];

/// A client's key: id, secret, session token.
pub type Key = (&'static str, &'static str, Option<&'static str>);

pub const ALL: Key = ("all", SECRETS[0], None);
const FORMER: Key = ("all", SECRETS[2], None);
pub const TEAM: Key = ("team", SECRETS[1], Some(SECRETS[3]));

/// A folder with rules and the files of their secrets.
pub fn folder(name: &str, rules: &str) -> (PathBuf, String) {
    let folder = scratch(name);
    for (file, secret) in ["a", "b", "former", "token"].into_iter().zip(SECRETS) {
        std::fs::write(folder.join(file), format!("{secret}\n")).unwrap();
        std::fs::set_permissions(folder.join(file), Permissions::from_mode(0o600)).unwrap();
    }
    let file = folder.join("heatsink.toml");
    std::fs::write(&file, rules).unwrap();
    (folder, file.to_str().unwrap().to_owned())
}

pub const RULES: &str = "[[rule]]\ntable = \"board\"\nstrategy = \"calculated\"\nshards = 4\n\
    [[client]]\nid = \"all\"\nsecret_file = \"a\"\nformer_secret_file = \"former\"\n\
    [[client]]\nid = \"team\"\nsecret_file = \"b\"\nsession_token_file = \"token\"\ntables = [\"scores\", \"board\"]\nkeys = \"team1#*\"\n";

/// A request that is signed for this region now.
fn signed(operation: &str, body: &str, (id, secret, token): Key) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    let service =
        if operation.contains("Stream") || operation == "GetRecords" || operation == "GetShardIterator" {
            "DynamoDBStreams_20120810"
        } else {
            "DynamoDB_20120810"
        };
    let target = format!("{service}.{operation}");
    let signed = SigningKey::derive(id, secret, token, "us-east-1", now).sign(
        "localhost",
        &target,
        body.as_bytes(),
        now,
    );
    let token = token.map_or(String::new(), |token| format!("x-amz-security-token: {token}\r\n"));
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: {target}\r\n\
         x-amz-date: {}\r\n{token}authorization: {}\r\ncontent-length: {}\r\n\r\n{body}",
        signed.date,
        signed.authorization,
        body.len()
    )
    .into_bytes()
}

pub fn ask(server: &Server, operation: &str, body: &str, key: Key) -> (u16, String) {
    send(&server.address(), &signed(operation, body, key))
}

pub fn refused(answer: (u16, String), code: &str) {
    assert_eq!(answer.0, 400, "{}", answer.1);
    assert!(answer.1.contains(code), "{}", answer.1);
}

#[test]
fn clients_are_served_by_their_signatures_and_rights_and_operators_as_before() {
    let (folder, rules) = folder("clients", RULES);
    let server = Server::start(&["--rules", &rules]);
    let board = TABLE.replace("scores", "board").replace(
        r#"[{"AttributeName":"pk","KeyType":"HASH"}]"#,
        r#"[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]"#,
    );
    let board = board.replace(
        r#"[{"AttributeName":"pk","AttributeType":"S"}]"#,
        r#"[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]"#,
    );
    for table in [TABLE, &board, &TABLE.replace("scores", "private")] {
        assert_eq!(ask(&server, "CreateTable", table, ALL).0, 200);
    }
    let put = |table: &str, key: &str| {
        format!(
            r#"{{"TableName":"{table}","Item":{{"pk":{{"S":"{key}"}},"sk":{{"S":"x"}},"n":{{"N":"1"}}}}}}"#
        )
    };
    // Whoever signs rightly.
    assert_eq!(ask(&server, "PutItem", &put("private", "a"), FORMER).0, 200);
    refused(call(&server.endpoint(), "ListTables", "{}"), "IncompleteSignatureException");
    refused(ask(&server, "ListTables", "{}", ("all", "guess", None)), "InvalidSignatureException");
    refused(ask(&server, "ListTables", "{}", ("team", SECRETS[1], None)), "UnrecognizedClientException");
    refused(ask(&server, "ListTables", "{}", ("ghost", SECRETS[1], None)), "UnrecognizedClientException");

    // What each may do, on logical keys of a sharded table too.
    for table in ["scores", "board"] {
        assert_eq!(ask(&server, "PutItem", &put(table, "team1#a"), TEAM).0, 200);
        refused(ask(&server, "PutItem", &put(table, "team2#a"), TEAM), "AccessDeniedException");
        refused(
            ask(&server, "Scan", &format!(r#"{{"TableName":"{table}"}}"#), TEAM),
            "AccessDeniedException",
        );
    }
    let query = |key: &str| {
        format!(
            r#"{{"TableName":"board","Select":"COUNT","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"{key}"}}}}}}"#
        )
    };
    let counted = ask(&server, "Query", &query("team1#a"), TEAM);
    assert!(counted.0 == 200 && counted.1.contains("\"Count\":1"), "{}", counted.1);
    refused(ask(&server, "Query", &query("team2#a"), TEAM), "AccessDeniedException");
    refused(
        ask(&server, "GetItem", r#"{"TableName":"private","Key":{"pk":{"S":"team1#a"}}}"#, TEAM),
        "dynamodb:GetItem",
    );
    assert_eq!(ask(&server, "ListTables", "{}", TEAM).1, r#"{"TableNames":["board","scores"]}"#);
    let paged = ask(&server, "ListTables", r#"{"Limit":1}"#, TEAM).1;
    assert_eq!(paged, r#"{"LastEvaluatedTableName":"board","TableNames":["board"]}"#);
    let last = ask(&server, "ListTables", r#"{"Limit":1,"ExclusiveStartTableName":"board"}"#, TEAM).1;
    assert_eq!(last, r#"{"TableNames":["scores"]}"#);
    assert!(ask(&server, "ListTables", "{}", ALL).1.contains("private"));

    // A transaction with one forbidden key or table changes nothing.
    let delete = |table: &str, key: &str| {
        format!(r#"{{"Delete":{{"TableName":"{table}","Key":{{"pk":{{"S":"{key}"}}}}}}}}"#)
    };
    for forbidden in [delete("scores", "team2#a"), delete("private", "team1#a")] {
        let both = format!(r#"{{"TransactItems":[{},{forbidden}]}}"#, delete("scores", "team1#a"));
        refused(ask(&server, "TransactWriteItems", &both, TEAM), "AccessDeniedException");
    }
    let get = r#"{"TableName":"scores","Key":{"pk":{"S":"team1#a"}}}"#;
    assert!(ask(&server, "GetItem", get, TEAM).1.contains("team1#a"), "nothing was deleted");

    // A token of one client is none of another's.
    let write = |token: &str, n: &str| {
        let item = format!(r#"{{"pk":{{"S":"team1#t"}},"n":{{"N":"{n}"}}}}"#);
        format!(
            r#"{{"ClientRequestToken":"{token}","TransactItems":[{{"Put":{{"TableName":"scores","Item":{item}}}}}]}}"#
        )
    };
    assert_eq!(ask(&server, "TransactWriteItems", &write("token", "1"), TEAM).0, 200);
    assert_eq!(ask(&server, "TransactWriteItems", &write("token", "2"), ALL).0, 200, "it is its own");
    refused(ask(&server, "TransactWriteItems", &write("token", "3"), TEAM), "IdempotentParameterMismatch");

    // Operators are none of the clients.
    assert_eq!(server.ask("/_heatsink/gateways").0, 200);
    let status = run(&["reshard", "status", "board", "--server", &server.endpoint()]);
    assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stderr));
    assert_eq!(server.stop("TERM").0, Some(0));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn no_secret_stands_in_what_is_told_written_or_logged() {
    let (folder, rules) = folder("canaries", RULES);
    let recorded = folder.join("trace");
    let mut command = heatsink();
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--output",
            "json",
            "--access-log",
            "--log-format",
            "json",
        ])
        .args(["--rules", &rules, "--admin", "127.0.0.1:0", "--record", recorded.to_str().unwrap()])
        .env("RUST_LOG", "trace");
    let server = Server::of(&mut command);
    assert_eq!(ask(&server, "CreateTable", TABLE, ALL).0, 200);
    let get = r#"{"TableName":"scores","Key":{"pk":{"S":"team1#a"}}}"#;
    let mut shown = vec![server.printed().to_owned()];
    for key in [
        ALL,
        FORMER,
        TEAM,
        ("team", SECRETS[1], None),
        ("team", "guess", Some(SECRETS[3])),
        ("ghost", SECRETS[0], None),
    ] {
        shown.push(ask(&server, "GetItem", get, key).1);
        shown.push(ask(&server, "Scan", r#"{"TableName":"scores"}"#, key).1);
        shown.push(ask(&server, "GetItem", "{", key).1);
    }
    for path in ["/_heatsink/metrics", "/_heatsink/heat?table=scores", "/_heatsink/gateways"] {
        shown.push(server.ask(path).1);
    }
    for counted in ["signature", "rights"] {
        let line = format!("heatsink_refused_total{{limit=\"{counted}\"}}");
        assert!(shown.iter().any(|text| text.contains(&line)), "{counted} is counted");
    }
    let (code, stderr) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(stderr.contains("\"client\":\"team\""), "the log of requests says who asks: {stderr}");
    shown.push(stderr);
    shown.extend(files(&recorded));
    let text = Server::start_text(&["--rules", &rules]);
    shown.push(text.printed().to_owned());
    let (_, stderr) = text.stop("TERM");
    shown.push(stderr);
    for canary in SECRETS {
        let told = shown.iter().find(|text| text.contains(canary));
        assert_eq!(told, None, "{canary}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn files(at: &Path) -> Vec<String> {
    let read = |file: &Path| String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned();
    match std::fs::read_dir(at) {
        Ok(entries) => entries.map(|entry| read(&entry.unwrap().path())).collect(),
        Err(_) => vec![read(at)],
    }
}

#[test]
fn what_cannot_be_served_safely_is_not_started() {
    let client = |more: &str| format!("[[client]]\nid = \"all\"\n{more}\n");
    for (name, rules, mode, said) in [
        ("open", client("secret_file = \"a\""), 0o644, ":3: client[1].secret_file: "),
        (
            "open",
            client("secret_file = \"a\""),
            0o644,
            "others on this machine can read or change it (mode 0644)",
        ),
        (
            "none",
            client("secret_file = \"missing\""),
            0o600,
            "client[1].secret_file: the file that it names cannot be read",
        ),
        (
            "unset",
            client("secret_env = \"HEATSINK_UNSET\""),
            0o600,
            "client[1].secret_env: the environment variable",
        ),
        (
            "inline",
            client(&format!("secret = \"{}\"", SECRETS[0])),
            0o600,
            "secrets do not stand in this file",
        ),
        (
            "slash",
            client("secret_file = \"a\"").replace("all", "a/b"),
            0o600,
            ":2: client[1].id: an access key has",
        ),
        (
            "twice",
            client("secret_file = \"a\"") + &client("secret_file = \"b\""),
            0o600,
            "two clients have the access key all",
        ),
        ("action", client("secret_file = \"a\"\nactions = \"Get\""), 0o600, "\"Get\" names no action"),
        ("policy", client("secret_file = \"a\"\npolicy = \"heatsink.toml\""), 0o600, "client[1].policy: "),
    ] {
        let (folder, file) = folder(&format!("refused-{name}"), &rules);
        std::fs::set_permissions(folder.join("a"), Permissions::from_mode(mode)).unwrap();
        let output = run(&["serve", "--listen", "127.0.0.1:0", "--rules", &file]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{name}: {stderr}");
        assert!(stderr.contains(said), "{name}: {stderr}");
        assert!(SECRETS.iter().all(|secret| !stderr.contains(secret)), "{stderr}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// A secret is replaced in its file, and clients are taken off, while the server serves. That
/// nobody is known any more is not taken: all could then do all.
#[test]
fn secrets_and_clients_are_replaced_while_it_serves() {
    let (folder, rules) = folder("clients-reload", RULES);
    let server = Server::start(&["--rules", &rules]);
    assert_eq!(ask(&server, "ListTables", "{}", ALL).0, 200);
    std::fs::write(folder.join("a"), "rotated").unwrap();
    until(&server, GENERATION, 2.0);
    refused(ask(&server, "ListTables", "{}", ALL), "InvalidSignatureException");
    assert_eq!(ask(&server, "ListTables", "{}", ("all", "rotated", None)).0, 200);
    // A file that others can read is not taken, and what was there before holds.
    std::fs::set_permissions(folder.join("a"), Permissions::from_mode(0o644)).unwrap();
    std::fs::write(folder.join("a"), "again").unwrap();
    until(&server, REFUSED, 1.0);
    assert_eq!(ask(&server, "ListTables", "{}", ("all", "rotated", None)).0, 200);
    std::fs::write(&rules, "").unwrap();
    until(&server, REFUSED, 2.0);
    refused(call(&server.endpoint(), "ListTables", "{}"), "IncompleteSignatureException");
    let kept = RULES.split("[[client]]").take(2).collect::<Vec<_>>().join("[[client]]");
    std::fs::set_permissions(folder.join("a"), Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&rules, kept).unwrap();
    until(&server, GENERATION, 3.0);
    refused(ask(&server, "ListTables", "{}", TEAM), "UnrecognizedClientException");
    assert_eq!(ask(&server, "ListTables", "{}", ("all", "again", None)).0, 200);
    std::fs::remove_dir_all(folder).unwrap();
}
