//! Cursors of tables whose shards others draw: the shard of a cursor's item does not follow from its key, so the cursor says it, in an attribute of
//! its own beside the keys.
//!
//! A Query on the table says it only where several shards hold the last sort key (`query::lanes`). A client that rebuilds cursors from
//! items loses it; its item is then looked for (`drawn::seek`).

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_layout::{Layout, LayoutSource, Placement, Slot, SortKey, Table, Unplaced};

use crate::answer::strip_object;
use crate::key::KeyText;
use crate::passed_on::passed_on;
use crate::splice::Splice;

/// The attribute.
pub(crate) const SHARD: &str = "heatsink:shard";

/// A request without the shard of its `ExclusiveStartKey`, and a source that knows it.
pub(crate) struct Marked<'a> {
    /// The request, as DynamoDB knows it.
    pub(crate) body: Bytes,
    shard: Option<u16>,
    inner: &'a dyn LayoutSource,
}

impl<'a> Marked<'a> {
    /// Of a Query or Scan.
    pub(crate) fn read(body: &Bytes, table: &Table, inner: &'a dyn LayoutSource) -> Self {
        let read = || {
            let start = json::member(body, "ExclusiveStartKey").ok()??;
            let shard = json::member(json::member(start, SHARD).ok()??, "N").ok()??;
            let shard = json::string(shard).ok()?.parse().ok()?;
            let start = json::splice_members(start, &[(SHARD, None)]).ok()?;
            let body = json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok()?;
            Some((Bytes::from(body), shard))
        };
        match table.has_drawn().then(read).flatten() {
            Some((body, shard)) => Marked { body, shard: Some(shard), inner },
            None => Marked { body: body.clone(), shard: None, inner },
        }
    }
}

impl LayoutSource for Marked<'_> {
    passed_on!(inner: note);

    fn drawn_slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        match self.shard.filter(|shard| *shard < layout.shards) {
            // A request names one item at most, where it goes on.
            Some(shard) => Ok(Slot { shard, ..layout.home(sort)? }),
            None => self.inner.drawn_slot(table, layout, key, sort),
        }
    }

    fn found(&self, table: &Table, key: &[u8], sort: Option<SortKey<'_>>) -> Option<Slot> {
        let Placement::Stable(layout) = self.placement(table, key);
        match self.shard.filter(|shard| layout.is_drawn() && *shard < layout.shards) {
            Some(shard) => Some(Slot { shard, ..layout.home(sort).ok()? }),
            None => self.inner.found(table, key, sort),
        }
    }
}

/// Makes a raw `LastEvaluatedKey` of the store logical.
pub(crate) fn logical(table: &Table, key: &[u8], splice: &mut Splice<'_>) -> Result<(), Malformed> {
    if key == b"null" {
        return Ok(());
    }
    strip_object(table, key, splice)?;
    if table.has_drawn()
        && let Some(partition) = json::member(key, &table.key.partition.name)?
        && let Some(shard) = shard(table, partition)
    {
        splice.insert(key, 1, format!(",\"{SHARD}\":{shard}"));
    }
    Ok(())
}

/// The value of the attribute for a raw physical partition key whose shard was drawn.
pub(crate) fn shard(table: &Table, partition: &[u8]) -> Option<String> {
    let key = KeyText::read(partition, table.key.partition.key_type)?;
    Some(format!("{{\"N\":\"{}\"}}", table.drawn(&key.bytes)?.shard))
}
