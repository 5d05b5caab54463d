//! `TransactGetItems` and `TransactWriteItems`: one item refused is the whole request cancelled (PHYSICS §9.4).

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_physics::{Access, Demand, Units};

use super::capacity::Told;
use super::{Partitioned, demands, refusal};
use crate::Store;

/// Twice the units of the plain operations (PHYSICS §14).
const TWO: Units = Units::whole(2);

impl<S: Store> Partitioned<S> {
    pub(super) async fn transact(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let now = self.gate.now();
        let read = || {
            let items = json::elements(json::member(&body, "TransactItems").ok()??).ok()?;
            Some((self.of_items(&items)?, items.len(), Told::read(&body)?))
        };
        // What cannot be read, the store refuses.
        let Some(((demands, owners, detailed), count, told)) = read() else {
            return self.inner.call(operation, body).await;
        };
        if let Err(throttles) = self.gate.admit(now, &demands) {
            return Err(refusal::cancelled(&throttles, &owners, count));
        }
        self.metered(operation, body.clone(), told, detailed, demands).await
    }

    /// The demands of a transaction's items, which item each belongs to, and whether indexes are written.
    fn of_items(&self, items: &[&[u8]]) -> Option<(Vec<Demand>, Vec<usize>, bool)> {
        let (mut found, mut owners, mut detailed) = (Vec::new(), Vec::new(), false);
        for (nth, item) in items.iter().enumerate() {
            let (action, inner) = json::members(item).ok()?.into_iter().next()?;
            let [table, key, item] = json::attributes_of(inner, ["TableName", "Key", "Item"]).ok()?;
            let name: Cow<'_, str> = json::string(table?).ok()?;
            let Some(table) = self.gate.table(&name) else { continue };
            let of_item = match &*action {
                "Put" => demands::put(item, &table, 2),
                "Update" | "Delete" | "ConditionCheck" => vec![demands::write(key, &table, TWO)],
                "Get" => vec![demands::read(key, &table, Access::Strong, TWO)],
                _ => return None,
            };
            detailed |= &*action != "Get" && !table.indexes.is_empty();
            owners.extend(of_item.iter().map(|_| nth));
            found.extend(of_item);
        }
        Some((found, owners, detailed))
    }
}
