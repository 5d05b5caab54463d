//! Brings an item, or some, to the new physical key, under the claim of its mover.
//!
//! Not here: which items are brought, and when (`mover`); fragments of counters (`fold`).

use heatsink_control::claim::{ClaimError, Written};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{MARKED, MOVED};
use heatsink_reshard::{Pull, PullAnswer, PullCall, Pulled, Rules};
use serde_json::{Value as Json, json};

use crate::error::WorkerError;
use crate::key::mover::Work;
use crate::key::patience::Patience;
use crate::key::place::Old;

impl Work<'_> {
    /// Pulls all of these: each goes through the steps of a pull of its own, at the same moment as the
    /// others. `false` where that was not possible, or nobody knows whether it was done: then each is
    /// to be pulled by itself, which begins with whatever is there.
    pub(super) async fn pull_together(&self, items: &[Old]) -> Result<bool, WorkerError> {
        let copies = items.iter().flat_map(|old| [self.copy(old), self.mark_or_check(&old.from, &old.item)]);
        if !self.all_done(copies.collect()).await? {
            return Ok(false);
        }
        let clear = |old: &Old| {
            let key = self.key.primary(&old.from, &old.item);
            let delete = json!({ "Delete": { "TableName": self.key.table.name, "Key": key } });
            [self.check(&old.to, &old.item, "attribute_exists(#p)"), delete]
        };
        self.all_done(items.iter().flat_map(clear).collect()).await
    }

    async fn all_done(&self, actions: Vec<Json>) -> Result<bool, WorkerError> {
        match self.claim.write_briefly(actions).await {
            Ok(written) => Ok(written == Written::Done),
            // The pull of the first one finds what it is.
            Err(ClaimError::TakenOver(_) | ClaimError::Store(_)) => Ok(false),
        }
    }

    /// Brings one item to its new physical key.
    pub(super) async fn pull(&self, old: Old) -> Result<Pulled, WorkerError> {
        let Old { item, from, to } = &old;
        let mut pull = Pull::of(item.clone(), Rules::ALL);
        let mut patience = Patience::new();
        let check = |physical: &Json| self.check(physical, item, "attribute_exists(#p)");
        loop {
            let answer = match pull.call() {
                PullCall::Read => PullAnswer::Read(self.stored(from, item).await?),
                PullCall::Copy { item: copy, .. } => {
                    let put = self.put(copy, to);
                    match self.write(vec![put, self.mark_or_check(from, item)], &mut patience).await? {
                        Sent::Done => PullAnswer::Done,
                        Sent::Refused(0) => self.mark_left(&old, &mut patience).await?,
                        Sent::Refused(_) => PullAnswer::OldGone,
                        // The store looks at its size first, whatever lies there.
                        Sent::Other(PullAnswer::TooLarge) if self.stored(to, item).await?.is_some() => {
                            PullAnswer::NewExists
                        }
                        Sent::Other(answer) => answer,
                    }
                }
                PullCall::Clear { .. } => {
                    let delete = json!({ "Delete": { "TableName": self.key.table.name, "Key": self.key.primary(from, item) } });
                    match self.write(vec![check(to), delete], &mut patience).await? {
                        Sent::Done => PullAnswer::Done,
                        Sent::Refused(_) => PullAnswer::NewGone,
                        Sent::Other(answer) => answer,
                    }
                }
            };
            if let Some(pulled) = pull.answered(answer) {
                return Ok(pulled);
            }
        }
    }

    /// The copy of an old item.
    fn copy(&self, old: &Old) -> Json {
        self.put(old.item.clone(), &old.to)
    }

    /// Puts an item under that physical key, if nothing is there.
    fn put(&self, mut copy: Json, to: &Json) -> Json {
        let partition = &self.key.table.key.partition.name;
        // Another pull may have marked it.
        copy.as_object_mut().and_then(|copy| copy.remove(MOVED));
        copy[partition] = to.clone();
        json!({ "Put": {
            "TableName": self.key.table.name, "Item": copy, "ConditionExpression": "attribute_not_exists(#p)",
            "ExpressionAttributeNames": { "#p": partition },
        } })
    }

    /// Of an item that a client has put into the new slot the old copy is marked by itself.
    async fn mark_left(&self, old: &Old, patience: &mut Patience) -> Result<PullAnswer<Json>, WorkerError> {
        let Old { item, from, to } = old;
        if !self.marks(item) {
            return Ok(PullAnswer::NewExists);
        }
        let is_new = self.check(to, item, "attribute_exists(#p)");
        match self.write(vec![is_new, self.mark_or_check(from, item)], patience).await? {
            // Where one of them is gone, the deletion of the old copy meets that too.
            Sent::Done | Sent::Refused(_) => Ok(PullAnswer::NewExists),
            Sent::Other(answer) => Ok(answer),
        }
    }

    /// Whether the old copy of an item is marked. One that the mark may make too long is not.
    fn marks(&self, item: &Json) -> bool {
        self.marks && item.to_string().len() <= MARKED
    }

    /// The old copy is there, and is marked where readers of a stream are to know.
    fn mark_or_check(&self, from: &Json, item: &Json) -> Json {
        if !self.marks(item) {
            return self.check(from, item, "attribute_exists(#p)");
        }
        json!({ "Update": {
            "TableName": self.key.table.name, "Key": self.key.primary(from, item),
            "ConditionExpression": "attribute_exists(#p)", "UpdateExpression": "SET #m = :m",
            "ExpressionAttributeNames": { "#p": self.key.table.key.partition.name, "#m": MOVED },
            "ExpressionAttributeValues": { ":m": { "BOOL": true } },
        } })
    }

    /// The check of an item, under that physical key.
    pub(super) fn check(&self, physical: &Json, item: &Json, condition: &str) -> Json {
        json!({ "ConditionCheck": {
            "TableName": self.key.table.name, "Key": self.key.primary(physical, item), "ConditionExpression": condition,
            "ExpressionAttributeNames": { "#p": self.key.table.key.partition.name },
        } })
    }

    /// The item as it is stored under that physical key, strongly consistent.
    pub(super) async fn stored(&self, physical: &Json, item: &Json) -> Result<Option<Json>, WorkerError> {
        let key = self.key.primary(physical, item);
        let body = json!({ "TableName": self.key.table.name, "Key": key, "ConsistentRead": true });
        let mut answer = self.registry.call_patiently(Operation::GetItem, body).await?;
        Ok(answer.get_mut("Item").map(Json::take))
    }

    /// One transaction under the claim.
    async fn write(&self, actions: Vec<Json>, patience: &mut Patience) -> Result<Sent, WorkerError> {
        match self.claim.write(actions).await {
            Ok(Written::Done) => Ok(Sent::Done),
            Ok(Written::Refused(failed)) => Ok(Sent::Refused(failed.into_iter().min().unwrap_or(0))),
            Err(ClaimError::TakenOver(_)) => Ok(Sent::Other(PullAnswer::ClaimGone)),
            Err(ClaimError::Store(error)) if error.outcome == Outcome::Unknown => {
                patience.wait(&**self.registry.env(), error).await?;
                Ok(Sent::Other(PullAnswer::Again))
            }
            Err(ClaimError::Store(error)) if is_too_large(&error) => Ok(Sent::Other(PullAnswer::TooLarge)),
            Err(ClaimError::Store(error)) => Err(error.into()),
        }
    }
}

/// What came of a transaction.
enum Sent {
    Done,
    /// The condition of the action at this place does not hold, and of none before it.
    Refused(usize),
    Other(PullAnswer<Json>),
}

/// Whether the store says that an item is over 400 KB.
fn is_too_large(error: &Error) -> bool {
    error.code == Code::ValidationException
        && error.message.as_deref().is_some_and(|message| message.contains("Item size"))
}
