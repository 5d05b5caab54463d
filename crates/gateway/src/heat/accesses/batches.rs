//! Accesses of requests for many items: batches, of which some may be left unprocessed, and
//! transactions.

use heatsink_dynamo::capacity::Consistency;
use heatsink_dynamo::json;
use heatsink_heat::detect::Outcome;
use heatsink_heat::draw::Chosen;

use super::items::{Finder, Write, consistency};

/// Adds those of a BatchGetItem.
pub(super) fn batch_get<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let tables = json::members(json::member(body, "RequestItems").ok()??).ok()?;
    let answer = finder.fate.answer();
    let refused = unprocessed(answer, "UnprocessedKeys");
    let mut wanted = Vec::with_capacity(tables.len());
    let mut count = 0;
    for (name, request) in &tables {
        let [keys, consistent] = json::attributes_of(request, ["Keys", "ConsistentRead"]).ok()?;
        let keys = json::elements(keys?).ok()?;
        count += keys.len();
        wanted.push((name, keys, consistency(consistent)));
    }
    let length = answer.len() / count.max(1);
    let mut places = 0..;
    for (name, keys, consistency) in wanted {
        let keys = counted(finder.chosen, &mut places, keys);
        let Some(table) = finder.named(name).filter(|_| !keys.is_empty()) else { continue };
        let read = table.ratio.read(length, consistency);
        let refused = refused_of(refused, name, "Keys");
        for key in keys {
            let first = finder.found.len();
            finder.read(&table, key, 0, read, consistency);
            refuse(finder, first, &refused, key);
        }
    }
    Some(())
}

/// Adds those of a BatchWriteItem.
pub(super) fn batch_write<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let refused = unprocessed(finder.fate.answer(), "UnprocessedItems");
    let mut places = 0..;
    for (name, requests) in json::members(json::member(body, "RequestItems").ok()??).ok()? {
        let requests = counted(finder.chosen, &mut places, json::elements(requests).ok()?);
        let Some(table) = finder.named(&name).filter(|_| !requests.is_empty()) else { continue };
        let refused: Vec<&[u8]> = refused_of(refused, &name, "").into_iter().filter_map(written).collect();
        for request in requests {
            let put = json::member(request, "PutRequest").ok().flatten().is_some();
            let item = written(request)?;
            let first = finder.found.len();
            finder.write(&table, item, if put { Write::Put } else { Write::Other }, 0, 1, None);
            refuse(finder, first, &refused, item);
        }
    }
    Some(())
}

/// Adds those of a TransactGetItems.
pub(super) fn transact_get<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
    let chosen = finder.chosen;
    let length = finder.fate.answer().len() / elements.len().max(1);
    for (at, element) in elements.into_iter().enumerate().filter(|(at, _)| chosen.has(*at)) {
        let get = json::member(element, "Get").ok()??;
        let [table, key] = json::attributes_of(get, ["TableName", "Key"]).ok()?;
        let Some(table) = finder.table(table?) else { continue };
        let read = table.ratio.read(length, Consistency::Transactional);
        finder.read(&table, key?, at, read, Consistency::Transactional);
    }
    Some(())
}

/// Adds those of a TransactWriteItems.
pub(super) fn transact_write<'a>(finder: &mut Finder<'_, 'a>, body: &'a [u8]) -> Option<()> {
    let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
    let chosen = finder.chosen;
    for (at, element) in elements.into_iter().enumerate().filter(|(at, _)| chosen.has(*at)) {
        let all = ["Put", "Update", "Delete", "ConditionCheck"];
        let action = json::attributes_of(element, all).ok()?.into_iter().flatten().next()?;
        let [table, item, key] = json::attributes_of(action, ["TableName", "Item", "Key"]).ok()?;
        let Some(table) = finder.table(table?) else { continue };
        match item {
            Some(item) => finder.write(&table, item, Write::Put, at, 2, None),
            None => finder.write(&table, key?, Write::Other, at, 2, None),
        };
    }
    Some(())
}

/// The members that are counted. `places`: of the whole request.
fn counted<'a>(
    chosen: Chosen,
    places: &mut impl Iterator<Item = usize>,
    mut members: Vec<&'a [u8]>,
) -> Vec<&'a [u8]> {
    members.retain(|_| places.next().is_some_and(|at| chosen.has(at)));
    members
}

/// The accesses from `first` on were left unprocessed, if their key or item is among these. A store
/// may spell it otherwise than the client.
fn refuse(finder: &mut Finder<'_, '_>, first: usize, refused: &[&[u8]], sent: &[u8]) {
    let same = |one: &&[u8]| {
        let value = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).ok();
        *one == sent || value(one) == value(sent)
    };
    if refused.iter().any(same) {
        finder.found.iter_mut().skip(first).for_each(|one| one.outcome = Outcome::Throttled);
    }
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

/// Of one table; `list`: under which member its list is, if not at once.
fn refused_of<'a>(unprocessed: Option<&'a [u8]>, table: &str, list: &str) -> Vec<&'a [u8]> {
    let of_table = unprocessed.and_then(|tables| json::member(tables, table).ok().flatten());
    let list = match list {
        "" => of_table,
        list => of_table.and_then(|of_table| json::member(of_table, list).ok().flatten()),
    };
    list.and_then(|list| json::elements(list).ok()).unwrap_or_default()
}

/// The item or the key of a member of BatchWriteItem.
fn written(request: &[u8]) -> Option<&[u8]> {
    let [put, delete] = json::attributes_of(request, ["PutRequest", "DeleteRequest"]).ok()?;
    match (put, delete) {
        (Some(put), _) => json::member(put, "Item").ok()?,
        (None, Some(delete)) => json::member(delete, "Key").ok()?,
        (None, None) => None,
    }
}
