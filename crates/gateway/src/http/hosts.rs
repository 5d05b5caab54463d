//! The host names that the endpoint accepts.
//!
//! A web page can let its own name resolve to this machine ("DNS rebinding"), so that the browser
//! takes the endpoint for the page's server. The browser still sends the page's name as `Host`, and
//! the endpoint refuses it.

use std::net::IpAddr;
use std::sync::Arc;

use heatsink_dynamo::{Code, Error};
use http::Version;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

/// Loopback addresses, `localhost` with its subdomains, and names that the operator adds.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    added: Arc<[String]>,
}

impl Hosts {
    /// Loopback addresses and `localhost` only.
    pub fn loopback() -> Self {
        Hosts::default()
    }

    /// Adds these names or addresses, without a port: every port is accepted.
    ///
    /// # Errors
    /// The reason, for a value that cannot be in a `Host` header, or that has a port.
    pub fn and<S: AsRef<str>>(names: &[S]) -> Result<Self, String> {
        let read = |name: &S| {
            let name = name.as_ref();
            let host = name.parse::<Authority>().ok().filter(|host| host.as_str() == host.host());
            host.map(|host| plain(host.host())).ok_or_else(|| format!("{name} is no host name or address"))
        };
        Ok(Hosts { added: names.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// The same, and the names that a certificate is for: whoever asks by one of them trusts it.
    #[must_use]
    pub fn certified(self, names: &[String]) -> Self {
        Hosts { added: self.added.iter().chain(names).cloned().collect() }
    }

    /// Checks the required single `Host` header. HTTP/1.0 has no such header, and no browser uses
    /// it: a request of that version may omit it.
    ///
    /// # Errors
    /// `AccessDeniedException` for a name that is not served, `ValidationException` for a missing
    /// or repeated header.
    pub(super) fn check(&self, head: &Parts) -> Result<(), Error> {
        let mut given = head.headers.get_all(HOST).iter();
        let host = match (given.next(), given.next()) {
            (Some(host), None) => Some(String::from_utf8_lossy(host.as_bytes())),
            (None, _) if head.version <= Version::HTTP_10 => None,
            _ => return Err(Error::validation("An HTTP/1.1 request has exactly one Host header")),
        };
        // A request line with a whole URL also names a host, which takes precedence over the
        // header.
        let line = head.uri.authority().map(|host| host.as_str().into());
        host.into_iter().chain(line).try_for_each(|name| self.admit(&name))
    }

    fn admit(&self, given: &str) -> Result<(), Error> {
        let host = given.parse::<Authority>().ok().filter(|host| !host.as_str().contains('@'));
        let name = host.map(|host| plain(host.host()));
        if name
            .is_some_and(|name| is_loopback(&name) || self.added.iter().any(|added| is_meant(added, &name)))
        {
            return Ok(());
        }
        let shown: String = given.chars().take(100).collect();
        Err(Error::new(
            Code::AccessDeniedException,
            format!(
                "Requests for the host {shown} are not served (Host header); ask localhost or a loopback address, or start with --allow-host"
            ),
        ))
    }
}

/// Lower case, without the brackets of IPv6 and the trailing dot of a full name.
fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// Whether a name is one that was added; `*.` begins one that is for all names one step below it,
/// as in certificates.
fn is_meant(added: &str, name: &str) -> bool {
    match added.strip_prefix("*.") {
        None => added == name,
        Some(above) => name.split_once('.').is_some_and(|(_, rest)| rest == above),
    }
}

/// Nobody can register a name below `localhost` (RFC 6761, section 6.3).
fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn code(hosts: &Hosts, version: Version, uri: &str, names: &[&str]) -> Option<Code> {
        let mut request = Request::builder().uri(uri).version(version);
        for name in names {
            request = request.header(HOST, *name);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        hosts.check(&head).err().map(|error| error.code)
    }

    #[test]
    fn the_names_of_a_certificate_are_served() {
        let hosts = Hosts::loopback().certified(&["a.example".to_owned(), "*.b.example".to_owned()]);
        for (name, served) in [
            ("a.example", true),
            ("x.a.example", false),
            ("x.B.example:8000", true),
            ("b.example", false),
            ("x.y.b.example", false),
            ("*.b.example", true),
        ] {
            let refused = code(&hosts, Version::HTTP_11, "/", &[name]);
            assert_eq!(refused.is_none(), served, "{name}");
        }
    }

    #[test]
    fn loopback_and_what_was_added_is_served() {
        let added = Hosts::and(&["Heatsink.internal", "10.0.0.7", "[fd00::1]"]).unwrap();
        for (name, loopback, with_names) in [
            ("localhost:8000", true, true),
            ("LocalHost", true, true),
            ("localhost.:8000", true, true),
            ("a.localhost", true, true),
            ("127.0.0.1:8000", true, true),
            ("127.8.8.8", true, true),
            ("[::1]:8000", true, true),
            ("[::ffff:127.0.0.1]", true, true),
            ("heatsink.internal:8000", false, true),
            ("10.0.0.7", false, true),
            ("[fd00::1]:1", false, true),
            ("evil.example", false, false),
            ("localhost.evil.example", false, false),
            ("127.0.0.1.evil.example", false, false),
            ("evillocalhost", false, false),
            ("evil@localhost", false, false),
            ("localhost@evil.example", false, false),
            ("0.0.0.0:8000", false, false),
            ("10.0.0.8", false, false),
            ("", false, false),
            ("local host", false, false),
        ] {
            let served = |hosts: &Hosts| code(hosts, Version::HTTP_11, "/", &[name]).is_none();
            assert_eq!((served(&Hosts::loopback()), served(&added)), (loopback, with_names), "{name:?}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let code = |version, uri, names: &[&str]| code(&Hosts::loopback(), version, uri, names);
        assert_eq!(code(Version::HTTP_11, "/", &[]), Some(Code::ValidationException));
        assert_eq!(code(Version::HTTP_11, "/", &["localhost", "localhost"]), Some(Code::ValidationException));
        assert_eq!(code(Version::HTTP_10, "/", &[]), None);
        assert_eq!(code(Version::HTTP_10, "/", &["evil.example"]), Some(Code::AccessDeniedException));
        let foreign = "http://evil.example/";
        assert_eq!(code(Version::HTTP_11, foreign, &["localhost"]), Some(Code::AccessDeniedException));
        assert_eq!(code(Version::HTTP_11, "http://localhost:8000/", &["localhost:8000"]), None);
    }

    #[test]
    fn an_added_name_has_no_port() {
        for name in ["a:8000", "http://a", "a/b", "", "a b", "u@a"] {
            assert!(Hosts::and(&[name]).is_err(), "{name}");
        }
    }
}
