//! Worlds with single values of index keys on record: spread as a finished reshard leaves them, or
//! between two steps of one; and with items that hold former forms of them, in tables of which keys
//! move.

use std::sync::Arc;

use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::Record;
use heatsink_control::rules::attribute_to_spread;
use heatsink_dynamo::{KeyType, Operation};
use heatsink_layout::{LayoutSource, OfIndex, PrimaryKey, ValueLayout, ValueMigration};
use heatsink_store::Store;
use serde_json::json;

use crate::compare;
use crate::generate::Step;
use crate::physical::{bytes, items, sort_key, value};
use crate::recorded::on_record;
use crate::schema::Table;
use crate::world::World;

/// A value, its shards, those that it migrates to, and those that it had.
type Value = (&'static [u8], u16, Option<u16>, &'static [u16]);

/// `t3` and others are nobody's. Clients use no value that is written like a shard of one of these.
const STRINGS: &[Value] = &[(b"t0", 3, Some(7), &[]), (b"t1", 1, Some(4), &[]), (b"t2", 5, Some(2), &[1])];
const BINARIES: &[Value] = &[(b"b", 4, Some(1), &[]), (b"\x00\xff", 2, Some(3), &[1])];

/// Values of worlds in which keys move beside them: items of all of them hold former forms.
const BESIDE_STRINGS: &[Value] =
    &[(b"t0", 3, Some(5), &[1, 7]), (b"t1", 1, Some(3), &[4]), (b"t2", 5, Some(1), &[1, 2])];
const BESIDE_BINARIES: &[Value] = &[(b"b", 4, Some(6), &[1, 2]), (b"\x00\xff", 1, Some(2), &[3])];

/// Whether values are on record under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# values on record") || migrate(rules) || beside(rules)
}

/// Whether items hold former forms of them while keys of the table move.
pub fn beside(rules: &str) -> bool {
    rules.contains("# keys move beside values")
}

/// Whether they migrate meanwhile.
pub fn migrate(rules: &str) -> bool {
    rules.trim_end().ends_with("# values migrate") || migrate_beside(rules)
}

/// Whether they do, and keys of the table move: gateways write their new forms.
fn migrate_beside(rules: &str) -> bool {
    rules.trim_end().ends_with("# keys move beside values that migrate")
}

/// Puts the values on record that a table can have. `writes_new`: how far those have come that
/// migrate.
pub fn write(raw: &Arc<dyn Store>, table: &Table, rules: &str, writes_new: bool) {
    let (registry, record) = on_record(raw, table);
    let schema = block_on(registry.describe(table.name)).unwrap().unwrap().schema;
    let writes_new = writes_new || migrate_beside(rules);
    let mut values: Vec<ValueLayout> = Vec::new();
    for index in &schema.indexes {
        let Ok(attribute) = attribute_to_spread(&index.name, &schema) else { continue };
        if values.iter().any(|one| one.index.attribute == *attribute) {
            continue;
        }
        let of_index = OfIndex { name: index.name.clone(), attribute: attribute.clone() };
        let all = match (attribute.key_type, beside(rules)) {
            (KeyType::B, true) => BESIDE_BINARIES,
            (KeyType::B, false) => BINARIES,
            (_, true) => BESIDE_STRINGS,
            (_, false) => STRINGS,
        };
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

/// Before some of the steps, an item of each table has a value in another form that it may have
/// had. Which follows from the step alone.
pub fn stir(tables: &[Table], world: &World, step: &Step) {
    let text = step.body.to_string();
    let seed = text.bytes().fold(1_u64, |seed, byte| seed.wrapping_mul(37).wrapping_add(byte.into()));
    let mut rng = Rng::with_seed(seed);
    for table in tables {
        let Some(schema) = world.control.table(table.name) else { continue };
        let mut forms = Vec::new();
        for item in items(table, &*world.raw) {
            for key in schema.index_keys() {
                let (name, kind) = (&key.attribute().name, key.attribute().key_type.name());
                if item[name][kind].is_null() {
                    continue;
                }
                let stored = bytes(&item[name], kind);
                let partition = schema.logical(&bytes(&item[table.partition.0], table.partition.1)).to_vec();
                let sort = table.sort.map(|(name, kind)| (bytes(&item[name], kind), kind));
                let primary = PrimaryKey {
                    partition: sort_key(&partition, table.partition.1),
                    sort: sort.as_ref().map(|(bytes, kind)| sort_key(bytes, kind)),
                };
                let mut others = key.forms(key.logical(&stored), primary);
                others.retain(|form| *form != stored);
                forms.extend(others.into_iter().map(|form| {
                    let mut other = item.clone();
                    other[name] = value(&form, kind);
                    other
                }));
            }
        }
        if forms.is_empty() || rng.bool() {
            continue;
        }
        let item = forms.swap_remove(rng.usize(..forms.len()));
        let body = json!({ "TableName": table.name, "Item": item });
        let put = Step { operation: Operation::PutItem.name().to_owned(), body };
        assert_eq!(compare::run(&*world.raw, &put).error, None);
    }
}
