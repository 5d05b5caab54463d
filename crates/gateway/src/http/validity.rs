//! When a certificate holds.
//!
//! Not here: what follows from it (`tls`, `roots`).

use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::rustls::pki_types::UnixTime;
use webpki::{EndEntityCert, KeyUsage};

use super::pem::Section;

/// The first and the last second at which a certificate holds, since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Validity {
    /// That of a certificate in a file.
    ///
    /// # Errors
    /// It cannot be read, or ends before it begins.
    pub(super) fn of(section: &Section) -> Result<Self, String> {
        let certificate = parsed(section)?;
        if fault_at(&certificate, 0) == Some(webpki::Error::InvalidCertValidity) {
            return Err(format!("{}: the certificate ends before it begins", section.at));
        }
        Ok(Validity::of_parsed(&certificate))
    }

    pub(super) fn of_parsed(certificate: &EndEntityCert<'_>) -> Self {
        let from = match fault_at(certificate, 0) {
            Some(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
            _ => 0,
        };
        let until = match fault_at(certificate, u64::MAX) {
            Some(webpki::Error::CertExpired { not_after, .. }) => not_after.as_secs(),
            _ => u64::MAX,
        };
        Validity { from, until }
    }
}

pub(super) fn parsed(section: &Section) -> Result<EndEntityCert<'_>, String> {
    EndEntityCert::try_from(&section.der)
        .map_err(|error| format!("{}: the certificate cannot be read: {error}", section.at))
}

/// What is wrong with a certificate at a second since 1970. Its own validity is judged before who
/// issued it, and nobody is named who might have.
fn fault_at(certificate: &EndEntityCert<'_>, second: u64) -> Option<webpki::Error> {
    let at = UnixTime::since_unix_epoch(Duration::from_secs(second));
    certificate.verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None).err()
}

/// A second since 1970, for people.
pub(super) fn shown(second: u64) -> String {
    let time = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
    time.map_or_else(|| "an unknown day".to_owned(), |time| time.to_string())
}
