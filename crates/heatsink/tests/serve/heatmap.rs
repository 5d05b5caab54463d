//! `heatsink heatmap`, on a server that tells a made-up map.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value as Json, json};

use crate::process::{Server, run, scratch};

/// Answers one request with this, and gives its first line.
pub fn told(
    status: u16,
    body: &Json,
    ask: impl FnOnce(&str) -> std::process::Output,
) -> (std::process::Output, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let body = body.to_string();
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status} Told\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap().lines().next().unwrap().to_owned()
    });
    let output = ask(&address);
    (output, server.join().unwrap())
}

fn map() -> Json {
    let hot: Vec<f64> = (0..360).map(|column| if column < 200 { 900.0 } else { 4_800.0 }).collect();
    let refused: Vec<f64> = (0..360).map(|column| if column < 200 { 0.0 } else { 3_800.0 }).collect();
    json!({
        "from_ms": 1_700_000_000_000_u64, "step_ms": 60_000, "columns": 360, "rows": [
            { "table": "Leaderboards", "index": null, "kind": "write", "key": { "S": "game_x" }, "units": hot, "throttled": refused, "shards": [] },
            { "table": "Leaderboards", "index": null, "kind": "write", "key": { "S": "</text><script>\u{1b}[31m\n" }, "units": [12.0], "throttled": [], "shards": [] },
        ],
    })
}

#[test]
fn it_is_drawn_in_letters_and_as_a_picture() {
    let dir = scratch("heatmap");
    let (output, asked) =
        told(200, &map(), |server| run(&["heatmap", "--server", server, "--span", "6h", "--text"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(asked, "GET /_heatsink/heat/map?span=6h HTTP/1.1");
    assert!(
        text.contains("Leaderboards · writes\n") && text.contains("game_x") && text.contains("█!"),
        "{text}"
    );
    assert!(text.contains(r"</text><script>\u{1b}[31m…") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("from 22:13 UTC to 04:13 UTC"), "{text}");

    let svg = dir.join("heat.svg");
    let (output, _) =
        told(200, &map(), |server| run(&["heatmap", "--server", server, "--svg", svg.to_str().unwrap()]));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
    let drawn = std::fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains(">game_x<") && drawn.contains("#fcffa4") && drawn.contains("#4cc9f0"), "{drawn}");
    assert!(!drawn.contains("<script") && !drawn.contains('\u{1b}'), "{drawn}");

    let png = dir.join("heat.png");
    let output = run(&["picture", svg.to_str().unwrap(), png.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_cannot_be_drawn_is_69_with_the_reason() {
    let (output, _) = told(404, &json!({ "error": "this gateway measures no heat" }), |server| {
        run(&["heatmap", "--server", server])
    });
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8(output.stderr).unwrap().contains("this gateway measures no heat"));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(run(&["heatmap", "--server", &free]).status.code(), Some(69));
    let server = Server::start(&["--admin", "127.0.0.1:0"]);
    let output = run(&["partitions", "none", "--server", &server.address()]);
    assert_eq!(output.status.code(), Some(64), "the same way of asking");
}
