//! Reads of items that may lie in several slots: all physical keys of each are fetched, and what is
//! found is folded and shown.
//!
//! GetItem and BatchGetItem differ in what they encode, and in what becomes of keys that the store
//! leaves unread: GetItem asks again, a batch hands them back. TransactGetItems reads the same keys
//! within its transaction (`added`).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Placement, Table};

use super::fetch::{Fetch, MOST_KEYS, list};
use super::physical::to_one_slot;
use super::wanted::Wanted;
use crate::answer::unreadable;
use crate::capacity::listed;
use crate::context::PlanContext;
use crate::dry_run::first_round;
use crate::identity::{self, Identity};
use crate::key::{Located, locate};
use crate::plan::{CallExplanation, Estimate, Explanation, Kind, Plan, Planned};
use crate::refusal::Unplanned;
use crate::request::{Request, malformed, quoted};
use crate::tables::table_name;
use crate::{Answer, Calls, preflight};

/// The most that an answer of BatchGetItem holds (AWS API reference, `BatchGetItem`).
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The plan of a GetItem; `body` is the request for the first slot, where `located` says that the
/// item may lie in others too.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long.
pub(crate) fn get(
    request: &Request<'_>,
    table: &Arc<Table>,
    body: Bytes,
    located: &Located<'_>,
) -> Result<Plan, Error> {
    let key = request.get("Key").unwrap_or_default();
    let name = request.get("TableName").unwrap_or(b"null").to_vec();
    let wanted = Wanted::read(request, name, Some(table))
        .and_then(|mut wanted| wanted.add(key, located).map(|()| wanted));
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(unplanned) => return refused(Operation::GetItem, request, unplanned),
    };
    let keys = wanted.from.pending.len() + usize::from(wanted.moves());
    if keys == 1 && !wanted.moves() {
        let why = "what is asked for lies in the base fragment: one physical request";
        return Ok(to_one_slot(Operation::GetItem, body, table, located, why));
    }
    let why = match located.location.placement {
        Placement::SumOf { .. } => {
            "a counter is the sum of its fragments: all of them are read at once and folded into one item"
        }
        Placement::Moving(_) => {
            "the key is being moved to other shards: its new slot is read, then the old one, then the new one again"
        }
        Placement::One(_) | Placement::AnyOf { .. } => {
            "other writers assign the shard, so that the item may lie in any of them: all are asked at once, and the one that is found is \
             the answer"
        }
    };
    let units = if request.get("ConsistentRead") == Some(b"true") { 1.0 } else { 0.5 };
    let units = f64::from(u32::try_from(keys).unwrap_or(u32::MAX)) * units;
    Ok(plan(request, Operation::GetItem, Some(units), vec![wanted], why))
}

/// The plan of a BatchGetItem that names items which may lie in several slots.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long.
pub(crate) fn batch(request: &Request<'_>, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let read = |name: &str, raw: &[u8]| {
        let raw = request.body.slice_ref(raw);
        let part = Request::read(&raw)?;
        let table = context.table(table_name(name));
        let mut wanted = Wanted::read(&part, quoted(name), table.as_ref())?;
        for key in json::elements(part.get("Keys").unwrap_or(b"[]"))? {
            match &table {
                None => wanted.from.pending.push(raw.slice_ref(key)),
                Some(table) => wanted.add(key, &locate(table, context, key)?)?,
            }
        }
        Ok(wanted)
    };
    let named = json::members(request.get("RequestItems").unwrap_or(b"{}"));
    let tables = named.map_err(|Malformed| malformed())?.into_iter().map(|(name, raw)| read(&name, raw));
    let tables: Vec<Wanted> = match tables.collect() {
        Ok(tables) => tables,
        Err(unplanned) => return refused(Operation::BatchGetItem, request, unplanned),
    };
    // The two ways to name attributes do not go together, in one batch either.
    let has = |name| tables.iter().any(|wanted| matches!(json::member(&wanted.raw, name), Ok(Some(_))));
    let mixed = has("AttributesToGet") && (has("ProjectionExpression") || has("ExpressionAttributeNames"));
    let named = |wanted: &Wanted| match &wanted.from.table {
        Some(_) => wanted.items.len(),
        None => wanted.from.pending.len(),
    };
    let named: usize = tables.iter().map(named).sum();
    if mixed || named > MOST_KEYS {
        return refused(Operation::BatchGetItem, request, Unplanned::Invalid);
    }
    let why = "the batch names counters, each of which is the sum of its fragments, or items whose shard other writers assign: all of their \
               physical keys are read, at most 100 in one physical batch";
    Ok(plan(request, Operation::BatchGetItem, None, tables, why))
}

/// The plan of a read, with the estimated read units of each call; the store is asked first where
/// the checks here find something wrong.
fn plan(
    request: &Request<'_>,
    operation: Operation,
    units: Option<f64>,
    tables: Vec<Wanted>,
    why: &'static str,
) -> Plan {
    let valid = tables.iter().all(|wanted| wanted.valid);
    let report = request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec);
    let plan = Plan::Scatter(Box::new(Read { operation, tables, report, units, why }));
    let why = "whether the request is valid, the store says";
    if valid { plan } else { preflight::first(operation, request.body.clone(), plan, why) }
}

fn refused(operation: Operation, request: &Request<'_>, unplanned: Unplanned) -> Result<Plan, Error> {
    preflight::unplanned(operation, request.body, unplanned)
}

struct Read {
    /// GetItem or BatchGetItem.
    operation: Operation,
    tables: Vec<Wanted>,
    /// `ReturnConsumedCapacity`, raw.
    report: Option<Vec<u8>>,
    units: Option<f64>,
    why: &'static str,
}

impl Planned for Read {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move { self.read(calls).await.map(Answer::from) })
    }

    fn explain(&self) -> Explanation {
        let calls = first_round(async |calls| drop(self.read(calls).await));
        let estimate = self.units.map(|read_units| Estimate {
            read_units,
            write_units: 0.0,
            assumes: format!("an item of at most 4 KB; at most {MOST_KEYS} keys a call"),
        });
        let explained = |call| CallExplanation { estimate: estimate.clone(), ..CallExplanation::from(call) };
        let calls = calls.iter().map(explained).collect();
        Explanation { plan: Kind::Scatter, why: self.why.to_owned(), calls }
    }
}

impl Read {
    async fn read(&self, calls: &mut dyn Calls) -> Result<Bytes, Error> {
        let from = self.tables.iter().map(|wanted| wanted.from.clone()).collect();
        let mut fetch = Fetch::of(from, self.report.clone());
        if self.tables.iter().any(Wanted::moves) {
            self.read_moving(&mut fetch, calls).await?;
        }
        if self.operation == Operation::GetItem || fetch.reads_folded() {
            fetch.read_all(calls).await?;
        } else {
            fetch.round(calls).await?;
        }
        match self.operation {
            Operation::GetItem => self.item(&fetch),
            _ => self.responses(&fetch),
        }
    }

    /// Reads the items that move, each by its [`PointRead`](heatsink_reshard::PointRead), all at
    /// once; and with their first reads all other keys.
    async fn read_moving(&self, fetch: &mut Fetch, calls: &mut dyn Calls) -> Result<(), Error> {
        let mut reads: Vec<_> = self.tables.iter().map(Wanted::point_reads).collect();
        loop {
            let mut asked = false;
            for (reads, from) in reads.iter().zip(&mut fetch.tables) {
                for read in reads {
                    asked |= read.ask(from);
                }
            }
            if !asked {
                return Ok(());
            }
            fetch.read_all(calls).await?;
            for (reads, from) in reads.iter_mut().zip(&mut fetch.tables) {
                reads.iter_mut().for_each(|read| read.take(from));
            }
        }
    }

    /// The answer of GetItem.
    fn item(&self, fetch: &Fetch) -> Result<Bytes, Error> {
        let mut answer = Object::new();
        for (wanted, from) in self.tables.iter().zip(&fetch.tables) {
            for item in &wanted.items {
                if let Some(item) = wanted.shown(item, from)? {
                    answer.raw("Item", &item);
                }
            }
        }
        if let Some(capacity) = fetch.capacity.first() {
            answer.raw("ConsumedCapacity", &capacity.all());
        }
        Ok(Bytes::from(answer.finish()))
    }

    /// The answer of BatchGetItem. An item of which a key was left unread is unread as a whole. So
    /// are those beyond what an answer holds: the store counts what it is asked for, and an item may
    /// be put together from several answers.
    fn responses(&self, fetch: &Fetch) -> Result<Bytes, Error> {
        let broken = |Malformed| unreadable(Operation::BatchGetItem);
        let (mut responses, mut unprocessed) = (Object::new(), Object::new());
        let mut bytes = 0;
        for (wanted, from) in self.tables.iter().zip(&fetch.tables) {
            let name = json::string(&from.name).map_err(broken)?;
            let mut items: Vec<Vec<u8>> = Vec::new();
            for item in &from.plain {
                bytes += scan_item(item, []).map_err(broken)?.bytes;
                items.push(item.to_vec());
            }
            let mut left: Vec<&[u8]> = Vec::new();
            match &from.table {
                None => left.extend(from.pending.iter().map(|key| &**key)),
                Some(table) => {
                    let unread = from.pending.iter().map(|key| Ok(identity::stored(table, key)?.0));
                    let unread: HashSet<Identity> = unread.collect::<Result<_, _>>().map_err(broken)?;
                    for item in &wanted.items {
                        if unread.contains(&item.identity) {
                            left.push(&item.logical);
                            continue;
                        }
                        let Some(shown) = wanted.shown(item, from)? else { continue };
                        let size = scan_item(&shown, []).map_err(broken)?.bytes;
                        if bytes > 0 && bytes + size > MOST_BYTES {
                            left.push(&item.logical);
                        } else {
                            bytes += size;
                            items.push(shown);
                        }
                    }
                }
            }
            let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
            responses.raw(&name, &list(&items));
            if !left.is_empty() {
                // As the client asked, but for the keys.
                let again = json::splice_members(&wanted.raw, &[("Keys", Some(&list(&left)))]);
                unprocessed.raw(&name, &again.map_err(broken)?);
            }
        }
        let mut answer = Object::new();
        answer.raw("Responses", &responses.finish()).raw("UnprocessedKeys", &unprocessed.finish());
        if !fetch.capacity.is_empty() {
            answer.raw("ConsumedCapacity", &listed(&fetch.capacity));
        }
        Ok(Bytes::from(answer.finish()))
    }
}
