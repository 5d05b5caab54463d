//! The HTTP/1.1 server: accepts connections, bounds them, drains them.
//!
//! Not here: what a single request is answered with (`front`), TLS.

mod admin;
mod authorization;
mod body;
mod front;
mod gzip;
mod reply;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_env::Env;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use crate::{Limits, Service};
use front::Front;

/// Pause after a failed `accept`: the machine is out of file descriptors, and asking at once would only burn it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves DynamoDB's wire protocol on `listener` until `shutdown` resolves. Then it stops accepting, lets requests in
/// flight finish within [`Limits::drain`], and returns whether all of them did.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    limits: Limits,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()>,
) -> bool {
    let front = Arc::new(Front::new(service, limits, env.clone()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_read)
        .max_buf_size(limits.head)
        .pipeline_flush(true);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        match select(pin!(listener.accept()), &mut shutdown).await {
            Either::Left((Ok((stream, _)), _)) => spawn(stream, &http, &front, &connections),
            Either::Left((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection");
                env.sleep(ACCEPT_PAUSE).await;
            }
            Either::Right(_) => break,
        }
    }
    drop(listener);
    tracing::info!(connections = connections.count(), "draining");
    matches!(select(pin!(connections.shutdown()), env.sleep(limits.drain)).await, Either::Left(_))
}

fn spawn(stream: TcpStream, http: &http1::Builder, front: &Arc<Front>, connections: &GracefulShutdown) {
    // Answers are one small write each; Nagle would hold them back.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let front = front.clone();
    let local = stream.peer_addr().is_ok_and(|peer| peer.ip().is_loopback());
    let answer = service_fn(move |request| {
        let front = front.clone();
        async move { front.answer(request, local).await }
    });
    let connection = connections.watch(http.serve_connection(TokioIo::new(stream), answer));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended");
        }
    });
}
