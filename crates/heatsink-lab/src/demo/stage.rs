//! The stage of the demo: a fresh embedded store behind partitions, and one gateway before it.

use std::net::SocketAddr;
use std::sync::Arc;

use heatsink::{Embedded, Gateway};
use heatsink_control::Rules;
use heatsink_dynamo::Operation;
use heatsink_env::Env;
use heatsink_physics::PartitionSnapshot;
use heatsink_store::partitioned::Partitioned;
use serde_json::Value as Json;

use super::server::{Server, failed, partitions};
use super::workload;
use crate::exit::Exit;

/// A running server, and its store.
pub struct Stage {
    store: Arc<Partitioned<Embedded>>,
    server: Server,
}

impl Stage {
    /// Starts a server under `rules` and creates the table.
    pub async fn start(env: &Arc<dyn Env>, rules: &str) -> Result<Stage, Exit> {
        let rules =
            Rules::read("the demo's rules", rules).map_err(|error| Exit::software(error.to_string()))?;
        let embedded = Embedded::memory().map_err(|error| failed(&error))?;
        let store = Partitioned::start(embedded, env.clone(), workload::QUOTAS).await;
        let store = Arc::new(store.map_err(|error| failed(&error))?);
        let server = Server::start(Gateway::builder(store.clone()).env(env.clone()).rules(rules)).await?;
        server.call(Operation::CreateTable, &workload::create_table()).await?;
        Ok(Stage { store, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// One request, as a client would have it answered.
    pub async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Exit> {
        self.server.call(operation, body).await
    }

    /// The table's partitions at this moment.
    pub fn partitions(&self) -> Vec<PartitionSnapshot> {
        partitions(&self.store)
    }

    /// Stops the server and waits for it.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}
