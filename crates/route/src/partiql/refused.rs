//! Statements that are refused here, or that the store is asked about before anything else.
//!
//! Not here: writes that cannot be read, which the store refuses in its own words (`guard`).

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, json};

use super::gather;
use crate::plan::Plan;
use crate::preflight;

/// The refusal of a statement that is not understood here.
pub(super) fn not_understood(why: &str) -> Error {
    Error::gateway_rejection(format!(
        "The table is sharded, and Heatsink does not understand this statement: {why}. Nothing was read or written"
    ))
}

/// A read that is refused here unless the store refuses it first.
pub(super) fn unread(body: &Bytes, why: &str, asked: bool) -> Plan {
    refused_read(body, not_understood(why), asked)
}

/// A read that is refused with this error; `ask`: unless the store refuses it first.
pub(super) fn refused_read(body: &Bytes, error: Error, ask: bool) -> Plan {
    let refused = gather::Refused(error).plan();
    if ask { as_sent(body, refused) } else { refused }
}

/// A read that is carried out if the store takes its statement.
pub(super) fn as_sent(body: &Bytes, then: Plan) -> Plan {
    let one_item = [("NextToken", None), ("Limit", Some(&b"1"[..]))];
    let limit = json::member(body, "Limit").ok().flatten().unwrap_or(b"1");
    let valid = limit.iter().all(u8::is_ascii_digit) && limit != b"0";
    let changes = if valid { &one_item[..] } else { &one_item[..1] };
    let body = json::splice_members(body, changes).map_or_else(|_| body.clone(), Bytes::from);
    let why = "whether the statement is one that DynamoDB takes, the store says";
    preflight::first(Operation::ExecuteStatement, body, then, why)
}
