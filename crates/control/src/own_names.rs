//! Names of tables that Heatsink keeps to itself: what a client is told that wants one, and how a
//! command learns that it talks to a server of Heatsink.
//!
//! Not here: which names these are (`control`).

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use serde_json::json;

const OWN: &str = "is Heatsink's own";

/// What is answered to who wants to create such a table.
pub(crate) fn refused(name: &str) -> Error {
    Error::validation(format!("The table name {name} {OWN}"))
}

/// Whether the store is a server of Heatsink that keeps this name to itself. Nothing is changed.
pub async fn keeps_to_itself(store: &dyn Store, name: &str) -> bool {
    // Without a key schema no store makes a table. Heatsink looks at the name first.
    let body = Bytes::from(json!({ "TableName": name }).to_string());
    let created = store.call(Operation::CreateTable, body).await;
    created.is_err_and(|error| error.message.is_some_and(|said| said.contains(OWN)))
}
