//! Answers one HTTP request, with DynamoDB's order of checks: host, path and method, content type, body, target, signature, then the operation
//! itself.
//!
//! Not here: what operators are told (`operators`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome, json};
use heatsink_env::Env;
use heatsink_route::Answer;
use heatsink_store::{PHYSICAL_PATH, Store};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::admin_address::Access;
use super::answer::Body;
use super::body::{self, Unread};
use super::exchange::Exchange;
use super::gzip;
use super::head;
use super::hosts::Hosts;
use super::operators::Operators;
use super::origin;
use super::slots::Slots;
use super::work::{Alone, Work};
use super::{admin, authorization, reply};
use crate::budget::{Budget, Held, Of, UNCOUNTED};
use crate::metrics::Wire;
use crate::sent::Sent;
use crate::{Limits, Service};

const NOT_FOUND: &[u8] = b"<UnknownOperationException/>\n";
const CONTENT_TYPES: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

/// Answers requests; shared by all connections.
pub(super) struct Front {
    service: Arc<Service>,
    hosts: Hosts,
    pub(super) limits: Limits,
    pub(super) env: Arc<dyn Env>,
    pub(super) counts: Wire,
    /// Who may ask at this address, if it is the operator's and not that of clients.
    admin: Option<Access>,
    operators: Operators,
    /// Slots of requests in progress.
    pub(super) in_flight: Slots,
    pub(super) budget: Arc<Budget>,
}

/// The connection of a request.
pub(super) struct Peer {
    /// Whether it comes from this machine.
    pub(super) local: bool,
    /// Whether it exceeds the limit of connections.
    pub(super) surplus: bool,
    pub(super) exchange: Arc<Exchange>,
}

/// An answer of the service.
struct Answered {
    body: Bytes,
    /// The shards that the answer leaves out.
    missing: Vec<String>,
    read_only: bool,
}

/// An answer as it is sent.
struct Weighed {
    body: Bytes,
    is_packed: bool,
    held: Option<Held>,
    missing: Vec<String>,
}

impl Front {
    pub(super) fn new(service: Arc<Service>, limits: Limits, hosts: Hosts, env: Arc<dyn Env>) -> Self {
        Front::counting(service, limits, hosts, env, Wire::new())
    }

    /// What answers at the admin address.
    pub(super) fn of_operators(
        service: Arc<Service>,
        limits: Limits,
        access: Access,
        env: Arc<dyn Env>,
    ) -> Self {
        let front = Front::counting(service, limits, Hosts::loopback(), env, Wire::unrecorded());
        Front { admin: Some(access), ..front }
    }

    fn counting(
        service: Arc<Service>,
        limits: Limits,
        hosts: Hosts,
        env: Arc<dyn Env>,
        counts: Wire,
    ) -> Self {
        Front {
            admin: None,
            operators: Operators::new(Arc::clone(&service), Arc::clone(&env), counts.over_answers.clone()),
            in_flight: Slots::new(limits.requests, counts.in_flight.clone()),
            budget: Arc::clone(service.budget()),
            service,
            hosts,
            limits,
            env,
            counts,
        }
    }

    /// Answers one request.
    pub(super) async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let (head, body) = request.into_parts();
        if head::size(&head) > self.limits.head {
            body::skip(body, self.limits.body, self.limits.body_read).await;
            peer.exchange.set_cut();
            return reply::closing(self.reply(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                None,
                Bytes::new(),
            ));
        }
        if let Some(access) = &self.admin {
            let answer = self.operators.answer(&head, access).await;
            return if peer.surplus { reply::closing(answer) } else { answer };
        }
        if peer.surplus {
            self.counts.over_connections.increment(1);
            let message = format!("More than {} connections are open", self.limits.connections);
            let error = Error::unavailable(message, Outcome::NotDone);
            return self.turn_away(&head, body, peer, &error).await;
        }
        if head.method == Method::GET {
            let may_ask = admin::from_a_tool(&head, peer.local, &self.hosts);
            if let Some(told) = Box::pin(self.operators.tell(&head, may_ask)).await {
                return told;
            }
        }
        if let Err(error) = self.hosts.check(&head) {
            self.counts.foreign_hosts.increment(1);
            return self.turn_away(&head, body, peer, &error).await;
        }
        if head.method == Method::GET && head.uri.path() == "/" {
            let healthy = format!("healthy: dynamodb.{}.amazonaws.com ", self.service.region());
            return self.reply(StatusCode::OK, None, Bytes::from(healthy));
        }
        let mut held = self.budget.hold(Of::Requests);
        let body = match self.read(&head.headers, body, &mut held).await {
            Ok(body) => body,
            Err(why) => return self.refuse_body(&head, peer, why),
        };
        let content_type = content_type(&head.headers);
        let Some(content_type) = content_type
            .filter(|_| head.method == Method::POST && ["/", PHYSICAL_PATH].contains(&head.uri.path()))
        else {
            return self.reply(StatusCode::NOT_FOUND, None, Bytes::from_static(NOT_FOUND));
        };
        // HTTP/1.0 has no interim answers, so such a client cannot be probed.
        let working = (head.version == Version::HTTP_11).then(|| peer.exchange.work());
        let answered = match admin::store(&head, peer.local, self.service.shown_store()) {
            Ok(store) => self.operate(&head.headers, body, held, store).await,
            Err(error) => Err(error),
        };
        let packed = match &answered {
            Ok(answered) if gzip::wanted(&head.headers) => gzip::write(&answered.body).await,
            _ => None,
        };
        let answered = match answered {
            Ok(answered) => self.weighed(answered, packed).await,
            Err(error) => Err(error),
        };
        drop(working);
        self.send(content_type, answered)
    }

    /// The body, decompressed.
    async fn read(&self, headers: &HeaderMap, body: Incoming, held: &mut Held) -> Result<Bytes, Unread> {
        let body = body::read(body, self.limits.body, self.limits.body_read, held).await?;
        gzip::read(headers, body, self.limits.body, held).await
    }

    /// The answer to a request whose body could not be read.
    fn refuse_body(&self, head: &Parts, peer: &Peer, why: Unread) -> Response<Body> {
        let error = match why {
            Unread::TooLarge => Error::new(
                Code::RequestEntityTooLarge,
                format!("The request body is larger than {} bytes", self.limits.body),
            ),
            Unread::NoRoom => {
                self.counts.over_bodies.increment(1);
                self.budget.no_room("this body")
            }
            Unread::Late => {
                self.counts.late_bodies.increment(1);
                let seconds = self.limits.body_read.as_secs_f32();
                Error::new(
                    Code::RequestTimeoutException,
                    format!("The request body did not arrive within {seconds} s"),
                )
            }
            Unread::Broken | Unread::Malformed => Error::bare(Code::SerializationException),
        };
        let refusal = self.refuse(content_type(&head.headers), &error);
        if why == Unread::Malformed {
            return refusal;
        }
        peer.exchange.set_cut();
        reply::closing(refusal)
    }

    /// The answer to a request that is not processed further, after its body was read and dropped.
    async fn turn_away(&self, head: &Parts, body: Incoming, peer: &Peer, error: &Error) -> Response<Body> {
        body::skip(body, self.limits.body, self.limits.body_read).await;
        peer.exchange.set_cut();
        reply::closing(self.refuse(content_type(&head.headers), error))
    }

    /// The answer of the service, or of that store.
    async fn operate(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        held: Held,
        store: Option<Arc<dyn Store>>,
    ) -> Result<Answered, Error> {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let checked = target
            .and_then(Operation::from_target)
            .ok_or_else(|| Error::bare(Code::UnknownOperationException))
            .and_then(|operation| authorization::check(headers).map(|()| operation))
            .and_then(|operation| refuse_browsers(headers).map(|()| operation));
        let operation = match checked {
            Ok(operation) if !body.is_empty() => operation,
            // A body that is not JSON is reported before all other errors. A valid request is parsed only once, by its reader.
            Ok(_) => return Err(Error::bare(Code::SerializationException)),
            Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_err() => {
                return Err(Error::bare(Code::SerializationException));
            }
            Err(error) => return Err(error),
        };
        let Some(slot) = self.in_flight.take() else {
            self.counts.over_requests.increment(1);
            let message = format!("More than {} requests are in progress", self.limits.requests);
            return Err(Error::new(Code::ThrottlingException, message));
        };
        let read_only = only_reads(operation, &body);
        let alone = if read_only {
            Alone::Ends(self.counts.reads_cancelled.clone())
        } else {
            Alone::GoesOn(self.counts.writes_alone.clone())
        };
        let service = Arc::clone(&self.service);
        let sent = Arc::new(Sent::default());
        let sends = Arc::clone(&sent);
        let work = async move {
            let answer = match store {
                None => service.call_until(operation, body, &sends).await,
                Some(store) => {
                    sends.begin();
                    store.call(operation, body).await.map(Answer::from)
                }
            };
            drop((slot, held));
            answer
        };
        // Not through Env: a bound on an I/O wait. tokio registers the timer only if the answer is not there at once.
        match tokio::time::timeout(self.limits.request, Work::new(work, alone)).await {
            Ok(answer) => answer.map(|Answer { body, missing }| Answered { body, missing, read_only }),
            // It waited all the time: for a layout to change, or for the registry.
            Err(_) if sent.give_up() => {
                let message = format!(
                    "No answer within {} s; nothing of the request was sent, so nothing was done. Try again",
                    self.limits.request.as_secs()
                );
                Err(Error::unavailable(message, Outcome::NotDone))
            }
            Err(_) => {
                let message = format!(
                    "No answer within {} s; the request may have been carried out",
                    self.limits.request.as_secs()
                );
                Err(Error::unavailable(message, Outcome::Unknown))
            }
        }
    }

    /// An answer that is counted until the client has taken it; `packed` is its body in gzip. The answer of a write is sent even if there is no
    /// room.
    async fn weighed(&self, answered: Answered, packed: Option<Bytes>) -> Result<Weighed, Error> {
        let is_packed = packed.is_some();
        let body = packed.unwrap_or(answered.body);
        let held = if body.len() <= UNCOUNTED {
            None
        } else if answered.read_only {
            let Some(held) = self.budget.enter_answer(body.len()).await else {
                self.counts.over_answers.increment(1);
                return Err(self.budget.no_room("this answer"));
            };
            Some(held)
        } else {
            let mut held = self.budget.hold(Of::Answers);
            held.force(body.len());
            Some(held)
        };
        Ok(Weighed { body, is_packed, held, missing: answered.missing })
    }

    /// The HTTP answer for a result of the service.
    fn send(&self, content_type: HeaderValue, answered: Result<Weighed, Error>) -> Response<Body> {
        let answered = match answered {
            Ok(answered) => answered,
            Err(error) => return self.refuse(Some(content_type), &error),
        };
        let reply =
            reply::reply(&*self.env, StatusCode::OK, Some(content_type), answered.body, answered.held);
        let reply = if answered.is_packed { reply::packed(reply) } else { reply };
        reply::partial(reply, &answered.missing)
    }

    fn refuse(&self, content_type: Option<HeaderValue>, error: &Error) -> Response<Body> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.reply(status, content_type, error.body())
    }

    fn reply(&self, status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Body> {
        reply::reply(&*self.env, status, content_type, body, None)
    }
}

/// Whether a request changes nothing, so that it may be cancelled half-way. A SELECT statement changes nothing; batches and transactions of
/// statements are not examined.
fn only_reads(operation: Operation, body: &Bytes) -> bool {
    let selects = || {
        let statement = json::member(body, "Statement").ok().flatten();
        let statement = statement.and_then(|statement| json::string(statement).ok()).unwrap_or_default();
        statement.trim_start().get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("select"))
    };
    operation.only_reads() || operation == Operation::ExecuteStatement && selects()
}

/// Browsers send `Origin` with every POST, SDKs outside browsers never do. No page may reach the endpoint, not even through its own name that
/// resolves to this machine: signatures are not checked, so nothing else would stop it.
fn refuse_browsers(headers: &HeaderMap) -> Result<(), Error> {
    if origin::is_of_a_page(headers) {
        return Err(Error::new(
            Code::AccessDeniedException,
            "Requests from web pages are not served (Origin header)",
        ));
    }
    Ok(())
}

/// The content type to echo, if DynamoDB accepts it.
fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = given.split(';').next().unwrap_or_default().trim();
    CONTENT_TYPES.into_iter().find(|known| *known == plain).map(HeaderValue::from_static)
}
