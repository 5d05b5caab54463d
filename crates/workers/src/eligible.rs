//! Checks whether a table can be recorded at all, whatever the rules or records say about its keys.

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::tags;
use heatsink_layout::DIRECTORY;

use crate::error::WorkerError;

/// Describes a client table that exists and can be used.
///
/// # Errors
/// [`WorkerError::Usage`] for any other table, and for one that another registry has recorded.
pub(crate) async fn usable(registry: &Registry, table: &str) -> Result<Described, WorkerError> {
    let usage = |problem: String| Err(WorkerError::Usage(problem));
    if [registry.name(), DIRECTORY].contains(&table) {
        return usage(format!("{table} is Heatsink's own table"));
    }
    let Some(described) = registry.describe(table).await? else {
        return usage(format!("There is no table {table}"));
    };
    if described.status != "ACTIVE" && !described.status.is_empty() {
        return usage(format!("Table {table} is {}; wait until it is ACTIVE", described.status));
    }
    match tags::foreign(registry, &described).await? {
        Some(problem) => usage(problem),
        None => Ok(described),
    }
}

/// The reason not to adopt a table whose name is recorded under another id; `None` if it is not.
pub(crate) async fn named_before(
    registry: &Registry,
    name: &str,
    id: &str,
) -> Result<Option<String>, WorkerError> {
    let records = registry.named(name).await?;
    let before: Vec<String> =
        records.into_iter().filter(|record| record.name == name).map(|record| record.id).collect();
    Ok((!before.is_empty()).then(|| {
        let ids = before.join(", ");
        format!(
            "The name {name} is on record for a table with another id ({ids}); this one has the id {id}. Say whose records hold: if it is a copy of \
             that table, such as one restored from a backup, `heatsink adopt {name} --records-from {}`; if it is a new table whose items are under \
             their logical keys, `heatsink adopt {name} --records-from none`",
            before.first().map_or("ID", String::as_str)
        )
    }))
}
