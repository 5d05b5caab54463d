//! Clients that are known by their certificates: whom the process serves, what it does not start
//! with, and what it takes over while it serves.

use std::io::{Read, Write};
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::TABLE;
use crate::process::{Server, heatsink, post, run};
use crate::reload::{GENERATION, REFUSED, until};
use crate::secured::{Files, Stream, address, mode, refused};

pub const RULES: &str = "[[client]]\nid = \"jobs\"\ncertificate = \"spiffe://a/jobs\"\n\
    [[client]]\nid = \"team\"\ncertificate = \"spiffe://a/team\"\ntables = \"scores\"\nactions = \"GetItem\"\n";
pub const GET: &str = r#"{"TableName":"scores","Key":{"pk":{"S":"a"}}}"#;

/// Files with these rules; and the flags that name them.
pub fn files(name: &str, rules: &str) -> (Files, Vec<String>) {
    let files = Files::new(name);
    std::fs::write(files.path("rules.toml"), rules).unwrap();
    std::fs::write(files.path("clients.pem"), files.ca.pem()).unwrap();
    let path = |name| files.path(name).display().to_string();
    let more = ["--tls-client-ca".to_owned(), path("clients.pem"), "--rules".to_owned(), path("rules.toml")];
    let flags = files.flags().into_iter().chain(more).collect();
    (files, flags)
}

pub fn start(flags: &[String], listen: &str) -> Server {
    let mut command = heatsink();
    Server::of(command.args(["serve", "--output", "json", "--listen", listen]).args(flags))
}

/// Another CA.
pub fn ca() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// One request on a connection that goes on: its status, and what was answered.
pub fn send(stream: &mut Stream, operation: &str, body: &str) -> (u16, String) {
    let request = post(&format!("DynamoDB_20120810.{operation}"), body.as_bytes());
    let request = String::from_utf8(request).unwrap().replacen("connection: close\r\n", "", 1);
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&head));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head[9..12].parse().unwrap(), String::from_utf8(body).unwrap())
}

pub fn is_refused((status, told): &(u16, String), said: &str) {
    assert!(*status == 400 && told.contains(said), "{said}: {status} {told}");
}

#[test]
fn each_is_served_by_its_rights_and_counted_by_its_name() {
    let (files, flags) = files("certified", RULES);
    // Beyond loopback, since all clients show who they are.
    let server = start(&flags, "0.0.0.0:0");
    let at = format!("127.0.0.1:{}", address(&server).rsplit(':').next().unwrap());
    let connect = |name| files.connect_as(&at, Some((&files.ca, name)));
    let (mut jobs, mut team) = (connect("spiffe://a/jobs"), connect("spiffe://a/team"));
    assert_eq!(send(&mut jobs, "CreateTable", TABLE).0, 200);
    for _ in 0..3 {
        assert_eq!(send(&mut team, "GetItem", GET).0, 200);
    }
    is_refused(&send(&mut team, "Scan", r#"{"TableName":"scores"}"#), "User: team is not authorized");
    let mut other = connect("spiffe://a/other");
    is_refused(&send(&mut other, "GetItem", GET), "The certificate spiffe://a/other is of no client");
    let of_team = |outcome| {
        server.metric(&format!("heatsink_client_requests_total{{client=\"team\",outcome=\"{outcome}\"}}"))
    };
    assert_eq!((of_team("ok"), of_team("client_error")), (3.0, 1.0));
    assert_eq!(server.metric("heatsink_refused_total{limit=\"signature\"}"), 1.0);
    assert_eq!(server.stop("TERM").0, Some(0));
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn what_cannot_know_them_is_not_started() {
    let (files, flags) = files("certified-refused", RULES);
    let rules = |text: &str| std::fs::write(files.path("rules.toml"), text).unwrap();
    let clients = files.path("clients.pem");
    let without: Vec<String> = flags.iter().filter(|flag| !flag.contains("client")).cloned().collect();
    let said = refused(&without, &[]);
    assert!(said.contains("rules.toml:3: client[1].certificate: no certificate is asked for"), "{said}");
    let named = ["--rules", files.path("rules.toml").to_str().unwrap()].map(str::to_owned);
    assert!(refused(&named, &[]).contains("start with --tls-cert, --tls-key and --tls-client-ca"));
    rules(&RULES.replace("a/team", "a/jobs"));
    let said = refused(&flags, &[]);
    assert!(said.contains("rules.toml:6: client[2].certificate: two clients have the certificate spiffe://a/jobs: the other one stands in line 3"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    rules(RULES);
    mode(&clients, 0o622);
    let said = refused(&flags, &[]);
    assert!(said.contains("clients.pem: others on this machine can change it (mode 0622)"), "{said}");
    mode(&clients, 0o644);
    std::fs::write(&clients, std::fs::read(files.path("key.pem")).unwrap()).unwrap();
    assert!(refused(&flags, &[]).contains("clients.pem: it holds no certificate"));
    let checked = run(&["config", "check", "--rules", files.path("rules.toml").to_str().unwrap()]);
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(
        told.contains("client jobs (certificate spiffe://a/jobs): all actions of all tables")
            && told.contains("with --tls-client-ca"),
        "{told}"
    );
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn clients_and_their_ca_are_replaced_while_it_serves() {
    let (files, flags) = files("certified-reload", RULES);
    let server = start(&flags, "127.0.0.1:0");
    let (at, new) = (address(&server), ca());
    let connect = |name| files.connect_as(&at, Some((&files.ca, name)));
    let (mut jobs, mut team) = (connect("spiffe://a/jobs"), connect("spiffe://a/team"));
    assert_eq!(send(&mut jobs, "CreateTable", TABLE).0, 200);
    assert_eq!(send(&mut team, "GetItem", GET).0, 200);
    let write = |name: &str, text: &str| std::fs::write(files.path(name), text).unwrap();
    // What is wrong leaves all as it was.
    for (nth, (name, wrong)) in [
        ("clients.pem", String::new()),
        ("clients.pem", files.ca.pem()[..300].to_owned()),
        ("rules.toml", RULES.replace("a/team", "a/jobs")),
        ("rules.toml", RULES.replace("spiffe://a/team", "spiffe://a/*")),
        ("rules.toml", String::new()),
    ]
    .into_iter()
    .enumerate()
    {
        let before = std::fs::read_to_string(files.path(name)).unwrap();
        write(name, &wrong);
        server.signal("HUP");
        until(&server, REFUSED, (nth + 1) as f64);
        assert_eq!(send(&mut team, "GetItem", GET).0, 200);
        assert_eq!(send(&mut connect("spiffe://a/team"), "GetItem", GET).0, 200);
        write(name, &before);
    }
    let generation = server.metric(GENERATION);
    // A client that is taken away is not served on the connection that it has.
    write("rules.toml", RULES.split_at(RULES.rfind("[[client]]").unwrap()).0);
    server.signal("HUP");
    until(&server, GENERATION, generation + 1.0);
    is_refused(&send(&mut team, "GetItem", GET), "The certificate spiffe://a/team is of no client");
    assert_eq!(send(&mut jobs, "GetItem", GET).0, 200);
    // Nor who has a certificate of a CA that is trusted no more.
    write("clients.pem", &(files.ca.pem() + &new.pem()));
    server.signal("HUP");
    until(&server, GENERATION, generation + 2.0);
    assert_eq!(send(&mut jobs, "GetItem", GET).0, 200);
    let mut renewed = files.connect_as(&at, Some((&new, "spiffe://a/jobs")));
    assert_eq!(send(&mut renewed, "GetItem", GET).0, 200);
    write("clients.pem", &new.pem());
    server.signal("HUP");
    until(&server, GENERATION, generation + 3.0);
    is_refused(&send(&mut jobs, "GetItem", GET), "is of no CA that is trusted by now");
    assert_eq!(send(&mut renewed, "GetItem", GET).0, 200);
    let (code, log) = server.stop("TERM");
    assert_eq!(code, Some(0));
    for said in [
        "clients.pem: it holds no certificate",
        "clients.pem:1: the certificate that begins here has no end",
        "rules.toml:6: client[2].certificate: two clients have the certificate",
        "rules.toml:6: client[2].certificate: expected a URI",
        "the rules name no [[client]] any more",
    ] {
        let lines = log.lines().filter(|line| line.contains(said) && line.contains("stays in force"));
        assert_eq!(lines.count(), 1, "{said}: {log}");
    }
    assert!(Path::new(&files.dir).exists());
    std::fs::remove_dir_all(&files.dir).unwrap();
}
