//! Moves keys in this process, where no gateway does.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use heatsink_control::reshard_intent::{Request, Subject};

use super::LiveAdoption;
use super::layouts::KeyWish;
use crate::error::WorkerError;
use crate::progress::Progress;
use crate::runner::Here;

/// How many keys move at once, with one step of the fence for all of them.
const AT_ONCE: usize = 16;

impl LiveAdoption {
    /// Moves these keys in this process, some at once. `request`: how, but for the layout. Returns
    /// how many items were moved.
    ///
    /// # Errors
    /// Why the first of them was not moved. Others may be on their way: whoever runs this again goes
    /// on with them.
    pub fn move_here<'a>(
        &'a self,
        here: &'a Here,
        wishes: Vec<KeyWish>,
        request: &'a Request,
        progress: &'a Arc<dyn Progress>,
    ) -> BoxFuture<'a, Result<u64, WorkerError>> {
        let one = move |wish: KeyWish| async move {
            let schema = &self.described.schema;
            let subject = Subject { index: None, key: &wish.key, key_type: schema.key.partition.key_type };
            let request = Request { layout: wish.layout, ..request.clone() };
            let table = (&*schema.id, &*schema.name);
            let take_up = || here.take_up((table, subject), request.clone(), Arc::clone(progress));
            let report = match take_up().await {
                // What an adoption had asked for that was turned round has ended so.
                Err(WorkerError::Cancelled(_)) => take_up().await?,
                report => report?,
            };
            progress.passed(report.moved);
            Ok(report.moved)
        };
        let moves = stream::iter(wishes.into_iter().map(one)).buffer_unordered(AT_ONCE);
        moves.try_fold(0, |sum, moved| async move { Ok(sum + moved) }).boxed()
    }

    /// The type of its partition key.
    pub fn key_type(&self) -> heatsink_dynamo::KeyType {
        self.described.schema.key.partition.key_type
    }
}
