//! The heat as JSON.

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::KeyType;
use heatsink_env::MonotonicInstant;
use heatsink_heat::detect::{KeyHeat, Kind, PartHeat, PartName, ShownKey};
use heatsink_heat::history::{MapRow, ROWS, Span};
use heatsink_layout::{Bucket, InForce, LayoutSource, Phase};
use serde_json::{Map, Value as Json, json};

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

/// The layouts of tables by name, those that could be told, at a time.
pub(super) struct Layouts {
    tables: HashMap<String, Arc<dyn LayoutSource>>,
    /// Milliseconds since 1970.
    now: u64,
}

/// The layouts of the tables that parts are of. Of a table that cannot be looked at now no shards are shown.
pub(super) async fn layouts_of(service: &Service, parts: &[PartHeat]) -> Layouts {
    let mut layouts = Layouts { tables: HashMap::new(), now: service.env().unix_millis() };
    for part in parts {
        if let (Some(table), None) = (part.name.table.as_deref(), &part.name.index)
            && !layouts.tables.contains_key(table)
            && let Some(told) = service.layouts(table).await
        {
            layouts.tables.insert(table.to_owned(), told);
        }
    }
    layouts
}

/// How many shards the writes of a key go to; `None` where the table is not sharded. Of a key that moves, the new ones from CHECK on; of one in buckets,
/// those of the bucket of now.
pub(super) fn shards_of(table: &str, key: &[u8], layouts: &Layouts) -> Option<u16> {
    let source = layouts.tables.get(table)?;
    let table = source.table(table)?;
    Some(match source.in_force(&table, key) {
        InForce::Moving(moving) if moving.phase >= Phase::Check => moving.to.shards,
        other => {
            let layout = other.settled();
            let seconds = i64::try_from(layouts.now / 1_000).unwrap_or(i64::MAX);
            let bucket = layout.time().and_then(|time| Bucket::at(seconds, time.granularity));
            bucket.map_or(layout.shards, |bucket| layout.shards_in(bucket))
        }
    })
}

/// The same of a key of a part; `None` too where it is an index's.
pub(super) fn shards(key: &ShownKey, part: &PartName, layouts: &Layouts) -> Option<u16> {
    if part.index.is_some() || key.kind == KeyType::B {
        return None;
    }
    shards_of(part.table.as_deref()?, key.text.as_bytes(), layouts)
}
