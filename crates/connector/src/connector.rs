//! The HTTP client that an SDK asks: it hands each request to the gateway in this program.
//!
//! Not here: what becomes of a request (`heatsink_gateway::http::InProcess`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use heatsink_gateway::http::InProcess;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, HeaderValue};

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");

/// How the targets of DynamoDB and of DynamoDB Streams begin.
const OF_DYNAMODB: &str = "DynamoDB";

/// What a client of another service is told.
const NOT_FOR_IT: &str = "this request is not for DynamoDB, and Heatsink's connector answers nothing else: \
    give the connector to the configuration of DynamoDB's client, not to the one that clients share";

/// An HTTP client for the SDKs of DynamoDB and of DynamoDB Streams. Copies ask the same gateway.
///
/// The SDK's retries and timeouts hold; there is nothing to connect to, so its connect timeout means
/// nothing. Where it gives a call up, a read ends and a write goes on, as for a client that hangs
/// up. After [`Heatsink::stop`](crate::Heatsink::stop) requests get `ServiceUnavailable`.
#[derive(Clone)]
pub struct Connector {
    door: Arc<InProcess>,
}

impl Connector {
    pub(crate) fn new(door: Arc<InProcess>) -> Self {
        Connector { door }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpClient for Connector {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(Bounded { door: Arc::clone(&self.door), bound: settings.read_timeout() })
    }
}

/// The same within the time that the SDK gives an answer.
struct Bounded {
    door: Arc<InProcess>,
    bound: Option<Duration>,
}

impl fmt::Debug for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl HttpConnector for Bounded {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (door, bound) = (Arc::clone(&self.door), self.bound);
        HttpConnectorFuture::new(async move {
            let request = request.into_parts();
            let of_dynamodb = |target: &&str| target.starts_with(OF_DYNAMODB);
            if request.headers.get(TARGET).as_ref().is_none_or(|target| !of_dynamodb(target)) {
                return Err(ConnectorError::user(NOT_FOR_IT.into()));
            }
            // All that the gateway looks at.
            let mut headers = HeaderMap::with_capacity(2);
            for name in [TARGET, CONTENT_ENCODING] {
                if let Some(value) = request.headers.get(&name) {
                    let value = HeaderValue::from_str(value);
                    headers.insert(name, value.map_err(|error| ConnectorError::user(error.into()))?);
                }
            }
            let answer = door.answer(&headers, request.body);
            let answer = match bound {
                None => answer.await,
                // Not through Env: a bound on an I/O wait.
                Some(bound) => {
                    let answer = tokio::time::timeout(bound, answer).await;
                    answer.map_err(|late| ConnectorError::timeout(late.into()))?
                }
            };
            HttpResponse::try_from(answer.map(SdkBody::from))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}
