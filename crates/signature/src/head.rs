//! What the head of a request claims, and the rules that a head has to keep before anything is
//! computed. Each rule closes a way to give one signature two meanings.

use std::fmt;

use heatsink_dynamo::Error;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::authorization::Authorization;
use crate::canonical::Canonical;
use crate::refusal;
use crate::text::read_hex;
use crate::time::read_timestamp;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// The headers of AWS begin so. All but the session token change what a request means.
const OF_AWS: &str = "x-amz-";

/// What a head claims. It is not yet believed.
pub struct Claim<'a> {
    pub(crate) authorization: Authorization<'a>,
    /// `X-Amz-Date`.
    pub(crate) timestamp: &'a str,
    /// `X-Amz-Security-Token`, there at most once.
    pub(crate) token: Option<&'a HeaderValue>,
    /// The canonical request but for the hash of the body.
    pub(crate) canonical: Canonical,
}

impl Claim<'_> {
    /// The access key of the client that it is said to be from.
    pub fn access_key(&self) -> &str {
        self.authorization.scope.access_key
    }
}

/// Not what is signed: a session token is in it.
impl fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Claim").field(&self.authorization.scope.access_key).finish()
    }
}

/// Reads a head that arrived at `now`, in seconds since 1970, at a server of `region`.
pub(crate) fn read<'a>(head: &'a Parts, region: &str, now: u64) -> Result<Claim<'a>, Error> {
    let headers = &head.headers;
    if head.uri.query().is_some() {
        return Err(refusal::query());
    }
    if !headers.contains_key(AUTHORIZATION) {
        return Err(refusal::missing());
    }
    let authorization = Authorization::read(once(headers, &AUTHORIZATION)?)?;
    if head.method != Method::POST || head.uri.path() != "/" {
        return Err(refusal::mismatch());
    }
    let timestamp = once(headers, &DATE)?;
    let signed_at = read_timestamp(timestamp).ok_or_else(|| refusal::not_a_date(timestamp))?;
    authorization.scope.check(Some(timestamp), Some(region))?;
    refusal::check_clock(signed_at, now)?;

    let host = once(headers, &HOST)?;
    if head.uri.authority().is_some_and(|named| named.as_str() != host) {
        return Err(refusal::two_hosts());
    }
    once(headers, &TARGET)?;
    let canonical = canonical(headers, authorization.signed_headers)?;
    check_all_signed(headers, authorization.signed_headers)?;
    if let Some(given) = headers.get(CONTENT_HASH).and_then(|given| given.to_str().ok())
        && read_hex(given).is_none()
    {
        return Err(refusal::payload_word(given));
    }
    let token = at_most_once(headers, &TOKEN)?;
    Ok(Claim { authorization, timestamp, token, canonical })
}

/// The value of a header that has to be there once.
fn once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, Error> {
    let value = at_most_once(headers, name)?.ok_or_else(|| refusal::header_once(name.as_str()))?;
    value.to_str().map_err(|_| refusal::header_value(name.as_str()))
}

fn at_most_once<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Error> {
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(refusal::header_once(name.as_str())),
    }
}

/// The canonical request of the headers that are named. Each is there, once, with a value that has
/// one spelling, and their names are in order.
pub(crate) fn canonical(headers: &HeaderMap, names: &str) -> Result<Canonical, Error> {
    let mut canonical = Canonical::new();
    let mut before = "";
    for name in names.split(';') {
        // A name in upper case is found, too: the map takes any case.
        if name <= before || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(refusal::signed_headers());
        }
        let mut values = headers.get_all(name).into_iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(refusal::header_once(name));
        };
        let value = value.to_str().ok().filter(|value| has_one_spelling(value));
        canonical.header(name, value.ok_or_else(|| refusal::header_value(name))?);
        before = name;
    }
    canonical.end_headers(names);
    Ok(canonical)
}

/// Signers count runs of spaces as one space, and trim: other spellings would have the same
/// signature.
fn has_one_spelling(value: &str) -> bool {
    value.trim_matches(' ') == value && !value.contains('\t') && !value.contains("  ")
}

/// Whether everything that changes the meaning of a request is signed. A session token need not be:
/// it is compared with the client's own, and aiodynamo adds it to a request that it has signed, which
/// AWS leaves to each service ("Add the signature to the request", IAM User Guide).
fn check_all_signed(headers: &HeaderMap, names: &str) -> Result<(), Error> {
    let is_signed = |wanted: &str| names.split(';').any(|name| name == wanted);
    let needed = |name: &HeaderName| {
        let is_of_aws = name.as_str().starts_with(OF_AWS) && *name != TOKEN;
        is_of_aws || *name == HOST || *name == CONTENT_ENCODING
    };
    match headers.keys().find(|name| needed(name) && !is_signed(name.as_str())) {
        Some(name) => Err(refusal::header_not_signed(name.as_str())),
        None => Ok(()),
    }
}
