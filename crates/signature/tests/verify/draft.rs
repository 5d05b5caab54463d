//! A request that a test signs as it likes, so that what must be refused has a right signature.

use heatsink_dynamo::{Code, Error};
use heatsink_signature::{BodyHash, Client, Principal, Verifier};
use http::Request;
use http::request::Parts;
use ring::{digest, hmac};

/// 2026-01-01T12:00:00Z, in seconds since 1970.
pub const NOON: u64 = 1_767_268_800;
pub const KEY: &str = "AKIDORDERS";
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Everything that a signer decides.
#[derive(Clone)]
pub struct Draft {
    pub method: &'static str,
    pub uri: String,
    pub headers: Vec<(String, String)>,
    /// Headers that are sent and not signed.
    pub unsigned: Vec<(String, String)>,
    /// The names in `SignedHeaders`; `None`: those of `headers`, in order.
    pub names: Option<Vec<String>>,
    pub body: Vec<u8>,
    /// What is signed as the hash of the body; `None`: its hash.
    pub payload: Option<String>,
    pub algorithm: &'static str,
    pub key: String,
    pub secret: String,
    /// Date, region, service and terminator.
    pub scope: [String; 4],
}

impl Draft {
    /// A request as SDKs send it, at noon.
    pub fn good() -> Draft {
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("host", "127.0.0.1:8000"),
            ("x-amz-date", "20260101T120000Z"),
            ("x-amz-target", "DynamoDB_20120810.GetItem"),
        ];
        Draft {
            method: "POST",
            uri: "/".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            unsigned: Vec::new(),
            names: None,
            body: br#"{"TableName":"Leaderboards","Key":{"pk":{"S":"game_x"}}}"#.to_vec(),
            payload: None,
            algorithm: "AWS4-HMAC-SHA256",
            key: KEY.to_owned(),
            secret: SECRET.to_owned(),
            scope: ["20260101", "eu-west-1", "dynamodb", "aws4_request"].map(str::to_owned),
        }
    }

    /// Sets a signed header, or adds it where names stay in order.
    pub fn with(mut self, name: &str, value: &str) -> Draft {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self.headers.sort();
        self
    }

    /// Sends a header without signing it.
    pub fn with_unsigned(mut self, name: &str, value: &str) -> Draft {
        self.headers.retain(|(known, _)| known != name);
        self.unsigned.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Draft {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub fn with_scope(mut self, part: usize, value: &str) -> Draft {
        value.clone_into(&mut self.scope[part]);
        self
    }

    fn names(&self) -> Vec<String> {
        let mut own: Vec<String> = self.headers.iter().map(|(name, _)| name.clone()).collect();
        own.dedup();
        self.names.clone().unwrap_or(own)
    }

    /// The `Authorization` header, by the specification alone.
    pub fn authorization(&self) -> String {
        let names = self.names();
        let (path, query) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        let mut canonical = format!("{}\n{path}\n{query}\n", self.method);
        for name in &names {
            let values = self.headers.iter().filter(|(known, _)| *known == name.to_lowercase());
            let values: Vec<String> =
                values.map(|(_, value)| value.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            canonical += &format!("{name}:{}\n", values.join(","));
        }
        let payload = self.payload.clone().unwrap_or_else(|| sha256(&self.body));
        canonical += &format!("\n{}\n{payload}", names.join(";"));
        let date = self.headers.iter().chain(&self.unsigned).find(|(name, _)| name == "x-amz-date");
        let date = date.map_or("", |(_, value)| value);
        let text =
            format!("{}\n{date}\n{}\n{}", self.algorithm, self.scope.join("/"), sha256(canonical.as_bytes()));
        let start = format!("AWS4{}", self.secret).into_bytes();
        let key = self.scope.iter().fold(start, |key, part| hmac_sha256(&key, part.as_bytes()));
        format!(
            "{} Credential={}/{}, SignedHeaders={}, Signature={}",
            self.algorithm,
            self.key,
            self.scope.join("/"),
            names.join(";"),
            hex(&hmac_sha256(&key, text.as_bytes()))
        )
    }

    /// The head, signed.
    pub fn head(&self) -> Parts {
        self.head_with(&self.authorization())
    }

    /// The head with another `Authorization` header.
    pub fn head_with(&self, authorization: &str) -> Parts {
        let mut request = Request::builder().method(self.method).uri(&self.uri);
        for (name, value) in self.headers.iter().chain(&self.unsigned) {
            request = request.header(name, value);
        }
        request.header("authorization", authorization).body(()).unwrap().into_parts().0
    }

    /// What becomes of it at noon.
    pub fn judged(&self) -> Result<Principal, Error> {
        judge(&verifier(), &self.head(), &self.body, NOON)
    }

    /// The code and the message of its refusal.
    pub fn refusal(&self) -> (Code, String) {
        refusal(self.judged())
    }
}

/// A verifier that knows one client.
pub fn verifier() -> Verifier {
    Verifier::new("eu-west-1", [Client::new(KEY, SECRET).unwrap()]).unwrap()
}

pub fn judge(verifier: &Verifier, head: &Parts, body: &[u8], now: u64) -> Result<Principal, Error> {
    let claim = verifier.claim(head, now * 1000)?;
    verifier.authenticate(claim, &BodyHash::of(body), now * 1000)
}

pub fn refusal(judged: Result<Principal, Error>) -> (Code, String) {
    let error = judged.expect_err("it was accepted");
    assert_eq!(error.status, 400, "{error}");
    (error.code, error.message.unwrap_or_default())
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
