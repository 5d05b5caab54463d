//! DescribeStream and ListStreams.

use heatsink_dynamo::Error;
use serde_json::{Value as Json, json};

use super::super::engine::Engine;
use super::iterator::numbered;
use super::kept::{self, Stream};
use super::request::{limit, not_found, text, unreadable};

/// The most streams of an answer.
const MOST: u64 = 100;

/// The answer of DescribeStream.
pub(super) fn stream(engine: &Engine, request: &Json) -> Result<Json, Error> {
    limit(request, MOST, "Limit cannot be greater than the maximum")?;
    let arn = text(request, "StreamArn");
    let found = kept::find(engine, arn).map_err(unreadable)?;
    let stream = found.ok_or_else(|| not_found(&format!("Stream: {arn}")))?;
    // Its one shard has no parent and no children.
    let no_more = !request["ExclusiveStartShardId"].is_null() || !request["ShardFilter"].is_null();
    let shards = if no_more { Vec::new() } else { vec![shard(&stream)] };
    let key_schema: Json = serde_json::from_str(&stream.key_schema).map_err(unreadable)?;
    let made = std::time::Duration::from_millis(u64::try_from(stream.made).unwrap_or_default());
    Ok(json!({"StreamDescription": {
        "StreamArn": stream.arn(),
        "StreamLabel": stream.label,
        "StreamStatus": if stream.last.is_none() { "ENABLED" } else { "DISABLED" },
        "StreamViewType": stream.view,
        "CreationRequestDateTime": made.as_secs_f64(),
        "TableName": stream.table,
        "KeySchema": key_schema,
        "Shards": shards,
    }}))
}

fn shard(stream: &Stream) -> Json {
    let mut range = json!({"StartingSequenceNumber": numbered(stream.first)});
    // Of an open shard there is none: consumers take one that has it for closed.
    if let Some(last) = stream.last {
        range["EndingSequenceNumber"] = json!(numbered(last.max(stream.first)));
    }
    json!({"ShardId": stream.shard(), "SequenceNumberRange": range})
}

/// The answer of ListStreams.
pub(super) fn list(engine: &Engine, request: &Json) -> Result<Json, Error> {
    let most = limit(request, MOST, "Limit cannot be greater than the maximum allowed size")?;
    let start = match request["ExclusiveStartStreamArn"].as_str() {
        None => None,
        Some(arn) => {
            let found = kept::find(engine, arn).map_err(unreadable)?;
            Some(found.ok_or_else(|| not_found(&format!("Stream: {arn}")))?)
        }
    };
    let of = request["TableName"].as_str();
    let mut found = kept::after(engine, start.as_ref(), of, most + 1).map_err(unreadable)?;
    let more = found.len() > most;
    found.truncate(most);
    let mut answer = json!({"Streams": found.iter().map(listed).collect::<Vec<Json>>()});
    if let Some(last) = found.last().filter(|_| more) {
        answer["LastEvaluatedStreamArn"] = json!(last.arn());
    }
    Ok(answer)
}

fn listed(stream: &Stream) -> Json {
    json!({"StreamArn": stream.arn(), "StreamLabel": stream.label, "TableName": stream.table})
}
