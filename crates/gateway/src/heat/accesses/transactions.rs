//! Accesses of transactions. The store tells a cost for each table of one; its items share it.

use heatsink_dynamo::capacity::{Consistency, read_units};
use heatsink_dynamo::json;
use heatsink_dynamo::size::scan_item;
use heatsink_heat::costs::{Cost, RequestKind};

use super::costing::{Halves, Known, Member, shares};
use super::items::{Finder, Read, Write, text};
use super::key_text::key_text;
use super::told::TableCapacity;
use crate::heat::tables::TableKeys;
use crate::heat::units::thousandths;

/// Adds those of a TransactGetItems.
pub(super) fn get<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
    let answer = finder.fate.answer();
    let responses = json::member(answer, "Responses").ok().flatten();
    let responses = responses.and_then(|list| json::elements(list).ok()).unwrap_or_default();
    let halves = Halves::TRANSACTION;
    let mut gets = Vec::with_capacity(elements.len());
    for (at, element) in elements.into_iter().enumerate() {
        let get = json::member(element, "Get").ok()??;
        let [table, key] = json::attributes_of(get, ["TableName", "Key"]).ok()?;
        let item = responses.get(at).and_then(|response| json::member(response, "Item").ok().flatten());
        let size = item.and_then(|item| scan_item(item, []).ok()).map_or(0, |item| item.bytes);
        let units = thousandths(read_units(size, Consistency::Transactional));
        let member = Member { units, is_sized: finder.fate.is_done(), is_refused: false };
        gets.push((finder.table(table?), key?, size, member));
    }
    let known = by_table(finder, gets.iter().map(|(table, _, _, member)| (table.as_deref(), *member)));
    let chosen = finder.chosen;
    for (at, ((table, key, size, member), known)) in
        gets.iter().zip(known).enumerate().filter(|(at, _)| chosen.has(*at))
    {
        let Some(table) = table else { continue };
        let sized = member.is_sized.then_some(member.units);
        finder.read(table, key, &Read { at, halves, known, sized, size: *size, is_unprocessed: false });
    }
    Some(())
}

/// Adds those of a TransactWriteItems.
pub(super) fn write<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
    let halves = Halves::TRANSACTION;
    let mut writes = Vec::with_capacity(elements.len());
    for element in elements {
        let actions = ["Put", "Update", "Delete", "ConditionCheck"];
        let kinds = [RequestKind::Put, RequestKind::Update, RequestKind::Delete, RequestKind::ConditionCheck];
        let found = json::attributes_of(element, actions).ok()?;
        let (action, kind) = found.into_iter().zip(kinds).find_map(|(raw, kind)| Some((raw?, kind)))?;
        let [table, item, key] = json::attributes_of(action, ["TableName", "Item", "Key"]).ok()?;
        let (table, item) = (finder.table(table?), item.or(key)?);
        let is_sized = kind == RequestKind::Put;
        let units = table.as_ref().map_or(0, |table| {
            if is_sized {
                return halves.of_plain(table.ratio.write_exact(item));
            }
            let key = json::member(item, &table.partition).ok().flatten().and_then(key_text);
            finder.thought(table.parts.write, kind, text(key.as_ref()), halves)
        });
        writes.push((table, kind, item, Member { units, is_sized, is_refused: false }));
    }
    let known = by_table(finder, writes.iter().map(|(table, _, _, member)| (table.as_deref(), *member)));
    let chosen = finder.chosen;
    for (at, ((table, kind, item, member), known)) in
        writes.iter().zip(known).enumerate().filter(|(at, _)| chosen.has(*at))
    {
        let Some(table) = table else { continue };
        let puts = writes.iter().filter(|(of, kind, _, _)| {
            *kind == RequestKind::Put && of.as_ref().is_some_and(|of| of.name == table.name)
        });
        let sum = puts.map(|(_, _, _, put)| put.units).sum();
        let indexes = of_indexes(finder, table, (*kind == RequestKind::Put).then_some(member.units), sum);
        let kind = *kind;
        finder.write(
            table,
            item,
            &Write { at, kind, halves, known, adds: false, indexes: &indexes, is_unprocessed: false },
        );
    }
    Some(())
}

/// What is known of the cost of each item, whose table may not be known.
fn by_table<'t>(
    finder: &Finder<'_, '_>,
    items: impl Iterator<Item = (Option<&'t TableKeys>, Member)> + Clone,
) -> Vec<Known> {
    let mut known = vec![Known::Nothing; items.clone().count()];
    let mut places: Vec<(&TableKeys, Vec<usize>)> = Vec::new();
    for (at, table) in items.clone().enumerate().filter_map(|(at, (table, _))| Some((at, table?))) {
        match places.iter_mut().find(|(one, _)| one.name == table.name) {
            Some((_, all)) => all.push(at),
            None => places.push((table, vec![at])),
        }
    }
    let members: Vec<Member> = items.map(|(_, member)| member).collect();
    for (table, places) in places {
        let of_table: Vec<Member> = places.iter().filter_map(|at| members.get(*at)).copied().collect();
        let told = finder.told.table(&table.name).map(TableCapacity::own);
        for (at, share) in places.iter().zip(shares(told, &of_table)) {
            if let Some(known) = known.get_mut(*at) {
                *known = share;
            }
        }
    }
    known
}

/// The share of each index in what a put of these units takes; of other writes there is none, since
/// nobody knows which values they had. `sum`: the units of all puts of the table.
fn of_indexes(finder: &Finder<'_, '_>, table: &TableKeys, put: Option<u64>, sum: u64) -> Vec<Known> {
    let Some(told) = finder.told.table(&table.name) else { return Vec::new() };
    let units = |index: &crate::heat::tables::IndexKeys| {
        // Identical puts apart, an index takes as much of an item as the table.
        let all = told.index(&index.name).min(sum);
        Known::Told(Cost { units: put.map_or(0, |put| all * put / sum.max(1)), deviation: 0 })
    };
    table.indexes.iter().map(units).collect()
}
