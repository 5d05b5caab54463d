//! How an upstream is reached: whose certificates are trusted, and through which proxy.
//!
//! Trusted are the certificates of the first of these that is there: the CA file that the operator
//! names, that of `AWS_CA_BUNDLE` as for AWS's tools, that of `SSL_CERT_FILE` or `SSL_CERT_DIR`,
//! the system's, and, where the system has none, Mozilla's of the time of this build. The proxy is
//! that of `HTTPS_PROXY`, but for the hosts of `NO_PROXY`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::checked_stream::{CheckedConnector, CheckedStream};

/// Names a CA file, for AWS's tools too.
const BUNDLE: &str = "AWS_CA_BUNDLE";
/// What names the system's own certificates elsewhere.
const SYSTEM: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// How an upstream is reached.
#[derive(Clone)]
pub struct Network {
    tls: ClientConfig,
    proxies: Arc<Matcher>,
    /// Whether it trusts the CA of one endpoint alone.
    of_one_endpoint: bool,
}

impl Network {
    /// Without a proxy, trusting Mozilla's certificates.
    ///
    /// # Errors
    /// Where this build has no TLS.
    pub fn plain() -> Result<Self, String> {
        let proxies = Arc::new(Matcher::builder().build());
        Ok(Network { tls: trusting(of_mozilla())?, proxies, of_one_endpoint: false })
    }

    /// The same through a proxy.
    #[cfg(test)]
    pub(super) fn through(proxy: &str) -> Result<Self, String> {
        Ok(Network { proxies: Arc::new(Matcher::builder().all(proxy).build()), ..Network::plain()? })
    }

    /// As the environment says. `ca`: the flag and the file of the CA that the operator names.
    ///
    /// # Errors
    /// What is wrong with a file that is named, in words that begin with what names it.
    pub fn of_environment(ca: Option<(&str, &Path)>) -> Result<Self, String> {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let roots = match (ca, named(BUNDLE)) {
            (Some((flag, file)), _) => of_file(flag, file)?,
            (None, Some(file)) => of_file(BUNDLE, &file)?,
            (None, None) => {
                let found = rustls_native_certs::load_native_certs();
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(found.certs);
                let named = SYSTEM.into_iter().find_map(|name| Some((name, named(name)?)));
                match (roots.is_empty(), named) {
                    (false, _) => roots,
                    (true, Some((name, file))) => return Err(no_certificate(name, &file)),
                    (true, None) => of_mozilla(),
                }
            }
        };
        let proxies = Arc::new(Matcher::from_env());
        Ok(Network { tls: trusting(roots)?, proxies, of_one_endpoint: ca.is_some() })
    }

    /// How those are reached who give credentials: the CA that an operator names is that of the
    /// store's endpoint, and says nothing of theirs.
    ///
    /// # Errors
    /// As [`of_environment`](Self::of_environment).
    pub(super) fn of_credentials(&self) -> Result<Self, String> {
        if self.of_one_endpoint { Network::of_environment(None) } else { Ok(self.clone()) }
    }

    /// What connects to endpoints.
    pub(super) fn connector(&self, tcp: HttpConnector) -> HttpsConnector<Routes> {
        let routes = Routes { direct: CheckedConnector(tcp), proxies: Arc::clone(&self.proxies) };
        HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(routes)
    }
}

fn of_mozilla() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn of_file(name: &str, file: &Path) -> Result<RootCertStore, String> {
    let at = || format!("{name} {}", file.display());
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", at()))?;
    let mut roots = RootCertStore::empty();
    for (number, found) in CertificateDer::pem_slice_iter(&text).enumerate() {
        let unfit = |why: String| format!("{}: certificate {} cannot be read: {why}", at(), number + 1);
        let certificate = found.map_err(|error| unfit(error.to_string()))?;
        roots.add(certificate).map_err(|error| unfit(error.to_string()))?;
    }
    if roots.is_empty() { Err(no_certificate(name, file)) } else { Ok(roots) }
}

fn no_certificate(name: &str, file: &Path) -> String {
    format!(
        "{name} {}: it holds no certificate (-----BEGIN CERTIFICATE-----): name the file of the CA that has signed the endpoint's",
        file.display()
    )
}

/// The way to each endpoint: through its proxy, if it has one.
#[derive(Clone)]
pub(super) struct Routes {
    direct: CheckedConnector,
    proxies: Arc<Matcher>,
}

type Failed = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Routes {
    type Response = CheckedStream;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<CheckedStream, Failed>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.direct.poll_ready(cx).map_err(Failed::from)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        // A proxy is for what leaves this machine's network, and that is encrypted. What a machine
        // or container asks for its own credentials is not.
        let proxy = self.proxies.intercept(&to).filter(|_| to.scheme_str() == Some("https"));
        let Some(proxy) = proxy else { return self.direct.call(to).map_err(Failed::from).boxed() };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        tunnel.call(to).map_err(Failed::from).boxed()
    }
}
