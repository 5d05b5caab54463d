//! Which calls of several requests for one logical key become one, as its rule says.
//!
//! Not here: how they become one (`heatsink_gateway`).

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::{KeyValue, TableSchema, Value, json};
use heatsink_layout::{Consistency, InForce};

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
    /// Whether calls for any key become one, by what is in force now. [`Pass`] knows it of its time.
    pub fn shares_calls(&self) -> bool {
        self.inner.rules.load().shares_calls() || self.inner.cached.any()
    }

    /// From now on answers to reads of these keys are given again for so many milliseconds, although
    /// no rule says so: by table and the key's bytes. Those of before are not, unless they are among
    /// them.
    pub fn cache_reads_of(&self, keys: HashMap<String, HashMap<Vec<u8>, u16>>) {
        self.inner.cached.replace(keys);
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
        let rule = rules.of_key(&known.schema, &key);
        let mut calls = rule.map(|rule| rule.shared_calls).unwrap_or_default();
        let strong = rule.is_some_and(|rule| rule.reads.consistency == Consistency::Strong);
        if let Some(age) = self.inner.cached.max_age(&known.schema.name, &key).filter(|_| !strong) {
            calls.coalesce = true;
            calls.cache_max_age_ms.get_or_insert(age);
        }
        if calls.is_none() {
            return None;
        }
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
        Some(SharedKey { calls, key, schema, spreads_values })
    }
}

fn key_of(schema: &TableSchema, object: &[u8]) -> Option<Vec<u8>> {
    let partition = &schema.key.partition;
    let raw = json::member(object, &partition.name).ok()??;
    Some(KeyValue::read(raw, partition).ok()?.canonical_bytes().into_owned())
}
