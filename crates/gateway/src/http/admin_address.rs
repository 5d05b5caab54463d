//! The admin address: a listener of its own for people and scrapers, with the page, health, and
//! what [`admin`](super::admin) tells.
//!
//! On loopback the `Host` header decides who may ask, as on the endpoint of the clients. With a
//! token the token does: a page that rebinds its name does not have it. Health tells nobody more
//! than that a gateway is here, and needs no token.
//!
//! Not here: the pages' data (`admin`), the page (`page`), connections (`connection`).

use http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use subtle::ConstantTimeEq;

use super::hosts::Hosts;
use super::origin;

/// The shortest token in bytes: 16 characters of base64 are 96 bits.
const SHORTEST_TOKEN: usize = 16;

/// Headers of every answer: nothing is kept, guessed, or shown within other pages.
pub(super) const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// What those show who ask at an admin address that others can reach.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token; space around it, such as the line end of its file, does not count.
    ///
    /// # Errors
    /// The reason, for one that is shorter than 16 bytes or that no header can hold.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < SHORTEST_TOKEN {
            return Err(format!(
                "the token has {} characters, and needs at least {SHORTEST_TOKEN}",
                text.len()
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token may have letters, digits and signs of ASCII, and no space".to_owned());
        }
        Ok(Token(text.as_bytes().into()))
    }

    /// Whether these are the credentials. Takes the same time for each wrong one of the same
    /// length.
    fn is_shown(&self, head: &Parts) -> bool {
        let given = head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        given.strip_prefix(b"Bearer ").is_some_and(|given| given.ct_eq(&self.0).into())
    }
}

/// Who may ask.
#[derive(Clone, Debug)]
pub enum Access {
    /// Tools and browsers on this machine, by these names.
    Hosts(Hosts),
    /// Those that have the token, from anywhere.
    Token(Token),
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Page,
    /// Whether the process lives.
    Alive,
    /// Whether it can answer clients.
    Ready,
    /// Data, which is elsewhere.
    Data,
    Refused(StatusCode, &'static str),
}

impl Access {
    /// What a request gets here.
    pub(super) fn wanted(&self, head: &Parts) -> Wanted {
        let is_admitted = match self {
            Access::Hosts(hosts) => hosts.check(head).is_ok(),
            Access::Token(token) => token.is_shown(head),
        };
        if head.headers.contains_key(ORIGIN) {
            return Wanted::Refused(
                StatusCode::FORBIDDEN,
                "requests from other web pages are not served (Origin header)",
            );
        }
        if matches!(self, Access::Hosts(_)) && !is_admitted {
            return Wanted::Refused(
                StatusCode::FORBIDDEN,
                "requests for this host are not served (Host header): ask localhost or a loopback address, or start with --allow-host",
            );
        }
        if head.method != Method::GET {
            return Wanted::Refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "this address answers GET only; DynamoDB's protocol is served at the address of --listen",
            );
        }
        match head.uri.path() {
            "/healthz" => Wanted::Alive,
            "/readyz" => Wanted::Ready,
            // It is the same for everyone, also for who follows a link, and asks for the token
            // itself.
            "/" => Wanted::Page,
            _ if origin::is_of_a_page(&head.headers) => Wanted::Refused(
                StatusCode::FORBIDDEN,
                "requests from other web pages are not served (Sec-Fetch-Site header)",
            ),
            _ if matches!(self, Access::Hosts(_)) && origin::is_forwarded(&head.headers) => Wanted::Refused(
                StatusCode::FORBIDDEN,
                "only tools on this machine may ask, and a proxy has passed this request on: start with --admin-token-file",
            ),
            _ if is_admitted => Wanted::Data,
            _ => {
                Wanted::Refused(StatusCode::UNAUTHORIZED, "the token is needed: Authorization: Bearer TOKEN")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::HOST;

    use super::*;

    fn wanted(access: &Access, path: &str, headers: &[(HeaderName, &str)]) -> Wanted {
        let request = headers
            .iter()
            .fold(Request::builder().uri(path), |made, (name, value)| made.header(name, *value));
        access.wanted(&request.body(()).unwrap().into_parts().0)
    }

    fn status(wanted: &Wanted) -> u16 {
        if let Wanted::Refused(status, _) = wanted { status.as_u16() } else { 200 }
    }

    #[test]
    fn on_loopback_the_host_decides() {
        let access = Access::Hosts(Hosts::loopback());
        for path in ["/", "/healthz", "/readyz", "/_heatsink/heat"] {
            assert_eq!(status(&wanted(&access, path, &[(HOST, "localhost:8001")])), 200, "{path}");
            assert_eq!(status(&wanted(&access, path, &[(HOST, "rebound.example")])), 403, "{path}");
            let crossing = [(HOST, "localhost:8001"), (ORIGIN, "http://evil.example")];
            assert_eq!(status(&wanted(&access, path, &crossing)), 403, "{path}");
            let sent = |site| {
                let site = (HeaderName::from_static("sec-fetch-site"), site);
                status(&wanted(&access, path, &[(HOST, "localhost:8001"), site]))
            };
            assert_eq!(sent("same-origin"), 200, "{path}");
            // Data is shown to no page of others, without a word of its name as well.
            assert_eq!(sent("cross-site"), if path == "/_heatsink/heat" { 403 } else { 200 }, "{path}");
        }
    }

    #[test]
    fn with_a_token_only_the_token_does() {
        let access = Access::Token(Token::new(" 0123456789abcdef\n").unwrap());
        let ask = |path, credentials: &str| {
            wanted(&access, path, &[(HOST, "box.internal"), (AUTHORIZATION, credentials)])
        };
        assert_eq!(ask("/_heatsink/heat", "Bearer 0123456789abcdef"), Wanted::Data);
        for wrong in [
            "Bearer 0123456789abcdeg",
            "Bearer 0123456789abcde",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "",
        ] {
            assert_eq!(status(&ask("/_heatsink/heat", wrong)), 401, "{wrong}");
            assert_eq!(status(&ask("/_heatsink/metrics", wrong)), 401, "{wrong}");
        }
        assert_eq!(ask("/", ""), Wanted::Page);
        assert_eq!(ask("/healthz", ""), Wanted::Alive);
        assert_eq!(ask("/readyz", ""), Wanted::Ready);
    }

    #[test]
    fn a_token_can_be_sent_and_is_not_guessed() {
        for wrong in [
            "",
            "short",
            "fifteen_letters",
            "with space in its middle",
            "with\nline end inside",
            "ünïcödé ünïcödé",
        ] {
            assert!(Token::new(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token");
    }
}
