//! The canonical request: the text whose hash is signed. For `POST /` without a query it is the
//! signed headers, their names, and the hash of the body.
//!
//! Values stand as they came. The rule of the specification that runs of spaces count as one space
//! has no place here: the verifier refuses such values, and the signer sends none.

use ring::digest::{Digest, SHA256, digest};

use crate::body::BodyHash;
use crate::text::{push, push_hex};

/// A canonical request that is being written.
#[derive(Clone)]
pub(crate) struct Canonical(String);

impl Canonical {
    pub(crate) fn new() -> Self {
        let mut text = String::with_capacity(640);
        text.push_str("POST\n/\n\n");
        Canonical(text)
    }

    /// Adds a signed header; they come in the order of their names.
    pub(crate) fn header(&mut self, name: &str, value: &str) {
        push(&mut self.0, &[name, ":", value, "\n"]);
    }

    /// Ends the headers with their names, joined by `;`.
    pub(crate) fn end_headers(&mut self, names: &str) {
        push(&mut self.0, &["\n", names, "\n"]);
    }

    /// The whole text.
    pub(crate) fn with_body(mut self, body: &BodyHash) -> String {
        push_hex(&mut self.0, body.bytes());
        self.0
    }
}

/// The hash of the whole text.
pub(crate) fn hash(canonical: &str) -> Digest {
    digest(&SHA256, canonical.as_bytes())
}
