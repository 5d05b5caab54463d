//! The gateways of the demo: several in one process, each with its own HTTP front, before one
//! embedded store behind partitions.
//!
//! Not here: the load (`reshard::ledger`, `loads`), the reshard itself (`heatsink-workers`).

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use heatsink::{Embedded, Fencing, Gateway, Rules, Store};
use heatsink_control::Changer;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::Env;
use heatsink_physics::{PartitionSnapshot, Quotas};
use heatsink_store::partitioned::Partitioned;
use serde_json::{Value as Json, json};

use crate::demo::server::{Server, failed, partitions};
use crate::demo::workload;
use crate::exit::Exit;

/// How many items a batch of old ones has: DynamoDB's most.
const BATCH: usize = 25;

/// What a fleet stands on: one table in a fresh store.
pub struct Ground {
    /// `CreateTable`, of a table with the name [`workload::TABLE`].
    pub table: Json,
    /// The account's quotas.
    pub quotas: Quotas,
    /// Whether the registry is there before the gateways. Gateways that run have to notice a new one
    /// first.
    pub registry: bool,
}

impl Ground {
    /// The table's partitions, as every fresh store makes them.
    pub async fn partitions(&self, env: &Arc<dyn Env>) -> Result<Vec<PartitionSnapshot>, Exit> {
        Ok(partitions(&*self.store(env, std::iter::empty()).await?))
    }

    /// A store whose table holds `old` items.
    async fn store(
        &self,
        env: &Arc<dyn Env>,
        old: impl Iterator<Item = Json>,
    ) -> Result<Arc<Partitioned<Embedded>>, Exit> {
        let embedded = Embedded::memory().map_err(|error| failed(&error))?;
        send(&embedded, Operation::CreateTable, &self.table).await?;
        let old: Vec<Json> = old.map(|item| json!({ "PutRequest": { "Item": item } })).collect();
        for batch in old.chunks(BATCH) {
            let body = json!({ "RequestItems": { workload::TABLE: batch } });
            send(&embedded, Operation::BatchWriteItem, &body).await?;
        }
        let store = Partitioned::start(embedded, env.clone(), self.quotas).await;
        Ok(Arc::new(store.map_err(|error| failed(&error))?))
    }
}

/// Running gateways.
pub struct Fleet {
    /// The store, as the operator's command reaches it.
    pub store: Arc<Partitioned<Embedded>>,
    gateways: Vec<Server>,
}

impl Fleet {
    /// Starts so many gateways, at least one, over a table that holds `old` items already. With an
    /// `[[automatic]]` section they act on heat.
    pub async fn start(
        env: &Arc<dyn Env>,
        gateways: usize,
        rules: &Rules,
        ground: &Ground,
        old: impl Iterator<Item = Json>,
    ) -> Result<Fleet, Exit> {
        let store = ground.store(env, old).await?;
        if ground.registry {
            let first = Changer::beside(store.clone(), env.clone(), Fencing::exclusive(rules.fence()));
            first.freeze(false).await.map_err(|error| failed(&error))?;
        }
        let mut fleet = Fleet { store, gateways: Vec::new() };
        for nth in 1..=gateways.max(1) {
            let fencing = Fencing::shared(rules.fence(), &format!("gateway {nth}"));
            let fencing = if rules.acts_on_heat() { fencing.carrying() } else { fencing };
            let gateway = Gateway::builder(fleet.store.clone()).env(env.clone());
            let told = Arc::clone(&fleet.store);
            let gateway = gateway.rules(rules.clone()).fencing(fencing);
            let gateway = gateway.partitions(Box::new(move |table| told.report(table)));
            let server = match rules.acts_on_heat() {
                true => Server::start_carrying(gateway, fleet.store.clone(), env.clone()).await,
                false => Server::start(gateway).await,
            };
            fleet.gateways.push(server?);
        }
        Ok(fleet)
    }

    /// Where the gateways listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.gateways.iter().map(|one| one.address).collect()
    }

    /// One request, as a client of the last gateway would have it answered.
    pub async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Exit> {
        self.try_call(operation, body).await.map_err(|error| failed(&error))
    }

    /// The same with DynamoDB's error.
    pub async fn try_call(&self, operation: Operation, body: &Json) -> Result<Json, Error> {
        let last = self.gateways.last().ok_or_else(|| Error::internal("No gateway runs"))?;
        last.try_call(operation, body).await
    }

    /// What each gateway says of hot keys, as `GET /_heatsink/heat` tells it.
    pub async fn heats(&self) -> Vec<Json> {
        join_all(self.gateways.iter().map(Server::heat)).await
    }

    /// The heat of keys as the first gateway has seen it.
    pub fn heat_map(&self) -> String {
        self.gateways.first().map(Server::heat_map).unwrap_or_default()
    }

    /// The table's partitions at this moment.
    pub fn partitions(&self) -> Vec<PartitionSnapshot> {
        partitions(&self.store)
    }

    /// Stops the gateways and waits for them.
    pub async fn stop(self) {
        for gateway in self.gateways {
            gateway.stop().await;
        }
    }
}

async fn send(store: &dyn Store, operation: Operation, body: &Json) -> Result<(), Exit> {
    let answer = store.call(operation, Bytes::from(body.to_string())).await;
    answer.map(drop).map_err(|error| failed(&error))
}
