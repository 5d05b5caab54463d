//! The HTTP/1.1 server: accepts connections, limits them, drains them.
//!
//! Not here: the answer to a single request (`front` for clients, `admin_door` for operators), the
//! socket of the operator's commands (`operator_socket`), TLS (`tls`).

mod admin;
mod admin_address;
mod admin_door;
mod answer;
mod asked;
mod authorization;
mod body;
mod client_ca;
mod connection;
mod cors;
mod deliver;
mod door;
mod exchange;
mod extensions;
mod front;
mod gzip;
mod handshakes;
mod hangup;
mod head;
mod heat_map;
mod hosts;
mod in_process;
mod listener;
mod live;
mod operate;
mod operator_socket;
mod operators;
mod origin;
mod overview;
mod page;
mod pem;
mod receive;
mod reply;
mod roots;
mod sender;
mod shared_read;
mod short_chains;
mod shown;
mod slots;
mod socket;
mod stream;
mod tls;
mod transport;
mod validity;
mod work;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use heatsink_env::Env;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use tokio::sync::watch;

use crate::{Limits, Service, Status};
pub use admin_address::{Access, Token};
use admin_door::AdminDoor;
use connection::Connected;
pub use cors::Origins;
use door::{ACCEPT_PAUSE, Door};
use front::Front;
pub use hosts::Hosts;
pub use in_process::InProcess;
pub use listener::Listener;
pub use live::{Live, Settings};
pub use operator_socket::serve_operator;
pub use pem::PemFile;
use slots::{Slot, Slots};
use stream::Stream;
pub use tls::{ServerTls, TlsFiles};

/// This many connections above the limit get an answer at once. Further ones are closed without an
/// answer; clients treat that as a failed connection, and retry.
const REFUSED: usize = 64;
/// How long such an answer may take.
const REFUSAL: Duration = Duration::from_secs(2);

/// Serves DynamoDB's wire protocol on `listener` until `shutdown` resolves, with the settings that
/// are in force. Then it stops accepting, lets requests in flight finish within [`Limits::drain`],
/// and returns whether all of them did.
pub async fn serve(
    listener: impl Into<Listener>,
    service: Arc<Service>,
    limits: Limits,
    live: Live,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()> + Send,
) -> bool {
    accept(listener.into(), Front::new(service, limits, live, env), shutdown.boxed()).await
}

/// Serves the admin address on `listener` to those whom `access` admits, until `shutdown` resolves:
/// the page, health, and everything below `/_heatsink/` that tells something. Returns whether all
/// requests were answered.
pub async fn serve_admin(
    listener: impl Into<Listener>,
    status: Arc<Status>,
    access: Access,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()> + Send,
) -> bool {
    accept(listener.into(), AdminDoor::new(status, access, env), shutdown.boxed()).await
}

/// What the connections of a listener come to.
struct Reception<D: Door> {
    door: Arc<D>,
    http: http1::Builder,
    /// Those of clients that are served.
    connections: Slots,
    /// Those beyond the limit that are told so.
    surplus: Slots,
    /// Those that are accepted, and not in one of the others yet.
    arriving: Slots,
}

/// Accepts connections until `shutdown` resolves; then lets requests in flight finish.
fn accept<D: Door>(listener: Listener, door: D, mut shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, bool> {
    async move {
        let door = Arc::new(door);
        let shared = door.shared();
        let (env, limits) = (Arc::clone(&shared.env), shared.limits);
        let mut http = http1::Builder::new();
        // Answers are flushed one by one: from a client that pipelines requests and reads no answer
        // nothing more is read.
        http.timer(TokioTimer::new())
            .header_read_timeout(limits.head_read)
            .max_buf_size(limits.head)
            .half_close(true);
        let reception = Arc::new(Reception {
            http,
            connections: Slots::new(shared.counts.connections.clone()),
            surplus: Slots::new(metrics::Gauge::noop()),
            arriving: Slots::new(metrics::Gauge::noop()),
            door: Arc::clone(&door),
        });
        let (drain, drained) = watch::channel(());
        loop {
            match select(pin!(listener.accept()), &mut shutdown).await {
                Either::Left((Ok(stream), _)) => reception.receive(stream, &drained),
                Either::Left((Err(error), _)) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    env.sleep(ACCEPT_PAUSE).await;
                }
                Either::Right(_) => break,
            }
        }
        while let Some(stream) = listener.waiting().await {
            reception.receive(stream, &drained);
        }
        drop(listener);
        drop(drained);
        door.closes();
        tracing::info!(connections = reception.connections.taken(), "draining");
        // If no receiver is left, nobody needs to be told.
        let _ = drain.send(());
        let finished = async {
            reception.arriving.all_free().await;
            reception.connections.all_free().await;
            // Writes whose clients have gone.
            door.shared().in_flight.all_free().await;
        };
        matches!(select(pin!(finished), env.sleep(limits.drain)).await, Either::Left(_))
    }
    .boxed()
}

impl<D: Door> Reception<D> {
    /// Takes a connection in. One without TLS takes its place at once, one with TLS once it is
    /// through the handshake.
    fn receive(self: &Arc<Self>, stream: Stream, drained: &watch::Receiver<()>) {
        let tls = self.door.shared().live.get().tls.clone();
        let (reception, drained) = (Arc::clone(self), drained.clone());
        let Some(tls) = tls else {
            let shared = reception.door.shared();
            if let Some(place) = self.place() {
                let connected = Connected::plain(stream, shared);
                tokio::spawn(async move { reception.attend(connected, place, drained).await });
            }
            return;
        };
        let Some(arriving) = self.arriving.take(usize::MAX) else { return };
        tokio::spawn(async move {
            let connected = Connected::secured(stream, &tls, reception.door.shared()).await;
            let place = connected.is_some().then(|| reception.place()).flatten();
            drop(arriving);
            if let (Some(connected), Some(place)) = (connected, place) {
                reception.attend(connected, place, drained).await;
            }
        });
    }

    /// A place, among those who are served or those who are told that there is none; and whether it
    /// is of the latter.
    fn place(&self) -> Option<(Slot, bool)> {
        let shared = self.door.shared();
        if let Some(slot) = self.connections.take(shared.live.get().connections) {
            return Some((slot, false));
        }
        let slot = self.surplus.take(REFUSED);
        if slot.is_none() {
            shared.counts.over_connections.increment(1);
        }
        slot.map(|slot| (slot, true))
    }

    async fn attend(&self, connected: Connected, place: (Slot, bool), drained: watch::Receiver<()>) {
        let (slot, is_surplus) = place;
        let attended = connection::attend(connected, &self.http, &self.door, is_surplus, drained);
        if is_surplus {
            // Not through Env: a bound on an I/O wait. Who gets no answer tries again all the same.
            let _ = tokio::time::timeout(REFUSAL, attended).await;
        } else {
            attended.await;
        }
        drop(slot);
    }
}
