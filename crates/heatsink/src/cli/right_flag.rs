//! Refuses a server that the other flag is for: `--upstream` names the store behind gateways,
//! `--server` a server that has its store itself.

use bytes::Bytes;
use heatsink_control::keeps_to_itself;
use heatsink_dynamo::{Code, Operation};
use heatsink_store::Store;
use serde_json::json;

use crate::exit::Exit;

/// Looks whether the endpoint is a server of Heatsink with the same registry, which it hides: there
/// nothing would ever be on record.
///
/// # Errors
/// Exit 64 that names `--server`.
pub async fn upstream(store: &dyn Store, registry: &str, url: &str) -> Result<(), Exit> {
    let body = Bytes::from(json!({ "TableName": registry }).to_string());
    let Err(error) = store.call(Operation::DescribeTable, body).await else { return Ok(()) };
    if error.code != Code::ResourceNotFoundException || !keeps_to_itself(store, registry).await {
        return Ok(());
    }
    let server = url.trim_start_matches("http://").trim_end_matches('/');
    Err(Exit::usage(format!(
        "--upstream {url}: this is a server of Heatsink. Of one with a store of its own say --server {server}, or stop it and say --data FILE where the command \
         has no such flag; of a gateway, the --upstream that it was started with"
    )))
}

/// Looks whether the server shows its store.
///
/// # Errors
/// Exit 64 that names `--upstream`.
pub async fn server(store: &dyn Store, registry: &str, server: &str) -> Result<(), Exit> {
    let body = Bytes::from(json!({ "TableName": registry }).to_string());
    match store.call(Operation::DescribeTable, body).await {
        Err(error) if error.code == Code::AccessDeniedException => {
            let why = error.message.unwrap_or_default();
            Err(Exit::usage(format!(
                "--server {server}: {why}. If it is a gateway, say --upstream URL with the one that it was started with"
            )))
        }
        _ => Ok(()),
    }
}
