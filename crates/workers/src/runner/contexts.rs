//! What keys of a table that begin beside each other read of their table: once for all of them, not
//! once for each.
//!
//! Not here: what is read (`TableContext`), of which key it is used (`work`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_control::{KeyWrites, Rules, Together};
use heatsink_env::Env;
use heatsink_store::Store;

use crate::error::WorkerError;
use crate::key::table_context::TableContext;

/// A table as it was read.
#[derive(Clone)]
pub(super) enum Read {
    There(Arc<TableContext>),
    /// It is not the one of the intent: why.
    Gone(&'static str),
}

/// The tables that are read, by id, and whether what readers of their streams see is confirmed.
type Reads = HashMap<(String, bool), Arc<Together<(), Read>>>;

/// What is being read.
#[derive(Default)]
pub(super) struct Contexts(Mutex<Reads>);

impl Contexts {
    /// The table of that intent, by a read that was sent after this was called.
    ///
    /// # Errors
    /// As [`TableContext::read`].
    pub async fn read(
        &self,
        intent: &ReshardIntent,
        (store, env): (&Arc<dyn Store>, &Arc<dyn Env>),
        rules: &Rules,
        writes: &KeyWrites,
    ) -> Result<Read, WorkerError> {
        let confirmed = intent.request.streams_confirmed;
        let together = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Of tables that nobody reads nothing is kept.
            known.retain(|_, one| Arc::strong_count(one) > 1);
            Arc::clone(known.entry((intent.table_id.clone(), confirmed)).or_default())
        };
        let serve = |callers: Vec<()>| {
            async move {
                let registry = rules.fence().registry_in(Arc::clone(store), Arc::clone(env));
                let read = match registry.describe(&intent.table).await? {
                    None => Read::Gone("does not exist any more"),
                    Some(found) if found.schema.id != intent.table_id => {
                        Read::Gone("was deleted and created again")
                    }
                    Some(_) => {
                        let asked = (&*intent.table, confirmed);
                        let (store, env) = (Arc::clone(store), Arc::clone(env));
                        let context = TableContext::read_sharing(store, env, rules, asked, Some(writes));
                        Read::There(Arc::new(context.await?))
                    }
                };
                Ok(vec![read; callers.len()])
            }
            .boxed()
        };
        together.ask((), usize::MAX, serve).await
    }
}
