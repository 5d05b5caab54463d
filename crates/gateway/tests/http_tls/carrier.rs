//! How the test's clients connect: over TLS, and trusting one CA.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use heatsink_gateway::Limits;
use heatsink_gateway::http::{Hosts, Settings};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::certificates::{Ca, Pair};

pub type Stream = TlsStream<TcpStream>;

/// The CA that all trust, and the server's certificate by it.
pub static CA: LazyLock<Ca> = LazyLock::new(Ca::new);
static PAIR: LazyLock<Pair> = LazyLock::new(|| CA.sign(&["localhost"]));

/// A client's side, with a certificate to show or without.
pub fn connector(pair: Option<&Pair>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CA.pem().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).map(Result::unwrap).collect();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

static CONNECTOR: LazyLock<TlsConnector> = LazyLock::new(|| connector(None));

pub async fn connect(address: SocketAddr) -> Stream {
    let socket = TcpStream::connect(address).await.unwrap();
    CONNECTOR.connect("localhost".try_into().unwrap(), socket).await.unwrap()
}

/// The socket below.
pub fn socket(stream: &Stream) -> &TcpStream {
    stream.get_ref().0
}

pub fn settings(hosts: Hosts, limits: &Limits) -> Settings {
    Settings { tls: Some(PAIR.tls(None).unwrap()), ..Settings::plain(hosts, limits) }
}
