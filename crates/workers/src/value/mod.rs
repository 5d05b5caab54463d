//! One value of an index's key by itself: gives it another number of shards while clients use the
//! table, without a rule, and without reading the table.
//!
//! **Phases**, each of which every gateway has acknowledged before the next one begins:
//! - RESERVE: the stored forms that the value will have are reserved: gateways refuse them to
//!   clients. Then the index is asked whether a client's own value has such a form;
//! - PREPARE: gateways read the old forms and the new ones, and write the old ones;
//! - MOVE: they write the new ones, and items are found by Queries of the index under the old
//!   forms, and rewritten;
//! - the value has its new shards. One that is back at a single shard leaves the record, where the
//!   index holds all of its items.
//!
//! **Keys of the table may move meanwhile.** Their items come to other places in the form that they
//! had, so items are rewritten only under a claim that is taken while no key moves, and that a key
//! ends which moves on ([`end_of_table`](heatsink_control::claim::end_of_table)). Clients' hot writes
//! have their new shards before.
//!
//! **An index lags behind its table.** Whether something is left in an old form is looked up again
//! after an allowance for that, until nothing is found.
//!
//! A run that was killed is taken over by the next one, whatever number of shards that asks for. A
//! run can be cancelled until MOVE begins.
//!
//! - [`prepare`](ValueReshard::prepare): whether a value can be resharded. `plan`: what that takes.
//!   `run`: the steps. `rewrite`: the items. `rest`: when.
//!
//! Not here: what gateways read and write meanwhile (`heatsink_layout::IndexKey`); who runs it
//! (`heatsink_workers::Runner`, or a command).

use std::sync::Arc;
use std::time::Duration;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Subject, key_text};
use heatsink_control::{Announcer, Control, Record};
use heatsink_layout::{OfIndex, Table, ValueLayout, codec};
use serde_json::json;

use crate::error::WorkerError;
use crate::items::index_value::IndexValue;
use crate::items::item::{ItemContext, value};
use crate::items::walk::Walk;

mod plan;
mod prepare;
mod rest;
mod rewrite;
mod run;

pub use plan::ValuePlan;
pub use prepare::ValueAsked;
pub use run::ValueOptions;

/// How long an index may lag behind its table, as is assumed where nothing else is said.
pub const INDEX_DELAY: Duration = Duration::from_secs(10);

/// A reshard of a value that is possible.
#[derive(Clone)]
pub struct ValueReshard {
    registry: Registry,
    announcer: Announcer,
    described: Described,
    record: Option<Record>,
    index: OfIndex,
    value: Vec<u8>,
    shards: u16,
    /// The index in which its items are found.
    walked: String,
    /// Whether that index has a sort key, so that items without it are not found.
    may_miss: bool,
    /// Another value that is on its way, and has to end first.
    busy: Option<String>,
}

impl ValueReshard {
    /// The same reshard, carried out within a gateway: it waits for the other ones as that gateway
    /// does.
    #[must_use]
    pub fn within(self, control: &Control) -> Self {
        ValueReshard { announcer: Announcer::Gateway(control.clone()), ..self }
    }

    /// One value of a table is resharded at a time. `together`: keys of it may move meanwhile.
    ///
    /// # Errors
    /// [`WorkerError::Busy`] that names what has to end first; the store's.
    pub async fn may_go(&self, together: bool) -> Result<(), WorkerError> {
        if let Some(why) = &self.busy {
            return Err(WorkerError::Busy(why.clone()));
        }
        let Some(record) = self.record.as_ref().filter(|_| !together) else { return Ok(()) };
        let keys = self.registry.key_layouts(record, None).await?;
        if !keys.any_moves() && !keys.any_narrows() {
            return Ok(());
        }
        Err(WorkerError::Busy(format!(
            "A key of table {0} is being moved by `heatsink reshard`, and a gateway of an older build is registered: until it is replaced one change of a table \
             goes on at a time. `heatsink reshard status {0}` says how far it is",
            self.table()
        )))
    }

    /// Whether nothing is to be done.
    pub fn is_done(&self) -> bool {
        self.is_at_rest(self.record.as_ref(), self.shards)
    }

    /// Whether the value is on its way, because of an earlier run.
    pub fn is_begun(&self) -> bool {
        self.on_record(self.record.as_ref()).migration.is_some()
    }

    /// Over how many shards the value is spread; while it migrates, before.
    pub fn from(&self) -> u16 {
        self.on_record(self.record.as_ref()).shards
    }

    /// The store's id of the table.
    pub fn table_id(&self) -> &str {
        &self.described.schema.id
    }

    /// What an intent for it would be for.
    pub fn subject(&self) -> Subject<'_> {
        let key_type = self.index.attribute.key_type;
        Subject { index: Some(&self.index.name), key: &self.value, key_type }
    }

    fn table(&self) -> &str {
        &self.described.schema.name
    }

    fn text(&self) -> String {
        key_text(&self.value, self.index.attribute.key_type)
    }

    /// What is on record of the value; one shard, if nothing is.
    fn on_record(&self, record: Option<&Record>) -> ValueLayout {
        let known = record.and_then(|record| record.values.iter().find(|one| self.is_of(one)));
        // The index that is named now: another one may have come in the place of the first.
        let known = known.cloned().map(|one| ValueLayout { index: self.index.clone(), ..one });
        known.unwrap_or_else(|| ValueLayout {
            index: self.index.clone(),
            value: self.value.clone(),
            shards: 1,
            migration: None,
            former: Vec::new(),
            reserved: 1,
        })
    }

    fn is_of(&self, layout: &ValueLayout) -> bool {
        layout.index.attribute == self.index.attribute && layout.value == self.value
    }

    /// Whether the value has so many shards on record, and nothing is to be done for that.
    fn is_at_rest(&self, record: Option<&Record>, shards: u16) -> bool {
        let layout = self.on_record(record);
        let is_listed = record.is_some_and(|record| record.values.iter().any(|one| self.is_of(one)));
        layout.migration.is_none() && layout.shards == shards && (!is_listed || !is_trivial(&layout))
    }

    fn is_value(&self, found: &IndexValue<'_>) -> bool {
        found.key.attribute() == &self.index.attribute && found.key.logical(&found.stored) == self.value
    }

    /// Whether no client's own value has a form that the value would get with so many shards.
    async fn free(&self, layout: &ValueLayout, shards: u16) -> Result<(), WorkerError> {
        for shard in layout.extent()..shards {
            let own = plain(&self.value, shard);
            let found = self.items(shard, Some(1)).page().await?;
            let is_own = |one: &ValueLayout| one.value == own && one.index.attribute == self.index.attribute;
            let listed = |record: &Record| record.values.iter().any(is_own);
            if found.is_some_and(|page| !page.is_empty()) || self.record.as_ref().is_some_and(listed) {
                let own = key_text(&own, self.index.attribute.key_type);
                return Err(WorkerError::Stopped(format!(
                    "Clients use the value {own:?} of {}, which is what {:?} would be stored as in shard {shard}. Change it in these items, or ask for at most \
                     {shard} shards. Nothing was rewritten",
                    self.index.attribute.name,
                    self.text(),
                )));
            }
        }
        Ok(())
    }

    /// The items that the index shows in a shard, so many at once.
    fn items(&self, shard: u16, limit: Option<u64>) -> Walk<'_> {
        let (attribute, key) = (&self.index.attribute, &self.described.schema.key);
        let mut request = json!({
            "TableName": self.table(), "IndexName": self.walked, "KeyConditionExpression": "#a = :v",
            "ExpressionAttributeNames": { "#a": attribute.name, "#p": key.partition.name },
            "ExpressionAttributeValues": { ":v": value(&plain(&self.value, shard), attribute.key_type) },
            "ProjectionExpression": "#a, #p",
        });
        if let Some(sort) = &key.sort {
            request["ExpressionAttributeNames"]["#s"] = json!(sort.name);
            request["ProjectionExpression"] = json!("#a, #p, #s");
        }
        if let Some(limit) = limit {
            request["Limit"] = json!(limit);
        }
        Walk::of_query(&self.registry, self.table(), request)
    }

    /// The table as it is laid out with that layout of the value.
    async fn context(
        &self,
        record: Option<&Record>,
        layout: &ValueLayout,
    ) -> Result<ItemContext, WorkerError> {
        let schema = self.described.schema.clone();
        let Some(record) = record else {
            let table = Table::new(schema, Arc::default()).with_value_layouts(std::slice::from_ref(layout));
            return Ok(ItemContext { table: Arc::new(table) });
        };
        let mut values = record.values.clone();
        values.retain(|one| !self.is_of(one));
        values.push(layout.clone());
        let keys = self.registry.key_layouts(record, None).await?;
        let table = Table::new(schema, Arc::new(record.layouts.clone()));
        Ok(ItemContext { table: Arc::new(table.with_value_layouts(&values).with_key_layouts(keys)) })
    }
}

/// Whether a layout says no more than none would.
fn is_trivial(layout: &ValueLayout) -> bool {
    layout.migration.is_none() && layout.extent() == 1
}

/// A value as it is stored in a shard, where nothing is escaped.
fn plain(value: &[u8], shard: u16) -> Vec<u8> {
    [value, codec::plain_suffix(shard).as_bytes()].concat()
}
