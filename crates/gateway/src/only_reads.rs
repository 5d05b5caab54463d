//! Whether a request changes nothing.

use bytes::Bytes;
use heatsink_dynamo::{Operation, json};

/// Whether a request changes nothing, so that it may be cancelled half-way. A SELECT statement
/// changes nothing; batches and transactions of statements are not examined.
pub(crate) fn only_reads(operation: Operation, body: &Bytes) -> bool {
    let selects = || {
        let statement = json::member(body, "Statement").ok().flatten();
        let statement = statement.and_then(|statement| json::string(statement).ok()).unwrap_or_default();
        statement.trim_start().get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("select"))
    };
    operation.only_reads() || operation == Operation::ExecuteStatement && selects()
}
