//! The host that a request was sent to is signed.

use heatsink_dynamo::Code::IncompleteSignatureException;

use crate::draft::{Draft, NOON, SECRET, judge, verifier};
use crate::rules::refused;

#[test]
fn the_host_is_signed() {
    let draft = Draft::good().with_unsigned("host", "127.0.0.1:8000");
    refused(&draft, IncompleteSignatureException, "'Host' or ':authority' must be a 'SignedHeader'");
}

/// aiodynamo does so. Nothing else of the host may be missing, and no port may be another.
#[test]
fn the_host_may_be_signed_without_the_port_that_is_sent() {
    for (signed, sent, accepted) in [
        ("127.0.0.1", "127.0.0.1:8443", true),
        ("[::1]", "[::1]:8443", true),
        ("127.0.0.1:8443", "127.0.0.1", false),
        ("127.0.0.1:8443", "127.0.0.1:8444", false),
        ("127.0.0.1", "127.0.0.2:8443", false),
        ("127.0.0.1", "127.0.0.1:", false),
        ("[::1", "[::1]:8443", false),
    ] {
        for secret in [SECRET, "guess"] {
            let draft = Draft { secret: secret.to_owned(), ..Draft::good().with("host", signed) };
            let mut head = draft.head();
            head.headers.insert("host", sent.parse().unwrap());
            let judged = judge(&verifier(), &head, &draft.body, NOON);
            assert_eq!(judged.is_ok(), accepted && secret == SECRET, "{signed} {sent}");
        }
    }
}
