//! Keep-alive connections to one endpoint.
//!
//! A request drives its connection on its own task, which halves the cost of a forwarded request
//! against a client that gives each connection a task of its own. Idle connections are checked when
//! they are used again. At most [`Bounds::connections`] are open at once; further requests wait for
//! one.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use heatsink_dynamo::Error;
use heatsink_env::{Env, MonotonicInstant};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::service::Service;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::service::TowerToHyperService;
use metrics::{Counter, counter};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::bounds::Bounds;
use super::checked_stream::{CheckedStream, Right};
use super::endpoint::Endpoint;
use super::network::{Network, Routes};
use crate::Permit;

/// A connection that was idle for longer is not used again: the other side may be closing it right
/// now.
const IDLE_FOR: Duration = Duration::from_secs(20);
/// The largest answer taken, in bytes. DynamoDB's are at most 16 MB of items, in JSON.
const ANSWER: usize = 64 * 1024 * 1024;

/// An upstream's answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// No byte of the request was sent.
    NotSent(String),
    /// The request was sent, at least in part.
    Lost(String),
    /// Its permit refused the rest of it.
    Cut(Error),
    /// It could not be made, or its permit refused it: no byte of it was sent.
    Refused(Error),
}

/// The future that transfers a connection's bytes while it is polled.
struct Driver {
    connection: http1::Connection<MaybeHttpsStream<CheckedStream>, Full<Bytes>>,
    open: bool,
    right: Arc<Right>,
}

impl Driver {
    /// Transfers available bytes. `permit` is asked before each write.
    fn advance(&mut self, permit: Option<&dyn Permit>, cx: &mut Context<'_>) -> Result<(), Error> {
        loop {
            self.open = self.open && Pin::new(&mut self.connection).poll(cx).is_pending();
            if !self.right.revoke() || !self.open {
                return Ok(());
            }
            permit.map_or(Ok(()), Permit::check)?;
            self.right.grant();
        }
    }

    /// Runs `work` while transferring the bytes that it waits for.
    async fn drive<F: Future>(&mut self, permit: Option<&dyn Permit>, work: F) -> Result<F::Output, Broken> {
        let mut work = pin!(work);
        poll_fn(move |cx| {
            let advanced = self.advance(permit, cx);
            match (work.as_mut().poll(cx), advanced) {
                (Poll::Pending, Err(refused)) => Poll::Ready(Err(Broken::Refused(refused))),
                (done, _) => done.map(Ok),
            }
        })
        .await
    }
}

/// A connection and what drives it.
struct Link {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
    /// When the answer under way is late. One timer serves all requests of a connection: moving it
    /// on takes no lock, as making one does.
    deadline: Pin<Box<Sleep>>,
    /// Whether it carried a request before.
    used: bool,
    idle_since: MonotonicInstant,
}

pub(super) struct Connections {
    connector: TowerToHyperService<HttpsConnector<Routes>>,
    uri: Uri,
    bounds: Bounds,
    env: Arc<dyn Env>,
    idle: Mutex<Vec<Link>>,
    /// A permit for each request that may hold a connection. A connection is only made where none
    /// is idle, so no more are open than there are permits.
    free: Semaphore,
    waited: Counter,
    refused: Counter,
}

impl Connections {
    pub(super) fn new(endpoint: Endpoint, bounds: Bounds, network: &Network, env: Arc<dyn Env>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        // What the system has taken and not sent by then is of no use to anybody: its answer is
        // late.
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(bounds.answer));
        Connections {
            connector: TowerToHyperService::new(network.connector(tcp)),
            uri: endpoint.uri().clone(),
            bounds,
            env,
            idle: Mutex::new(Vec::new()),
            free: Semaphore::new(bounds.connections),
            waited: counter!("heatsink_upstream_connection_waits_total"),
            refused: counter!("heatsink_upstream_connection_refusals_total"),
        }
    }

    /// The right to hold a connection.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, Failure> {
        if let Ok(permit) = self.free.try_acquire() {
            return Ok(permit);
        }
        self.waited.increment(1);
        match timeout(self.bounds.connect, self.free.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                self.refused.increment(1);
                let (all, after) = (self.bounds.connections, self.bounds.connect.as_secs());
                Err(Failure::NotSent(format!("all {all} connections to it were busy for {after} s")))
            }
        }
    }

    /// Sends one request and gives its whole answer. `again` allows a second try on a new
    /// connection when a used one turns out to be closed after the request was written to it.
    /// `make` makes the request for each try.
    pub(super) async fn send(
        &self,
        make: impl Fn() -> Result<Request<Full<Bytes>>, Error>,
        again: bool,
        permit: Option<&dyn Permit>,
    ) -> Result<Answer, Failure> {
        let _slot = self.permit().await?;
        loop {
            let mut link = match self.take_idle().await {
                Some(link) => link,
                None => self.connect().await?,
            };
            let request = make().map_err(Failure::Refused)?;
            // The last step: nothing is awaited between this and the first byte on the socket.
            if let Err(refused) = permit.map_or(Ok(()), Permit::check) {
                self.put_back(link);
                return Err(Failure::Refused(refused));
            }
            match link.exchange(request, self.bounds.answer, permit).await {
                Ok(answer) => {
                    self.put_back(link);
                    return Ok(answer);
                }
                // If a used connection closes under the request, the upstream may be fine: try the
                // next connection.
                Err(Broken::Unsent(_)) if link.used => {}
                Err(Broken::Closed(_)) if link.used && again => {}
                Err(Broken::Unsent(why)) => return Err(Failure::NotSent(why)),
                Err(Broken::Closed(why) | Broken::Bad(why)) => return Err(Failure::Lost(why)),
                Err(Broken::Refused(error)) if link.driver.right.sent() => return Err(Failure::Cut(error)),
                Err(Broken::Refused(error)) => return Err(Failure::Refused(error)),
                Err(Broken::Late) => {
                    let after = self.bounds.answer.as_secs();
                    return Err(Failure::Lost(format!("nothing came within {after} s")));
                }
            }
        }
    }

    /// The connection used last that is still open.
    async fn take_idle(&self) -> Option<Link> {
        loop {
            let mut link = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            let fresh = self.env.now().since(link.idle_since) < IDLE_FOR;
            if fresh && link.is_open().await {
                return Some(link);
            }
        }
    }

    fn put_back(&self, mut link: Link) {
        if !link.sender.is_ready() {
            return;
        }
        link.used = true;
        link.idle_since = self.env.now();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(link);
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let connecting = async {
            let stream = self.connector.call(self.uri.clone()).await.map_err(|error| because(&*error))?;
            let right = CheckedStream::right(&stream);
            let mut builder = http1::Builder::new();
            let (sender, connection) =
                builder.max_buf_size(1024 * 1024).handshake(stream).await.map_err(|error| because(&error))?;
            Ok(Link {
                sender,
                driver: Driver { connection, open: true, right },
                deadline: Box::pin(sleep_until(late_at(self.bounds.answer))),
                used: false,
                idle_since: self.env.now(),
            })
        };
        match timeout(self.bounds.connect, connecting).await {
            Ok(connected) => connected.map_err(Failure::NotSent),
            Err(_) => {
                Err(Failure::NotSent(format!("no connection within {} s", self.bounds.connect.as_secs())))
            }
        }
    }
}

/// How an exchange broke.
enum Broken {
    /// Before anything was written.
    Unsent(String),
    /// The connection ended after the request was written and before an answer began.
    Closed(String),
    /// The answer was cut short or is no HTTP.
    Bad(String),
    /// The answer did not arrive in time.
    Late,
    /// Its permit refused a write.
    Refused(Error),
}

impl Link {
    /// Checks whether the other side has closed it since.
    async fn is_open(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(self.driver.advance(None, cx).is_ok())).await
            && self.driver.open
            && self.sender.is_ready()
    }

    /// Sends a request, which `permit` has just allowed, and reads its answer `within` a time.
    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        within: Duration,
        permit: Option<&dyn Permit>,
    ) -> Result<Answer, Broken> {
        self.deadline.as_mut().reset(late_at(within));
        self.driver.right.begin(permit.is_some());
        let Link { sender, driver, deadline, .. } = self;
        let mut work = pin!(answered(sender, driver, request, permit));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Pending => deadline.as_mut().poll(cx).map(|()| Err(Broken::Late)),
            done => done,
        })
        .await
    }
}

/// When an answer to what is sent now is late.
#[expect(clippy::disallowed_methods, reason = "bounds on I/O waits are the I/O layer's own")]
fn late_at(within: Duration) -> Instant {
    Instant::now() + within
}

async fn answered(
    sender: &mut SendRequest<Full<Bytes>>,
    driver: &mut Driver,
    request: Request<Full<Bytes>>,
    permit: Option<&dyn Permit>,
) -> Result<Answer, Broken> {
    let sending = sender.try_send_request(request);
    let response: Response<Incoming> = driver.drive(permit, sending).await?.map_err(|mut error| {
        let why = because(error.error());
        match error.take_message() {
            Some(_) => Broken::Unsent(why),
            None if error.error().is_incomplete_message() || error.error().is_closed() => Broken::Closed(why),
            None => Broken::Bad(why),
        }
    })?;
    let (head, body) = response.into_parts();
    let body = driver.drive(permit, collect(body)).await?.map_err(Broken::Bad)?;
    // The connection learns that the answer is over, and is ready for the next request.
    let _ = poll_fn(|cx| Poll::Ready(driver.advance(permit, cx))).await;
    driver.right.end();
    Ok(Answer { status: head.status, headers: head.headers, body })
}

async fn collect(mut body: Incoming) -> Result<Bytes, String> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| because(&error))?.into_data() else { continue };
        if first.is_empty() && whole.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            whole.extend_from_slice(&first);
        }
        if whole.len() + data.len() > ANSWER {
            return Err(format!("the answer is larger than {ANSWER} bytes"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// An error with its causes.
fn because(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
