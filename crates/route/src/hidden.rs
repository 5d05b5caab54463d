//! Heatsink's own tables do not exist for clients: requests that name one are refused, and lists
//! leave them out. So do lists of tags with its own tag.
//!
//! Not here: `ListTables` (`list_tables`).

mod lists;
mod tags;

use heatsink_dynamo::{Code, Error, Operation};

pub(crate) use lists::plan as list;
pub(crate) use tags::list as list_tags;

/// The error of a request that names a hidden table: as if it did not exist, or, for one that would
/// create it, as if it did.
pub(crate) fn refuse(operation: Operation, name: &str) -> Error {
    match operation {
        Operation::CreateTable | Operation::ImportTable => {
            Error::new(Code::ResourceInUseException, format!("Table already exists: {name}"))
        }
        Operation::DescribeTable | Operation::UpdateTable | Operation::DeleteTable => Error::new(
            Code::ResourceNotFoundException,
            format!("Requested resource not found: Table: {name} not found"),
        ),
        _ => Error::new(Code::ResourceNotFoundException, "Requested resource not found"),
    }
}
