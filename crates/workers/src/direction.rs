//! The direction of an adoption.

use serde::Serialize;

/// The direction of an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From logical keys to the keys that the layout assigns.
    Adopt,
    /// Back to logical keys.
    Back,
    /// Removes the record and leaves every item where it is, for a table whose own code continues
    /// to shard it by hand. Only with templates.
    Release,
}
