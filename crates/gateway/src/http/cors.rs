//! The web pages that may ask at the clients' address (CORS, <https://fetch.spec.whatwg.org>): none,
//! unless the operator names their origins.
//!
//! Not here: how a page is told from a tool (`origin`). The admin address serves no other site's
//! page, whatever is named here.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, Uri};

/// What a page may read of an answer beside its body: by these SDKs know and check answers.
const EXPOSED: HeaderValue = HeaderValue::from_static("x-amzn-requestid, x-amz-crc32, x-heatsink-partial");
/// For so many seconds a browser need not ask again whether it may ask.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origins of the pages that may ask.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    any: bool,
    named: Arc<[String]>,
}

impl Origins {
    /// Those origins, such as `http://localhost:3000`; `*` for all.
    ///
    /// # Errors
    /// The reason, for a value that no browser sends as an origin.
    pub fn of<S: AsRef<str>>(names: &[S]) -> Result<Self, String> {
        let (any, named): (Vec<&str>, Vec<&str>) =
            names.iter().map(AsRef::as_ref).partition(|name| *name == "*");
        if let Some(wrong) = named.iter().find(|name| !is_origin(name)) {
            return Err(format!(
                "{wrong:?} is no origin; expected scheme, host and port as browsers send them, such as http://localhost:3000"
            ));
        }
        Ok(Origins { any: !any.is_empty(), named: named.into_iter().map(str::to_owned).collect() })
    }

    /// The origin that a request is of, if pages of it may ask. A request has one origin.
    pub(super) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut given = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (given.next(), given.next()) else { return None };
        let is_named = || self.named.iter().any(|named| named.as_bytes() == origin.as_bytes());
        (self.any || is_named()).then(|| origin.clone())
    }
}

/// Browsers send origins in lower case, without the scheme's own port, a path, or a last slash.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
    let own_port = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let is_plain = authority.port_u16().is_none_or(|port| Some(port) != own_port);
    is_plain
        && !authority.as_str().contains(['@', '*'])
        && text == format!("{scheme}://{authority}").to_ascii_lowercase()
}

/// Whether a browser asks what a page may ask.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Says in the answer to such a question that a page may POST with the headers it asks for: which
/// ones SDKs send changes with each of them.
pub(super) fn permit<B>(response: &mut Response<B>, asked: &HeaderMap) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    for names in asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.append(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
}

/// Lets a page of that origin read the answer.
pub(super) fn expose<B>(response: &mut Response<B>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.insert(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_send_them() {
        for right in
            ["http://localhost:3000", "https://a.example", "http://[::1]:8", "chrome-extension://abcdef"]
        {
            assert!(Origins::of(&[right]).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "null",
            "localhost:3000",
            "http://a/",
            "http://a/b",
            "http://A",
            "http://a:80",
            "https://a:443",
            "http://u@a",
            "http://*.a",
            "http://a b",
            "**",
        ] {
            let read = Origins::of(&[wrong]);
            assert!(read.is_err(), "{wrong}: {read:?}");
        }
    }

    #[test]
    fn only_one_origin_that_is_named_is_allowed() {
        let named = Origins::of(&["http://localhost:3000", "https://a.example"]).unwrap();
        let allowed = |origins: &Origins, given: &[&str]| {
            let headers = given.iter().map(|one| (ORIGIN, one.parse().unwrap()));
            origins.allowed(&headers.collect()).is_some()
        };
        for (given, may, may_any) in [
            (&["http://localhost:3000"][..], true, true),
            (&["https://a.example"], true, true),
            (&["http://localhost:3001"], false, true),
            (&["http://a.example"], false, true),
            (&["https://a.example.evil"], false, true),
            (&["null"], false, true),
            (&[], false, false),
            (&["https://a.example", "https://a.example"], false, false),
        ] {
            assert_eq!(allowed(&named, given), may, "{given:?}");
            assert_eq!(allowed(&Origins::of(&["*"]).unwrap(), given), may_any, "{given:?}");
            assert!(!allowed(&Origins::default(), given));
        }
    }
}
