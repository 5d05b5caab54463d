//! Worlds with single values of index keys on record: spread as a finished reshard leaves them, or between two steps of one.

use std::sync::Arc;

use futures::executor::block_on;
use heatsink_control::Record;
use heatsink_control::rules::attribute_to_spread;
use heatsink_dynamo::KeyType;
use heatsink_layout::{OfIndex, ValueLayout, ValueMigration};
use heatsink_store::Store;

use crate::recorded::on_record;
use crate::schema::Table;

/// A value, its shards, those that it migrates to, and those that it had.
type Value = (&'static [u8], u16, Option<u16>, &'static [u16]);

/// `t3` and others are nobody's. Clients use no value that is written like a shard of one of these.
const STRINGS: &[Value] = &[(b"t0", 3, Some(7), &[]), (b"t1", 1, Some(4), &[]), (b"t2", 5, Some(2), &[1])];
const BINARIES: &[Value] = &[(b"b", 4, Some(1), &[]), (b"\x00\xff", 2, Some(3), &[1])];

/// Whether values are on record under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# values on record") || migrate(rules)
}

/// Whether they migrate meanwhile.
pub fn migrate(rules: &str) -> bool {
    rules.trim_end().ends_with("# values migrate")
}

/// Puts the values on record that a table can have. `writes_new`: how far those have come that migrate.
pub fn write(raw: &Arc<dyn Store>, table: &Table, rules: &str, writes_new: bool) {
    let (registry, record) = on_record(raw, table);
    let schema = block_on(registry.describe(table.name)).unwrap().unwrap().schema;
    let mut values: Vec<ValueLayout> = Vec::new();
    for index in &schema.indexes {
        let Ok(attribute) = attribute_to_spread(&index.name, &schema) else { continue };
        if values.iter().any(|one| one.index.attribute == *attribute) {
            continue;
        }
        let of_index = OfIndex { name: index.name.clone(), attribute: attribute.clone() };
        let all = if attribute.key_type == KeyType::B { BINARIES } else { STRINGS };
        values.extend(all.iter().map(|(value, shards, to, former)| {
            let to = to.filter(|_| migrate(rules));
            ValueLayout {
                index: of_index.clone(),
                value: value.to_vec(),
                shards: *shards,
                migration: to.map(|to| ValueMigration { to, writes_new, run: 1 }),
                former: former.to_vec(),
                reserved: 7,
            }
        }));
    }
    let after = Record { values, version: record.version + 1, ..record.clone() };
    assert!(block_on(registry.replace(&record, &after)).unwrap(), "nobody else writes");
}
