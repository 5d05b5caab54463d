//! The heat as JSON.

use heatsink_env::MonotonicInstant;
use heatsink_heat::detect::{KeyHeat, Kind, PartHeat, PartName, ShownKey};
use heatsink_heat::history::{MapRow, ROWS, Span};
use serde_json::{Map, Value as Json, json};

use super::layouts::{Layouts, layouts_of, shards};
use super::{Heat, advise, millis};
use crate::Service;

/// The most keys of a part that are shown.
const KEYS: usize = 100;

impl Heat {
    /// The last window, and how many milliseconds it took.
    pub(super) fn parts(&self, now: MonotonicInstant) -> (u64, Vec<PartHeat>) {
        let mut counted = self.lock();
        counted.detector.advance(millis(now));
        (counted.detector.window(), counted.detector.heat(KEYS))
    }
}

/// What `GET /_heatsink/heat` answers.
pub(crate) async fn shown(service: &Service, table: Option<&str>) -> Json {
    let (window, mut heat) = service.heat().parts(service.env().now());
    let layouts = layouts_of(service, &heat).await;
    let mut advice = advise::advice(service, &heat, &layouts);
    advice.retain(|one| table.is_none_or(|table| one["table"] == table));
    heat.retain(|part| table.is_none() || part.name.table.as_deref() == table);
    heat.sort_by(|a, b| b.units_per_s.total_cmp(&a.units_per_s));
    let parts: Vec<Json> = heat.iter().map(|part| shown_part(part, &layouts)).collect();
    json!({ "now_ms": service.env().unix_millis(), "window_ms": window, "parts": parts, "advice": advice })
}

/// What `GET /_heatsink/heat/map` answers.
pub(crate) fn map(service: &Service, span: Span) -> Json {
    let map = service.heat().history().map(span, service.env().unix_millis(), ROWS);
    let row = |row: &MapRow| {
        let mut shown = name(&row.name.part);
        shown.insert("key".to_owned(), attribute_value(&row.name.key));
        shown.insert("units".to_owned(), rounded(&row.units, 10.0));
        shown.insert("throttled".to_owned(), rounded(&row.throttled, 1_000.0));
        shown.insert("shards".to_owned(), json!(row.shards));
        Json::Object(shown)
    };
    let rows: Vec<Json> = map.rows.iter().map(row).collect();
    json!({ "from_ms": map.from, "step_ms": map.step, "columns": map.columns, "rows": rows })
}

/// To so many parts of one: no picture shows more, and a map is several times shorter.
fn rounded(rates: &[f64], parts: f64) -> Json {
    rates.iter().map(|rate| (rate * parts).round() / parts).collect()
}

fn shown_part(part: &PartHeat, layouts: &Layouts) -> Json {
    let keys: Vec<Json> = part.keys.iter().map(|key| shown_key(key, &part.name, layouts)).collect();
    let mut shown = name(&part.name);
    let rates = [
        ("units_per_s", part.units_per_s),
        ("requests_per_s", part.requests_per_s),
        ("throttled_per_s", part.throttled_per_s),
        ("floor_units_per_s", part.floor_units_per_s),
    ];
    shown.extend(rates.map(|(name, rate)| (name.to_owned(), rate.into())));
    shown.insert("keys".to_owned(), keys.into());
    Json::Object(shown)
}

/// What a part is of, as members of an object.
fn name(part: &PartName) -> Map<String, Json> {
    let kind = match part.kind {
        Kind::Read => "read",
        Kind::Write => "write",
    };
    let mut members = Map::new();
    members.insert("table".to_owned(), part.table.as_deref().into());
    members.insert("index".to_owned(), part.index.as_deref().into());
    members.insert("kind".to_owned(), kind.into());
    members
}

fn shown_key(key: &KeyHeat, part: &PartName, layouts: &Layouts) -> Json {
    json!({
        "key": attribute_value(&key.key),
        "shards": shards(&key.key, part, layouts),
        "units_per_s": key.units_per_s,
        "error_units_per_s": key.error_units_per_s,
        "sampling_error_units_per_s": key.sampling_error_units_per_s,
        "requests_per_s": key.requests_per_s,
        "throttled_per_s": key.throttled_per_s,
        "throttled_by_partition_per_s": key.throttled_by_partition_per_s,
        "growing_sort_share": key.growing_sort_share,
        "same_sort_share": key.same_sort_share,
        "largest_item_bytes": (key.largest_item_bytes > 0).then_some(key.largest_item_bytes),
        "same_page_share": key.same_page_share,
    })
}

fn attribute_value(key: &ShownKey) -> Json {
    let mut value = Map::new();
    value.insert(key.kind.name().to_owned(), key.text.as_str().into());
    Json::Object(value)
}
