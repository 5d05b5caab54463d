//! Where clients connect: an address of TCP, or a Unix socket.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::net::{TcpListener, UnixListener};

use super::stream::Stream;

/// A socket that listens for clients.
#[derive(Debug)]
pub enum Listener {
    /// An address of TCP.
    Tcp(TcpListener),
    /// A Unix socket. Who may open its file may ask.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Listener::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Listener::Unix(listener)
    }
}

impl Listener {
    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Listener::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
            Listener::Unix(listener) => Stream::Unix(listener.accept().await?.0),
        })
    }

    /// A connection that waits already to be accepted. The system resets those that still wait when
    /// the listener closes.
    pub(super) async fn waiting(&self) -> Option<Stream> {
        poll_fn(|cx| {
            Poll::Ready(match self {
                Listener::Tcp(listener) => match listener.poll_accept(cx) {
                    Poll::Ready(Ok((stream, _))) => Some(Stream::Tcp(stream)),
                    _ => None,
                },
                Listener::Unix(listener) => match listener.poll_accept(cx) {
                    Poll::Ready(Ok((stream, _))) => Some(Stream::Unix(stream)),
                    _ => None,
                },
            })
        })
        .await
    }
}
