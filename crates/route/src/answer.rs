//! Answers: physical keys become logical again wherever they show.

use crate::cursor;
use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, Outcome, json};
use heatsink_layout::Table;
use serde_json::Value as Json;

use crate::key::strip;
use crate::splice::Splice;

/// The answer of a point operation with its keys made logical.
pub(crate) fn logical(operation: Operation, table: &Table, body: &Bytes) -> Result<Bytes, Error> {
    rewrite(operation, body, |splice| {
        let [item, attributes, metrics] =
            json::attributes_of(body, ["Item", "Attributes", "ItemCollectionMetrics"])?;
        for object in [item, attributes].into_iter().flatten() {
            strip_object(table, object, splice)?;
        }
        if let Some(metrics) = metrics {
            strip_metrics(table, metrics, splice)?;
        }
        Ok(())
    })
}

/// An answer with the changes that `edit` makes.
pub(crate) fn rewrite<'a>(
    operation: Operation,
    body: &'a Bytes,
    edit: impl FnOnce(&mut Splice<'a>) -> Result<(), json::Malformed>,
) -> Result<Bytes, Error> {
    let mut splice = Splice::new(body);
    match edit(&mut splice) {
        Ok(()) => Ok(splice.finish(body)),
        Err(json::Malformed) => Err(unreadable(operation)),
    }
}

/// The error of an answer that cannot be read; the request itself was done.
pub(crate) fn unreadable(operation: Operation) -> Error {
    done(Error::internal(format!("The store's answer to {} could not be read", operation.name())))
}

/// The same error for a request that may have taken effect.
pub(crate) fn done(mut error: Error) -> Error {
    error.outcome = Outcome::Unknown;
    error
}

/// Makes the key of one raw item or key logical; `null` stays.
pub(crate) fn strip_object(
    table: &Table,
    object: &[u8],
    splice: &mut Splice<'_>,
) -> Result<(), json::Malformed> {
    if object == b"null" { Ok(()) } else { strip(table, object, splice) }
}

/// Makes the key in an `ItemCollectionMetrics` logical.
pub(crate) fn strip_metrics(
    table: &Table,
    metrics: &[u8],
    splice: &mut Splice<'_>,
) -> Result<(), json::Malformed> {
    if metrics == b"null" {
        return Ok(());
    }
    json::member(metrics, "ItemCollectionKey")?.map_or(Ok(()), |key| strip_object(table, key, splice))
}

/// Makes the keys in one table's list of `ItemCollectionMetrics` logical. Shards of one logical key
/// are one collection to the client: the first one's estimate stands for it.
pub(crate) fn strip_metrics_list(
    table: &Table,
    list: &[u8],
    splice: &mut Splice<'_>,
) -> Result<(), json::Malformed> {
    let mut kept: Vec<Bytes> = Vec::new();
    let mut keys = Vec::new();
    for one in json::elements(list)? {
        let one = Bytes::copy_from_slice(one);
        let mut logical = Splice::new(&one);
        strip_metrics(table, &one, &mut logical)?;
        let logical = logical.finish(&one);
        let key = json::member(&logical, "ItemCollectionKey")?.map(<[u8]>::to_vec);
        if !keys.contains(&key) {
            keys.push(key);
            kept.push(logical);
        }
    }
    splice.replace(list, [b"[", kept.join(&b","[..]).as_slice(), b"]"].concat());
    Ok(())
}

/// An error with the key in its `Item` (a failed condition's) made logical.
pub(crate) fn logical_error(table: &Table, error: Error) -> Error {
    match error.members.get("Item").and_then(|item| logical_item(table, item)) {
        Some(item) => error.with("Item", item),
        None => error,
    }
}

/// An item with its key made logical; `None` if it already is.
pub(crate) fn logical_item(table: &Table, item: &Json) -> Option<Json> {
    let raw = Bytes::from(item.to_string());
    let mut splice = Splice::new(&raw);
    strip_object(table, &raw, &mut splice).ok()?;
    if splice.is_empty() { None } else { serde_json::from_slice(&splice.finish(&raw)).ok() }
}

/// Makes every key of a page logical.
pub(crate) fn logical_page<'a>(
    table: &Table,
    body: &'a [u8],
    splice: &mut Splice<'a>,
) -> Result<(), json::Malformed> {
    let [items, last] = json::attributes_of(body, ["Items", "LastEvaluatedKey"])?;
    if let Some(items) = items.filter(|raw| *raw != b"null") {
        for item in json::elements(items)? {
            strip_object(table, item, splice)?;
        }
    }
    last.map_or(Ok(()), |key| cursor::logical(table, key, splice))
}
