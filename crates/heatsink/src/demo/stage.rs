//! The server of the demo: a fresh embedded store behind partitions, and the real HTTP front, on a free port.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::channel::oneshot;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::Env;
use heatsink_gateway::{Service, http};
use heatsink_physics::PartitionSnapshot;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::workload;
use crate::exit::Exit;

/// A running server.
pub struct Stage {
    /// Where it listens.
    pub address: SocketAddr,
    partitions: Arc<Partitioned<Embedded>>,
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<bool>,
}

fn failed(error: &Error) -> Exit {
    Exit::software(error.to_string())
}

impl Stage {
    /// Starts a server under `rules` and creates the table.
    pub async fn start(env: &Arc<dyn Env>, rules: &str) -> Result<Stage, Exit> {
        let rules =
            Rules::read("the demo's rules", rules).map_err(|error| Exit::software(error.to_string()))?;
        let embedded = Embedded::memory().map_err(|error| failed(&error))?;
        let partitions = Arc::new(
            Partitioned::start(embedded, env.clone(), workload::QUOTAS)
                .await
                .map_err(|error| failed(&error))?,
        );
        let gateway = Gateway::builder(partitions.clone())
            .env(env.clone())
            .rules(rules)
            .start()
            .await
            .map_err(|error| Exit::software(error.to_string()))?;
        let service = Arc::clone(gateway.service());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let serving = gateway.serve(listener, http::Hosts::loopback(), async {
            // Told to stop, or nobody is left to tell: either ends it.
            let _ = stopped.await;
        });
        let running = tokio::spawn(serving);
        let stage = Stage { address, partitions, service, stop, running };
        stage.call(Operation::CreateTable, &workload::create_table()).await?;
        Ok(stage)
    }

    /// One request, as a client would have it answered.
    pub async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Exit> {
        let answer = self
            .service
            .call(operation, Bytes::from(body.to_string()))
            .await
            .map_err(|error| failed(&error))?;
        serde_json::from_slice(&answer).map_err(|error| Exit::software(error.to_string()))
    }

    /// The table's partitions at this moment.
    pub fn partitions(&self) -> Vec<PartitionSnapshot> {
        let resources = self.partitions.snapshot(workload::TABLE).unwrap_or_default();
        resources
            .into_iter()
            .find(|resource| resource.index.is_none())
            .map(|table| table.partitions)
            .unwrap_or_default()
    }

    /// Stops the server and waits for it.
    pub async fn stop(self) {
        // A server that has ended already needs no telling.
        let _ = self.stop.send(());
        let _ = self.running.await;
    }
}
