//! TLS of the listener: its certificate and key, and the CA whose certificates clients have to
//! show.
//!
//! One value holds all of it, and a connection takes the one that is in force when it begins. So a
//! new certificate never goes with an old CA, and a session that an old CA let in is not resumed
//! under a new one: each value has its own sessions.
//!
//! Not here: where the files lie and who may read them (the command line), handshakes
//! (`handshakes`).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{Error, RootCertStore, ServerConfig};
use webpki::{EndEntityCert, KeyUsage};

use super::pem::{self, Section};

/// A PEM file: its name, for errors, and what it holds.
#[derive(Clone, Copy)]
pub struct PemFile<'a> {
    /// As the operator wrote it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What TLS of a listener is made from.
#[derive(Clone, Copy)]
pub struct TlsFiles<'a> {
    /// The certificate, and those that lead from it to its root.
    pub cert: PemFile<'a>,
    /// Its private key.
    pub key: PemFile<'a>,
    /// The roots of clients' certificates. Where they are given, a client without a certificate is
    /// not served.
    pub client_ca: Option<PemFile<'a>>,
}

/// TLS of a listener.
#[derive(Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    names: Arc<[String]>,
    expires: u64,
    pub(super) asks_clients: bool,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("names", &self.names).field("expires", &self.expires).finish()
    }
}

impl ServerTls {
    /// Reads certificate, key and CA. `unix_millis`: now.
    ///
    /// # Errors
    /// One line with file, line and what to do: for a file that is no PEM or half of one, a
    /// certificate that has expired or does not hold yet, a key that is not the certificate's, a
    /// CA file without certificates.
    pub fn read(files: TlsFiles<'_>, unix_millis: u64) -> Result<Self, String> {
        let certificates = certificates(files.cert)?;
        let now = UnixTime::since_unix_epoch(Duration::from_millis(unix_millis));
        let mut expires = u64::MAX;
        for section in &certificates {
            expires = expires.min(valid_until(section, now)?);
        }
        let names = certificates.first().map(|section| parsed(section).map(names)).transpose()?;
        let key = pem::sections(files.key.name, files.key.text)?;
        let key = key.iter().find_map(Section::private_key).ok_or_else(|| {
            format!(
                "{}: it holds no private key (-----BEGIN PRIVATE KEY-----): name the key of {} here",
                files.key.name, files.cert.name
            )
        })??;
        let provider = Arc::new(ring::default_provider());
        let chain = certificates.into_iter().map(Section::certificate).collect();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            Error::InconsistentKeys(_) => format!(
                "{}: it is not the key of the certificate in {}: give the two that were made together",
                files.key.name, files.cert.name
            ),
            error => format!("{}: the private key cannot be used: {error}", files.key.name),
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match files.client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = Arc::new(roots(ca)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| format!("{}: {error}", ca.name))?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(ServerTls {
            config: Arc::new(config),
            names: names.unwrap_or_default().into(),
            expires,
            asks_clients: files.client_ca.is_some(),
        })
    }

    /// The DNS names that the certificate is for; `*.` begins one that is for all names below it.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// When its certificates stop to hold, the first of them, in seconds since 1970.
    pub fn expires(&self) -> u64 {
        self.expires
    }

    /// Whether clients have to show a certificate of their own.
    pub fn asks_clients(&self) -> bool {
        self.asks_clients
    }
}

/// Who a client is, by its certificate: the first URI among its names, else the first DNS name.
pub(super) fn principal(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let uri = certificate.valid_uri_names().next();
    uri.or_else(|| certificate.valid_dns_names().next()).map(Arc::from)
}

/// The certificates of a file, at least one.
fn certificates(file: PemFile<'_>) -> Result<Vec<Section>, String> {
    let mut sections = pem::sections(file.name, file.text)?;
    sections.retain(Section::is_certificate);
    match sections.is_empty() {
        true => Err(format!("{}: it holds no certificate (-----BEGIN CERTIFICATE-----)", file.name)),
        false => Ok(sections),
    }
}

fn roots(file: PemFile<'_>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for section in certificates(file)? {
        let at = section.at.clone();
        let added = roots.add(section.certificate());
        added.map_err(|error| format!("{at}: the certificate cannot be read: {error}"))?;
    }
    Ok(roots)
}

fn parsed(section: &Section) -> Result<EndEntityCert<'_>, String> {
    EndEntityCert::try_from(&section.der)
        .map_err(|error| format!("{}: the certificate cannot be read: {error}", section.at))
}

fn names(certificate: EndEntityCert<'_>) -> Vec<String> {
    certificate.valid_dns_names().map(str::to_ascii_lowercase).collect()
}

/// Until when a certificate holds, in seconds since 1970.
fn valid_until(section: &Section, now: UnixTime) -> Result<u64, String> {
    let certificate = parsed(section)?;
    match fault_at(&certificate, now) {
        Some(webpki::Error::CertExpired { not_after, .. }) => {
            return Err(format!(
                "{}: the certificate has expired, on {}: renew it",
                section.at,
                shown(not_after)
            ));
        }
        Some(webpki::Error::CertNotValidYet { not_before, .. }) => {
            return Err(format!(
                "{}: the certificate does not hold before {}: set this machine's clock right, or use another one",
                section.at,
                shown(not_before)
            ));
        }
        Some(webpki::Error::InvalidCertValidity) => {
            return Err(format!("{}: the certificate ends before it begins", section.at));
        }
        _ => {}
    }
    let never = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    Ok(match fault_at(&certificate, never) {
        Some(webpki::Error::CertExpired { not_after, .. }) => not_after.as_secs(),
        _ => u64::MAX,
    })
}

/// What is wrong with a certificate at a time. Its own validity is judged before who issued it, and
/// nobody is named who might have.
fn fault_at(certificate: &EndEntityCert<'_>, at: UnixTime) -> Option<webpki::Error> {
    certificate.verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None).err()
}

fn shown(time: UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "an unknown day".to_owned(), |time| time.to_string())
}
