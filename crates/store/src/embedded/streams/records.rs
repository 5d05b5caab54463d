//! GetRecords.

use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Error, Item};
use rusqlite::{Row, params};
use serde_json::{Value as Json, json};

use super::super::engine::Engine;
use super::iterator::{numbered, read, written};
use super::kept::Stream;
use super::request::{limit, text, unreadable};

/// The most records of a page, and the most bytes of their images.
const MOST: u64 = 1000;
const BYTES: usize = 1 << 20;

/// A record as the engine keeps it.
struct Kept {
    number: i64,
    event: String,
    id: Option<String>,
    made: i64,
    keys: String,
    new: Option<String>,
    old: Option<String>,
    by: Option<String>,
}

impl Kept {
    fn read(row: &Row<'_>) -> rusqlite::Result<Kept> {
        Ok(Kept {
            number: row.get(0)?,
            event: row.get(1)?,
            id: row.get(2)?,
            made: row.get(3)?,
            keys: row.get(4)?,
            new: row.get(5)?,
            old: row.get(6)?,
            by: row.get(7)?,
        })
    }

    fn bytes(&self) -> usize {
        let length = |image: &Option<String>| image.as_ref().map_or(0, String::len);
        self.keys.len() + length(&self.new) + length(&self.old)
    }
}

/// The answer of GetRecords.
pub(super) fn page(engine: &Engine, request: &Json) -> Result<Json, Error> {
    let most = limit(request, MOST, "Limit should be less than or equal to")?;
    let (stream, mut position) = read(engine, text(request, "ShardIterator"))?;
    let mut records = Vec::new();
    let mut bytes = 0;
    for kept in kept(engine, &stream, position, most).map_err(unreadable)? {
        bytes += kept.bytes();
        if bytes > BYTES && !records.is_empty() {
            break;
        }
        position = kept.number;
        records.push(record(&stream, kept)?);
    }
    let mut answer = json!({ "Records": records });
    // Behind the last record of a closed shard there is nothing to wait for.
    if stream.last.is_none_or(|last| position < last) {
        answer["NextShardIterator"] = json!(written(&stream, position));
    }
    Ok(answer)
}

/// The records behind a position, up to a page and one.
fn kept(engine: &Engine, stream: &Stream, position: i64, most: usize) -> dynoxide::Result<Vec<Kept>> {
    let sql = "SELECT CAST(sequence_number AS INTEGER), event_name, event_id, created_at, keys_json, new_image, old_image, user_identity
        FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) BETWEEN ?2 AND ?3
        ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?4";
    let mut statement = engine.storage.conn().prepare_cached(sql)?;
    let from = stream.first.max(position.saturating_add(1));
    let rows = statement.query_map(
        params![stream.table, from, stream.last.unwrap_or(i64::MAX), i64::try_from(most).unwrap_or(i64::MAX)],
        Kept::read,
    )?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let row = row?;
        bytes += row.bytes();
        page.push(row);
        if bytes > BYTES {
            break;
        }
    }
    Ok(page)
}

fn record(stream: &Stream, kept: Kept) -> Result<Json, Error> {
    let mut change = json!({
        "ApproximateCreationDateTime": kept.made,
        "SequenceNumber": numbered(kept.number),
        "StreamViewType": stream.view,
    });
    let mut size = 0;
    for (name, image) in [("Keys", Some(kept.keys)), ("NewImage", kept.new), ("OldImage", kept.old)] {
        let Some(image) = image else { continue };
        let item: Item = read_item(image.as_bytes())?;
        size += item_size(&item);
        change[name] = serde_json::from_str(&image).map_err(unreadable)?;
    }
    change["SizeBytes"] = json!(size);
    let mut record = json!({
        "awsRegion": dynoxide::streams::LOCAL_REGION,
        "dynamodb": change,
        // One that an older build wrote has none.
        "eventID": kept.id.unwrap_or_else(|| numbered(kept.number)),
        "eventName": kept.event,
        "eventSource": "aws:dynamodb",
        "eventVersion": "1.1",
    });
    if let Some(by) = kept.by {
        let by: Json = serde_json::from_str(&by).map_err(unreadable)?;
        record["userIdentity"] = json!({
            "PrincipalId": by["principalId"].as_str().unwrap_or("dynamodb.amazonaws.com"),
            "Type": by["type"].as_str().unwrap_or("Service"),
        });
    }
    Ok(record)
}
