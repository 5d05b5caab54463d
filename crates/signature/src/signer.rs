//! The signer of requests to an upstream.
//!
//! It is implemented here because it is computed for every forwarded request: with the key derived
//! once a day and the headers known, only the body, the canonical request and one HMAC are hashed.
//! `aws-sigv4` is the oracle in the tests. Source: "Create a signed AWS API request", IAM User
//! Guide.

use crate::body::BodyHash;
use crate::canonical::{self, Canonical};
use crate::scope::SERVICE;
use crate::secret::{ALGORITHM, DayKey, Secret, TERMINATOR, string_to_sign};
use crate::text::{push, push_hex};
use crate::time::{DAY_MILLIS, date, timestamp_on};

/// The `Content-Type` that is signed.
pub const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// A signing key: good for one set of credentials, one region and one day.
pub struct SigningKey {
    key: DayKey,
    day: u64,
    /// `AKID/20260101/us-east-1/dynamodb/aws4_request`.
    credential: String,
    scope_at: usize,
    /// `20260101`.
    date: String,
    token: Option<String>,
}

/// The headers that a signature adds.
#[derive(Debug, PartialEq, Eq)]
pub struct Signed {
    /// `Authorization`.
    pub authorization: String,
    /// `X-Amz-Date`.
    pub date: String,
}

impl SigningKey {
    /// Derives the key for the day of `unix_millis`.
    pub fn derive(
        access_key: &str,
        secret: &str,
        token: Option<&str>,
        region: &str,
        unix_millis: u64,
    ) -> SigningKey {
        let date = date(unix_millis);
        SigningKey {
            key: Secret::new(secret).day_key(&date, region, SERVICE),
            day: unix_millis / DAY_MILLIS,
            credential: format!("{access_key}/{date}/{region}/{SERVICE}/{TERMINATOR}"),
            scope_at: access_key.len() + 1,
            date,
            token: token.map(str::to_owned),
        }
    }

    /// Whether the key is of the day of `unix_millis`.
    pub fn holds_at(&self, unix_millis: u64) -> bool {
        self.day == unix_millis / DAY_MILLIS
    }

    /// The session token to send along, which is signed too.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Signs `body`, sent to `host` with `X-Amz-Target: target`, on the day of the key.
    pub fn sign(&self, host: &str, target: &str, body: &[u8], unix_millis: u64) -> Signed {
        let date = timestamp_on(&self.date, unix_millis);
        let signed_headers = match &self.token {
            None => "content-type;host;x-amz-date;x-amz-target",
            Some(_) => "content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
        };
        let mut canonical = Canonical::new();
        canonical.header("content-type", CONTENT_TYPE);
        canonical.header("host", host);
        canonical.header("x-amz-date", &date);
        if let Some(token) = &self.token {
            canonical.header("x-amz-security-token", token);
        }
        canonical.header("x-amz-target", target);
        canonical.end_headers(signed_headers);
        let hash = canonical::hash(&canonical.with_body(&BodyHash::of(body)));
        let scope = self.credential.get(self.scope_at..).unwrap_or_default();
        let signature = self.key.sign(&string_to_sign(&date, scope, hash.as_ref()));
        let mut authorization = String::with_capacity(288);
        push(
            &mut authorization,
            &[
                ALGORITHM,
                " Credential=",
                &self.credential,
                ", SignedHeaders=",
                signed_headers,
                ", Signature=",
            ],
        );
        push_hex(&mut authorization, signature.as_ref());
        Signed { authorization, date }
    }
}
#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use aws_credential_types::Credentials;
    use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
    use aws_sigv4::sign::v4::SigningParams;

    use super::*;

    /// What `aws-sigv4` makes of the same request.
    fn oracle(token: Option<&str>, host: &str, target: &str, body: &[u8], unix_millis: u64) -> Signed {
        let identity = Credentials::new("AKID", "secret/+", token.map(str::to_owned), None, "test").into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region("eu-west-1")
            .name("dynamodb")
            .time(UNIX_EPOCH + Duration::from_millis(unix_millis))
            .settings(SigningSettings::default())
            .build()
            .unwrap();
        let headers = [("host", host), ("content-type", CONTENT_TYPE), ("x-amz-target", target)];
        let url = format!("http://{host}/");
        let request =
            SignableRequest::new("POST", url, headers.into_iter(), SignableBody::Bytes(body)).unwrap();
        let (instructions, _) = sign(request, &params.into()).unwrap().into_parts();
        let (headers, _) = instructions.into_parts();
        let header = |name| headers.iter().find(|h| h.name() == name).unwrap().value().to_owned();
        Signed { authorization: header("authorization"), date: header("x-amz-date") }
    }

    #[test]
    fn signs_as_the_sdks_signer_does() {
        let bodies: [&[u8]; 3] = [b"{}", b"", "{\"TableName\":\"Täble\"}".as_bytes()];
        // The epoch, leap days, the ends of years, a century that is none, the far future.
        for seconds in
            [0, 951_782_400, 1_709_164_800, 1_767_225_599, 1_767_225_600, 4_107_542_400, 9_999_999_999_u64]
        {
            for token in [None, Some("a+token==")] {
                for body in bodies {
                    let millis = seconds * 1000 + 999;
                    let key = SigningKey::derive("AKID", "secret/+", token, "eu-west-1", millis);
                    let ours = key.sign("127.0.0.1:8000", "DynamoDB_20120810.GetItem", body, millis);
                    assert_eq!(
                        ours,
                        oracle(token, "127.0.0.1:8000", "DynamoDB_20120810.GetItem", body, millis)
                    );
                }
            }
        }
    }

    #[test]
    fn a_key_holds_for_its_day() {
        let key = SigningKey::derive("a", "b", None, "us-east-1", DAY_MILLIS * 3);
        assert!(key.holds_at(DAY_MILLIS * 4 - 1));
        assert!(!key.holds_at(DAY_MILLIS * 4));
    }
}
