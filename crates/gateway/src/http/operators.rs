//! What operators are told, as answers: data below `/_heatsink/`, in gzip for those who take it.
//!
//! Not here: who may ask (`admin_address`, `operator_socket`), what is in the data (`admin`,
//! `overview`, `heat_map`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_env::Env;
use heatsink_heat::history::Span;
use http::header::VARY;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use super::answer::Body;
use super::gzip;
use super::heat_map::HeatMaps;
use super::shared_read::SharedRead;
use super::{admin, overview, reply};
use crate::Status;
use crate::budget::{Held, UNCOUNTED};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METRICS_TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// Answers operators who may ask.
pub(super) struct Operators {
    status: Arc<Status>,
    maps: HeatMaps,
    reshards: SharedRead,
    gateways: SharedRead,
    env: Arc<dyn Env>,
}

impl Operators {
    pub(super) fn new(status: Arc<Status>, env: Arc<dyn Env>) -> Self {
        Operators {
            status,
            maps: HeatMaps::default(),
            reshards: SharedRead::default(),
            gateways: SharedRead::default(),
            env,
        }
    }

    /// The answer to a GET for data.
    pub(super) async fn answer(&self, head: &Parts) -> Response<Body> {
        let (status, query) = (&*self.status, head.uri.query().unwrap_or_default());
        let mut content_type = JSON;
        let (code, body) = match head.uri.path() {
            admin::PARTITIONS => admin::partitions(query, status.partitions()),
            admin::METRICS => {
                content_type = METRICS_TEXT;
                admin::metrics(status.metrics())
            }
            admin::HEAT => admin::heat(query, status).await,
            admin::HEAT_MAP => match admin::span(query) {
                Ok(span) => return self.tell_map(head, span).await,
                Err(refusal) => refusal,
            },
            admin::RESHARDS => {
                let after = admin::value(query, "after");
                let read = admin::read(overview::reshards(status.control(), after));
                self.reshards.of(after.unwrap_or_default(), &*self.env, read).await
            }
            admin::GATEWAYS => {
                let read = admin::read(overview::gateways(status.control()));
                self.gateways.of("", &*self.env, read).await
            }
            admin::READY => match status.not_ready() {
                None => (StatusCode::OK, Bytes::from_static(b"{\"ready\":true}")),
                Some(why) => return self.refuse(StatusCode::SERVICE_UNAVAILABLE, why),
            },
            _ => return self.refuse(StatusCode::NOT_FOUND, "nothing is at this path"),
        };
        self.told(head, code, content_type, body).await
    }

    /// The heat of keys over a span.
    async fn tell_map(&self, head: &Parts, span: Span) -> Response<Body> {
        let wanted = gzip::wanted(&head.headers);
        let Some((body, is_packed)) = self.maps.of(span, wanted, &self.status, &*self.env).await else {
            return self.no_room();
        };
        self.varied(StatusCode::OK, JSON, body, is_packed, None)
    }

    /// An answer in gzip for those who take it. A large one is counted until they have taken it.
    pub(super) async fn told(
        &self,
        head: &Parts,
        status: StatusCode,
        content_type: HeaderValue,
        body: Bytes,
    ) -> Response<Body> {
        let packed = if gzip::wanted(&head.headers) { gzip::write(&body).await } else { None };
        let is_packed = packed.is_some();
        let body = packed.unwrap_or(body);
        let held = match body.len() {
            ..=UNCOUNTED => None,
            bytes => match self.status.budget().enter_answer(bytes).await {
                Some(held) => Some(held),
                None => return self.no_room(),
            },
        };
        self.varied(status, content_type, body, is_packed, held)
    }

    fn varied(
        &self,
        status: StatusCode,
        content_type: HeaderValue,
        body: Bytes,
        is_packed: bool,
        held: Option<Held>,
    ) -> Response<Body> {
        let told = reply::reply(&*self.env, status, Some(content_type), body, held);
        let mut told = if is_packed { reply::packed(told) } else { told };
        told.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        told
    }

    /// The answer to an operator whose answer has no room.
    fn no_room(&self) -> Response<Body> {
        let error = self.status.budget().no_room("this answer");
        self.reply(StatusCode::SERVICE_UNAVAILABLE, None, error.body())
    }

    /// The answer that says why there is no other.
    pub(super) fn refuse(&self, status: StatusCode, problem: &str) -> Response<Body> {
        self.reply(status, Some(JSON), Bytes::from(json!({ "error": problem }).to_string()))
    }

    pub(super) fn reply(
        &self,
        status: StatusCode,
        content_type: Option<HeaderValue>,
        body: Bytes,
    ) -> Response<Body> {
        reply::reply(&*self.env, status, content_type, body, None)
    }
}
