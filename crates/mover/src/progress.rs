//! How far a reshard is, and what it has done: for whoever carries one out.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_reshard::State;
use serde::Serialize;

use crate::steps::NewestStep;

/// The pause between two pages of the count of a reshard's items, which is for people.
pub const COUNTING: Duration = Duration::from_millis(200);

/// Runs a reshard, and counts its items beside it. What was counted is told if that ends first.
pub async fn beside_count<T, E>(
    running: impl Future<Output = T>,
    counting: impl Future<Output = Result<u64, E>>,
    told: impl FnOnce(u64),
) -> T {
    match select(pin!(running), pin!(counting)).await {
        Either::Left((ended, _)) => ended,
        Either::Right((counted, running)) => {
            if let Ok(items) = counted {
                told(items);
            }
            running.await
        }
    }
}

/// Receives the progress of a reshard. Called often: must be fast.
pub trait Progress: Send + Sync {
    /// The key's record says so from now on.
    fn phase(&self, state: State);
    /// So many items have been moved by this run.
    fn moved(&self, items: u64);
    /// Why it does not go on now; nothing once it does.
    fn hindered(&self, _why: Option<String>) {}
}

/// What a run has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The table.
    pub table: String,
    /// The logical key.
    pub key: String,
    /// How many shards it had.
    pub from: u16,
    /// How many it has.
    pub to: u16,
    /// How many items this run moved.
    pub moved: u64,
    /// From which bucket on, where they are shards of buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<NewestStep>,
}
