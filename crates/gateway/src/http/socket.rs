//! A connection's socket for hyper. A write fails when the client takes no bytes for too long.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_env::Env;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::exchange::Exchange;
use super::stream::Stream;
use crate::budget::Budget;

/// How often a waiting write checks the clock.
const TICK: Duration = Duration::from_millis(250);
/// How long a client may take no byte while other requests need the memory of its answer.
const PRESSED: Duration = Duration::from_secs(1);

pub(super) struct Socket {
    stream: Arc<Stream>,
    exchange: Arc<Exchange>,
    stall: Stall,
}

/// How long the client has taken no byte.
struct Stall {
    env: Arc<dyn Env>,
    limit: Duration,
    budget: Arc<Budget>,
    tick: Option<BoxFuture<'static, ()>>,
    waited: Duration,
}

impl Socket {
    /// A socket whose client may take no byte for `limit`; for less if `budget` is short.
    pub(super) fn new(
        stream: Arc<Stream>,
        exchange: Arc<Exchange>,
        limit: Duration,
        budget: Arc<Budget>,
        env: Arc<dyn Env>,
    ) -> Self {
        let stall = Stall { env, limit, budget, tick: None, waited: Duration::ZERO };
        Socket { stream, exchange, stall }
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        attempt: impl Fn(&Stream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.stream.poll_write_ready(cx)?.is_pending() {
                self.exchange.set_blocked(true);
                ready!(self.stall.poll(cx));
                self.exchange.set_stalled();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            match attempt(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.exchange.set_blocked(false);
                    self.stall.end();
                    return Poll::Ready(done);
                }
            }
        }
    }
}

impl Stall {
    /// Ready once the client has taken no byte for too long.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let step = TICK.min(self.limit);
        loop {
            let tick = self.tick.get_or_insert_with(|| self.env.sleep(step));
            ready!(tick.poll_unpin(cx));
            self.tick = None;
            self.waited += step;
            if self.waited >= self.limit || self.waited >= PRESSED && self.budget.is_pressed() {
                return Poll::Ready(());
            }
        }
    }

    fn end(&mut self) {
        self.tick = None;
        self.waited = Duration::ZERO;
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_buf(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done.map(|_| ())),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.end_writing())
    }
}
