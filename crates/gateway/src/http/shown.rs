//! The certificate that a client has shown when its connection began: its name, and whether it still
//! holds. A connection may outlive its certificate, and the CA that has signed it.
//!
//! Not here: the handshake (`handshakes`), whose certificate it is (`heatsink-access`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heatsink_dynamo::{Code, Error};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use webpki::EndEntityCert;

use super::client_ca::ClientCa;
use super::extensions::{DNS, URI, first_name};
use super::tls::ServerTls;

/// A certificate, and those that lead from it to a CA.
pub(super) struct Shown {
    name: Arc<str>,
    chain: Box<[CertificateDer<'static>]>,
    verified: Mutex<Verified>,
}

/// What was found of it last.
#[derive(Clone, Copy)]
struct Verified {
    /// The CA that it is of.
    ca: [u8; 32],
    /// The last second at which it holds, and all that lead from it to its root, since 1970.
    until: u64,
}

impl Shown {
    /// What a handshake with that CA has let in. `unix_millis`: now.
    ///
    /// # Errors
    /// Why it is of no client: it names nobody, or its name cannot be read.
    pub(super) fn new(
        chain: &[CertificateDer<'static>],
        ca: &ClientCa,
        unix_millis: u64,
    ) -> Result<Self, String> {
        let name = name(chain.first().ok_or("there is none")?)?;
        let verified = verify(chain, ca, unix_millis).map_err(|error| error.to_string())?;
        Ok(Shown { name, chain: chain.into(), verified: Mutex::new(verified) })
    }

    /// Its name, if it holds still under the TLS that is in force.
    ///
    /// # Errors
    /// It has expired, or is of no CA that is trusted by now.
    pub(super) fn name(&self, tls: Option<&ServerTls>, unix_millis: u64) -> Result<&str, Error> {
        let refusal = |why: &str| {
            let message = format!(
                "The certificate {}, which this connection began with, {why}: connect again with another one",
                self.name
            );
            Error::new(Code::UnrecognizedClientException, message)
        };
        let ca = tls.and_then(|tls| tls.client_ca.as_ref());
        let ca = ca.ok_or_else(|| refusal("is not asked for any more"))?;
        let mut verified = self.verified();
        if verified.ca != ca.fingerprint {
            let found = verify(&self.chain, ca, unix_millis);
            *verified = found.map_err(|error| match error {
                webpki::Error::CertExpired { .. } => refusal(EXPIRED),
                _ => refusal("is of no CA that is trusted by now"),
            })?;
        }
        match unix_millis / 1000 > verified.until {
            true => Err(refusal(EXPIRED)),
            false => Ok(&self.name),
        }
    }

    /// Whether it ends before a connection that is idle from now on is closed. A client that begins
    /// another one in time is never refused for it.
    pub(super) fn ends_soon(&self, idle: Duration, unix_millis: u64) -> bool {
        Duration::from_millis(unix_millis) + idle > Duration::from_secs(self.verified().until)
    }

    fn verified(&self) -> MutexGuard<'_, Verified> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const EXPIRED: &str = "has expired, or one that leads from it to its CA";

fn verify(
    chain: &[CertificateDer<'static>],
    ca: &ClientCa,
    unix_millis: u64,
) -> Result<Verified, webpki::Error> {
    let now = UnixTime::since_unix_epoch(Duration::from_millis(unix_millis));
    let (first, others) = chain.split_first().ok_or(webpki::Error::UnknownIssuer)?;
    let until = ca.roots.verify(first, others, now)?;
    Ok(Verified { ca: ca.fingerprint, until })
}

/// Who a client is, by its certificate: the first URI among its names, else the first DNS name, in
/// lower case. A URI has a colon and a DNS name none, so that neither is taken for the other. A first
/// one that cannot be read is not passed over, for the next one may be another client's.
fn name(der: &CertificateDer<'_>) -> Result<Arc<str>, String> {
    let certificate = EndEntityCert::try_from(der).map_err(|error| error.to_string())?;
    let read = |first: &[u8], valid: Option<&str>| match valid {
        Some(name) if name.as_bytes() == first && first.iter().all(u8::is_ascii_graphic) => {
            Ok(name.to_owned())
        }
        _ => Err(format!("its first name, \"{}\", cannot be read", first.escape_ascii())),
    };
    if let Some(first) = first_name(der, URI) {
        let name = read(first, certificate.valid_uri_names().next())?;
        return match name.contains(':') {
            true => Ok(name.into()),
            false => Err(format!("its first URI, \"{name}\", is none")),
        };
    }
    match first_name(der, DNS) {
        Some(first) => Ok(read(first, certificate.valid_dns_names().next())?.to_ascii_lowercase().into()),
        None => Err("it names neither a URI nor a DNS name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::string::Ia5String;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, IsCa, KeyPair, SanType,
        date_time_ymd,
    };

    use super::*;
    use crate::http::{PemFile, TlsFiles};

    type Ca = CertifiedIssuer<'static, KeyPair>;

    /// 2027-01-15.
    const NOW: u64 = 1_800_000_000_000;

    fn ca() -> Ca {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn tls(roots: &[&Ca]) -> ServerTls {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let cert = cert.signed_by(&key, roots[0]).unwrap().pem();
        let (key, roots) = (key.serialize_pem(), roots.iter().map(|ca| ca.pem()).collect::<String>());
        let file = |text| PemFile { name: "file", text };
        let files = TlsFiles { cert: file(&cert), key: file(&key), client_ca: Some(file(&roots)) };
        ServerTls::read(files, NOW).unwrap()
    }

    /// What has shown a certificate of that CA with those names, which ends at the end of 2028.
    fn shown(ca: &Ca, names: Vec<SanType>) -> Result<Shown, String> {
        shown_with(ca, |params| params.subject_alt_names = names)
    }

    fn shown_with(ca: &Ca, change: impl FnOnce(&mut CertificateParams)) -> Result<Shown, String> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.not_after = date_time_ymd(2029, 1, 1);
        change(&mut params);
        let cert = params.signed_by(&KeyPair::generate().unwrap(), ca).unwrap();
        Shown::new(&[cert.der().clone()], tls(&[ca]).client_ca.as_ref().unwrap(), NOW)
    }

    fn text(text: &str) -> Ia5String {
        text.try_into().unwrap()
    }

    #[test]
    fn the_first_uri_names_it_or_else_the_first_dns_name() {
        let ca = ca();
        let (uri, dns) = (|name| SanType::URI(text(name)), |name| SanType::DnsName(text(name)));
        for (names, expected) in [
            (vec![dns("A.example"), uri("spiffe://A/b"), uri("spiffe://c")], Some("spiffe://A/b")),
            (vec![dns("A.Example"), dns("b.example")], Some("a.example")),
            // What a CA has let through as a URI is no DNS name.
            (vec![uri("a.example"), dns("b.example")], None),
            (vec![SanType::Rfc822Name(text("a@b.example"))], None),
            (vec![], None),
        ] {
            let found = shown(&ca, names.clone());
            assert_eq!(found.ok().map(|shown| shown.name), expected.map(Arc::from), "{names:?}");
        }
    }

    #[test]
    fn a_first_name_that_cannot_be_read_is_not_passed_over() {
        let ca = ca();
        // Names as they stand: their tags, and what they hold.
        let of = |names: &[(u8, &[u8])]| {
            let held: Vec<u8> = names
                .iter()
                .flat_map(|(tag, name)| [&[*tag, u8::try_from(name.len()).unwrap()], *name].concat())
                .collect();
            let content = [&[0x30, u8::try_from(held.len()).unwrap()], &held[..]].concat();
            let extension = CustomExtension::from_oid_content(&[2, 5, 29, 17], content);
            shown_with(&ca, |params| params.custom_extensions = vec![extension]).map(|shown| shown.name)
        };
        let (uri, dns) = ((URI, &b"spiffe://a/jobs"[..]), (DNS, &b"jobs.example"[..]));
        for (first, said) in [
            ((URI, &b"\xff:x"[..]), "\"\\xff:x\", cannot be read"),
            ((URI, b"spiffe://a/jobs\n"), "cannot be read"),
            ((URI, b"spiffe"), "its first URI, \"spiffe\", is none"),
        ] {
            assert!(of(&[first, uri]).unwrap_err().contains(said), "{first:?}");
            assert!(of(&[first, dns]).unwrap_err().contains(said), "{first:?}");
        }
        assert!(of(&[(DNS, b"bad name"), dns]).unwrap_err().contains("\"bad name\", cannot be read"));
        // What decides nothing may be what it likes.
        assert_eq!(of(&[(DNS, b"bad name"), uri]).unwrap().as_ref(), "spiffe://a/jobs");
        assert_eq!(of(&[(0x81, b"a@b"), uri, (URI, b"\xff")]).unwrap().as_ref(), "spiffe://a/jobs");
        assert!(of(&[]).unwrap_err().contains("names neither"));
    }

    #[test]
    fn a_root_holds_in_its_days_alone() {
        let with = |change: fn(&mut CertificateParams)| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            change(&mut params);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let uri = || vec![SanType::URI(text("spiffe://a"))];
        let past = with(|params| params.not_after = date_time_ymd(2026, 1, 1));
        let future = with(|params| params.not_before = date_time_ymd(2028, 1, 1));
        for (ca, said) in [(&past, "CertExpired"), (&future, "CertNotValidYet")] {
            let error = shown(ca, uri()).map(|shown| shown.name).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        // It ends before what it has signed.
        let ending = with(|params| params.not_after = date_time_ymd(2028, 1, 1));
        let shown = shown(&ending, uri()).unwrap();
        let end = 1_830_297_600_000;
        assert!(shown.name(Some(&tls(&[&ending])), end).is_ok());
        assert!(shown.name(Some(&tls(&[&ending])), end + 1_000).is_err());
    }

    #[test]
    fn it_holds_until_its_last_second_and_while_its_ca_is_trusted() {
        let (old, new) = (ca(), ca());
        let shown = shown(&old, vec![SanType::URI(text("spiffe://a"))]).unwrap();
        let said = |roots: &[&Ca], at| {
            shown.name(Some(&tls(roots)), at).map_err(|error| error.message.unwrap_or_default())
        };
        let end = 1_861_920_000_000;
        assert_eq!(said(&[&old], end), Ok("spiffe://a"));
        assert!(said(&[&old], end + 1_000).unwrap_err().contains("has expired"));
        assert!(said(&[&new], NOW).unwrap_err().contains("is of no CA that is trusted by now"));
        assert_eq!(said(&[&new, &old], NOW), Ok("spiffe://a"));
        assert!(said(&[&new], NOW).is_err(), "what was found is kept for those roots alone");
        assert!(shown.name(None, NOW).unwrap_err().to_string().contains("is not asked for any more"));
        let idle = Duration::from_secs(60);
        assert!(!shown.ends_soon(idle, end - 60_000));
        assert!(shown.ends_soon(idle, end - 59_999));
    }

    #[test]
    fn a_long_chain_is_refused_before_every_order_of_it_is_tried() {
        let (trusted, made_up) = (ca(), ca());
        let leaf = CertificateParams::new(Vec::new()).unwrap();
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &trusted).unwrap();
        let tls = tls(&[&trusted]);
        let verifier = &tls.client_ca.as_ref().unwrap().verifier;
        let now = UnixTime::since_unix_epoch(Duration::from_millis(NOW));
        let beside = |count| vec![made_up.der().clone(); count];
        assert!(verifier.verify_client_cert(leaf.der(), &beside(3), now).is_ok());
        assert!(verifier.verify_client_cert(leaf.der(), &beside(4), now).is_err());
    }
}
