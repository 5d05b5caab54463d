//! Why a request is not accepted, in DynamoDB's types and sentences, with what to do where the
//! sentence does not say it.
//!
//! Sources: "Troubleshoot Signature Version 4 signing of AWS API requests", IAM User Guide;
//! sentences that DynamoDB was seen to answer. What a client sent is repeated within bounds, and
//! nothing of what the server knows but its region.

use heatsink_dynamo::{Code, Error};

use crate::time::timestamp;

/// How far the clocks of client and server may be apart, in seconds.
const SKEW: u64 = 15 * 60;

/// How much of a client's text is repeated, in characters.
const REPEATED: usize = 200;

/// A client's text, cut.
fn cut(text: &str) -> String {
    text.chars().take(REPEATED).collect()
}

/// `MissingAuthenticationTokenException`: nothing says who asks.
pub(crate) fn missing() -> Error {
    Error::new(Code::MissingAuthenticationTokenException, "Request is missing Authentication Token")
}

/// `IncompleteSignatureException`: the signature has not the form that is taken.
pub(crate) fn incomplete(message: impl Into<String>) -> Error {
    Error::new(Code::IncompleteSignatureException, message)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidSignatureException, message)
}

pub(crate) fn query() -> Error {
    incomplete(
        "Requests with a query are not served, and presigned ones least of all: sign with an Authorization header",
    )
}

pub(crate) fn wrong_algorithm(given: &str) -> Error {
    incomplete(format!("Unsupported AWS 'algorithm': '{}'. Sign with AWS4-HMAC-SHA256", cut(given)))
}

pub(crate) fn parameter(name: &str) -> Error {
    incomplete(format!("Authorization header requires '{name}' parameter, once and well-formed."))
}

pub(crate) fn unknown_parameter(given: &str) -> Error {
    incomplete(format!("'{}' is not a parameter of the Authorization header.", cut(given)))
}

pub(crate) fn not_five_parts(credential: &str) -> Error {
    incomplete(format!(
        "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{}'",
        cut(credential)
    ))
}

pub(crate) fn wrong_region(given: &str, own: &str) -> Error {
    invalid(format!("Credential should be scoped to a valid region, not '{}'. Sign for '{own}'", cut(given)))
}

pub(crate) fn wrong_service() -> Error {
    invalid("Credential should be scoped to correct service: 'dynamodb'. ")
}

pub(crate) fn wrong_terminator(given: &str) -> Error {
    invalid(format!(
        "Credential should be scoped with a valid terminator: 'aws4_request', not '{}'.",
        cut(given)
    ))
}

pub(crate) fn wrong_day(given: &str, timestamp: &str) -> Error {
    let day: String = timestamp.chars().take(8).collect();
    invalid(format!(
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{}' != '{day}', from '{}'.",
        cut(given),
        cut(timestamp)
    ))
}

pub(crate) fn not_a_date(given: &str) -> Error {
    incomplete(format!(
        "Date must be in ISO-8601 'basic format'. Got '{}'. See http://en.wikipedia.org/wiki/ISO_8601",
        cut(given)
    ))
}

/// Whether a moment is near enough to the server's clock, both in seconds since 1970.
///
/// # Errors
/// `InvalidSignatureException` with both moments. SDKs correct their clock by it.
pub(crate) fn check_clock(signed: u64, now: u64) -> Result<(), Error> {
    let sentence = |text: &str, bound: u64, relation: &str, sign: char| {
        let (given, bound, now) = (timestamp(signed), timestamp(bound), timestamp(now));
        invalid(format!("{text}: {given} is {relation} than {bound} ({now} {sign} 15 min.)"))
    };
    if signed.saturating_add(SKEW) < now {
        return Err(sentence("Signature expired", now - SKEW, "now earlier", '-'));
    }
    if signed > now.saturating_add(SKEW) {
        return Err(sentence("Signature not yet current", now + SKEW, "still later", '+'));
    }
    Ok(())
}

pub(crate) fn header_once(name: &str) -> Error {
    incomplete(format!("Exactly one '{name}' header is required."))
}

pub(crate) fn header_not_signed(name: &str) -> Error {
    match name {
        "host" => incomplete("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."),
        name => incomplete(format!("'{}' must be a 'SignedHeader' in the AWS Authorization.", cut(name))),
    }
}

pub(crate) fn header_value(name: &str) -> Error {
    incomplete(format!(
        "The value of the signed header '{}' must be ASCII, without tabs and without two spaces in a row.",
        cut(name)
    ))
}

pub(crate) fn signed_headers() -> Error {
    incomplete("SignedHeaders must be names in lower case, in order, each once, joined by ';'.")
}

pub(crate) fn payload_word(given: &str) -> Error {
    incomplete(format!(
        "X-Amz-Content-Sha256 '{}' is not served: the body must be sent whole and its SHA-256 signed.",
        cut(given)
    ))
}

pub(crate) fn two_hosts() -> Error {
    incomplete("The request line names another host than the 'Host' header that is signed.")
}

/// The signature is of another request, or of another secret.
pub(crate) fn mismatch() -> Error {
    invalid(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.",
    )
}

/// No client has that access key, or it has another session token.
pub(crate) fn unknown_client() -> Error {
    Error::new(Code::UnrecognizedClientException, "The security token included in the request is invalid.")
}

/// The client's credentials were valid until a moment that has passed.
pub(crate) fn expired() -> Error {
    Error::new(Code::ExpiredTokenException, "The security token included in the request is expired")
}
