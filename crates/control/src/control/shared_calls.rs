//! Which calls of several requests for one logical key become one, as its rule says.
//!
//! Not here: how they become one (`heatsink_gateway`).

use std::sync::Arc;

use heatsink_dynamo::{KeyValue, TableSchema, Value, json};
use heatsink_layout::InForce;

use super::Control;
use crate::fence::Pass;
use crate::rules::SharedCalls;
use crate::table_cache::TableStatus;

/// The logical key of a request whose calls may become one with those of others.
#[derive(Clone, Debug)]
pub struct SharedKey {
    /// Which calls do.
    pub calls: SharedCalls,
    /// Its bytes, as layouts have them.
    pub key: Vec<u8>,
    /// Its table.
    pub schema: Arc<TableSchema>,
    /// Whether values of keys of the table's indexes are stored otherwise than they were sent.
    pub spreads_values: bool,
}

impl Control {
    /// Whether calls for any key become one, by the rules that are in force now. [`Pass`] knows it of
    /// those at its time.
    pub fn shares_calls(&self) -> bool {
        self.inner.rules.load().shares_calls()
    }

    /// What calls of a request become one with those of others, which has a `pass`. `object`: the
    /// raw item or key that it names. `None` where none do, and as long as the key moves.
    pub fn shared_calls(&self, pass: &Pass, table: &str, object: &[u8]) -> Option<SharedKey> {
        self.shared(pass, table, |schema| key_of(schema, object))
    }

    /// The same of a request whose partition key `value` finds, by the schema of its table.
    pub fn shared_calls_of(
        &self,
        pass: &Pass,
        table: &str,
        value: impl FnOnce(&TableSchema) -> Option<Value>,
    ) -> Option<SharedKey> {
        self.shared(pass, table, |schema| {
            let value = value(schema)?;
            let key = KeyValue::from_value(&value)?;
            Some(key.canonical_bytes().into_owned())
        })
    }

    /// The bytes of the partition key in a raw item or key.
    pub fn partition_key(&self, pass: &Pass, table: &str, object: &[u8]) -> Option<Vec<u8>> {
        key_of(&pass.seen().get(table)?.schema, object)
    }

    fn shared(
        &self,
        pass: &Pass,
        table: &str,
        key: impl FnOnce(&TableSchema) -> Option<Vec<u8>>,
    ) -> Option<SharedKey> {
        let seen = pass.seen();
        let known = seen.get(table)?;
        let key = key(&known.schema)?;
        let rules = self.inner.rules.load();
        let mut calls = rules.of_key(&known.schema, &key)?.shared_calls;
        calls.combine &= !known.streams || calls.combine_streams;
        let spreads_values = match &known.status {
            TableStatus::Forward => false,
            TableStatus::Refused { .. } => return None,
            TableStatus::Sharded(table) => {
                let rests = matches!(table.in_force(&key), None | Some(InForce::Stable(_)));
                if !rests || table.is_migrating() {
                    return None;
                }
                !table.index_keys().is_empty()
            }
        };
        let schema = Arc::clone(&known.schema);
        (!calls.is_none()).then_some(SharedKey { calls, key, schema, spreads_values })
    }
}

fn key_of(schema: &TableSchema, object: &[u8]) -> Option<Vec<u8>> {
    let partition = &schema.key.partition;
    let raw = json::member(object, &partition.name).ok()??;
    Some(KeyValue::read(raw, partition).ok()?.canonical_bytes().into_owned())
}
