//! A gateway of the demos with its own HTTP front, on a free port.
//!
//! Not here: the store behind it, and what the table holds (`stage`, `reshard::fleet`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::oneshot;
use heatsink::{Acts, Builder, Embedded, Gateway, Store, carry};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::Env;
use heatsink_gateway::{Service, Status, http};
use heatsink_heat::history::Span;
use heatsink_physics::PartitionSnapshot;
use heatsink_store::partitioned::Partitioned;
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::workload;
use crate::exit::Exit;

/// A running server.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    service: Arc<Service>,
    status: Arc<Status>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<bool>,
    carrying: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// A failure of the demo's own store.
pub fn failed(error: &Error) -> Exit {
    Exit::software(error.to_string())
}

/// The partitions of the demo's table at this moment.
pub fn partitions(store: &Partitioned<Embedded>) -> Vec<PartitionSnapshot> {
    let resources = store.snapshot(workload::TABLE).unwrap_or_default();
    let table = resources.into_iter().find(|resource| resource.index.is_none());
    table.map(|table| table.partitions).unwrap_or_default()
}

impl Server {
    /// Starts a gateway and serves it.
    pub async fn start(gateway: Builder) -> Result<Server, Exit> {
        let gateway = gateway.start().await.map_err(|error| Exit::software(error.to_string()))?;
        Server::serve(gateway).await
    }

    /// The same of a gateway that also carries out reshards, and asks for those that hot keys need.
    pub async fn start_carrying(
        gateway: Builder,
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
    ) -> Result<Server, Exit> {
        let acts = Arc::new(Acts::default());
        let told = Arc::clone(&acts);
        let gateway = gateway.automatic(Box::new(move || told.shown()));
        let gateway = gateway.start().await.map_err(|error| Exit::software(error.to_string()))?;
        let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
        let mut server = Server::serve(gateway).await?;
        let (stop, stopped) = oneshot::channel();
        let carrying = tokio::spawn(carry(store, env, control, status, acts, Duration::ZERO, async {
            let _ = stopped.await;
        }));
        server.carrying = Some((stop, carrying));
        Ok(server)
    }

    async fn serve(gateway: Gateway) -> Result<Server, Exit> {
        let (service, status) = (Arc::clone(gateway.service()), Arc::clone(gateway.status()));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(gateway.serve(listener, http::Hosts::loopback(), async {
            // Told to stop, or nobody is left to tell: either ends it.
            let _ = stopped.await;
        }));
        Ok(Server { address, service, status, stop, running, carrying: None })
    }

    /// One request, as a client would have it answered.
    pub async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Exit> {
        self.try_call(operation, body).await.map_err(|error| failed(&error))
    }

    /// The same with DynamoDB's error.
    pub async fn try_call(&self, operation: Operation, body: &Json) -> Result<Json, Error> {
        let answer = self.service.call(operation, Bytes::from(body.to_string())).await?;
        serde_json::from_slice(&answer).map_err(|error| Error::internal(error.to_string()))
    }

    /// Which keys are hot, as `GET /_heatsink/heat` tells it.
    pub async fn heat(&self) -> Json {
        self.status.heat_shown().await
    }

    /// The heat of keys in the last ten minutes, as `GET /_heatsink/heat/map` tells it.
    pub fn heat_map(&self) -> String {
        self.status.heat_map(Span::TenMinutes)
    }

    /// Stops the server and waits for it.
    pub async fn stop(self) {
        if let Some((stop, carrying)) = self.carrying {
            let _ = stop.send(());
            let _ = carrying.await;
        }
        // A server that has ended already needs no telling.
        let _ = self.stop.send(());
        let _ = self.running.await;
    }
}
