//! What carries the bytes of a connection: its socket, or TLS over its socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use super::socket::Socket;

/// TLS over a socket. hyper writes to it, and so does what probes a client that may have gone: in
/// one task, one after the other.
#[derive(Clone)]
pub(super) struct Secured(Arc<Mutex<TlsStream<Socket>>>);

impl Secured {
    pub(super) fn new(stream: TlsStream<Socket>) -> Self {
        Secured(Arc::new(Mutex::new(stream)))
    }

    fn stream(&self) -> MutexGuard<'_, TlsStream<Socket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes bytes, and what of earlier ones waits.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.stream();
        let written = Pin::new(&mut *stream).poll_write(cx, bytes);
        if let (Poll::Ready(Ok(_)), Poll::Ready(Err(error))) =
            (&written, Pin::new(&mut *stream).poll_flush(cx))
        {
            return Poll::Ready(Err(error));
        }
        written
    }
}

/// The bytes of a connection, for hyper.
pub(super) enum Transport {
    Plain(Socket),
    Tls(Secured),
}

/// The same call of what carries the bytes.
macro_rules! carried {
    ($self:expr, $carrier:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Plain(socket) => {
                let $carrier = Pin::new(socket);
                $call
            }
            Transport::Tls(secured) => {
                let mut stream = secured.stream();
                let $carrier = Pin::new(&mut *stream);
                $call
            }
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        carried!(self, carrier => carrier.poll_read(cx, into))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        carried!(self, carrier => carrier.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        carried!(self, carrier => carrier.poll_write_vectored(cx, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carried!(self, carrier => carrier.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        carried!(self, carrier => carrier.poll_shutdown(cx))
    }
}
