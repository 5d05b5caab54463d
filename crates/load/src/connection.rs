//! One keep-alive HTTP/1.1 connection. One request at a time, without retries.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Method};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::{Answer, Request};

/// Why no answer came, or why nothing was sent at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The address is not on this machine.
    #[error(
        "{0} is not a loopback address; this client carries fake credentials and calls only this machine"
    )]
    NotLoopback(SocketAddr),
    /// The settings cannot describe a load: no connection, or a rate that is not above zero.
    #[error("a load needs at least one connection and a rate above zero")]
    Nothing,
    /// The connection could not be opened.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// The connection broke, or the answer was not HTTP. Whether the request was carried out is
    /// unknown.
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
    /// The request could not be written as HTTP.
    #[error("not a request: {0}")]
    Request(#[from] http::Error),
}

const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
/// Shaped like a signature, because some servers want one to be there. It signs nothing.
const FAKE_SIGNATURE: HeaderValue = HeaderValue::from_static(
    "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
     SignedHeaders=host;x-amz-date;x-amz-target, \
     Signature=0000000000000000000000000000000000000000000000000000000000000000",
);
const DATE: HeaderValue = HeaderValue::from_static("20260101T000000Z");
const X_AMZ_TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const X_AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// An open connection to a DynamoDB endpoint on this machine.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// When `target` is not a loopback address, or nobody listens there.
    pub async fn open(target: SocketAddr) -> Result<Connection, LoadError> {
        if !target.ip().is_loopback() {
            return Err(LoadError::NotLoopback(target));
        }
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        // The driver ends with the connection; what it ends with also reaches whoever waits for an
        // answer.
        tokio::spawn(driver);
        Ok(Connection { sender, host: HeaderValue::try_from(target.to_string()).map_err(http::Error::from)? })
    }

    /// Sends one request and waits for the whole answer.
    ///
    /// # Errors
    /// When the connection breaks. The connection is of no use after that: open another.
    pub async fn send(&mut self, request: &Request) -> Result<Answer, LoadError> {
        let target = HeaderValue::try_from(request.operation.target()).map_err(http::Error::from)?;
        let message = http::Request::builder()
            .method(Method::POST)
            .uri("/")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, JSON)
            .header(X_AMZ_TARGET, target)
            .header(X_AMZ_DATE, DATE)
            .header(AUTHORIZATION, FAKE_SIGNATURE)
            .body(Full::new(request.body.clone()))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(message).await?.into_parts();
        Ok(Answer { status: head.status, body: body.collect().await?.to_bytes() })
    }
}
