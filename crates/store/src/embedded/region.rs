//! The region in the names of tables, indexes and streams. The engine writes one of its own, and
//! reads any.
//!
//! Not here: the region that requests are signed for (the gateway's front).

use bytes::Bytes;
use dynoxide::streams::LOCAL_REGION;
use heatsink_dynamo::Operation;

/// The region of a store that is told none.
pub(super) const DEFAULT: &str = "us-east-1";

/// Whether the answer names resources. Those that show items do not: nothing in them is changed.
pub(super) const fn names(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::CreateTable
            | Operation::DeleteTable
            | Operation::DescribeStream
            | Operation::DescribeTable
            | Operation::GetRecords
            | Operation::ListStreams
            | Operation::UpdateTable
    )
}

/// The answer with `region` instead of the engine's. No text in an item begins as these members do:
/// a quote within a text is escaped.
pub(super) fn put(operation: Operation, answer: &Bytes, region: &str) -> Bytes {
    let Ok(text) = std::str::from_utf8(answer) else { return answer.clone() };
    let (engines, own) = match operation {
        Operation::GetRecords => {
            (format!("\"awsRegion\":\"{LOCAL_REGION}\""), format!("\"awsRegion\":\"{region}\""))
        }
        _ => (format!("\"arn:aws:dynamodb:{LOCAL_REGION}:"), format!("\"arn:aws:dynamodb:{region}:")),
    };
    Bytes::from(text.replace(&engines, &own))
}
