//! A call to the upstream that nobody waits for any more ends, and its connection with it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use bytes::Bytes;
use futures::future::{join_all, select};
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;
use heatsink_store::Store;
use heatsink_store::upstream::{Bounds, Endpoint, Upstream};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

const SHARDS: usize = 8;

#[tokio::test]
async fn the_calls_of_a_scatter_end_when_it_is_dropped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let chain = SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test"));
    let bounds =
        Bounds { connect: Duration::from_secs(5), answer: Duration::from_secs(60), connections: 100 };
    let upstream =
        Upstream::with(endpoint, bounds, Arc::new(RealEnv), "us-east-1".to_owned(), chain).unwrap();
    let calls = join_all(
        (0..SHARDS).map(|_| upstream.call(Operation::Query, Bytes::from_static(br#"{"TableName":"abc"}"#))),
    );
    // Every shard's request is read, and never answered.
    let asked = async {
        let mut streams = Vec::new();
        for _ in 0..SHARDS {
            let mut stream = listener.accept().await.unwrap().0;
            let mut piece = [0; 4096];
            assert!(stream.read(&mut piece).await.unwrap() > 0);
            streams.push(stream);
        }
        streams
    };
    // What is not finished is dropped with the `Either`.
    let mut streams = match select(Box::pin(asked), calls).await {
        futures::future::Either::Left((streams, _)) => streams,
        futures::future::Either::Right((answers, _)) => panic!("answered: {answers:?}"),
    };
    for stream in &mut streams {
        let end = async {
            let mut piece = [0; 4096];
            while matches!(stream.read(&mut piece).await, Ok(read) if read > 0) {}
        };
        tokio::time::timeout(Duration::from_secs(5), end).await.unwrap();
    }
}
