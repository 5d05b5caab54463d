//! What the extensions of a certificate say that the verifier does not: whether it is of a CA, may
//! sign others, and its alternative names as they stand, those that cannot be read too (RFC 5280,
//! section 4.2).
//!
//! Not here: whether it is well-formed, which whoever has read it before says; its dates (`tls`).

const BOOLEAN: u8 = 0x01;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const EXTENSIONS: u8 = 0xa3;

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// `keyCertSign`, the sixth bit.
const SIGNS_CERTIFICATES: u8 = 0x04;

/// The tags of alternative names.
pub(super) const DNS: u8 = 0x82;
pub(super) const URI: u8 = 0x86;

/// Whether it says that it is of a CA.
pub(super) fn is_of_ca(certificate: &[u8]) -> bool {
    let constraints = extension(certificate, BASIC_CONSTRAINTS).and_then(|found| held(SEQUENCE, found));
    constraints.and_then(|found| held(BOOLEAN, found)) == Some(&[0xff])
}

/// Whether its key may sign certificates: one that says nothing of its use may.
pub(super) fn may_sign(certificate: &[u8]) -> bool {
    extension(certificate, KEY_USAGE).is_none_or(|found| {
        // The first byte counts the bits that are none.
        let bits = held(BIT_STRING, found).and_then(|bits| bits.get(1));
        bits.is_some_and(|bits| bits & SIGNS_CERTIFICATES != 0)
    })
}

/// The first alternative name of that kind, as it stands.
pub(super) fn first_name(certificate: &[u8], kind: u8) -> Option<&[u8]> {
    let names = held(SEQUENCE, extension(certificate, ALTERNATIVE_NAME)?)?;
    values(names).find_map(|(tag, name)| (tag == kind).then_some(name))
}

fn extension<'a>(certificate: &'a [u8], id: &[u8]) -> Option<&'a [u8]> {
    let to_be_signed = held(SEQUENCE, held(SEQUENCE, certificate)?)?;
    let (_, extensions) = values(to_be_signed).find(|(tag, _)| *tag == EXTENSIONS)?;
    values(held(SEQUENCE, extensions)?).find_map(|(_, one)| {
        let mut parts = values(one);
        let is_it = parts.next() == Some((OBJECT_IDENTIFIER, id));
        let content = parts.find(|(tag, _)| *tag == OCTET_STRING);
        content.filter(|_| is_it).map(|(_, content)| content)
    })
}

/// What the first value holds, if it has that tag.
fn held(tag: u8, der: &[u8]) -> Option<&[u8]> {
    values(der).next().filter(|(found, _)| *found == tag).map(|(_, held)| held)
}

/// The values that stand one after the other, with their tags.
fn values(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (tag, held, rest) = value(der)?;
        der = rest;
        Some((tag, held))
    })
}

/// One value: its tag, what it holds, and what comes after it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        ..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (held, rest) = rest.split_at_checked(length)?;
    Some((tag, held, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, KeyUsagePurpose, SanType};

    use super::*;

    fn made(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn what_a_certificate_says_of_itself_is_found() {
        let plain = made(|_| {});
        assert!(!is_of_ca(&plain) && may_sign(&plain) && first_name(&plain, URI).is_none());
        let no_ca = made(|params| params.is_ca = IsCa::ExplicitNoCa);
        assert!(!is_of_ca(&no_ca));
        let ca = made(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(3));
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        });
        assert!(is_of_ca(&ca) && may_sign(&ca));
        let signs_none = made(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
        });
        assert!(is_of_ca(&signs_none) && !may_sign(&signs_none));
        // Names whose length takes more than one byte, behind one of another kind.
        let long = format!("spiffe://a/{}", "x".repeat(300));
        let named = made(|params| {
            params.subject_alt_names = vec![
                SanType::DnsName("a.example".try_into().unwrap()),
                SanType::URI(long.as_str().try_into().unwrap()),
                SanType::URI("spiffe://b".try_into().unwrap()),
            ];
        });
        assert_eq!(first_name(&named, URI), Some(long.as_bytes()));
        assert_eq!(first_name(&named, DNS), Some(&b"a.example"[..]));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much_for_it(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0..600_usize) {
            let whole = made(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
            for bytes in [&bytes[..], &whole[..cut.min(whole.len())]] {
                let _ = (is_of_ca(bytes), may_sign(bytes), first_name(bytes, URI));
            }
        }
    }
}
