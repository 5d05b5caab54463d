//! A Query on a global index whose rows are put in order here. Correct first: what a page costs
//! comes second.
//!
//! - **Its sort key has the table's partition key in it.** The index is ordered by physical keys,
//!   the client thinks in logical ones, and a suffix moves a key past its neighbours. So all that
//!   has the same values before it is read for a page, put in logical order, tested, and cut: the
//!   whole collection of the index key, if it is the first sort attribute. With `=` on it, only
//!   that key's shards are read.
//! - **Its partition key is stored in several forms**: while it migrates
//!   ([`MigrationPhase`](heatsink_layout::MigrationPhase)), or where not every item could be
//!   rewritten ([`ValueLayout`](heatsink_layout::ValueLayout)). Items go from one stored value to
//!   the other between two pages, and within one. So equal index sort keys are ordered by primary
//!   key, which does not move; the values of the one form are read, those of the other, and those
//!   of the one again, since gateways that are one step apart write either; and what was seen more
//!   than once counts once, as it was seen last. A page reads, beyond its own rows, all that have
//!   its last index sort key.
//! - **Several attributes of its partition key are stored with shard suffixes.** All combinations
//!   are read and put in order likewise.
//! - **Keys of the table move.** An item has a row for each of its copies, and goes from one
//!   physical key to the other between two pages. Both rows have one place in this order; that of
//!   the new slot is shown, and that of the old one only after a look at both slots
//!   ([`moving`]). What took more than one call, or is a local index, is read again after that
//!   look, for the items that have moved meanwhile.
//!
//! Not here: cursors from before the migration, or of other layouts (`layout_cursor`).

mod moving;
mod order;
mod page;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Slot;

use self::moving::shown;
use self::order::{LogicalOrder, RowKind, of_cursor};
use self::page::SortedPage;
use super::forms::{in_all_forms, of_shard};
use super::page::Collected;
use super::request::Query;
use super::shape::Gathering;
use super::shard_streams::ShardStream;
use crate::capacity::Capacity;
use crate::collection::keys::{physical, stable};
use crate::collection::range::Condition;
use crate::collection::template::Ask;
use crate::context::PlanContext;
use crate::refusal::Unplanned;
use crate::{Answer, Calls, PhysicalCall};

const MIXED: &str = "the index's partition key is being given another number of shards, or was where not every item was in the index: values of before and after are read, \
                         and rows with equal sort keys are ordered by primary key, so each page reads all rows that have its last sort key";

const MOVING: &str = "keys of the table are being moved to other shards: rows with equal sort keys are ordered by primary key, and rows of old slots are \
                      shown after a look whether the item is still there";

const SPREAD_BY_SEVERAL: &str = "several attributes of the index's partition key are stored with shard suffixes: all combinations are read, and rows with \
                                 equal sort keys are ordered by primary key, so each page reads all rows that have its last sort key";

const SORTED_BY_KEY: &str = "the index's sort key is the table's partition key, which is stored with shard suffixes: for every page the whole collection \
                             of the index key is read, sorted by logical keys and cut, so each page costs as much as reading all of it";

const SORTED_BY_KEY_TOO: &str = "the table's partition key, which is stored with shard suffixes, is in the index's sort key: for a page all rows are read that \
                                 share the sort attributes before it (with = on it, all in that key's shards that have the page's last sort key), \
                                 sorted by logical keys and cut";

/// How many rows a page has at most while keys move: each may have to be looked at in both slots.
const MOST_MOVING: usize = 500;

/// What moves while it is read is read again: an item that goes from a key that was not read yet
/// to one that was has a row in none of the calls. It moves once, so it has one in the calls before
/// or in those after.
#[derive(Clone, Copy)]
struct Again {
    stage: usize,
    /// Also where no stream was read by more than one call.
    surely: bool,
}

/// Such a Query under way.
#[derive(Clone)]
pub(crate) struct LocallySorted {
    gathering: Arc<Gathering>,
    order: LogicalOrder,
    streams: Vec<ShardStream>,
    /// The streams by when they are read. A stream is in one of them; what is read twice has two.
    stages: Vec<Vec<usize>>,
    /// The stage in which all is read once more.
    again: Option<Again>,
    /// Why it is put in order here.
    pub(crate) why: &'static str,
    /// How many of the first sort attributes the store orders as the client knows them. What comes
    /// beyond the page's values of them need not be read.
    ordered: usize,
    /// What is tested of the sort attributes, in logical values.
    conditions: Vec<Condition>,
    descending: bool,
    /// How often streams were read.
    rounds: u32,
    page: SortedPage,
    capacity: Option<Capacity>,
}

impl LocallySorted {
    pub(crate) fn new(
        query: &Query<'_>,
        gathering: Gathering,
        context: &PlanContext<'_>,
    ) -> Result<Self, Unplanned> {
        let schema = query.schema;
        let order = LogicalOrder::new(query);
        let (own, moves) = (order.own(), order.moves());
        let equal = own.and_then(|own| match query.conditions.get(own) {
            Some(Condition::Eq(logical)) if stable(context, schema, logical).time().is_none() => {
                Some((own, logical))
            }
            _ => None,
        });
        let ordered = own.filter(|_| equal.is_none()).unwrap_or(query.sort().len());
        let after = query.cursor()?.map(|cursor| of_cursor(query, &cursor, context)).transpose()?;
        let sent = query.conditions.get(..ordered).unwrap_or(&query.conditions);
        let mut whole = ShardStream::new(Slot::default(), query.partition.clone(), sent);
        if let Some(after) = after.as_ref().filter(|_| ordered > 0) {
            // From the cursor's own values on: other rows may have them.
            whole.go_on(&after.0.leading(ordered), true, query.descending);
        }
        let in_shards = match equal {
            None => vec![whole],
            Some((own, logical)) => {
                let layout = stable(context, schema, logical);
                let slots = context.slots(schema, &logical.canonical_bytes(), &layout).into_iter();
                let keys =
                    slots.filter_map(|slot| Some((slot, physical(schema, &layout, logical, slot).ok()?)));
                keys.map(|(slot, key)| of_shard(&whole, own, slot, &key)).collect()
            }
        };
        let (mut streams, mut stages) = in_all_forms(query, &in_shards, context)?;
        let again = moves.then(|| Again {
            stage: stages.len(),
            surely: streams.len() > 1 || query.index.is_some_and(|index| index.local),
        });
        if moves {
            let again = streams.clone();
            stages.push((streams.len()..streams.len() + again.len()).collect());
            streams.extend(again);
        }
        let mixed = schema.is_index_mixed(query.index.ok_or(Unplanned::Invalid)?);
        let why = if own.is_some() && ordered > 0 {
            SORTED_BY_KEY_TOO
        } else if own.is_some() {
            SORTED_BY_KEY
        } else if mixed {
            MIXED
        } else if moves {
            MOVING
        } else {
            SPREAD_BY_SEVERAL
        };
        let limit = match query.limit {
            limit if !moves => limit,
            limit => Some(limit.unwrap_or(MOST_MOVING).min(MOST_MOVING)),
        };
        Ok(LocallySorted {
            gathering: Arc::new(gathering),
            order,
            page: SortedPage::new(query.descending, limit, after, stages.len() > 1),
            streams,
            stages,
            again,
            why,
            ordered,
            conditions: query.conditions.clone(),
            descending: query.descending,
            rounds: 0,
            capacity: None,
        })
    }

    /// Carries the Query out.
    ///
    /// # Errors
    /// The first error of a stream.
    pub(crate) async fn read(mut self, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let mut went_on = false;
        for stage in 0..self.stages.len() {
            if self.again.is_some_and(|again| again.stage == stage && !again.surely && !went_on) {
                continue;
            }
            for number in 0.. {
                let round = self.calls(stage);
                if round.is_empty() {
                    break;
                }
                went_on |= number > 0;
                calls.round(round.into(), &mut |stream, answer| self.take(stream, answer?)).await?;
            }
            self.look(calls).await?;
        }
        let mut page = Collected { capacity: self.capacity, ..self.page.collected(self.order.moves()) };
        let answer = self.gathering.answer(&mut page, None, calls).await?;
        Ok(answer.into())
    }

    /// The calls that read on in a stage.
    fn calls(&mut self, stage: usize) -> Vec<PhysicalCall> {
        let open = |stream: &&usize| self.streams.get(**stream).is_some_and(|stream| !stream.is_closed());
        let stage = self.stages.get(stage).into_iter().flatten().filter(open);
        // One more than fits says whether there is more. Where many rows have the same values, more
        // are asked for from round to round.
        let limit = self.page.limit().filter(|_| self.ordered > 0);
        let limit = limit.map(|limit| limit.saturating_add(1).saturating_mul(1 << self.rounds.min(16)));
        self.rounds += 1;
        stage
            .filter_map(|id| {
                let stream = self.streams.get(*id)?;
                let body = self.gathering.template.body(Ask {
                    partition: &stream.partition,
                    others: &stream.others,
                    conditions: &stream.parts.first()?.conditions,
                    start: stream.start.as_deref(),
                    limit,
                });
                let call = PhysicalCall::only(Operation::Query, body);
                Some(PhysicalCall { id: *id, retry_throttled: true, ..call })
            })
            .collect()
    }

    /// Looks which of the old copies among the rows are items, or were when they were read.
    async fn look(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        let copies = self.page.copies();
        if copies.is_empty() {
            return Ok(());
        }
        let attributes = self.order.index_attributes();
        let shown = shown(self.order.schema(), &copies, &attributes, &mut self.capacity, calls).await?;
        self.page.settle(&shown);
        Ok(())
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.gathering.reader.read(self.page.pages(), &body)?;
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let part = stream.parts.first().cloned().unwrap_or_default();
        let partition = [std::slice::from_ref(&stream.partition), &stream.others].concat();
        let (read_to, last) = page.more.unzip();
        stream.read_to(last);
        if let Some(capacity) = &page.capacity {
            self.capacity.get_or_insert_default().add(capacity);
        }
        for (at, row) in page.rows {
            if part.drops(&at) {
                continue;
            }
            let item = body.get(row.item.clone()).unwrap_or_default();
            let index_key = |order: &LogicalOrder| order.index_key(partition.iter(), &at);
            let Some((place, kind)) = self.order.row(at.clone(), item)? else { continue };
            let kind = match kind {
                RowKind::Old(copy) => RowKind::Old(copy.at(index_key(&self.order))),
                kind => kind,
            };
            if self.page.takes(&place) && place.0.matches(&self.conditions) {
                self.page.add(place, kind, row);
            }
        }
        self.page.cut(body);
        let read_to = read_to.map(|at| self.order.position(at).leading(self.ordered));
        let last = self.page.end().map(|(last, ..)| last.leading(self.ordered));
        let full = match (read_to, last) {
            (Some(read_to), Some(last)) if self.descending => read_to < last,
            (Some(read_to), Some(last)) => read_to > last,
            _ => false,
        };
        // Nothing that the stream still has comes before what the page holds: rows with the same
        // values may.
        if let (true, Some(stream)) = (full, self.streams.get_mut(number)) {
            stream.parts.clear();
        }
        Ok(())
    }
}
