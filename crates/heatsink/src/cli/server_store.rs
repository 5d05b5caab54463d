//! The store of a running server, by the socket that its user's commands have: DynamoDB's protocol
//! with physical keys.
//!
//! Each call has a connection of its own, so a command outlives a restart of its server. A call is
//! never sent twice from here.
//!
//! Not here: where the socket lies (`operator_socket`).

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_store::{PHYSICAL_PATH, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::whole_answer;
use crate::exit::in_words;

/// The longest wait for an answer: the server gives up on a request after 30 s.
const PATIENCE: Duration = Duration::from_secs(35);
/// The largest answer that is taken, in bytes. DynamoDB's are at most 16 MB of items, in JSON.
const ANSWER: u64 = 64 << 20;

/// The store of the server that listens on a socket.
pub struct ServerStore {
    socket: PathBuf,
}

impl ServerStore {
    pub fn at(socket: PathBuf) -> Self {
        ServerStore { socket }
    }

    async fn send(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let mut stream = UnixStream::connect(&self.socket).await.map_err(|error| {
            let why = format!("The server cannot be reached: {}", in_words(&error));
            Error::unavailable(why, Outcome::NotDone)
        })?;
        // Not through Env: a bound on an I/O wait.
        let answer = tokio::time::timeout(PATIENCE, exchange(&mut stream, operation, &body)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (status, body) = answer.map_err(|error| {
            let lost = if operation.only_reads() { Outcome::NotDone } else { Outcome::Unknown };
            Error::unavailable(format!("The server's answer was lost: {}", in_words(&error)), lost)
        })?;
        if status == 200 { Ok(body) } else { Err(Error::from_wire(status, body)) }
    }
}

impl Store for ServerStore {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.send(operation, body).boxed()
    }
}

/// One request, one answer, the connection closed after it: nothing here needs more of HTTP. Who
/// asks follows from the socket, so nothing is signed.
async fn exchange(stream: &mut UnixStream, operation: Operation, body: &Bytes) -> io::Result<(u16, Bytes)> {
    let head = format!(
        "POST {PHYSICAL_PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\n\
         x-amz-target: {}\r\ncontent-length: {}\r\n\r\n",
        operation.target(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer).await?;
    whole_answer::read(Bytes::from(answer))
}
