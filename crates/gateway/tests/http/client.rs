//! A client that sends exactly the bytes it is given.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::carrier::{self, Stream};

pub struct Client {
    stream: Stream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The error's name, without its namespace.
    pub fn error(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["__type"].as_str().unwrap().rsplit('#').next().unwrap().to_owned()
    }
}

/// The head of a signed request for an operation, with one more header.
pub fn head(operation: &str, header: &str) -> Vec<u8> {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.{operation}\r\n\
         x-amz-date: 20260101T000000Z\r\nauthorization: AWS4-HMAC-SHA256 Credential=a/20260101/eu-west-1/dynamodb/aws4_request, \
         SignedHeaders=host, Signature=0\r\n{header}\r\n\r\n"
    )
    .into_bytes()
}

/// A whole request.
pub fn post(operation: &str, body: &[u8]) -> Vec<u8> {
    let mut request = head(operation, &format!("content-length: {}", body.len()));
    request.extend_from_slice(body);
    request
}

impl Client {
    pub async fn to(address: SocketAddr) -> Self {
        Client::over(carrier::connect(address).await)
    }

    pub fn over(stream: Stream) -> Self {
        Client { stream, read: Vec::new() }
    }

    pub async fn send(&mut self, request: &[u8]) -> Answer {
        self.write(request).await;
        self.read().await
    }

    pub async fn write(&mut self, request: &[u8]) {
        self.stream.write_all(request).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Ends this side of the connection; the other may go on.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Closes the connection with a reset instead of an end.
    pub fn reset(self) {
        carrier::socket(&self.stream).set_zero_linger().unwrap();
    }

    /// Takes so many bytes of the answer, or what there is of them within a second.
    pub async fn take(&mut self, bytes: usize) {
        let wanted = self.read.len() + bytes;
        let _ = tokio::time::timeout(Duration::from_secs(1), async {
            while self.read.len() < wanted {
                self.more().await;
            }
        })
        .await;
    }

    /// How many bytes there are until the connection ends, by a reset or not.
    pub async fn drain(&mut self) -> usize {
        let mut piece = vec![0; 64 * 1024];
        let mut count = 0;
        while let Ok(Ok(read)) =
            tokio::time::timeout(Duration::from_secs(2), self.stream.read(&mut piece)).await
        {
            if read == 0 {
                break;
            }
            count += read;
        }
        count
    }

    /// Everything that comes until the server closes the connection.
    pub async fn rest(mut self) -> String {
        let rest = self.stream.read_to_end(&mut self.read);
        tokio::time::timeout(Duration::from_secs(10), rest).await.unwrap().unwrap();
        String::from_utf8(self.read).unwrap()
    }

    pub async fn read(&mut self) -> Answer {
        tokio::time::timeout(Duration::from_secs(10), self.answer()).await.unwrap()
    }

    /// Whether the server closes the connection soon.
    pub async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match tokio::time::timeout(Duration::from_secs(5), self.stream.read(&mut byte)).await {
            Ok(Ok(read)) => read == 0,
            // Over TLS, without a word.
            Ok(Err(error)) => error.kind() == std::io::ErrorKind::UnexpectedEof,
            Err(_) => false,
        }
    }

    /// The next answer; `100 Continue` is none.
    async fn answer(&mut self) -> Answer {
        loop {
            let answer = self.message().await;
            if answer.status != 100 {
                return answer;
            }
        }
    }

    async fn message(&mut self) -> Answer {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await;
        };
        let head = String::from_utf8(self.read.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .map_or(0, |(_, value)| value.parse().unwrap());
        while self.read.len() < length {
            self.more().await;
        }
        Answer { status, headers, body: self.read.drain(..length).collect() }
    }

    async fn more(&mut self) {
        let mut piece = [0; 8 * 1024];
        let n = self.stream.read(&mut piece).await.unwrap();
        assert!(
            n > 0,
            "the connection closed before an answer; so far: {:?}",
            String::from_utf8_lossy(&self.read)
        );
        self.read.extend_from_slice(&piece[..n]);
    }
}
