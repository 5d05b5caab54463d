//! Files of the configuration that are unfit for it: pipes, devices, modes that let others write,
//! and a certificate whose time is over. What takes rights away does not wait for it.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::TABLE;
use crate::certified::{GET, RULES, files, is_refused, send, start};
use crate::process::run;
use crate::reload::{GENERATION, REFUSED, until};
use crate::secured::{Files, address, mode, refused};

/// A certificate of the server that has expired.
fn expire(files: &Files) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2026, 1, 1);
    std::fs::write(files.path("cert.pem"), params.signed_by(&key, &files.ca).unwrap().pem()).unwrap();
    std::fs::write(files.path("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn a_client_is_taken_away_while_the_servers_certificate_has_expired() {
    let (files, flags) = files("unfit-expired", RULES);
    let server = start(&flags, "127.0.0.1:0");
    let at = address(&server);
    let connect = |name| files.connect_as(&at, Some((&files.ca, name)));
    let (mut jobs, mut team) = (connect("spiffe://a/jobs"), connect("spiffe://a/team"));
    assert_eq!(send(&mut jobs, "CreateTable", TABLE).0, 200);
    assert_eq!(send(&mut team, "GetItem", GET).0, 200);
    let expires = "heatsink_tls_certificate_expires_seconds";
    let before = server.metric(expires);
    expire(&files);
    std::fs::write(files.path("rules.toml"), RULES.replace("a/team", "a/gone")).unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 2.0);
    is_refused(&send(&mut team, "GetItem", GET), "The certificate spiffe://a/team is of no client");
    is_refused(&send(&mut connect("spiffe://a/team"), "GetItem", GET), "is of no client");
    assert_eq!(send(&mut connect("spiffe://a/gone"), "GetItem", GET).0, 200);
    assert_eq!((server.metric(REFUSED), server.metric(expires)), (1.0, before));
    // So is a CA, and whatever else is wrong with the files of the server's own.
    let new = crate::certified::ca();
    std::fs::write(files.path("clients.pem"), new.pem().repeat(2)).unwrap();
    std::fs::write(files.path("cert.pem"), "half").unwrap();
    server.signal("HUP");
    until(&server, GENERATION, 3.0);
    is_refused(&send(&mut jobs, "GetItem", GET), "is of no CA that is trusted by now");
    assert_eq!(send(&mut files.connect_as(&at, Some((&new, "spiffe://a/jobs"))), "GetItem", GET).0, 200);
    // What is wrong with the rest is refused as ever.
    std::fs::write(files.path("clients.pem"), "").unwrap();
    server.signal("HUP");
    until(&server, REFUSED, 3.0);
    assert_eq!(server.metric(GENERATION), 3.0);
    std::fs::write(files.path("clients.pem"), new.pem()).unwrap();
    files.renew();
    server.signal("HUP");
    until(&server, GENERATION, 4.0);
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("clients.pem:1 already"), "{log}");
    for said in [
        "cert.pem:1: the certificate has expired, on 2026-01-01T00:00:00Z",
        "cert.pem: it holds no certificate",
    ] {
        let kept =
            |line: &&str| line.contains(said) && line.contains("the certificate of before stays in force");
        assert_eq!(log.lines().filter(kept).count(), 1, "{said}: {log}");
    }
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn what_is_no_regular_file_holds_nothing_up() {
    let (files, flags) = files("unfit-pipe", RULES);
    let server = start(&flags, "127.0.0.1:0");
    let mut refusals = 0.0;
    for name in ["rules.toml", "clients.pem"] {
        let file = files.path(name);
        let text = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        server.signal("HUP");
        refusals += 1.0;
        until(&server, REFUSED, refusals);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        server.signal("HUP");
        refusals += 1.0;
        until(&server, REFUSED, refusals);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, &text).unwrap();
        let generation = server.metric(GENERATION);
        server.signal("HUP");
        until(&server, GENERATION, generation + 1.0);
    }
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    for name in ["rules.toml", "clients.pem"] {
        let told = format!("{name}: it is no regular file");
        assert_eq!(log.lines().filter(|line| line.contains(&told)).count(), 2, "{name}: {log}");
    }
    // A command reads once: the pipe of a shell is as good.
    let pipe = files.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let into = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(into, RULES).unwrap());
    assert!(run(&["config", "check", "--rules", pipe.to_str().unwrap()]).status.success());
    writer.join().unwrap();
    // Nor is such a thing waited for at the start.
    let clients = files.path("clients.pem");
    std::fs::remove_file(&clients).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&clients).status().unwrap().success());
    assert!(refused(&flags, &[]).contains("clients.pem: it is no regular file"));
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn rules_with_clients_that_others_may_change_are_refused() {
    let (files, flags) = files("unfit-mode", RULES);
    let rules = files.path("rules.toml");
    let server = start(&flags, "127.0.0.1:0");
    mode(&rules, 0o666);
    std::fs::write(&rules, RULES.replace("a/team", "a/mine")).unwrap();
    server.signal("HUP");
    until(&server, REFUSED, 1.0);
    assert_eq!(server.metric(GENERATION), 1.0);
    drop(server);
    for (bits, is_fit) in [(0o666, false), (0o664, false), (0o646, false), (0o644, true), (0o444, true)] {
        mode(&rules, bits);
        let checked = run(&["config", "check", "--rules", rules.to_str().unwrap()]);
        assert_eq!(checked.status.success(), is_fit, "{bits:o}");
        if !is_fit {
            let said = refused(&flags, &[]);
            let expected = format!(
                "rules.toml: it names clients, and others on this machine can change it (mode {bits:04o}): `chmod go-w` it"
            );
            assert!(said.contains(&expected), "{said}");
        }
    }
    // Without clients nothing is theirs to give.
    mode(&rules, 0o666);
    std::fs::write(&rules, "[[rule]]\ntable = \"a*\"\nstrategy = \"calculated\"\nshards = 4\n").unwrap();
    assert!(run(&["config", "check", "--rules", rules.to_str().unwrap()]).status.success());
    std::fs::remove_dir_all(&files.dir).unwrap();
}
