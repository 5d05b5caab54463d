//! The file with the roots of clients' certificates: which may be one.
//!
//! Not here: whether a chain leads to one of them (`roots`), what a client has shown (`shown`).

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;

use super::extensions;
use super::pem::{PemFile, Section, certificates};
use super::roots::Roots;
use super::short_chains::ShortChains;
use super::validity::{Validity, parsed, shown};

/// The roots of clients' certificates.
#[derive(Clone)]
pub(super) struct ClientCa {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) roots: Arc<Roots>,
    /// Tells them from others.
    pub(super) fingerprint: [u8; 32],
    /// What an operator should know of them.
    pub(super) notices: Arc<[String]>,
}

impl ClientCa {
    /// Reads a file of them. `unix_millis`: now.
    ///
    /// # Errors
    /// File, line and problem: for what cannot be read, and for what can never be a root. That one
    /// has expired is no error, but a notice: nobody is known by it, and the others hold.
    pub(super) fn read(
        file: PemFile<'_>,
        provider: Arc<CryptoProvider>,
        unix_millis: u64,
    ) -> Result<Self, String> {
        let (mut store, mut roots, mut notices) = (RootCertStore::empty(), Vec::new(), Vec::new());
        let mut fingerprint = Sha256::new();
        let mut seen: Vec<(CertificateDer<'static>, String)> = Vec::new();
        for section in certificates(file)? {
            let holds = fit(&section)?;
            let Section { at, der, .. } = section;
            if let Some((_, first)) = seen.iter().find(|(other, _)| *other == der) {
                notices.push(format!("{at}: this root stands at {first} already"));
                continue;
            }
            let now = unix_millis / 1000;
            if now > holds.until {
                let day = shown(holds.until);
                notices.push(format!(
                    "{at}: this root has expired, on {day}, and nobody is known by it: take it out"
                ));
            } else if now < holds.from {
                let day = shown(holds.from);
                notices.push(format!(
                    "{at}: this root does not hold before {day}, and nobody is known by it until then"
                ));
            }
            fingerprint.update(&der);
            store
                .add(der.clone())
                .map_err(|error| format!("{at}: the certificate cannot be read: {error}"))?;
            roots.push(holds);
            seen.push((der, at));
        }
        let (store, algorithms) = (Arc::new(store), provider.signature_verification_algorithms.all);
        let roots = Arc::new(Roots { store: Arc::clone(&store), validity: roots, algorithms });
        let verifier = WebPkiClientVerifier::builder_with_provider(store, provider).build();
        let verifier = verifier.map_err(|error| format!("{}: {error}", file.name))?;
        let verifier = Arc::new(ShortChains { all: verifier, roots: Arc::clone(&roots) });
        Ok(ClientCa { verifier, roots, fingerprint: fingerprint.finalize().into(), notices: notices.into() })
    }
}

/// When a certificate holds that may be a root.
fn fit(section: &Section) -> Result<Validity, String> {
    let at = &section.at;
    parsed(section)?;
    if !extensions::is_of_ca(&section.der) {
        return Err(format!(
            "{at}: the certificate is of no CA, and cannot be a root: name the one that has signed clients' certificates"
        ));
    }
    if !extensions::may_sign(&section.der) {
        return Err(format!(
            "{at}: the certificate may not sign others (key usage), and cannot be a root: name another one, or issue it anew"
        ));
    }
    Validity::of(section)
}
