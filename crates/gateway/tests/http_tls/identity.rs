//! Clients that show a certificate of their own, and are known by it.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use heatsink_access::Clients;
use heatsink_control::Rules;
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, http};
use heatsink_signature::SigningKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::carrier::{self, CA};
use crate::certificates::{Ca, Pair};
use crate::client::{Answer, Client, post};
use crate::server::{limits, service};
use crate::store::Double;

const BODY: &[u8] = br#"{"TableName":"abc","Key":{"pk":{"S":"a"}}}"#;

/// A server that asks clients for certificates of a CA.
pub struct Asking {
    pub address: SocketAddr,
    pub store: Double,
    pub live: http::Live,
    pub clients: Arc<ArcSwap<Clients>>,
}

impl Asking {
    pub async fn new(ca: &str, clients: Clients) -> Self {
        Asking::within(limits(), ca, clients).await
    }

    pub async fn within(limits: Limits, ca: &str, clients: Clients) -> Self {
        let (store, clients) = (Double::default(), Arc::new(ArcSwap::from_pointee(clients)));
        // A busy machine may take its time between two requests.
        let limits = Limits { head_read: Duration::from_secs(20), ..limits };
        let (service, env) = service(Arc::new(store.clone()), Rules::default(), limits).await;
        let service = Arc::new(service.with_clients(Arc::clone(&clients)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let live = http::Live::new(settings(ca));
        tokio::spawn(http::serve(listener, service, limits, live.clone(), env, std::future::pending()));
        Asking { address, store, live, clients }
    }

    pub async fn connect(&self, pair: &Pair) -> Client {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let connector = carrier::connector(Some(pair));
        Client::over(connector.connect("localhost".try_into().unwrap(), socket).await.unwrap())
    }

    pub async fn ask(&self, pair: &Pair, request: &[u8]) -> Answer {
        self.connect(pair).await.send(request).await
    }
}

pub fn settings(ca: &str) -> http::Settings {
    let tls = CA.sign(&["localhost"]).tls(Some(ca)).unwrap();
    http::Settings { tls: Some(tls), ..http::Settings::plain(http::Hosts::loopback(), &limits()) }
}

/// What a client with that certificate, or without, reads as its answer, or why there is none.
pub async fn answer(address: SocketAddr, pair: Option<&Pair>) -> Result<String, String> {
    let socket = TcpStream::connect(address).await.unwrap();
    let connector = carrier::connector(pair);
    let mut stream = connector
        .connect("localhost".try_into().unwrap(), socket)
        .await
        .map_err(|error| error.to_string())?;
    let request = String::from_utf8(post("GetItem", BODY)).unwrap();
    let request = request.replacen("host: localhost\r\n", "host: localhost\r\nconnection: close\r\n", 1);
    let mut answer = Vec::new();
    // A client learns that its certificate is refused when it reads.
    let _ = stream.write_all(request.as_bytes()).await;
    stream.read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn only_certificates_of_the_clients_ca_that_name_somebody_are_served() {
    let clients = Ca::new();
    let Asking { address, store, .. } = Asking::new(&clients.pem(), Clients::default()).await;
    for names in [&["spiffe://a/b"][..], &["team1.example"], &["spiffe://a/b", "team1.example"]] {
        let told = answer(address, Some(&clients.sign(names))).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 200"), "{names:?}: {told:?}");
    }
    let served = store.calls("GetItem");
    assert_eq!(served, 3);
    let expired = clients.sign_with(&["a.example"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let early = clients.sign_with(&["a.example"], |params| {
        params.not_before = rcgen::date_time_ymd(2090, 1, 1);
    });
    let of_servers = clients.sign_with(&["a.example"], |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    });
    let foreign = Ca::named("other").sign(&["a.example"]);
    let forged = Ca::new().sign(&["a.example"]);
    for (wrong, alert) in [
        (None, "CertificateRequired"),
        (Some(&foreign), "UnknownCA"),
        (Some(&forged), "DecryptError"),
        (Some(&expired), "CertificateExpired"),
        // TLS has no other word for one that does not hold yet.
        (Some(&early), "CertificateExpired"),
        (Some(&of_servers), "UnsupportedCertificate"),
    ] {
        let told = answer(address, wrong).await.unwrap_err();
        assert!(told.contains(alert), "{alert}: {told}");
    }
    let between = clients.intermediate(|params| {
        params.key_usages = vec![rcgen::KeyUsagePurpose::DigitalSignature];
    });
    let told = answer(address, Some(&between.sign(&["a.example"]))).await.unwrap_err();
    assert!(told.contains("UnknownCA"), "what stands between may not sign: {told}");
    let told = answer(address, Some(&clients.sign(&[]))).await;
    assert!(!told.is_ok_and(|answer| !answer.is_empty()), "it names nobody");
    assert_eq!(store.calls("GetItem"), served);
}

/// The clients of a text, in which `SECRET` stands for a file with the secret `secret`.
pub fn known(text: &str) -> Clients {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "secret").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let text = text.replace("SECRET", &format!("secret_file = \"{}\"", file.display()));
    Clients::load(Rules::read("rules", &text).unwrap().clients(), "eu-west-1").unwrap()
}

pub const CLIENTS: &str = "[[client]]\nid = \"jobs\"\ncertificate = \"spiffe://a/jobs\"\ntables = \"abc\"\nactions = \"GetItem\"\n\
    [[client]]\nid = \"both\"\ncertificate = \"both.example\"\nSECRET\n\
    [[client]]\nid = \"keys\"\nSECRET\n";

pub fn signed(operation: &str, body: &[u8], (id, secret): (&str, &str)) -> Vec<u8> {
    let (now, target) = (RealEnv.unix_millis(), format!("DynamoDB_20120810.{operation}"));
    let signed = SigningKey::derive(id, secret, None, "eu-west-1", now).sign("localhost", &target, body, now);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: {target}\r\n\
         x-amz-date: {}\r\nauthorization: {}\r\ncontent-length: {}\r\n\r\n",
        signed.date,
        signed.authorization,
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub fn refused(answer: &Answer, said: &str) {
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains(said), "{said}: {}", answer.text());
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate_and_need_not_sign() {
    let ca = Ca::new();
    let server = Asking::new(&ca.pem(), known(CLIENTS)).await;
    let jobs = ca.sign(&["spiffe://a/jobs", "keys.example"]);
    // As SDKs sign with whatever credentials they find, and as nobody does.
    for request in [signed("GetItem", BODY, ("AKIDOFAROLE", "any")), post("GetItem", BODY)] {
        assert_eq!(server.ask(&jobs, &request).await.status, 200);
    }
    assert_eq!(server.store.calls("GetItem"), 2);
    // Its rights are those of its section.
    for (operation, body) in
        [("DeleteItem", BODY), ("GetItem", br#"{"TableName":"other","Key":{"pk":{"S":"a"}}}"#)]
    {
        let told = server.ask(&jobs, &signed(operation, body, ("any", "any"))).await;
        refused(&told, &format!("User: jobs is not authorized to perform: dynamodb:{operation}"));
    }
    // What an SDK sends is looked at all the same.
    let elsewhere = signed("GetItem", BODY, ("any", "any"));
    let elsewhere = String::from_utf8(elsewhere).unwrap().replace("eu-west-1", "eu-west-2");
    refused(&server.ask(&jobs, elsewhere.as_bytes()).await, "Sign for 'eu-west-1'");
    let nothing = String::from_utf8(post("GetItem", BODY)).unwrap().replace("authorization", "x-nothing");
    refused(&server.ask(&jobs, nothing.as_bytes()).await, "MissingAuthenticationTokenException");
    assert_eq!((server.store.calls("GetItem"), server.store.calls("DeleteItem")), (2, 0));
}

#[tokio::test]
async fn certificate_and_signature_are_of_one_client() {
    let ca = Ca::new();
    let server = Asking::new(&ca.pem(), known(CLIENTS)).await;
    let (jobs, both) = (ca.sign(&["spiffe://a/jobs"]), ca.sign(&["Both.example"]));
    let (nobody, keys) = (ca.sign(&["spiffe://a/nobody"]), ("keys", "secret"));
    let get = |key| signed("GetItem", BODY, key);
    for (pair, key) in [(&both, ("both", "secret")), (&nobody, keys)] {
        assert_eq!(server.ask(pair, &get(key)).await.status, 200, "{key:?}");
    }
    assert_eq!(server.store.calls("GetItem"), 2);
    for (pair, key, said) in [
        // The certificate of one client with the signature of another.
        (&jobs, keys, "The certificate is of the client jobs, and the request names the access key of keys"),
        (&both, keys, "The certificate is of the client both, and the request names the access key of keys"),
        (&nobody, ("both", "secret"), "The client both has to show a certificate of its own"),
        (&both, ("both", "guess"), "InvalidSignatureException"),
        (&both, ("any", "any"), "UnrecognizedClientException"),
        (&nobody, ("any", "any"), "Nor is the certificate spiffe://a/nobody of a client."),
        (&nobody, ("jobs", "any"), "Nor is the certificate spiffe://a/nobody of a client."),
    ] {
        refused(&server.ask(pair, &get(key)).await, said);
    }
    // Where nobody signs the head is enough for a refusal.
    server.clients.store(Arc::new(known("[[client]]\nid = \"jobs\"\ncertificate = \"spiffe://a/jobs\"\n")));
    let told = server.ask(&nobody, &get(keys)).await;
    refused(&told, "UnrecognizedClientException");
    refused(&told, "The certificate spiffe://a/nobody is of no client");
    assert_eq!(told.header("connection"), Some("close"));
    assert_eq!(server.store.calls("GetItem"), 2);
}

#[tokio::test]
async fn a_client_that_is_taken_away_is_refused_on_the_connection_that_it_has() {
    let ca = Ca::new();
    let server = Asking::new(&ca.pem(), known(CLIENTS)).await;
    let mut jobs = server.connect(&ca.sign(&["spiffe://a/jobs"])).await;
    let mut both = server.connect(&ca.sign(&["both.example"])).await;
    let own = || signed("GetItem", BODY, ("both", "secret"));
    assert_eq!(jobs.send(&post("GetItem", BODY)).await.status, 200);
    assert_eq!(both.send(&own()).await.status, 200);
    let (_, rest) = CLIENTS.split_at(CLIENTS.rfind("[[client]]\nid = \"both\"").unwrap());
    server.clients.store(Arc::new(known(rest)));
    refused(&jobs.send(&signed("GetItem", BODY, ("any", "any"))).await, "spiffe://a/jobs");
    assert_eq!(both.send(&own()).await.status, 200);
    assert_eq!(server.store.calls("GetItem"), 3);
}

#[tokio::test]
async fn a_ca_that_is_taken_away_ends_the_connections_of_its_clients() {
    let (old, new) = (Ca::named("old"), Ca::named("new"));
    let server = Asking::new(&old.pem(), known(CLIENTS)).await;
    let name = ["spiffe://a/jobs"];
    let get = post("GetItem", BODY);
    let mut client = server.connect(&old.sign(&name)).await;
    assert_eq!(client.send(&get).await.status, 200);
    // Both, while clients get certificates of the new one.
    server.live.replace(settings(&(old.pem() + &new.pem())));
    assert_eq!(client.send(&get).await.status, 200);
    let mut renewed = server.connect(&new.sign(&name)).await;
    assert_eq!(renewed.send(&get).await.status, 200);
    server.live.replace(settings(&new.pem()));
    assert_eq!(renewed.send(&get).await.status, 200);
    let told = client.send(&get).await;
    refused(
        &told,
        "The certificate spiffe://a/jobs, which this connection began with, is of no CA that is trusted by now",
    );
    assert!(client.is_closed().await);
    let told = answer(server.address, Some(&old.sign(&name))).await.unwrap_err();
    assert!(told.contains("UnknownCA"), "{told}");
    assert_eq!(server.store.calls("GetItem"), 4);
}

#[tokio::test]
async fn a_connection_ends_before_its_certificate() {
    let ca = Ca::new();
    let server = Asking::new(&ca.pem(), Clients::default()).await;
    for (seconds, connection) in [(15, Some("close")), (3_600, None)] {
        let now = Duration::from_millis(RealEnv.unix_millis());
        let pair = ca.sign_with(&["spiffe://a/jobs"], |params| {
            params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + Duration::from_secs(seconds);
        });
        let told = server.ask(&pair, &post("GetItem", BODY)).await;
        assert_eq!((told.status, told.header("connection")), (200, connection));
    }
}
