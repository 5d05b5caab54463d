//! SELECTs of items that change their slot, in a batch or a transaction: each is sent for both
//! slots.
//!
//! A batch is sent for the new slots, then what was not found for the old ones, then for the new
//! ones again, consistently; what is in the new slot counts. A transaction reads both at once.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Operation, Outcome};

use crate::answer::unreadable;
use crate::capacity::{Capacity, add_by_table, listed};
use crate::dry_run::explained;
use crate::items::fetch::list;
use crate::plan::{Explanation, Finish, Kind, Plan, Planned};
use crate::request::{malformed, set_members};
use crate::{Answer, Calls, PhysicalCall};

/// The most statements of a transaction (AWS API reference, `ExecuteTransaction`).
const MOST: usize = 100;

/// The plan of statements for the new slots, `body`, some of which are others for the old ones,
/// `old`. `member` holds them.
///
/// # Errors
/// `ServiceUnavailable` where both are too many for one transaction.
pub(super) fn plan(
    operation: Operation,
    member: &'static str,
    body: Bytes,
    old: &Bytes,
    finish: Finish,
) -> Result<Plan, Error> {
    let elements = |body: &Bytes| {
        let raw = json::member(body, member)?.ok_or(Malformed)?;
        Ok(json::elements(raw)?.into_iter().map(|element| body.slice_ref(element)).collect::<Vec<_>>())
    };
    let read = |body| elements(body).map_err(|Malformed| malformed());
    let (mut new, old) = (read(&body)?, read(old)?);
    let pairs = new.iter_mut().zip(old).enumerate().filter(|(_, (new, old))| *new != old);
    let mut twice = Vec::new();
    for (place, (new, old)) in pairs {
        let mut old = old;
        if operation == Operation::BatchExecuteStatement {
            for one in [&mut *new, &mut old] {
                *one = set_members(one, &vec![("ConsistentRead", Some(b"true".to_vec()))])?;
            }
        }
        twice.push(Twice { place, new: new.clone(), old });
    }
    if operation == Operation::ExecuteTransaction && new.len() + twice.len() > MOST {
        return Err(Error::unavailable(
            format!(
                "{} statements of the transaction read items that are being moved to other shards, for which two are needed each, and a transaction \
                 has at most {MOST}. Nothing was read; use fewer statements, or try again",
                twice.len()
            ),
            Outcome::NotDone,
        ));
    }
    Ok(Plan::Scatter(Box::new(Both { operation, member, body, new, twice, finish })))
}

/// A statement that is sent for both slots.
struct Twice {
    /// Its place among the statements.
    place: usize,
    new: Bytes,
    old: Bytes,
}

struct Both {
    operation: Operation,
    member: &'static str,
    body: Bytes,
    /// The statements, for the new slots.
    new: Vec<Bytes>,
    twice: Vec<Twice>,
    finish: Finish,
}

/// What a call answered.
#[derive(Default)]
struct Answered {
    responses: Vec<Bytes>,
    capacity: Vec<Capacity>,
}

impl Planned for Both {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let body = self.read(calls).await.map(|read| read.body());
            (self.finish)(body).map(Answer::from)
        })
    }

    fn explain(&self) -> Explanation {
        let why = "items of the statements are being moved to other shards: they are read in their new slots and in their old ones; what is in the new \
                   ones counts";
        let calls = explained(async |calls| drop(self.read(calls).await));
        Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
    }
}

impl Both {
    async fn read(&self, calls: &mut dyn Calls) -> Result<Answered, Error> {
        match self.operation {
            Operation::ExecuteTransaction => self.at_once(calls).await,
            _ => self.one_after_the_other(calls).await,
        }
    }

    async fn one_after_the_other(&self, calls: &mut dyn Calls) -> Result<Answered, Error> {
        let mut all = self.call(calls, self.new.iter()).await?;
        let lacks = |one: &&Twice| all.responses.get(one.place).is_some_and(is_empty);
        let missing: Vec<&Twice> = self.twice.iter().filter(lacks).collect();
        if missing.is_empty() {
            return Ok(all);
        }
        for new in [false, true] {
            let statements = missing.iter().map(|one| if new { &one.new } else { &one.old });
            let again = self.call(calls, statements).await?;
            again.capacity.iter().for_each(|cost| add_by_table(&mut all.capacity, cost));
            for (one, response) in missing.iter().zip(again.responses) {
                if let Some(place) = all.responses.get_mut(one.place).filter(|_| !is_empty(&response)) {
                    *place = response;
                }
            }
        }
        Ok(all)
    }

    async fn at_once(&self, calls: &mut dyn Calls) -> Result<Answered, Error> {
        let statements = self.new.iter().chain(self.twice.iter().map(|one| &one.old));
        let mut all = self.call(calls, statements).await?;
        let old = all.responses.split_off(self.new.len().min(all.responses.len()));
        for (one, response) in self.twice.iter().zip(old) {
            if let Some(place) = all.responses.get_mut(one.place).filter(|place| is_empty(place)) {
                *place = response;
            }
        }
        Ok(all)
    }

    fn with<'s>(&self, statements: impl Iterator<Item = &'s Bytes>) -> Result<Bytes, Error> {
        let statements: Vec<&[u8]> = statements.map(|one| &**one).collect();
        set_members(&self.body, &vec![(self.member, Some(list(&statements)))])
    }

    async fn call<'s>(
        &self,
        calls: &mut dyn Calls,
        statements: impl Iterator<Item = &'s Bytes>,
    ) -> Result<Answered, Error> {
        let call = PhysicalCall::only(self.operation, self.with(statements)?);
        let body = calls.one(PhysicalCall { retry_throttled: true, ..call }).await;
        let body = body.map_err(|error| self.without_added(error))?;
        Answered::read(&body).map_err(|Malformed| unreadable(self.operation))
    }

    /// A cancelled transaction with a reason for each of the client's statements.
    fn without_added(&self, error: Error) -> Error {
        let Some(serde_json::Value::Array(mut reasons)) = error.members.get("CancellationReasons").cloned()
        else {
            return error;
        };
        reasons.truncate(self.new.len());
        error.with("CancellationReasons", serde_json::Value::Array(reasons))
    }
}

impl Answered {
    fn read(body: &Bytes) -> Result<Self, Malformed> {
        let [responses, capacity] = json::attributes_of(body, ["Responses", "ConsumedCapacity"])?;
        let responses = json::elements(responses.filter(|raw| *raw != b"null").unwrap_or(b"[]"))?;
        Ok(Answered {
            responses: responses.into_iter().map(|response| body.slice_ref(response)).collect(),
            capacity: capacity.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default(),
        })
    }

    fn body(&self) -> Bytes {
        let responses: Vec<&[u8]> = self.responses.iter().map(|one| &**one).collect();
        let mut body = Object::new();
        body.raw("Responses", &list(&responses));
        if !self.capacity.is_empty() {
            body.raw("ConsumedCapacity", &listed(&self.capacity));
        }
        Bytes::from(body.finish())
    }
}

/// Whether a response holds neither an item nor an error.
fn is_empty(response: &Bytes) -> bool {
    let holds = |name| json::member(response, name).ok().flatten().is_some_and(|raw| raw != b"null");
    !holds("Item") && !holds("Error")
}
