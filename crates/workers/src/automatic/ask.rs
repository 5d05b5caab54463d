//! Asks for what was decided: the intent that `heatsink reshard start` would write, after the same
//! checks.
//!
//! Not here: what is decided (`heatsink_heat::policy`), who carries an intent out
//! ([`Runner`](crate::Runner)).

use std::sync::Arc;

use heatsink_control::Control;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, Subject, WantedLayout, key_text};
use heatsink_heat::policy::{Change, Decision};
use heatsink_store::Store;

use crate::error::WorkerError;
use crate::key::prepare::DEFAULT_RATE;
use crate::key::table_context::TableContext;
use crate::value::{ValueAsked, ValueReshard};

/// Where it is asked for.
pub(super) struct Asking<'a> {
    pub store: &'a Arc<dyn Store>,
    pub control: &'a Control,
    pub registry: &'a Registry,
}

impl Asking<'_> {
    /// Writes the intent of a decision. `counters`: the numbers that a counter would hold. `false`
    /// if there is an open intent already.
    ///
    /// # Errors
    /// Why the change is not possible, with what to do; the store's.
    pub async fn ask(
        &self,
        context: &TableContext,
        decision: &Decision,
        counters: &[String],
    ) -> Result<bool, WorkerError> {
        let layout = wanted(&decision.change, counters);
        // What cannot be done is said now, and not by whoever carries it out.
        match &decision.name.index {
            None => drop(context.reshard(&decision.name.key, &layout)?),
            Some(index) => self.check_value(context, index, decision).await?,
        }
        let key_type = match &decision.name.index {
            None => context.key_type(),
            Some(index) => context.index_key_type(index).unwrap_or(context.key_type()),
        };
        let subject = Subject { index: decision.name.index.as_deref(), key: &decision.name.key, key_type };
        let request = Request {
            layout,
            rate: DEFAULT_RATE,
            streams_confirmed: false,
            by: format!("automatic ({}): {}", self.control.identity().1, decision.sentence),
            asked: self.registry.env().unix_millis(),
        };
        let table = (context.id(), decision.name.table.as_str());
        Ok(self.registry.ask(table, subject, request).await?.is_some())
    }

    async fn check_value(
        &self,
        context: &TableContext,
        index: &str,
        decision: &Decision,
    ) -> Result<(), WorkerError> {
        let (store, env) = (Arc::clone(self.store), Arc::clone(self.registry.env()));
        let key_type = context.index_key_type(index).unwrap_or(context.key_type());
        let value = key_text(&decision.name.key, key_type);
        let (table, shards) = (&decision.name.table, decision.change.shards());
        let asked = ValueAsked { table, index, value: &value, shards };
        ValueReshard::prepare(store, env, &self.control.rules(), asked).await.map(drop)
    }
}

/// The layout that a change gives.
fn wanted(change: &Change, counters: &[String]) -> WantedLayout {
    match change {
        Change::Shards { shards, slots } => {
            WantedLayout { slots: slots.clone(), ..WantedLayout::from(*shards) }
        }
        Change::Ranges { split_at, slots } => {
            WantedLayout { slots: Some(slots.clone()), ..WantedLayout::from(split_at.clone()) }
        }
        Change::IndexValue { shards } => WantedLayout::from(*shards),
        Change::Counter { shards } => {
            WantedLayout { counter: Some(counters.to_vec()), ..WantedLayout::from(*shards) }
        }
    }
}
