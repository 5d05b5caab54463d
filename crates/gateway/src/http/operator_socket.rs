//! The operator's socket: a Unix socket of this machine, by which the commands of the user who runs
//! the gateway reach it. They are told what the admin address tells, and reach the store itself
//! where nobody else can (`POST /_heatsink/physical`: DynamoDB's protocol, with physical keys and
//! the registry).
//!
//! Who may ask follows from the system, not from what is sent: the socket is its owner's alone (its
//! folder and its mode), and the system says which user a peer is. No web page can open one, and no
//! proxy passes on to one that its owner has not set up.
//!
//! Not here: where the socket lies (the command line), what is told (`operators`).

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Env;
use heatsink_store::{PHYSICAL_PATH, Store};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::answer::Body;
use super::door::ACCEPT_PAUSE;
use super::operators::Operators;
use super::slots::Slots;
use super::work::{Alone, Work};
use super::{body, reply};
use crate::budget::{Held, Of};
use crate::metrics::Wire;
use crate::{Limits, Status};

/// The most connections at once. One more is closed: all of them are of one user.
const CONNECTIONS: usize = 64;
/// How long a connection may be without a whole request.
const WAIT: Duration = Duration::from_secs(5);

/// Answers the operator's commands.
struct OperatorSocket {
    status: Arc<Status>,
    operators: Operators,
    /// The store, where commands may reach it.
    store: Option<Arc<dyn Store>>,
    limits: Limits,
    counts: Wire,
    /// The user whose commands are answered, beside the system's administrator.
    owner: u32,
    env: Arc<dyn Env>,
}

/// Serves the operator's commands on `listener` until `shutdown` resolves; then lets requests in
/// flight finish, within [`Limits::drain`]. `store`: the store itself, if they may reach it.
///
/// The listener's path has to be one that only this user can open. Peers of other users are closed
/// all the same.
pub async fn serve_operator(
    listener: UnixListener,
    status: Arc<Status>,
    store: Option<Arc<dyn Store>>,
    env: Arc<dyn Env>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let socket = Arc::new(OperatorSocket {
        operators: Operators::new(Arc::clone(&status), Arc::clone(&env)),
        status,
        store,
        limits: Limits::default(),
        counts: Wire::unrecorded(),
        owner: rustix::process::geteuid().as_raw(),
        env: Arc::clone(&env),
    });
    let connections = Slots::new(metrics::Gauge::noop());
    let (drain, drained) = watch::channel(());
    let mut shutdown = pin!(shutdown);
    loop {
        let stream = match select(pin!(listener.accept()), &mut shutdown).await {
            Either::Left((Ok((stream, _)), _)) => stream,
            Either::Left((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection on the operator's socket");
                env.sleep(ACCEPT_PAUSE).await;
                continue;
            }
            Either::Right(_) => break,
        };
        if !socket.admits(&stream) {
            continue;
        }
        let Some(slot) = connections.take(CONNECTIONS) else { continue };
        let (socket, drained) = (Arc::clone(&socket), drained.clone());
        tokio::spawn(async move {
            attend(stream, socket, drained).await;
            drop(slot);
        });
    }
    drop(listener);
    // If no receiver is left, nobody needs to be told.
    let _ = drain.send(());
    drop(drain);
    select(pin!(connections.all_free()), env.sleep(socket.limits.drain)).await;
}

/// Serves a connection until either side ends it, or until it is idle once `drain` has changed.
async fn attend(stream: UnixStream, socket: Arc<OperatorSocket>, mut drain: watch::Receiver<()>) {
    let answer = service_fn(|request| {
        let socket = Arc::clone(&socket);
        async move { Ok::<_, Infallible>(socket.answer(request).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(WAIT)
            .serve_connection(TokioIo::new(stream), answer)
    );
    let ended = match select(&mut connection, pin!(drain.changed())).await {
        Either::Left((ended, _)) => ended,
        // The sender has sent, or is gone: in both cases it is time to end.
        Either::Right(_) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection of a command ended");
    }
}

impl OperatorSocket {
    /// Whether the peer is the user of this process, or the administrator.
    fn admits(&self, stream: &UnixStream) -> bool {
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == self.owner || peer.uid() == 0 => true,
            Ok(peer) => {
                tracing::warn!(
                    uid = peer.uid(),
                    "another user has opened the operator's socket, and is not answered"
                );
                false
            }
            Err(error) => {
                tracing::warn!(%error, "cannot tell who has opened the operator's socket");
                false
            }
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        if head.method == Method::GET {
            return self.operators.answer(&head).await;
        }
        // Before anything is refused: a connection that closes with unread bytes loses its answer.
        let mut held = self.status.budget().hold(Of::Requests);
        let body = body::read(body, self.limits.body, self.limits.body_read, &mut held, &mut |_| {}).await;
        if head.method != Method::POST || head.uri.path() != PHYSICAL_PATH {
            return self.operators.refuse(StatusCode::NOT_FOUND, "nothing is at this path");
        }
        let target = head.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let answered = match (target.and_then(Operation::from_target), body) {
            (Some(operation), Ok(body)) => self.call(operation, body, held).await,
            (None, _) => Err(Error::bare(Code::UnknownOperationException)),
            (_, Err(_)) => Err(Error::bare(Code::SerializationException)),
        };
        // Echoed, as by DynamoDB.
        let content_type = head.headers.get(CONTENT_TYPE).cloned();
        let content_type = content_type.unwrap_or(HeaderValue::from_static("application/x-amz-json-1.0"));
        match answered {
            Ok(body) => reply::reply(&*self.env, StatusCode::OK, Some(content_type), body, None),
            Err(error) => reply::refusal(&*self.env, Some(content_type), &error),
        }
    }

    /// A request to the store itself.
    async fn call(&self, operation: Operation, body: Bytes, held: Held) -> Result<Bytes, Error> {
        let Some(store) = &self.store else {
            return Err(Error::new(
                Code::AccessDeniedException,
                "the store of this server is another endpoint: ask it there",
            ));
        };
        let alone = match operation.only_reads() {
            true => Alone::Ends(self.counts.reads_cancelled.clone()),
            // A command that is killed leaves no write half done.
            false => Alone::GoesOn(self.counts.writes_alone.clone(), Arc::default()),
        };
        let store = Arc::clone(store);
        let work = async move {
            let answer = store.call(operation, body).await;
            drop(held);
            answer
        };
        // Not through Env: a bound on an I/O wait.
        let answer = tokio::time::timeout(self.limits.request, Work::new(work, alone)).await;
        answer.unwrap_or_else(|_| {
            let message = format!(
                "No answer within {} s; the request may have been carried out",
                self.limits.request.as_secs()
            );
            Err(Error::unavailable(message, Outcome::Unknown))
        })
    }
}
