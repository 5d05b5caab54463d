//! Where the router learns how a key is laid out. Implemented by `control` over the registry, and by tests.

use std::sync::Arc;

use heatsink_dynamo::TableSchema;

use crate::Layout;

/// How one logical key is laid out right now.
#[derive(Clone, Debug)]
pub enum Placement {
    /// One layout is in force.
    Stable(Arc<Layout>),
}

/// Answers, for every key that the router meets, which layout holds. Cheap: it is asked on every request.
pub trait LayoutSource: Send + Sync {
    /// The schema of a table that is on record as sharded; `None` for a table without a record, whose requests go
    /// on byte for byte.
    fn table(&self, name: &str) -> Option<Arc<TableSchema>>;

    /// The layout of one logical partition key of a recorded table. `key` holds the key's bytes: UTF-8 for a string,
    /// raw for binary. Keys that no rule names get [`Layout::none`]: they stay whole, but are escaped like the rest.
    fn placement(&self, table: &TableSchema, key: &[u8]) -> Placement;

    /// Whether `name` is a table of Heatsink's own (the registry), which clients never see.
    fn is_hidden(&self, name: &str) -> bool;

    /// The names of all hidden tables, whether they exist yet or not: what `ListTables` leaves out.
    fn hidden_tables(&self) -> Vec<String>;
}
