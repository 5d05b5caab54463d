//! A socket to an upstream that asks for the right of the request under way before each write.
//!
//! A large request takes many writes, and the process may be stopped between two of them, for
//! longer than its lease. So the right holds for one write: whoever drives the connection checks
//! the request's permit, grants a write, and grants the next one when the socket wants it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll};

use futures::future::{MapOk, TryFutureExt};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// What may be written. Orderings are relaxed: a stream and whoever drives it are polled by one
/// task.
#[derive(Debug, Default)]
pub(super) struct Right {
    next: AtomicU8,
    /// Whether a byte was written since the request began.
    sent: AtomicBool,
}

/// No request that has to ask is under way.
const FREE: u8 = 0;
const GRANTED: u8 = 1;
const NONE: u8 = 2;
/// A write was held back.
const WANTED: u8 = 3;

impl Right {
    /// A request begins. Where it has to ask, its first write is granted: it has just been asked
    /// for.
    pub(super) fn begin(&self, asks: bool) {
        self.sent.store(false, Ordering::Relaxed);
        self.next.store(if asks { GRANTED } else { FREE }, Ordering::Relaxed);
    }

    /// The request has its whole answer.
    pub(super) fn end(&self) {
        self.next.store(FREE, Ordering::Relaxed);
    }

    /// Takes back a grant that was not used. Returns whether a write was held back.
    pub(super) fn revoke(&self) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        if next != FREE {
            self.next.store(NONE, Ordering::Relaxed);
        }
        next == WANTED
    }

    /// Grants one write.
    pub(super) fn grant(&self) {
        self.next.store(GRANTED, Ordering::Relaxed);
    }

    /// Whether a byte of the request was written.
    pub(super) fn sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed)
    }

    /// Whether the next write may be done now. A grant is used up also where the socket then takes
    /// nothing: by the time it does, the process may have been stopped.
    fn take(&self) -> bool {
        match self.next.load(Ordering::Relaxed) {
            FREE => true,
            next => {
                self.next.store(if next == GRANTED { NONE } else { WANTED }, Ordering::Relaxed);
                next == GRANTED
            }
        }
    }
}

/// A socket, under TLS where there is TLS.
#[derive(Debug)]
pub(super) struct CheckedStream {
    socket: TokioIo<TcpStream>,
    right: Arc<Right>,
}

impl CheckedStream {
    fn new(socket: TokioIo<TcpStream>) -> Self {
        CheckedStream { socket, right: Arc::default() }
    }

    /// The right of what is written to this connection.
    pub(super) fn right(stream: &MaybeHttpsStream<CheckedStream>) -> Arc<Right> {
        let checked = match stream {
            MaybeHttpsStream::Http(checked) => checked,
            MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner(),
        };
        Arc::clone(&checked.right)
    }

    /// Writes by `write` if the request may.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TokioIo<TcpStream>>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if !self.right.take() {
            // Who drives the connection looks whether a write was held back, so nobody has to be
            // woken.
            return Poll::Pending;
        }
        let written = write(Pin::new(&mut self.socket), cx);
        if let Poll::Ready(Ok(1..)) = written {
            self.right.sent.store(true, Ordering::Relaxed);
        }
        written
    }
}

impl Drop for CheckedStream {
    fn drop(&mut self) {
        // The request was given up: the system throws away what it has not sent yet, and resets the
        // connection.
        if self.right.next.load(Ordering::Relaxed) != FREE {
            let _ = self.socket.inner().set_zero_linger();
        }
    }
}

impl Read for CheckedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl Write for CheckedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |socket, cx| socket.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |socket, cx| socket.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl Connection for CheckedStream {
    fn connected(&self) -> Connected {
        self.socket.connected()
    }
}

/// Makes checked streams.
#[derive(Clone)]
pub(super) struct CheckedConnector(pub(super) HttpConnector);

impl Service<Uri> for CheckedConnector {
    type Response = CheckedStream;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = MapOk<<HttpConnector as Service<Uri>>::Future, fn(TokioIo<TcpStream>) -> CheckedStream>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        self.0.call(uri).map_ok(CheckedStream::new)
    }
}
