//! Streams of tables.
//!
//! The engine records changes table by table, and knows one stream of a table: the one that is on.
//! Here each stream has its own records, from where it was turned on to where it was turned off or
//! its table was deleted ([`kept`]), under an ARN that holds its label. A stream has one shard.
//! What is no longer on can be read for a day.
//!
//! Source: AWS API reference, DynamoDB Streams; what a description leaves open, and the words of
//! refusals, as tried on DynamoDB Local 1.11.478.
//!
//! Not here: what is recorded (the engine), logical keys (`route`).

mod described;
mod iterator;
pub(super) mod kept;
mod records;
mod request;

use heatsink_dynamo::{Code, Error, Operation};
use serde_json::Value as Json;

use super::engine::Engine;
use request::unreadable;

/// Whether the operation is answered here.
pub(super) const fn answers(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::DescribeStream
            | Operation::GetRecords
            | Operation::GetShardIterator
            | Operation::ListStreams
    )
}

/// The answer to a request that [`heatsink_dynamo::wire`] has checked.
///
/// # Errors
/// DynamoDB's, for a stream, a shard or a position that is not there.
pub(super) fn answer(engine: &Engine, operation: Operation, request: &Json) -> Result<Json, Error> {
    kept::settle_all(engine).map_err(unreadable)?;
    match operation {
        Operation::DescribeStream => described::stream(engine, request),
        Operation::GetShardIterator => iterator::iterator(engine, request),
        Operation::GetRecords => records::page(engine, request),
        Operation::ListStreams => described::list(engine, request),
        _ => Err(Error::bare(Code::UnknownOperationException)),
    }
}
