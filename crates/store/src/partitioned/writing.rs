//! Writes: the items are read first, so that the cost in the table and in each index, and its partition, are known before the write is admitted
//! (docs/decisions/0002-admission.md).
//!
//! The writes of one item are serialized from that read to their end, so that the read stays valid. Writes that do not pass here (PartiQL, time to
//! live) can invalidate it; then the store's own figures are charged all the same, and the bytes of a partition are off by that item.

use std::sync::Arc;

use bytes::Bytes;
use futures::lock::{Mutex, MutexGuard};
use heatsink_dynamo::expression::{Bindings, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_physics::{Access, Demand, Units, position};

use super::capacity::CapacityDetail;
use super::catalogue::TableInfo;
use super::change::Change;
use super::image::Image;
use super::{Partitioned, locate};
use crate::Store;

/// The write of one item, from a request or a part of one.
pub(super) struct ItemWrite<'a> {
    pub table: Arc<TableInfo>,
    pub act: Act<'a>,
    /// 1, in a transaction 2.
    pub times: u64,
}

/// The kind of write.
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

impl<'a> ItemWrite<'a> {
    /// The write that an action names; `None` if it lacks its item or key, which the store refuses.
    pub(super) fn read(
        action: &str,
        body: &'a [u8],
        table: Arc<TableInfo>,
        times: u64,
    ) -> Option<ItemWrite<'a>> {
        let [item, key] = json::attributes_of(body, ["Item", "Key"]).ok()?;
        let act = match action {
            "Put" => Act::Put(item?),
            "Delete" => Act::Delete(key?),
            "Update" => Act::Update(key?, body),
            "ConditionCheck" => Act::Check(key?),
            _ => return None,
        };
        Some(ItemWrite { table, act, times })
    }

    fn keyed(&self) -> &'a [u8] {
        match self.act {
            Act::Put(item) => item,
            Act::Delete(key) | Act::Update(key, _) | Act::Check(key) => key,
        }
    }

    /// A demand of zero units: checks only whether the partition of the item is open.
    pub(super) fn own_partition(&self) -> Demand {
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

    /// The item after the write.
    fn after(&self, before: Option<&Image>) -> Option<Image> {
        match self.act {
            Act::Put(item) => Image::read(item),
            Act::Delete(_) => None,
            Act::Check(_) => before.map(|image| Image::of(image.item().clone())),
            Act::Update(key, request) => {
                let item = before.map_or_else(|| read_item(key).ok(), |image| Some(image.item().clone()))?;
                // The store refuses an update that cannot be applied. The legacy form is assumed to change nothing.
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

/// Locks that serialize the writes of one item. Items share locks by hash; there are more locks than one engine has writes at once.
pub(super) struct ItemLocks(Vec<Mutex<()>>);

const LOCKS: usize = 256;

impl ItemLocks {
    pub(super) fn new() -> ItemLocks {
        ItemLocks((0..LOCKS).map(|_| Mutex::default()).collect())
    }

    /// Locks all these items. Every caller locks in the same order, so no two callers deadlock.
    async fn take(&self, writes: &[ItemWrite<'_>]) -> Vec<MutexGuard<'_, ()>> {
        let slot = |write: &ItemWrite<'_>| {
            let item = locate::identity(write.keyed(), &write.table.key)?;
            usize::try_from(position(&item) % LOCKS as u64).ok()
        };
        let mut slots: Vec<usize> = writes.iter().filter_map(slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut taken = Vec::with_capacity(slots.len());
        for slot in slots {
            taken.push(self.0[slot].lock().await);
        }
        taken
    }
}

/// Writes whose items are locked, and the change that each makes.
pub(super) struct Ready<'a> {
    _locks: Vec<MutexGuard<'a, ()>>,
    pub changes: Vec<Change>,
}

impl<S: Store> Partitioned<S> {
    /// Locks the items and reads them. No other request writes them until the returned value is dropped.
    pub(super) async fn ready(&self, writes: &[ItemWrite<'_>]) -> Ready<'_> {
        let locks = self.item_locks.take(writes).await;
        let mut changes = Vec::with_capacity(writes.len());
        for write in writes {
            let before = match write.get() {
                Some(get) => self.image(get).await,
                None => None,
            };
            let after = write.after(before.as_ref());
            let place = write.own_partition().place;
            changes.push(Change::of(&write.table, place, before.as_ref(), after.as_ref(), write.times));
        }
        Ready { _locks: locks, changes }
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
        told: CapacityDetail,
        write: ItemWrite<'_>,
    ) -> Result<Bytes, Error> {
        let refuse = |throttles: Vec<_>| self.gate.refuse(&throttles);
        // A flood on a hot key is throttled without reading anything.
        self.gate.admit(now, &[write.own_partition()]).map_err(refuse)?;
        let detailed = !write.table.indexes.is_empty();
        let ready = self.ready(std::slice::from_ref(&write)).await;
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

/// The wording of the Developer Guide ("Local secondary indexes").
pub(super) const FULL: &str = "Collection size exceeded.";
