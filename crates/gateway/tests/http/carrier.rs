//! How the test's clients connect: without TLS.

use std::net::SocketAddr;

use heatsink_gateway::Limits;
use heatsink_gateway::http::{Hosts, Settings};
use tokio::net::TcpStream;

pub type Stream = TcpStream;

pub async fn connect(address: SocketAddr) -> Stream {
    TcpStream::connect(address).await.unwrap()
}

/// The socket below.
pub fn socket(stream: &Stream) -> &TcpStream {
    stream
}

pub fn settings(hosts: Hosts, limits: &Limits) -> Settings {
    Settings::plain(hosts, limits)
}
