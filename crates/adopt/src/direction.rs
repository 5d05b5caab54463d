//! Which way an adoption goes.

use serde::Serialize;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From logical keys to homes.
    Adopt,
    /// From homes to logical keys.
    Back,
    /// Off the record, every item where it lies: for a table that its own code goes on to shard by hand. Only with templates.
    Release,
}
