//! One HTTP request to one HTTP answer, in DynamoDB's order of checks: path and method, content type, body, target,
//! signature, then the operation itself.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Env;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;

use super::body::{self, Abandoned, Read};
use super::gzip::{self, Unreadable};
use super::{admin, authorization, reply};
use crate::{Limits, Service};

const NOT_FOUND: &[u8] = b"<UnknownOperationException/>\n";
const CONTENT_TYPES: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

/// What answers requests; shared by all connections.
pub(super) struct Front {
    service: Arc<Service>,
    limits: Limits,
    env: Arc<dyn Env>,
}

impl Front {
    pub(super) fn new(service: Arc<Service>, limits: Limits, env: Arc<dyn Env>) -> Self {
        Front { service, limits, env }
    }

    /// Answers one request, which comes from this machine (`local`) or not; an error ends the connection without an answer.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        local: bool,
    ) -> Result<Response<Full<Bytes>>, Abandoned> {
        let (head, body) = request.into_parts();
        let content_type = content_type(&head.headers);
        if head.method == Method::GET && head.uri.path() == "/" {
            let healthy = format!("healthy: dynamodb.{}.amazonaws.com ", self.service.region());
            return Ok(self.reply(StatusCode::OK, None, Bytes::from(healthy)));
        }
        if head.method == Method::GET && head.uri.path() == admin::PARTITIONS {
            let (status, body) = admin::partitions(&head, local, self.service.partitions());
            let content_type = HeaderValue::from_static("application/json");
            return Ok(self.reply(status, Some(content_type), body));
        }
        if head.method == Method::GET && head.uri.path() == admin::METRICS {
            let (status, body) = admin::metrics(&head, local, self.service.recorded());
            let content_type = HeaderValue::from_static("text/plain; version=0.0.4");
            return Ok(self.reply(status, Some(content_type), body));
        }
        let body = match body::read(body, self.limits.body, self.limits.body_read).await? {
            Read::Whole(body) => gzip::read(&head.headers, body, self.limits.body),
            Read::TooLarge => Err(Unreadable::TooLarge),
        };
        let body = match body {
            Ok(body) => body,
            Err(Unreadable::Malformed) => {
                return Ok(self.refuse(content_type, &Error::bare(Code::SerializationException)));
            }
            Err(Unreadable::TooLarge) => {
                let message = format!("The request body is larger than {} bytes", self.limits.body);
                let error = Error::new(Code::RequestEntityTooLarge, message);
                return Ok(reply::closing(self.refuse(content_type, &error)));
            }
        };
        let Some(content_type) =
            content_type.filter(|_| head.method == Method::POST && head.uri.path() == "/")
        else {
            return Ok(self.reply(StatusCode::NOT_FOUND, None, Bytes::from_static(NOT_FOUND)));
        };
        Ok(match self.operate(&head.headers, body).await {
            Ok((body, missing)) => {
                let reply = match gzip::wanted(&head.headers).then(|| gzip::write(&body)).flatten() {
                    Some(packed) => reply::packed(self.reply(StatusCode::OK, Some(content_type), packed)),
                    None => self.reply(StatusCode::OK, Some(content_type), body),
                };
                reply::partial(reply, &missing)
            }
            Err(error) => self.refuse(Some(content_type), &error),
        })
    }

    /// The answer, and the shards that it goes without.
    async fn operate(&self, headers: &HeaderMap, body: Bytes) -> Result<(Bytes, Vec<String>), Error> {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let checked = target
            .and_then(Operation::from_target)
            .ok_or_else(|| Error::bare(Code::UnknownOperationException))
            .and_then(|operation| authorization::check(headers).map(|()| operation))
            .and_then(|operation| refuse_browsers(headers).map(|()| operation));
        let operation = match checked {
            Ok(operation) if !body.is_empty() => operation,
            // A body that is no JSON comes before all else. Where the rest is in order the body is checked once, by
            // whoever reads it.
            Ok(_) => return Err(Error::bare(Code::SerializationException)),
            Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_err() => {
                return Err(Error::bare(Code::SerializationException));
            }
            Err(error) => return Err(error),
        };
        // Not through Env: a bound on an I/O wait. tokio registers the timer only if the answer is not there at once.
        match tokio::time::timeout(self.limits.request, self.service.call_marked(operation, body)).await {
            Ok((answer, missing)) => answer.map(|answer| (answer, missing)),
            Err(_) => {
                let message = format!(
                    "No answer within {} s; the request may have been carried out",
                    self.limits.request.as_secs()
                );
                Err(Error::unavailable(message, Outcome::Unknown))
            }
        }
    }

    fn refuse(&self, content_type: Option<HeaderValue>, error: &Error) -> Response<Full<Bytes>> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.reply(status, content_type, error.body())
    }

    fn reply(
        &self,
        status: StatusCode,
        content_type: Option<HeaderValue>,
        body: Bytes,
    ) -> Response<Full<Bytes>> {
        reply::reply(&*self.env, status, content_type, body)
    }
}

/// Browsers send `Origin` with every POST, SDKs elsewhere never do. No page may reach the endpoint, not even through a
/// name of its own that resolves to this machine: signatures are not checked, so nothing else would stop it.
fn refuse_browsers(headers: &HeaderMap) -> Result<(), Error> {
    if headers.contains_key(ORIGIN) {
        return Err(Error::new(
            Code::AccessDeniedException,
            "Requests from web pages are not served (Origin header)",
        ));
    }
    Ok(())
}

/// The content type to echo, if it is one that DynamoDB takes.
fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = given.split(';').next().unwrap_or_default().trim();
    CONTENT_TYPES.into_iter().find(|known| *known == plain).map(HeaderValue::from_static)
}
