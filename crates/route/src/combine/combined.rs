//! Writes of one item, in order, that become one request.

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Error, Operation};

use super::answers::{self, Member};
use super::attribute::{After, Attribute};
use super::read::{Asks, Capacity, Effect, ItemWrite, Values};
use super::{ATTRIBUTES, LOST};

/// Writes of one item that become one request.
#[derive(Clone, Debug)]
pub struct Combined {
    last: ItemWrite,
    members: Vec<Member>,
    attributes: Vec<Attribute>,
    /// The most that any of them asks for.
    asks: Asks,
    lost: usize,
}

/// What one more write changes.
#[derive(Debug)]
pub struct Step {
    next: Vec<Next>,
    lost: usize,
}

/// What one more write does to an attribute.
#[derive(Debug)]
enum Next {
    Known(usize, After),
    New(Attribute),
}

impl Combined {
    /// One write alone.
    pub fn new(first: &ItemWrite) -> Self {
        let mut combined = Combined {
            last: first.clone(),
            members: Vec::new(),
            attributes: Vec::new(),
            asks: Asks::default(),
            lost: 0,
        };
        let changes: &[_] = match &first.effect {
            Some(Effect::Updates(changes)) => changes,
            _ => &[],
        };
        let next = changes.iter().map(|(name, change)| Next::New(Attribute::new(name, change))).collect();
        combined.add(first, Step { next, lost: 0 });
        combined
    }

    /// How many writes they are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// Adds a write of the same item behind them, if it can be combined with them.
    pub fn join(&mut self, write: &ItemWrite) -> bool {
        let Some(step) = self.step(write) else { return false };
        self.add(write, step);
        true
    }

    /// What a write of the same item behind them would change, if it can be combined with them.
    pub fn step(&self, write: &ItemWrite) -> Option<Step> {
        let changes = match (&self.last.effect, &write.effect) {
            (Some(Effect::Replaces), Some(Effect::Replaces)) => {
                return Some(Step { next: Vec::new(), lost: self.lost });
            }
            (Some(Effect::Updates(_)), Some(Effect::Updates(changes))) => changes,
            _ => return None,
        };
        let mut next = Vec::with_capacity(changes.len());
        let mut lost = self.lost;
        for (name, change) in changes {
            let known = self.attributes.iter().enumerate().find(|(_, one)| one.name == *name);
            let Some((at, attribute)) = known else {
                let full = self.attributes.len() + next.len() >= ATTRIBUTES;
                // All of the item as an earlier one is shown it has that attribute as it was before.
                if full || self.asks.values == Values::All {
                    return None;
                }
                next.push(Next::New(Attribute::new(name, change)));
                continue;
            };
            if self.asks.values != Values::None && !attribute.is_plain() {
                return None;
            }
            let (after, shorter) = attribute.next(change)?;
            lost += shorter;
            next.push(Next::Known(at, after));
        }
        (lost <= LOST).then_some(Step { next, lost })
    }

    /// Adds that write, of which `step` is what it changes.
    pub fn add(&mut self, write: &ItemWrite, Step { next, lost }: Step) {
        let mut changes = Vec::with_capacity(next.len());
        for one in next {
            match one {
                Next::New(attribute) => {
                    self.attributes.push(attribute);
                    changes.push((self.attributes.len() - 1, 0));
                }
                Next::Known(at, after) => {
                    if let Some(attribute) = self.attributes.get_mut(at) {
                        changes.push((at, attribute.push(after)));
                    }
                }
            }
        }
        self.members.push(Member { asks: write.asks, changes });
        self.asks.values = self.asks.values.max(write.asks.values);
        self.asks.capacity = self.asks.capacity.max(write.asks.capacity);
        self.last = write.clone();
        self.lost = lost;
    }

    /// The request that does what all of them do, in order.
    ///
    /// # Errors
    /// `SerializationException` for a request that is none.
    pub fn request(&self) -> Result<(Operation, Bytes), Error> {
        let ItemWrite { operation, body, .. } = &self.last;
        if self.members.len() == 1 {
            return Ok((*operation, body.clone()));
        }
        let malformed = |_| crate::request::malformed();
        let capacity = match self.asks.capacity {
            Capacity::None => "NONE",
            Capacity::Total => "TOTAL",
            Capacity::Indexes => "INDEXES",
        };
        let holder = if *operation == Operation::PutItem { "Item" } else { "Key" };
        let [table, held] = json::attributes_of(body, ["TableName", holder]).map_err(malformed)?;
        let mut request = Object::new();
        request.raw("TableName", table.unwrap_or(b"null"));
        request.raw(holder, held.unwrap_or(b"null"));
        request.string("ReturnConsumedCapacity", capacity);
        if !self.attributes.is_empty() {
            let mut update = Update::default();
            self.attributes.iter().for_each(|attribute| attribute.write(&mut update));
            let bindings = Bindings::default();
            let mut fresh = Fresh::avoiding(&bindings);
            request.string("UpdateExpression", &update.render(&mut fresh));
            let (names, values) = bindings.rewritten(&[], &fresh);
            for (name, member) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)]
            {
                if let Some(member) = member {
                    request.raw(name, &member);
                }
            }
            let values = match self.asks.values {
                Values::None => "NONE",
                Values::Updated => "UPDATED_NEW",
                Values::All => "ALL_NEW",
            };
            request.string("ReturnValues", values);
        }
        Ok((*operation, Bytes::from(request.finish())))
    }

    /// Each client's own answer, in order, out of the answer to the [`request`](Self::request).
    ///
    /// # Errors
    /// Outcome unknown: the answer cannot be read. Of one write: what it would have been answered
    /// is no value of DynamoDB.
    pub fn answers(&self, answer: &Bytes) -> Result<Vec<Result<Bytes, Error>>, Error> {
        if self.members.len() == 1 {
            return Ok(vec![Ok(answer.clone())]);
        }
        answers::tell_apart(&self.members, &self.attributes, answer)
            .map_err(|_| crate::answer::unreadable(self.last.operation))
    }
}
