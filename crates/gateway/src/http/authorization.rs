//! Where no signature is verified, since no clients are known or a client is by its certificate:
//! checks that a request carries one of the right shape, as DynamoDB does before anything else, and
//! that it was signed for this region, service and day. What is meant for another place does not take
//! effect here by mistake.
//!
//! Not here: whether the signature is valid (`heatsink-access`). The wording is DynamoDB's
//! (observed).

use heatsink_access::Scope;
use heatsink_dynamo::{Code, Error};
use http::HeaderMap;
use http::header::{AUTHORIZATION, DATE};

/// Checks that a signature is there and complete, and that its scope is that of a server of
/// `region`. The access key that it names.
pub(super) fn check<'a>(headers: &'a HeaderMap, region: &str) -> Result<&'a str, Error> {
    let missing =
        || Error::new(Code::MissingAuthenticationTokenException, "Request is missing Authentication Token");
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    if !given.starts_with("AWS4-") {
        return Err(missing());
    }
    let timestamp = headers.get("x-amz-date").and_then(|value| value.to_str().ok());
    let dated = timestamp.is_some() || headers.contains_key(DATE);
    let (mut credential, mut signature, mut signed_headers) = ("", false, false);
    // `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`
    for (name, value) in given.split([' ', ',']).filter_map(|part| part.split_once('=')) {
        match name {
            "Credential" => credential = value,
            "Signature" => signature = !value.is_empty(),
            "SignedHeaders" => signed_headers = !value.is_empty(),
            _ => {}
        }
    }
    if !credential.is_empty() && signature && signed_headers && dated {
        let scope = Scope::read(credential)?;
        return scope.check(timestamp, Some(region)).map(|()| scope.access_key);
    }
    let mut message = String::new();
    for (name, present) in
        [("Credential", !credential.is_empty()), ("Signature", signature), ("SignedHeaders", signed_headers)]
    {
        if !present {
            message.push_str(&format!("Authorization header requires '{name}' parameter. "));
        }
    }
    if !dated {
        message.push_str(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ",
        );
    }
    message.push_str("Authorization=");
    message.push_str(given);
    Err(Error::new(Code::IncompleteSignatureException, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_for(pairs: &[(&'static str, &'static str)]) -> Result<(), (Code, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        let checked = check(&headers, "us-east-1").map(drop);
        checked.map_err(|error| (error.code, error.message.unwrap_or_default()))
    }

    #[test]
    fn every_part_is_asked_for_by_name() {
        let whole = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
        assert_eq!(code_for(&[("authorization", whole), ("x-amz-date", "20260101T000000Z")]), Ok(()));
        assert_eq!(code_for(&[]).unwrap_err().0, Code::MissingAuthenticationTokenException);
        assert_eq!(
            code_for(&[("authorization", "Basic x")]).unwrap_err().0,
            Code::MissingAuthenticationTokenException
        );
        let (code, message) = code_for(&[("authorization", "AWS4-")]).unwrap_err();
        assert_eq!(code, Code::IncompleteSignatureException);
        assert_eq!(
            message,
            "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' parameter. \
             Authorization header requires 'SignedHeaders' parameter. Authorization header requires existence of either a \
             'X-Amz-Date' or a 'Date' header. Authorization=AWS4-"
        );
        let (_, message) = code_for(&[("authorization", whole)]).unwrap_err();
        assert!(message.starts_with("Authorization header requires existence"), "{message}");
    }

    #[test]
    fn what_is_signed_for_another_place_or_day_is_refused() {
        for (scope, code, said) in [
            (
                "a/20260101/eu-west-1/dynamodb/aws4_request",
                Code::InvalidSignatureException,
                "Sign for 'us-east-1'",
            ),
            (
                "a/20260101/us-east-1/sqs/aws4_request",
                Code::InvalidSignatureException,
                "correct service: 'dynamodb'",
            ),
            (
                "a/20260101/us-east-1/dynamodb/aws5_request",
                Code::InvalidSignatureException,
                "valid terminator",
            ),
            (
                "a/20250101/us-east-1/dynamodb/aws4_request",
                Code::InvalidSignatureException,
                "'20250101' != '20260101'",
            ),
            ("a/us-east-1/dynamodb/aws4_request", Code::IncompleteSignatureException, "exactly 5"),
            ("a/b/20260101/us-east-1/dynamodb/aws4_request", Code::IncompleteSignatureException, "exactly 5"),
        ] {
            let given = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
            let mut headers = HeaderMap::new();
            headers.insert("authorization", given.parse().unwrap());
            headers.insert("x-amz-date", "20260101T000000Z".parse().unwrap());
            let error = check(&headers, "us-east-1").unwrap_err();
            assert_eq!(error.code, code, "{scope}");
            assert!(error.message.unwrap_or_default().contains(said), "{scope}");
        }
    }
}
