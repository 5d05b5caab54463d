//! Secrets, and the keys derived from them.

use ring::hmac;

use crate::text::{push, push_hex};

pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub(crate) const TERMINATOR: &str = "aws4_request";

/// The secret of an access key. Only what HMAC makes of it is kept, so that its text is neither
/// shown nor found in memory later.
#[derive(Clone)]
pub(crate) struct Secret(hmac::Key);

impl Secret {
    /// The secret with that text.
    pub(crate) fn new(text: &str) -> Self {
        Secret(hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{text}").as_bytes()))
    }

    /// The key for a day (`20260101`), a region and a service.
    pub(crate) fn day_key(&self, date: &str, region: &str, service: &str) -> DayKey {
        let key = [date, region, service, TERMINATOR].iter().fold(self.0.clone(), |key, part| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
        });
        DayKey(key)
    }
}

/// A key that signs for one secret, region, service and day.
pub(crate) struct DayKey(hmac::Key);

impl DayKey {
    /// The signature of a [string to sign](string_to_sign).
    pub(crate) fn sign(&self, text: &str) -> hmac::Tag {
        hmac::sign(&self.0, text.as_bytes())
    }

    /// Whether it is the signature. Takes the same time for each wrong one.
    pub(crate) fn verify(&self, text: &str, signature: &[u8; 32]) -> bool {
        hmac::verify(&self.0, text.as_bytes(), signature).is_ok()
    }
}

/// What is signed: the moment, the scope (`20260101/us-east-1/dynamodb/aws4_request`), and the
/// SHA-256 of the canonical request.
pub(crate) fn string_to_sign(timestamp: &str, scope: &str, canonical_hash: &[u8]) -> String {
    let mut text = String::with_capacity(176);
    push(&mut text, &[ALGORITHM, "\n", timestamp, "\n", scope, "\n"]);
    push_hex(&mut text, canonical_hash);
    text
}
