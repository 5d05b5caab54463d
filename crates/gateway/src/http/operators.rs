//! Answers operators: everything at the admin address, and the same data on the endpoint of the clients.
//!
//! Not here: who may ask (`admin_address`, `admin`), what is told (`admin`, `overview`, `heat_map`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_env::Env;
use heatsink_heat::history::Span;
use http::header::{CONTENT_SECURITY_POLICY, VARY};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use metrics::Counter;

use super::admin_address::{self, Access, Wanted};
use super::answer::Body;
use super::gzip;
use super::heat_map::HeatMaps;
use super::page::PAGE;
use super::{admin, overview, reply};
use crate::Service;
use crate::budget::{Held, UNCOUNTED};

/// Answers operators.
pub(super) struct Operators {
    service: Arc<Service>,
    maps: HeatMaps,
    env: Arc<dyn Env>,
    /// Answers that found no room.
    over_answers: Counter,
}

impl Operators {
    pub(super) fn new(service: Arc<Service>, env: Arc<dyn Env>, over_answers: Counter) -> Self {
        Operators { service, maps: HeatMaps::default(), env, over_answers }
    }

    /// The answer to a request at the admin address. None of them has a body.
    pub(super) async fn answer(&self, head: &Parts, access: &Access) -> Response<Body> {
        let plain = Some(HeaderValue::from_static("text/plain; charset=utf-8"));
        let refusal = |status, problem: &str| {
            let body = Bytes::from(serde_json::json!({ "error": problem }).to_string());
            self.reply(status, Some(HeaderValue::from_static("application/json")), body)
        };
        let mut response = match access.wanted(head) {
            Wanted::Page => {
                let html = Some(HeaderValue::from_static("text/html; charset=utf-8"));
                let mut page = self.told(head, StatusCode::OK, html, PAGE.document.clone()).await;
                page.headers_mut().insert(CONTENT_SECURITY_POLICY, PAGE.policy.clone());
                reply::closing(page)
            }
            Wanted::Alive => {
                reply::closing(self.reply(StatusCode::OK, plain, Bytes::from_static(b"alive\n")))
            }
            Wanted::Ready => reply::closing(match self.service.not_ready() {
                None => self.reply(StatusCode::OK, plain, Bytes::from_static(b"ready\n")),
                Some(why) => {
                    self.reply(StatusCode::SERVICE_UNAVAILABLE, plain, Bytes::from(format!("{why}\n")))
                }
            }),
            // Who may ask for data keeps its connection. All others have theirs for one answer.
            Wanted::Data => match self.tell(head, true).await {
                Some(told) => told,
                None => refusal(StatusCode::NOT_FOUND, "nothing is at this path"),
            },
            Wanted::Refused(status, problem) => reply::closing(refusal(status, problem)),
        };
        response.headers_mut().extend(admin_address::HEADERS);
        response
    }

    /// What operators may know, at a path that tells it.
    pub(super) async fn tell(&self, head: &Parts, may_ask: bool) -> Option<Response<Body>> {
        let (service, mut content_type) = (&self.service, "application/json");
        let (status, body) = match head.uri.path() {
            admin::PARTITIONS => admin::partitions(head, may_ask, service.partitions()),
            admin::METRICS => {
                content_type = "text/plain; version=0.0.4";
                admin::metrics(may_ask, service.recorded())
            }
            admin::HEAT => admin::heat(head, may_ask, service).await,
            admin::HEAT_MAP => match admin::span(head, may_ask) {
                Ok(span) => return Some(self.tell_map(head, span).await),
                Err(refusal) => refusal,
            },
            admin::RESHARDS => {
                admin::read(may_ask, overview::reshards(service.control(), head.uri.query())).await
            }
            admin::GATEWAYS => admin::read(may_ask, overview::gateways(service.control())).await,
            _ => return None,
        };
        Some(self.told(head, status, Some(HeaderValue::from_static(content_type)), body).await)
    }

    /// The heat of keys over a span.
    async fn tell_map(&self, head: &Parts, span: Span) -> Response<Body> {
        let wanted = gzip::wanted(&head.headers);
        let Some((body, is_packed)) = self.maps.of(span, wanted, &self.service, &*self.env).await else {
            return self.no_room();
        };
        self.varied(StatusCode::OK, Some(HeaderValue::from_static("application/json")), body, is_packed, None)
    }

    /// An answer in gzip for those who take it. A large one is counted until they have taken it.
    async fn told(
        &self,
        head: &Parts,
        status: StatusCode,
        content_type: Option<HeaderValue>,
        body: Bytes,
    ) -> Response<Body> {
        let packed = if gzip::wanted(&head.headers) { gzip::write(&body).await } else { None };
        let is_packed = packed.is_some();
        let body = packed.unwrap_or(body);
        let held = match body.len() {
            ..=UNCOUNTED => None,
            bytes => match self.service.budget().enter_answer(bytes).await {
                Some(held) => Some(held),
                None => return self.no_room(),
            },
        };
        self.varied(status, content_type, body, is_packed, held)
    }

    fn varied(
        &self,
        status: StatusCode,
        content_type: Option<HeaderValue>,
        body: Bytes,
        is_packed: bool,
        held: Option<Held>,
    ) -> Response<Body> {
        let told = reply::reply(&*self.env, status, content_type, body, held);
        let mut told = if is_packed { reply::packed(told) } else { told };
        told.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        told
    }

    /// The answer to an operator whose answer has no room.
    fn no_room(&self) -> Response<Body> {
        self.over_answers.increment(1);
        let error = self.service.budget().no_room("this answer");
        self.reply(StatusCode::SERVICE_UNAVAILABLE, None, error.body())
    }

    fn reply(&self, status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Body> {
        reply::reply(&*self.env, status, content_type, body, None)
    }
}
