//! TLS of the process: its flags and files.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, SanType};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::process::{Server, post, run, scratch};

/// A CA, and the files of a server's certificate by it.
pub struct Files {
    pub ca: CertifiedIssuer<'static, KeyPair>,
    pub dir: PathBuf,
}

pub type Stream = StreamOwned<ClientConnection, TcpStream>;

impl Files {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let files = Files { ca, dir: scratch(name) };
        std::fs::write(files.path("ca.pem"), files.ca.pem()).unwrap();
        files.renew();
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Another certificate with another key, in the same files.
    pub fn renew(&self) {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(vec!["localhost".to_owned(), "store.example".to_owned()]).unwrap();
        let cert = cert.signed_by(&key, &self.ca).unwrap();
        std::fs::write(self.path("cert.pem"), cert.pem()).unwrap();
        std::fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
        std::fs::set_permissions(self.path("key.pem"), PermissionsExt::from_mode(0o600)).unwrap();
    }

    pub fn flags(&self) -> [String; 4] {
        let path = |name| self.path(name).display().to_string();
        ["--tls-cert".to_owned(), path("cert.pem"), "--tls-key".to_owned(), path("key.pem")]
    }

    pub fn start(&self, more: &[&str]) -> Server {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Server::start(&flags)
    }

    /// A connection that trusts the CA.
    fn connect(&self, address: &str) -> Stream {
        self.connect_as(address, None)
    }

    /// The same, of a client that shows a certificate with this name, by that CA.
    pub fn connect_as(&self, address: &str, shown: Option<(&Issuer<'_, KeyPair>, &str)>) -> Stream {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.pem().as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => config.with_no_client_auth(),
            Some((ca, name)) => {
                let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::default());
                params.subject_alt_names = vec![SanType::URI(name.try_into().unwrap())];
                let cert = params.signed_by(&key, ca).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
                config.with_client_auth_cert(vec![cert.der().clone()], key).unwrap()
            }
        };
        let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        StreamOwned::new(session, TcpStream::connect(address).unwrap())
    }

    pub fn ask(&self, address: &str) -> String {
        let mut stream = self.connect(address);
        stream.write_all(&post("DynamoDB_20120810.ListTables", b"{}")).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

pub fn address(server: &Server) -> String {
    server.endpoint().trim_start_matches("https://").to_owned()
}

/// Why the server does not start.
pub fn refused(flags: &[String], more: &[&str]) -> String {
    let flags = flags.iter().map(String::as_str).chain(more.iter().copied());
    let args: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"].into_iter().chain(flags).collect();
    let output = run(&args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    said
}

pub fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn clients_are_served_over_tls() {
    let files = Files::new("tls");
    let server = files.start(&[]);
    assert!(server.endpoint().starts_with("https://127.0.0.1:"), "{}", server.endpoint());
    let answer = files.ask(&address(&server));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.metric("heatsink_tls_handshakes_total{outcome=\"done\"}"), 1.0);
    assert!(server.metric("heatsink_tls_certificate_expires_seconds") > 1.8e9);
    assert_eq!(server.stop("TERM").0, Some(0));
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_told_in_one_line() {
    let files = Files::new("tls-wrong");
    let flags = files.flags();
    let (cert, key) = (files.path("cert.pem"), files.path("key.pem"));
    mode(&key, 0o644);
    let said = refused(&flags, &[]);
    assert!(
        said.contains("key.pem: others on this machine can read") && said.contains("chmod 600"),
        "{said}"
    );
    mode(&key, 0o600);
    let whole = std::fs::read_to_string(&cert).unwrap();
    std::fs::write(&cert, &whole[..whole.len() / 2]).unwrap();
    let said = refused(&flags, &[]);
    assert!(said.contains("cert.pem:1: ") && said.contains("half written"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    std::fs::write(&cert, &whole).unwrap();
    let ca = files.path("empty.pem");
    std::fs::write(&ca, "").unwrap();
    let said = refused(&flags, &["--tls-client-ca", ca.to_str().unwrap()]);
    assert!(said.contains("empty.pem: it holds no certificate"), "{said}");
    std::fs::remove_file(&key).unwrap();
    let said = refused(&flags, &[]);
    assert!(said.contains("--tls-key") && said.contains("No such file"), "{said}");
    // Beyond loopback TLS alone does not say who asks.
    files.renew();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let output = run(&[&["serve", "--listen", "0.0.0.0:0"], &flags[..]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(64) && said.contains("needs [[client]] in the rules or --tls-client-ca"),
        "{said}"
    );
    std::fs::remove_dir_all(&files.dir).unwrap();
}

#[test]
fn beyond_loopback_goes_with_clients_that_show_who_they_are_or_if_it_is_wanted() {
    let files = Files::new("tls-beyond");
    let flags = files.flags();
    let ca = files.path("ca.pem");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let rules = files.path("clients.toml");
    std::fs::write(&rules, "[[client]]\nid = \"a\"\nsecret_env = \"SECRET_OF_A\"\n").unwrap();
    let by_keys = ["--rules", rules.to_str().unwrap()];
    for more in [&["--tls-client-ca", ca.to_str().unwrap()][..], &by_keys, &["--insecure-listen"]] {
        let mut command = crate::process::heatsink();
        command.env("SECRET_OF_A", "secret");
        command.args(["serve", "--output", "json", "--listen", "0.0.0.0:0"]).args(&flags).args(more);
        assert_eq!(Server::of(&mut command).stop("TERM").0, Some(0));
    }
    std::fs::remove_dir_all(&files.dir).unwrap();
}

/// A proxy that takes CONNECT to anywhere and leads to `to`; it counts.
fn proxy(to: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let tunnels = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tunnels);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut head) = (client.unwrap(), Vec::new());
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            if !head.starts_with(b"CONNECT store.example:443 ") {
                continue;
            }
            counted.fetch_add(1, Ordering::Relaxed);
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let store = TcpStream::connect(&to).unwrap();
            for (mut from, mut into) in
                [(client.try_clone().unwrap(), store.try_clone().unwrap()), (store, client)]
            {
                std::thread::spawn(move || std::io::copy(&mut from, &mut into));
            }
        }
    });
    (address, tunnels)
}

#[test]
fn an_upstream_is_reached_by_its_own_ca_and_through_a_proxy() {
    let files = Files::new("upstream-ca");
    let store = files.start(&[]);
    let at = address(&store);
    let direct = format!("https://localhost:{}", at.rsplit(':').next().unwrap());
    let (proxy, tunnels) = proxy(at);
    let ca = files.path("ca.pem").display().to_string();
    let start = |upstream: &str, more: &[&str], environment: &[(&str, &str)]| {
        let mut command = crate::process::heatsink();
        command.args(["serve", "--output", "json", "--listen", "127.0.0.1:0", "--upstream", upstream]);
        command.args(more).env("AWS_REGION", "us-east-1").envs(environment.iter().copied());
        command
    };
    let by_ca = ["--upstream-ca", &ca];
    let served = [
        start(&direct, &by_ca, &[]),
        start(&direct, &[], &[("AWS_CA_BUNDLE", &ca)]),
        start(&direct, &[], &[("SSL_CERT_FILE", &ca)]),
        start("https://store.example", &by_ca, &[("HTTPS_PROXY", &proxy)]),
    ];
    for mut command in served {
        let gateway = Server::of(&mut command);
        assert_eq!(crate::process::call(&gateway.endpoint(), "ListTables", "{}").0, 200);
        assert_eq!(gateway.stop("TERM").0, Some(0));
    }
    assert!(tunnels.load(Ordering::Relaxed) > 0);
    // Nobody else's certificates are enough, and a file without any is told.
    let empty = files.path("empty.pem").display().to_string();
    std::fs::write(&empty, "").unwrap();
    for (mut command, code, said) in [
        (start(&direct, &[], &[]), 69, "UnknownIssuer"),
        (start(&direct, &["--upstream-ca", &empty], &[]), 64, "empty.pem: it holds no certificate"),
        (start(&direct, &[], &[("AWS_CA_BUNDLE", "/no/such.pem")]), 64, "AWS_CA_BUNDLE /no/such.pem"),
    ] {
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && stderr.contains(said), "{said}: {stderr}");
    }
    std::fs::remove_dir_all(&files.dir).unwrap();
}
