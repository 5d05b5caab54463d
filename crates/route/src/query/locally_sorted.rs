//! A Query on a global index whose rows are put in order here. Correct first: what a page costs comes second.
//!
//! - **Its sort key is the table's partition key.** The index is ordered by physical keys, the client thinks in logical ones, and a
//!   suffix moves a key past its neighbours. So the whole collection of the index key is read for every page, put in logical order,
//!   tested, and cut; with `=` on the sort key only that key's shards.
//! - **Its partition key migrates** ([`MigrationPhase`](heatsink_layout::MigrationPhase)): items go from one stored value to the other between two pages, and
//!   within one. So equal index sort keys are ordered by primary key, which does not move; the values that items leave are read before
//!   those that they come to; and what was seen under both counts once. A page reads, beyond its own rows, all that have its last
//!   index sort key.
//!
//! Not here: cursors from before the migration, or of other layouts (`layout_cursor`).

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{Error, KeyValue, Operation, json};
use heatsink_layout::{IndexKey, MigrationPhase, Slot, Table};

use super::index::values;
use super::page::{Collected, Row};
use super::request::Query;
use super::shape::Gathering;
use super::shard_streams::ShardStream;
use super::share::PAGE_BYTES;
use crate::capacity::Capacity;
use crate::collection::keys::physical;
use crate::collection::keys::{Key, slot_of, stable};
use crate::collection::range::{Condition, Range};
use crate::collection::template::Ask;
use crate::context::PlanContext;
use crate::cursor::Cursor;
use crate::refusal::Unplanned;
use crate::{Answer, Calls, PhysicalCall};

/// The order of rows: the index's sort key, unless that is the table's partition key; the logical partition key; the table's sort key; and where
/// shards are externally assigned, so that several items can have one key, the slot.
type Place = (Option<Key>, Key, Option<Key>, Slot);

/// Such a Query under way.
#[derive(Clone)]
pub(crate) struct LocallySorted {
    gathering: Arc<Gathering>,
    schema: Arc<Table>,
    streams: Vec<ShardStream>,
    /// The streams by when they are read, those first that items may leave meanwhile. A stream is in one of them.
    stages: Vec<Vec<usize>>,
    /// The key that migrates. Then the store's order is that of places but for ties, so that a stream need not be read to its end.
    migrating: bool,
    /// Of logical partition keys.
    range: Range,
    after: Option<Place>,
    descending: bool,
    limit: Option<usize>,
    /// What the page will hold, as far as was read; in no order until cut.
    rows: Vec<(Place, Row)>,
    pages: Vec<Bytes>,
    /// Whether rows were left out because the page is full.
    more: bool,
    capacity: Option<Capacity>,
}

impl LocallySorted {
    pub(crate) fn new(
        query: &Query<'_>,
        gathering: Gathering,
        context: &PlanContext<'_>,
    ) -> Result<Self, Unplanned> {
        let partitions = match query.schema.index_key(&query.key().partition.name) {
            Some(key) => values(key, &query.partition),
            None => vec![query.partition.clone()],
        };
        let in_each = |slot, condition: Option<Condition>| {
            let streams = partitions.iter().map(move |partition| stream(slot, partition, condition.clone()));
            streams.collect::<Vec<_>>()
        };
        let streams = match &query.condition {
            Some(Condition::Eq(logical)) if stable(context, query.schema, logical).time().is_none() => {
                let layout = stable(context, query.schema, logical);
                let keys = (0..layout.shards).filter_map(|shard| {
                    let slot = Slot::shard(shard);
                    Some((slot, physical(query.schema, &layout, logical, slot).ok()?))
                });
                keys.flat_map(|(slot, key)| in_each(slot, Some(Condition::Eq(key)))).collect()
            }
            _ => in_each(Slot::default(), None),
        };
        let range = Range::of(query.condition.as_ref());
        let after =
            query.cursor()?.map(|cursor| place(query, &cursor, false, &range, context)).transpose()?;
        let phase = query.schema.index_key(&query.key().partition.name).and_then(IndexKey::migration);
        let values = partitions.len();
        let (plain, spread) = (0..streams.len()).partition(|stream| stream % values == 0);
        let stages = in_stages(phase, plain, spread);
        Ok(LocallySorted { stages, range, after, ..LocallySorted::of(query, gathering, streams) })
    }

    /// Of an index whose partition key `key` migrates.
    pub(crate) fn migrating(
        query: &Query<'_>,
        key: &IndexKey,
        gathering: Gathering,
        context: &PlanContext<'_>,
    ) -> Result<Self, Unplanned> {
        let all = Range::of(None);
        let after = query.cursor()?.map(|cursor| place(query, &cursor, true, &all, context)).transpose()?;
        let range = Range::of(query.condition.as_ref());
        let at = after.as_ref().and_then(|after| after.0.clone());
        if at.as_ref().is_some_and(|at| !range.contains(at)) {
            return Err(Unplanned::Invalid);
        }
        // From the cursor's own index sort key on: others may have it.
        let (condition, dropped) = match at {
            None => (query.condition.clone(), Vec::new()),
            Some(at) => {
                let rest = range.from(Bound::Included(at), query.descending);
                let expressed = rest.express().ok_or(Unplanned::Invalid)?;
                (expressed.condition, expressed.dropped)
            }
        };
        let mut streams = Vec::new();
        for (shard, partition) in (0..).zip(values(key, &query.partition)) {
            // What is too long for a shard was refused to every write.
            if shard == 0 || partition.check(KeyPart::Partition, &key.attribute().name).is_ok() {
                let stream = stream(Slot::shard(shard), &partition, condition.clone());
                streams.push(ShardStream { dropped: dropped.clone(), ..stream });
            }
        }
        let stages = in_stages(key.migration(), vec![0], (1..streams.len()).collect());
        Ok(LocallySorted { stages, migrating: true, after, ..LocallySorted::of(query, gathering, streams) })
    }

    fn of(query: &Query<'_>, gathering: Gathering, streams: Vec<ShardStream>) -> Self {
        LocallySorted {
            gathering: Arc::new(gathering),
            schema: Arc::clone(query.schema),
            streams,
            stages: Vec::new(),
            migrating: false,
            range: Range::of(None),
            after: None,
            descending: query.descending,
            limit: query.limit,
            rows: Vec::new(),
            pages: Vec::new(),
            more: false,
            capacity: None,
        }
    }

    /// Why it is put in order here.
    pub(crate) fn why(&self) -> &'static str {
        if self.migrating {
            "the index's partition key is being spread, or brought back: plain and spread values are both read, and rows with equal sort keys \
             are ordered by primary key, so each page reads all rows that have its last sort key"
        } else {
            "the index's sort key is the table's partition key, which is stored with shard suffixes: for every page the whole collection of \
             the index key (with = on the sort key, only that key's shards) is read, sorted by logical keys and cut, so each page costs as \
             much as reading all of it"
        }
    }

    /// The calls that read on.
    fn calls(&self) -> Vec<PhysicalCall> {
        let open = |stage: &&Vec<usize>| {
            stage.iter().any(|stream| self.streams.get(*stream).is_some_and(|stream| !stream.closed))
        };
        let stage = self.stages.iter().find(open).into_iter().flatten();
        let open =
            stage.filter_map(|id| Some((*id, self.streams.get(*id)?))).filter(|(_, stream)| !stream.closed);
        // One more than fits says whether there is more.
        let limit = self.limit.filter(|_| self.migrating).map(|limit| limit.saturating_add(1));
        open.map(|(id, stream)| {
            let body = self.gathering.template.body(Ask {
                partition: &stream.partition,
                condition: stream.condition.as_ref(),
                start: stream.start.as_deref(),
                limit,
            });
            PhysicalCall { id, retry_throttled: true, ..PhysicalCall::only(Operation::Query, body) }
        })
        .collect()
    }

    /// Carries the Query out.
    ///
    /// # Errors
    /// The first error of a stream.
    pub(crate) async fn read(mut self, calls: &mut dyn Calls) -> Result<Answer, Error> {
        loop {
            let round = self.calls();
            if round.is_empty() {
                break;
            }
            calls.round(round.into(), &mut |stream, answer| self.take(stream, answer?)).await?;
        }
        let rows: Vec<Row> = self.rows.drain(..).map(|(_, row)| row).collect();
        let more = self.more || self.limit.is_some_and(|limit| rows.len() >= limit);
        let (pages, capacity) = (std::mem::take(&mut self.pages), self.capacity.take());
        let mut page = Collected { pages, rows, more, capacity, tied: false };
        let answer = self.gathering.answer(&mut page, None, calls).await?;
        Ok(answer.into())
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.gathering.reader.read(self.pages.len(), &body)?;
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        stream.closed = page.more.is_none();
        let read_to = page.more.as_ref().and_then(|(at, _)| at.clone());
        stream.start = page.more.map(|(_, start)| start);
        let dropped = stream.dropped.clone();
        if let Some(capacity) = &page.capacity {
            self.capacity.get_or_insert_default().add(capacity);
        }
        for (sort, row) in page.rows {
            let (partition, table_sort, slot) =
                self.primary_of(body.get(row.item.clone()).unwrap_or_default())?;
            let place = (sort.filter(|_| self.migrating), partition, table_sort, slot);
            let behind = self
                .after
                .as_ref()
                .is_none_or(|after| if self.descending { place < *after } else { place > *after });
            let dropped = place.0.as_ref().is_some_and(|at| dropped.contains(at));
            if behind && !dropped && self.range.contains(&place.1) {
                self.rows.push((place, row));
            }
        }
        self.pages.push(body);
        self.cut();
        // Nothing that the stream still has comes before what the page holds: rows with the same index sort key may.
        if let (true, true, Some(((last, ..), _))) = (self.migrating, self.more, self.rows.last()) {
            let beyond = if self.descending { read_to < *last } else { read_to > *last };
            if beyond && let Some(stream) = self.streams.get_mut(number) {
                stream.closed = true;
            }
        }
        Ok(())
    }

    /// The logical primary key of a stored item, and its slot if that is externally assigned.
    fn primary_of(&self, item: &[u8]) -> Result<(Key, Option<Key>, Slot), Error> {
        let unreadable =
            || Error::internal("The store's answer to Query has an item without the table's key");
        let key = &self.schema.key;
        let sort = key.sort.as_ref().unwrap_or(&key.partition);
        let [partition, sort_value] =
            json::attributes_of(item, [&key.partition.name, &sort.name]).map_err(|_| unreadable())?;
        let stored = KeyValue::read(partition.ok_or_else(unreadable)?, &key.partition)?.into_owned();
        let slot = self.schema.assigned_slot(&stored.canonical_bytes()).unwrap_or_default();
        let logical = match stored {
            Key::S(text) => {
                let logical = self.schema.logical(text.as_bytes());
                Key::S(std::str::from_utf8(logical).unwrap_or(&text).to_owned().into())
            }
            Key::B(bytes) => Key::B(self.schema.logical(&bytes).to_vec().into()),
            Key::N(number) => Key::N(number),
        };
        let sort = match &key.sort {
            None => None,
            Some(sort) => Some(KeyValue::read(sort_value.ok_or_else(unreadable)?, sort)?.into_owned()),
        };
        Ok((logical, sort, slot))
    }

    /// Keeps what the page can hold, in order, and forgets the rest.
    fn cut(&mut self) {
        let descending = self.descending;
        self.rows.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
        self.rows.dedup_by(|(a, _), (b, _)| a == b);
        let mut bytes = 0.0;
        let fits = self.rows.iter().take(self.limit.unwrap_or(usize::MAX)).take_while(|(_, row)| {
            let room = bytes < PAGE_BYTES;
            bytes += row.size;
            room
        });
        let fits = fits.count();
        if fits < self.rows.len() {
            self.more = true;
        }
        self.rows.truncate(fits);
        let mut used = vec![false; self.pages.len()];
        for (_, row) in &self.rows {
            if let Some(used) = used.get_mut(row.page) {
                *used = true;
            }
        }
        for (page, used) in self.pages.iter_mut().zip(used) {
            if !used {
                *page = Bytes::new();
            }
        }
    }
}

fn stream(slot: Slot, partition: &Key, condition: Option<Condition>) -> ShardStream {
    ShardStream {
        slot,
        partition: partition.clone(),
        condition,
        dropped: Vec::new(),
        start: None,
        closed: false,
    }
}

/// The streams of the plain value and those of spread ones, in the order in which they are read.
fn in_stages(phase: Option<MigrationPhase>, plain: Vec<usize>, spread: Vec<usize>) -> Vec<Vec<usize>> {
    match phase {
        Some(phase) if phase.spreads => vec![plain, spread],
        Some(_) => vec![spread, plain],
        None => vec![[plain, spread].concat()],
    }
}

/// The place of a cursor, whose logical partition key is in `range`.
fn place(
    query: &Query<'_>,
    cursor: &Cursor<'_>,
    in_order: bool,
    range: &Range,
    context: &PlanContext<'_>,
) -> Result<Place, Unplanned> {
    let find = |name: &str| query.value_of(cursor, name).cloned();
    let key = &query.schema.key;
    let partition = find(&key.partition.name).filter(|partition| range.contains(partition));
    let partition = partition.ok_or(Unplanned::Invalid)?;
    if find(&query.key().partition.name).as_ref() != Some(&query.partition) {
        return Err(Unplanned::Invalid);
    }
    let at = query.key().sort.as_ref().filter(|_| in_order).and_then(|sort| find(&sort.name));
    let sort = key.sort.as_ref().and_then(|sort| find(&sort.name));
    let layout = stable(context, query.schema, &partition);
    let slot = match layout.is_externally_assigned() {
        true => slot_of(context, query.schema, &layout, &partition, sort.as_ref())?,
        false => Slot::default(),
    };
    Ok((at, partition, sort, slot))
}
