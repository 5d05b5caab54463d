//! Accesses of single items: a read or a write of one key, in the table and in the indexes that the
//! item is in.

use std::sync::Arc;

use heatsink_dynamo::capacity::Consistency;
use heatsink_dynamo::json;
use heatsink_env::MonotonicInstant;
use heatsink_heat::detect::{Outcome, PartId};
use heatsink_heat::draw::Chosen;
use heatsink_route::table_name;
use heatsink_trace as trace;

use super::fate::Fate;
use super::key_text::{KeyText, key_text};
use crate::heat::tables::{TableKeys, Tables};

/// One access.
#[derive(Clone, Debug)]
pub(in crate::heat) struct Found<'a> {
    pub(in crate::heat) part: PartId,
    /// `None` where it has none, or is not known.
    pub(in crate::heat) key: Option<KeyText<'a>>,
    /// Thousandths of capacity units.
    pub(in crate::heat) units: u64,
    pub(in crate::heat) outcome: Outcome,
    /// The sort key of a write, as an attribute value.
    pub(in crate::heat) sort: Option<&'a [u8]>,
    /// What identifies a read among those of its key.
    pub(in crate::heat) page: Option<&'a [u8]>,
    /// The size of the item, in bytes; 0 where it is not known.
    pub(in crate::heat) item: usize,
    /// What it does.
    pub(in crate::heat) operation: trace::Operation,
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
    pub(super) now: MonotonicInstant,
    /// Whether it is wanted how large pages are.
    pub(super) recorded: bool,
    pub(super) found: &'f mut Vec<Found<'a>>,
}

/// A write of one item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// With the whole item.
    Put,
    /// By its key.
    Other,
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

    /// A read of one item.
    pub(super) fn read(
        &mut self,
        table: &TableKeys,
        key: &'a [u8],
        at: usize,
        (item, units): (usize, u64),
        consistency: Consistency,
    ) -> Option<()> {
        let [partition] = json::attributes_of(key, [table.partition.as_str()]).ok()?;
        let outcome = self.fate.outcome(at, (&table.name, None));
        let (part, key_text) = (table.parts.read, key_text(doubted(table, partition)?));
        self.found.push(Found {
            part,
            key: key_text,
            units,
            outcome,
            sort: None,
            page: Some(key),
            item,
            operation: trace::Operation::Get,
            strong: consistency != Consistency::Eventual,
            items: (1, 0),
        });
        Some(())
    }

    /// A write of one item, in the table and in the indexes that it is known to be in. `item`: all
    /// of it, or its key.
    pub(super) fn write(
        &mut self,
        table: &TableKeys,
        item: &'a [u8],
        write: Write,
        at: usize,
        times: u64,
        consumed: Option<u64>,
    ) -> Option<()> {
        let sort = table.sort.as_deref().unwrap_or_default();
        let [partition, sort] = json::attributes_of(item, [table.partition.as_str(), sort]).ok()?;
        let (size, units) = if write == Write::Put { table.ratio.write(item) } else { (0, 1_000) };
        let outcome = self.fate.outcome(at, (&table.name, None));
        let units = units * times;
        let key = key_text(doubted(table, partition)?);
        let found = Found {
            part: table.parts.write,
            key,
            units: consumed.unwrap_or(units),
            outcome,
            sort,
            page: None,
            item: size,
            operation: if write == Write::Put { trace::Operation::Put } else { trace::Operation::Update },
            strong: false,
            items: (1, 0),
        };
        self.found.push(found);
        if write == Write::Put && table.indexes.iter().any(|index| !index.local) {
            let members = json::members(item).ok()?;
            let value =
                |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| *value);
            for index in table.indexes.iter().filter(|index| !index.local) {
                if index.attributes.iter().all(|name| value(name).is_some()) {
                    let key = index.partition.as_deref().and_then(value).and_then(key_text);
                    let part = index.parts.write;
                    let outcome = self.fate.outcome(at, (&table.name, Some(&index.name)));
                    self.found.push(Found {
                        part,
                        key,
                        units,
                        outcome,
                        sort: None,
                        page: None,
                        item: size,
                        operation: trace::Operation::Put,
                        strong: false,
                        items: (1, 0),
                    });
                }
            }
        }
        Some(())
    }
}

/// The attribute of a key that every request of the table has. Without it the table is another one
/// than we know.
fn doubted<'a>(table: &TableKeys, partition: Option<&'a [u8]>) -> Option<&'a [u8]> {
    if partition.is_none() {
        table.doubt();
    }
    partition
}

/// How a read is asked for.
pub(super) fn consistency(consistent: Option<&[u8]>) -> Consistency {
    Consistency::of(consistent.is_some_and(|flag| matches!(flag, b"true" | b"\"true\"")))
}
