//! How the server ends: a first signal waits for what is in flight, a second one does not.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::{Server, post};

/// A client that keeps the server from finishing: its request is never whole.
fn half_sent(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = post("DynamoDB_20120810.PutItem", &[b' '; 4096]);
    stream.write_all(&request[..request.len() - 1]).unwrap();
    // The server has begun to read it.
    std::thread::sleep(Duration::from_millis(300));
    stream
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    for (first, second, expected) in [("TERM", "TERM", 143), ("INT", "INT", 130), ("TERM", "INT", 130)] {
        let mut server = Server::start(&[]);
        let mut client = half_sent(&server);
        server.signal(first);
        std::thread::sleep(Duration::from_millis(500));
        assert!(server.runs(), "it waits for the request");
        let (code, stderr) = server.stop(second);
        assert_eq!(code, Some(expected), "{stderr}");
        assert!(stderr.contains("a second signal"), "{stderr}");
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        assert_eq!(rest, b"", "the request was not answered");
    }
}

#[test]
fn one_signal_waits_for_what_is_in_flight() {
    let server = Server::start(&[]);
    let mut client = half_sent(&server);
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    client.write_all(b" ").unwrap();
    let mut answer = String::new();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let (code, stderr) = server.wait();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
}
