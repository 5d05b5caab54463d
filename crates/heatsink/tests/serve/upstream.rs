//! One Heatsink as the upstream of another: a real process, over real sockets, signed.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};

use crate::process::{Server, call, heatsink, run, scratch};

#[test]
fn forwards_to_another_endpoint_and_keeps_its_errors() {
    let store = Server::start(&["--partitions", "off"]);
    let gateway = Server::start(&["--upstream", &store.endpoint()]);
    assert!(gateway.printed().contains(&store.endpoint()), "{}", gateway.printed());
    let endpoint = gateway.endpoint();
    assert_eq!(call(&endpoint, "CreateTable", crate::TABLE).0, 200);
    let put = r#"{"TableName":"scores","Item":{"pk":{"S":"a"},"n":{"N":"1"}},"ConditionExpression":"attribute_not_exists(pk)"}"#;
    assert_eq!(call(&endpoint, "PutItem", put), (200, "{}".to_owned()));
    // The same bytes from both: nothing is added, and the item is really there.
    for (operation, body) in [
        ("GetItem", r#"{"TableName":"scores","Key":{"pk":{"S":"a"}}}"#),
        ("GetItem", r#"{"TableName":"scores","Key":{"pk":{"N":"1"}}}"#),
        ("GetItem", r#"{"TableName":"missing","Key":{"pk":{"S":"a"}}}"#),
        ("PutItem", put),
        ("Scan", r#"{"TableName":"scores"}"#),
        ("ListTables", "{}"),
    ] {
        assert_eq!(
            call(&endpoint, operation, body),
            call(&store.endpoint(), operation, body),
            "{operation} {body}"
        );
    }
    // The upstream goes away, and comes back as an error that says nothing was done.
    assert_eq!(store.stop("INT").0, Some(0));
    let (status, body) = call(&endpoint, "PutItem", put);
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("ServiceUnavailable") && body.contains("cannot be reached"), "{body}");
    assert_eq!(gateway.stop("TERM").0, Some(0));
}

/// They were made before there was anything to record them.
#[test]
fn connections_to_the_upstream_are_metrics() {
    let store = Server::start(&["--partitions", "off"]);
    let gateway = Server::start(&["--upstream", &store.endpoint()]);
    let (status, metrics) = gateway.ask("/_heatsink/metrics");
    assert_eq!(status, 200, "{metrics}");
    for name in ["heatsink_upstream_connection_waits_total", "heatsink_upstream_connection_refusals_total"] {
        assert!(metrics.contains(&format!("{name} 0")), "no {name} in {metrics}");
    }
}

#[test]
fn plain_http_beyond_this_machine_is_warned_of() {
    let said = |url: &str| {
        // Neither serves: the first has no region to sign for, the second nobody to ask.
        let output = run(&["serve", "--listen", "127.0.0.1:0", "--upstream", url]);
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let warned = said("http://0.0.0.0:1");
    assert!(warned.contains("plain http beyond this machine"), "{warned}");
    let silent = said("http://127.0.0.1:1");
    assert!(!silent.contains("plain http"), "{silent}");
}

#[test]
fn operations_on_the_account_need_a_flag() {
    let store = Server::start(&["--partitions", "off"]);
    let policy = r#"{"ResourceArn":"arn:aws:dynamodb:us-east-1:1:table/scores","Policy":"{}"}"#;
    let gateway = Server::start(&["--upstream", &store.endpoint()]);
    let (status, body) = call(&gateway.endpoint(), "PutResourcePolicy", policy);
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("AccessDeniedException") && body.contains("--allow-account-operations"), "{body}");
    let allowed = Server::start(&["--upstream", &store.endpoint(), "--allow-account-operations"]);
    // The store below does not know the operation: its own words come back.
    let answer = call(&allowed.endpoint(), "PutResourcePolicy", policy);
    assert_eq!(answer, call(&store.endpoint(), "PutResourcePolicy", policy));
}

#[cfg(target_os = "linux")]
#[test]
fn a_gateway_that_was_killed_is_told_from_one_that_is_stopped() {
    let store = Server::start(&["--partitions", "off"]);
    let url = store.endpoint();
    let rules = scratch("killed").join("heatsink.toml");
    std::fs::write(&rules, "[fence]\nregistry = \"gateways.registry\"\n").unwrap();
    let at = ["--upstream", &url, "--rules", rules.to_str().unwrap()];
    for args in [["freeze"].as_slice(), &["freeze", "--thaw"]] {
        assert!(run(&[args, &at].concat()).status.success(), "the registry is made");
    }
    let gateways = || [0; 3].map(|_| Server::start(&at));
    let [killed, stopped, _serves] = gateways();
    stopped.signal("STOP");
    drop(killed);
    let listed = run(&[["gateways", "--output", "json"].as_slice(), &at].concat()).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    let listed = listed["gateways"].as_array().unwrap();
    let ended: Vec<_> = listed.iter().filter(|one| one["ended"] == true).collect();
    assert_eq!((listed.len(), ended.len()), (3, 1), "{listed:?}");
    let text = String::from_utf8(run(&[["gateways"].as_slice(), &at].concat()).stdout).unwrap();
    assert!(text.contains("s ago") && text.contains("Gateways that were killed: "), "{text}");
    stopped.signal("CONT");
}

/// Answers each request with this error.
fn refusing(error: &str) -> String {
    let body = format!(r#"{{"__type":"com.amazon.coral.service#{error}","message":"not you"}}"#);
    answering("400 Bad Request", body).0
}

/// Answers each request so. The requests as they came, as far as one read shows them.
fn answering(status: &'static str, body: String) -> (String, Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 65_536]);
            let read = stream.read(&mut request).unwrap_or_default();
            let _ = asked.send(String::from_utf8_lossy(&request[..read]).into_owned());
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close");
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    (format!("http://{address}"), requests)
}

/// The chain's links that ask over HTTP do so by a client of ours.
#[test]
fn credentials_come_from_a_container_s_endpoint() {
    let role = r#"{"AccessKeyId":"OFCONTAINER","SecretAccessKey":"s","Token":"of-the-role",
        "Expiration":"2999-01-01T00:00:00Z"}"#;
    let (container, asked) = answering("200 OK", role.to_owned());
    let (upstream, requests) =
        answering("400 Bad Request", r#"{"__type":"x#AccessDeniedException"}"#.to_owned());
    let mut command = heatsink();
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{container}/role"))
        .env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-the-task");
    let output = command.args(["gateways", "--upstream", &upstream]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let to_container = asked.try_recv().expect(&said);
    assert!(to_container.starts_with("GET /role HTTP/1.1\r\n"), "{to_container}");
    assert!(to_container.contains("authorization: of-the-task\r\n"), "{to_container}");
    let to_upstream = requests.try_recv().expect(&said);
    assert!(to_upstream.contains("Credential=OFCONTAINER/"), "{to_upstream}");
    assert!(to_upstream.contains("x-amz-security-token: of-the-role\r\n"), "{to_upstream}");
}

#[test]
fn commands_say_that_their_credentials_are_refused() {
    let folder = scratch("refused-credentials");
    let rules = folder.join("heatsink.toml").display().to_string();
    std::fs::write(&rules, "[[rule]]\ntable = \"scores\"\nstrategy = \"calculated\"\nshards = 4\n").unwrap();
    for error in ["UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException"] {
        let url = refusing(error);
        for command in [
            &["reshard", "status"][..],
            &["reshard", "start", "scores", "k", "--shards", "4", "--yes"],
            &["gateways"],
            &["freeze"],
            &["verify", "scores"],
            &["serve", "--listen", "127.0.0.1:0"],
            &["watch", "--listen", "127.0.0.1:0"],
            &["audit", "scores"],
            &["config", "check", "--rules", &rules],
        ] {
            let output = run(&[command, &["--upstream", &url]].concat());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(64), "{error} {command:?}: {said}");
            assert!(said.contains(error) && said.contains("AWS_PROFILE"), "{error} {command:?}: {said}");
            // It was reached, the fault is not the server's, and nothing changes by itself.
            for wrong in ["be reached", "InternalServerError", "..", "again"] {
                assert!(!said.contains(wrong), "{error} {command:?}: {said}");
            }
        }
    }
}
