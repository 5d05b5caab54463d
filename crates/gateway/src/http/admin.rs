//! The data below `/_heatsink/`, one function for each path: `partitions?table=T`,
//! `heat[?table=T]`, `heat/map?span=10m|6h|4d|28d`, `metrics`, `reshards`, `gateways`. An error is
//! JSON with one member `error`.
//!
//! Not here: who may ask (`admin_address`, `operator_socket`), the answers around it (`operators`).

use bytes::Bytes;
use heatsink_dynamo::{Code, Error};
use heatsink_heat::history::Span;
use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::{Partitions, Status};

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
/// The path of whether clients would be answered.
pub(super) const READY: &str = "/_heatsink/ready";
/// The path of the gateways.
pub(super) const GATEWAYS: &str = "/_heatsink/gateways";

/// The metrics in Prometheus' text format.
pub(super) fn metrics(recorded: Option<String>) -> (StatusCode, Bytes) {
    match recorded {
        None => refuse(StatusCode::NOT_FOUND, "this server records no metrics"),
        Some(recorded) => (StatusCode::OK, Bytes::from(recorded)),
    }
}

/// The hot keys, all or of the table in the query.
pub(super) async fn heat(query: &str, status: &Status) -> (StatusCode, Bytes) {
    (StatusCode::OK, Bytes::from(status.heat().shown(value(query, "table")).await.to_string()))
}

/// The span of the history that is asked for.
pub(super) fn span(query: &str) -> Result<Span, (StatusCode, Bytes)> {
    value(query, "span")
        .and_then(Span::by_name)
        .ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "which span? 10m, 6h, 4d or 28d"))
}

/// The partitions of the table in the query. Table names are letters, digits, `_`, `-` and `.`,
/// none of which is ever escaped.
pub(super) fn partitions(query: &str, told: Option<&Partitions>) -> (StatusCode, Bytes) {
    match (told, value(query, "table")) {
        (None, _) => {
            refuse(StatusCode::NOT_FOUND, "this server has no partitions: it runs upstream or without them")
        }
        (_, None) => refuse(StatusCode::BAD_REQUEST, "which table? ask /_heatsink/partitions?table=NAME"),
        (Some(told), Some(table)) => match told(table) {
            Some(partitions) => (StatusCode::OK, Bytes::from(partitions.to_string())),
            None => refuse(StatusCode::NOT_FOUND, &format!("there is no table {table}")),
        },
    }
}

/// What was read from the registry.
pub(super) async fn read(reading: impl Future<Output = Result<Json, Error>>) -> (StatusCode, Bytes) {
    match reading.await {
        Ok(answer) => (StatusCode::OK, Bytes::from(answer.to_string())),
        Err(error) if error.code == Code::ValidationException => {
            refuse(StatusCode::BAD_REQUEST, &error.to_string())
        }
        Err(error) => {
            refuse(StatusCode::SERVICE_UNAVAILABLE, &format!("the registry could not be read: {error}"))
        }
    }
}

fn refuse(status: StatusCode, problem: &str) -> (StatusCode, Bytes) {
    (status, Bytes::from(json!({ "error": problem }).to_string()))
}

/// The value of that name in a query string, as it was sent.
pub(super) fn value<'a>(query: &'a str, of: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, value)| *name == of && !value.is_empty()).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partitions_of_a_table_are_told_where_there_are_any() {
        let told: Partitions = Box::new(|table| (table == "games").then(|| json!({ "table": table })));
        let ask = |query: &str, told| {
            let (status, body) = partitions(query, told);
            (status.as_u16(), serde_json::from_slice::<Json>(&body).unwrap())
        };
        assert_eq!(ask("x=1&table=games", Some(&told)), (200, json!({ "table": "games" })));
        assert_eq!(ask("x=1&table=games", None).0, 404);
        assert_eq!(ask("table=none", Some(&told)).0, 404);
        assert_eq!(ask("", Some(&told)).0, 400);
    }

    #[test]
    fn metrics_are_told_where_they_are_recorded() {
        assert_eq!(metrics(Some("a 1\n".to_owned())), (StatusCode::OK, Bytes::from("a 1\n")));
        assert_eq!(metrics(None).0, StatusCode::NOT_FOUND);
    }
}
