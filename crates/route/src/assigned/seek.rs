//! Locates the items that a request names, then plans the request with their locations known.
//!
//! A write whose condition failed in the slot where the item was found, because it is gone from
//! there, looks again.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{LayoutSource, Slot, Table};
use serde_json::Value as Json;

use crate::capacity::{Capacity, add_by_table, listed};
use crate::context::{Named, Places};
use crate::dry_run::first_round;
use crate::fragments;
use crate::items::fetch::{Fetch, FromTable, key_only};
use crate::items::only::only;
use crate::learned::tokens::Retry;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::{Request, malformed, quoted};
use crate::shared::Shared;
use crate::{Answer, Calls, PhysicalCall, partiql};

/// How often a write is sent to an item that has moved meanwhile, before the client is told.
const ATTEMPTS: u32 = 8;

/// A request that names items which have to be located.
pub(super) struct Seek {
    shared: Shared,
    operation: Operation,
    body: Bytes,
    layouts: Arc<dyn LayoutSource>,
    named: Vec<Named>,
    /// Whether what is named is where a read goes on.
    cursor: bool,
    /// The read of all slots in which the items can lie.
    look: Fetch,
    retry: Option<Retry>,
    /// The plan with every item in its hashed slot.
    likely: Plan,
}

impl Seek {
    pub(super) fn new(
        shared: &Shared,
        operation: Operation,
        request: &Request<'_>,
        layouts: &dyn LayoutSource,
        named: Vec<Named>,
        likely: Plan,
    ) -> Result<Self, Error> {
        let cursor = match operation {
            Operation::Query | Operation::Scan => true,
            Operation::ExecuteStatement => partiql::reads(request),
            _ => false,
        };
        let token = request.string("ClientRequestToken")?;
        let report = request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec);
        // What cannot be asked for is refused before anything is.
        let look = look(layouts, &named, report)?;
        Ok(Seek {
            shared: shared.clone(),
            operation,
            body: request.body.clone(),
            layouts: layouts.handle(),
            named,
            cursor,
            look,
            retry: token.map(|token| Retry::new(&token, request.body, shared.now())),
            likely,
        })
    }
}

/// A read of the keys in all slots in which the items can lie.
fn look(layouts: &dyn LayoutSource, named: &[Named], report: Option<Vec<u8>>) -> Result<Fetch, Error> {
    let mut tables: Vec<FromTable> = Vec::new();
    for one in named {
        let table = layouts.table(&one.table).ok_or_else(malformed)?;
        let keys = fragments::keys(&table, &one.layout, &one.placement, &one.key)?;
        match tables.iter_mut().find(|from| from.is_of(&table)) {
            Some(from) => from.pending.extend(keys),
            None => tables.push(FromTable::new(
                Some(Arc::clone(&table)),
                quoted(&table.name),
                key_only(&table),
                keys,
            )),
        }
    }
    Ok(Fetch::of(tables, report))
}

impl Planned for Seek {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let mut looked = Vec::new();
            let answer = self.carry_out(calls, &mut looked).await?;
            Ok(Answer { body: with_capacity(answer.body, &looked), ..answer })
        })
    }

    fn explain(&self) -> Explanation {
        let likely = self.likely.explain();
        let mut look = self.look.clone();
        let look = first_round(async |calls| drop(look.round(calls).await));
        let mut calls: Vec<CallExplanation> = look.iter().map(CallExplanation::from).collect();
        calls.extend(likely.calls);
        let why = format!(
            "other writers assign the rule's shards at random, so that where an item lies does not follow from its key: it is looked for in all of \
             them, by consistent reads; the calls behind those are for items that lie nowhere yet, and others go where the items were found, on \
             condition that they still exist there: {}",
            likely.why
        );
        Explanation { plan: Kind::Scatter, why, calls }
    }
}

impl Seek {
    /// Looks, and carries the request out, until it meets no item that has moved meanwhile.
    /// `looked` is what looking consumes.
    async fn carry_out(&self, calls: &mut dyn Calls, looked: &mut Vec<Capacity>) -> Result<Answer, Error> {
        let mut known = self.retry.as_ref().and_then(|retry| self.shared.tokens.get(retry, &self.named));
        let (mut refused, mut attempts): (Option<(Error, Places)>, u32) = (None, 0);
        loop {
            let places = match known.take() {
                Some(places) => places,
                None => self.seek(calls, looked).await?,
            };
            if let Some((error, before)) = refused.take()
                && before == places
            {
                return Err(error);
            }
            attempts += 1;
            if attempts > ATTEMPTS {
                return Err(Error::unavailable(
                    "An item was moved again and again while it was written to; nothing was written. Try again",
                    Outcome::NotDone,
                ));
            }
            match self.plan_at(&places)?.run(calls).await {
                Err(error) => {
                    if let Some(retry) = self.retry.as_ref().filter(|_| error.outcome != Outcome::Unknown) {
                        self.shared.tokens.forget(retry);
                    }
                    if !may_be_gone(&error) || places.values().all(Option::is_none) {
                        return Err(error);
                    }
                    refused = Some((error, places));
                }
                answer => return answer,
            }
        }
    }

    /// The plan of the request, of whose items it is known where they lie.
    fn plan_at(&self, places: &Places) -> Result<Plan, Error> {
        if let Some(retry) = &self.retry {
            self.shared.tokens.put(retry, places);
        }
        let request = Request::read(&self.body)?;
        let table = self.named.first().and_then(|one| self.layouts.table(&one.table));
        let table = table.ok_or_else(malformed)?;
        let planned = self.shared.plan_at(self.operation, &request, &table, &*self.layouts, Some(places));
        planned.map(|(plan, _)| plan)
    }

    /// Looks for the items.
    async fn seek(&self, calls: &mut dyn Calls, looked: &mut Vec<Capacity>) -> Result<Places, Error> {
        let mut look = self.look.clone();
        look.read_all(calls).await.map_err(not_done)?;
        let places = match self.places(&look) {
            Err(error) if self.cursor && self.operation != Operation::ExecuteStatement => {
                return Err(self.refusal(calls, error).await);
            }
            places => places?,
        };
        looked.extend(look.capacity);
        Ok(places)
    }

    /// The refusal of a cursor: the store's own, if it has one.
    async fn refusal(&self, calls: &mut dyn Calls, own: Error) -> Error {
        let body = json::splice_members(&self.body, &[("Limit", Some(b"1"))]);
        let body = body.map_or_else(|_| self.body.clone(), Bytes::from);
        let call = PhysicalCall { retry_throttled: true, ..PhysicalCall::only(self.operation, body) };
        calls.one(call).await.err().unwrap_or(own)
    }

    /// Where the items were found.
    fn places(&self, look: &Fetch) -> Result<Places, Error> {
        let mut places = Places::new();
        for one in &self.named {
            for from in &look.tables {
                let Some(table) = from.table.as_ref().filter(|table| table.name == one.table) else {
                    continue;
                };
                let found = from.parts(&one.identity).map_or(&[][..], |parts| parts.found.as_slice());
                if self.cursor && found.len() != 1 {
                    return Err(lost(table));
                }
                let found: Vec<(Slot, Slot)> = found.iter().map(|(slot, _)| (*slot, *slot)).collect();
                places.insert(one.item(), only(table, &found)?);
            }
        }
        Ok(places)
    }
}

/// An answer, with what looking consumed in what it says it consumed.
fn with_capacity(body: Bytes, looked: &[Capacity]) -> Bytes {
    let Some(consumed) = json::member(&body, "ConsumedCapacity").ok().flatten() else { return body };
    let text = if consumed.starts_with(b"[") {
        serde_json::from_slice(consumed).map(|mut tables: Vec<Capacity>| {
            looked.iter().for_each(|more| add_by_table(&mut tables, more));
            listed(&tables)
        })
    } else {
        serde_json::from_slice(consumed).map(|mut one: Capacity| {
            looked.iter().for_each(|more| one.add(more));
            one.all()
        })
    };
    let Ok(text) = text else { return body };
    json::splice_members(&body, &[("ConsumedCapacity", Some(&text))]).map_or(body, Bytes::from)
}

/// An error of looking: the client's own request was not sent.
fn not_done(mut error: Error) -> Error {
    error.outcome = Outcome::NotDone;
    error
}

/// Whether an error may be that of the condition that an item still exists where it was found.
fn may_be_gone(error: &Error) -> bool {
    let reasons = error.members.get("CancellationReasons").and_then(Json::as_array);
    error.code == Code::ConditionalCheckFailedException
        || reasons.into_iter().flatten().any(|reason| reason["Code"] == "ConditionalCheckFailed")
}

/// The refusal of a cursor that does not say where it stands, and whose item does not either.
fn lost(table: &Table) -> Error {
    Error::gateway_rejection(format!(
        "The provided starting key does not say in which shard of table {} it stands, and there is not exactly one item with its primary \
         key: other writers assign the rule's shards (hash = \"random\"). Hand LastEvaluatedKey back with all its attributes",
        table.name
    ))
}
