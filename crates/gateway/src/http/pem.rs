//! PEM files: their sections, with the lines at which they begin (RFC 7468).
//!
//! Not here: what the sections mean (`tls`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};

/// A PEM file: its name, for errors, and what it holds.
#[derive(Clone, Copy)]
pub struct PemFile<'a> {
    /// As the operator wrote it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A section between `-----BEGIN LABEL-----` and `-----END LABEL-----`.
pub(super) struct Section {
    /// File and line.
    pub(super) at: String,
    label: String,
    pub(super) der: CertificateDer<'static>,
}

impl Section {
    pub(super) fn is_certificate(&self) -> bool {
        self.label == "CERTIFICATE"
    }

    pub(super) fn certificate(self) -> CertificateDer<'static> {
        self.der
    }

    /// The private key, if it is one; an error for one that has a password.
    pub(super) fn private_key(&self) -> Option<Result<PrivateKeyDer<'static>, String>> {
        let der = || self.der.to_vec();
        Some(Ok(match self.label.as_str() {
            "PRIVATE KEY" => PrivatePkcs8KeyDer::from(der()).into(),
            "RSA PRIVATE KEY" => PrivatePkcs1KeyDer::from(der()).into(),
            "EC PRIVATE KEY" => PrivateSec1KeyDer::from(der()).into(),
            "ENCRYPTED PRIVATE KEY" => return Some(Err(encrypted(&self.at))),
            _ => return None,
        }))
    }
}

fn encrypted(at: &str) -> String {
    format!("{at}: the private key is encrypted: give it without a password (`openssl pkey -in FILE`)")
}

/// The sections of a file. What stands between them does not count.
///
/// # Errors
/// File, line and problem: for a section without an end, such as that of a file of which half is
/// written, and for one that is not base64.
pub(super) fn sections(name: &str, text: &str) -> Result<Vec<Section>, String> {
    let mut found = Vec::new();
    let mut open: Option<(String, String, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let marker = |begin: &str| line.strip_prefix(begin)?.strip_suffix("-----").map(str::to_owned);
        if let Some(label) = marker("-----BEGIN ") {
            if let Some((at, label, _)) = open {
                return Err(endless(&at, &label));
            }
            open = Some((format!("{name}:{}", number + 1), label, String::new()));
        } else if let Some(ended) = marker("-----END ") {
            let Some((at, label, base64)) = open.take().filter(|(_, label, _)| *label == ended) else {
                return Err(format!("{name}:{}: nothing begins that ends here: {line}", number + 1));
            };
            let der = STANDARD.decode(&base64).map_err(|error| {
                format!("{at}: the {} is not base64: {error}: write the file anew", label.to_lowercase())
            })?;
            found.push(Section { at, label, der: der.into() });
        } else if let Some((at, _, base64)) = &mut open {
            if line.starts_with("Proc-Type:") {
                return Err(encrypted(at));
            }
            base64.push_str(line);
        }
    }
    match open {
        None => Ok(found),
        Some((at, label, _)) => Err(endless(&at, &label)),
    }
}

/// The certificates of a file, at least one.
pub(super) fn certificates(file: PemFile<'_>) -> Result<Vec<Section>, String> {
    let mut sections = sections(file.name, file.text)?;
    sections.retain(Section::is_certificate);
    match sections.is_empty() {
        true => Err(format!("{}: it holds no certificate (-----BEGIN CERTIFICATE-----)", file.name)),
        false => Ok(sections),
    }
}

fn endless(at: &str, label: &str) -> String {
    format!(
        "{at}: the {} that begins here has no end: the file is half written, or damaged",
        label.to_lowercase()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let of = |text: &str| sections("a.pem", text).map(|found| found.len());
        assert_eq!(of("about\n-----BEGIN X-----\nAAAA\n-----END X-----\n\n"), Ok(1));
        assert_eq!(of(""), Ok(0));
        let half =
            of("-----BEGIN X-----\nAAAA\n-----END X-----\n-----BEGIN CERTIFICATE-----\nAA").unwrap_err();
        assert!(half.starts_with("a.pem:4: the certificate that begins here has no end"), "{half}");
        for wrong in [
            "-----BEGIN X-----\n-----BEGIN X-----\n-----END X-----\n",
            "-----END X-----\n",
            "-----BEGIN X-----\n-----END Y-----\n",
            "-----BEGIN X-----\n%\n-----END X-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        ] {
            assert!(
                of(wrong).unwrap_err().starts_with("a.pem:1: ")
                    || wrong.starts_with("-----BEGIN X-----\n-----END Y"),
                "{wrong}"
            );
        }
    }
}
