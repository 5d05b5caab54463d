//! Certificates of the test's own.

use heatsink_gateway::http::{PemFile, ServerTls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

/// 2027-01-15, a day on which the certificates below hold.
pub const NOW: u64 = 1_800_000_000_000;

/// A CA, and what it signs.
pub struct Ca {
    ca: CertifiedIssuer<'static, KeyPair>,
    /// What stands between it and a root.
    between: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Pair {
    pub cert: String,
    pub key: String,
}

impl Ca {
    pub fn new() -> Self {
        Ca::named("test")
    }

    /// The name is the issuer's in its certificates.
    pub fn named(name: &str) -> Self {
        Ca::with(name, |_| {})
    }

    pub fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Ca { ca, between: String::new() }
    }

    pub fn pem(&self) -> String {
        self.ca.pem()
    }

    /// A CA that this one has signed; its certificates come with its own.
    pub fn intermediate(&self, change: impl FnOnce(&mut CertificateParams)) -> Ca {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "between");
        change(&mut params);
        let signed = CertifiedIssuer::signed_by(params, KeyPair::generate().unwrap(), &self.ca).unwrap();
        Ca { between: signed.pem(), ca: signed }
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
        let cert = params.signed_by(&key, &self.ca).unwrap();
        Pair { cert: cert.pem() + &self.between, key: key.serialize_pem() }
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
