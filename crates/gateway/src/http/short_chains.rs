//! Certificates of clients are verified only with few others beside them. Whoever shows many of one
//! name, trusted or not, has every order of them tried: 10 of 4 KB in all take 200 ms of the thread
//! that serves other connections.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};

use super::roots::Roots;

/// How many certificates may stand between a client's and a root.
const MOST_BETWEEN: usize = 3;

/// Asks another verifier only about chains that are short, and takes none whose root does not hold.
#[derive(Debug)]
pub(super) struct ShortChains {
    pub(super) all: Arc<dyn ClientCertVerifier>,
    pub(super) roots: Arc<Roots>,
}

impl ClientCertVerifier for ShortChains {
    fn offer_client_auth(&self) -> bool {
        self.all.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.all.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.all.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if intermediates.len() > MOST_BETWEEN {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        match self.roots.verify(end_entity, intermediates, now) {
            Ok(_) => Ok(ClientCertVerified::assertion()),
            // In the words of TLS.
            Err(error) => {
                self.all.verify_client_cert(end_entity, intermediates, now)?;
                Err(Error::InvalidCertificate(match error {
                    webpki::Error::CertExpired { .. } => CertificateError::Expired,
                    webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
                    _ => CertificateError::UnknownIssuer,
                }))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.all.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.all.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.all.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.all.requires_raw_public_keys()
    }
}
