//! One line of the log for each request of a client, where somebody asks for it.
//!
//! It has no keys and no items: logs are read by more people than tables are.
//!
//! Not here: where the log goes, and in which form (the installer of a `tracing` subscriber
//! decides).

use std::time::Duration;

use bytes::Bytes;
use heatsink_access::Caller;
use heatsink_dynamo::{Error, Operation};
use heatsink_route::{Answer, tables_of};
use tracing::Level;

/// The target of its lines, by which they are asked for.
pub const ACCESS_LOG: &str = "heatsink_access";

/// Whether anybody asks for them.
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: ACCESS_LOG, Level::INFO)
}

/// The line of a request that was answered so long after it came.
pub(crate) fn line(
    operation: Operation,
    body: &Bytes,
    caller: Option<&Caller>,
    answer: &Result<Answer, Error>,
    took: Duration,
) {
    let tables = tables_of(operation, body).map(|names| names.join(",")).unwrap_or_default();
    let (answered, missing) =
        answer.as_ref().map_or((0, 0), |answer| (answer.body.len(), answer.missing.len()));
    let failed = answer.as_ref().err().map(|error| error.code.name().to_owned());
    let milliseconds = took.as_secs_f64() * 1e3;
    tracing::info!(
        target: ACCESS_LOG,
        client = caller.map(Caller::id),
        operation = operation.name(),
        tables,
        milliseconds,
        bytes_in = body.len(),
        bytes_out = answered,
        missing_shards = (missing > 0).then_some(missing),
        failed,
    );
}
