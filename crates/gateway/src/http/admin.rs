//! Endpoints for the operator's tools: `GET /_heatsink/partitions?table=T`, `GET /_heatsink/heat[?table=T]`,
//! `GET /_heatsink/heat/map?span=10m|6h|4d|28d`, `GET /_heatsink/metrics`, `GET /_heatsink/reshards`, `GET /_heatsink/gateways`, and, where the store is
//! the server's own, `POST /_heatsink/physical`: DynamoDB's protocol to the store itself.
//!
//! Not part of DynamoDB's protocol. On the endpoint of the clients only for loopback peers; on the admin address (`admin_address`) for those that it admits.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error};
use heatsink_heat::history::Span;
use heatsink_store::{PHYSICAL_PATH, Store};
use http::StatusCode;
use http::request::Parts;
use serde_json::{Value as Json, json};

use super::hosts::Hosts;
use super::origin;
use crate::{Partitions, Recorded, Service};

/// The path of the partitions.
pub(super) const PARTITIONS: &str = "/_heatsink/partitions";
/// The path of the hot keys.
pub(super) const HEAT: &str = "/_heatsink/heat";
/// The path of their history.
pub(super) const HEAT_MAP: &str = "/_heatsink/heat/map";
/// The path of the metrics.
pub(super) const METRICS: &str = "/_heatsink/metrics";
/// The path of the reshards.
pub(super) const RESHARDS: &str = "/_heatsink/reshards";
/// The path of the gateways.
pub(super) const GATEWAYS: &str = "/_heatsink/gateways";

/// The store that a request is for; `None` where it is for the service, an error where it may not ask.
pub(super) fn store(
    head: &Parts,
    local: bool,
    shown: Option<&Arc<dyn Store>>,
) -> Result<Option<Arc<dyn Store>>, Error> {
    if head.uri.path() != PHYSICAL_PATH {
        return Ok(None);
    }
    let refuse = |why: &str| Err(Error::new(Code::AccessDeniedException, why));
    match shown {
        // The host was checked; pages are refused with all others.
        _ if !local => refuse("only tools on this machine may ask"),
        _ if origin::is_forwarded(&head.headers) => refuse(
            "only tools on this machine may ask, and a proxy has passed this request on (Forwarded, Via or a header like them)",
        ),
        None => refuse("the store of this server is another endpoint: ask it there"),
        Some(store) => Ok(Some(Arc::clone(store))),
    }
}

/// The metrics in Prometheus' text format; an error is JSON, with one member `error`.
pub(super) fn metrics(may_ask: bool, recorded: Option<&Recorded>) -> (StatusCode, Bytes) {
    let refuse = |status, problem: &str| (status, Bytes::from(json!({ "error": problem }).to_string()));
    match recorded {
        _ if !may_ask => refuse(StatusCode::FORBIDDEN, "only tools on this machine may ask"),
        None => refuse(StatusCode::NOT_FOUND, "this server records no metrics"),
        Some(recorded) => (StatusCode::OK, Bytes::from(recorded())),
    }
}

/// The hot keys, all or of the table in the query, as JSON; an error is JSON too, with one member `error`.
pub(super) async fn heat(head: &Parts, may_ask: bool, service: &Service) -> (StatusCode, Bytes) {
    let (status, answer) = if may_ask {
        (StatusCode::OK, service.heat().shown(table(head.uri.query().unwrap_or_default())).await)
    } else {
        (StatusCode::FORBIDDEN, json!({ "error": "only tools on this machine may ask" }))
    };
    (status, Bytes::from(answer.to_string()))
}

/// The span of the history that is asked for.
pub(super) fn span(head: &Parts, may_ask: bool) -> Result<Span, (StatusCode, Bytes)> {
    let refuse = |status, problem: &str| (status, Bytes::from(json!({ "error": problem }).to_string()));
    if !may_ask {
        return Err(refuse(StatusCode::FORBIDDEN, "only tools on this machine may ask"));
    }
    value(head.uri.query().unwrap_or_default(), "span")
        .and_then(Span::by_name)
        .ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "which span? 10m, 6h, 4d or 28d"))
}

/// The partitions of the table in the query, as JSON; an error is JSON too, with one member `error`.
pub(super) fn partitions(head: &Parts, may_ask: bool, told: Option<&Partitions>) -> (StatusCode, Bytes) {
    let refuse = |status, problem: &str| (status, json!({ "error": problem }));
    let (status, answer) = if !may_ask {
        refuse(StatusCode::FORBIDDEN, "only tools on this machine may ask")
    } else {
        match (told, table(head.uri.query().unwrap_or_default())) {
            (None, _) => refuse(
                StatusCode::NOT_FOUND,
                "this server has no partitions: it runs upstream or without them",
            ),
            (_, None) => refuse(StatusCode::BAD_REQUEST, "which table? ask /_heatsink/partitions?table=NAME"),
            (Some(told), Some(table)) => match told(table) {
                Some(partitions) => (StatusCode::OK, partitions),
                None => refuse(StatusCode::NOT_FOUND, &format!("there is no table {table}")),
            },
        }
    };
    (status, Bytes::from(answer.to_string()))
}

/// What was read from the registry, as JSON; an error is JSON too, with one member `error`.
pub(super) async fn read(
    may_ask: bool,
    reading: impl Future<Output = Result<Json, Error>>,
) -> (StatusCode, Bytes) {
    if !may_ask {
        let refusal = json!({ "error": "only tools on this machine may ask" });
        return (StatusCode::FORBIDDEN, Bytes::from(refusal.to_string()));
    }
    let (status, answer) = match reading.await {
        Ok(answer) => (StatusCode::OK, answer),
        Err(error) if error.code == Code::ValidationException => {
            (StatusCode::BAD_REQUEST, json!({ "error": error.to_string() }))
        }
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "error": format!("the registry could not be read: {error}") }),
        ),
    };
    (status, Bytes::from(answer.to_string()))
}

/// The `table` of a query string. Table names are letters, digits, `_`, `-` and `.`, none of which is ever escaped.
fn table(query: &str) -> Option<&str> {
    value(query, "table")
}

/// The value of that name in a query string, as it was sent.
pub(super) fn value<'a>(query: &'a str, of: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, value)| *name == of && !value.is_empty()).map(|(_, value)| value)
}

/// Whether a tool on this machine asks, whose peer is `local`. No web page of others may, not even through its own name that resolves to this
/// machine, and nobody behind a proxy on this machine.
pub(super) fn from_a_tool(head: &Parts, local: bool, hosts: &Hosts) -> bool {
    local
        && hosts.check(head).is_ok()
        && !origin::is_of_a_page(&head.headers)
        && !origin::is_forwarded(&head.headers)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::header::HOST;

    use super::*;

    fn ask(uri: &str, host: &str, local: bool, told: Option<&Partitions>) -> (u16, serde_json::Value) {
        let request = Request::builder().uri(uri).header(HOST, host).body(()).unwrap();
        let head = request.into_parts().0;
        let (status, body) = partitions(&head, from_a_tool(&head, local, &Hosts::loopback()), told);
        (status.as_u16(), serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn who_may_ask_and_what_is_answered() {
        let told: Partitions = Box::new(|table| (table == "games").then(|| json!({ "table": table })));
        let games = "/_heatsink/partitions?x=1&table=games";
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"] {
            assert_eq!(ask(games, host, true, Some(&told)), (200, json!({ "table": "games" })), "{host}");
        }
        assert_eq!(ask(games, "127.0.0.1", false, Some(&told)).0, 403);
        assert_eq!(ask(games, "rebound.example", true, Some(&told)).0, 403);
        assert_eq!(ask(games, "127.0.0.1", true, None).0, 404);
        assert_eq!(ask("/_heatsink/partitions?table=none", "127.0.0.1", true, Some(&told)).0, 404);
        assert_eq!(ask("/_heatsink/partitions", "127.0.0.1", true, Some(&told)).0, 400);
    }

    #[test]
    fn who_may_ask_for_metrics() {
        let recorded: Recorded = Box::new(|| "a 1\n".to_owned());
        let ask = |host: &str, local, recorded| {
            let request = Request::builder().uri(METRICS).header(HOST, host).body(()).unwrap();
            metrics(from_a_tool(&request.into_parts().0, local, &Hosts::loopback()), recorded)
        };
        assert_eq!(ask("localhost:8000", true, Some(&recorded)), (StatusCode::OK, Bytes::from("a 1\n")));
        assert_eq!(ask("127.0.0.1", true, None).0, StatusCode::NOT_FOUND);
        assert_eq!(ask("127.0.0.1", false, Some(&recorded)).0, StatusCode::FORBIDDEN);
        assert_eq!(ask("rebound.example", true, Some(&recorded)).0, StatusCode::FORBIDDEN);
    }
}
