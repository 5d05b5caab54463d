//! Writes: what they find is read first, so that what they cost in the table and in each index is known before they are
//! admitted, and where it falls (docs/decisions/0002-admission.md).
//!
//! Writes of one item take turns from that reading to their end, so that what was read stays true. Writes that do not come
//! this way (PartiQL, time to live) can make it untrue; then the store's own figures are charged all the same, and the
//! bytes of a partition are off by that item.

use std::sync::Arc;

use bytes::Bytes;
use futures::lock::{Mutex, MutexGuard};
use heatsink_dynamo::expression::{Bindings, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_physics::{Access, Demand, Units, position};

use super::capacity::Told;
use super::catalogue::TableInfo;
use super::change::Change;
use super::image::Image;
use super::{Partitioned, locate};
use crate::Store;

/// One item to be written, as a request or a part of one says.
pub(super) struct Asked<'a> {
    pub table: Arc<TableInfo>,
    pub act: Act<'a>,
    /// 1, in a transaction 2.
    pub times: u64,
}

/// What is done to it.
#[derive(Clone, Copy)]
pub(super) enum Act<'a> {
    /// With the item.
    Put(&'a [u8]),
    /// With the key.
    Delete(&'a [u8]),
    /// With the key and the object that holds the update.
    Update(&'a [u8], &'a [u8]),
    /// With the key: a condition of a transaction.
    Check(&'a [u8]),
}

impl<'a> Asked<'a> {
    /// The write that an action names; `None` if it lacks its item or key, which the store refuses.
    pub(super) fn read(action: &str, body: &'a [u8], table: Arc<TableInfo>, times: u64) -> Option<Asked<'a>> {
        let [item, key] = json::attributes_of(body, ["Item", "Key"]).ok()?;
        let act = match action {
            "Put" => Act::Put(item?),
            "Delete" => Act::Delete(key?),
            "Update" => Act::Update(key?, body),
            "ConditionCheck" => Act::Check(key?),
            _ => return None,
        };
        Some(Asked { table, act, times })
    }

    fn keyed(&self) -> &'a [u8] {
        match self.act {
            Act::Put(item) => item,
            Act::Delete(key) | Act::Update(key, _) | Act::Check(key) => key,
        }
    }

    /// Asks only whether the item's own partition is open.
    pub(super) fn glance(&self) -> Demand {
        let place = locate::primary_key(Some(self.keyed()), &self.table.key);
        Demand { on: self.table.id, access: Access::Write, place, units: Units::ZERO }
    }

    /// The request for the item as it is.
    fn get(&self) -> Option<Vec<u8>> {
        let mut key = Object::new();
        for attribute in self.table.key.partition.iter().chain(&self.table.key.sort) {
            key.raw(&attribute.name, json::member(self.keyed(), &attribute.name).ok()??);
        }
        let mut request = Object::new();
        request
            .string("TableName", &self.table.name)
            .raw("Key", &key.finish())
            .raw("ConsistentRead", b"true");
        Some(request.finish())
    }

    /// What is left of `before`.
    fn after(&self, before: Option<&Image>) -> Option<Image> {
        match self.act {
            Act::Put(item) => Image::read(item),
            Act::Delete(_) => None,
            Act::Check(_) => before.map(|image| Image::of(image.item().clone())),
            Act::Update(key, request) => {
                let item = before.map_or_else(|| read_item(key).ok(), |image| Some(image.item().clone()))?;
                // One that cannot be carried out the store refuses. The legacy form is taken to change nothing here.
                let updated = update(request).and_then(|update| update.apply(&item).ok());
                Some(Image::of(updated.unwrap_or(item)))
            }
        }
    }
}

fn update(request: &[u8]) -> Option<Update> {
    let names = ["UpdateExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"];
    let [expression, names, values] = json::attributes_of(request, names).ok()?;
    let expression = json::string(expression?).ok()?;
    Update::parse(&expression, &Bindings::read(names, values).ok()?).ok()
}

/// Keeps writes of one item apart. Items share turns: more of them than can be under way at once in one engine.
pub(super) struct Turns(Vec<Mutex<()>>);

const TURNS: usize = 256;

impl Turns {
    pub(super) fn new() -> Turns {
        Turns((0..TURNS).map(|_| Mutex::default()).collect())
    }

    /// Waits for the turns of all these items; in one order for everybody, so that nobody waits in a circle.
    async fn take(&self, asked: &[Asked<'_>]) -> Vec<MutexGuard<'_, ()>> {
        let turn = |asked: &Asked<'_>| {
            let item = locate::identity(asked.keyed(), &asked.table.key)?;
            usize::try_from(position(&item) % TURNS as u64).ok()
        };
        let mut turns: Vec<usize> = asked.iter().filter_map(turn).collect();
        turns.sort_unstable();
        turns.dedup();
        let mut taken = Vec::with_capacity(turns.len());
        for turn in turns {
            taken.push(self.0[turn].lock().await);
        }
        taken
    }
}

/// Writes whose turn it is, and what each does.
pub(super) struct Ready<'a> {
    _turns: Vec<MutexGuard<'a, ()>>,
    pub changes: Vec<Change>,
}

impl<S: Store> Partitioned<S> {
    /// Reads what the writes will find. Until the answer is dropped, nobody else writes these items.
    pub(super) async fn ready(&self, asked: &[Asked<'_>]) -> Ready<'_> {
        let turns = self.turns.take(asked).await;
        let mut changes = Vec::with_capacity(asked.len());
        for asked in asked {
            let before = match asked.get() {
                Some(get) => self.image(get).await,
                None => None,
            };
            let after = asked.after(before.as_ref());
            let place = asked.glance().place;
            changes.push(Change::of(&asked.table, place, before.as_ref(), after.as_ref(), asked.times));
        }
        Ready { _turns: turns, changes }
    }

    async fn image(&self, get: Vec<u8>) -> Option<Image> {
        let answer = self.inner.call(Operation::GetItem, Bytes::from(get)).await.ok()?;
        Image::read(json::member(&answer, "Item").ok()??)
    }

    /// A put, update or delete of one item.
    pub(super) async fn write(
        &self,
        now: u64,
        operation: Operation,
        body: &Bytes,
        told: Told,
        asked: Asked<'_>,
    ) -> Result<Bytes, Error> {
        let refuse = |throttles: Vec<_>| self.gate.refuse(&throttles);
        // A flood on a hot key is refused without reading anything.
        self.gate.admit(now, &[asked.glance()]).map_err(refuse)?;
        let detailed = !asked.table.indexes.is_empty();
        let ready = self.ready(std::slice::from_ref(&asked)).await;
        let demands =
            ready.changes.iter().flat_map(|change| change.demands.iter().copied()).collect::<Vec<_>>();
        self.gate.admit(now, &demands).map_err(refuse)?;
        if self.gate.store(&ready.changes).is_err() {
            self.gate.give_back(demands.iter());
            return Err(full());
        }
        let done = self.metered(operation, body.clone(), told, detailed, demands).await;
        self.stored(&ready.changes, &done);
        done
    }

    /// Takes back the bytes of writes that were not carried out.
    pub(super) fn stored(&self, changes: &[Change], done: &Result<Bytes, Error>) {
        if let Err(error) = done
            && error.status < 500
            && error.outcome != Outcome::Unknown
        {
            self.gate.take_out(changes);
        }
    }
}

/// An item collection under a local index would outgrow its partition.
pub(super) fn full() -> Error {
    Error::new(Code::ItemCollectionSizeLimitExceededException, FULL)
}

/// As the Developer Guide has it ("Local secondary indexes").
pub(super) const FULL: &str = "Collection size exceeded.";
