//! AWS's own test suite for signers, which the source of `aws-sigv4` holds. Its requests are of
//! another service, so the verifier takes none of them whole; each step of it is compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Json;

use crate::body::BodyHash;
use crate::secret::{Secret, string_to_sign};
use crate::text::push_hex;
use crate::{canonical, head};

/// The folder of the suite, in the source of the crate that these tests are built with.
fn suite() -> PathBuf {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Crates of other platforms need not be there.
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--filter-platform", host, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Json = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let signer = packages.iter().find(|package| package["name"] == "aws-sigv4").unwrap();
    let manifest = Path::new(signer["manifest_path"].as_str().unwrap());
    manifest.with_file_name("aws-signing-test-suite").join("v4")
}

/// The cases that say what they are signed with.
fn cases() -> Vec<(PathBuf, Json)> {
    let folders = std::fs::read_dir(suite()).unwrap().map(|entry| entry.unwrap().path());
    let with_context = folders.filter_map(|folder| {
        let context = std::fs::read(folder.join("context.json")).ok()?;
        Some((folder, serde_json::from_slice(&context).unwrap()))
    });
    with_context.collect()
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn strings_to_sign_and_signatures_are_the_suites() {
    let cases = cases();
    assert!(cases.len() >= 38, "{} cases", cases.len());
    for (folder, context) in cases {
        let at = |name: &str| context[name].as_str().unwrap();
        let timestamp = at("timestamp").replace(['-', ':'], "");
        let (date, region, service) = (&timestamp[..8], at("region"), at("service"));
        let secret = Secret::new(context["credentials"]["secret_access_key"].as_str().unwrap());
        for kind in ["header", "query"] {
            let file = |name: &str| text(&folder, &format!("{kind}-{name}.txt"));
            let hash = canonical::hash(&file("canonical-request"));
            let scope = format!("{date}/{region}/{service}/aws4_request");
            let string = string_to_sign(&timestamp, &scope, hash.as_ref());
            assert_eq!(string, file("string-to-sign"), "{}", folder.display());
            let mut signature = String::new();
            push_hex(&mut signature, secret.day_key(date, region, service).sign(&string).as_ref());
            assert_eq!(signature, file("signature"), "{}", folder.display());
        }
    }
}

#[test]
fn canonical_requests_of_posts_are_the_suites() {
    let mut compared = 0;
    for (folder, _) in cases() {
        let request = text(&folder, "header-signed-request.txt").replace("\r\n", "\n");
        let Some(rest) = request.strip_prefix("POST / HTTP/1.1\n") else { continue };
        let (lines, body) = rest.split_once("\n\n").unwrap();
        let headers: HeaderMap = lines
            .lines()
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.parse::<HeaderName>().unwrap(), value.trim().parse::<HeaderValue>().unwrap())
            })
            .collect();
        let authorization = headers["authorization"].to_str().unwrap();
        let names = authorization.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
        let canonical = head::canonical(&headers, names).unwrap().with_body(&BodyHash::of(body.as_bytes()));
        assert_eq!(canonical, text(&folder, "header-canonical-request.txt"), "{}", folder.display());
        compared += 1;
    }
    assert!(compared >= 7, "{compared} cases");
}
