//! Files that are no certificates, keys or CAs that can be used: each is told by file, line and
//! what to do.

use rcgen::date_time_ymd;

use crate::carrier::CA;
use crate::certificates::{Ca, read};

fn problem(cert: &str, key: &str, ca: Option<&str>) -> String {
    read(cert, key, ca).unwrap_err()
}

#[test]
fn a_pair_that_fits_is_taken() {
    let pair = CA.sign_with(&["Heatsink.example", "*.x.example"], |params| {
        params.not_after = date_time_ymd(2030, 1, 1);
    });
    let tls = pair.tls(Some(&CA.pem())).unwrap();
    assert_eq!(tls.names(), ["heatsink.example", "*.x.example"]);
    assert!(tls.asks_clients());
    assert_eq!(tls.expires(), 1_893_456_000);
}

#[test]
fn a_pair_that_does_not_fit_is_told() {
    let (one, other) = (CA.sign(&["localhost"]), CA.sign(&["localhost"]));
    let told = problem(&one.cert, &other.key, None);
    assert!(told.starts_with("key.pem: it is not the key of the certificate in cert.pem"), "{told}");
    let told = problem(&one.cert, &one.cert, None);
    assert!(told.starts_with("key.pem: it holds no private key"), "{told}");
    let told = problem(&one.key, &one.key, None);
    assert!(told.starts_with("cert.pem: it holds no certificate"), "{told}");
}

#[test]
fn a_certificate_out_of_its_time_is_told_with_its_day() {
    let past = CA.sign_with(&["localhost"], |params| params.not_after = date_time_ymd(2026, 3, 4));
    let told = past.tls(None).unwrap_err();
    assert!(told.starts_with("cert.pem:1: the certificate has expired, on 2026-03-04T00:00:00Z"), "{told}");
    let future = CA.sign_with(&["localhost"], |params| params.not_before = date_time_ymd(2040, 3, 4));
    let told = future.tls(None).unwrap_err();
    assert!(told.starts_with("cert.pem:1: the certificate does not hold before 2040-03-04"), "{told}");
    // Of a chain, each has to hold.
    let pair = CA.sign(&["localhost"]);
    let told = problem(&(pair.cert.clone() + &past.cert), &pair.key, None);
    let line = pair.cert.lines().count() + 1;
    assert!(told.starts_with(&format!("cert.pem:{line}: the certificate has expired")), "{told}");
}

#[test]
fn files_half_written_or_empty_are_told() {
    let pair = CA.sign(&["localhost"]);
    for cut in [30, pair.cert.len() / 2, pair.cert.len() - 10] {
        let told = problem(&pair.cert[..cut], &pair.key, None);
        assert!(told.starts_with("cert.pem:1: the certificate that begins here has no end"), "{told}");
        let cut = cut.min(pair.key.len() - 10);
        let told = problem(&pair.cert, &pair.key[..cut], None);
        assert!(told.starts_with("key.pem:1: the private key that begins here has no end"), "{told}");
    }
    assert!(problem("", &pair.key, None).starts_with("cert.pem: it holds no certificate"));
    for ca in ["", "just text", &pair.key] {
        let told = problem(&pair.cert, &pair.key, Some(ca));
        assert!(told.starts_with("ca.pem: it holds no certificate"), "{told}");
    }
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(problem(garbage, &pair.key, None).starts_with("cert.pem:1: the certificate cannot be read"));
    let ca = Ca::new().pem() + garbage;
    let line = ca.lines().count() - 2;
    let told = problem(&pair.cert, &pair.key, Some(&ca));
    assert!(told.starts_with(&format!("ca.pem:{line}: the certificate cannot be read")), "{told}");
}

#[test]
fn what_can_never_be_a_root_is_told() {
    let (ca, pair) = (Ca::new(), CA.sign(&["localhost"]));
    let line = ca.pem().lines().count() + 1;
    let leaf = ca.sign(&["spiffe://a/pinned"]).cert;
    let signs_none = ca.intermediate(|params| {
        params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
    });
    for (other, said) in [
        (leaf, "the certificate is of no CA, and cannot be a root"),
        (signs_none.pem(), "the certificate may not sign others (key usage), and cannot be a root"),
    ] {
        let told = problem(&pair.cert, &pair.key, Some(&(ca.pem() + &other)));
        assert!(told.starts_with(&format!("ca.pem:{line}: {said}")), "{told}");
    }
}

#[test]
fn what_is_a_root_for_nothing_is_noticed_and_the_others_hold() {
    let (ca, pair) = (Ca::new(), CA.sign(&["localhost"]));
    let past = ca.intermediate(|params| params.not_after = date_time_ymd(2026, 3, 4)).pem();
    let future = ca.intermediate(|params| params.not_before = date_time_ymd(2040, 3, 4)).pem();
    let line = |before: &str| before.lines().count() + 1;
    for (other, said) in [
        (past, "this root has expired, on 2026-03-04T00:00:00Z"),
        (future, "this root does not hold before 2040-03-04T00:00:00Z"),
        (ca.pem(), "this root stands at ca.pem:1 already"),
    ] {
        let tls = pair.tls(Some(&(ca.pem() + &other))).unwrap();
        let expected = format!("ca.pem:{}: {said}", line(&ca.pem()));
        assert!(matches!(tls.notices(), [one] if one.starts_with(&expected)), "{:?}", tls.notices());
    }
    assert!(pair.tls(Some(&ca.pem())).unwrap().notices().is_empty());
    assert!(pair.tls(None).unwrap().notices().is_empty());
}
