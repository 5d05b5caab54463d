//! BatchWriteItem that names counters. DynamoDB promises of a batch only that each of its writes is
//! atomic, so a put or delete of a counter in it is that PutItem or DeleteItem: one transaction
//! over the counter's fragments. The other writes stay one physical batch.
//!
//! DynamoDB checks a whole batch before it writes any of it. The batch of the others is therefore
//! sent before the transactions, and before it the transactions of writes in which the checks here
//! find a mistake: these the store is expected to refuse.
//!
//! Not here: the transaction itself (`write`, `transaction`), and batches without counters
//! (`items::batch`).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::key::{KeyPart, KeyValue};
use heatsink_dynamo::size::{MAX_ITEM, item_size};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{AttributeDefinition, Error, Operation};
use heatsink_layout::{Placement, Table};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::write::Over;
use crate::answer::{done, unreadable};
use crate::capacity::{Capacity, add_by_table, listed};
use crate::context::PlanContext;
use crate::fragments::effect;
use crate::items::batch;
use crate::items::physical::{Physical, holder, physical};
use crate::plan::{Explanation, Kind, Plan, Planned};
use crate::preflight::{pass_refusal, unplanned};
use crate::refusal::{Unplanned, Unsent};
use crate::request::{Request, malformed, quoted};
use crate::tables::table_name;
use crate::{Answer, Calls};
use crate::{fragments, identity};

const OPERATION: Operation = Operation::BatchWriteItem;

/// The plan of a BatchWriteItem that names a counter.
///
/// # Errors
/// `ValidationException` for a put of a value that cannot be added to.
pub(crate) fn plan(request: &Request<'_>, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let mut batch = Batch::default();
    let (mut named, mut kept) = (HashSet::new(), Object::new());
    let items = request.get("RequestItems").unwrap_or(b"{}");
    for (name, writes) in json::members(items).map_err(|Malformed| malformed())? {
        let table = context.table(table_name(&name)).filter(|table| table.has_counters());
        let mut others = Vec::new();
        let writes = json::elements(writes).map_err(|Malformed| malformed())?;
        let empty = writes.is_empty();
        for write in writes {
            let entry = Entry { table: name.clone().into_owned(), write: request.body.slice_ref(write) };
            let counter = match &table {
                Some(table) => entry.of_counter(request, table, context),
                None => Ok(None),
            };
            match counter {
                Ok(Some((identity, write))) => {
                    if !named.insert((table.as_ref().map(|table| table.name.clone()), identity)) {
                        // DynamoDB refuses a key that comes twice, and the store's words may be
                        // about another mistake.
                        return Ok(pass_refusal(OPERATION, request.body));
                    }
                    let writes = if write.doubtful { &mut batch.doubtful } else { &mut batch.counters };
                    writes.push(write);
                }
                Ok(None) => {
                    others.push(write);
                    batch.others.push(entry);
                }
                Err(why) => return unplanned(OPERATION, request.body, why),
            }
        }
        if empty || !others.is_empty() {
            kept.raw(&name, &[b"[", others.join(&b","[..]).as_slice(), b"]"].concat());
        }
    }
    if !kept.is_empty() {
        let body = json::splice_members(request.body, &[("RequestItems", Some(&kept.finish()))]);
        let body = Bytes::from(body.map_err(|Malformed| malformed())?);
        batch.rest = Some(batch::plan(OPERATION, &Request::read(&body)?, context, plan)?);
    }
    Ok(Plan::Scatter(Box::new(batch)))
}

/// One write of a batch, as it came.
struct Entry {
    /// The table as the client names it.
    table: String,
    /// The element of the table's list.
    write: Bytes,
}

/// A put or delete of a counter.
struct Write {
    entry: Entry,
    over: Over,
    /// Whether the checks here find a mistake in it.
    doubtful: bool,
}

impl Entry {
    /// The write and which item it is of, if that is a counter.
    fn of_counter(
        &self,
        batch: &Request<'_>,
        table: &Arc<Table>,
        context: &PlanContext<'_>,
    ) -> Result<Option<(identity::Identity, Write)>, Unplanned> {
        let objects = objects(&self.write)?;
        for (operation, object) in &objects {
            let body = lowered(batch, &self.table, *operation, object);
            let request = Request::read(&body)?;
            let Physical::Sent { body: sent, located } =
                physical(&request, holder(*operation), table, context)?
            else {
                return Err(Unplanned::Invalid);
            };
            let Placement::SumOf { attributes, .. } = &located.location.placement else { continue };
            if objects.len() > 1 {
                return Err(Unplanned::Refused(Error::validation(
                    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
                )));
            }
            if *operation == Operation::DeleteItem && !identity::is_key(table, object) {
                return Err(Unplanned::Invalid);
            }
            match effect::read(Some(*operation), &request, attributes) {
                Ok(_) => {}
                Err(Unsent::Refused(error) | Unsent::Meaningless(error)) => return Err(error.into()),
            }
            let keys = fragments::keys(table, &located.layout, &located.location.placement, object)?;
            let over = Over::new(*operation, &Request::read(&sent)?, table, &located, &keys, None);
            let entry = Entry { table: self.table.clone(), write: self.write.clone() };
            let write = Write { entry, over, doubtful: !is_storable(table, object) };
            return Ok(Some((identity::logical(table, object)?, write)));
        }
        Ok(None)
    }
}

/// The items and keys of one write of a batch. DynamoDB takes one; a repeated member is given every
/// time.
fn objects(write: &[u8]) -> Result<Vec<(Operation, &[u8])>, Malformed> {
    let mut found = Vec::new();
    for (name, request) in json::members(write)?.into_iter().filter(|(_, raw)| *raw != b"null") {
        let operation = match &*name {
            "PutRequest" => Operation::PutItem,
            "DeleteRequest" => Operation::DeleteItem,
            _ => continue,
        };
        let named = json::members(request)?.into_iter().filter(|(name, _)| name == holder(operation));
        found.extend(named.map(|(_, object)| (operation, object)));
    }
    Ok(found)
}

/// A write of a batch as the operation on one item that it is.
fn lowered(batch: &Request<'_>, table: &str, operation: Operation, object: &[u8]) -> Bytes {
    let mut body = Object::new();
    body.raw("TableName", &quoted(table)).raw(holder(operation), object);
    for member in ["ReturnConsumedCapacity", "ReturnItemCollectionMetrics"] {
        if let Some(value) = batch.get(member) {
            body.raw(member, value);
        }
    }
    Bytes::from(body.finish())
}

/// Whether the checks here find nothing wrong with an item, or with a key.
fn is_storable(table: &Table, object: &[u8]) -> bool {
    let Ok(item) = read_item(object) else { return false };
    let fits = |attribute: &AttributeDefinition| {
        item.get(&attribute.name).is_none_or(|value| {
            KeyValue::from_value(value).is_some_and(|key| {
                key.key_type() == attribute.key_type && key.check(KeyPart::Sort, &attribute.name).is_ok()
            })
        })
    };
    let of_indexes = table.indexes.iter().flat_map(|index| index.key.attributes().all());
    // The table's partition key, which may be longer, was checked when the item was located.
    let own = |attribute: &&AttributeDefinition| attribute.name != table.key.partition.name;
    item_size(&item) <= MAX_ITEM && table.key.sort.iter().chain(of_indexes).filter(own).all(fits)
}

/// A batch that names counters.
#[derive(Default)]
struct Batch {
    doubtful: Vec<Write>,
    /// The writes of other items.
    others: Vec<Entry>,
    /// Their plan.
    rest: Option<Plan>,
    counters: Vec<Write>,
}

impl Planned for Batch {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let Batch { doubtful, others, rest, counters } = *self;
            let mut outcome = Outcome::default();
            outcome.counters(doubtful, calls).await?;
            if let Some(rest) = rest {
                outcome.rest(others, rest, calls).await?;
            }
            outcome.counters(counters, calls).await?;
            outcome.answer().map(Answer::from)
        })
    }

    fn explain(&self) -> Explanation {
        let counters = self.doubtful.iter().chain(&self.counters);
        let rest = self.rest.as_ref().map(Plan::explain);
        let mut calls = rest.map(|rest| rest.calls).unwrap_or_default();
        calls.extend(counters.flat_map(|write| write.over.explain().calls));
        let why = "the batch puts or deletes counters: each is one transaction over the counter's fragments; the writes of other items are one \
                   physical batch, which is sent first";
        Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
    }
}

/// What has become of a batch.
#[derive(Default)]
struct Outcome {
    /// Whether a write was, or may have been, carried out.
    written: bool,
    /// Why a write was not carried out: the first such error.
    refused: Option<Error>,
    unprocessed: Vec<Entry>,
    /// `ConsumedCapacity` of each table, summed.
    capacity: Vec<Capacity>,
    /// `ItemCollectionMetrics` by table.
    metrics: Map<String, Json>,
}

impl Outcome {
    /// Carries out writes of counters, at once.
    ///
    /// # Errors
    /// Those that no retry can help.
    async fn counters(&mut self, writes: Vec<Write>, calls: &mut dyn Calls) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let round: Vec<_> = writes.iter().enumerate().map(|(id, write)| write.over.call(id)).collect();
        let mut answers: Vec<Option<Result<Bytes, Error>>> = writes.iter().map(|_| None).collect();
        let mut take = |id: usize, answer| {
            if let Some(place) = answers.get_mut(id) {
                *place = Some(answer);
            }
            Ok(())
        };
        let ended = calls.round(round.into(), &mut take).await;
        ended.map_err(|error| if self.written { done(error) } else { error })?;
        let mut fatal = None;
        for (Write { entry, over, .. }, answer) in writes.into_iter().zip(answers) {
            let answer = answer.unwrap_or_else(|| Err(unreadable(OPERATION)));
            match over.answer(answer) {
                Ok(body) => {
                    self.written = true;
                    let [capacity, metrics] = members(&body, ["ConsumedCapacity", "ItemCollectionMetrics"])?;
                    self.consumed(capacity);
                    self.collections(&entry.table, metrics);
                }
                Err(error) if is_refusal(&error) => self.hand_back(vec![entry], error),
                Err(error) => {
                    self.written |= error.outcome == heatsink_dynamo::Outcome::Unknown;
                    fatal.get_or_insert(error);
                }
            }
        }
        fatal.map_or(Ok(()), |error| Err(if self.written { done(error) } else { error }))
    }

    /// Carries out the batch of the others.
    ///
    /// # Errors
    /// Those that no retry can help.
    async fn rest(&mut self, others: Vec<Entry>, rest: Plan, calls: &mut dyn Calls) -> Result<(), Error> {
        let body = match rest.run(calls).await {
            Ok(answer) => answer.body,
            Err(error) if is_refusal(&error) => {
                self.hand_back(others, error);
                return Ok(());
            }
            Err(error) => return Err(if self.written { done(error) } else { error }),
        };
        self.written = true;
        let broken = |Malformed| unreadable(OPERATION);
        let unprocessed = json::member(&body, "UnprocessedItems").map_err(broken)?;
        for (table, writes) in
            json::members(unprocessed.filter(|raw| *raw != b"null").unwrap_or(b"{}")).map_err(broken)?
        {
            for write in json::elements(writes).map_err(broken)? {
                let write = body.slice_ref(write);
                self.unprocessed.push(Entry { table: table.clone().into_owned(), write });
            }
        }
        let [capacity, metrics] = members(&body, ["ConsumedCapacity", "ItemCollectionMetrics"])?;
        self.consumed(capacity);
        for (table, collections) in metrics.as_object().into_iter().flatten() {
            self.collections(table, collections.clone());
        }
        Ok(())
    }

    fn hand_back(&mut self, entries: Vec<Entry>, error: Error) {
        self.unprocessed.extend(entries);
        self.refused.get_or_insert(error);
    }

    /// Adds one table's `ConsumedCapacity`, or a list of such.
    fn consumed(&mut self, capacity: Json) {
        let all = match capacity {
            Json::Array(all) => all,
            one => vec![one],
        };
        for one in all.iter().filter_map(|one| Capacity::deserialize(one).ok()) {
            add_by_table(&mut self.capacity, &one);
        }
    }

    /// Adds one of a table's item collections, or a list of such, each once.
    fn collections(&mut self, table: &str, collections: Json) {
        let all = match collections {
            Json::Array(all) => all,
            one => vec![one],
        };
        for one in all.into_iter().filter(Json::is_object) {
            let known = self.metrics.entry(table).or_insert_with(|| Json::Array(Vec::new()));
            let Json::Array(known) = known else { continue };
            if known.iter().all(|other| other["ItemCollectionKey"] != one["ItemCollectionKey"]) {
                known.push(one);
            }
        }
    }

    /// The answer of the batch; an error if nothing was written.
    fn answer(self) -> Result<Bytes, Error> {
        if let (false, Some(error)) = (self.written, self.refused) {
            return Err(error);
        }
        let mut tables: Vec<(&str, Vec<&[u8]>)> = Vec::new();
        for Entry { table, write } in &self.unprocessed {
            match tables.iter_mut().find(|(name, _)| name == table) {
                Some((_, writes)) => writes.push(write),
                None => tables.push((table, vec![write])),
            }
        }
        let mut unprocessed = Object::new();
        for (table, writes) in tables {
            unprocessed.raw(table, &[b"[", writes.join(&b","[..]).as_slice(), b"]"].concat());
        }
        let mut answer = Object::new();
        answer.raw("UnprocessedItems", &unprocessed.finish());
        if !self.capacity.is_empty() {
            answer.raw("ConsumedCapacity", &listed(&self.capacity));
        }
        if !self.metrics.is_empty() {
            answer.raw("ItemCollectionMetrics", Json::Object(self.metrics).to_string().as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }
}

/// Whether nothing was written, and the same write can be sent again.
fn is_refusal(error: &Error) -> bool {
    error.retryable() && error.outcome == heatsink_dynamo::Outcome::NotDone
}

/// Members of an answer; `null` for one that is absent.
fn members<const N: usize>(body: &[u8], names: [&str; N]) -> Result<[Json; N], Error> {
    let found = json::attributes_of(body, names).map_err(|Malformed| unreadable(OPERATION))?;
    Ok(found.map(|raw| raw.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default()))
}
