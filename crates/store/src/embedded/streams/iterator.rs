//! Positions in a shard: sequence numbers and iterators.
//!
//! An iterator is the stream's ARN and the number of the last record that was read, as DynamoDB's
//! begins with the ARN.

use heatsink_dynamo::Error;
use serde_json::{Value as Json, json};

use super::super::engine::Engine;
use super::kept::{self, Stream};
use super::request::{not_found, text, unreadable};

/// Makes sequence numbers of the 21 digits that DynamoDB's have at least.
const OFFSET: i128 = 100_000_000_000_000_000_000;

/// A record's number as clients see it.
pub(super) fn numbered(record: i64) -> String {
    (OFFSET + i128::from(record.max(0))).to_string()
}

/// The record that a client names.
fn record(number: &str) -> Option<i64> {
    i64::try_from(number.parse::<i128>().ok()?.checked_sub(OFFSET)?).ok().filter(|record| *record >= 0)
}

/// The answer of GetShardIterator.
pub(super) fn iterator(engine: &Engine, request: &Json) -> Result<Json, Error> {
    let (arn, shard) = (text(request, "StreamArn"), text(request, "ShardId"));
    let found = kept::find(engine, arn).map_err(unreadable)?;
    let stream = found.ok_or_else(|| not_found(&format!("Stream: {arn}")))?;
    if stream.shard() != shard {
        return Err(not_found(&format!("Shard: {shard} in Stream: {arn}")));
    }
    let invalid = |why: &str| Error::validation(format!("One or more parameter values were invalid: {why}"));
    let number = request["SequenceNumber"].as_str();
    let at = |offset: i64| {
        let number = number.ok_or_else(|| invalid("Invalid SequenceNumber"))?;
        let last = stream.last.unwrap_or(i64::MAX);
        // The place before the first record, and that behind the last, can be named as well.
        record(number)
            .filter(|record| (stream.first - 1..=last.max(stream.first)).contains(record))
            .map(|record| record - offset)
            .ok_or_else(|| invalid("Invalid SequenceNumber"))
    };
    let position = match text(request, "ShardIteratorType") {
        "TRIM_HORIZON" | "LATEST" if number.is_some() => {
            return Err(invalid("SequenceNumber should not be passed for this iterator type"));
        }
        "TRIM_HORIZON" => stream.first - 1,
        "LATEST" => kept::newest(engine, &stream).map_err(unreadable)?,
        "AT_SEQUENCE_NUMBER" => at(1)?,
        _ => at(0)?,
    };
    Ok(json!({"ShardIterator": written(&stream, position)}))
}

/// The iterator behind a record.
pub(super) fn written(stream: &Stream, position: i64) -> String {
    format!("{}|1|{position}", stream.arn())
}

/// The stream and the position of an iterator.
pub(super) fn read(engine: &Engine, iterator: &str) -> Result<(Stream, i64), Error> {
    let invalid = || Error::validation("Invalid ShardIterator");
    let mut parts = iterator.splitn(3, '|');
    let (Some(arn), Some("1"), Some(position)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(invalid());
    };
    let position = position.parse().map_err(|_| invalid())?;
    let found = kept::find(engine, arn).map_err(unreadable)?;
    Ok((found.ok_or_else(|| not_found(&format!("Stream: {arn}")))?, position))
}
