//! Brings an item from its old slot to its new one, so that a write which depends on it finds it
//! there: runs [`Write`] over calls, up to the client's own.
//!
//! Not here: which call is next (`heatsink_reshard`).

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{MARKED, MOVED, Table};
use heatsink_reshard::{PullAnswer, PullCall, Side, Write, WriteAnswer, WriteCall, WriteStep};
use serde_json::Value as Json;

use crate::fragments::transaction::error as of_one_write;
use crate::plan::{CallExplanation, Explanation, Kind, Planned};
use crate::request::quoted;
use crate::{Answer, Calls, PhysicalCall};

/// How often a pull meets others, and begins anew, before the client
/// is told. To the protocol it is a client that gives up: nothing of its own request was sent.
const ATTEMPTS: u32 = 16;

/// An item that is to be brought to its new slot.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    write: Write<Bytes>,
    /// The table's name, as a JSON string.
    table: Vec<u8>,
    /// Its partition key.
    partition: String,
    /// The raw physical keys.
    to: Bytes,
    from: Bytes,
    /// Whether the old copy is marked before it is deleted.
    marks: bool,
}

/// What came of a transaction of a pull.
enum Sent {
    Done,
    /// The condition of the action at this place does not hold, and of none before it.
    Refused(usize),
    /// Another transaction was there at the same time.
    Conflict,
}

impl Pull {
    pub(super) fn new(table: &Table, [to, from]: [Bytes; 2], marks: bool, write: Write<Bytes>) -> Self {
        let partition = table.key.partition.name.clone();
        Pull { write, table: quoted(&table.name), partition, to, from, marks }
    }

    fn read_of(&self, key: &[u8]) -> Bytes {
        let mut get = Object::new();
        get.raw("TableName", &self.table).raw("Key", key).raw("ConsistentRead", b"true");
        Bytes::from(get.finish())
    }

    /// Sends what has to be sent before the client's own write.
    ///
    /// # Errors
    /// The store's, with nothing of the client's request done.
    async fn run(&self, calls: &mut dyn Calls) -> Result<(), Error> {
        let mut write = self.write.clone();
        let mut too_large = None;
        let mut met = 0;
        loop {
            let answer = match write.step() {
                // The plan's own call goes to the new slot, without a guard.
                WriteStep::Send(WriteCall::Own { side: Side::New, guard: None }) => return Ok(()),
                WriteStep::TooLarge | WriteStep::Wait | WriteStep::Send(WriteCall::Own { .. }) => {
                    return Err(too_large.unwrap_or_else(met_others));
                }
                WriteStep::Send(WriteCall::Pull(PullCall::Read)) => {
                    PullAnswer::Read(self.item(calls, &self.from).await?)
                }
                WriteStep::Send(WriteCall::Pull(PullCall::Copy { item, .. })) => {
                    match self.transact(calls, self.copy(&item).map_err(unreadable)?).await {
                        Ok(Sent::Done) => PullAnswer::Done,
                        Ok(Sent::Refused(0)) => self.mark_left(calls, &item).await?,
                        Ok(Sent::Refused(_)) => PullAnswer::OldGone,
                        Ok(Sent::Conflict) => PullAnswer::Met,
                        // The store looks at its size first, whatever lies there.
                        Err(error) if is_too_large(&error) => match self.item(calls, &self.to).await? {
                            Some(_) => PullAnswer::NewExists,
                            None => {
                                too_large = Some(error);
                                PullAnswer::TooLarge
                            }
                        },
                        Err(error) => return Err(in_own_words(error)),
                    }
                }
                WriteStep::Send(WriteCall::Pull(PullCall::Clear { .. })) => {
                    match self.transact(calls, self.delete()).await.map_err(in_own_words)? {
                        Sent::Done => PullAnswer::Done,
                        Sent::Refused(_) => PullAnswer::NewGone,
                        Sent::Conflict => PullAnswer::Met,
                    }
                }
            };
            if matches!(answer, PullAnswer::OldGone | PullAnswer::NewGone | PullAnswer::Met) {
                met += 1;
                if met == ATTEMPTS {
                    return Err(met_others());
                }
            }
            write.answered(WriteAnswer::Pull(answer));
        }
    }

    /// Of an item that a client has put into the new slot the old copy is marked by itself.
    async fn mark_left(&self, calls: &mut dyn Calls, item: &[u8]) -> Result<PullAnswer<Bytes>, Error> {
        if !self.marks || item.len() > MARKED {
            return Ok(PullAnswer::NewExists);
        }
        match self.transact(calls, [self.check(&self.to), self.mark()]).await.map_err(in_own_words)? {
            // Where one of them is gone, the deletion of the old copy meets that too.
            Sent::Done | Sent::Refused(_) => Ok(PullAnswer::NewExists),
            Sent::Conflict => Ok(PullAnswer::Met),
        }
    }

    /// The item under one of the two keys, read consistently.
    async fn item(&self, calls: &mut dyn Calls, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let answer = self.call(calls, Operation::GetItem, self.read_of(key)).await?;
        let item = json::member(&answer, "Item").map_err(unreadable)?;
        Ok(item.map(|item| answer.slice_ref(item)))
    }

    /// Puts the item into its new slot, if none is there and the old one still is, which is marked
    /// where readers of a stream are to know.
    fn copy(&self, item: &[u8]) -> Result<[Vec<u8>; 2], Malformed> {
        let partition = json::member(&self.to, &self.partition)?.ok_or(Malformed)?;
        let marks = self.marks && item.len() <= MARKED;
        // Another pull may have marked it.
        let item = json::splice_members(item, &[(&self.partition, Some(partition)), (MOVED, None)])?;
        let put = self.action("Put", ("Item", &item), "attribute_not_exists");
        Ok([put, if marks { self.mark() } else { self.check(&self.from) }])
    }

    /// Deletes the item in its old slot, if the new one is there.
    fn delete(&self) -> [Vec<u8>; 2] {
        [self.check(&self.to), self.action("Delete", ("Key", &self.from), "")]
    }

    fn check(&self, key: &[u8]) -> Vec<u8> {
        self.action("ConditionCheck", ("Key", key), "attribute_exists")
    }

    /// Marks the item in its old slot, if it is there.
    fn mark(&self) -> Vec<u8> {
        let mut names = Object::new();
        names.raw("#p", &quoted(&self.partition)).raw("#m", &quoted(MOVED));
        let mut action = Object::new();
        action.raw("TableName", &self.table).raw("Key", &self.from);
        action.raw("ConditionExpression", &quoted("attribute_exists(#p)"));
        action.raw("UpdateExpression", &quoted("SET #m = :m"));
        action.raw("ExpressionAttributeNames", &names.finish());
        action.raw("ExpressionAttributeValues", br#"{":m":{"BOOL":true}}"#);
        let mut element = Object::new();
        element.raw("Update", &action.finish());
        element.finish()
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

    async fn transact(&self, calls: &mut dyn Calls, actions: [Vec<u8>; 2]) -> Result<Sent, Error> {
        let mut body = Object::new();
        body.raw("TransactItems", &[&b"["[..], &actions[0], b",", &actions[1], b"]"].concat());
        let body = Bytes::from(body.finish());
        match self.call(calls, Operation::TransactWriteItems, body).await {
            Ok(_) => Ok(Sent::Done),
            Err(error) => cancelled(&error).ok_or(error),
        }
    }

    async fn call(&self, calls: &mut dyn Calls, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let call = PhysicalCall { retry_throttled: true, ..PhysicalCall::only(operation, body) };
        calls.one(call).await.map_err(|mut error| {
            // The client's own request is not sent. Whether the item was moved is nothing to the
            // client.
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
    if error.code != Code::TransactionCanceledException {
        return error;
    }
    let said = format!(
        "The item is being moved to another shard, and the store refused that: {error}. Nothing was written; try again"
    );
    match of_one_write(error) {
        // Clients slow down where they are told so.
        throttled if throttled.is_throttled() => Error::new(throttled.code, said),
        _ => Error::unavailable(said, Outcome::NotDone),
    }
}

/// Why a transaction was cancelled, if that is what the error says.
fn cancelled(error: &Error) -> Option<Sent> {
    match error.code {
        Code::TransactionConflictException => return Some(Sent::Conflict),
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
        .map(Sent::Refused)
        .or_else(|| with("TransactionConflict").map(|_| Sent::Conflict))
}

fn met_others() -> Error {
    Error::unavailable(
        "The item is being moved to another shard, and was met there by others again and again. Nothing was written; try again",
        Outcome::NotDone,
    )
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
        let reads =
            self.pulls.iter().map(|pull| CallExplanation::new(Operation::GetItem, &pull.read_of(&pull.from)));
        explanation.calls.splice(0..0, reads);
        explanation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_to_slow_down_where_a_pull_is_throttled() {
        let told = |reasons: &[&str]| {
            let reasons: Vec<Json> = reasons.iter().map(|code| serde_json::json!({ "Code": code })).collect();
            let mut error = Error::new(Code::TransactionCanceledException, "cancelled");
            error.members.insert("CancellationReasons".to_owned(), reasons.into());
            let told = in_own_words(error);
            assert!(
                told.outcome == Outcome::NotDone && told.to_string().contains("is being moved"),
                "{told}"
            );
            told.code
        };
        assert_eq!(
            told(&["None", "ProvisionedThroughputExceeded"]),
            Code::ProvisionedThroughputExceededException
        );
        assert_eq!(told(&["ThrottlingError", "None"]), Code::ThrottlingException);
        assert_eq!(told(&["None", "AccessDenied"]), Error::unavailable("", Outcome::NotDone).code);
    }
}
