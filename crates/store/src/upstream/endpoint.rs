//! The URL of an upstream endpoint.

use http::Uri;
use http::uri::{Authority, Scheme};

/// A DynamoDB endpoint: scheme, host and port. There is no default one: a mistyped flag must not
/// reach real tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    uri: Uri,
    authority: Authority,
}

impl Endpoint {
    /// Reads `http://127.0.0.1:8001` or `https://dynamodb.eu-west-1.amazonaws.com`.
    ///
    /// # Errors
    /// What is wrong with the URL, in words: no scheme, no host, credentials, a path or a query.
    pub fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{url:?} is not a URL: {error}"))?;
        let scheme = uri.scheme().filter(|scheme| **scheme == Scheme::HTTP || **scheme == Scheme::HTTPS);
        let scheme = scheme.ok_or_else(|| format!("{url:?} must begin with http:// or https://"))?.clone();
        let authority = uri.authority().cloned().ok_or_else(|| format!("{url:?} names no host"))?;
        if authority.as_str().contains('@') {
            return Err("the URL must not hold credentials; they come from the standard AWS chain".to_owned());
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err(format!("{url:?} must name a host and a port only, without a path or a query"));
        }
        let uri = Uri::builder().scheme(scheme).authority(authority.clone()).path_and_query("/").build();
        let uri = uri.map_err(|error| format!("{url:?} is not a URL: {error}"))?;
        Ok(Endpoint { uri, authority })
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.authority.host().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Whether requests cross a network without encryption: anyone on the way can read the items.
    pub fn is_exposed(&self) -> bool {
        self.uri.scheme() != Some(&Scheme::HTTPS) && !self.is_loopback()
    }

    /// Where the endpoint's streams are: AWS serves them under a host of their own, everybody else
    /// beside the tables (AWS General Reference, "DynamoDB endpoints and quotas").
    pub(super) fn streams(&self) -> Endpoint {
        let host = self.authority.host();
        let of_aws = [".amazonaws.com", ".amazonaws.com.cn"].iter().any(|domain| host.ends_with(domain));
        if !of_aws || !["dynamodb.", "dynamodb-fips."].iter().any(|service| host.starts_with(service)) {
            return self.clone();
        }
        let port = self.authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or("https");
        Endpoint::parse(&format!("{scheme}://streams.{host}{port}")).unwrap_or_else(|_| self.clone())
    }

    /// What to connect to.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The `Host` header: without the port where it is the scheme's own, as signers on the other
    /// side expect.
    pub(super) fn host(&self) -> String {
        let default = if self.uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        match self.authority.port_u16() {
            Some(port) if port != default => self.authority.as_str().to_owned(),
            _ => self.authority.host().to_owned(),
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.uri.to_string().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_endpoints_are_taken() {
        for wrong in [
            "",
            "localhost:8000",
            "127.0.0.1",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a/x",
            "http://a/?q",
            "http://a b",
        ] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong:?}");
        }
        let local = Endpoint::parse("http://127.0.0.1:8001").unwrap();
        assert!(local.is_loopback());
        assert_eq!(
            (local.host(), local.to_string()),
            ("127.0.0.1:8001".into(), "http://127.0.0.1:8001".into())
        );
        assert!(Endpoint::parse("http://[::1]:8001/").unwrap().is_loopback());
        assert!(!local.is_exposed());
        assert!(Endpoint::parse("http://dynamodb.eu-west-1.amazonaws.com").unwrap().is_exposed());
        let far = Endpoint::parse("https://dynamodb.eu-west-1.amazonaws.com:443").unwrap();
        assert!(!far.is_loopback() && !far.is_exposed());
        assert_eq!(far.streams().host(), "streams.dynamodb.eu-west-1.amazonaws.com");
        assert_eq!((local.streams(), far.streams().streams()), (local.clone(), far.streams()));
        assert_eq!(far.host(), "dynamodb.eu-west-1.amazonaws.com");
    }
}
