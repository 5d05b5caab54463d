//! A store wrapper that observes the items of a table as Scans return them, and reports whether
//! shards that the record calls random follow from the sort key.
//!
//! Not here: which recipes are tried (`recipe`).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use serde_json::Value as Json;

use crate::items::item::{ItemContext, Scalar};
use crate::table::recipe::Trial;

/// The wrapper. It forwards all requests unchanged.
pub struct RecipeObserver {
    store: Arc<dyn Store>,
    observed: Mutex<Option<Observed>>,
}

/// The observed table, and the recipes that still match.
struct Observed {
    context: ItemContext,
    trial: Trial,
}

impl RecipeObserver {
    /// Wraps `store`, without observing a table yet.
    pub fn before(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(RecipeObserver { store, observed: Mutex::new(None) })
    }

    /// Observes a table from now on, if its record says that some shards are random.
    ///
    /// # Errors
    /// As [`Control::resolve`].
    pub async fn observe(&self, control: &Control, table: &str) -> Result<(), Error> {
        control.resolve(&[table]).await?;
        let table = control.table(table).filter(|table| table.has_externally_assigned());
        let observed =
            table.map(|table| Observed { context: ItemContext { table }, trial: Trial::default() });
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = observed;
        Ok(())
    }

    /// Advice for the operator: a recipe that matches all observed items. `None` if none does, or
    /// if there were too few items.
    pub fn advice(&self) -> Option<String> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.trial.advice()
    }

    /// Observes a page of a Scan. Unreadable pages are ignored; their reader reports them.
    fn see(&self, request: &[u8], page: &[u8]) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Observed { context, trial }) = observed.as_mut() else { return };
        let name = json::member(request, "TableName").ok().flatten();
        let name = name.and_then(|name| json::string(name).ok());
        if name.is_none_or(|name| name != context.table.name) {
            return;
        }
        let Ok(page) = serde_json::from_slice::<Json>(page) else { return };
        for item in page["Items"].as_array().into_iter().flatten().filter_map(Json::as_object) {
            let (Ok(key), Ok(sort)) = (context.key(item), context.sort(item)) else { continue };
            trial.see_stored(&context.table, &key, sort.as_ref().map(Scalar::key));
        }
    }
}

impl Store for RecipeObserver {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation != Operation::Scan {
            return self.store.call(operation, body);
        }
        async move {
            let page = self.store.call(operation, body.clone()).await?;
            self.see(&body, &page);
            Ok(page)
        }
        .boxed()
    }
}
