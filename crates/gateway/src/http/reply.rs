//! Answers on the wire: status, body and the headers that DynamoDB sends with every one.

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_env::Env;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use super::answer::{Body, Data};
use crate::budget::Held;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
/// The shards that a Query could not read, if its rule allows partial answers.
const PARTIAL: HeaderName = HeaderName::from_static("x-heatsink-partial");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");

/// The length of DynamoDB's request ids, in characters of `0-9A-Z`.
const ID_LENGTH: usize = 52;

/// An answer with `body`, which is counted in `held` until the client has taken it. `content_type`
/// echoes the request's; a body that is not JSON has none.
pub(super) fn reply(
    env: &dyn Env,
    status: StatusCode,
    content_type: Option<HeaderValue>,
    body: Bytes,
    held: Option<Held>,
) -> Response<Body> {
    let crc = crc32fast::hash(&body);
    let mut response = Response::new(Full::new(Data::new(body, held)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(4);
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(REQUEST_ID, request_id(env));
    headers.insert(CRC32, HeaderValue::from(crc));
    response
}

/// The answer that is an error.
pub(super) fn refusal(env: &dyn Env, content_type: Option<HeaderValue>, error: &Error) -> Response<Body> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply(env, status, content_type, error.body(), None)
}

/// The same answer, after which the connection closes.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The same answer, with a header that names the shards it leaves out, if any.
pub(super) fn partial(mut response: Response<Body>, missing: &[String]) -> Response<Body> {
    if let (false, Ok(shards)) = (missing.is_empty(), HeaderValue::from_str(&missing.join(", "))) {
        response.headers_mut().insert(PARTIAL, shards);
    }
    response
}

/// The same answer, whose body is gzip.
pub(super) fn packed(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

fn request_id(env: &dyn Env) -> HeaderValue {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    let mut id = [b'0'; ID_LENGTH];
    // Five bits a character, twelve characters a draw.
    for piece in id.chunks_mut(12) {
        let mut random = env.random();
        for character in piece {
            *character = DIGITS[usize::try_from(random & 31).unwrap_or(0)];
            random >>= 5;
        }
    }
    HeaderValue::from_bytes(&id).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatsink_env::ManualEnv;

    #[test]
    fn ids_look_like_dynamodbs_and_differ() {
        let env = ManualEnv::seeded(1);
        let [a, b] = [request_id(&env), request_id(&env)];
        assert_ne!(a, b);
        assert_eq!(a.len(), 52);
        assert!(a.as_bytes().iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()));
    }
}
