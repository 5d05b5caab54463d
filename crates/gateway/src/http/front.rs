//! The door of clients: answers one HTTP request, with DynamoDB's order of checks: host, path and
//! method, content type, body, target, signature, then the operation itself.
//!
//! The stages of a request around those of the service (`crate::service`): admit (the size of its
//! head, its connection, its host, its certificate, what its head claims), receive and authenticate
//! (`receive`), admit to a place in progress and have it carried out (`operate`), deliver
//! (`deliver`). Where clients sign, a head that breaks a rule of signatures costs no body, and a body
//! that is not signed is not inflated. Elsewhere only the shape and the scope of a signature are
//! checked.
//!
//! Nothing below `/_heatsink/` is here: to clients these are paths like any other that DynamoDB
//! does not know.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Outcome};
use heatsink_env::Env;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::answer::Body;
use super::asked::asked;
use super::body::{self, Unread};
use super::deliver::deliver;
use super::door::{Door, Peer, Shared};
use super::live::Live;
use super::operate::operate;
use super::receive::{Unreceived, receive, unread};
use super::sender::Claims;
use super::{cors, head, origin, reply};
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
        let origin = self.shared.live.get().origins.allowed(request.headers());
        let mut response = self.answer_to(request, peer, origin.is_some()).await;
        if let Some(origin) = origin {
            cors::expose(&mut response, origin);
        }
        response
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

    /// `is_allowed`: it is of a web page that may ask.
    async fn answer_to(&self, request: Request<Incoming>, peer: &Peer, is_allowed: bool) -> Response<Body> {
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
        // A browser signs no such question, and asks it before each kind of request.
        if is_allowed && cors::is_preflight(&head.method, &head.headers) {
            let mut permission = self.reply(StatusCode::NO_CONTENT, None, Bytes::new());
            cors::permit(&mut permission, &head.headers);
            return permission;
        }

        let is_posted = head.method == Method::POST && head.uri.path() == "/";
        let claims = match Claims::of((&self.service, &self.shared), &head, peer) {
            Ok(claims) => claims,
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
        let received = receive((&self.service, &self.shared), (&head, body), peer, claims, &mut held).await;
        let (body, sender) = match received {
            Ok(received) => received,
            Err(Unreceived::Body(why)) => {
                let refusal = self.refuse(content_type(&head.headers), &unread(&self.shared, why));
                if why == Unread::Malformed {
                    return refusal;
                }
                peer.exchange.set_cut();
                return reply::closing(refusal);
            }
            Err(Unreceived::Sender(error)) => {
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
        let may_ask = || {
            sender.check_named(&head.headers, self.service.region())?;
            if is_allowed { Ok(()) } else { no_page(&head.headers) }
        };
        let answered = match asked(&head.headers, &body, may_ask) {
            Ok(operation) => {
                operate((&self.service, &self.shared), operation, body, held, sender.caller).await
            }
            Err(error) => Err(error),
        };
        let reply = match answered {
            Ok(answered) => deliver(&self.shared, &head.headers, content_type.clone(), answered).await,
            Err(error) => Err(error),
        };
        drop(working);
        reply.unwrap_or_else(|error| self.refuse(Some(content_type), &error))
    }

    /// The answer to a request that is not processed further, after its body was read and dropped.
    async fn turn_away(&self, head: &Parts, body: Incoming, peer: &Peer, error: &Error) -> Response<Body> {
        body::skip(body, self.shared.limits.body, self.shared.limits.body_read).await;
        peer.exchange.set_cut();
        reply::closing(self.refuse(content_type(&head.headers), error))
    }

    fn refuse(&self, content_type: Option<HeaderValue>, error: &Error) -> Response<Body> {
        reply::refusal(&*self.shared.env, content_type, error)
    }

    fn reply(&self, status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Body> {
        reply::reply(&*self.shared.env, status, content_type, body, None)
    }
}

/// Browsers send `Origin` with every POST, SDKs outside browsers never do. No page may reach the
/// endpoint unless its origin is named, not even through its own name that resolves to this machine:
/// where no clients are known, nothing else would stop it.
fn no_page(headers: &HeaderMap) -> Result<(), Error> {
    if origin::is_of_a_page(headers) {
        let message = "Requests from web pages are not served (Origin header), but for origins that the server was started with (--allow-origin)";
        return Err(Error::new(Code::AccessDeniedException, message));
    }
    Ok(())
}

/// The content type to echo, if DynamoDB accepts it.
fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = given.split(';').next().unwrap_or_default().trim();
    CONTENT_TYPES.into_iter().find(|known| *known == plain).map(HeaderValue::from_static)
}
