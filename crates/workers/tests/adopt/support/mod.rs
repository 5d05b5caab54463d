//! The stores and tables of control's tests, and runs that are killed.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

#[path = "../../../../control/tests/control/support/mod.rs"]
mod stores;

use std::sync::Arc;

use heatsink_store::Store;
use heatsink_workers::{AdoptionReport, Direction, WorkerError};

pub use stores::*;

/// A table to adopt, for [`killed_everywhere`].
pub trait Adopting {
    const TABLE: &'static str;
    /// A store with the table as it is before.
    async fn filled() -> Arc<dyn Store>;
    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError>;
}

/// At which calls a run is killed, in order: at every third one, of runs whose call `acts` at others
/// than of those whose does not; at every one with `HEATSINK_KILLS=all`, as each night.
pub fn kills(acts: bool) -> impl Iterator<Item = i64> {
    let (first, step) = match std::env::var("HEATSINK_KILLS").as_deref() {
        Ok("all") => (0, 1),
        _ => (i64::from(acts), 3),
    };
    (first..).step_by(step)
}

/// Kills the first run at its k-th call, for every k of [`kills`], once before the call takes effect
/// and once after it; then a second run goes `then`. The first run makes more than `least` calls.
pub async fn killed_everywhere<A: Adopting>(first: Direction, then: Direction, least: i64) {
    let sample = A::filled().await;
    let original = items(&sample, A::TABLE).await;
    A::adopt(&sample, Direction::Adopt).await.unwrap();
    let adopted = items(&sample, A::TABLE).await;
    let goal = if then == Direction::Adopt { &adopted } else { &original };
    for acts in [false, true] {
        for at in kills(acts) {
            let store = A::filled().await;
            if first == Direction::Back {
                A::adopt(&store, Direction::Adopt).await.unwrap();
            }
            let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, acts);
            let killed = A::adopt(&dying, first).await;
            match A::adopt(&store, then).await {
                Ok(_) => {}
                // Nothing to bring back: killed before anything was on record, or after all was
                // done.
                Err(WorkerError::Usage(_)) if then == Direction::Back => {}
                Err(error) => panic!("killed at call {at} ({acts}): {error}"),
            }
            assert_eq!(&items(&store, A::TABLE).await, goal, "killed at call {at} ({acts})");
            if killed.is_ok() {
                assert!(at > least, "the run makes {at} calls");
                break;
            }
        }
    }
}
