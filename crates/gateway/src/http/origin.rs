//! Where a request comes from, as its headers tell: a tool, a web page, or a proxy that passes on
//! what others ask.
//!
//! Not here: the names that the server is asked by (`hosts`), which peers are on this machine
//! (`connection`).

use http::header::{FORWARDED, ORIGIN, VIA};
use http::{HeaderMap, HeaderName};

/// Browsers say with each request to this machine how near the page is that it is for (Fetch
/// Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// How the names of headers begin by which proxies tell whom they ask for.
const OF_PROXIES: [&str; 2] = ["x-forwarded", "x-original-forwarded"];
/// Such headers with names of their own.
const NAMED: [&str; 8] = [
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-envoy-external-address",
    "x-envoy-original-path",
    "x-proxyuser-ip",
];

/// Whether another site's web page asks. What a browser's user typed is nobody's, and the page of
/// the admin address is of the same origin.
pub(super) fn is_of_a_page(headers: &HeaderMap) -> bool {
    let near = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    headers.contains_key(ORIGIN) || headers.get_all(FETCH_SITE).iter().any(|site| !near(site.as_bytes()))
}

/// Whether a proxy passes on what somebody else asks, as far as it says so.
pub(super) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
        || headers.contains_key(VIA)
        || headers.keys().any(|name| {
            NAMED.contains(&name.as_str()) || OF_PROXIES.iter().any(|of| name.as_str().starts_with(of))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse::<HeaderName>().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn pages_of_others_are_told_from_tools() {
        assert!(!is_of_a_page(&HeaderMap::new()));
        for (site, of_a_page) in [
            ("none", false),
            ("same-origin", false),
            ("same-site", true),
            ("cross-site", true),
            ("new-word", true),
        ] {
            assert_eq!(is_of_a_page(&headers("sec-fetch-site", site)), of_a_page, "{site}");
        }
        assert!(is_of_a_page(&headers("origin", "null")));
    }

    #[test]
    fn proxies_are_told_by_what_they_add() {
        for name in [
            "Forwarded",
            "Via",
            "X-Forwarded-For",
            "X-Forwarded-Proto",
            "X-Forwarded",
            "X-Real-IP",
            "CF-Connecting-IP",
            "X-Original-Forwarded-For",
        ] {
            assert!(is_forwarded(&headers(name, "x")), "{name}");
        }
        assert!(!is_forwarded(&headers("x-amz-date", "x")));
    }
}
