//! AWS Signature Version 4 for the one shape of request that is sent here: `POST /` with a JSON
//! body.
//!
//! It is implemented here because it is computed for every forwarded request: with the key derived
//! once a day and the headers known, only the body, the canonical request and one HMAC are hashed.
//! `aws-sigv4` is the oracle in the tests. Source: "Create a signed AWS API request", IAM User
//! Guide.

use jiff::Timestamp;
use ring::{digest, hmac};

pub(super) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

const SERVICE: &str = "dynamodb";
const DAY_MILLIS: u64 = 86_400_000;

/// A signing key: good for one set of credentials, one region and one day.
pub(super) struct SigningKey {
    key: hmac::Key,
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
pub(super) struct Signed {
    pub(super) authorization: String,
    pub(super) date: String,
}

impl SigningKey {
    /// Derives the key for the day of `unix_millis`.
    pub(super) fn derive(
        access_key: &str,
        secret: &str,
        token: Option<&str>,
        region: &str,
        unix_millis: u64,
    ) -> SigningKey {
        let date = date(unix_millis);
        let start = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{secret}").as_bytes());
        let key = [&date, region, SERVICE, "aws4_request"].iter().fold(start, |key, part| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
        });
        SigningKey {
            key,
            day: unix_millis / DAY_MILLIS,
            credential: format!("{access_key}/{date}/{region}/{SERVICE}/aws4_request"),
            scope_at: access_key.len() + 1,
            date,
            token: token.map(str::to_owned),
        }
    }

    /// Whether the key is of the day of `unix_millis`.
    pub(super) fn holds_at(&self, unix_millis: u64) -> bool {
        self.day == unix_millis / DAY_MILLIS
    }

    /// The session token to send along, which is signed too.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Signs `body`, sent to `host` with `X-Amz-Target: target`, on the day of the key.
    pub(super) fn sign(&self, host: &str, target: &str, body: &[u8], unix_millis: u64) -> Signed {
        let date = self.timestamp(unix_millis);
        let signed_headers = match &self.token {
            None => "content-type;host;x-amz-date;x-amz-target",
            Some(_) => "content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
        };
        let mut text = String::with_capacity(512);
        push(&mut text, &["POST\n/\n\ncontent-type:", CONTENT_TYPE, "\nhost:", host, "\nx-amz-date:", &date]);
        if let Some(token) = &self.token {
            push(&mut text, &["\nx-amz-security-token:", token]);
        }
        push(&mut text, &["\nx-amz-target:", target, "\n\n", signed_headers, "\n"]);
        push_hex(&mut text, digest::digest(&digest::SHA256, body).as_ref());
        let canonical = digest::digest(&digest::SHA256, text.as_bytes());
        text.clear();
        let scope = self.credential.get(self.scope_at..).unwrap_or_default();
        push(&mut text, &["AWS4-HMAC-SHA256\n", &date, "\n", scope, "\n"]);
        push_hex(&mut text, canonical.as_ref());
        let signature = hmac::sign(&self.key, text.as_bytes());
        let mut authorization = String::with_capacity(288);
        push(
            &mut authorization,
            &[
                "AWS4-HMAC-SHA256 Credential=",
                &self.credential,
                ", SignedHeaders=",
                signed_headers,
                ", Signature=",
            ],
        );
        push_hex(&mut authorization, signature.as_ref());
        Signed { authorization, date }
    }

    /// `20260101T000000Z`, on the day of the key.
    fn timestamp(&self, unix_millis: u64) -> String {
        let second = u32::try_from(unix_millis / 1000 % 86_400).unwrap_or_default();
        let mut text = String::with_capacity(16);
        push(&mut text, &[&self.date, "T"]);
        for number in [second / 3600, second / 60 % 60, second % 60] {
            text.extend(
                [number / 10, number % 10].into_iter().filter_map(|digit| char::from_digit(digit, 10)),
            );
        }
        text.push('Z');
        text
    }
}

/// Not `write!`: the formatting machinery costs as much as the hashes.
fn push(text: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| text.push_str(part));
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// `20260101`.
fn date(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).strftime("%Y%m%d").to_string()
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
