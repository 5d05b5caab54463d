//! Streams of recorded tables: the keys of stream records become logical.
//!
//! Shards, iterators and sequence numbers stay as the store gives them. An item has one physical
//! key, so its records stay in the order of its writes.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::{MOVED, Table};

use crate::answer::{rewrite, strip_object};
use crate::plan::{Plan, Single};
use crate::request::Request;
use crate::splice::Splice;
use crate::tables::{iterator_table, table_name};

/// The plan of a `GetShardIterator`: the iterator passes on, if `GetRecords` will know its table
/// again.
pub(crate) fn iterator(request: &Request<'_>, table: &Arc<Table>) -> Plan {
    let table = Arc::clone(table);
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        let iterator = json::member(&body, "ShardIterator").ok().flatten();
        let iterator = iterator.filter(|raw| *raw != b"null").and_then(|raw| json::string(raw).ok());
        match iterator {
            Some(iterator) if iterator_table(&iterator).is_none_or(|of| table_name(&of) != table.name) => {
                Err(Error::gateway_rejection(format!(
                    "The store's shard iterators do not say which table they are of, so the keys in the stream of the sharded table \
                     {} could not be made logical",
                    table.name
                )))
            }
            _ => Ok(body),
        }
    };
    let why = "the iterator passes on; the records read with it are made logical";
    Single::new(Operation::GetShardIterator, request.body.clone(), Some(Box::new(finish)), why).plan()
}

/// The plan of a `GetRecords`.
pub(crate) fn records(request: &Request<'_>, table: &Arc<Table>) -> Plan {
    let table = Arc::clone(table);
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(Operation::GetRecords, &body, |splice| logical(&table, &body, splice))
    };
    let why = "the request passes on; the keys in its records are made logical";
    Single::new(Operation::GetRecords, request.body.clone(), Some(Box::new(finish)), why).plan()
}

/// Makes the keys of all records logical, and takes the suffixes out of their sizes. Records of an
/// old copy that is marked, and of its deletion, are left out: the item has moved.
fn logical<'a>(table: &Table, body: &'a Bytes, splice: &mut Splice<'a>) -> Result<(), json::Malformed> {
    let Some(all) = json::member(body, "Records")?.filter(|raw| *raw != b"null") else { return Ok(()) };
    let records = json::elements(all)?;
    let mut kept = Vec::with_capacity(records.len());
    for record in &records {
        if !is_of_moved(record)? {
            kept.push(body.slice_ref(record));
        }
    }
    if kept.len() < records.len() {
        let rest = Bytes::from([b"[", kept.join(&b","[..]).as_slice(), b"]"].concat());
        let mut own = Splice::new(&rest);
        logical_records(table, &rest, &mut own)?;
        splice.replace(all, own.finish(&rest));
        return Ok(());
    }
    logical_records(table, all, splice)
}

/// Whether the item of a record was marked as moved: it is no change of a client's.
fn is_of_moved(record: &[u8]) -> Result<bool, json::Malformed> {
    let Some(change) = json::member(record, "dynamodb")?.filter(|raw| *raw != b"null") else {
        return Ok(false);
    };
    let images = json::attributes_of(change, ["NewImage", "OldImage"])?;
    for image in images.into_iter().flatten().filter(|image| *image != b"null") {
        if json::member(image, MOVED)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn logical_records<'a>(
    table: &Table,
    list: &'a [u8],
    splice: &mut Splice<'a>,
) -> Result<(), json::Malformed> {
    for record in json::elements(list)? {
        let Some(change) = json::member(record, "dynamodb")?.filter(|raw| *raw != b"null") else { continue };
        let [keys, new, old, size] =
            json::attributes_of(change, ["Keys", "NewImage", "OldImage", "SizeBytes"])?;
        let mut suffixes = 0;
        for object in [keys, new, old].into_iter().flatten().filter(|object| *object != b"null") {
            let stored = Bytes::copy_from_slice(object);
            let mut own = Splice::new(&stored);
            strip_object(table, &stored, &mut own)?;
            let logical = own.finish(&stored);
            // In bytes of values: the text of binary ones is longer.
            suffixes += scan_item(&stored, [])?.bytes.saturating_sub(scan_item(&logical, [])?.bytes);
            if logical != stored {
                splice.replace(object, logical.to_vec());
            }
        }
        let bytes = size.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok());
        if let (Some(raw), Some(bytes), 1..) = (size, bytes, suffixes) {
            splice.replace(raw, bytes.saturating_sub(suffixes).to_string());
        }
    }
    Ok(())
}
