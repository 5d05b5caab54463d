//! Certificates of the test's own.

use heatsink_gateway::http::{PemFile, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

/// 2027-01-15, a day on which the certificates below hold.
pub const NOW: u64 = 1_800_000_000_000;

/// A CA, and what it signs.
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Pair {
    pub cert: String,
    pub key: String,
}

impl Ca {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test");
        Ca(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for these names; `spiffe://…` among them is a URI.
    pub fn sign(&self, names: &[&str]) -> Pair {
        self.sign_with(names, |_| {})
    }

    pub fn sign_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names
            .iter()
            .map(|name| match name.contains("://") {
                true => SanType::URI((*name).try_into().unwrap()),
                false => SanType::DnsName((*name).try_into().unwrap()),
            })
            .collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Pair { cert: cert.pem(), key: key.serialize_pem() }
    }
}

impl Pair {
    /// TLS of a server with it.
    pub fn tls(&self, client_ca: Option<&str>) -> Result<ServerTls, String> {
        read(&self.cert, &self.key, client_ca)
    }
}

pub fn read(cert: &str, key: &str, client_ca: Option<&str>) -> Result<ServerTls, String> {
    let file = |name, text| PemFile { name, text };
    let files = TlsFiles {
        cert: file("cert.pem", cert),
        key: file("key.pem", key),
        client_ca: client_ca.map(|text| file("ca.pem", text)),
    };
    ServerTls::read(files, NOW)
}
