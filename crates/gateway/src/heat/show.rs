//! The heat of the last window as JSON.

use heatsink_heat::detect::{KeyHeat, PartHeat, PartName, RefusedRates, ShardHeat, ShownKey};
use heatsink_heat::history::{Burned, RowName};
use serde_json::{Map, Value as Json, json};

use super::layouts::{Layouts, partitions, shards};
use super::map::ShownBurned;
use crate::placed::{Placed, PlacedTables};

/// These parts, the highest load first. `placed`: the partitions of tables, where the store tells
/// them. `burned`: when requests for a key were last refused.
pub(super) fn shown(
    mut parts: Vec<PartHeat>,
    layouts: &Layouts,
    placed: &mut PlacedTables<'_>,
    burned: impl Fn(&RowName) -> Option<Burned>,
) -> Vec<Json> {
    parts.sort_by(|a, b| b.units_per_s.total_cmp(&a.units_per_s));
    let shown = |part: &PartHeat| {
        let table = part.name.table.as_deref();
        shown_part(part, layouts, table.and_then(|table| placed.table(table)), &burned)
    };
    parts.iter().map(shown).collect()
}

fn shown_part(
    part: &PartHeat,
    layouts: &Layouts,
    placed: Option<&Placed>,
    burned: &impl Fn(&RowName) -> Option<Burned>,
) -> Json {
    let shown = |key: &KeyHeat| {
        let name = RowName { part: part.name.clone(), key: key.key.clone() };
        shown_key(key, &part.name, layouts, placed, burned(&name))
    };
    let keys: Vec<Json> = part.keys.iter().map(shown).collect();
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
    let mut members = Map::new();
    members.insert("table".to_owned(), part.table.as_deref().into());
    members.insert("index".to_owned(), part.index.as_deref().into());
    members.insert("kind".to_owned(), part.kind.name().into());
    members
}

fn shown_key(
    key: &KeyHeat,
    part: &PartName,
    layouts: &Layouts,
    placed: Option<&Placed>,
    burned: Option<Burned>,
) -> Json {
    let partitions = placed.and_then(|placed| partitions(&key.key, part, layouts, placed));
    json!({
        "key": attribute_value(&key.key),
        "shards": shards(&key.key, part, layouts),
        "partitions": partitions,
        "measured": measured(&key.shards),
        "units_per_s": key.units_per_s,
        "error_units_per_s": key.error_units_per_s,
        "sampling_error_units_per_s": key.sampling_error_units_per_s,
        "least_units_per_s": key.least_units_per_s(),
        "requests_per_s": key.requests_per_s,
        "throttled_per_s": key.refused.all.per_s,
        "throttled_by_partition_per_s": key.refused.by_partition.per_s,
        "refused": refused(&key.refused, key.requests_per_s),
        "growing_sort_share": key.growing_sort_share,
        "same_sort_share": key.same_sort_share,
        "largest_item_bytes": (key.largest_item_bytes > 0).then_some(key.largest_item_bytes),
        "same_page_share": key.same_page_share,
        "burned": burned.map(ShownBurned::of),
        "clients": key.client_shares(),
    })
}

/// Which share of the key's requests was refused, by reason.
fn refused(rates: &RefusedRates, requests: f64) -> Json {
    let share = |per_s: f64| if requests > 0.0 { (per_s / requests).min(1.0) } else { 0.0 };
    let RefusedRates { all, by_partition, by_index, by_maximum, by_account } = rates;
    let known = by_partition.per_s + by_index.per_s + by_maximum.per_s + by_account.per_s;
    json!({
        "partition": share(by_partition.per_s),
        "index": share(by_index.per_s),
        "maximum": share(by_maximum.per_s),
        "account": share(by_account.per_s),
        "unknown": share((all.per_s - known).max(0.0)),
    })
}

/// What was measured of each shard; `null` where nothing was.
fn measured(shards: &[ShardHeat]) -> Option<Vec<Json>> {
    let one = |shard: &ShardHeat| {
        json!({
            "slot": shard.slot, "units_per_s": shard.units_per_s, "requests_per_s": shard.requests_per_s,
            "throttled_per_s": shard.throttled_per_s,
        })
    };
    (!shards.is_empty()).then(|| shards.iter().map(one).collect())
}

fn attribute_value(key: &ShownKey) -> Json {
    let mut value = Map::new();
    value.insert(key.kind.name().to_owned(), key.text.as_str().into());
    Json::Object(value)
}
