//! Sends events to a URL by POST, over the connections and with the certificates of an upstream.
//!
//! Not here: which events there are, and when one is sent again (`heatsink-workers`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_env::Env;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;

use super::bounds::Bounds;
use super::connections::{Connections, Failure};
use super::endpoint::Endpoint;
use super::network::Network;

/// Events are sent one after the other.
const BOUNDS: Bounds =
    Bounds { connect: Duration::from_secs(5), answer: Duration::from_secs(10), connections: 1 };

/// Where events are sent.
pub struct Webhook {
    connections: Connections,
    host: HeaderValue,
    path: Uri,
    authorization: Option<HeaderValue>,
}

/// Why an event was not taken. The URL is not named, which may be a secret.
#[derive(Debug)]
pub struct NotTaken {
    /// Why.
    pub why: String,
    /// Whether the same event may be taken later.
    pub retryable: bool,
}

impl Webhook {
    /// Sends to that URL, with `authorization: Bearer` where there is a token.
    ///
    /// # Errors
    /// What is wrong with URL or token, which are not repeated.
    pub fn new(url: &Uri, token: Option<&str>, network: &Network, env: Arc<dyn Env>) -> Result<Self, String> {
        Webhook::within(BOUNDS, url, token, network, env)
    }

    fn within(
        bounds: Bounds,
        url: &Uri,
        token: Option<&str>,
        network: &Network,
        env: Arc<dyn Env>,
    ) -> Result<Self, String> {
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err("the URL names no host".to_owned());
        };
        let endpoint = Endpoint::parse(&format!("{scheme}://{authority}"))?;
        let host = HeaderValue::from_str(&endpoint.host()).map_err(|error| error.to_string())?;
        let path = url.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
        let authorization = token.map(bearer).transpose()?;
        let connections = Connections::new(endpoint, bounds, network, env);
        Ok(Webhook { connections, host, path, authorization })
    }

    /// The host to which events go, for people.
    pub fn host(&self) -> &str {
        self.host.to_str().unwrap_or_default()
    }

    /// Sends one event, in JSON. It is taken where the answer is a 2xx.
    ///
    /// # Errors
    /// Why it was not taken, or may not have been.
    pub async fn post(&self, event: &Bytes) -> Result<(), NotTaken> {
        let make = || {
            let mut request = Request::new(Full::new(event.clone()));
            *request.method_mut() = Method::POST;
            *request.uri_mut() = self.path.clone();
            let headers = request.headers_mut();
            headers.insert(HOST, self.host.clone());
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Some(authorization) = &self.authorization {
                headers.insert(AUTHORIZATION, authorization.clone());
            }
            Ok(request)
        };
        // An event has an id: one that comes twice is known by it.
        match self.connections.send(make, true, None).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(NotTaken {
                why: format!("it answered {}", answer.status.as_u16()),
                retryable: is_retryable(answer.status),
            }),
            Err(Failure::NotSent(why) | Failure::Lost(why)) => Err(NotTaken { why, retryable: true }),
            Err(Failure::Cut(error) | Failure::Refused(error)) => {
                Err(NotTaken { why: error.to_string(), retryable: true })
            }
        }
    }
}

/// Whether the same request may be taken later. A redirection is not followed: it would lead the
/// token elsewhere.
fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS]
            .contains(&status)
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    let token = token.trim();
    if token.is_empty() {
        return Err("it holds no token".to_owned());
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "the token has characters that no header can have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use heatsink_env::RealEnv;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const TAKEN: &str = "HTTP/1.1 204 No Content\r\n\r\n";

    /// A server on this machine that answers each request of a connection with the next of `all`:
    /// nothing for an empty one, and the end of the connection for `close`. Gives what it was sent.
    async fn server(all: &'static [&'static str]) -> (Uri, UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook/canary?canary", listener.local_addr().unwrap());
        let (told, sent) = unbounded_channel();
        tokio::spawn(async move {
            let mut answers = all.iter();
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = [0; 4096];
                while let Ok(bytes @ 1..) = connection.read(&mut request).await {
                    let _ = told.send(String::from_utf8_lossy(&request[..bytes]).into_owned());
                    match *answers.next().unwrap() {
                        "close" => break,
                        answer => connection.write_all(answer.as_bytes()).await.unwrap(),
                    }
                }
            }
        });
        (url.parse().unwrap(), sent)
    }

    fn to(url: &Uri, token: Option<&str>) -> Result<Webhook, String> {
        let bounds = Bounds { answer: Duration::from_millis(300), ..BOUNDS };
        Webhook::within(bounds, url, token, &Network::plain().unwrap(), Arc::new(RealEnv))
    }

    #[tokio::test]
    async fn an_event_is_posted_as_json_with_the_token() {
        let (url, mut sent) = server(&[TAKEN, TAKEN]).await;
        let webhook = to(&url, Some("secret\n")).unwrap();
        for _ in 0..2 {
            webhook.post(&Bytes::from_static(b"{\"event\":\"x\"}")).await.unwrap();
            let request = sent.recv().await.unwrap();
            assert!(request.starts_with("POST /hook/canary?canary HTTP/1.1\r\n"), "{request}");
            for part in [
                "content-type: application/json\r\n",
                "authorization: Bearer secret\r\n",
                "\r\n\r\n{\"event\":\"x\"}",
            ] {
                assert!(request.contains(part), "{request}");
            }
        }
        let (url, mut sent) = server(&[TAKEN]).await;
        to(&url, None).unwrap().post(&Bytes::new()).await.unwrap();
        assert!(!sent.recv().await.unwrap().contains("authorization"));
    }

    #[tokio::test]
    async fn what_is_not_taken_says_whether_it_may_be_later_and_never_the_url() {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let nobody: Uri = format!("http://{nobody}/canary").parse().unwrap();
        for (url, retryable, said) in [
            (server(&["HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"]).await.0, true, "answered 500"),
            (server(&["HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n"]).await.0, true, "answered 429"),
            (server(&["HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"]).await.0, false, "answered 404"),
            (
                server(&["HTTP/1.1 302 No\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"]).await.0,
                false,
                "answered 302",
            ),
            (server(&[""]).await.0, true, "nothing came within"),
            (server(&["close"]).await.0, true, ""),
            (server(&["no HTTP at all\r\n\r\n"]).await.0, true, ""),
            (nobody, true, "tcp connect error"),
        ] {
            let error = to(&url, None).unwrap().post(&Bytes::new()).await.unwrap_err();
            assert_eq!(error.retryable, retryable, "{error:?}");
            assert!(error.why.contains(said) && !error.why.contains("canary"), "{said}: {error:?}");
        }
    }

    #[tokio::test]
    async fn a_token_that_no_header_can_have_is_refused_and_not_repeated() {
        let url: Uri = "https://h.example/".parse().unwrap();
        for token in ["", " \n", "can\nary", "can\u{7f}ary"] {
            let error = to(&url, Some(token)).map(|_| ()).unwrap_err();
            assert!(error.contains("token") && !error.contains("ary"), "{error}");
        }
    }
}
