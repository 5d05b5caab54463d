//! Tables whose keys are written in one form or another, each with the words that a reader of its
//! stream is given.

use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
use heatsink_layout::{
    By, Epoch, Glob, Granularity, Hash, InForce, KeyLayout, KeyLayouts, Layout, OfIndex, RecordedKey,
    Strategy, Table, TableLayouts, Template, Time, ValueLayout,
};
use serde_json::{Value as Json, json};

pub fn layout(strategy: Strategy, shards: u16) -> Layout {
    Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
}

pub fn calculated(shards: u16) -> Layout {
    layout(Strategy::calculated(By::SortKey), shards)
}

pub fn counter(shards: u16) -> Layout {
    layout(Strategy::Counter { attributes: vec!["votes".to_owned()] }, shards)
}

fn time(granularity: Granularity) -> Time {
    Time { granularity, prefix: String::new(), epoch: Epoch::Seconds }
}

pub fn attribute(name: &str, key_type: KeyType) -> AttributeDefinition {
    AttributeDefinition { name: name.to_owned(), key_type }
}

/// A table with these layouts, for globs of keys.
pub fn table(key_type: KeyType, layouts: Vec<KeyLayout>) -> Table {
    let key = KeySchema { partition: attribute("pk", key_type), sort: Some(attribute("sk", KeyType::S)) };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    Table::new(schema, Arc::new(TableLayouts::new(layouts)))
}

pub fn of(keys: &str, layout: Layout) -> KeyLayout {
    KeyLayout::new(Glob::new(keys), layout)
}

/// Keys on record, with above the highest slot that each ever had, and what is in force.
pub fn with_recorded(table: Table, keys: &[(&[u8], u16, Layout)]) -> Table {
    let recorded = |(key, reserved, layout): &(&[u8], u16, Layout)| {
        let in_force = InForce::Stable(Arc::new(layout.clone()));
        (key.to_vec(), RecordedKey { in_force, reserved: *reserved, since: 1, settled: true })
    };
    table.with_key_layouts(Arc::new(KeyLayouts::new(1, keys.iter().map(recorded))))
}

pub fn index(key_type: KeyType) -> OfIndex {
    OfIndex { name: "by-status".to_owned(), attribute: attribute("status", key_type) }
}

/// The layout of all values of an index's key.
pub fn of_index(key_type: KeyType, shards: u16) -> KeyLayout {
    let layout = layout(Strategy::calculated(By::PrimaryKey), shards);
    KeyLayout::of_index(index(key_type), Glob::new("*"), layout)
}

/// A value on record. Every form that is reserved for it is in use: a stream may still show what
/// was in use before.
pub fn value_on_record(value: &str, shards: u16) -> ValueLayout {
    let (index, value) = (index(KeyType::S), value.as_bytes().to_vec());
    ValueLayout { index, value, shards, migration: None, former: Vec::new(), reserved: shards }
}

/// A rule with a template: its layout, and the words for it.
pub fn template(text: &str, keys: &str, shards: u16, bucket: Option<Granularity>) -> (KeyLayout, Json) {
    let template = Template::read(text).unwrap();
    let strategy = Strategy::Template { template, by: By::SortKey, time: bucket.map(time) };
    let words =
        json!({ "template": text, "keys": keys, "shards": shards, "bucket": bucket.map(Granularity::name) });
    (of(keys, Layout { hash: Hash::Md5, ..layout(strategy, shards) }), words)
}

/// A rule by which keys stay whole, in a table with templates.
pub fn whole(keys: &str) -> (KeyLayout, Json) {
    (of(keys, Layout::none()), json!({ "template": null, "keys": keys, "shards": 1, "bucket": null }))
}

pub fn buckets(key_type: KeyType) -> Table {
    let bucket =
        |granularity| Strategy::Bucket { time: time(granularity), by: By::SortKey, earlier: Vec::new() };
    table(key_type, vec![of("*", layout(bucket(Granularity::Day), 4))])
}
