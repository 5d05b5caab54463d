//! A store in front of another one that looks at the items of a table as they pass by in Scans, and says whether shards that the table's record
//! says are drawn at random follow from the sort key after all.
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

use crate::item::{Scalar, TableContext};
use crate::recipe::Trial;

/// Such a store. It passes everything on.
pub struct RecipeObserver {
    store: Arc<dyn Store>,
    observed: Mutex<Option<Observed>>,
}

/// The table that is looked at, and what was found so far.
struct Observed {
    context: TableContext,
    trial: Trial,
}

impl RecipeObserver {
    /// In front of `store`, looking at nothing yet.
    pub fn before(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(RecipeObserver { store, observed: Mutex::new(None) })
    }

    /// Looks at a table from now on, if some of its shards are on record as drawn.
    ///
    /// # Errors
    /// As [`Control::resolve`].
    pub async fn observe(&self, control: &Control, table: &str) -> Result<(), Error> {
        control.resolve(&[table]).await?;
        let table = control.table(table).filter(|table| table.has_drawn());
        let observed =
            table.map(|table| Observed { context: TableContext { table }, trial: Trial::default() });
        *self.observed.lock().unwrap_or_else(PoisonError::into_inner) = observed;
        Ok(())
    }

    /// What an operator should know: a hash that fits all items that passed by. Nothing where none does, or where they were too few.
    pub fn advice(&self) -> Option<String> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.trial.advice()
    }

    /// Looks at a page of a Scan. What cannot be read is for its reader to complain of.
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
