//! Requests that are right, and requests in which something was changed, judged by
//! `heatsink-signature` and by `scratchstack-aws-signature`: what ours accepts, theirs accepts, of the
//! same client. Ours is stricter: what theirs alone accepts breaks a rule that is named.
//!
//!     HEATSINK_SEED=12 cargo test --release --manifest-path fuzz/signatures/Cargo.toml -- --nocapture
//!
//! Not here: our own rules (`crates/signature/tests/verify`), the looser one among them: a host that
//! is signed without its port.

use std::error::Error;

use fastrand::Rng;
use futures::executor::block_on;
use heatsink_signature::{BodyHash, CONTENT_TYPE, Client, SigningKey, Verifier};
use http::request::Parts;
use http::{HeaderValue, Request};
use scratchstack_aws_signature::{
    GetSigningKeyRequest, GetSigningKeyResponse, KSecretKey, NO_ADDITIONAL_SIGNED_HEADERS, SignatureOptions,
    service_for_signing_key_fn, sigv4_validate_request,
};

const REQUESTS: usize = 1_000_000;
const ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const REGION: &str = "eu-west-1";

fn signed(rng: &mut Rng, second: u64) -> (Parts, Vec<u8>) {
    let body: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(b' '..b'~')).collect();
    let key = SigningKey::derive(ID, SECRET, None, REGION, second * 1000);
    let (host, target) = (format!("127.0.0.1:{}", rng.u16(..)), "DynamoDB_20120810.PutItem");
    let signed = key.sign(&host, target, &body, second * 1000);
    let head = Request::builder()
        .method("POST")
        .uri("/")
        .header("host", host)
        .header("content-type", CONTENT_TYPE)
        .header("x-amz-target", target)
        .header("x-amz-date", signed.date)
        .header("authorization", signed.authorization);
    (head.body(()).unwrap().into_parts().0, body)
}

/// Headers that change what a request means.
const ADDED: [(&str, &str); 6] = [
    ("x-amz-security-token", "token"),
    ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ("x-amz-user-agent", "other"),
    ("content-encoding", "gzip"),
    ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ("authorization", "AWS4-HMAC-SHA256 Credential=a"),
];

/// Other spellings of the `Authorization` header, and other headers that it names.
const SPELLINGS: [(&str, &str); 8] = [
    (", ", ","),
    (", ", ",  "),
    ("x-amz-date;", ""),
    ("host;", "host;host;"),
    ("content-type;host", "host;content-type"),
    ("Signature=", "signature="),
    ("HMAC", "hmac"),
    ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
];

/// Changes a header, the body or the line, or nothing.
fn change(rng: &mut Rng, head: &mut Parts, body: &mut Vec<u8>) {
    let names = ["host", "content-type", "x-amz-target", "x-amz-date", "authorization"];
    let name = names[rng.usize(..names.len())];
    let Some(value) = head.headers.get(name) else { return };
    let mut value = value.as_bytes().to_vec();
    let at = rng.usize(..value.len());
    match rng.u8(..12) {
        0 | 1 => return,
        10 => {
            let (name, value) = ADDED[rng.usize(..ADDED.len())];
            head.headers.append(name, HeaderValue::from_static(value));
            return;
        }
        11 => {
            let Some(given) = head.headers.get("authorization") else { return };
            let (from, to) = SPELLINGS[rng.usize(..SPELLINGS.len())];
            let other = String::from_utf8_lossy(given.as_bytes()).replacen(from, to, 1);
            head.headers.insert("authorization", other.parse().unwrap());
            return;
        }
        2 => body.push(rng.u8(..)),
        3 if !body.is_empty() => {
            let at = rng.usize(..body.len());
            body[at] ^= 1 << rng.u8(..8);
        }
        4 => {
            head.headers.append(name, HeaderValue::from_bytes(&value).unwrap());
            return;
        }
        5 => {
            head.headers.remove(name);
            return;
        }
        6 => {
            head.uri = ["/?", "/?a=b", "/x", "//", "/."][rng.usize(..5)].parse().unwrap();
        }
        7 => value.insert(at, b' '),
        8 => value[at] = value[at].to_ascii_uppercase(),
        _ => value[at] ^= 1 << rng.u8(..7),
    }
    // Spaces around a value do not come through HTTP.
    if let Ok(value) = HeaderValue::from_bytes(value.trim_ascii()) {
        head.headers.insert(name, value);
    }
}

/// Their way to the key of the one client that there is.
async fn signing_key(
    asked: GetSigningKeyRequest,
) -> Result<GetSigningKeyResponse, Box<dyn Error + Send + Sync>> {
    if asked.access_key() != ID || asked.session_token().is_some() {
        return Err("no such client".into());
    }
    let secret: KSecretKey = SECRET.parse()?;
    let key = secret.to_ksigning(asked.request_date(), asked.region(), asked.service());
    Ok(GetSigningKeyResponse::builder().signing_key(key).build()?)
}

fn theirs(head: &Parts, body: &[u8], second: u64) -> bool {
    let mut keys = service_for_signing_key_fn(signing_key);
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
    let request = Request::from_parts(head.clone(), body.to_vec());
    let headers = &NO_ADDITIONAL_SIGNED_HEADERS;
    let options = SignatureOptions::default();
    block_on(sigv4_validate_request(request, REGION, "dynamodb", &mut keys, now.into(), headers, options))
        .is_ok()
}

#[test]
fn what_ours_accepts_theirs_accepts() {
    let seed = std::env::var("HEATSINK_SEED").map_or(11, |seed| seed.parse().unwrap());
    let mut rng = Rng::with_seed(seed);
    let verifier = Verifier::new(REGION, [Client::new(ID, SECRET).unwrap()]).unwrap();
    let (mut both, mut stricter) = (0, 0);
    for nth in 0..REQUESTS {
        let second = 1_767_268_800 + rng.u64(..86_400_000);
        let (mut head, mut body) = signed(&mut rng, second);
        for _ in 0..=rng.u8(..2) {
            change(&mut rng, &mut head, &mut body);
        }
        // Clocks that are apart, by up to twenty minutes.
        let now = second - 1_200 + rng.u64(..2_400);
        let ours = verifier
            .claim(&head, now * 1000)
            .and_then(|claim| verifier.authenticate(claim, &BodyHash::of(&body), now * 1000));
        match (ours, theirs(&head, &body, now)) {
            (Ok(_), true) => both += 1,
            (Ok(_), false) => panic!("seed {seed}, request {nth}: ours alone accepts {head:?}"),
            (Err(error), true) => {
                // They take `//` and `/.` for `/`; here there is one path, spelled in one way.
                let named = error.to_string();
                assert!(
                    named.starts_with("IncompleteSignatureException") || head.uri.path() != "/",
                    "seed {seed}, request {nth}: {named}: {head:?}"
                );
                stricter += 1;
            }
            (Err(_), false) => {}
        }
    }
    println!("of {REQUESTS}: both accept {both}, ours alone refuses {stricter}");
    assert!(both > REQUESTS / 10);
}
