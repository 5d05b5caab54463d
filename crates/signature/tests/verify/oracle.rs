//! Requests that `aws-sigv4`, the signer of AWS's SDK for Rust, signs are accepted; so are those
//! that go upstream from here.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use fastrand::Rng;
use heatsink_signature::{Client, SigningKey, Verifier};
use http::Request;
use http::request::Parts;

use crate::draft::judge;

const REQUESTS: usize = 2_000;

/// One request, drawn.
struct Drawn {
    secret: String,
    token: Option<String>,
    region: &'static str,
    host: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    second: u64,
}

/// Text without space at its ends and without two spaces in a row.
fn text(rng: &mut Rng, signs: &[u8], most: usize) -> String {
    (0..rng.usize(1..=most)).map(|_| char::from(signs[rng.usize(..signs.len())])).collect()
}

impl Drawn {
    fn draw(rng: &mut Rng) -> Drawn {
        let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
        let graphic: Vec<u8> = (b'!'..=b'~').collect();
        let mut headers = vec![
            ("content-type", "application/x-amz-json-1.0".to_owned()),
            ("x-amz-target", format!("DynamoDB_20120810.{}", text(rng, b"GetItemPutQueryScan", 20))),
        ];
        for name in ["amz-sdk-invocation-id", "amz-sdk-request", "accept-encoding", "x-amz-user-agent"] {
            if rng.bool() {
                headers.push((name, format!("{} {}", text(rng, &graphic, 30), text(rng, &graphic, 9))));
            }
        }
        Drawn {
            secret: text(rng, base64, 40),
            token: rng.bool().then(|| text(rng, base64, 900)),
            region: ["us-east-1", "eu-west-1", "cn-north-1"][rng.usize(..3)],
            host: format!("{}:{}", text(rng, b"abcxyz0189.-", 40), rng.u16(..)),
            headers,
            body: (0..rng.usize(..2_000)).map(|_| rng.u8(..)).collect(),
            second: rng.u64(..4_102_444_800),
        }
    }

    fn signed(&self) -> Parts {
        let identity = Credentials::new("AKID", &self.secret, self.token.clone(), None, "test").into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(self.region)
            .name("dynamodb")
            .time(UNIX_EPOCH + Duration::from_secs(self.second))
            .settings(SigningSettings::default())
            .build()
            .unwrap();
        let host = ("host", self.host.as_str());
        let headers = self.headers.iter().map(|(name, value)| (*name, value.as_str())).chain([host]);
        let request = SignableRequest::new(
            "POST",
            "http://localhost/",
            headers.clone(),
            SignableBody::Bytes(&self.body),
        );
        let (instructions, _) = sign(request.unwrap(), &params.into()).unwrap().into_parts();
        let (added, _) = instructions.into_parts();
        let mut request = Request::builder().method("POST").uri("/");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        for header in &added {
            request = request.header(header.name(), header.value());
        }
        request.body(()).unwrap().into_parts().0
    }

    fn verifier(&self) -> Verifier {
        let client = Client::new("AKID", &self.secret).unwrap();
        let client = match &self.token {
            None => client,
            Some(token) => client.with_token(token).unwrap(),
        };
        Verifier::new(self.region, [client]).unwrap()
    }
}

#[test]
fn what_aws_signs_is_accepted_and_nothing_near_it() {
    let mut rng = Rng::with_seed(4);
    for nth in 0..REQUESTS {
        let drawn = Drawn::draw(&mut rng);
        let (head, verifier) = (drawn.signed(), drawn.verifier());
        let judged = judge(&verifier, &head, &drawn.body, drawn.second);
        assert!(judged.is_ok(), "request {nth}: {judged:?}");
        let mut body = drawn.body.clone();
        body.push(0);
        assert!(judge(&verifier, &head, &body, drawn.second).is_err(), "request {nth}");
        let other = Drawn { secret: format!("{}x", drawn.secret), ..drawn };
        assert!(judge(&other.verifier(), &head, &other.body, other.second).is_err(), "request {nth}");
    }
}

#[test]
fn what_is_signed_here_is_accepted_here() {
    let mut rng = Rng::with_seed(5);
    for nth in 0..REQUESTS {
        let drawn = Drawn::draw(&mut rng);
        let millis = drawn.second * 1000;
        let key = SigningKey::derive("AKID", &drawn.secret, drawn.token.as_deref(), drawn.region, millis);
        let target = "DynamoDB_20120810.PutItem";
        let signed = key.sign(&drawn.host, target, &drawn.body, millis);
        let mut request = Request::builder()
            .method("POST")
            .uri("/")
            .header("host", &drawn.host)
            .header("content-type", heatsink_signature::CONTENT_TYPE)
            .header("x-amz-target", target)
            .header("x-amz-date", signed.date)
            .header("authorization", signed.authorization);
        if let Some(token) = key.token() {
            request = request.header("x-amz-security-token", token);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let judged = judge(&drawn.verifier(), &head, &drawn.body, drawn.second);
        assert!(judged.is_ok(), "request {nth}: {judged:?}");
    }
}
