//! The execution of a Query over several shards: rounds of physical Queries, merged until the page is full.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};

use super::Key;
use super::lanes::Lane;
use super::merge::{Merge, Next, Want};
use super::page::{Capacity, Row, count};
use super::shape::Gathering;
use super::share::{ItemSizes, PAGE_BYTES, likely, mean};
use super::template::Ask;
use crate::{Execution, PhysicalCall, Step};

/// What a gathered Query asks for: enough to read it from its start, as often as needed.
pub(crate) struct Wanted {
    pub(crate) gathering: Gathering,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) limit: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) sizes: Arc<ItemSizes>,
    /// The name under which item sizes are learned.
    pub(crate) learned_as: String,
}

/// A Query under way.
pub(crate) struct Scatter {
    wanted: Arc<Wanted>,
    lanes: Vec<Lane>,
    merge: Merge<Option<Key>, Row>,
    collected: Collected,
    /// Bytes of evaluated data, estimated so that they are not too many.
    evaluated: f64,
    /// All that was read: bytes and items.
    read: (f64, usize),
    failed: Option<Error>,
}

/// A page gathered from all shards.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) pages: Vec<Bytes>,
    pub(crate) rows: Vec<Row>,
    /// Whether more follows.
    pub(crate) more: bool,
    pub(crate) capacity: Option<Capacity>,
}

impl Collected {
    /// The bytes of a row's item, as the store gave them.
    pub(crate) fn item(&self, row: usize) -> Option<&[u8]> {
        let row = self.rows.get(row)?;
        self.pages.get(row.page)?.get(row.item.clone())
    }
}

/// What a gathered Query does next.
pub(crate) enum Progress {
    /// These calls.
    Calls(Vec<PhysicalCall>),
    /// Nothing: its page is full, or at the end.
    Collected(Collected),
}

impl Scatter {
    pub(crate) fn new(wanted: Arc<Wanted>) -> Self {
        let lanes = wanted.lanes.clone();
        let mut merge = Merge::new(lanes.len(), wanted.descending);
        for (number, lane) in lanes.iter().enumerate() {
            if lane.closed {
                merge.close(number);
            }
        }
        Scatter {
            wanted,
            lanes,
            merge,
            collected: Collected::default(),
            evaluated: 0.0,
            read: (0.0, 0),
            failed: None,
        }
    }

    /// Goes on.
    ///
    /// # Errors
    /// The first error of a shard.
    pub(crate) fn advance(&mut self) -> Result<Progress, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while !self.full() {
            match self.merge.advance() {
                Next::Row(_, row) => {
                    self.evaluated += row.size;
                    self.collected.rows.push(row);
                }
                Next::End => break,
                Next::Blocked(_) => {
                    let shares = self.shares().into_iter();
                    let calls = shares.filter_map(|(lane, share)| Some(self.call(lane, share)?.1));
                    return Ok(Progress::Calls(calls.collect()));
                }
            }
        }
        self.wanted.sizes.learn(&self.wanted.learned_as, self.read.0, self.read.1);
        let limited = self.wanted.limit.is_some_and(|limit| self.collected.rows.len() >= limit);
        self.collected.more = limited || !self.merge.is_empty();
        Ok(Progress::Collected(std::mem::take(&mut self.collected)))
    }

    /// The lanes to ask next, and how many items of each.
    pub(crate) fn shares(&self) -> Vec<(usize, usize)> {
        let by_bytes = self.rows_left_by_bytes();
        let left = self.rows_left();
        let open = self.merge.open();
        let share = |want: Want| {
            let share = match want.reads {
                0 if left == by_bytes => mean(want.rows, open),
                0 => likely(want.rows, open),
                // Where one shard holds most of what is wanted, its share doubles from round to round.
                reads => likely(want.rows, open).saturating_mul(1 << (reads - 1).min(16)).min(want.rows),
            };
            (want.lane, share)
        };
        self.merge.wanted(left).into_iter().map(share).collect()
    }

    /// The physical call that asks a lane for `share` items.
    pub(crate) fn call(&self, lane: usize, share: usize) -> Option<(&Lane, PhysicalCall)> {
        let asked = self.lanes.get(lane)?;
        let body = self.wanted.gathering.template.body(Ask {
            partition: &asked.partition,
            condition: asked.condition.as_ref(),
            start: asked.start.as_deref(),
            limit: Some(share),
        });
        Some((asked, PhysicalCall { id: lane, operation: Operation::Query, body, retry_throttled: true }))
    }

    /// What an item weighs, as far as is known.
    pub(crate) fn item_size(&self) -> f64 {
        match self.read {
            (bytes, items) if items > 0 && bytes > 0.0 => (bytes / count(items)).max(1.0),
            _ => self.wanted.sizes.expected(&self.wanted.learned_as),
        }
    }

    fn full(&self) -> bool {
        self.wanted.limit.is_some_and(|limit| self.collected.rows.len() >= limit)
            || self.evaluated >= PAGE_BYTES
    }

    fn rows_left(&self) -> usize {
        let by_bytes = self.rows_left_by_bytes();
        self.wanted
            .limit
            .map_or(by_bytes, |limit| (limit - self.collected.rows.len().min(limit)).min(by_bytes))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the bytes of a page"
    )]
    fn rows_left_by_bytes(&self) -> usize {
        ((PAGE_BYTES - self.evaluated) / self.item_size()).ceil().clamp(1.0, PAGE_BYTES) as usize
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.wanted.gathering.reader.read(self.collected.pages.len(), &body)?;
        let Some(lane) = self.lanes.get_mut(number) else { return Ok(()) };
        self.read.0 += page.bytes;
        self.read.1 += page.rows.len();
        if let Some(capacity) = &page.capacity {
            self.collected.capacity.get_or_insert_default().add(capacity);
        }
        let more = page.more.map(|(key, start)| {
            lane.start = Some(start);
            key
        });
        let dropped = &lane.dropped;
        let wanted = |(key, _): &(Option<Key>, Row)| !key.as_ref().is_some_and(|key| dropped.contains(key));
        self.merge.read(number, page.rows.into_iter().filter(wanted), more);
        self.collected.pages.push(body);
        Ok(())
    }
}

impl Execution for Scatter {
    fn step(&mut self) -> Step {
        match self.advance() {
            Ok(Progress::Calls(calls)) => Step::Call(calls),
            Ok(Progress::Collected(page)) => Step::Done(self.wanted.gathering.shape.answer(&page, None)),
            Err(error) => Step::Done(Err(error)),
        }
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        if let Err(error) = answer.and_then(|body| self.take(id, body)) {
            self.failed.get_or_insert(error);
        }
    }
}
