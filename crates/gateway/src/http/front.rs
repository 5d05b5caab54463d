//! The door of clients: answers one HTTP request, with DynamoDB's order of checks: host, path and
//! method, content type, body, target, signature, then the operation itself.
//!
//! The stages of a request that stand here, before and after those of the service
//! (`crate::service`): admit (the size of its head, its connection, its host, what its head claims),
//! receive (its body), authenticate (its signature; no web page), admit to a place in progress, the
//! service, deliver (what waits for the client counts). Where clients are known, a head that breaks
//! a rule of signatures costs no body, and a body that is not signed is not inflated. Where none
//! are, only the shape and the scope of a signature are checked.
//!
//! Nothing below `/_heatsink/` is here: to clients these are paths like any other that DynamoDB
//! does not know.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_access::{BodyHasher, Caller, Claim, Clients};
use heatsink_dynamo::{Code, Error, Operation, Outcome, json};
use heatsink_env::Env;
use heatsink_route::Answer;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::answer::Body;
use super::body::{self, Unread};
use super::door::{Door, Peer, Shared};
use super::gzip;
use super::head;
use super::live::Live;
use super::origin;
use super::work::{Alone, Work};
use super::{authorization, reply};
use crate::budget::{Held, Of, UNCOUNTED};
use crate::metrics::Wire;
use crate::sent::Sent;
use crate::{Limits, Service};

const NOT_FOUND: &[u8] = b"<UnknownOperationException/>\n";
const CONTENT_TYPES: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

/// Answers clients; shared by all connections.
pub(super) struct Front {
    service: Arc<Service>,
    shared: Shared,
}

/// Why a request was not received.
enum Unreceived {
    Body(Unread),
    Signature(Error),
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

impl Door for Front {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let Shared { limits, live, env, counts, budget, .. } = &self.shared;
        let (head, body) = request.into_parts();

        // Admit. Before the body: who is not served sends nothing that is kept.
        if head::size(&head) > limits.head {
            body::skip(body, limits.body, limits.body_read).await;
            peer.exchange.set_cut();
            return head::too_large(&**env);
        }
        if peer.surplus {
            counts.over_connections.increment(1);
            let message = format!("More than {} connections are open", live.get().connections);
            let error = Error::unavailable(message, Outcome::NotDone);
            return self.turn_away(&head, body, peer, &error).await;
        }
        let served = live.get().hosts.check(&head);
        if let Err(error) = served {
            counts.foreign_hosts.increment(1);
            return self.turn_away(&head, body, peer, &error).await;
        }
        if head.method == Method::GET && head.uri.path() == "/" {
            let healthy = format!("healthy: dynamodb.{}.amazonaws.com ", self.service.region());
            return self.reply(StatusCode::OK, None, Bytes::from(healthy));
        }

        // One set of clients for the whole request, whatever is loaded meanwhile.
        let clients = self.service.clients().load_full();
        let is_posted = head.method == Method::POST && head.uri.path() == "/";
        let claim = match clients.claim(&head, env.unix_millis()) {
            Ok(claim) => claim,
            Err(_) if !is_posted => {
                body::skip(body, limits.body, limits.body_read).await;
                peer.exchange.set_cut();
                let not_found = self.reply(StatusCode::NOT_FOUND, None, Bytes::from_static(NOT_FOUND));
                return reply::closing(not_found);
            }
            Err(error) => {
                counts.wrong_signatures.increment(1);
                return self.turn_away(&head, body, peer, &error).await;
            }
        };

        // Receive. Before the path is looked at, as DynamoDB does: a request is answered once it
        // has come whole.
        let mut held = budget.hold(Of::Requests);
        let (body, caller) = match self.receive(&head, body, &mut held, &clients, claim).await {
            Ok(received) => received,
            Err(Unreceived::Body(why)) => return self.refuse_body(&head, peer, why),
            Err(Unreceived::Signature(error)) => {
                counts.wrong_signatures.increment(1);
                return self.refuse(content_type(&head.headers), &error);
            }
        };
        let content_type = content_type(&head.headers);
        let Some(content_type) = content_type.filter(|_| is_posted) else {
            return self.reply(StatusCode::NOT_FOUND, None, Bytes::from_static(NOT_FOUND));
        };

        // From here on the client is probed: work for one that has gone ends. HTTP/1.0 has no
        // interim answers, so such a client cannot be probed.
        let working = (head.version == Version::HTTP_11).then(|| peer.exchange.work());
        let answered = match self.asked(&head.headers, &body, caller.as_ref()) {
            Ok(operation) => self.operate(operation, body, held, caller).await,
            Err(error) => Err(error),
        };

        // Deliver. The answer is packed before it is weighed: what waits for the client is what
        // counts.
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

    fn is_stopping(&self) -> bool {
        self.service.is_stopping()
    }

    fn closes(&self) {
        self.service.stop_soon();
    }
}

impl Front {
    pub(super) fn new(service: Arc<Service>, limits: Limits, live: Live, env: Arc<dyn Env>) -> Self {
        let shared = Shared::new(limits, live, env, Arc::clone(service.budget()), Wire::new());
        Front { service, shared }
    }

    /// The body, decompressed, and who has signed it. It is hashed as it comes, and inflated only
    /// if it is signed.
    async fn receive(
        &self,
        head: &Parts,
        body: Incoming,
        held: &mut Held,
        clients: &Clients,
        claim: Option<Claim<'_>>,
    ) -> Result<(Bytes, Option<Caller>), Unreceived> {
        let Shared { limits, env, .. } = &self.shared;
        let mut hasher = claim.is_some().then(BodyHasher::default);
        let mut see = |piece: &[u8]| {
            if let Some(hasher) = &mut hasher {
                hasher.add(piece);
            }
        };
        // Who is not known has to send all of it, to be told so when another client would be, but
        // holds no room.
        let body = match &claim {
            Some(claim) if !clients.knows(claim) => {
                body::hear(body, limits.body, limits.body_read, &mut see).await.map(|()| Bytes::new())
            }
            _ => body::read(body, limits.body, limits.body_read, held, &mut see).await,
        };
        let body = body.map_err(Unreceived::Body)?;
        let caller = match claim.zip(hasher) {
            Some((claim, hasher)) => {
                let caller = clients.authenticate(claim, &hasher.finish(), env.unix_millis());
                caller.map_err(Unreceived::Signature)?
            }
            None => None,
        };
        let body = gzip::read(&head.headers, body, limits.body, held).await.map_err(Unreceived::Body)?;
        Ok((body, caller))
    }

    /// The operation of a request whose sender may ask for it. A body that is not JSON is reported
    /// before all other errors; a valid request is parsed only once, by its reader.
    ///
    /// Browsers send `Origin` with every POST, SDKs outside browsers never do. No page may reach
    /// the endpoint, not even through its own name that resolves to this machine: where no clients
    /// are known, nothing else would stop it.
    fn asked(&self, headers: &HeaderMap, body: &Bytes, caller: Option<&Caller>) -> Result<Operation, Error> {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let checked = target
            .and_then(Operation::from_target)
            .ok_or_else(|| Error::bare(Code::UnknownOperationException))
            .and_then(|operation| match caller {
                Some(_) => Ok(operation),
                None => authorization::check(headers, self.service.region()).map(|()| operation),
            });
        let page = || {
            let message = "Requests from web pages are not served (Origin header)";
            Error::new(Code::AccessDeniedException, message)
        };
        match checked {
            _ if body.is_empty() => Err(Error::bare(Code::SerializationException)),
            Ok(operation) if !origin::is_of_a_page(headers) => Ok(operation),
            _ if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err() => {
                Err(Error::bare(Code::SerializationException))
            }
            Ok(_) => Err(page()),
            Err(error) => Err(error),
        }
    }

    /// The answer to a request whose body could not be read.
    fn refuse_body(&self, head: &Parts, peer: &Peer, why: Unread) -> Response<Body> {
        let error = match why {
            Unread::TooLarge => Error::new(
                Code::RequestEntityTooLarge,
                format!("The request body is larger than {} bytes", self.shared.limits.body),
            ),
            Unread::NoRoom => {
                self.shared.counts.over_bodies.increment(1);
                self.shared.budget.no_room("this body")
            }
            Unread::Late => {
                self.shared.counts.late_bodies.increment(1);
                let seconds = self.shared.limits.body_read.as_secs_f32();
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
        body::skip(body, self.shared.limits.body, self.shared.limits.body_read).await;
        peer.exchange.set_cut();
        reply::closing(self.refuse(content_type(&head.headers), error))
    }

    /// The answer of the service, within the time that a request has.
    async fn operate(
        &self,
        operation: Operation,
        body: Bytes,
        held: Held,
        caller: Option<Caller>,
    ) -> Result<Answered, Error> {
        let Shared { limits, live, counts, in_flight, .. } = &self.shared;
        // Admit to a place in progress. After authentication: who is not known takes none.
        let most = live.get().requests;
        let Some(slot) = in_flight.take(most) else {
            counts.over_requests.increment(1);
            let message = format!("More than {most} requests are in progress");
            return Err(Error::new(Code::ThrottlingException, message));
        };
        let read_only = only_reads(operation, &body);
        let alone = if read_only {
            Alone::Ends(counts.reads_cancelled.clone())
        } else {
            Alone::GoesOn(counts.writes_alone.clone())
        };
        let service = Arc::clone(&self.service);
        let sent = Arc::new(Sent::default());
        let sends = Arc::clone(&sent);
        let work = async move {
            let answer = service.call_until(operation, body, &sends, caller.as_ref()).await;
            drop((slot, held));
            answer
        };
        // Not through Env: a bound on an I/O wait. tokio registers the timer only if the answer is
        // not there at once.
        match tokio::time::timeout(limits.request, Work::new(work, alone)).await {
            Ok(answer) => answer.map(|Answer { body, missing }| Answered { body, missing, read_only }),
            // It waited all the time: for a layout to change, or for the registry.
            Err(_) if sent.give_up() => {
                let message = format!(
                    "No answer within {} s; nothing of the request was sent, so nothing was done. Try again",
                    limits.request.as_secs()
                );
                Err(Error::unavailable(message, Outcome::NotDone))
            }
            Err(_) => {
                let message = format!(
                    "No answer within {} s; the request may have been carried out",
                    limits.request.as_secs()
                );
                Err(Error::unavailable(message, Outcome::Unknown))
            }
        }
    }

    /// An answer that is counted until the client has taken it; `packed` is its body in gzip. The
    /// answer of a write is sent even if there is no room.
    async fn weighed(&self, answered: Answered, packed: Option<Bytes>) -> Result<Weighed, Error> {
        let is_packed = packed.is_some();
        let body = packed.unwrap_or(answered.body);
        let held = if body.len() <= UNCOUNTED {
            None
        } else if answered.read_only {
            let Some(held) = self.shared.budget.enter_answer(body.len()).await else {
                self.shared.counts.over_answers.increment(1);
                return Err(self.shared.budget.no_room("this answer"));
            };
            Some(held)
        } else {
            let mut held = self.shared.budget.hold(Of::Answers);
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
            reply::reply(&*self.shared.env, StatusCode::OK, Some(content_type), answered.body, answered.held);
        let reply = if answered.is_packed { reply::packed(reply) } else { reply };
        reply::partial(reply, &answered.missing)
    }

    fn refuse(&self, content_type: Option<HeaderValue>, error: &Error) -> Response<Body> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.reply(status, content_type, error.body())
    }

    fn reply(&self, status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Body> {
        reply::reply(&*self.shared.env, status, content_type, body, None)
    }
}

/// Whether a request changes nothing, so that it may be cancelled half-way. A SELECT statement
/// changes nothing; batches and transactions of statements are not examined.
fn only_reads(operation: Operation, body: &Bytes) -> bool {
    let selects = || {
        let statement = json::member(body, "Statement").ok().flatten();
        let statement = statement.and_then(|statement| json::string(statement).ok()).unwrap_or_default();
        statement.trim_start().get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("select"))
    };
    operation.only_reads() || operation == Operation::ExecuteStatement && selects()
}

/// The content type to echo, if DynamoDB accepts it.
fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = given.split(';').next().unwrap_or_default().trim();
    CONTENT_TYPES.into_iter().find(|known| *known == plain).map(HeaderValue::from_static)
}
