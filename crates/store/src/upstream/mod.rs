//! The upstream store: any endpoint that speaks DynamoDB's protocol, over HTTP or HTTPS, signed
//! with the operator's own credentials.
//!
//! A request that reached the wire is never sent twice from here, except reads on a connection that
//! turned out to be closed: only the client knows whether a second write is harmless.

mod bounds;
mod checked_stream;
mod connections;
mod credentials;
mod endpoint;
mod network;
mod sdk_http;
mod webhook;

use std::sync::{Arc, LazyLock};

use aws_credential_types::provider::SharedCredentialsProvider;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Env;
use heatsink_signature::{CONTENT_TYPE as JSON, SigningKey};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ToStrError};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;

use crate::{Permit, Store};
pub use bounds::Bounds;
use connections::{Connections, Failure};
use credentials::Keys;
pub use endpoint::Endpoint;
pub use network::Network;
pub use sdk_http::sdk_http_client;
pub use webhook::{NotTaken, Webhook};

/// The region that requests to a loopback endpoint are signed for where the chain names none. Local
/// servers take any.
const LOCAL_REGION: &str = "us-east-1";

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");

/// The `X-Amz-Target` of every operation, in the order of [`Operation::ALL`].
static TARGETS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let value = |operation: &Operation| HeaderValue::from_str(&operation.target());
    Operation::ALL.iter().map(|operation| value(operation).unwrap_or(HeaderValue::from_static(""))).collect()
});

/// A DynamoDB endpoint.
pub struct Upstream {
    env: Arc<dyn Env>,
    keys: Keys,
    tables: Server,
    streams: Server,
    /// Whether operations on the account are sent at all.
    account_operations: bool,
}

/// A host, and the connections to it.
struct Server {
    connections: Connections,
    host: HeaderValue,
    path: Uri,
}

impl Server {
    fn new(
        endpoint: Endpoint,
        bounds: Bounds,
        network: &Network,
        env: &Arc<dyn Env>,
    ) -> Result<Self, String> {
        let host = HeaderValue::from_str(&endpoint.host()).map_err(|error| error.to_string())?;
        let path = endpoint.uri().path().parse().map_err(|error: InvalidUri| error.to_string())?;
        Ok(Server { connections: Connections::new(endpoint, bounds, network, env.clone()), host, path })
    }

    /// A request, signed.
    fn request(
        &self,
        operation: Operation,
        body: Bytes,
        key: &SigningKey,
        unix_millis: u64,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let target = TARGETS.get(operation as usize).cloned().unwrap_or(HeaderValue::from_static(""));
        let unfit = |error: ToStrError| Error::internal(error.to_string());
        let (host, name) = (self.host.to_str().map_err(unfit)?, target.to_str().map_err(unfit)?);
        let signed = key.sign(host, name, &body, unix_millis);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.reserve(8);
        headers.insert(HOST, self.host.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(TARGET, target);
        headers.insert(DATE, own(signed.date)?);
        headers.insert(AUTHORIZATION, own(signed.authorization)?);
        if let Some(token) = key.token() {
            headers.insert(TOKEN, own(token.to_owned())?);
        }
        Ok(request)
    }
}

impl Upstream {
    /// An upstream with region and credentials from the standard AWS chain. Both are looked up
    /// here, so that a start without them fails at once. A loopback endpoint is signed for
    /// `us-east-1` where the chain names no region.
    ///
    /// # Errors
    /// A message, when region or credentials cannot be found.
    pub async fn connect(
        endpoint: Endpoint,
        bounds: Bounds,
        network: &Network,
        env: Arc<dyn Env>,
    ) -> Result<Self, String> {
        let local = endpoint.is_loopback().then_some(LOCAL_REGION);
        let (region, chain) = credentials::standard_chain(local, &network.of_credentials()?).await;
        let region = region.ok_or("no AWS region is configured; set AWS_REGION")?.to_string();
        let upstream = Upstream::over(network, endpoint, bounds, env, region, chain)?;
        let key = upstream.keys.at(upstream.env.unix_millis()).await;
        key.map_err(|error| error.message.unwrap_or_default())?;
        Ok(upstream)
    }

    /// An upstream with the region and credentials given.
    ///
    /// # Errors
    /// A message, when the endpoint's host cannot be a header value.
    pub fn with(
        endpoint: Endpoint,
        bounds: Bounds,
        env: Arc<dyn Env>,
        region: String,
        chain: SharedCredentialsProvider,
    ) -> Result<Self, String> {
        Upstream::over(&Network::plain()?, endpoint, bounds, env, region, chain)
    }

    /// [`with`](Self::with), by that network.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn over(
        network: &Network,
        endpoint: Endpoint,
        bounds: Bounds,
        env: Arc<dyn Env>,
        region: String,
        chain: SharedCredentialsProvider,
    ) -> Result<Self, String> {
        let streams = Server::new(endpoint.streams(), bounds, network, &env)?;
        let tables = Server::new(endpoint, bounds, network, &env)?;
        Ok(Upstream { keys: Keys::new(region, chain), tables, streams, env, account_operations: false })
    }

    /// The same upstream, which also takes operations on the account
    /// ([`Operation::acts_on_account`]). Everyone who reaches the gateway then has the operator's
    /// rights to them.
    #[must_use]
    pub fn with_account_operations(self) -> Self {
        Upstream { account_operations: true, ..self }
    }

    /// The region that requests are signed for.
    pub fn region(&self) -> &str {
        self.keys.region()
    }

    async fn send(
        &self,
        operation: Operation,
        body: Bytes,
        permit: Option<&dyn Permit>,
    ) -> Result<Bytes, Error> {
        if operation.acts_on_account() && !self.account_operations {
            return Err(refused(operation));
        }
        let now = self.env.unix_millis();
        let key = self.keys.at(now).await?;
        let server = if operation.is_streams() { &self.streams } else { &self.tables };
        let lost = if operation.only_reads() { Outcome::NotDone } else { Outcome::Unknown };
        let make = || server.request(operation, body.clone(), &key, now);
        let answer =
            server.connections.send(make, operation.only_reads(), permit).await.map_err(|failure| {
                match failure {
                    Failure::Refused(error) => error,
                    Failure::NotSent(why) => {
                        Error::unavailable(format!("The upstream cannot be reached: {why}"), Outcome::NotDone)
                    }
                    Failure::Lost(why) => {
                        Error::unavailable(format!("The upstream's answer was lost: {why}"), lost)
                    }
                    Failure::Cut(error) => {
                        let why = error.message.unwrap_or_default();
                        Error::unavailable(format!("{why}. Only a part of it was sent"), lost)
                    }
                }
            })?;
        whole(&answer.headers, answer.status, &answer.body)?;
        if answer.status == StatusCode::OK {
            Ok(answer.body)
        } else {
            Err(Error::from_wire(answer.status.as_u16(), answer.body))
        }
    }
}

impl Store for Upstream {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.send(operation, body, None).boxed()
    }

    fn call_if<'a>(
        &'a self,
        operation: Operation,
        body: Bytes,
        permit: &'a dyn Permit,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        self.send(operation, body, Some(permit)).boxed()
    }
}

/// A header value that takes the text over.
fn own(text: String) -> Result<HeaderValue, Error> {
    HeaderValue::from_maybe_shared(Bytes::from(text)).map_err(|error| Error::internal(error.to_string()))
}

/// The error for an operation on the account.
fn refused(operation: Operation) -> Error {
    let message = format!(
        "{} is off: it acts on the AWS account with the credentials of Heatsink, which does not check who asks. \
         Start Heatsink with --allow-account-operations to serve it",
        operation.name()
    );
    Error::new(Code::AccessDeniedException, message)
}

/// Checks that the answer arrived whole. DynamoDB sends a checksum. Of an answer without one, only
/// its form can tell: a proxy on the way may have cut it and given the length of what was left, or
/// may end an answer by closing the connection.
fn whole(headers: &HeaderMap, status: StatusCode, body: &[u8]) -> Result<(), Error> {
    let damaged = |how: &str| {
        Error::unavailable(format!("The upstream's answer was damaged on the way: {how}"), Outcome::Unknown)
    };
    match headers.get(CRC32) {
        Some(sent) => {
            let sent = sent.to_str().ok().and_then(|text| text.parse::<u32>().ok());
            if sent != Some(crc32fast::hash(body)) {
                return Err(damaged("its x-amz-crc32 does not fit its body"));
            }
        }
        None if status == StatusCode::OK && !is_object(body) => {
            return Err(damaged("it has no x-amz-crc32, and its body is no whole JSON object"));
        }
        None => {}
    }
    Ok(())
}

/// Whether the text is one whole JSON object.
fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}
