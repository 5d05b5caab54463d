//! The page of the admin address: one document, its style and its scripts in it, and the policy
//! under which a browser shows it.
//!
//! Not here: what it shows (`admin`), who may ask (`admin_address`).

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page/page.css");
/// One script, in pieces that a reader can hold.
const SCRIPT: &str = concat!(
    include_str!("page/text.js"),
    include_str!("page/scale.js"),
    include_str!("page/diagnosis.js"),
    include_str!("page/map.js"),
    include_str!("page/lists.js"),
    include_str!("page/automatic.js"),
    include_str!("page/main.js"),
);

/// The document, and the policy for it.
pub(super) struct Page {
    pub(super) document: Bytes,
    pub(super) policy: HeaderValue,
}

/// It is the same for everyone.
pub(super) static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let document = include_str!("page/page.html").replace("/*css*/", STYLE).replace("/*js*/", SCRIPT);
    // This script and this style, and nothing else from anywhere. No text can become markup:
    // `innerHTML` and its like throw.
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    Page { document: Bytes::from(document), policy }
});

/// How a policy names an inline script or style (Content Security Policy Level 3, section 2.3.1).
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_small_and_loads_nothing_from_elsewhere() {
        let document = std::str::from_utf8(&PAGE.document).unwrap();
        assert!(document.len() <= 150 * 1024, "{} bytes", document.len());
        assert!(document.contains(STYLE) && document.contains(SCRIPT));
        for outside in
            ["http://", "https://", "src=", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("]
        {
            assert!(!document.contains(outside), "{outside}");
        }
        assert!(!SCRIPT.contains("</"), "a script element would end there");
        assert!(PAGE.policy.to_str().unwrap().contains("script-src 'sha256-"), "{:?}", PAGE.policy);
    }
}
