//! What hostile clients cost in memory, at the default limits: `cargo test -p heatsink-gateway
//! --test http figures -- --ignored --nocapture --test-threads=1`, one at a time, because they read
//! the process's own peak.

use std::time::Duration;

use heatsink_gateway::Limits;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, head, post};
use crate::server::server;

/// Resident memory in MB: now, and at its peak.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

fn tell(what: &str) {
    let (now, peak) = memory();
    println!("FIGURE {what}: {now} MB resident, peak {peak} MB");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn one_connection_that_pipelines_and_does_not_read() {
    let server = server(Limits::default()).await;
    tell("pipelining, before");
    server.store.answer_with(256 * 1024);
    let _stream = crate::pipelines::flood(server.address, 4000).await;
    println!("FIGURE {} answers of 256 KB were asked for", server.store.calls("Query"));
    tell("pipelining");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn clients_that_do_not_read() {
    let server = server(Limits::default()).await;
    server.store.answer_with(4 << 20);
    tell("300 x 4 MB answers, before");
    let mut streams = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&post("Query", br#"{"TableName":"abc"}"#)).await.unwrap();
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    tell("300 x 4 MB answers, after 5 s");
    tokio::time::sleep(Duration::from_secs(35)).await;
    tell("300 x 4 MB answers, after 40 s");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn half_sent_bodies() {
    let server = server(Limits::default()).await;
    tell("64 x 15 MB half-sent, before");
    let piece = vec![b' '; 15 << 20];
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&head("PutItem", "content-length: 16000000")).await.unwrap();
        let _ = tokio::time::timeout(Duration::from_secs(2), stream.write_all(&piece)).await;
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    tell("64 x 15 MB half-sent");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_gzip_body_of_very_many_empty_members() {
    let server = server(Limits::default()).await;
    let empty = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()).finish().unwrap();
    let body = empty.repeat((16 << 20) / empty.len());
    let begin = std::time::Instant::now();
    let read = std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&*body), &mut Vec::new());
    println!("FIGURE read in one piece: {:?} bytes after {:?}", read.ok(), begin.elapsed());
    let extra = format!("content-encoding: gzip\r\ncontent-length: {}", body.len());
    let mut client = Client::to(server.address).await;
    client.write(&[&head("PutItem", &extra)[..], &body[..body.len() - 1]].concat()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begin = std::time::Instant::now();
    let status = client.send(&body[body.len() - 1..]).await.status;
    println!(
        "FIGURE gzip of {} empty members: {status} after {:?}",
        body.len() / empty.len(),
        begin.elapsed()
    );
}
