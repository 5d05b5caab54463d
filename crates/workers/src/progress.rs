//! The progress of a worker, for whoever carries one out.

use heatsink_reshard::{State, TablePhase};

/// What a worker on a table does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reads every item, changes nothing.
    Looking,
    /// Waits until every gateway has acknowledged the change.
    Settling,
    /// Moves items.
    Moving,
    /// Reads every item again and compares.
    Verifying,
}

/// Receives the progress of a worker. Called often: must be fast.
///
/// Workers on a table, and plans, call [`phase`](Self::phase) and [`passed`](Self::passed); the
/// reshard of a key, or of a value of an index, calls the others.
pub trait Progress: Send + Sync {
    /// A phase begins. `items` is the number of items that it will process, if known.
    fn phase(&self, _phase: Phase, _items: Option<u64>) {}
    /// So many more items have been processed.
    fn passed(&self, _items: u64) {}
    /// The record of the key, or of the value, says so from now on.
    fn state(&self, _state: State) {}
    /// The record of the table says so from now on.
    fn table(&self, _phase: TablePhase) {}
    /// So many items have been moved, or rewritten, by this run.
    fn moved(&self, _items: u64) {}
    /// Why it does not go on now; nothing once it does.
    fn hindered(&self, _why: Option<String>) {}
}

/// Progress that nobody is shown.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Progress for Unwatched {}
