//! The door of operators: everything at the admin address.
//!
//! Not here: who may ask (`admin_address`), what is told (`operators`), the page itself (`page`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_env::Env;
use http::header::CONTENT_SECURITY_POLICY;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admin_address::{self, Access, Wanted};
use super::answer::Body;
use super::door::{Door, Peer, Shared};
use super::hosts::Hosts;
use super::live::{Live, Settings};
use super::operators::Operators;
use super::page::PAGE;
use super::{body, head, reply};
use crate::metrics::Wire;
use crate::{Limits, Status};

/// The most connections of operators and scrapers. As many more get one answer each
/// (`http::REFUSED`): health, or what their token is for.
const CONNECTIONS: usize = 64;
/// How long a new connection of theirs may be silent before its first head is complete. Who asks
/// for health sends at once, and who is silent does not hold a place for longer.
const FIRST_HEAD: Duration = Duration::from_secs(1);
/// How long a connection of theirs may be without a further request, and without taking an answer.
const WAIT: Duration = Duration::from_secs(5);
/// How long their requests may go on when the gateway has stopped.
const DRAIN: Duration = Duration::from_secs(1);

/// Answers at the admin address.
pub(super) struct AdminDoor {
    shared: Shared,
    access: Access,
    operators: Operators,
    status: Arc<Status>,
}

impl AdminDoor {
    pub(super) fn new(status: Arc<Status>, access: Access, env: Arc<dyn Env>) -> Self {
        let limits = Limits {
            connections: CONNECTIONS,
            drain: DRAIN,
            head_read: WAIT,
            answer_read: WAIT,
            ..Limits::default()
        };
        // Nobody here is a client of the tables, whom the metrics count.
        let live = Live::new(Settings::plain(Hosts::loopback(), &limits));
        let shared =
            Shared::new(limits, live, Arc::clone(&env), Arc::clone(status.budget()), Wire::unrecorded());
        let shared = Shared { first_head: Some(FIRST_HEAD), ..shared };
        AdminDoor { shared, access, operators: Operators::new(Arc::clone(&status), env), status }
    }

    /// The answer to a request. None of them has a body.
    async fn told(&self, head: &Parts) -> Response<Body> {
        let plain = |status, text: Bytes| {
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            reply::closing(self.operators.reply(status, Some(plain), text))
        };
        let mut response = match self.access.wanted(head) {
            Wanted::Page => {
                let html = HeaderValue::from_static("text/html; charset=utf-8");
                let mut page = self.operators.told(head, StatusCode::OK, html, PAGE.document.clone()).await;
                page.headers_mut().insert(CONTENT_SECURITY_POLICY, PAGE.policy.clone());
                reply::closing(page)
            }
            Wanted::Alive => plain(StatusCode::OK, Bytes::from_static(b"alive\n")),
            Wanted::Ready => match self.status.not_ready() {
                None => plain(StatusCode::OK, Bytes::from_static(b"ready\n")),
                Some(why) => plain(StatusCode::SERVICE_UNAVAILABLE, Bytes::from(format!("{why}\n"))),
            },
            // Who may ask for data keeps its connection. All others have theirs for one answer.
            Wanted::Data => self.operators.answer(head).await,
            Wanted::Refused(status, problem) => reply::closing(self.operators.refuse(status, problem)),
        };
        response.headers_mut().extend(admin_address::HEADERS);
        response
    }
}

impl Door for AdminDoor {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Body> {
        let limits = &self.shared.limits;
        let (parts, body) = request.into_parts();
        if head::size(&parts) > limits.head {
            body::skip(body, limits.body, limits.body_read).await;
            peer.exchange.set_cut();
            return head::too_large(&*self.shared.env);
        }
        let answer = self.told(&parts).await;
        if peer.surplus { reply::closing(answer) } else { answer }
    }
}
