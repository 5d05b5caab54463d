//! Writes: the items are read first, so that the cost in the table and in each index, and its
//! partition, are known before the write is admitted (docs/develop/decisions/0002-admission.md).
//!
//! The writes of one item are serialized from that read to their end, so that the read stays valid.
//! Writes that do not pass here (time to live) can invalidate it; then the store's own
//! figures are charged all the same, and the bytes of a partition are off by that item.

use bytes::Bytes;
use heatsink_dynamo::json;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use tokio::sync::MutexGuard;

use super::Partitioned;
use super::capacity::{CapacityDetail, IndexCosts};
use super::change::Change;
use super::image::Image;
use super::item_write::ItemWrite;
use super::refusal::FULL;
use crate::Store;

/// Writes whose items are locked, and the change that each makes.
pub(super) struct Ready<'a> {
    _locks: Vec<MutexGuard<'a, ()>>,
    pub changes: Vec<Change>,
}

impl<S: Store> Partitioned<S> {
    /// Locks the items and reads them. No other request writes them until the returned value is
    /// dropped.
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
        let costs = match write.table.indexes.is_empty() {
            true => IndexCosts::None,
            false if write.is_read_whole() => IndexCosts::Changed,
            false => IndexCosts::Told,
        };
        let ready = self.ready(std::slice::from_ref(&write)).await;
        let demands =
            ready.changes.iter().flat_map(|change| change.demands.iter().copied()).collect::<Vec<_>>();
        self.gate.admit(now, &demands).map_err(refuse)?;
        if self.gate.store(&ready.changes).is_err() {
            self.gate.give_back(demands.iter());
            return Err(full());
        }
        let done = self.metered(operation, body.clone(), told, costs, demands).await;
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
