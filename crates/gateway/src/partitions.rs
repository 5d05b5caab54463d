//! The partitions of a store that tells them.
//!
//! Not here: what partitions do (`heatsink_physics`).

/// Renders the partitions of a table as JSON; `None` for an unknown table.
pub type Partitions = Box<dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync>;
