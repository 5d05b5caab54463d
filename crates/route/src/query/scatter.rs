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

/// A Query under way.
pub(crate) struct Scatter {
    gathering: Gathering,
    lanes: Vec<Lane>,
    limit: Option<usize>,
    sizes: Arc<ItemSizes>,
    learned_as: String,
    merge: Merge<Option<Key>, Row>,
    pages: Vec<Bytes>,
    rows: Vec<Row>,
    /// Bytes of evaluated data, estimated so that they are not too many.
    evaluated: f64,
    /// All that was read: bytes and items.
    read: (f64, usize),
    capacity: Option<Capacity>,
    failed: Option<Error>,
}

impl Scatter {
    pub(crate) fn new(
        gathering: Gathering,
        lanes: Vec<Lane>,
        limit: Option<usize>,
        descending: bool,
        sizes: Arc<ItemSizes>,
        learned_as: String,
    ) -> Self {
        let mut merge = Merge::new(lanes.len(), descending);
        for (number, lane) in lanes.iter().enumerate() {
            if lane.closed {
                merge.close(number);
            }
        }
        Scatter {
            gathering,
            lanes,
            limit,
            sizes,
            learned_as,
            merge,
            pages: Vec::new(),
            rows: Vec::new(),
            evaluated: 0.0,
            read: (0.0, 0),
            capacity: None,
            failed: None,
        }
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
        let body = self.gathering.template.body(Ask {
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
            _ => self.sizes.expected(&self.learned_as),
        }
    }

    fn full(&self) -> bool {
        self.limit.is_some_and(|limit| self.rows.len() >= limit) || self.evaluated >= PAGE_BYTES
    }

    fn rows_left(&self) -> usize {
        let by_bytes = self.rows_left_by_bytes();
        self.limit.map_or(by_bytes, |limit| (limit - self.rows.len().min(limit)).min(by_bytes))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the bytes of a page"
    )]
    fn rows_left_by_bytes(&self) -> usize {
        ((PAGE_BYTES - self.evaluated) / self.item_size()).ceil().clamp(1.0, PAGE_BYTES) as usize
    }

    fn finish(&self) -> Result<Bytes, Error> {
        self.sizes.learn(&self.learned_as, self.read.0, self.read.1);
        let limited = self.limit.is_some_and(|limit| self.rows.len() >= limit);
        let more = limited || !self.merge.is_empty();
        self.gathering.shape.answer(&self.pages, &self.rows, more, self.capacity.as_ref())
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.gathering.reader.read(self.pages.len(), &body)?;
        let Some(lane) = self.lanes.get_mut(number) else { return Ok(()) };
        self.read.0 += page.bytes;
        self.read.1 += page.rows.len();
        if let Some(capacity) = &page.capacity {
            self.capacity.get_or_insert_default().add(capacity);
        }
        let more = page.more.map(|(key, start)| {
            lane.start = Some(start);
            key
        });
        let dropped = &lane.dropped;
        let wanted = |(key, _): &(Option<Key>, Row)| !key.as_ref().is_some_and(|key| dropped.contains(key));
        self.merge.read(number, page.rows.into_iter().filter(wanted), more);
        self.pages.push(body);
        Ok(())
    }
}

impl Execution for Scatter {
    fn step(&mut self) -> Step {
        if let Some(error) = self.failed.take() {
            return Step::Done(Err(error));
        }
        while !self.full() {
            match self.merge.advance() {
                Next::Row(_, row) => {
                    self.evaluated += row.size;
                    self.rows.push(row);
                }
                Next::End => break,
                Next::Blocked(_) => {
                    let shares = self.shares();
                    return Step::Call(
                        shares
                            .into_iter()
                            .filter_map(|(lane, share)| Some(self.call(lane, share)?.1))
                            .collect(),
                    );
                }
            }
        }
        Step::Done(self.finish())
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        if let Err(error) = answer.and_then(|body| self.take(id, body)) {
            self.failed.get_or_insert(error);
        }
    }
}
