//! The flags of the HTTP front, and what it counts.

use crate::process::{Server, run, send};

fn ask(server: &Server, path: &str, host: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    send(&server.address(), request.as_bytes())
}

fn metrics(server: &Server) -> String {
    server.ask("/_heatsink/metrics").1
}

#[test]
fn a_host_is_served_when_it_is_named() {
    let named = ["--allow-host", "heatsink.internal", "--allow-host", "10.0.0.7"];
    let server = Server::start(&[&["--admin", "127.0.0.1:0"][..], &named].concat());
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    for host in ["heatsink.internal", "10.0.0.7", "localhost", "127.0.0.1", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            assert_eq!(ask(&server, "/", &host).0, 200, "{host}");
            let metrics =
                format!("GET /_heatsink/metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            assert_eq!(send(&server.admin(), metrics.as_bytes()).0, 200, "{host}");
        }
    }
    let (status, body) = ask(&server, "/", "evil.example");
    assert_eq!(status, 400);
    assert!(body.contains("AccessDeniedException") && body.contains("--allow-host"), "{body}");
    let metrics = metrics(&server);
    for line in [
        "\nheatsink_connections ",
        "heatsink_requests_in_flight 0\n",
        "heatsink_held_bytes{of=\"requests\"} 0\n",
        "heatsink_held_bytes{of=\"work\"} 0\n",
        "heatsink_held_bytes{of=\"answers\"} 0\n",
        "heatsink_memory_waits_total 0\n",
        "heatsink_refused_total{limit=\"host\"} 1\n",
        "heatsink_refused_total{limit=\"connections\"} 0\n",
        "heatsink_refused_total{limit=\"requests\"} 0\n",
        "heatsink_refused_total{limit=\"held_bodies\"} 0\n",
        "heatsink_refused_total{limit=\"held_work\"} 0\n",
        "heatsink_refused_total{limit=\"held_answers\"} 0\n",
        "heatsink_slow_clients_total{what=\"head\"} 0\n",
        "heatsink_slow_clients_total{what=\"body\"} 0\n",
        "heatsink_slow_clients_total{what=\"answer\"} 0\n",
        "heatsink_cancelled_reads_total 0\n",
        "heatsink_unawaited_writes_total 0\n",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    for wrong in ["http://a", "a:80", "a b"] {
        let refused = run(&["serve", "--listen", "127.0.0.1:0", "--allow-host", wrong]);
        assert_eq!(refused.status.code(), Some(64), "{wrong}");
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(stderr.contains(&format!("--allow-host: {wrong}")), "{stderr}");
    }
}

#[test]
fn every_metric_says_what_it_means() {
    let server = Server::start(&[]);
    let metrics = metrics(&server);
    let named = |kind: &str| {
        let lines = metrics.lines().filter_map(|line| line.strip_prefix(kind)?.split(' ').next());
        lines.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let typed = named("# TYPE ");
    assert!(typed.len() > 10, "{metrics}");
    assert_eq!(typed.difference(&named("# HELP ")).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn requests_that_are_refused_while_they_are_planned_are_counted() {
    let server = Server::start(&[]);
    let counted = |plan: &str| {
        let metrics = metrics(&server);
        let name = format!("heatsink_plans_total{{plan=\"{plan}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok())
    };
    let before = (counted("refused"), counted("forward"));
    for (body, status) in
        [(r#"{"TableName":5}"#, 400), (r#"{"TableName":"heatsink.registry","Key":{}}"#, 400)]
    {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-amz-json-1.0\r\n\
             X-Amz-Target: DynamoDB_20120810.GetItem\r\nX-Amz-Date: 20260101T000000Z\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(send(&server.address(), request.as_bytes()).0, status, "{body}");
    }
    assert_eq!(before, (Some(0), Some(0)));
    assert_eq!((counted("refused"), counted("forward")), (Some(2), Some(0)));
}

#[test]
fn connections_are_limited_as_asked() {
    let server = Server::start(&["--max-connections", "1"]);
    let held = std::net::TcpStream::connect(server.address()).unwrap();
    // The server has accepted it.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (status, body) = ask(&server, "/", "localhost");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("ServiceUnavailable"), "{body}");
    drop(held);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(ask(&server, "/", "localhost").0, 200);
}

/// Many systems begin with a soft limit of 1,024 open files, and a client that finds no connection
/// sees no answer at all.
#[test]
fn a_low_limit_of_open_files_is_raised_for_the_connections() {
    let server = Server::start_after("ulimit -Sn 64", &["--max-connections", "300"]);
    let held: Vec<_> = (0..200).map(|_| std::net::TcpStream::connect(server.address()).unwrap()).collect();
    assert_eq!(ask(&server, "/", "localhost").0, 200);
    drop(held);
    let (_, warned) = server.stop("INT");
    assert!(!warned.contains("open files"), "{warned}");
    let limited = Server::start_after("ulimit -n 64", &["--max-connections", "300"]);
    let (_, warned) = limited.stop("INT");
    assert!(warned.contains("hard limit of open files is 64"), "{warned}");
}

#[test]
fn pages_of_named_origins_are_served_to_clients_alone_and_all_origins_on_loopback_alone() {
    let page = "http://localhost:3000";
    let server = Server::start(&[
        "--admin",
        "127.0.0.1:0",
        "--allow-origin",
        page,
        "--allow-origin",
        "https://b.example",
    ]);
    let preflight = |address: &str, origin: &str| {
        let request = format!(
            "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: x-amz-target,authorization,x-amz-date,amz-sdk-request\r\nConnection: close\r\n\r\n"
        );
        send(address, request.as_bytes()).0
    };
    for (origin, expected) in [(page, 204), ("https://b.example", 204), ("http://localhost:3001", 404)] {
        assert_eq!(preflight(&server.address(), origin), expected, "{origin}");
        assert_ne!(preflight(&server.admin(), origin), 204, "{origin}");
    }
    let asked = format!(
        "GET /_heatsink/heat HTTP/1.1\r\nHost: localhost\r\nOrigin: {page}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(send(&server.admin(), asked.as_bytes()).0, 403);
    for (listen, origin, said) in [
        ("0.0.0.0:0", "*", "--allow-origin '*': on 0.0.0.0:"),
        ("unix:/tmp/heatsink-origin-test.sock", "*", "--allow-origin '*': on unix:"),
        ("127.0.0.1:0", "http://a/b", "--allow-origin: \"http://a/b\" is no origin"),
        ("127.0.0.1:0", "a.example", "--allow-origin: \"a.example\" is no origin"),
    ] {
        let refused = run(&["serve", "--listen", listen, "--insecure-listen", "--allow-origin", origin]);
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(64), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    let server = Server::start(&["--allow-origin", "*"]);
    assert_eq!(preflight(&server.address(), "http://any.example"), 204);
}
