//! What a request accesses: the partition key of each item or page, what it costs, what became of
//! it.
//!
//! Keys are those of the request, as it was sent: logical ones of a client's, physical ones of a
//! call to the store. What cannot be read is left out: the answer is the client's in any case.

mod batches;
mod condition;
mod fate;
mod items;
mod key_text;
mod pages;
mod statements;

use heatsink_dynamo::{Error, Operation, json};
use heatsink_env::MonotonicInstant;
use heatsink_heat::draw::Chosen;

use super::tables::Tables;
use super::units::consumed;
use fate::Fate;
use items::{Finder, Write, consistency};

pub(super) use items::Found;
pub(super) use key_text::{key_text, ordered};

/// The accesses of a request that was answered so, of the items that were chosen. `recorded`: how
/// large pages are is wanted too.
pub(super) fn find<'a>(
    operation: Operation,
    body: &'a [u8],
    answer: Result<&'a [u8], &'a Error>,
    chosen: Chosen,
    tables: &Tables,
    now: MonotonicInstant,
    recorded: bool,
) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    if let Some(fate) = Fate::of(answer) {
        let mut finder = Finder { fate, chosen, tables, now, recorded, found: &mut found };
        // What is not well-formed was refused, and is not found here either.
        let _ = collect(&mut finder, operation, body);
    }
    found
}

/// Adds the accesses of a request.
fn collect<'a>(finder: &mut Finder<'_, 'a>, operation: Operation, body: &'a [u8]) -> Option<()> {
    match operation {
        Operation::GetItem => {
            let names = ["TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"];
            let [table, key, consistent, capacity] = json::attributes_of(body, names).ok()?;
            let table = finder.table(table?)?;
            let answer = finder.fate.answer();
            let consistency = consistency(consistent);
            let (item, units) = table.ratio.read_item(answer, consistency);
            let units = consumed(capacity, answer).unwrap_or(units);
            finder.read(&table, key?, 0, (item, units), consistency)
        }
        Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
            let names = ["TableName", "Item", "Key", "ReturnConsumedCapacity"];
            let [table, item, key, capacity] = json::attributes_of(body, names).ok()?;
            let table = finder.table(table?)?;
            let units = consumed(capacity, finder.fate.answer());
            match item {
                Some(item) => finder.write(&table, item, Write::Put, 0, 1, units),
                None => finder.write(&table, key?, Write::Other, 0, 1, units),
            }
        }
        Operation::Query | Operation::Scan => pages::find(finder, operation, body),
        Operation::BatchGetItem => batches::batch_get(finder, body),
        Operation::BatchWriteItem => batches::batch_write(finder, body),
        Operation::TransactGetItems => batches::transact_get(finder, body),
        Operation::TransactWriteItems => batches::transact_write(finder, body),
        Operation::ExecuteStatement | Operation::BatchExecuteStatement | Operation::ExecuteTransaction => {
            statements::find(finder, operation, body)
        }
        _ => None,
    }
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
