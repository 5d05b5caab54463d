//! `TransactGetItems` and `TransactWriteItems`: if one item is throttled the whole request is
//! cancelled (AWS, "Error handling").

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_physics::{Access, Demand, Units};

use super::capacity::{CapacityDetail, IndexCosts};
use super::item_write::ItemWrite;
use super::{Partitioned, demands, refusal};
use crate::Store;

/// Twice the units of the plain operations (AWS, "Read and write operations").
pub(super) const TWO: Units = Units::whole(2);

/// The items of a transaction, each with its number.
#[derive(Default)]
pub(super) struct Items<'a> {
    pub reads: Vec<(usize, Demand)>,
    pub writes: Vec<(usize, ItemWrite<'a>)>,
}

impl<S: Store> Partitioned<S> {
    pub(super) async fn transact(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let now = self.gate.now();
        let read = || {
            let items = json::elements(json::member(&body, "TransactItems").ok()??).ok()?;
            Some((self.of_items(&items)?, items.len(), CapacityDetail::read(&body)?))
        };
        // The store refuses a request that cannot be parsed.
        let Some((items, count, told)) = read() else { return self.inner.call(operation, body).await };
        self.transact_items(now, operation, body.clone(), told, items, count).await
    }

    /// A transaction of `count` items, of which these are on known tables.
    pub(super) async fn transact_items(
        &self,
        now: u64,
        operation: Operation,
        body: Bytes,
        told: CapacityDetail,
        Items { reads, writes }: Items<'_>,
        count: usize,
    ) -> Result<Bytes, Error> {
        let admit = |list: Vec<(usize, Demand)>| {
            let (owners, demands): (Vec<usize>, Vec<Demand>) = list.into_iter().unzip();
            match self.gate.admit(now, &demands) {
                Ok(()) => Ok(demands),
                Err(throttles) => Err(refusal::cancelled(&throttles, &owners, count)),
            }
        };
        if writes.is_empty() {
            return self.metered(operation, body.clone(), told, IndexCosts::None, admit(reads)?).await;
        }
        admit(writes.iter().map(|(nth, asked)| (*nth, asked.own_partition())).collect())?;
        let (owners, writes): (Vec<usize>, Vec<ItemWrite<'_>>) = writes.into_iter().unzip();
        let ready = self.ready(&writes).await;
        let of_writes = owners.iter().zip(&ready.changes);
        let demands = of_writes
            .flat_map(|(nth, change)| change.demands.iter().map(move |demand| (*nth, *demand)))
            .collect();
        let demands = admit(demands)?;
        if let Err(nth) = self.gate.store(&ready.changes) {
            self.gate.give_back(demands.iter());
            return Err(refusal::full(owners.get(nth).copied().unwrap_or(nth), count));
        }
        let indexed = writes.iter().any(|asked| !asked.table.indexes.is_empty());
        let costs = if indexed { IndexCosts::Changed } else { IndexCosts::None };
        let done = self.metered(operation, body.clone(), told, costs, demands).await;
        self.stored(&ready.changes, &done);
        done
    }

    /// A transaction either reads or writes.
    fn of_items<'a>(&self, items: &[&'a [u8]]) -> Option<Items<'a>> {
        let mut found = Items::default();
        for (nth, item) in items.iter().enumerate() {
            let (action, inner) = json::members(item).ok()?.into_iter().next()?;
            let [table, key] = json::attributes_of(inner, ["TableName", "Key"]).ok()?;
            let name: Cow<'_, str> = json::string(table?).ok()?;
            let Some(table) = self.gate.table(&name) else { continue };
            match &*action {
                "Get" => found.reads.push((nth, demands::read(key, &table, Access::Strong, TWO))),
                action => found.writes.push((nth, ItemWrite::read(action, inner, table, 2)?)),
            }
        }
        Some(found)
    }
}
