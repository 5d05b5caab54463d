//! Looks for the items that a request names, then plans it with their places known.
//!
//! A write whose condition failed at a place where the item was found, and is no more, looks again.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh, Projection};
use heatsink_dynamo::json;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{LayoutSource, Table};
use serde_json::Value as Json;

use super::several;
use super::source::{Found, Named, Places};
use super::tokens::Retry;
use crate::counter::single_capacity;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::refusal::own;
use crate::request::{Request, malformed, quoted};
use crate::rows::fetch::{Fetch, add};
use crate::rows::keys;
use crate::{Execution, Outlook, PhysicalCall, Router, Step, partiql};

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
            retry: token.map(|token| Retry::new(&token, request.body, layouts.now())),
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
    fn execute(self: Box<Self>) -> Box<dyn Execution> {
        let known = self.retry.as_ref().and_then(|retry| self.router.tokens.get(retry, &self.named));
        let state = match known {
            Some(places) => State::Planning(places),
            None => State::Starting,
        };
        Box::new(Seeking {
            plan: *self,
            state,
            attempts: 0,
            refused: None,
            capacity: Vec::new(),
            failed: None,
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

/// Such a request under way.
struct Seeking {
    plan: Seek,
    state: State,
    /// How often it was carried out.
    attempts: u32,
    /// The error of the last time, if that may be because an item has moved.
    refused: Option<(Error, Places)>,
    /// What looking consumed, by table.
    capacity: Vec<Json>,
    failed: Option<Error>,
}

enum State {
    Starting,
    Looking(Vec<(Arc<Table>, Fetch)>),
    Planning(Places),
    Running(Box<dyn Execution>, Places),
    /// The cursor is refused with this error, unless the store has words of its own for it.
    Refusing(Error),
    Over,
}

impl Seeking {
    fn next(&mut self) -> Result<Step, Error> {
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            match &mut self.state {
                State::Starting => self.state = State::Looking(self.plan.fetches()?),
                State::Looking(fetches) => {
                    let mut calls = Vec::new();
                    for (at, (_, fetch)) in fetches.iter_mut().enumerate() {
                        fetch.settle()?;
                        calls.extend(
                            fetch
                                .calls()
                                .into_iter()
                                .map(|call| PhysicalCall { id: at * CALLS + call.id, ..call }),
                        );
                    }
                    if !calls.is_empty() {
                        return Ok(Step::Call(calls));
                    }
                    let places = match self.places() {
                        Err(error)
                            if self.plan.cursor && self.plan.operation != Operation::ExecuteStatement =>
                        {
                            self.state = State::Refusing(error);
                            let body = json::splice_members(&self.plan.body, &[("Limit", Some(b"1"))]);
                            let body = body.map_or_else(|_| self.plan.body.clone(), Bytes::from);
                            let operation = self.plan.operation;
                            return Ok(Step::Call(vec![PhysicalCall {
                                id: 0,
                                operation,
                                body,
                                retry_throttled: true,
                            }]));
                        }
                        places => places?,
                    };
                    if let Some((error, before)) = self.refused.take()
                        && before == places
                    {
                        return Err(error);
                    }
                    self.state = State::Planning(places);
                }
                State::Planning(places) => {
                    let places = std::mem::take(places);
                    self.attempts += 1;
                    if self.attempts > ATTEMPTS {
                        return Err(Error::unavailable(
                            "An item was moved again and again while it was written to; nothing was written. Try again",
                            Outcome::NotDone,
                        ));
                    }
                    if let Some(retry) = &self.plan.retry {
                        self.plan.router.tokens.put(retry, &places);
                    }
                    let found = Found { inner: Arc::clone(&self.plan.layouts), places: places.clone() };
                    let request = Request::read(&self.plan.body)?;
                    let table = self.plan.named.first().and_then(|one| self.plan.layouts.table(&one.table));
                    let table = table.ok_or_else(malformed)?;
                    let plan = self.plan.router.plan_noting(self.plan.operation, &request, &table, &found)?;
                    self.state = State::Running(plan.execute(), places);
                }
                State::Running(running, places) => match running.step() {
                    Step::Call(calls) => return Ok(Step::Call(calls)),
                    Step::Done(Ok(body)) => {
                        let body = self.with_capacity(body);
                        return Ok(Step::Done(Ok(body)));
                    }
                    Step::Done(Err(error)) => {
                        if let Some(retry) =
                            self.plan.retry.as_ref().filter(|_| error.outcome != Outcome::Unknown)
                        {
                            self.plan.router.tokens.forget(retry);
                        }
                        if !guarded(&error) || places.values().all(Option::is_none) {
                            return Err(error);
                        }
                        self.refused = Some((error, std::mem::take(places)));
                        self.state = State::Starting;
                    }
                },
                State::Refusing(error) => return Err(error.clone()),
                State::Over => return Err(Error::internal("A plan that was done was asked for more")),
            }
        }
    }

    /// Where the items were found.
    fn places(&mut self) -> Result<Places, Error> {
        let State::Looking(fetches) = std::mem::replace(&mut self.state, State::Over) else {
            return Ok(Places::new());
        };
        let mut places = Places::new();
        for one in &self.plan.named {
            let Some((table, fetch)) = fetches.iter().find(|(table, _)| table.name == one.table) else {
                continue;
            };
            let found = fetch.parts(&one.identity).map_or(&[][..], |parts| parts.rows.as_slice());
            let slot = match found {
                [] if self.plan.cursor => return Err(lost(table)),
                [] => None,
                [(slot, _)] => Some(*slot),
                _ if self.plan.cursor => return Err(lost(table)),
                found => return Err(several(table, found.iter().map(|(slot, _)| *slot))),
            };
            places.insert((one.table.clone(), one.identity.clone()), slot);
        }
        self.capacity.extend(fetches.into_iter().filter_map(|(_, fetch)| fetch.capacity));
        Ok(places)
    }

    /// The answer, with what looking consumed in what it says it consumed.
    fn with_capacity(&mut self, body: Bytes) -> Bytes {
        let consumed = json::member(&body, "ConsumedCapacity").ok().flatten();
        let Some(mut consumed) = consumed.and_then(|raw| serde_json::from_slice::<Json>(raw).ok()) else {
            return body;
        };
        for more in self.capacity.drain(..) {
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
}

/// Whether an error may be that of a condition that an item is where it was found.
fn guarded(error: &Error) -> bool {
    let reasons = error.members.get("CancellationReasons").and_then(Json::as_array);
    error.code == Code::ConditionalCheckFailedException
        || reasons.into_iter().flatten().any(|reason| reason["Code"] == "ConditionalCheckFailed")
}

/// The refusal of a cursor that does not say where it stands, and whose item does not either.
fn lost(table: &Table) -> Error {
    own(format!(
        "The provided starting key does not say in which shard of table {} it stands, and there is not exactly one item with its primary \
         key: the rule's shards are drawn at random (hash = \"random\"). Hand LastEvaluatedKey back with all its attributes",
        table.name
    ))
}

impl Execution for Seeking {
    fn step(&mut self) -> Step {
        self.next().unwrap_or_else(|error| Step::Done(Err(error)))
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        match &mut self.state {
            State::Running(running, _) => running.answer(id, answer),
            State::Looking(fetches) => {
                let fetch = fetches.get_mut(id / CALLS).map(|(_, fetch)| fetch);
                if let Some(Err(mut error)) = fetch.map(|fetch| fetch.take(answer)) {
                    error.outcome = Outcome::NotDone;
                    self.failed.get_or_insert(error);
                }
            }
            State::Refusing(refusal) => {
                if let Err(error) = answer {
                    *refusal = error;
                }
            }
            State::Starting | State::Planning(_) | State::Over => {}
        }
    }

    fn outlook(&self) -> Outlook {
        match &self.state {
            State::Running(running, _) => running.outlook(),
            _ => Outlook::default(),
        }
    }

    fn missing(&mut self) -> Vec<String> {
        match &mut self.state {
            State::Running(running, _) => running.missing(),
            _ => Vec::new(),
        }
    }
}
