//! A Query on a global index whose rows are put in order here. Correct first: what a page costs comes second.
//!
//! - **Its sort key has the table's partition key in it.** The index is ordered by physical keys, the client thinks in logical ones, and a
//!   suffix moves a key past its neighbours. So all that has the same values before it is read for a page, put in logical order, tested, and
//!   cut: the whole collection of the index key, if it is the first sort attribute. With `=` on it, only that key's shards are read.
//! - **Its partition key is stored in several forms**: while it migrates ([`MigrationPhase`](heatsink_layout::MigrationPhase)), or where not every item could be
//!   rewritten ([`ValueLayout`](heatsink_layout::ValueLayout)). Items go from one stored value to the other between two pages, and
//!   within one. So equal index sort keys are ordered by primary key, which does not move; the values of the one form are read, those of the other, and
//!   those of the one again, since gateways that are one step apart write either; and what was seen more than once counts once, as it was seen last.
//!   A page reads, beyond its own rows, all that have its last index sort key.
//! - **Several attributes of its partition key are stored with shard suffixes.** All combinations are read and put in order likewise.
//! - **Keys of the table move.** An item has a row for each of its copies, and goes from one physical key to the other between two pages. Both rows have one
//!   place in this order; that of the new slot is shown, and that of the old one only after a look at both slots (`moving::index`). A local index is read
//!   again after that look, consistently, for the items that have moved meanwhile.
//!
//! Not here: cursors from before the migration, or of other layouts (`layout_cursor`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, KeyValue, Operation, json};
use heatsink_layout::{Slot, Table};

use super::forms::{in_all_forms, of_shard};
use super::page::{Collected, Row};
use super::request::Query;
use super::shape::Gathering;
use super::shard_streams::ShardStream;
use super::share::PAGE_BYTES;
use crate::capacity::Capacity;
use crate::collection::keys::physical;
use crate::collection::keys::{Key, slot_of, stable, with_sort};
use crate::collection::position::Position;
use crate::collection::range::Condition;
use crate::collection::template::Ask;
use crate::context::PlanContext;
use crate::cursor::Cursor;
use crate::moving::index::{Copy, Lies, in_old_slots, lies};
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

/// The order of rows: the index's sort key, in logical values; the logical partition key; the table's sort key; and where shards are externally
/// assigned, so that several items can have one key, the slot.
type Place = (Position, Key, Option<Key>, Slot);

/// How many rows a page has at most while keys move: each may have to be looked at in both slots.
const MOST_MOVING: usize = 500;

/// What a row is of, the one that counts first where several rows are of one item.
#[derive(Clone, Debug)]
enum Of {
    /// The item.
    Item,
    /// An old copy that is not the item. It stays, so that the page ends where it would with it.
    Gone,
    /// An old copy that was found to be the item.
    Alone,
    /// An old copy, of which nothing more is known.
    Old(Copy),
}

impl Of {
    fn rank(&self) -> u8 {
        match self {
            Of::Item => 0,
            Of::Gone => 1,
            Of::Alone => 2,
            Of::Old(_) => 3,
        }
    }

    fn old(&self) -> Option<&Copy> {
        match self {
            Of::Old(copy) => Some(copy),
            _ => None,
        }
    }
}

/// Such a Query under way.
#[derive(Clone)]
pub(crate) struct LocallySorted {
    gathering: Arc<Gathering>,
    schema: Arc<Table>,
    streams: Vec<ShardStream>,
    /// The streams by when they are read. A stream is in one of them; what is read twice has two.
    stages: Vec<Vec<usize>>,
    /// Why it is put in order here.
    pub(crate) why: &'static str,
    /// Which of the sort attributes is the table's partition key, if it is stored with shard suffixes.
    own: Option<usize>,
    /// How many of the first sort attributes the store orders as the client knows them. What comes beyond the page's values of them need not be
    /// read.
    ordered: usize,
    /// What is tested of the sort attributes, in logical values.
    conditions: Vec<Condition>,
    after: Option<Place>,
    descending: bool,
    limit: Option<usize>,
    /// How often streams were read.
    rounds: u32,
    /// Whether keys of the table move.
    moves: bool,
    /// Behind which nothing may be shown: rows that were read there are forgotten.
    bound: Option<Place>,
    /// What the page will hold, as far as was read; in no order until cut.
    rows: Vec<(Place, Of, Row)>,
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
        let schema = query.schema;
        let own = own_partition(query);
        let equal = own.and_then(|own| match query.conditions.get(own) {
            Some(Condition::Eq(logical)) if stable(context, schema, logical).time().is_none() => {
                Some((own, logical))
            }
            _ => None,
        });
        let ordered = own.filter(|_| equal.is_none()).unwrap_or(query.sort().len());
        let after = query.cursor()?.map(|cursor| place(query, &cursor, context)).transpose()?;
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
                let shards = context.most_shards(schema, &logical.canonical_bytes(), &layout);
                let keys = (0..shards).map(Slot::shard);
                let keys =
                    keys.filter_map(|slot| Some((slot, physical(schema, &layout, logical, slot).ok()?)));
                keys.map(|(slot, key)| of_shard(&whole, own, slot, &key)).collect()
            }
        };
        let (mut streams, mut stages) = in_all_forms(query, &in_shards, context)?;
        let keys = schema.key_layouts();
        let moves = keys.any_apart(keys.newest());
        if moves && query.index.is_some_and(|index| index.local) {
            // What moves after it was read is read again.
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
        Ok(LocallySorted {
            gathering: Arc::new(gathering),
            schema: Arc::clone(schema),
            streams,
            stages,
            why,
            own,
            ordered,
            conditions: query.conditions.clone(),
            after,
            descending: query.descending,
            limit: match query.limit {
                limit if !moves => limit,
                limit => Some(limit.unwrap_or(MOST_MOVING).min(MOST_MOVING)),
            },
            rounds: 0,
            moves,
            bound: None,
            rows: Vec::new(),
            pages: Vec::new(),
            more: false,
            capacity: None,
        })
    }

    /// Looks which of the old copies among the rows are items.
    async fn look(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        let copies: Vec<Copy> = self.rows.iter().filter_map(|(_, of, _)| of.old().cloned()).collect();
        if copies.is_empty() {
            return Ok(());
        }
        let alone = in_old_slots(&self.schema, &copies, &mut self.capacity, calls).await?;
        for (_, of, _) in &mut self.rows {
            if let Some(copy) = of.old() {
                *of = if alone.contains(copy.identity()) { Of::Alone } else { Of::Gone };
            }
        }
        Ok(())
    }

    /// The calls that read on in a stage.
    fn calls(&mut self, stage: usize) -> Vec<PhysicalCall> {
        let open = |stream: &&usize| self.streams.get(**stream).is_some_and(|stream| !stream.is_closed());
        let stage = self.stages.get(stage).into_iter().flatten().filter(open);
        // One more than fits says whether there is more. Where many rows have the same values, more are asked for from round to round.
        let limit = self.limit.filter(|_| self.ordered > 0);
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

    /// Carries the Query out.
    ///
    /// # Errors
    /// The first error of a stream.
    pub(crate) async fn read(mut self, calls: &mut dyn Calls) -> Result<Answer, Error> {
        for stage in 0..self.stages.len() {
            loop {
                let round = self.calls(stage);
                if round.is_empty() {
                    break;
                }
                calls.round(round.into(), &mut |stream, answer| self.take(stream, answer?)).await?;
            }
            self.look(calls).await?;
        }
        let more = self.more || self.limit.is_some_and(|limit| self.rows.len() >= limit);
        let end = self.rows.last().map(|(.., row)| row.clone()).filter(|_| self.moves);
        let shown = |(_, of, row): (Place, Of, Row)| (!matches!(of, Of::Gone)).then_some(row);
        let rows: Vec<Row> = self.rows.drain(..).filter_map(shown).collect();
        let (pages, capacity) = (std::mem::take(&mut self.pages), self.capacity.take());
        let mut page = Collected { pages, rows, end, more, capacity, tied: false };
        let answer = self.gathering.answer(&mut page, None, calls).await?;
        Ok(answer.into())
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.gathering.reader.read(self.pages.len(), &body)?;
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let part = stream.parts.first().cloned().unwrap_or_default();
        let (read_to, last) = page.more.unzip();
        stream.read_to(last);
        if let Some(capacity) = &page.capacity {
            self.capacity.get_or_insert_default().add(capacity);
        }
        for (at, row) in page.rows {
            if part.drops(&at) {
                continue;
            }
            let (partition, sort, slot, of) =
                self.primary_of(body.get(row.item.clone()).unwrap_or_default())?;
            let Some(of) = of else { continue };
            let place = (self.logical(at), partition, sort, slot);
            let beyond = |bound: &Place| if self.descending { place < *bound } else { place > *bound };
            if self.bound.as_ref().is_some_and(beyond) {
                continue;
            }
            let behind = self
                .after
                .as_ref()
                .is_none_or(|after| if self.descending { place < *after } else { place > *after });
            if behind && place.0.matches(&self.conditions) {
                self.rows.push((place, of, row));
            }
        }
        self.pages.push(body);
        self.cut();
        let read_to = read_to.map(|at| self.logical(at).leading(self.ordered));
        let last = self.rows.last().filter(|_| self.more).map(|((last, ..), ..)| last.leading(self.ordered));
        let full = match (read_to, last) {
            (Some(read_to), Some(last)) if self.descending => read_to < last,
            (Some(read_to), Some(last)) => read_to > last,
            _ => false,
        };
        // Nothing that the stream still has comes before what the page holds: rows with the same values may.
        if let (true, Some(stream)) = (full, self.streams.get_mut(number)) {
            stream.parts.clear();
        }
        Ok(())
    }

    /// The logical primary key of a stored item, its slot if that is externally assigned, and what it is; nothing for what lies where no reader looks.
    fn primary_of(&self, item: &[u8]) -> Result<(Key, Option<Key>, Slot, Option<Of>), Error> {
        let unreadable =
            || Error::internal("The store's answer to Query has an item without the table's key");
        let key = &self.schema.key;
        let sort = key.sort.as_ref().unwrap_or(&key.partition);
        let [partition, sort_value] =
            json::attributes_of(item, [&key.partition.name, &sort.name]).map_err(|_| unreadable())?;
        let stored = KeyValue::read(partition.ok_or_else(unreadable)?, &key.partition)?.into_owned();
        let physical = stored.canonical_bytes().into_owned();
        let slot = self.schema.assigned_slot(&physical).unwrap_or_default();
        let logical = self.logical_key(stored);
        let sort = match &key.sort {
            None => None,
            Some(sort) => Some(KeyValue::read(sort_value.ok_or_else(unreadable)?, sort)?.into_owned()),
        };
        let of = if self.moves {
            let (key, slot) = self.schema.decode(&physical);
            match with_sort(sort.as_ref(), |sort| lies(&self.schema, key, sort, slot)) {
                Lies::Here => Some(Of::Item),
                Lies::Old(copy) => Some(Of::Old(copy)),
                Lies::Astray => None,
            }
        } else {
            Some(Of::Item)
        };
        Ok((logical, sort, slot, of))
    }

    /// A stored item's position in logical values.
    fn logical(&self, mut at: Position) -> Position {
        if let Some((own, stored)) = self.own.and_then(|own| Some((own, at.values().nth(own)?.clone()))) {
            at.replace(own, self.logical_key(stored));
        }
        at
    }

    /// The logical partition key of a stored one.
    fn logical_key(&self, stored: Key) -> Key {
        match stored {
            Key::S(text) => {
                let logical = self.schema.logical(text.as_bytes());
                Key::S(std::str::from_utf8(logical).unwrap_or(&text).to_owned().into())
            }
            Key::B(bytes) => Key::B(self.schema.logical(&bytes).to_vec().into()),
            Key::N(number) => Key::N(number),
        }
    }

    /// Of several rows of an item keeps the one that was read last: it may have been given another index sort key in between.
    fn keep_newest(&mut self) {
        let mut newest: BTreeMap<_, usize> = BTreeMap::new();
        let is_item = |of: &Of| matches!(of, Of::Item);
        for ((_, partition, sort, slot), _, row) in self.rows.iter().filter(|(_, of, _)| is_item(of)) {
            let page = newest.entry((partition, sort, slot)).or_default();
            *page = row.page.max(*page);
        }
        let is_newest = |((_, partition, sort, slot), of, row): &(Place, Of, Row)| {
            !is_item(of) || newest.get(&(partition, sort, slot)) == Some(&row.page)
        };
        let mut stays = self.rows.iter().map(is_newest).collect::<Vec<_>>().into_iter();
        self.rows.retain(|_| stays.next().unwrap_or(true));
    }

    /// Keeps what the page can hold, in order, and forgets the rest.
    fn cut(&mut self) {
        let descending = self.descending;
        if self.stages.len() > 1 {
            self.keep_newest();
        }
        self.rows.sort_by(|(a, of_a, _), (b, of_b, _)| {
            let order = if descending { b.cmp(a) } else { a.cmp(b) };
            order.then(of_a.rank().cmp(&of_b.rank()))
        });
        self.rows.dedup_by(|(a, ..), (b, ..)| a == b);
        let mut bytes = 0.0;
        let fits = self.rows.iter().take(self.limit.unwrap_or(usize::MAX)).take_while(|(.., row)| {
            let room = bytes < PAGE_BYTES;
            bytes += row.size;
            room
        });
        let fits = fits.count();
        if fits < self.rows.len() {
            self.more = true;
            self.bound =
                fits.checked_sub(1).and_then(|last| self.rows.get(last)).map(|(last, ..)| last.clone());
        }
        self.rows.truncate(fits);
        let mut used = vec![false; self.pages.len()];
        for (.., row) in &self.rows {
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

/// Which of the sort attributes is the table's partition key, if it is stored with shard suffixes.
fn own_partition(query: &Query<'_>) -> Option<usize> {
    let own = query.sort().iter().position(|sort| sort.name == query.schema.key.partition.name);
    own.filter(|_| !query.schema.keys_are_whole())
}

/// The place of a cursor.
fn place(query: &Query<'_>, cursor: &Cursor<'_>, context: &PlanContext<'_>) -> Result<Place, Unplanned> {
    let find = |name: &str| query.value_of(cursor, name).cloned();
    let key = &query.schema.key;
    let partition = find(&key.partition.name).ok_or(Unplanned::Invalid)?;
    let at = query.position_of(cursor);
    if find(&query.spread.name).as_ref() != Some(&query.partition) || !at.matches(&query.conditions) {
        return Err(Unplanned::Invalid);
    }
    let sort = key.sort.as_ref().and_then(|sort| find(&sort.name));
    let layout = stable(context, query.schema, &partition);
    let slot = match layout.is_externally_assigned() {
        true => slot_of(context, query.schema, &layout, &partition, sort.as_ref())?,
        false => Slot::default(),
    };
    Ok((at, partition, sort, slot))
}
