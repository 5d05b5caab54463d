//! The partitions of a store that tells them.
//!
//! Not here: what partitions do (`heatsink_physics`).

/// Renders the partitions of a table as JSON; `None` for an unknown table.
pub type Partitions = Box<dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync>;

/// How many partitions a table has, its indexes not counted; `None` where the store does not tell.
pub(crate) fn count(told: &Partitions, table: &str) -> Option<u32> {
    let told = told(table)?;
    let own = told.get("resources")?.as_array()?.iter().find(|resource| resource["index"].is_null())?;
    u32::try_from(own.get("partitions")?.as_array()?.len()).ok()
}
