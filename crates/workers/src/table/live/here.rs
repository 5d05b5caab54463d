//! Moves keys in this process, where no gateway does: in groups, whose keys begin together, so that
//! one step of the fence serves all of them. The next group begins before the former has ended.
//!
//! A key that cannot move holds up no other one. Not here: what one key goes through (`runner`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt, stream};
use heatsink_control::reshard_intent::{Request, Subject, key_text};

use super::LiveAdoption;
use super::layouts::KeyWish;
use crate::error::WorkerError;
use crate::progress::Progress;
use crate::runner::Here;

/// How many keys begin together, whose records one transaction takes; and how many groups of them
/// are on their way.
const TOGETHER: usize = 96;
const GROUPS: usize = 2;
/// A group is no more than one in so many of the keys, but a few: a write of a key that moves brings
/// its item along, for nine times the units.
const ONE_IN: usize = 10;
const FEW: usize = 8;

/// So many keys that were not moved are named.
const NAMED: usize = 20;

impl LiveAdoption {
    /// Moves these keys in this process, many at once. `request`: how, but for the layout. Returns
    /// how many items were moved. Once the store has failed, no more keys are begun.
    ///
    /// # Errors
    /// Why some were not moved, with their names; the others have moved. Whoever runs this again
    /// goes on with them.
    pub fn move_here<'a>(
        &'a self,
        here: &'a Here,
        wishes: Vec<KeyWish>,
        request: &'a Request,
        progress: &'a Arc<dyn Progress>,
    ) -> BoxFuture<'a, Result<u64, WorkerError>> {
        async move {
            let failed = AtomicBool::new(false);
            let one = |wish: KeyWish| {
                let failed = &failed;
                async move {
                    let moved = self.move_key(here, &wish, request, progress).await;
                    if matches!(moved, Err(WorkerError::Store(_))) {
                        failed.store(true, Ordering::Relaxed);
                    }
                    (wish.key, moved)
                }
            };
            let group = |wishes: Vec<KeyWish>| {
                let (one, failed) = (&one, &failed);
                async move {
                    let begins = !failed.load(Ordering::Relaxed);
                    join_all(wishes.into_iter().filter(|_| begins).map(one)).await
                }
            };
            let together = wishes.len().div_ceil(ONE_IN).clamp(FEW, TOGETHER);
            let groups: Vec<_> = wishes.chunks(together).map(<[KeyWish]>::to_vec).map(group).collect();
            let mut groups = stream::iter(groups).buffered(GROUPS);
            let (mut sum, mut left) = (0, Vec::new());
            while let Some(moved) = groups.next().await {
                for (key, moved) in moved {
                    match moved {
                        Ok(items) => sum += items,
                        Err(error) => left.push((key, error)),
                    }
                }
            }
            if left.is_empty() { Ok(sum) } else { Err(self.left(left)) }
        }
        .boxed()
    }

    async fn move_key(
        &self,
        here: &Here,
        wish: &KeyWish,
        request: &Request,
        progress: &Arc<dyn Progress>,
    ) -> Result<u64, WorkerError> {
        let schema = &self.described.schema;
        let subject = Subject { index: None, key: &wish.key, key_type: schema.key.partition.key_type };
        let request = Request { layout: wish.layout.clone(), ..request.clone() };
        let table = (&*schema.id, &*schema.name);
        let take_up = || here.take_up((table, subject), request.clone(), Arc::clone(progress));
        let report = match take_up().await {
            // What an adoption had asked for that was turned round has ended so.
            Err(WorkerError::Cancelled(_)) => take_up().await?,
            report => report?,
        };
        progress.passed(report.moved);
        Ok(report.moved)
    }

    /// One error for all keys that were not moved: the one that weighs most, with the names of the
    /// others.
    fn left(&self, mut left: Vec<(Vec<u8>, WorkerError)>) -> WorkerError {
        let weight = |error: &WorkerError| match error {
            WorkerError::Store(_) => 0,
            WorkerError::Usage(_) | WorkerError::Stopped(_) => 1,
            WorkerError::Cancelled(_) => 2,
            WorkerError::Busy(_) => 3,
        };
        left.sort_by_key(|(_, error)| weight(error));
        let mut left = left.into_iter();
        let Some((_, first)) = left.next() else { return WorkerError::Busy(String::new()) };
        let others = left.len();
        if others == 0 {
            return first;
        }
        let key_type = self.key_type();
        let names: Vec<String> =
            left.take(NAMED).map(|(key, _)| format!("{:?}", key_text(&key, key_type))).collect();
        let (table, names) = (self.table(), names.join(", "));
        first.saying(&format!(". {others} other keys of table {table} were not moved, either: {names}"))
    }

    /// The type of its partition key.
    pub fn key_type(&self) -> heatsink_dynamo::KeyType {
        self.described.schema.key.partition.key_type
    }
}
