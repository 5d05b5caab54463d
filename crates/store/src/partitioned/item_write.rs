//! The write of one item: which item it is, what the item is after it, and the locks that serialize
//! writes of one item.
//!
//! Not here: reading the item, and admitting the write (`writing`).

use std::sync::Arc;

use heatsink_dynamo::expression::{Bindings, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::value::read_item;
use heatsink_physics::{Access, Demand, Units, position};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::unconstrained;

use super::catalogue::TableInfo;
use super::image::Image;
use super::locate;

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

    pub(super) fn keyed(&self) -> &'a [u8] {
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
    pub(super) fn get(&self) -> Option<Vec<u8>> {
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

    /// Whether [`after`](Self::after) gives what the item becomes: the legacy form of an update is
    /// not read.
    pub(super) fn is_read_whole(&self) -> bool {
        match self.act {
            Act::Update(_, request) => update(request).is_some(),
            Act::Put(_) | Act::Delete(_) | Act::Check(_) => true,
        }
    }

    /// The item after the write.
    pub(super) fn after(&self, before: Option<&Image>) -> Option<Image> {
        match self.act {
            Act::Put(item) => Image::read(item),
            Act::Delete(_) => None,
            Act::Check(_) => before.map(|image| Image::of(image.item().clone())),
            Act::Update(key, request) => {
                let item = before.map_or_else(|| read_item(key).ok(), |image| Some(image.item().clone()))?;
                // The store refuses an update that cannot be applied. The legacy form is assumed to
                // change nothing.
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

/// Locks that serialize the writes of one item. Items share locks by hash; there are more locks
/// than one engine has writes at once. Whoever waits for one gets it before those that come later:
/// a batch waits for many, one after another.
pub(super) struct ItemLocks(Vec<Mutex<()>>);

const LOCKS: usize = 256;

impl ItemLocks {
    pub(super) fn new() -> ItemLocks {
        ItemLocks((0..LOCKS).map(|_| Mutex::default()).collect())
    }

    /// Locks all these items.
    pub(super) async fn take(&self, writes: &[ItemWrite<'_>]) -> Vec<MutexGuard<'_, ()>> {
        let slot = |write: &ItemWrite<'_>| {
            let item = locate::identity(write.keyed(), &write.table.key)?;
            usize::try_from(position(&item) % LOCKS as u64).ok()
        };
        self.lock(writes.iter().filter_map(slot).collect()).await
    }

    /// Every caller locks in the same order, so no two callers deadlock.
    async fn lock(&self, mut slots: Vec<usize>) -> Vec<MutexGuard<'_, ()>> {
        slots.sort_unstable();
        slots.dedup();
        let mut taken = Vec::with_capacity(slots.len());
        for slot in slots {
            // Beside tokio's budget: a program that polls a write and never yields would wait for
            // its own task to end.
            taken.push(unconstrained(self.0[slot].lock()).await);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn a_batch_that_waits_is_before_a_write_that_comes_later() {
        let locks = ItemLocks::new();
        let held = locks.lock(vec![3]).now_or_never().unwrap();
        let mut batch = Box::pin(locks.lock(vec![9, 3, 1, 3]));
        assert!(batch.as_mut().now_or_never().is_none());
        // Whoever gives a lock back and takes it again at once would have it for ever.
        drop(held);
        let mut later = Box::pin(locks.lock(vec![3]));
        assert!(later.as_mut().now_or_never().is_none());
        let taken = batch.as_mut().now_or_never().unwrap();
        assert_eq!(taken.len(), 3);
        drop(taken);
        assert_eq!(block_on(later).len(), 1);
    }

    #[tokio::test]
    async fn a_task_that_never_yields_gets_its_locks() {
        let locks = ItemLocks::new();
        for _ in 0..1_000 {
            assert!(locks.lock(vec![3]).now_or_never().is_some());
        }
    }

    #[test]
    fn one_that_gives_up_waiting_keeps_nobody_waiting() {
        let locks = ItemLocks::new();
        let held = locks.lock(vec![3]).now_or_never().unwrap();
        let mut batch = Box::pin(locks.lock(vec![1, 3]));
        assert!(batch.as_mut().now_or_never().is_none());
        drop(held);
        drop(batch);
        assert_eq!(locks.lock(vec![1, 3]).now_or_never().unwrap().len(), 2);
    }
}
