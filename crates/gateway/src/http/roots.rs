//! Roots of clients' certificates: whether a chain leads to one of them, and how long it holds.
//!
//! Not here: where they come from (`client_ca`).

use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

use super::extensions;
use super::validity::Validity;

/// Roots, and when each holds.
#[derive(Debug)]
pub(super) struct Roots {
    pub(super) store: Arc<RootCertStore>,
    pub(super) validity: Vec<Validity>,
    pub(super) algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
}

impl Roots {
    /// Until when a chain holds, in seconds since 1970: the earliest end of its certificates, from
    /// the client's to its root.
    ///
    /// # Errors
    /// It does not lead to a root of these that holds `now`.
    pub(super) fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<u64, webpki::Error> {
        let certificate = EndEntityCert::try_from(certificate)?;
        let holds = |path: &VerifiedPath<'_>| self.holds(path, now);
        let (usage, roots) = (KeyUsage::client_auth(), &self.store.roots);
        let path =
            certificate.verify_for_usage(self.algorithms, roots, others, now, usage, None, Some(&holds))?;
        let between = path
            .intermediate_certificates()
            .map(|one| EndEntityCert::try_from(&one.der()).map_or(0, |one| Validity::of_parsed(&one).until));
        let root = self.root(&path).map_or(0, |root| root.until);
        let ends = between.chain([Validity::of_parsed(&certificate).until, root]);
        Ok(ends.min().unwrap_or_default())
    }

    /// What the verifier does not look at: the days of the root, and whether those between may sign.
    fn holds(&self, path: &VerifiedPath<'_>, time: UnixTime) -> Result<(), webpki::Error> {
        let root = self.root(path).ok_or(webpki::Error::UnknownIssuer)?;
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if time.as_secs() < root.from {
            return Err(webpki::Error::CertNotValidYet { time, not_before: at(root.from) });
        }
        if time.as_secs() > root.until {
            return Err(webpki::Error::CertExpired { time, not_after: at(root.until) });
        }
        match path.intermediate_certificates().all(|one| extensions::may_sign(&one.der())) {
            true => Ok(()),
            false => Err(webpki::Error::EndEntityUsedAsCa),
        }
    }

    fn root(&self, path: &VerifiedPath<'_>) -> Option<&Validity> {
        let anchor = path.anchor();
        let at = self.store.roots.iter().position(|root| std::ptr::eq(root, anchor))?;
        self.validity.get(at)
    }
}
