//! What this process, or one before it, knows of tables on record: a registry that is lost is
//! missed by it.
//!
//! A table is remembered by its name and the store's id of it, so a table that was made again, or
//! another store at the same address, is not taken for it.
//!
//! Not here: where that is kept (the command line keeps a file), and what follows from it
//! (`lost_registry`).

use std::fmt;
use std::sync::Arc;

/// A table that was on record as sharded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RememberedTable {
    /// The registry that had its record.
    pub registry: String,
    /// Its name.
    pub name: String,
    /// The store's id of it.
    pub id: String,
}

/// Remembers tables on record beyond the life of this process. A memory that cannot be read or
/// written forgets: it is a safeguard beside others.
pub trait Memory: Send + Sync {
    /// The tables that were on record when they were last looked at.
    fn tables(&self) -> Vec<RememberedTable>;
    /// A table is on record. Called often: only a new one may take time.
    fn note(&self, table: &RememberedTable);
    /// The registry says that the table with this id is not on record any more.
    fn forget(&self, id: &str);
    /// Where it is kept, for people.
    fn place(&self) -> String;
}

/// What is expected of a store: whether it has to have its registry.
#[derive(Clone, Default)]
pub struct Expectation {
    /// What the configuration says, if it does: with `true` a store without its registry is never
    /// taken for one that has no sharded tables; with `false` it always is.
    pub required: Option<bool>,
    /// What is remembered, where anything is.
    pub memory: Option<Arc<dyn Memory>>,
    /// Whether no other process reaches the store. Then a table without a tag was never on record
    /// here, whatever its clients write: they may be gateways themselves, with a registry of their
    /// own.
    pub alone: bool,
}

impl fmt::Debug for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.as_ref().map(|memory| memory.place());
        f.debug_struct("Expectation")
            .field("required", &self.required)
            .field("memory", &memory)
            .field("alone", &self.alone)
            .finish()
    }
}

impl PartialEq for Expectation {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.memory, &other.memory) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        self.required == other.required && self.alone == other.alone && same
    }
}

impl Eq for Expectation {}
