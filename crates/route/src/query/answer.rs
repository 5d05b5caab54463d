//! The client's answer out of merged rows: filtered, projected, counted, its keys logical.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_layout::Table;

use super::page::{Collected, Row};
use crate::capacity::Report;
use crate::collection::keys::Key;
use crate::collection::selection::Selection;
use crate::cursor;
use crate::key::{strip, unmarked};
use crate::splice::Splice;

/// What the logical partition key of a row is.
#[derive(Debug)]
pub(crate) enum Logical {
    /// The same for all rows: this raw value.
    Fixed(Vec<u8>),
    /// To be read out of each row's own.
    Decoded,
}

/// When a cursor says in which shard its item lies, if that is externally assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShardTags {
    /// None is externally assigned.
    Never,
    /// Where several shards hold the last sort key.
    Ties,
    /// On an index.
    Always,
}

/// What the client wants to see of the rows.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) selection: Selection,
    pub(crate) report: Report,
    pub(crate) table: Arc<Table>,
    pub(crate) logical: Logical,
    pub(crate) tags: ShardTags,
    /// The sort key of a cursor that said where its item lies.
    pub(crate) from: Option<Key>,
    /// The attributes of a cursor.
    pub(crate) cursor: Vec<String>,
    /// Where there is no cursor, unless another shard has that sort key too
    /// ([`super::request::Query::end`]).
    pub(crate) end: Option<Key>,
    /// Whether the key that is queried is all of the primary key: behind its item there is no
    /// cursor either.
    pub(crate) unique: bool,
}

impl Shape {
    /// The items of a page with logical keys.
    pub(crate) fn items(&self, page: &Collected) -> Result<Vec<Bytes>, Error> {
        let logical = |row: &Row| {
            let mut item = Vec::new();
            self.logical(&page.pages, row, &mut item).map(|()| Bytes::from(item)).map_err(unreadable)
        };
        page.rows.iter().map(logical).collect()
    }

    /// The answer: the whole page, or only its first `rows`. If more follows it has a cursor, which
    /// stands at the last row. `folded`: the page's items, where they are not what the rows hold.
    pub(crate) fn answer(
        &self,
        page: &Collected,
        rows: Option<usize>,
        folded: Option<&[Bytes]>,
    ) -> Result<Bytes, Error> {
        let all = page.rows.as_slice();
        let shown = rows.and_then(|rows| all.get(..rows)).unwrap_or(all);
        let cut = shown.len() < all.len();
        let more = page.more || cut;
        // Of a cut page it is not known what other shards hold; a tag is right in any case.
        let tagged = match self.tags {
            ShardTags::Never => false,
            ShardTags::Ties => page.tied || cut,
            ShardTags::Always => true,
        };
        let mut listing = self.selection.list();
        listing.reserve(shown.iter().map(|row| row.item.len() + 1).sum());
        let mut scratch = Vec::new();
        for (at, row) in shown.iter().enumerate() {
            let item = match folded.and_then(|folded| folded.get(at)) {
                Some(item) => item,
                None => {
                    scratch.clear();
                    self.logical(&page.pages, row, &mut scratch).map_err(unreadable)?;
                    &*scratch
                }
            };
            listing.add(item).map_err(unreadable)?;
        }
        let end = page.end.as_ref().filter(|_| !cut);
        let last = end.or(shown.last()).filter(|_| more);
        let last = last.map(|last| self.cursor(&page.pages, last, tagged)).transpose().map_err(unreadable)?;
        Ok(Bytes::from(listing.answer(last.as_deref(), page.capacity.as_ref(), self.report)))
    }

    /// Writes a row's item with its partition key made logical into an empty `out`.
    fn logical(&self, pages: &[Bytes], row: &Row, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let page = pages.get(row.page).ok_or(Malformed)?;
        match &self.logical {
            Logical::Fixed(key) if !row.partition.is_empty() => {
                out.extend_from_slice(page.get(row.item.start..row.partition.start).ok_or(Malformed)?);
                out.extend_from_slice(key);
                out.extend_from_slice(page.get(row.partition.end..row.item.end).ok_or(Malformed)?);
            }
            Logical::Fixed(_) => out.extend_from_slice(page.get(row.item.clone()).ok_or(Malformed)?),
            Logical::Decoded => {
                let item = page.slice(row.item.clone());
                let mut splice = Splice::new(&item);
                strip(&self.table, &item, &mut splice)?;
                out.extend_from_slice(&splice.finish(&item));
                return Ok(());
            }
        }
        if let Some(unmarked) = unmarked(&self.table, out)? {
            *out = unmarked;
        }
        Ok(())
    }

    /// The plain logical key at which a page that ended with `row` goes on; if it is to be tagged,
    /// with the row's shard.
    fn cursor(&self, pages: &[Bytes], row: &Row, tagged: bool) -> Result<Bytes, Malformed> {
        let mut item = Vec::new();
        self.logical(pages, row, &mut item)?;
        let found = cursor::of_item(&self.cursor, &item)?;
        if tagged {
            let partition = pages.get(row.page).and_then(|page| page.get(row.partition.clone()));
            if let Some(shard) = cursor::shard(&self.table, partition.ok_or(Malformed)?) {
                let shard = [(cursor::SHARD, Some(shard.as_bytes()))];
                return json::splice_members(&found, &shard).map(Bytes::from);
            }
        }
        Ok(found)
    }
}

fn unreadable(_: Malformed) -> Error {
    Error::internal("The store's answer to Query could not be read")
}
