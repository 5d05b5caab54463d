//! Accesses of batches, of which some items may be left unprocessed.
//!
//! The store tells a cost for each table of a batch. Its items share it by their sizes. Where it was
//! not asked, only the items that are counted are read.

use heatsink_dynamo::capacity::{Consistency, read_units};
use heatsink_dynamo::json;
use heatsink_dynamo::size::scan_item;
use heatsink_heat::costs::{Cost, RequestKind};
use heatsink_heat::draw::Chosen;

use super::costing::{Halves, Known, Member, UNIT, consistency, shares};
use super::items::{Finder, Read, Write, text};
use super::key_text::{KeyText, key_text};
use super::told::TableCapacity;
use crate::heat::tables::TableKeys;
use crate::heat::units::thousandths;

/// Adds those of a BatchGetItem.
pub(super) fn batch_get<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let tables = json::members(json::member(body, "RequestItems").ok()??).ok()?;
    let answer = finder.fate.answer();
    let unprocessed = unprocessed(answer, "UnprocessedKeys");
    let responses = json::member(answer, "Responses").ok().flatten();
    let mut places = 0..;
    for (name, request) in &tables {
        let [keys, consistent] = json::attributes_of(request, ["Keys", "ConsistentRead"]).ok()?;
        let keys = json::elements(keys?).ok()?;
        let counted = counted(finder.chosen, &mut places, &keys);
        let Some(table) = finder.named(name).filter(|_| !counted.is_empty()) else { continue };
        let left = of_table(unprocessed, name, "Keys");
        let items = of_table(responses, name, "");
        let consistency = consistency(consistent);
        let halves = Halves::of(consistency);
        let page = finder
            .asked
            .then(|| Page::of(&table, &items, keys.len().saturating_sub(left.len()), consistency));
        let told = finder.told.table(&table.name).map(TableCapacity::total);
        for key in counted {
            let is_unprocessed = is_among(&left, key);
            let (known, sized, size) = match (finder.fate.is_done() && !is_unprocessed, &page) {
                (false, _) => (Known::Nothing, None, 0),
                (true, Some(page)) => page.cost(&table, key, told),
                (true, None) => {
                    let size = size_of(&table, &items, key);
                    let units = thousandths(read_units(size, consistency));
                    (Known::Sized(units), Some(units), size)
                }
            };
            finder.read(&table, key, &Read { at: 0, halves, known, sized, size, is_unprocessed });
        }
    }
    Some(())
}

/// The items of one table that a batch was answered with.
struct Page<'a> {
    items: Vec<ShownItem<'a>>,
    /// What they and the keys without an item are thought to cost together.
    sum: u64,
    least: u64,
}

struct ShownItem<'a> {
    key: [Option<KeyText<'a>>; 2],
    size: usize,
    units: u64,
}

impl<'a> Page<'a> {
    /// `keys`: how many were read.
    fn of(table: &TableKeys, items: &[&'a [u8]], keys: usize, consistency: Consistency) -> Self {
        let least = Halves::of(consistency).of_plain(UNIT);
        let shown = |raw: &&'a [u8]| {
            let size = scan_item(raw, []).map_or(0, |item| item.bytes);
            let units = thousandths(read_units(size, consistency));
            ShownItem { key: key_of(table, raw), size, units }
        };
        let items: Vec<ShownItem<'_>> = items.iter().map(shown).collect();
        let absent = u64::try_from(keys.saturating_sub(items.len())).unwrap_or(u64::MAX);
        let sum = items.iter().map(|item| item.units).sum::<u64>() + absent * least;
        Page { items, sum, least }
    }

    /// The cost of the read of a key, what its item's size is to cost, and that size. `told`: of the
    /// whole page.
    fn cost(&self, table: &TableKeys, key: &[u8], told: Option<u64>) -> (Known, Option<u64>, usize) {
        let wanted = key_of(table, key);
        let item = self.items.iter().find(|item| item.key == wanted);
        let (units, size) = item.map_or((self.least, 0), |item| (item.units, item.size));
        let known = match told {
            None => Known::Sized(units),
            Some(told) if told == self.sum => Known::Told(Cost { units, deviation: 0 }),
            // A projection leaves out some of the items.
            Some(told) => {
                let share = told * units / self.sum.max(1);
                Known::Told(Cost { units: share, deviation: share.abs_diff(units) })
            }
        };
        (known, Some(units), size)
    }
}

/// The primary key of an item, or of a key.
fn key_of<'a>(table: &TableKeys, raw: &'a [u8]) -> [Option<KeyText<'a>>; 2] {
    let names = [table.partition.as_str(), table.sort.as_deref().unwrap_or_default()];
    json::attributes_of(raw, names).unwrap_or_default().map(|value| key_text(value?))
}

/// The size of the item of that key; 0 where it is not among these.
fn size_of(table: &TableKeys, items: &[&[u8]], key: &[u8]) -> usize {
    let wanted = key_of(table, key);
    let item = items.iter().find(|item| key_of(table, item) == wanted);
    item.and_then(|item| scan_item(item, []).ok()).map_or(0, |item| item.bytes)
}

/// Adds those of a BatchWriteItem.
pub(super) fn batch_write<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let unprocessed = unprocessed(finder.fate.answer(), "UnprocessedItems");
    let mut at = 0..;
    // What the store tells is of all of them.
    let most = if finder.asked { usize::MAX } else { finder.chosen.end() };
    for (name, requests) in json::lists_under(body, "RequestItems", most).ok()? {
        let places: Vec<usize> = at.by_ref().take(requests.len()).collect();
        let chosen = finder.chosen;
        let Some(table) = finder.named(&name).filter(|_| places.iter().any(|at| chosen.has(*at))) else {
            continue;
        };
        let left: Vec<&[u8]> =
            of_table(unprocessed, &name, "").into_iter().filter_map(|raw| Some(written(raw)?.1)).collect();
        let refused = |item: &[u8]| !left.is_empty() && is_among(&left, item);
        if !finder.asked {
            for (request, at) in requests.into_iter().zip(places).filter(|(_, at)| chosen.has(*at)) {
                let (kind, item) = written(request)?;
                finder.write(&table, item, &Write::of_batch(at, kind, Known::Nothing, &[], refused(item)));
            }
            continue;
        }
        let written: Vec<(RequestKind, &[u8])> = requests.into_iter().map(written).collect::<Option<_>>()?;
        let writes: Vec<BatchedWrite<'_>> = written
            .into_iter()
            .map(|(kind, item)| BatchedWrite { kind, item, is_unprocessed: refused(item) })
            .collect();
        let known = known_of(finder, &table, &writes);
        let indexes = known_of_indexes(finder, &table, &writes);
        for (nth, (write, at)) in writes.iter().zip(places).enumerate().filter(|(_, (_, at))| chosen.has(*at))
        {
            let BatchedWrite { kind, item, is_unprocessed } = *write;
            let known = known.get(nth).copied().unwrap_or(Known::Nothing);
            let of_indexes: Vec<Known> =
                indexes.iter().map(|shares| shares.get(nth).copied().unwrap_or(Known::Nothing)).collect();
            finder.write(&table, item, &Write::of_batch(at, kind, known, &of_indexes, is_unprocessed));
        }
    }
    Some(())
}

/// One write of a batch.
struct BatchedWrite<'a> {
    kind: RequestKind,
    /// The item, or its key.
    item: &'a [u8],
    is_unprocessed: bool,
}

/// What is known of the cost of each write in the table.
fn known_of(finder: &Finder<'_, '_>, table: &TableKeys, writes: &[BatchedWrite<'_>]) -> Vec<Known> {
    let told = finder.told.table(&table.name).map(TableCapacity::own);
    let members = |exact: bool| -> Vec<Member> {
        let member = |write: &BatchedWrite<'_>| {
            let is_sized = write.kind == RequestKind::Put;
            let units = match is_sized {
                true if exact => table.ratio.write_exact(write.item),
                true => table.ratio.write(write.item).1,
                false => {
                    let key = json::member(write.item, &table.partition).ok().flatten().and_then(key_text);
                    finder.thought(table.parts.write, write.kind, text(key.as_ref()), Halves::PLAIN)
                }
            };
            Member { units, is_sized, is_refused: write.is_unprocessed }
        };
        writes.iter().map(member).collect()
    };
    let known = shares(told, &members(false));
    let certain = |known: &Known| !matches!(known, Known::Told(cost) if cost.deviation > 0);
    // To measure each item is work: only where what the store tells does not agree.
    if known.iter().all(certain) { known } else { shares(told, &members(true)) }
}

/// The same in each of its indexes; empty where the store tells nothing.
fn known_of_indexes(
    finder: &Finder<'_, '_>,
    table: &TableKeys,
    writes: &[BatchedWrite<'_>],
) -> Vec<Vec<Known>> {
    let Some(told) = finder.told.table(&table.name) else { return Vec::new() };
    let of_index = |index: &crate::heat::tables::IndexKeys| {
        let all = told.index(&index.name);
        let member = |write: &BatchedWrite<'_>| {
            let holds = write.kind == RequestKind::Put
                && index.attributes.iter().all(|name| {
                    all > 0 && memchr::memmem::find(write.item, format!("\"{name}\"").as_bytes()).is_some()
                });
            let units = if holds { table.ratio.write(write.item).1 } else { 0 };
            Member { units, is_sized: holds, is_refused: write.is_unprocessed || !holds }
        };
        // What deletes take of an index is no key's: nobody knows which value they had.
        let others = writes.iter().any(|write| write.kind != RequestKind::Put);
        let members: Vec<Member> = writes.iter().map(member).collect();
        let sized = members.iter().filter(|member| !member.is_refused).map(|member| member.units).sum();
        let all = if others { all.min(sized) } else { all };
        let known = shares(Some(all), &members).into_iter().zip(writes);
        // One that is not in the index takes nothing there; one that was refused is not told of.
        let known = known.map(|(known, write)| match known {
            Known::Told(_) => known,
            _ if write.is_unprocessed => Known::Nothing,
            _ => Known::Told(Cost::default()),
        });
        known.collect()
    };
    table.indexes.iter().map(of_index).collect()
}

/// The members that are counted. `places`: of the whole request.
fn counted<'a>(
    chosen: Chosen,
    places: &mut impl Iterator<Item = usize>,
    members: &[&'a [u8]],
) -> Vec<&'a [u8]> {
    let mut members = members.to_vec();
    members.retain(|_| places.next().is_some_and(|at| chosen.has(at)));
    members
}

/// Whether a key or an item is among these. A store may spell it otherwise than the client.
fn is_among(list: &[&[u8]], sent: &[u8]) -> bool {
    list.iter().any(|one| {
        let value = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).ok();
        *one == sent || value(one) == value(sent)
    })
}

/// What a batch left unprocessed, by table. Most answers leave nothing, and need not be read to say
/// so.
fn unprocessed<'a>(answer: &'a [u8], member: &str) -> Option<&'a [u8]> {
    let none = format!("\"{member}\":{{}}");
    if answer.is_empty() || memchr::memmem::rfind(answer, none.as_bytes()).is_some() {
        return None;
    }
    json::member(answer, member).ok().flatten()
}

/// The list of one table; `list`: under which member it is, if not at once.
fn of_table<'a>(by_table: Option<&'a [u8]>, table: &str, list: &str) -> Vec<&'a [u8]> {
    let of_table = by_table.and_then(|tables| json::member(tables, table).ok().flatten());
    let list = match list {
        "" => of_table,
        list => of_table.and_then(|of_table| json::member(of_table, list).ok().flatten()),
    };
    list.and_then(|list| json::elements(list).ok()).unwrap_or_default()
}

/// The item or the key of a member of BatchWriteItem.
fn written(request: &[u8]) -> Option<(RequestKind, &[u8])> {
    let [put, delete] = json::attributes_of(request, ["PutRequest", "DeleteRequest"]).ok()?;
    match (put, delete) {
        (Some(put), _) => Some((RequestKind::Put, json::member(put, "Item").ok()??)),
        (None, Some(delete)) => Some((RequestKind::Delete, json::member(delete, "Key").ok()??)),
        (None, None) => None,
    }
}
