//! Changed requests: of 100,000 that differ in a bit, or in case, order, repeats, folds or spaces,
//! none is accepted unless it is read as the same request.

use fastrand::Rng;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};

use crate::draft::{Draft, NOON, judge, sha256, verifier};

const CHANGES: usize = 100_000;

/// A request as it stands on the wire, whose headers are all signed.
#[derive(Clone)]
struct Wire {
    line: Vec<u8>,
    headers: Vec<Vec<u8>>,
    body: Vec<u8>,
}

impl Wire {
    fn signed() -> Wire {
        let body = Draft::good().body;
        let draft = Draft::good()
            .with("amz-sdk-request", "attempt=1; max=3")
            .with("content-encoding", "identity")
            .with("content-length", &body.len().to_string())
            .with("x-amz-content-sha256", &sha256(&body))
            .with("x-amz-user-agent", "aws-sdk-js/3.1 os/linux lang/js");
        let mut headers: Vec<Vec<u8>> =
            draft.headers.iter().map(|(name, value)| format!("{name}: {value}").into_bytes()).collect();
        headers.push(format!("authorization: {}", draft.authorization()).into_bytes());
        Wire { line: b"POST /".to_vec(), headers, body }
    }

    /// Reads it as an HTTP server does: names in any case, space around values, no folded lines.
    fn read(&self) -> Option<(Parts, &[u8])> {
        let line = std::str::from_utf8(&self.line).ok()?;
        let (method, uri) = line.split_once(' ')?;
        let mut request = Request::builder().method(method).uri(uri);
        for header in &self.headers {
            let colon = header.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&header[..colon]).ok()?;
            request = request.header(name, HeaderValue::from_bytes(header[colon + 1..].trim_ascii()).ok()?);
        }
        Some((request.body(()).ok()?.into_parts().0, &self.body))
    }

    /// Changes one thing, and says what.
    fn change(&mut self, rng: &mut Rng) -> &'static str {
        let header = rng.usize(..self.headers.len());
        match rng.u8(..20) {
            0 => {
                let at = rng.usize(..self.headers.len());
                self.headers.swap(header, at);
                "two lines swapped"
            }
            1 => {
                let line = self.headers[header].clone();
                self.headers.push(line);
                "a line repeated"
            }
            2 => {
                self.headers.remove(header);
                "a line removed"
            }
            3 => {
                let line = &mut self.headers[header];
                let at = rng.usize(..=line.len());
                line.insert(at, if rng.bool() { b' ' } else { b'\t' });
                "a space added"
            }
            4 => {
                let line = &mut self.headers[header];
                let at = rng.usize(..=line.len());
                line.splice(at..at, *b"\r\n ");
                "a line folded"
            }
            5 => {
                let line = &mut self.headers[header];
                let at = rng.usize(..line.len());
                let byte = line[at];
                line[at] = if byte.is_ascii_lowercase() {
                    byte.to_ascii_uppercase()
                } else {
                    byte.to_ascii_lowercase()
                };
                "a letter's case"
            }
            6 => {
                let added = ["x-amz-target: DynamoDB_20120810.DeleteItem", "host: evil", "x-amz-new: 1"];
                self.headers.push(added[rng.usize(..added.len())].as_bytes().to_vec());
                "a line added"
            }
            7 => {
                self.line.extend_from_slice(["?", "?a", "x", "/", "#"][rng.usize(..5)].as_bytes());
                "path or query extended"
            }
            8 => {
                flip(&mut self.line, rng);
                "a bit of the first line"
            }
            9..=12 => {
                flip(&mut self.body, rng);
                "a bit of the body"
            }
            13..=15 => {
                let last = self.headers.len() - 1;
                flip(&mut self.headers[last], rng);
                "a bit of the scope, the names or the signature"
            }
            _ => {
                flip(&mut self.headers[header], rng);
                "a bit of a header"
            }
        }
    }
}

fn flip(bytes: &mut [u8], rng: &mut Rng) {
    let at = rng.usize(..bytes.len());
    bytes[at] ^= 1 << rng.u8(..8);
}

/// Whether both are read as the same request. Spaces between the parameters of `Authorization`
/// have no meaning.
fn is_same(one: (&Parts, &[u8]), other: (&Parts, &[u8])) -> bool {
    let read = |head: &Parts| {
        let mut headers: Vec<(String, Vec<u8>)> = head
            .headers
            .iter()
            .map(|(name, value)| {
                let parameters = name == "authorization";
                let value = value.as_bytes().iter().filter(|byte| !(parameters && **byte == b' '));
                (name.to_string(), value.copied().collect())
            })
            .collect();
        headers.sort();
        (head.method.clone(), head.uri.clone(), headers)
    };
    read(one.0) == read(other.0) && one.1 == other.1
}

#[test]
fn no_changed_request_is_accepted() {
    let (verifier, mut rng) = (verifier(), Rng::with_seed(31));
    let original = Wire::signed();
    let (head, body) = original.read().unwrap();
    assert!(judge(&verifier, &head, body, NOON).is_ok());
    let (mut unreadable, mut same) = (0, 0);
    for _ in 0..CHANGES {
        let mut wire = original.clone();
        let what = wire.change(&mut rng);
        let Some((changed, sent)) = wire.read() else {
            unreadable += 1;
            continue;
        };
        if is_same((&head, body), (&changed, sent)) {
            same += 1;
            continue;
        }
        assert!(judge(&verifier, &changed, sent, NOON).is_err(), "{what}: {changed:?}");
    }
    // Most changes reach the verifier.
    assert!(unreadable + same < CHANGES / 3, "{unreadable} unreadable, {same} the same");
}
