//! HTTP for the crates of AWS, by the client that is here anyway: HTTP/1.1, the certificates and
//! the proxy that the environment names.
//!
//! Their own client brings HTTP/2 and the machine's certificates, and is generic over all of it:
//! docs/develop/decisions/0024-laboratory.md. Not here: requests to the upstream
//! (`connections`), whose bytes are asked for one by one.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
    http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

use super::network::{Network, Routes};

/// The largest answer taken, in bytes: DynamoDB's are at most 16 MB of items, in JSON.
const ANSWER: usize = 64 * 1024 * 1024;

/// A client for AWS's crates, by that network: keeps connections, one pool for
/// each pair of bounds in time.
pub fn sdk_http_client(network: &Network) -> SharedHttpClient {
    let network = network.clone();
    let made: Mutex<Vec<(Bounds, SharedHttpConnector)>> = Mutex::default();
    http_client_fn(move |settings, _| {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = Bounds::of(settings);
        if let Some((_, connector)) = made.iter().find(|(known, _)| *known == bounds) {
            return connector.clone();
        }
        let connector = SharedHttpConnector::new(Pool::new(bounds, &network));
        made.push((bounds, connector.clone()));
        connector
    })
}

/// How long it may take to connect, and to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    connect: Option<Duration>,
    answer: Option<Duration>,
}

impl Bounds {
    fn of(settings: &HttpConnectorSettings) -> Self {
        Bounds { connect: settings.connect_timeout(), answer: settings.read_timeout() }
    }
}

#[derive(Clone, Debug)]
struct Pool {
    client: Client<HttpsConnector<Routes>, SdkBody>,
    bounds: Bounds,
}

impl Pool {
    fn new(bounds: Bounds, network: &Network) -> Self {
        let mut tcp = Tcp::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(bounds.connect);
        let client = Client::builder(TokioExecutor::new()).build(network.connector(tcp));
        Pool { client, bounds }
    }

    async fn send(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
        let begins = self.client.request(request);
        let answer = match self.bounds.answer {
            None => begins.await,
            Some(bound) => {
                timeout(bound, begins).await.map_err(|late| ConnectorError::timeout(late.into()))?
            }
        };
        let (head, body) = answer.map_err(|error| failure(error.into()))?.into_parts();
        let body = Limited::new(body, ANSWER).collect().await.map_err(failure)?.to_bytes();
        HttpResponse::try_from(http::Response::from_parts(head, SdkBody::from(body)))
            .map_err(|error| ConnectorError::other(error.into(), None))
    }
}

impl HttpConnector for Pool {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().send(request))
    }
}

/// The first of an error and its causes that is of this type.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

/// A failure as AWS's crates judge whether to try again: the connection broke, was late, or could
/// not be made.
fn failure(error: Box<dyn Error + Send + Sync>) -> ConnectorError {
    let io = cause::<std::io::Error>(&*error);
    let http = cause::<hyper::Error>(&*error);
    if io.is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut) {
        return ConnectorError::timeout(error);
    }
    if io.is_some() || http.is_some_and(|http| http.is_closed() || http.is_canceled()) {
        return ConnectorError::io(error);
    }
    if http.is_some_and(hyper::Error::is_incomplete_message) {
        return ConnectorError::other(error, Some(ErrorKind::TransientError));
    }
    ConnectorError::other(error, None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const SECOND: Option<Duration> = Some(Duration::from_secs(1));

    /// A server on this machine that reads one request a connection and answers `with` that.
    async fn server(with: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = [0; 1024];
                if connection.read(&mut request).await.unwrap() > 0 {
                    connection.write_all(with.as_bytes()).await.unwrap();
                }
                open.push(connection);
                if with.starts_with("cut") {
                    open.clear();
                }
            }
        });
        format!("http://{address}/credentials")
    }

    async fn get(url: &str, bounds: Bounds) -> Result<HttpResponse, ConnectorError> {
        get_by(&Network::plain().unwrap(), url, bounds).await
    }

    async fn get_by(network: &Network, url: &str, bounds: Bounds) -> Result<HttpResponse, ConnectorError> {
        let mut request = HttpRequest::empty();
        request.set_uri(url).unwrap();
        Pool::new(bounds, network).send(request).await
    }

    #[tokio::test]
    async fn an_answer_comes_whole() {
        let url = server("HTTP/1.1 201 Created\r\nx-of: here\r\ncontent-length: 5\r\n\r\nwhole").await;
        let answer = get(&url, Bounds { connect: SECOND, answer: SECOND }).await.unwrap();
        assert_eq!(answer.status().as_u16(), 201);
        assert_eq!(answer.headers().get("x-of"), Some("here"));
        assert_eq!(answer.body().bytes(), Some(&b"whole"[..]));
    }

    #[tokio::test]
    async fn what_is_late_is_told_from_what_broke() {
        let url = server("").await;
        let late = Bounds { connect: SECOND, answer: Some(Duration::from_millis(20)) };
        assert!(get(&url, late).await.unwrap_err().is_timeout());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nobody = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        assert!(get(&nobody, Bounds { connect: SECOND, answer: SECOND }).await.unwrap_err().is_io());
        let bad = get(&server("cut: no HTTP").await, Bounds { connect: SECOND, answer: SECOND }).await;
        let bad = bad.unwrap_err();
        assert!(bad.is_other() && !bad.is_timeout(), "{bad:?}");
    }

    #[tokio::test]
    async fn credentials_from_elsewhere_are_asked_for_through_the_proxy() {
        let bounds = Bounds { connect: SECOND, answer: SECOND };
        let proxy = server("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
        let network = Network::through(&proxy).unwrap();
        let refused = get_by(&network, "https://sts.example/", bounds).await.unwrap_err();
        assert!(format!("{refused:?}").contains("TunnelUnsuccessful"), "{refused:?}");
        // What a container or a machine asks for its own is not encrypted, and near.
        let near = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert_eq!(get_by(&network, &near, bounds).await.unwrap().status().as_u16(), 200);
    }
}
