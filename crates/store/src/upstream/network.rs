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
}

impl Network {
    /// Without a proxy, trusting Mozilla's certificates.
    ///
    /// # Errors
    /// Where this build has no TLS.
    pub fn plain() -> Result<Self, String> {
        Ok(Network { tls: trusting(of_mozilla())?, proxies: Arc::new(Matcher::builder().build()) })
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
        Ok(Network { tls: trusting(roots)?, proxies: Arc::new(Matcher::from_env()) })
    }

    /// Whom it trusts.
    pub(super) fn tls(&self) -> ClientConfig {
        self.tls.clone()
    }

    /// What connects to an endpoint.
    pub(super) fn connector(&self, tcp: HttpConnector, to: &Uri) -> HttpsConnector<Route> {
        let direct = CheckedConnector(tcp);
        // A proxy is for what leaves this machine's network, and that is encrypted.
        let proxy = self.proxies.intercept(to).filter(|_| to.scheme_str() == Some("https"));
        let route = match proxy {
            None => Route::Direct(direct),
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.uri().clone(), direct);
                Route::Proxy(match proxy.basic_auth() {
                    None => tunnel,
                    Some(credentials) => tunnel.with_auth(credentials.clone()),
                })
            }
        };
        HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(route)
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

/// The way to an endpoint.
#[derive(Clone)]
pub(super) enum Route {
    Direct(CheckedConnector),
    Proxy(Tunnel<CheckedConnector>),
}

type Failed = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Route {
    type Response = CheckedStream;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<CheckedStream, Failed>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        match self {
            Route::Direct(connector) => connector.poll_ready(cx).map_err(Failed::from),
            Route::Proxy(tunnel) => tunnel.poll_ready(cx).map_err(Failed::from),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self {
            Route::Direct(connector) => connector.call(uri).map_err(Failed::from).boxed(),
            Route::Proxy(tunnel) => tunnel.call(uri).map_err(Failed::from).boxed(),
        }
    }
}
