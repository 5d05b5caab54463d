//! A Scan whose items are tested here, on logical keys and whole items: fetch, fold, filter,
//! project, cut.
//!
//! Of a table with counters it leaves out all fragments but the base ones, and reads on where it
//! finds nothing else. Where a table is scanned in the place of an index it leaves out what the
//! index does not hold. While keys on record move, and after they have, it leaves out their items,
//! and reads them at the end (`apart`).

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{AttributeDefinition, Error, IndexKeySchema, Operation};
use heatsink_layout::Table;

use super::apart::{At, KeysApart};
use crate::answer::{strip_object, unreadable};
use crate::capacity::{Capacity, Report};
use crate::collection::page;
use crate::collection::selection::Selection;
use crate::counter::pages::Fold;
use crate::cursor;
use crate::dry_run::explained;
use crate::key::KeyText;
use crate::layout_cursor::mark::Mark;
use crate::plan::{Explanation, Kind, Planned};
use crate::request::set_members;
use crate::splice::Splice;
use crate::{Answer, Calls, PhysicalCall};

/// Such a Scan.
pub(super) struct Evaluated {
    /// The first physical call.
    pub(super) body: Bytes,
    /// What its cursor says.
    pub(super) mark: Mark,
    /// The keys that it reads by themselves, if there are any.
    pub(super) apart: Option<KeysApart>,
    /// Where it stands among them; then the store's items are through.
    pub(super) at: Option<At>,
    pub(super) table: Arc<Table>,
    pub(super) selection: Selection,
    pub(super) limit: Option<usize>,
    pub(super) fold: Option<Fold>,
    /// The attributes of a cursor.
    pub(super) cursor: Vec<String>,
    /// The key of the index in whose place the table is scanned.
    pub(super) within: Option<IndexKeySchema>,
    pub(super) why: String,
}

/// What was read of the page.
#[derive(Default)]
struct Page {
    /// Items as they are stored; of counters the base fragments.
    items: Vec<Bytes>,
    /// The raw logical key at which the next page begins.
    last: Option<Bytes>,
    capacity: Option<Capacity>,
}

impl Planned for Evaluated {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let Page { items, mut last, mut capacity } = match &self.at {
                Some(_) => Page::default(),
                None => self.page(calls).await?,
            };
            let broken = |Malformed| unreadable(Operation::Scan);
            let logical = |item: &Bytes| {
                let mut splice = Splice::new(item);
                strip_object(&self.table, item, &mut splice).map(|()| splice.finish(item))
            };
            let mut items = items.iter().map(logical).collect::<Result<Vec<_>, _>>().map_err(broken)?;
            if let Some(fold) = &self.fold {
                let (whole, more) = fold.whole(items, calls).await?;
                items = whole;
                if let Some(more) = more {
                    capacity.get_or_insert_default().add(&more);
                }
            }
            if let (Some(apart), None) = (&self.apart, &last) {
                let room = self.limit.map(|limit| limit.saturating_sub(items.len()));
                let sizes = items.iter().map(|item| scan_item(item, []).map(|found| found.bytes));
                let bytes = sizes.sum::<Result<usize, Malformed>>().map_err(broken)?;
                let read = apart.read(&self.mark, self.at.clone(), room, bytes, calls).await?;
                items.extend(read.items);
                last = read.last;
                if let Some(more) = read.capacity {
                    capacity.get_or_insert_default().add(&more);
                }
            }
            let mut listing = self.selection.list();
            for item in &items {
                listing.add(item).map_err(broken)?;
            }
            // The store was asked for as much of the capacity as the client asks for: all that it
            // told is shown.
            let answer = listing.answer(last.as_deref(), capacity.as_ref(), Report::Indexes);
            Ok(Bytes::from(answer).into())
        })
    }

    fn explain(&self) -> Explanation {
        Explanation {
            plan: self.kind(),
            why: self.why.clone(),
            calls: explained(async |calls| match (&self.apart, &self.at) {
                (Some(apart), Some(_)) => {
                    drop(apart.read(&self.mark, self.at.clone(), self.limit, 0, calls).await);
                }
                _ => drop(self.page(calls).await),
            }),
        }
    }
}

impl Evaluated {
    /// Whether it may take more than one physical call.
    pub(super) fn kind(&self) -> Kind {
        let reads_on = self.within.is_some() || self.table.has_counters();
        if self.fold.is_some() || self.apart.is_some() || reads_on { Kind::Scatter } else { Kind::Single }
    }

    /// Reads on until there is something to show.
    async fn page(&self, calls: &mut dyn Calls) -> Result<Page, Error> {
        let mut page = Page::default();
        let (mut body, mut rounds) = (self.body.clone(), 0_u32);
        loop {
            // Where most fragments are left out, more are asked for from round to round.
            let left = self.limit.map(|limit| limit - page.items.len().min(limit));
            let asked = left.map(|left| left.saturating_mul(1 << rounds.min(12)).min(100_000));
            if let Some(asked) = asked.filter(|_| rounds > 0) {
                body = set_members(&body, &vec![("Limit", Some(asked.to_string().into_bytes()))])?;
            }
            let call = PhysicalCall::only(Operation::Scan, body);
            let answer = calls.one(PhysicalCall { retry_throttled: rounds > 0, ..call }).await?;
            match self.take(&mut page, &answer, asked)? {
                Some(next) => body = next,
                None => return Ok(page),
            }
            rounds += 1;
        }
    }

    /// Takes the answer to a request for so many rows. Returns the next one, if the page needs it.
    fn take(&self, page: &mut Page, body: &Bytes, asked: Option<usize>) -> Result<Option<Bytes>, Error> {
        let broken = |Malformed| unreadable(Operation::Scan);
        let partition = &self.table.key.partition;
        let read = page::Page::read(body, [&partition.name]).map_err(broken)?.whole()?;
        if let Some(capacity) = read.capacity() {
            page.capacity.get_or_insert_default().add(&capacity);
        }
        let (count, mut left_out, mut last_is_part) = (read.items.len(), 0, false);
        for item in &read.items {
            let [key] = item.members;
            let key = key.and_then(|key| KeyText::read(key, partition.key_type));
            last_is_part = key.as_ref().is_some_and(|key| self.table.is_part(&key.bytes));
            if last_is_part || key.is_some_and(|key| self.is_apart(&key.bytes)) || !self.holds(item.raw) {
                left_out += 1;
            } else {
                page.items.push(body.slice_ref(item.raw));
            }
        }
        let cut = self.limit.is_some_and(|limit| page.items.len() > limit);
        let filled = self.limit.is_some_and(|limit| page.items.len() >= limit);
        // A physical page ends at its limit, or at 1 MB.
        let full = asked.is_none_or(|asked| count < asked);
        page.items.truncate(self.limit.unwrap_or(usize::MAX));
        // A page that holds nothing may end at a fragment, where no client's page can begin.
        let nothing = count == 0 && self.table.has_counters();
        // A fragment is no client's item, and no page may begin behind it. What an index does not
        // hold, or is read apart, is an item like any other.
        let may_be_empty = (self.within.is_some() || self.apart.is_some()) && !last_is_part;
        let ends = filled || left_out == 0 && !nothing || full && (may_be_empty || !page.items.is_empty());
        if let (Some(last), false) = (read.last, ends) {
            let next = json::splice_members(&self.body, &[("ExclusiveStartKey", Some(last))]);
            return next.map(|next| Some(Bytes::from(next))).map_err(broken);
        }
        page.last = match read.last {
            Some(last) if !cut && !last_is_part => Some(self.logical(&body.slice_ref(last)).map_err(broken)?),
            None if !cut => None,
            _ => {
                let last = page.items.last().map(|item| cursor::of_item(&self.cursor, item));
                let logical =
                    last.transpose().and_then(|last| last.map(|last| self.logical(&last)).transpose());
                logical.map_err(broken)?
            }
        };
        Ok(None)
    }

    /// Whether an item is in the index that is asked for.
    fn holds(&self, item: &[u8]) -> bool {
        let has = |attribute: &AttributeDefinition| {
            let value = json::member(item, &attribute.name).ok().flatten();
            value.and_then(|value| KeyText::read(value, attribute.key_type)).is_some()
        };
        self.within.as_ref().is_none_or(|key| key.attributes().all().all(has))
    }

    /// Whether a stored item with that physical key is left out, since its key is read by itself.
    fn is_apart(&self, physical: &[u8]) -> bool {
        let keys = self.table.key_layouts();
        self.apart.is_some() && keys.is_apart(self.table.logical(physical), self.mark.since)
    }

    /// A cursor of the store as the client gets it.
    fn logical(&self, last: &Bytes) -> Result<Bytes, Malformed> {
        let mut splice = Splice::new(last);
        self.mark.logical(&self.table, last, &mut splice)?;
        Ok(splice.finish(last))
    }
}
