//! TLS of the listener: its certificate and key, and the CA whose certificates clients have to
//! show.
//!
//! One value holds all of it, and a connection takes the one that is in force when it begins. So a
//! new certificate never goes with an old CA, and a session that an old CA let in is not resumed
//! under a new one: each value has its own sessions. A new CA may go with an old certificate, whose
//! files have become unfit: who is not trusted any more must not wait for that.
//!
//! Not here: where the files lie and who may read them (the command line), which CAs there are
//! (`client_ca`), dates (`validity`), handshakes (`handshakes`), the certificate that a client has shown (`shown`).

use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{Error, ServerConfig};
use webpki::EndEntityCert;

use super::client_ca::ClientCa;
use super::pem::{self, PemFile, Section, certificates};
use super::validity::{Validity, parsed, shown};

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
    certified: Arc<SingleCertAndKey>,
    names: Arc<[String]>,
    expires: u64,
    pub(super) client_ca: Option<ClientCa>,
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
        let certified = Arc::new(SingleCertAndKey::from(certified));
        let client_ca = files.client_ca.map(|ca| ClientCa::read(ca, provider, unix_millis)).transpose()?;
        let names = names.unwrap_or_default().into();
        let config = config(certified.clone(), client_ca.as_ref())?;
        Ok(ServerTls { config, certified, names, expires, client_ca })
    }

    /// The same certificate, whatever its file holds by now, with the CAs of clients in that file.
    ///
    /// # Errors
    /// As [`read`](Self::read), of that file.
    pub fn with_client_ca(&self, client_ca: Option<PemFile<'_>>, unix_millis: u64) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let client_ca = client_ca.map(|ca| ClientCa::read(ca, provider, unix_millis)).transpose()?;
        let config = config(self.certified.clone(), client_ca.as_ref())?;
        Ok(ServerTls { config, client_ca, ..self.clone() })
    }

    /// The DNS names that the certificate is for; `*.` begins one that is for all names below it.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// When its certificates stop to hold, the first of them, in seconds since 1970.
    pub fn expires(&self) -> u64 {
        self.expires
    }

    /// What an operator should know of the CAs of clients: of each that is there for nothing.
    pub fn notices(&self) -> &[String] {
        self.client_ca.as_ref().map_or(&[], |ca| &ca.notices)
    }

    /// Whether clients have to show a certificate of their own.
    pub fn asks_clients(&self) -> bool {
        self.client_ca.is_some()
    }
}

fn config(
    certified: Arc<SingleCertAndKey>,
    client_ca: Option<&ClientCa>,
) -> Result<Arc<ServerConfig>, String> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => builder.with_client_cert_verifier(Arc::clone(&ca.verifier)),
    };
    let mut config = builder.with_cert_resolver(certified);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn names(certificate: EndEntityCert<'_>) -> Vec<String> {
    certificate.valid_dns_names().map(str::to_ascii_lowercase).collect()
}

/// Until when a certificate holds that holds `now`, in seconds since 1970.
fn valid_until(section: &Section, now: UnixTime) -> Result<u64, String> {
    let Validity { from, until } = Validity::of(section)?;
    let at = &section.at;
    if now.as_secs() > until {
        return Err(format!("{at}: the certificate has expired, on {}: renew it", shown(until)));
    }
    if now.as_secs() < from {
        return Err(format!(
            "{at}: the certificate does not hold before {}: set this machine's clock right, or use another one",
            shown(from)
        ));
    }
    Ok(until)
}
