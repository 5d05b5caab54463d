//! The admin address: what is there, who may ask, and what it says while the gateway stops.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::process::{Server, heatsink, post, run, scratch, send};

const TOKEN: &str = "0123456789abcdef";

fn ask(address: &str, path: &str, headers: &str) -> (u16, String) {
    send(address, format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
}

#[test]
fn people_and_scrapers_have_an_address_of_their_own() {
    let server = Server::start(&["--admin", "127.0.0.1:0"]);
    let address = server.admin();
    let local = "Host: localhost\r\n";
    assert_eq!(ask(&address, "/healthz", local), (200, "alive\n".to_owned()));
    assert_eq!(ask(&address, "/readyz", local), (200, "ready\n".to_owned()));
    // The clients' side has begun.
    assert_eq!(ask(&server.address(), "/", local).0, 200);
    assert!(ask(&address, "/_heatsink/metrics", local).1.contains("heatsink_connections "));
    assert_eq!(
        ask(&address, "/_heatsink/reshards", local),
        (200, r#"{"reshards":[],"unreadable":[]}"#.to_owned())
    );
    assert_eq!(ask(&address, "/_heatsink/reshards?after=~", local).0, 400, "no position");
    assert_eq!(ask(&address, "/_heatsink/gateways", local).0, 200);
    assert_eq!(ask(&address, "/_heatsink/partitions", local).0, 400);
    assert_eq!(ask(&address, "/_heatsink/nothing", local).0, 404);
    // The page, whole and under its policy.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(format!("GET / HTTP/1.1\r\nConnection: close\r\n{local}\r\n").as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with("</html>\n"), "{}", page.get(..200).unwrap());
    assert!(
        page.contains("content-security-policy: default-src 'none'; script-src 'sha256-"),
        "{}",
        page.get(..800).unwrap()
    );
    assert!(page.contains("x-content-type-options: nosniff"));
    // Nobody else, and nothing else.
    for path in ["/", "/healthz", "/_heatsink/metrics"] {
        assert_eq!(ask(&address, path, "Host: rebound.example\r\n").0, 403, "{path}");
        assert_eq!(
            ask(&address, path, "Host: localhost\r\nOrigin: http://evil.example\r\n").0,
            403,
            "{path}"
        );
    }
    assert_eq!(send(&address, &post("DynamoDB_20120810.ListTables", b"{}")).0, 405);
    // The clients' address is as it was, and tells nothing of it.
    let (status, healthy) = ask(&server.address(), "/", local);
    assert_eq!((status, healthy.as_str()), (200, "healthy: dynamodb.us-east-1.amazonaws.com "));
    for path in ["/_heatsink/reshards", "/_heatsink/metrics", "/_heatsink/physical", "/healthz"] {
        assert_eq!(ask(&server.address(), path, local).0, 404, "{path}");
    }
    assert_eq!(server.stop("TERM").0, Some(0));
}

#[test]
fn a_token_is_needed_where_there_is_one() {
    let dir = scratch("admin-token");
    let file = dir.join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let read_by_others = run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--admin-token-file",
        file.to_str().unwrap(),
    ]);
    let said = String::from_utf8(read_by_others.stderr).unwrap();
    assert!(read_by_others.status.code() == Some(64) && said.contains("mode 0644"), "{said}");
    std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let server = Server::start(&["--admin", "127.0.0.1:0", "--admin-token-file", file.to_str().unwrap()]);
    let address = server.admin();
    let shown = format!("Host: gateway-1\r\nAuthorization: Bearer {TOKEN}\r\n");
    assert_eq!(ask(&address, "/_heatsink/reshards", &shown).0, 200);
    for wrong in ["Host: localhost\r\n", "Host: localhost\r\nAuthorization: Bearer 0123456789abcdeF\r\n"] {
        assert_eq!(ask(&address, "/_heatsink/reshards", wrong).0, 401, "{wrong}");
        assert_eq!(ask(&address, "/_heatsink/metrics", wrong).0, 401, "{wrong}");
        for open in ["/", "/healthz", "/readyz"] {
            assert_eq!(ask(&address, open, wrong).0, 200, "{open}");
        }
    }
    let by_variable = heatsink()
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .env("HEATSINK_ADMIN_TOKEN", "short")
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(64));
    let said = String::from_utf8(by_variable.stderr).unwrap();
    assert!(said.contains("HEATSINK_ADMIN_TOKEN") && !said.contains("short "), "{said}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_is_no_admin_address_is_64_with_the_reason() {
    for (args, reason) in [
        (&["--admin", "0.0.0.0:0"][..], "needs a token"),
        (&["--admin", "[::]:0"], "needs a token"),
        (&["--admin", "nonsense"], "--admin nonsense"),
        (&["--admin", "127.0.0.1:0", "--admin-token-file", "no-such-file"], "no-such-file"),
        (&["--admin-token-file", "token"], "--admin"),
    ] {
        let output = run(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{args:?}: {stderr}");
        assert!(stderr.contains(reason), "{args:?}: {stderr}");
    }
}

#[test]
fn it_says_that_the_gateway_stops() {
    let server = Server::start(&["--admin", "127.0.0.1:0"]);
    let address = server.admin();
    // A request that is never whole keeps the gateway from finishing.
    let mut client = TcpStream::connect(server.address()).unwrap();
    let request = post("DynamoDB_20120810.PutItem", &[b' '; 64]);
    client.write_all(&request[..request.len() - 1]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    let ready = || ask(&address, "/readyz", "Host: localhost\r\n");
    let stopping = (0..50).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        ready() == (503, "the gateway is stopping\n".to_owned())
    });
    assert!(stopping, "{:?}", ready());
    assert_eq!(ask(&address, "/healthz", "Host: localhost\r\n").0, 200);
    client.write_all(b" ").unwrap();
    assert_eq!(server.wait().0, Some(0));
}
