//! Brings an item from its old slot to its new one, so that a write which depends on it finds it there.
//!
//! Two transactions: the copy is made at the new slot unless one is there, then the old one is deleted since the new one is there. In one
//! transaction the item could be seen nowhere: readers are only read-committed against transactions.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::Table;
use serde_json::Value as Json;

use crate::plan::{CallExplanation, Explanation, Kind, Planned};
use crate::request::quoted;
use crate::{Answer, Calls, PhysicalCall};

/// How often a pull begins anew, because another one came first, before the client is told.
const ATTEMPTS: u32 = 16;

/// An item that is to be brought to its new slot.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    /// The table's name, as a JSON string.
    table: Vec<u8>,
    /// Its partition key.
    partition: String,
    /// The raw physical keys.
    to: Bytes,
    from: Bytes,
}

/// Why a transaction of a pull was not carried out.
enum Cancelled {
    /// The condition of the action with that place does not hold.
    Condition(usize),
    /// Another transaction was there at the same time.
    Conflict,
}

impl Pull {
    pub(super) fn new(table: &Table, to: Bytes, from: Bytes) -> Self {
        Pull { table: quoted(&table.name), partition: table.key.partition.name.clone(), to, from }
    }

    fn read(&self) -> Bytes {
        self.read_of(&self.from)
    }

    fn read_of(&self, key: &[u8]) -> Bytes {
        let mut get = Object::new();
        get.raw("TableName", &self.table).raw("Key", key).raw("ConsistentRead", b"true");
        Bytes::from(get.finish())
    }

    /// Brings the item to its new slot, if it is still in its old one.
    ///
    /// # Errors
    /// The store's, with nothing of the client's request done.
    async fn run(&self, calls: &mut dyn Calls) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let answer = self.call(calls, Operation::GetItem, self.read()).await?;
            let Some(item) = json::member(&answer, "Item").map_err(unreadable)? else { return Ok(()) };
            match self.transact(calls, self.copy(item).map_err(unreadable)?).await {
                // A copy is there already.
                Ok(Ok(()) | Err(Cancelled::Condition(0))) => {}
                Ok(Err(_)) => continue,
                // The store looks at its size first, whatever lies there.
                Err(error) if is_too_large(&error) => {
                    let there = self.call(calls, Operation::GetItem, self.read_of(&self.to)).await?;
                    if json::member(&there, "Item").map_err(unreadable)?.is_none() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(in_own_words(error)),
            }
            if self.transact(calls, self.delete()).await.map_err(in_own_words)?.is_ok() {
                return Ok(());
            }
        }
        Err(Error::unavailable(
            "The item is being moved to another shard, and was met there by others again and again. Nothing was written; try again",
            Outcome::NotDone,
        ))
    }

    /// Puts the item into its new slot, if none is there and the old one still is.
    fn copy(&self, item: &[u8]) -> Result<[Vec<u8>; 2], Malformed> {
        let partition = json::member(&self.to, &self.partition)?.ok_or(Malformed)?;
        let item = json::splice_members(item, &[(&self.partition, Some(partition))])?;
        let put = self.action("Put", ("Item", &item), "attribute_not_exists");
        Ok([put, self.action("ConditionCheck", ("Key", &self.from), "attribute_exists")])
    }

    /// Deletes the item in its old slot, if the new one is there.
    fn delete(&self) -> [Vec<u8>; 2] {
        let check = self.action("ConditionCheck", ("Key", &self.to), "attribute_exists");
        [check, self.action("Delete", ("Key", &self.from), "")]
    }

    fn action(&self, name: &str, (holder, object): (&str, &[u8]), condition: &str) -> Vec<u8> {
        let mut action = Object::new();
        action.raw("TableName", &self.table).raw(holder, object);
        if !condition.is_empty() {
            let mut names = Object::new();
            names.raw("#p", &quoted(&self.partition));
            action.raw("ConditionExpression", &quoted(&format!("{condition}(#p)")));
            action.raw("ExpressionAttributeNames", &names.finish());
        }
        let mut element = Object::new();
        element.raw(name, &action.finish());
        element.finish()
    }

    async fn transact(
        &self,
        calls: &mut dyn Calls,
        actions: [Vec<u8>; 2],
    ) -> Result<Result<(), Cancelled>, Error> {
        let mut body = Object::new();
        body.raw("TransactItems", &[&b"["[..], &actions[0], b",", &actions[1], b"]"].concat());
        let body = Bytes::from(body.finish());
        match self.call(calls, Operation::TransactWriteItems, body).await {
            Ok(_) => Ok(Ok(())),
            Err(error) => match cancelled(&error) {
                Some(cancelled) => Ok(Err(cancelled)),
                None => Err(error),
            },
        }
    }

    async fn call(&self, calls: &mut dyn Calls, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let call = PhysicalCall { retry_throttled: true, ..PhysicalCall::only(operation, body) };
        calls.one(call).await.map_err(|mut error| {
            // The client's own request is not sent. Whether the item was moved is nothing to the client.
            error.outcome = Outcome::NotDone;
            error
        })
    }
}

/// Whether the store refuses an item because it is over 400 KB with its longer key.
fn is_too_large(error: &Error) -> bool {
    let says = |message: &str| message.contains("Item size");
    let reasons = error.members.get("CancellationReasons").and_then(Json::as_array).into_iter().flatten();
    error.message.as_deref().is_some_and(says)
        || reasons.into_iter().any(|reason| reason["Message"].as_str().is_some_and(says))
}

/// The error of a pull for the client, whose own request has no such transaction.
fn in_own_words(error: Error) -> Error {
    match error.code {
        Code::TransactionCanceledException => Error::unavailable(
            format!(
                "The item is being moved to another shard, and the store refused that: {error}. Nothing was written; try again"
            ),
            Outcome::NotDone,
        ),
        _ => error,
    }
}

/// Why a transaction was cancelled, if that is what the error says.
fn cancelled(error: &Error) -> Option<Cancelled> {
    match error.code {
        Code::TransactionConflictException => return Some(Cancelled::Conflict),
        Code::TransactionCanceledException => {}
        _ => return None,
    }
    let reasons = error.members.get("CancellationReasons")?.as_array()?;
    let with = |code: &str| reasons.iter().position(|reason| reason["Code"].as_str() == Some(code));
    let known = |reason: &Json| {
        matches!(reason["Code"].as_str(), Some("None" | "ConditionalCheckFailed" | "TransactionConflict"))
    };
    if !reasons.iter().all(known) {
        return None;
    }
    with("ConditionalCheckFailed")
        .map(Cancelled::Condition)
        .or_else(|| with("TransactionConflict").map(|_| Cancelled::Conflict))
}

fn unreadable(_: Malformed) -> Error {
    crate::answer::unreadable(Operation::GetItem)
}

/// A plan that first brings items to their new slots.
pub(super) struct PullFirst {
    pub(super) pulls: Vec<Pull>,
    pub(super) then: Box<dyn Planned>,
}

impl Planned for PullFirst {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            for pull in &self.pulls {
                pull.run(calls).await?;
            }
            self.then.run(calls).await
        })
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.then.explain();
        explanation.plan = Kind::Scatter;
        explanation.why = format!(
            "the key is being moved to other shards: an item that is still in its old slot is brought to its new one first: {}",
            explanation.why
        );
        let reads = self.pulls.iter().map(|pull| CallExplanation::new(Operation::GetItem, &pull.read()));
        explanation.calls.splice(0..0, reads);
        explanation
    }
}
