//! TLS handshakes under way. They have a number and a time of their own, so that clients that begin
//! and do not go on take no place of a connection. One more than the number ends the oldest: an
//! honest client is through within milliseconds, and those that wait are the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heatsink_env::Env;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::shown::Shown;
use super::socket::Socket;
use super::tls::ServerTls;
use crate::Limits;
use crate::metrics::Wire;

/// The handshakes of a listener.
#[derive(Default)]
pub(super) struct Handshakes {
    waiting: Mutex<Waiting>,
}

/// In the order in which they began.
#[derive(Default)]
struct Waiting {
    next: u64,
    begun: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A handshake under way, until this is dropped.
struct Place<'a> {
    of: &'a Handshakes,
    number: u64,
}

impl Handshakes {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, at the cost of the oldest where `most` are taken; and what resolves when it is
    /// given to a later one.
    fn enter(&self, most: usize) -> (Place<'_>, oneshot::Receiver<()>) {
        let (ends, ended) = oneshot::channel();
        let mut waiting = self.waiting();
        while waiting.begun.len() >= most.max(1) {
            if let Some((_, oldest)) = waiting.begun.pop_first() {
                // It may be through by now.
                let _ = oldest.send(());
            }
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.begun.insert(number, ends);
        (Place { of: self, number }, ended)
    }

    /// A client's stream under TLS, and its certificate, where it has to show one. `None` where there
    /// is no such stream.
    pub(super) async fn run(
        &self,
        socket: Socket,
        tls: &ServerTls,
        limits: &Limits,
        counts: &Wire,
        env: &dyn Env,
    ) -> Option<(TlsStream<Socket>, Option<Shown>)> {
        let (place, ended) = self.enter(limits.handshakes);
        let shake = TlsAcceptor::from(Arc::clone(&tls.config)).accept(socket);
        let shaken = tokio::select! {
            // Not through Env: a bound on an I/O wait.
            shaken = tokio::time::timeout(limits.handshake, shake) => shaken,
            _ = ended => {
                counts.crowded_handshakes.increment(1);
                return None;
            }
        };
        drop(place);
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "no TLS with a client");
                counts.failed_handshakes.increment(1);
                return None;
            }
            Err(_) => {
                counts.late_handshakes.increment(1);
                return None;
            }
        };
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = tls.client_ca.as_ref().map(|ca| Shown::new(chain, ca, env.unix_millis()));
        let shown = match shown.transpose() {
            Ok(shown) => shown,
            Err(why) => {
                tracing::warn!("a client is not served for its certificate: {why}");
                counts.failed_handshakes.increment(1);
                return None;
            }
        };
        counts.handshakes.increment(1);
        Some((stream, shown))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.of.waiting().begun.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let handshakes = Handshakes::default();
        let (_first, mut first) = handshakes.enter(2);
        let (second_place, mut second) = handshakes.enter(2);
        let (_third, mut third) = handshakes.enter(2);
        assert!(first.try_recv().is_ok());
        drop(second_place);
        let (_fourth, _) = handshakes.enter(2);
        assert!(second.try_recv().is_err(), "it was over");
        assert!(third.try_recv().is_err(), "there was room");
    }
}
