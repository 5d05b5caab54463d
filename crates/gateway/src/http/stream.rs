//! The socket of a connection: TCP, or a Unix socket. Both are asked in the same words.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::task::{Context, Poll};

use tokio::io::{Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The same call of either socket.
macro_rules! either {
    ($self:expr, $socket:ident => $call:expr) => {
        match $self {
            Stream::Tcp($socket) => $call,
            Stream::Unix($socket) => $call,
        }
    };
}

impl Stream {
    /// Answers are one small write each; Nagle would hold them back.
    pub(super) fn send_at_once(&self) {
        if let Stream::Tcp(socket) = self
            && let Err(error) = socket.set_nodelay(true)
        {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
    }

    /// Lets the system drop what it has buffered once the socket closes.
    pub(super) fn forget_buffered(&self) {
        if let Stream::Tcp(socket) = self {
            let _ = socket.set_zero_linger();
        }
    }

    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        either!(self, socket => socket.ready(interest).await)
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        either!(self, socket => socket.readable().await)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_read_ready(cx))
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_write_ready(cx))
    }

    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => socket.try_read(into))
    }

    pub(super) fn try_read_buf(&self, into: &mut ReadBuf<'_>) -> io::Result<usize> {
        either!(self, socket => socket.try_read_buf(into))
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, socket => socket.try_write(bytes))
    }

    pub(super) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, socket => socket.try_write_vectored(pieces))
    }

    /// Tells the client that nothing more comes.
    pub(super) fn end_writing(&self) -> io::Result<()> {
        // tokio shuts down only a stream that it owns alone; the standard library does it through
        // any descriptor.
        match self {
            Stream::Tcp(socket) => {
                std::net::TcpStream::from(socket.as_fd().try_clone_to_owned()?).shutdown(Shutdown::Write)
            }
            Stream::Unix(socket) => {
                let socket = socket.as_fd().try_clone_to_owned()?;
                std::os::unix::net::UnixStream::from(socket).shutdown(Shutdown::Write)
            }
        }
    }
}
