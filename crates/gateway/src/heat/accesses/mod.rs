//! What a request accesses: the partition key of each item or page, what it costs, what became of
//! it.
//!
//! Keys are those of the request, as it was sent: logical ones of a client's, physical ones of a
//! call to the store. What cannot be read is left out: the answer is the client's in any case.

mod adds;
mod batches;
mod condition;
mod costing;
mod fate;
mod items;
mod key_text;
mod pages;
mod statements;
mod told;
mod transactions;

use std::sync::Mutex;

use bytes::Bytes;
use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_env::MonotonicInstant;
use heatsink_heat::costs::{Cost, Costs, RequestKind};
use heatsink_heat::draw::Chosen;

use super::tables::{TableKeys, Tables};
use super::units::thousandths;
use costing::{Halves, Known, consistency};
use fate::Fate;
use items::{Finder, Read, Write};
use told::Told;

pub(super) use items::Found;
pub(super) use key_text::{key_text, ordered};

/// A request that was answered.
#[derive(Clone, Copy)]
pub(super) struct Answered<'a> {
    pub(super) operation: Operation,
    pub(super) body: &'a [u8],
    pub(super) answer: Result<&'a [u8], &'a Error>,
    /// Whether the store was asked what it costs.
    pub(super) asked: bool,
    /// What the store says that its calls cost: values of `ConsumedCapacity`.
    pub(super) figures: &'a [Bytes],
}

/// What accesses are found by.
#[derive(Clone, Copy)]
pub(super) struct Finding<'f> {
    pub(super) tables: &'f Tables,
    pub(super) costs: &'f Mutex<Costs>,
    pub(super) now: MonotonicInstant,
    /// How large pages are is wanted too.
    pub(super) recorded: bool,
}

/// The accesses of a request, of the items that were chosen.
pub(super) fn find<'a>(request: Answered<'a>, chosen: Chosen, by: Finding<'_>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    if let Some(fate) = Fate::of(request.answer) {
        let told = Told::read(request.figures);
        let Finding { tables, costs, now, recorded } = by;
        let mut finder = Finder {
            fate,
            chosen,
            tables,
            costs,
            asked: request.asked,
            told: &told,
            now,
            recorded,
            found: &mut found,
        };
        // What is not well-formed was refused, and is not found here either.
        let _ = collect(&mut finder, request.operation, request.body);
    }
    found
}

/// Adds the accesses of a request.
fn collect<'a>(finder: &mut Finder<'_, 'a>, operation: Operation, body: &'a [u8]) -> Option<()> {
    match operation {
        Operation::GetItem => {
            let names = ["TableName", "Key", "ConsistentRead"];
            let [table, key, consistent] = json::attributes_of(body, names).ok()?;
            let table = finder.table(table?)?;
            let consistency = consistency(consistent);
            let (size, units) = table.ratio.read_item(finder.fate.answer(), consistency);
            let sized = finder.fate.is_done().then_some(units);
            let known = finder.told_alone(&table).unwrap_or(Known::sized(sized));
            let halves = Halves::of(consistency);
            finder.read(&table, key?, &Read { at: 0, halves, known, sized, size, is_unprocessed: false })
        }
        Operation::PutItem => write(finder, RequestKind::Put, body),
        Operation::UpdateItem => write(finder, RequestKind::Update, body),
        Operation::DeleteItem => write(finder, RequestKind::Delete, body),
        Operation::Query | Operation::Scan => pages::find(finder, operation, body),
        Operation::BatchGetItem => batches::batch_get(finder, body),
        Operation::BatchWriteItem => batches::batch_write(finder, body),
        Operation::TransactGetItems => transactions::get(finder, body),
        Operation::TransactWriteItems => transactions::write(finder, body),
        Operation::ExecuteStatement | Operation::BatchExecuteStatement | Operation::ExecuteTransaction => {
            statements::find(finder, operation, body)
        }
        _ => None,
    }
}

/// Adds those of a write of one item.
fn write<'a>(finder: &mut Finder<'_, 'a>, kind: RequestKind, body: &'a [u8]) -> Option<()> {
    let [table, item, key] = json::attributes_of(body, ["TableName", "Item", "Key"]).ok()?;
    let table = finder.table(table?)?;
    let item = if kind == RequestKind::Put { item? } else { key? };
    let known = finder.told_alone(&table).or_else(|| failed(finder, &table, kind, item));
    let indexes = finder.told_of_indexes(&table);
    let known = known.unwrap_or(Known::Nothing);
    let halves = Halves::PLAIN;
    let adds = kind == RequestKind::Update && adds::only_adds(body);
    finder.write(
        &table,
        item,
        &Write { at: 0, kind, halves, known, adds, indexes: &indexes, is_unprocessed: false },
    )
}

/// The cost of a write that its condition refused, where the error shows the item that was there.
fn failed(finder: &Finder<'_, '_>, table: &TableKeys, kind: RequestKind, item: &[u8]) -> Option<Known> {
    let Fate::Failed(error) = finder.fate else { return None };
    let there = serde_json::to_vec(error.members.get("Item")?).ok()?;
    let before = scan_item(&there, []).ok()?.bytes;
    let after = if kind == RequestKind::Put { table.ratio.write(item).0 } else { 0 };
    Some(Known::Told(Cost { units: thousandths(write_units(before, after)), deviation: 0 }))
}

/// Whether the costs of requests of that kind are hard to tell if the store does not: of those for
/// several items and tables in one, and of statements.
pub(super) const fn has_to_ask(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ExecuteStatement
            | Operation::BatchExecuteStatement
            | Operation::ExecuteTransaction
            | Operation::TransactGetItems
            | Operation::TransactWriteItems
    )
}

/// The most items of a request.
pub(super) const fn most_items(operation: Operation) -> u32 {
    match operation {
        Operation::BatchExecuteStatement | Operation::BatchWriteItem => 25,
        Operation::BatchGetItem
        | Operation::ExecuteTransaction
        | Operation::TransactGetItems
        | Operation::TransactWriteItems => 100,
        _ => 1,
    }
}
