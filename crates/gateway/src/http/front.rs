//! The door of clients: answers one HTTP request, with DynamoDB's order of checks: host, path and
//! method, content type, body, target, signature, then the operation itself.
//!
//! The stages of a request around those of the service (`crate::service`): admit (the size of its
//! head, its connection, its host, what its head claims), receive and authenticate (`receive`),
//! admit to a place in progress and have it carried out (`operate`), deliver (`deliver`). Where
//! clients are known, a head that breaks a rule of signatures costs no body, and a body that is not
//! signed is not inflated. Where none are, only the shape and the scope of a signature are checked.
//!
//! Nothing below `/_heatsink/` is here: to clients these are paths like any other that DynamoDB
//! does not know.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_access::Caller;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Env;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::answer::Body;
use super::body::{self, Unread};
use super::deliver::deliver;
use super::door::{Door, Peer, Shared};
use super::live::Live;
use super::operate::operate;
use super::receive::{Unreceived, receive, unread};
use super::{authorization, head, origin, reply};
use crate::budget::Of;
use crate::metrics::Wire;
use crate::{Limits, Service};

const NOT_FOUND: &[u8] = b"<UnknownOperationException/>\n";
const CONTENT_TYPES: [&str; 2] = ["application/x-amz-json-1.0", "application/json"];

/// Answers clients; shared by all connections.
pub(super) struct Front {
    service: Arc<Service>,
    shared: Shared,
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
        let (body, caller) = match receive(&self.shared, &head, body, &mut held, &clients, claim).await {
            Ok(received) => received,
            Err(Unreceived::Body(why)) => {
                let refusal = self.refuse(content_type(&head.headers), &unread(&self.shared, why));
                if why == Unread::Malformed {
                    return refusal;
                }
                peer.exchange.set_cut();
                return reply::closing(refusal);
            }
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
            Ok(operation) => operate((&self.service, &self.shared), operation, body, held, caller).await,
            Err(error) => Err(error),
        };
        let reply = match answered {
            Ok(answered) => deliver(&self.shared, &head.headers, content_type.clone(), answered).await,
            Err(error) => Err(error),
        };
        drop(working);
        reply.unwrap_or_else(|error| self.refuse(Some(content_type), &error))
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

    /// The answer to a request that is not processed further, after its body was read and dropped.
    async fn turn_away(&self, head: &Parts, body: Incoming, peer: &Peer, error: &Error) -> Response<Body> {
        body::skip(body, self.shared.limits.body, self.shared.limits.body_read).await;
        peer.exchange.set_cut();
        reply::closing(self.refuse(content_type(&head.headers), error))
    }

    fn refuse(&self, content_type: Option<HeaderValue>, error: &Error) -> Response<Body> {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.reply(status, content_type, error.body())
    }

    fn reply(&self, status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Body> {
        reply::reply(&*self.shared.env, status, content_type, body, None)
    }
}

/// The content type to echo, if DynamoDB accepts it.
fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = given.split(';').next().unwrap_or_default().trim();
    CONTENT_TYPES.into_iter().find(|known| *known == plain).map(HeaderValue::from_static)
}
