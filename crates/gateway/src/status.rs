//! What a gateway tells its operators: health, metrics, heat, reshards, gateways, partitions, and
//! how a request would be planned. Nothing of it answers a client.
//!
//! Not here: who may ask, and where (`http`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_dynamo::Operation;
use heatsink_heat::KeyLoad;
use heatsink_heat::history::{Saved, Span};
use heatsink_route::Explanation;
use metrics::gauge;

use crate::Service;
use crate::acts::Told;
use crate::budget::Budget;
use crate::heat::{Heat, HeatView};
use crate::hot_key_metrics::{self, KeyNames};
use crate::partitions::{self, Partitions};
use crate::placed::Placed;
use crate::planner::Planner;

/// Tells operators how a gateway does.
pub struct Status {
    planner: Arc<Planner>,
    heat: Arc<Heat>,
    budget: Arc<Budget>,
    stopping: Arc<AtomicBool>,
    partitions: Option<Partitions>,
    recorded: Option<Recorded>,
    hot_keys: Option<KeyNames>,
    automatic: Option<Told>,
}

/// Renders the metrics in Prometheus' text format.
pub type Recorded = Box<dyn Fn() -> String + Send + Sync>;

impl Status {
    /// The status of a service, without partitions and metrics.
    pub fn of(service: &Service) -> Self {
        Status {
            planner: Arc::clone(service.planner()),
            heat: Arc::clone(service.heat()),
            budget: Arc::clone(service.budget()),
            stopping: Arc::clone(service.stopping()),
            partitions: None,
            recorded: None,
            hot_keys: None,
            automatic: None,
        }
    }

    /// The same status, which also tells the partitions of the store's tables.
    #[must_use]
    pub fn with_partitions(self, partitions: Partitions) -> Self {
        Status { partitions: Some(partitions), ..self }
    }

    /// The same status, which also tells what the metrics count.
    #[must_use]
    pub fn with_metrics(self, recorded: Recorded) -> Self {
        Status { recorded: Some(recorded), ..self }
    }

    /// The same status, whose metrics name the hottest keys.
    #[must_use]
    pub fn with_hot_keys(self, names: KeyNames) -> Self {
        Status { hot_keys: Some(names), ..self }
    }

    /// The same status, which also tells what is done about heat.
    #[must_use]
    pub fn with_automatic(self, automatic: Told) -> Self {
        Status { automatic: Some(automatic), ..self }
    }

    /// Why requests of clients would not be answered now; `None` where they would be.
    ///
    /// A lease says that the store was reached within its length (`heatsink_control::Bounds`), and
    /// that the layouts known here hold.
    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        if self.stopping.load(Ordering::Relaxed) {
            Some("the gateway is stopping")
        } else if !self.control().has_lease() {
            Some(
                "the gateway has no lease: it has not reached the registry in the store for too long, or has not caught up with it",
            )
        } else {
            None
        }
    }

    /// Says that the gateway is about to stop: from now on it is not ready, and each of its answers
    /// ends its connection. It accepts connections and answers as before.
    pub fn stop_soon(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// What knows the layouts: reshards and gateways are read through it.
    pub(crate) fn control(&self) -> &Control {
        &self.planner.control
    }

    /// What answers to operators are counted in.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The metrics in Prometheus' text format, where they are recorded.
    pub(crate) fn metrics(&self) -> Option<String> {
        let recorded = self.recorded.as_ref()?;
        gauge!("heatsink_lease_left_ratio").set(self.control().lease_left());
        let mut text = recorded();
        if let Some(names) = self.hot_keys {
            text += &hot_key_metrics::text(&self.heat().parts(hot_key_metrics::MOST), names);
        }
        Some(text)
    }

    /// What tells the partitions, where there are any.
    pub(crate) fn partitions(&self) -> Option<&Partitions> {
        self.partitions.as_ref()
    }

    /// How many partitions a table has, its indexes not counted; `None` where the store does not
    /// tell.
    pub fn partition_count(&self, table: &str) -> Option<u32> {
        partitions::count(self.partitions.as_ref()?, table)
    }

    /// Where the partitions of a table, or of one of its global indexes, lie; `None` where the store
    /// does not tell.
    pub fn placed(&self, table: &str, index: Option<&str>) -> Option<Placed> {
        Placed::of(&self.partitions.as_ref()?(table)?, index)
    }

    /// Which keys are hot.
    pub(crate) fn heat(&self) -> HeatView<'_> {
        let Planner { control, env, .. } = &*self.planner;
        let (partitions, automatic) = (self.partitions.as_ref(), self.automatic.as_ref());
        HeatView { heat: &self.heat, control, env: &**env, partitions, automatic }
    }

    /// The keys of tables with the highest loads of the last full second, the highest first.
    pub fn hottest_keys(&self) -> Vec<KeyLoad> {
        self.heat().loads()
    }

    /// Which keys were hot in the last full second, and what would help: what `GET /_heatsink/heat`
    /// answers.
    pub fn heat_shown(&self) -> BoxFuture<'_, serde_json::Value> {
        async move { self.heat().shown(None).await }.boxed()
    }

    /// Keeps the heat accounting supplied with the keys of tables, and its history. It does not
    /// end; without it no heat is counted.
    pub async fn keep_heat(&self) {
        self.heat().keep(&*self.planner.store).await;
    }

    /// The heat of keys over a span that ends now, as `GET /_heatsink/heat/map` tells it.
    pub fn heat_map(&self, span: Span) -> String {
        self.heat().map(span)
    }

    /// The history of the heat, to be kept across restarts.
    pub fn heat_history(&self) -> Saved {
        self.heat.saved()
    }

    /// Goes on from a history that [`heat_history`](Self::heat_history) gave.
    pub fn resume_heat_history(&self, saved: Saved) {
        self.heat.resume(saved);
    }

    /// What [`Service::call`] would do with a request, without doing it. It resolves the tables as
    /// a call does.
    pub fn explain<'a>(&'a self, operation: Operation, body: &'a Bytes) -> BoxFuture<'a, Explanation> {
        async move {
            match self.planner.plan(operation, body).await {
                Ok(planned) => planned.plan.explain(),
                Err(error) => Explanation::refused(&error),
            }
        }
        .boxed()
    }
}
