//! Looks for the items that a request names, then plans it with their places known.
//!
//! A write whose condition failed at a place where the item was found, and is no more, looks again.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Fresh, Projection};
use heatsink_dynamo::json;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{LayoutSource, Table};
use serde_json::Value as Json;

use super::several;
use super::tokens::Retry;
use crate::capacity::{add, single_capacity};
use crate::context::{Named, Places};
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::{Request, malformed, quoted};
use crate::rows::fetch::Fetch;
use crate::rows::keys;
use crate::{Answer, Calls, PhysicalCall, Router, partiql};

/// How often a write is sent to an item that has moved meanwhile, before the client is told.
const ATTEMPTS: u32 = 8;

/// Keeps the numbers of one look's calls apart from another's.
const CALLS: usize = 1 << 16;

/// A request that names items whose places have to be found.
pub(super) struct Seek {
    router: Router,
    operation: Operation,
    body: Bytes,
    layouts: Arc<dyn LayoutSource>,
    named: Vec<Named>,
    /// Whether what is named is where a read goes on.
    cursor: bool,
    report: Option<Vec<u8>>,
    retry: Option<Retry>,
    /// The plan with every item at home.
    likely: Plan,
}

impl Seek {
    pub(super) fn new(
        router: &Router,
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
        let seek = Seek {
            router: router.clone(),
            operation,
            body: request.body.clone(),
            layouts: layouts.handle(),
            named,
            cursor,
            report: request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec),
            retry: token.map(|token| Retry::new(&token, request.body, router.now())),
            likely,
        };
        // What cannot be asked for is refused before anything is.
        seek.look().map(|_| seek)
    }

    /// Reads of the keys of all places where the items can lie, one for each table.
    fn look(&self) -> Result<Vec<Look>, Error> {
        let mut looks: Vec<Look> = Vec::new();
        for one in &self.named {
            let Some(table) = self.layouts.table(&one.table) else { return Err(malformed()) };
            let keys = keys::keys(&table, &one.layout, &one.key)?;
            match looks.iter_mut().find(|look| look.table.name == table.name) {
                Some(look) => look.keys.extend(keys),
                None => looks.push(Look { table, keys }),
            }
        }
        Ok(looks)
    }

    fn fetches(&self) -> Result<Vec<(Arc<Table>, Fetch)>, Error> {
        let fetch = |look: Look| {
            let mut fresh = Fresh::avoiding(&Bindings::default());
            let mut projection = Projection::default();
            for name in look.table.key.names() {
                projection.add_root(name);
            }
            let text = quoted(&projection.render(&mut fresh));
            let mut options = vec![("ConsistentRead", b"true".to_vec()), ("ProjectionExpression", text)];
            if let (Some(names), _) = Bindings::default().rewritten(&[], &fresh) {
                options.push(("ExpressionAttributeNames", names));
            }
            let name = quoted(&look.table.name);
            let fetch = Fetch::new(&look.table, name, options, self.report.clone(), look.keys);
            (look.table, fetch)
        };
        Ok(self.look()?.into_iter().map(fetch).collect())
    }
}

struct Look {
    table: Arc<Table>,
    keys: Vec<Bytes>,
}

impl Planned for Seek {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let mut looked = Vec::new();
            let answer = self.carry_out(calls, &mut looked).await?;
            Ok(Answer { body: with_capacity(answer.body, looked), ..answer })
        })
    }

    fn explain(&self) -> Explanation {
        let likely = self.likely.explain();
        let mut calls = Vec::new();
        for (_, fetch) in self.fetches().unwrap_or_default() {
            calls.extend(
                fetch.bodies().iter().map(|body| CallExplanation::new(Operation::BatchGetItem, body)),
            );
        }
        calls.extend(likely.calls);
        let why = format!(
            "the rule's shards are drawn at random, so that where an item lies does not follow from its key: it is looked for in all of them, \
             by consistent reads; the calls behind those are for items that are nowhere yet, and others go where they were found, on \
             condition that they are still there: {}",
            likely.why
        );
        Explanation { plan: Kind::Scatter, why, calls }
    }
}

impl Seek {
    /// Looks, and carries the request out, until it meets no item that has moved meanwhile. `looked` is what looking consumes.
    async fn carry_out(&self, calls: &mut dyn Calls, looked: &mut Vec<Json>) -> Result<Answer, Error> {
        let mut known = self.retry.as_ref().and_then(|retry| self.router.tokens.get(retry, &self.named));
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
                        self.router.tokens.forget(retry);
                    }
                    if !guarded(&error) || places.values().all(Option::is_none) {
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
            self.router.tokens.put(retry, places);
        }
        let request = Request::read(&self.body)?;
        let table = self.named.first().and_then(|one| self.layouts.table(&one.table));
        let table = table.ok_or_else(malformed)?;
        let planned = self.router.plan_at(self.operation, &request, &table, &*self.layouts, Some(places));
        planned.map(|(plan, _)| plan)
    }

    /// Looks for the items.
    async fn seek(&self, calls: &mut dyn Calls, looked: &mut Vec<Json>) -> Result<Places, Error> {
        let mut fetches = self.fetches()?;
        loop {
            let mut round: Vec<PhysicalCall> = Vec::new();
            for (at, (_, fetch)) in fetches.iter_mut().enumerate() {
                let calls = fetch.calls()?.into_iter();
                round.extend(calls.map(|call| PhysicalCall { id: at * CALLS + call.id, ..call }));
            }
            if round.is_empty() {
                break;
            }
            let mut take = |id: usize, answer| {
                let taken = fetches.get_mut(id / CALLS).map_or(Ok(()), |(_, fetch)| fetch.take(answer));
                taken.map_err(not_done)
            };
            calls.round(round.into(), &mut take).await?;
        }
        let places = match self.places(&fetches) {
            Err(error) if self.cursor && self.operation != Operation::ExecuteStatement => {
                return Err(self.refusal(calls, error).await);
            }
            places => places?,
        };
        looked.extend(fetches.into_iter().filter_map(|(_, fetch)| fetch.capacity));
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
    fn places(&self, fetches: &[(Arc<Table>, Fetch)]) -> Result<Places, Error> {
        let mut places = Places::new();
        for one in &self.named {
            let Some((table, fetch)) = fetches.iter().find(|(table, _)| table.name == one.table) else {
                continue;
            };
            let found = fetch.parts(&one.identity).map_or(&[][..], |parts| parts.rows.as_slice());
            let slot = match found {
                [] if self.cursor => return Err(lost(table)),
                [] => None,
                [(slot, _)] => Some(*slot),
                _ if self.cursor => return Err(lost(table)),
                found => return Err(several(table, found.iter().map(|(slot, _)| *slot))),
            };
            places.insert((one.table.clone(), one.identity.clone()), slot);
        }
        Ok(places)
    }
}

/// An answer, with what looking consumed in what it says it consumed.
fn with_capacity(body: Bytes, looked: Vec<Json>) -> Bytes {
    let consumed = json::member(&body, "ConsumedCapacity").ok().flatten();
    let Some(mut consumed) = consumed.and_then(|raw| serde_json::from_slice::<Json>(raw).ok()) else {
        return body;
    };
    for more in looked {
        match &mut consumed {
            Json::Array(tables) => {
                match tables.iter_mut().find(|one| one["TableName"] == more["TableName"]) {
                    Some(one) => add(one, single_capacity(more)),
                    None => tables.push(more),
                }
            }
            one => add(one, single_capacity(more)),
        }
    }
    let text = consumed.to_string();
    json::splice_members(&body, &[("ConsumedCapacity", Some(text.as_bytes()))]).map_or(body, Bytes::from)
}

/// An error of looking: the client's own request was not sent.
fn not_done(mut error: Error) -> Error {
    error.outcome = Outcome::NotDone;
    error
}

/// Whether an error may be that of a condition that an item is where it was found.
fn guarded(error: &Error) -> bool {
    let reasons = error.members.get("CancellationReasons").and_then(Json::as_array);
    error.code == Code::ConditionalCheckFailedException
        || reasons.into_iter().flatten().any(|reason| reason["Code"] == "ConditionalCheckFailed")
}

/// The refusal of a cursor that does not say where it stands, and whose item does not either.
fn lost(table: &Table) -> Error {
    Error::gateway_rejection(format!(
        "The provided starting key does not say in which shard of table {} it stands, and there is not exactly one item with its primary \
         key: the rule's shards are drawn at random (hash = \"random\"). Hand LastEvaluatedKey back with all its attributes",
        table.name
    ))
}
