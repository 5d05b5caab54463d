//! A page that one range fills: the store's own answer, with its keys made logical. Nothing is
//! merged, so no item is read but for its key.

use bytes::Bytes;
use heatsink_dynamo::json::write_string;
use heatsink_dynamo::{Error, Operation, json};
use memchr::memmem;

use super::Scatter;
use crate::Calls;
use crate::answer::{logical_page, unreadable};
use crate::collection::selection::Shown;
use crate::cursor;
use crate::query::answer::{Logical, ShardTags};
use crate::query::source::Source;
use crate::splice::Splice;

impl Scatter {
    /// Begins a Query that may be answered so; the answer, if the first range fills the page. If it
    /// does not, its rows are the first of the merge.
    ///
    /// # Errors
    /// The first error of the range, unless it is left out.
    pub(super) async fn one_page(&mut self, calls: &mut dyn Calls) -> Result<Option<Bytes>, Error> {
        let Some(limit) = self.wanted.limit.filter(|_| self.is_plain()) else { return Ok(None) };
        let round = self.next_round().round(0);
        let [call] = &*round.calls else { return Ok(None) };
        if call.target.as_ref().is_none_or(|target| target.items != limit) {
            return Ok(None);
        }
        self.opening.note_sent(&round.calls, &self.merged);
        let mut came = None;
        calls
            .round(round, &mut |stream, answer| {
                came = Some((stream, answer));
                Ok(())
            })
            .await?;
        let Some((stream, answer)) = came else { return Ok(None) };
        if let Ok(body) = &answer
            && let Some(page) = self.page(body).map_err(|_| unreadable(Operation::Query))?
        {
            return Ok(Some(page));
        }
        self.take_answer(stream, answer)?;
        Ok(None)
    }

    /// Whether the store shows of a page what the client wants to see: whole items, all of them,
    /// and a cursor wherever a page may end.
    fn is_plain(&self) -> bool {
        let Source::Ranges(ranges) = &self.wanted.source else { return false };
        let gathering = &self.wanted.gathering;
        let shape = &gathering.shape;
        ranges.streams.first().is_some_and(|(stream, _)| stream.shows_its_part())
            && gathering.fold.is_none()
            && shape.selection.filter.is_none()
            && shape.selection.seen.is_none()
            && matches!(shape.selection.shown, Shown::Whole)
            && shape.tags == ShardTags::Never
            && shape.end.is_none()
            && self.wanted.passed.is_none()
    }

    /// The client's page, if that one has more behind it: else other ranges may follow.
    fn page(&self, body: &Bytes) -> Result<Option<Bytes>, json::Malformed> {
        let table = &self.wanted.gathering.shape.table;
        let [items, last, count] = json::attributes_of(body, ["Items", "LastEvaluatedKey", "Count"])?;
        let Some(last) = last.filter(|last| *last != b"null") else { return Ok(None) };
        let mut splice = Splice::new(body);
        match items.zip(count).and_then(|(items, count)| self.own_keys(items, count)) {
            Some(keys) => {
                keys.physical.iter().for_each(|key| splice.replace(key, keys.logical.clone()));
                cursor::logical(table, last, &mut splice)?;
            }
            None => logical_page(table, body, &mut splice)?,
        }
        Ok(Some(splice.finish(body)))
    }

    /// The keys of the items, found by their text: they are all the same. `None` where they are not
    /// found once for each item, so that other attributes may have the same text.
    fn own_keys<'a>(&self, items: &'a [u8], count: &[u8]) -> Option<OwnKeys<'a>> {
        let table = &self.wanted.gathering.shape.table;
        let Logical::Fixed(logical) = &self.wanted.gathering.shape.logical else { return None };
        if table.key_layouts().any_changes() {
            return None;
        }
        let mut text = Vec::new();
        write_string(&mut text, &table.key.partition.name);
        text.push(b':');
        let before = text.len();
        self.merged.streams.first()?.partition.write(&mut text);
        let found = memmem::find_iter(items, &text);
        let key = |at: usize| items.get(at + before..at + text.len());
        let physical: Vec<&[u8]> = found.filter_map(key).collect();
        let is_all = physical.len().to_string().as_bytes() == count;
        is_all.then(|| OwnKeys { physical, logical: logical.clone() })
    }
}

/// The keys of a page's items, raw, and the one that takes the place of each.
struct OwnKeys<'a> {
    physical: Vec<&'a [u8]>,
    logical: Vec<u8>,
}
