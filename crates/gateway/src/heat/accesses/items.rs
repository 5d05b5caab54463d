//! Accesses of single items: a read or a write of one key, in the table and in the indexes that the
//! item is in.

use std::sync::{Arc, Mutex, PoisonError};

use heatsink_dynamo::json;
use heatsink_env::MonotonicInstant;
use heatsink_heat::costs::{Cost, CostOf, Costs, RequestKind};
use heatsink_heat::detect::{Outcome, PartId};
use heatsink_heat::draw::Chosen;
use heatsink_route::table_name;
use heatsink_trace as trace;

use super::costing::{Fared, Halves, Known, UNIT, price};
use super::fate::Fate;
use super::key_text::{KeyText, key_text};
use super::told::Told;
use crate::heat::tables::{IndexKeys, TableKeys, Tables};

/// One access.
#[derive(Clone, Debug)]
pub(in crate::heat) struct Found<'a> {
    pub(in crate::heat) part: PartId,
    /// `None` where it has none, or is not known.
    pub(in crate::heat) key: Option<KeyText<'a>>,
    /// Thousandths of capacity units.
    pub(in crate::heat) cost: Cost,
    pub(in crate::heat) outcome: Outcome,
    /// The sort key of a write, as an attribute value.
    pub(in crate::heat) sort: Option<&'a [u8]>,
    /// Whether a write of the table only adds to numbers, whatever they are; `None` of others.
    pub(in crate::heat) adds: Option<bool>,
    /// What identifies a read among those of its key.
    pub(in crate::heat) page: Option<&'a [u8]>,
    /// The size of the item, in bytes; 0 where it is not known.
    pub(in crate::heat) item: usize,
    /// What it does.
    pub(in crate::heat) operation: trace::Operation,
    /// Whether it may read several items: a page of them, or whatever a statement asks for.
    pub(in crate::heat) is_page: bool,
    /// Whether it is a strongly consistent read.
    pub(in crate::heat) strong: bool,
    /// The items that a page is made of, and their bytes; 0 where that is not known, or not
    /// recorded.
    pub(in crate::heat) items: (u32, usize),
}

/// Collects the accesses of one request.
pub(super) struct Finder<'f, 'a> {
    pub(super) fate: Fate<'a>,
    /// Which items of it are counted.
    pub(super) chosen: Chosen,
    pub(super) tables: &'f Tables,
    pub(super) costs: &'f Mutex<Costs>,
    /// Whether the store was asked what it costs.
    pub(super) asked: bool,
    /// What the store says that it cost.
    pub(super) told: &'f Told<'f>,
    pub(super) now: MonotonicInstant,
    /// Whether it is wanted how large pages are.
    pub(super) recorded: bool,
    pub(super) found: &'f mut Vec<Found<'a>>,
}

/// A read of one item.
pub(super) struct Read {
    /// Its place in the request.
    pub(super) at: usize,
    pub(super) halves: Halves,
    pub(super) known: Known,
    /// What its size is to cost, where that is known.
    pub(super) sized: Option<u64>,
    /// The item's size, in bytes; 0 where it is not known.
    pub(super) size: usize,
    /// The store left it for later.
    pub(super) is_unprocessed: bool,
}

/// A write of one item, by all of it (a put) or by its key.
pub(super) struct Write<'w> {
    pub(super) at: usize,
    pub(super) kind: RequestKind,
    pub(super) halves: Halves,
    pub(super) known: Known,
    /// Whether it only adds to numbers, and asks for nothing back.
    pub(super) adds: bool,
    /// What is known of the cost in each index of the table, by its place; [`Known::Nothing`]
    /// beyond the last one.
    pub(super) indexes: &'w [Known],
    pub(super) is_unprocessed: bool,
}

impl<'w> Write<'w> {
    /// One of a BatchWriteItem.
    pub(super) fn of_batch(
        at: usize,
        kind: RequestKind,
        known: Known,
        indexes: &'w [Known],
        is_unprocessed: bool,
    ) -> Self {
        Write { at, kind, halves: Halves::PLAIN, known, adds: false, indexes, is_unprocessed }
    }
}

impl<'a> Finder<'_, 'a> {
    /// The table of that name, as the request writes it.
    pub(super) fn table(&self, name: &[u8]) -> Option<Arc<TableKeys>> {
        self.named(&json::string(name).ok()?)
    }

    /// The table of that name.
    pub(super) fn named(&self, name: &str) -> Option<Arc<TableKeys>> {
        self.tables.get(table_name(name), self.now)
    }

    /// What the store told of the table itself, where the request has no other item of it.
    pub(super) fn told_alone(&self, table: &TableKeys) -> Option<Known> {
        let told = self.told.table(&table.name)?;
        Some(Known::Told(Cost { units: told.own(), deviation: 0 }))
    }

    /// The same of each of its indexes.
    pub(super) fn told_of_indexes(&self, table: &TableKeys) -> Vec<Known> {
        let Some(told) = self.told.table(&table.name) else { return Vec::new() };
        let units = table.indexes.iter().map(|index| told.index(&index.name));
        units.map(|units| Known::Told(Cost { units, deviation: 0 })).collect()
    }

    /// What became of an access in the table, or in that index.
    pub(super) fn outcome(
        &self,
        at: usize,
        is_unprocessed: bool,
        table: &TableKeys,
        index: Option<&IndexKeys>,
    ) -> Outcome {
        let index = index.filter(|index| !index.local).map(|index| &*index.name);
        if is_unprocessed { Outcome::Throttled } else { self.fate.outcome(at, (&table.name, index)) }
    }

    /// The cost of an access with that outcome.
    pub(super) fn price(
        &self,
        of: CostOf<'_>,
        halves: Halves,
        outcome: Outcome,
        known: Known,
        sized: Option<u64>,
    ) -> Cost {
        let fared = match outcome {
            Outcome::Done if self.fate.is_done() && self.asked => Fared::Done,
            Outcome::Done if self.fate.is_done() => Fared::Unasked,
            Outcome::Done => Fared::Failed,
            _ => Fared::Refused,
        };
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        price(&mut costs, of, halves, fared, known, sized)
    }

    /// What an access of that kind is thought to cost, by what was learned.
    pub(super) fn thought(&self, part: PartId, kind: RequestKind, key: Option<&str>, halves: Halves) -> u64 {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        let of = CostOf { part, kind, key };
        let learned = costs.estimate(of).or_else(|| costs.estimate(CostOf { key: None, ..of }));
        halves.of_plain(learned.map_or(UNIT, |cost| cost.units.max(UNIT)))
    }

    /// Whether it was carried out, and the store was not asked what it cost.
    fn is_unasked(&self) -> bool {
        self.fate.is_done() && !self.asked
    }

    /// Whether it was learned what such an access costs.
    fn learned(&self, part: PartId, kind: RequestKind) -> bool {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        costs.estimate(CostOf { part, kind, key: None }).is_some()
    }

    /// Adds a read of one item.
    pub(super) fn read(&mut self, table: &TableKeys, key: &'a [u8], read: &Read) -> Option<()> {
        let [partition] = json::attributes_of(key, [table.partition.as_str()]).ok()?;
        let (part, key_text) = (table.parts.read, key_text(doubted(table, partition)?));
        let outcome = self.outcome(read.at, read.is_unprocessed, table, None);
        let of = CostOf { part, kind: RequestKind::Get, key: text(key_text.as_ref()) };
        let cost = self.price(of, read.halves, outcome, read.known, read.sized);
        self.found.push(Found {
            part,
            key: key_text,
            cost,
            outcome,
            sort: None,
            adds: None,
            page: Some(key),
            item: read.size,
            operation: trace::Operation::Get,
            is_page: false,
            strong: read.halves != Halves::of(heatsink_dynamo::capacity::Consistency::Eventual),
            items: (1, 0),
        });
        Some(())
    }

    /// Adds a write of one item, in the table and in the indexes that it is known to be in. `item`:
    /// all of it, or its key.
    pub(super) fn write(&mut self, table: &TableKeys, item: &'a [u8], write: &Write<'_>) -> Option<()> {
        let sort = table.sort.as_deref().unwrap_or_default();
        let [partition, sort] = json::attributes_of(item, [table.partition.as_str(), sort]).ok()?;
        let is_put = write.kind == RequestKind::Put;
        let (size, sized) = if is_put { table.ratio.write(item) } else { (0, 0) };
        let sized = is_put.then(|| write.halves.of_plain(sized));
        let known = if write.known == Known::Nothing { Known::sized(sized) } else { write.known };
        let outcome = self.outcome(write.at, write.is_unprocessed, table, None);
        let key = key_text(doubted(table, partition)?);
        let of = CostOf { part: table.parts.write, kind: write.kind, key: text(key.as_ref()) };
        let cost = self.price(of, write.halves, outcome, known, sized);
        let found = Found {
            part: table.parts.write,
            key,
            cost,
            outcome,
            sort,
            adds: Some(write.adds),
            page: None,
            item: size,
            operation: if is_put { trace::Operation::Put } else { trace::Operation::Update },
            is_page: false,
            strong: false,
            items: (1, 0),
        };
        // What a condition refuses does not come to an index.
        let reaches_indexes = self.fate.is_done() || outcome != Outcome::Done;
        let has_indexes = table.indexes.iter().any(|index| !index.local);
        if !reaches_indexes || !has_indexes {
            self.found.push(found);
            return Some(());
        }
        let no_index = Found { sort: None, adds: None, ..found.clone() };
        self.found.push(found);
        let members = if is_put { json::members(item).ok()? } else { Vec::new() };
        let value = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| *value);
        for (nth, index) in table.indexes.iter().enumerate().filter(|(_, index)| !index.local) {
            let holds = is_put && index.attributes.iter().all(|name| value(name).is_some());
            let sized = sized.filter(|_| holds);
            let known = match write.indexes.get(nth) {
                Some(told @ Known::Told(_)) => *told,
                _ if holds => Known::sized(sized),
                // Nobody knows which value it had, but what such writes cost in the index.
                _ if self.is_unasked() && self.learned(index.parts.write, write.kind) => Known::Nothing,
                _ => continue,
            };
            let key = index.partition.as_deref().filter(|_| holds).and_then(value).and_then(key_text);
            let part = index.parts.write;
            let outcome = self.outcome(write.at, write.is_unprocessed, table, Some(index));
            let of = CostOf { part, kind: write.kind, key: text(key.as_ref()) };
            let cost = self.price(of, write.halves, outcome, known, sized);
            // A put that changes nothing of what an index has writes nothing there.
            if cost.units == 0 {
                continue;
            }
            self.found.push(Found { part, key, cost, outcome, ..no_index.clone() });
        }
        Some(())
    }
}

/// The text of a key.
pub(super) fn text<'k>(key: Option<&'k KeyText<'_>>) -> Option<&'k str> {
    key.map(|(_, text)| &**text)
}

/// The attribute of a key that every request of the table has. Without it the table is another one
/// than we know.
fn doubted<'a>(table: &TableKeys, partition: Option<&'a [u8]>) -> Option<&'a [u8]> {
    if partition.is_none() {
        table.doubt();
    }
    partition
}
