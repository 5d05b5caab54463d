//! Checks that a request carries a signature of the right shape, as DynamoDB does before anything
//! else.
//!
//! Not here: whether the signature is valid. Until that is checked, only loopback addresses are
//! served. The wording is DynamoDB's (observed).

use heatsink_dynamo::{Code, Error};
use http::HeaderMap;
use http::header::{AUTHORIZATION, DATE};

/// Checks that a signature is there and complete.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Error> {
    let missing =
        || Error::new(Code::MissingAuthenticationTokenException, "Request is missing Authentication Token");
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    if !given.starts_with("AWS4-") {
        return Err(missing());
    }
    let dated = headers.contains_key("x-amz-date") || headers.contains_key(DATE);
    let (mut credential, mut signature, mut signed_headers) = (false, false, false);
    // `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`
    for (name, value) in given.split([' ', ',']).filter_map(|part| part.split_once('=')) {
        match name {
            "Credential" => credential = !value.is_empty(),
            "Signature" => signature = !value.is_empty(),
            "SignedHeaders" => signed_headers = !value.is_empty(),
            _ => {}
        }
    }
    if credential && signature && signed_headers && dated {
        return Ok(());
    }
    let mut message = String::new();
    for (name, present) in
        [("Credential", credential), ("Signature", signature), ("SignedHeaders", signed_headers)]
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
        check(&headers).map_err(|error| (error.code, error.message.unwrap_or_default()))
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
}
