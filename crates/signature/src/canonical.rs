//! The canonical request: the text whose hash is signed. For `POST /` without a query it is the
//! signed headers, their names, and the hash of the body.
//!
//! Values stand as they came. The rule of the specification that runs of spaces count as one space
//! has no place here: the verifier refuses such values, and the signer sends none.

use std::ops::Range;

use ring::digest::{Digest, SHA256, digest};

use crate::body::BodyHash;
use crate::text::{push, push_hex};

/// A canonical request that is being written.
#[derive(Clone)]
pub(crate) struct Canonical {
    text: String,
    port: Option<Range<usize>>,
}

impl Canonical {
    pub(crate) fn new() -> Self {
        let mut text = String::with_capacity(640);
        text.push_str("POST\n/\n\n");
        Canonical { text, port: None }
    }

    /// Adds a signed header; they come in the order of their names.
    pub(crate) fn header(&mut self, name: &str, value: &str) {
        push(&mut self.text, &[name, ":", value, "\n"]);
        if let Some(port) = port(value).filter(|_| name == "host") {
            let end = self.text.len() - 1;
            self.port = Some(end - port.len()..end);
        }
    }

    /// Ends the headers with their names, joined by `;`.
    pub(crate) fn end_headers(&mut self, names: &str) {
        push(&mut self.text, &["\n", names, "\n"]);
    }

    /// Where the port of the host stands in the text, with its colon.
    pub(crate) fn port(&self) -> Option<Range<usize>> {
        self.port.clone()
    }

    /// The whole text.
    pub(crate) fn with_body(mut self, body: &BodyHash) -> String {
        push_hex(&mut self.text, body.bytes());
        self.text
    }
}

/// The port that a `Host` names, with its colon.
fn port(host: &str) -> Option<&str> {
    let (name, digits) = host.rsplit_once(':')?;
    let is_port = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // An address of IPv6 has brackets: its last part is no port.
    let ends_before = !name.contains(':') || name.ends_with(']');
    host.get(name.len()..).filter(|_| is_port && ends_before)
}

/// The hash of the whole text.
pub(crate) fn hash(canonical: &str) -> Digest {
    digest(&SHA256, canonical.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_told_from_the_rest_of_a_host() {
        for (host, expected) in [
            ("127.0.0.1:8443", Some(":8443")),
            ("[::1]:8443", Some(":8443")),
            ("gateway:80:443", None),
            ("gateway", None),
            ("gateway:", None),
            ("gateway:x", None),
            ("[::1]", None),
            ("::1", None),
        ] {
            assert_eq!(port(host), expected, "{host}");
        }
        let mut canonical = Canonical::new();
        for (name, value) in [("content-type", "a:1"), ("host", "gateway:8443"), ("x-amz-date", "b:2")] {
            canonical.header(name, value);
        }
        let port = canonical.port().unwrap();
        let mut text = canonical.with_body(&BodyHash::of(b""));
        text.replace_range(port, "");
        assert!(text.starts_with("POST\n/\n\ncontent-type:a:1\nhost:gateway\nx-amz-date:b:2\n"), "{text}");
    }
}
