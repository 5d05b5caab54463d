//! The refusal of a position of another layout.

use std::borrow::Cow;

use heatsink_dynamo::Error;
use heatsink_layout::Table;

/// The refusal of a position that is not of the layout in force.
pub(crate) fn of_another_layout(table: &Table) -> Error {
    Error::gateway_rejection(refusal(&table.name))
}

/// The refusal of such a position in a request on tables without a layout.
pub(crate) fn of_no_layout(tables: &[Cow<'_, str>]) -> Error {
    Error::validation(refusal(&tables.join(", ")))
}

fn refusal(table: &str) -> String {
    format!(
        "The position that the request goes on from is of another layout of table {table} than the one in force: items have moved since, and the \
         rest would miss some of them and show others twice. Begin the Scan, the Query, or the statement again. A position that was made of an \
         item's key, rather than handed back as it came, is refused for the same reason. Nothing was read"
    )
}
