//! How large a request head is. hyper refuses one that does not fit into its buffer, which grows
//! beyond its limit by what one read brings.

use bytes::Bytes;
use heatsink_env::Env;
use http::request::Parts;
use http::{Response, StatusCode};

use super::answer::Body;
use super::reply;

/// The bytes of a head: its line, its headers, and what stands between them.
pub(super) fn size(head: &Parts) -> usize {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let authority = head.uri.authority().map_or(0, |authority| authority.as_str().len());
    let line = head.method.as_str().len() + target + authority + " HTTP/1.1\r\n ".len();
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

/// The answer to a request whose head is too large.
pub(super) fn too_large(env: &dyn Env) -> Response<Body> {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    reply::closing(reply::reply(env, status, None, Bytes::new(), None))
}
