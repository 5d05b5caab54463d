//! `BatchGetItem` and `BatchWriteItem`: items that their partitions throttle are returned as
//! unprocessed, and the others are executed (AWS, "Error handling").

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Error, Operation};
use heatsink_physics::{Demand, Throttle};

use super::capacity::{CapacityDetail, IndexCosts};
use super::catalogue::TableInfo;
use super::item_write::ItemWrite;
use super::writing::{Ready, full};
use super::{Partitioned, demands, locate};
use crate::Store;

/// The requests of a batch for one table.
struct Group<'a> {
    /// As in the request: a name or an ARN.
    table: Cow<'a, str>,
    /// The whole object of a `BatchGetItem`, with its projection and consistency.
    around: Option<&'a [u8]>,
    /// Put and delete requests, or keys.
    entries: Vec<&'a [u8]>,
}

impl<S: Store> Partitioned<S> {
    pub(super) async fn batch(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let now = self.gate.now();
        let (limit, unprocessed) = match operation {
            Operation::BatchWriteItem => (25, "UnprocessedItems"),
            _ => (100, "UnprocessedKeys"),
        };
        let read = || {
            let groups = groups(operation, json::member(&body, "RequestItems").ok()??)?;
            Some((groups, CapacityDetail::read(&body)?))
        };
        // The store refuses a batch that cannot be parsed, or is too large, as a whole.
        let Some((groups, told)) = read() else { return self.inner.call(operation, body).await };
        if groups.iter().map(|group| group.entries.len()).sum::<usize>() > limit {
            return self.inner.call(operation, body).await;
        }

        let tables: Vec<Option<Arc<TableInfo>>> =
            groups.iter().map(|group| self.gate.table(&group.table)).collect();
        let entries: Vec<Entry<'_>> = groups
            .iter()
            .zip(&tables)
            .flat_map(|(group, table)| group.entries.iter().map(move |entry| (group, entry, table)))
            .map(|(group, entry, table)| {
                table.as_ref().map_or(Entry::Unknown, |table| of_entry(group, entry, table))
            })
            .collect();
        let Admitted { lists, verdicts, ready } = self.admit_entries(now, entries).await;
        let writes = operation == Operation::BatchWriteItem
            && tables.iter().flatten().any(|table| !table.indexes.is_empty());
        let costs = if writes { IndexCosts::Changed } else { IndexCosts::None };

        let refused: Vec<bool> = verdicts.iter().map(Result::is_err).collect();
        let admitted: Vec<Demand> = lists
            .into_iter()
            .zip(&refused)
            .filter(|(_, refused)| !**refused)
            .flat_map(|(list, _)| list)
            .collect();
        if refused.contains(&true) && repeats(&groups, &tables) {
            self.gate.give_back(admitted.iter());
            return self.inner.call(operation, body.clone()).await;
        }
        if self.gate.store(&ready.changes).is_err() {
            self.gate.give_back(admitted.iter());
            return Err(full());
        }
        if !refused.contains(&true) {
            let done = self.metered(operation, body.clone(), told, costs, admitted).await;
            self.stored(&ready.changes, &done);
            return done;
        }
        if !refused.contains(&false) {
            let throttles: Vec<_> = verdicts.into_iter().filter_map(Result::err).flatten().collect();
            return Err(self.gate.refuse(&throttles));
        }
        let mut turn = refused.iter();
        let (going, mut coming_back) = split(groups, |_| turn.next().is_some_and(|refused| *refused));
        let reduced = json::splice_members(&body, &[("RequestItems", Some(&written(&going)?))])
            .map_err(|_| broken())?;
        let done = self.metered(operation, Bytes::from(reduced), told, costs, admitted).await;
        self.stored(&ready.changes, &done);
        let answer = done?;

        let theirs = json::member(&answer, unprocessed).map_err(|_| broken())?;
        let theirs = theirs.map_or(Some(Vec::new()), |theirs| groups_of_answer(operation, theirs));
        for group in theirs.ok_or_else(broken)? {
            match coming_back.iter_mut().find(|ours| ours.table == group.table) {
                Some(ours) => ours.entries.extend(group.entries),
                None => coming_back.push(group),
            }
        }
        let merged = json::splice_members(&answer, &[(unprocessed, Some(&written(&coming_back)?))]);
        merged.map(Bytes::from).map_err(|_| broken())
    }
}

/// One entry of a batch.
pub(super) enum Entry<'a> {
    Read(Demand),
    Write(ItemWrite<'a>),
    /// The store answers for it.
    Unknown,
}

/// The results of a batch's entries, in order, and the writes among the admitted entries.
pub(super) struct Admitted<'a> {
    pub lists: Vec<Vec<Demand>>,
    pub verdicts: Vec<Result<(), Vec<Throttle>>>,
    pub ready: Ready<'a>,
}

impl<S: Store> Partitioned<S> {
    /// Admits each entry on its own: first by its own partition, then, with what the writes will
    /// find, by all they touch.
    pub(super) async fn admit_entries(&self, now: u64, entries: Vec<Entry<'_>>) -> Admitted<'_> {
        let first = |entry: &Entry<'_>| match entry {
            Entry::Read(demand) => vec![*demand],
            Entry::Write(asked) => vec![asked.own_partition()],
            Entry::Unknown => Vec::new(),
        };
        let mut lists: Vec<Vec<Demand>> = entries.iter().map(first).collect();
        let mut verdicts = self.gate.admit_each(now, lists.iter().map(Vec::as_slice));
        let (mut numbers, mut asked) = (Vec::new(), Vec::new());
        for (nth, entry) in entries.into_iter().enumerate() {
            if let (Entry::Write(write), Ok(())) = (entry, &verdicts[nth]) {
                numbers.push(nth);
                asked.push(write);
            }
        }
        let mut ready = self.ready(&asked).await;
        let writes = ready.changes.iter().map(|change| change.demands.as_slice());
        let second = self.gate.admit_each(now, writes);
        let mut kept = second.iter().map(Result::is_ok);
        for ((nth, change), verdict) in numbers.into_iter().zip(&mut ready.changes).zip(second.clone()) {
            lists[nth] = std::mem::take(&mut change.demands);
            verdicts[nth] = verdict;
        }
        ready.changes.retain(|_| kept.next().unwrap_or(false));
        Admitted { lists, verdicts, ready }
    }
}

fn groups(operation: Operation, items: &[u8]) -> Option<Vec<Group<'_>>> {
    let mut groups = Vec::new();
    for (table, value) in json::members(items).ok()? {
        let (around, entries) = match operation {
            Operation::BatchWriteItem => (None, value),
            _ => (Some(value), json::member(value, "Keys").ok()??),
        };
        groups.push(Group { table, around, entries: json::elements(entries).ok()? });
    }
    Some(groups)
}

fn groups_of_answer(operation: Operation, items: &[u8]) -> Option<Vec<Group<'_>>> {
    if items == b"null" { Some(Vec::new()) } else { groups(operation, items) }
}

fn of_entry<'a>(group: &Group<'a>, entry: &'a [u8], table: &Arc<TableInfo>) -> Entry<'a> {
    if let Some(around) = group.around {
        let consistent = json::member(around, "ConsistentRead").ok().flatten();
        let (access, units) = (demands::read_access(consistent), demands::read_bound(consistent));
        return Entry::Read(demands::read(Some(entry), table, access, units));
    }
    let Ok([put, delete]) = json::attributes_of(entry, ["PutRequest", "DeleteRequest"]) else {
        return Entry::Unknown;
    };
    let asked = match (put, delete) {
        (Some(put), _) => ItemWrite::read("Put", put, Arc::clone(table), 1),
        (None, Some(delete)) => ItemWrite::read("Delete", delete, Arc::clone(table), 1),
        (None, None) => None,
    };
    asked.map_or(Entry::Unknown, Entry::Write)
}

/// Whether two entries have one primary key. DynamoDB refuses such a batch as a whole, and a
/// reduced one must not get around that.
fn repeats(groups: &[Group<'_>], tables: &[Option<Arc<TableInfo>>]) -> bool {
    groups.iter().zip(tables).any(|(group, table)| {
        let Some(table) = table else { return false };
        let mut seen = HashSet::new();
        group.entries.iter().any(|entry| {
            let item = if group.around.is_some() { Some(*entry) } else { item_of(entry) };
            item.and_then(|item| locate::identity(item, &table.key))
                .is_some_and(|identity| !seen.insert(identity))
        })
    })
}

fn item_of(entry: &[u8]) -> Option<&[u8]> {
    let [put, delete] = json::attributes_of(entry, ["PutRequest", "DeleteRequest"]).ok()?;
    match (put, delete) {
        (Some(put), _) => json::member(put, "Item").ok()?,
        (None, Some(delete)) => json::member(delete, "Key").ok()?,
        (None, None) => None,
    }
}

/// Splits the entries in two, leaving out tables without entries.
fn split<'a>(
    groups: Vec<Group<'a>>,
    mut second: impl FnMut(&[u8]) -> bool,
) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
    let (mut first, mut other) = (Vec::new(), Vec::new());
    for Group { table, around, entries } in groups {
        let (back, on): (Vec<&[u8]>, Vec<&[u8]>) = entries.into_iter().partition(|entry| second(entry));
        first.push(Group { table: table.clone(), around, entries: on });
        other.push(Group { table, around, entries: back });
    }
    first.retain(|group| !group.entries.is_empty());
    other.retain(|group| !group.entries.is_empty());
    (first, other)
}

fn written(groups: &[Group<'_>]) -> Result<Vec<u8>, Error> {
    let mut object = Object::new();
    for group in groups {
        let entries = [b"[", &group.entries.join(&b',')[..], b"]"].concat();
        match group.around {
            None => object.raw(&group.table, &entries),
            Some(around) => {
                let keys = json::splice_members(around, &[("Keys", Some(&entries))]).map_err(|_| broken())?;
                object.raw(&group.table, &keys)
            }
        };
    }
    Ok(object.finish())
}

fn broken() -> Error {
    Error::internal("A batch or its answer is not the JSON of a DynamoDB batch")
}
