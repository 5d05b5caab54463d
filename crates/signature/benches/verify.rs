//! The cost of one verification: a head as SDKs send it, and a body whose hash is taken meanwhile.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::hint::black_box;

use divan::Bencher;
use heatsink_signature::{BodyHash, CONTENT_TYPE, Client, SigningKey, Verifier};
use http::Request;
use http::request::Parts;

const NOW: u64 = 1_767_268_800_000;

fn main() {
    divan::main();
}

fn verifier() -> Verifier {
    let clients = (0..50).map(|nth| Client::new(&format!("AKID{nth}"), "secret").expect("a fit client"));
    Verifier::new("eu-west-1", clients).expect("clients that differ")
}

fn signed(access_key: &str, secret: &str, body: &[u8]) -> Parts {
    let (host, target) = ("127.0.0.1:8000", "DynamoDB_20120810.GetItem");
    let key = SigningKey::derive(access_key, secret, None, "eu-west-1", NOW);
    let signed = key.sign(host, target, body, NOW);
    let request = Request::builder()
        .method("POST")
        .uri("/")
        .header("host", host)
        .header("user-agent", "aws-sdk-rust/1.3 os/linux lang/rust/1.95")
        .header("content-type", CONTENT_TYPE)
        .header("content-length", body.len())
        .header("x-amz-target", target)
        .header("x-amz-date", signed.date)
        .header("authorization", signed.authorization);
    request.body(()).expect("a request").into_parts().0
}

/// The head alone, with the hash of the body known.
#[divan::bench]
fn head(bencher: Bencher<'_, '_>) {
    let (verifier, body) = (verifier(), b"{}");
    let (head, hash) = (signed("AKID7", "secret", body), BodyHash::of(body));
    bencher.bench_local(|| {
        let claim = verifier.claim(black_box(&head), NOW).expect("a claim");
        verifier.authenticate(claim, &hash, NOW).expect("a client")
    });
}

/// A stranger's head: everything is computed before it is refused.
#[divan::bench]
fn head_of_an_unknown_key(bencher: Bencher<'_, '_>) {
    let (verifier, body) = (verifier(), b"{}");
    let (head, hash) = (signed("NOBODY", "secret", body), BodyHash::of(body));
    bencher.bench_local(|| {
        let claim = verifier.claim(black_box(&head), NOW).expect("a claim");
        verifier.authenticate(claim, &hash, NOW).expect_err("nobody").status
    });
}

/// With the hash of the body, in bytes.
#[divan::bench(args = [300, 4_096, 65_536, 1_048_576])]
fn head_and_body(bencher: Bencher<'_, '_>, bytes: usize) {
    let (verifier, body) = (verifier(), vec![b'a'; bytes]);
    let head = signed("AKID7", "secret", &body);
    bencher.bench_local(|| {
        let claim = verifier.claim(black_box(&head), NOW).expect("a claim");
        verifier.authenticate(claim, &BodyHash::of(black_box(&body)), NOW).expect("a client")
    });
}

/// What goes upstream, for comparison.
#[divan::bench]
fn sign(bencher: Bencher<'_, '_>) {
    let key = SigningKey::derive("AKID", "secret", None, "eu-west-1", NOW);
    bencher.bench_local(|| key.sign("127.0.0.1:8000", "DynamoDB_20120810.GetItem", black_box(b"{}"), NOW));
}
