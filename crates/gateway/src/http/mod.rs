//! The HTTP/1.1 server: accepts connections, limits them, drains them.
//!
//! Not here: the answer to a single request (`front` for clients, `admin_door` for operators), the
//! socket of the operator's commands (`operator_socket`), TLS.

mod admin;
mod admin_address;
mod admin_door;
mod answer;
mod authorization;
mod body;
mod connection;
mod door;
mod exchange;
mod front;
mod gzip;
mod hangup;
mod head;
mod heat_map;
mod hosts;
mod operator_socket;
mod operators;
mod origin;
mod overview;
mod page;
mod reply;
mod shared_read;
mod slots;
mod socket;
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
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::{Limits, Service, Status};
pub use admin_address::{Access, Token};
use admin_door::AdminDoor;
use door::{ACCEPT_PAUSE, Door};
use front::Front;
pub use hosts::Hosts;
pub use operator_socket::serve_operator;
use slots::Slots;

/// This many connections above the limit get an answer at once. Further ones are closed without an
/// answer; clients treat that as a failed connection, and retry.
const REFUSED: usize = 64;
/// How long such an answer may take.
const REFUSAL: Duration = Duration::from_secs(2);

/// Serves DynamoDB's wire protocol on `listener` until `shutdown` resolves, for requests to
/// `hosts`. Then it stops accepting, lets requests in flight finish within [`Limits::drain`], and
/// returns whether all of them did.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    limits: Limits,
    hosts: Hosts,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()> + Send,
) -> bool {
    accept(listener, Front::new(service, limits, hosts, env), shutdown.boxed()).await
}

/// Serves the admin address on `listener` to those whom `access` admits, until `shutdown` resolves:
/// the page, health, and everything below `/_heatsink/` that tells something. Returns whether all
/// requests were answered.
pub async fn serve_admin(
    listener: TcpListener,
    status: Arc<Status>,
    access: Access,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()> + Send,
) -> bool {
    accept(listener, AdminDoor::new(status, access, env), shutdown.boxed()).await
}

/// Accepts connections until `shutdown` resolves; then lets requests in flight finish.
fn accept<D: Door>(listener: TcpListener, door: D, mut shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, bool> {
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
        let http = Arc::new(http);
        let connections = Slots::new(limits.connections, shared.counts.connections.clone());
        let surplus = Slots::new(REFUSED, metrics::Gauge::noop());
        let (drain, drained) = watch::channel(());
        loop {
            let stream = match select(pin!(listener.accept()), &mut shutdown).await {
                Either::Left((Ok((stream, _)), _)) => stream,
                Either::Left((Err(error), _)) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    env.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                Either::Right(_) => break,
            };
            let (http, door, drained) = (Arc::clone(&http), Arc::clone(&door), drained.clone());
            if let Some(slot) = connections.take() {
                tokio::spawn(async move {
                    connection::attend(stream, &http, &door, false, drained).await;
                    drop(slot);
                });
            } else if let Some(slot) = surplus.take() {
                tokio::spawn(async move {
                    let refusal = connection::attend(stream, &http, &door, true, drained);
                    // Not through Env: a bound on an I/O wait. Who gets no answer tries again all
                    // the same.
                    let _ = tokio::time::timeout(REFUSAL, refusal).await;
                    drop(slot);
                });
            } else {
                shared.counts.over_connections.increment(1);
            }
        }
        drop(listener);
        door.closes();
        tracing::info!(connections = connections.taken(), "draining");
        // If no receiver is left, nobody needs to be told.
        let _ = drain.send(());
        drop(drain);
        let finished = async {
            connections.all_free().await;
            // Writes whose clients have gone.
            shared.in_flight.all_free().await;
        };
        matches!(select(pin!(finished), env.sleep(limits.drain)).await, Either::Left(_))
    }
    .boxed()
}
