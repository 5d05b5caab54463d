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
use heatsink_heat::history::{Saved, Span};
use heatsink_heat::policy;
use heatsink_heat::{HeatSource, KeyLoad};
use heatsink_route::Explanation;

use crate::Service;
use crate::acts::Told;
use crate::budget::Budget;
use crate::computed_metrics::{self, KeyNames};
use crate::heat::{Heat, HeatView};
use crate::partitions::Partitions;
use crate::placed::Placed;
use crate::planner::Planner;
use crate::reads::Reads;
use crate::shared_calls::explained;

/// Tells operators how a gateway does.
pub struct Status {
    planner: Arc<Planner>,
    heat: Arc<Heat>,
    budget: Arc<Budget>,
    reads: Arc<Reads>,
    stopping: Arc<AtomicBool>,
    shown: Shown,
}

/// What a status tells beside what every gateway knows.
#[derive(Default)]
pub(crate) struct Shown {
    /// The partitions of the store's tables.
    pub(crate) partitions: Option<Partitions>,
    /// What the metrics count.
    pub(crate) metrics: Option<Recorded>,
    /// How metrics name the hottest keys.
    pub(crate) hot_keys: Option<KeyNames>,
    /// What is done about heat.
    pub(crate) automatic: Option<Told>,
}

/// Renders the metrics in Prometheus' text format.
pub type Recorded = Box<dyn Fn() -> String + Send + Sync>;

impl Status {
    /// The status of a service, without partitions and metrics.
    pub fn of(service: &Service) -> Self {
        Status::showing(service, Shown::default())
    }

    /// The status of a service, and what else is known.
    pub(crate) fn showing(service: &Service, shown: Shown) -> Self {
        Status {
            planner: Arc::clone(service.planner()),
            heat: Arc::clone(service.heat()),
            budget: Arc::clone(service.budget()),
            reads: Arc::clone(service.reads()),
            stopping: Arc::clone(service.stopping()),
            shown,
        }
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
        let recorded = self.shown.metrics.as_ref()?;
        let hot_keys = self.shown.hot_keys.map(|names| (|keys| self.heat().parts(keys), names));
        Some(recorded() + &computed_metrics::text(self.control().lease_left(), hot_keys))
    }

    /// What tells the partitions, where there are any.
    pub(crate) fn partitions(&self) -> Option<&Partitions> {
        self.shown.partitions.as_ref()
    }

    /// Which keys are hot.
    pub(crate) fn heat(&self) -> HeatView<'_> {
        let Planner { control, env, .. } = &*self.planner;
        let (partitions, automatic) = (self.partitions(), self.shown.automatic.as_ref());
        HeatView { heat: &self.heat, control, env: &**env, partitions, automatic }
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
                Ok(planned) => explained(&self.planner.control, &planned, &self.reads, operation, body),
                Err(error) => Explanation::refused(&error),
            }
        }
        .boxed()
    }
}

impl HeatSource for Status {
    fn hottest(&self) -> Vec<KeyLoad> {
        self.heat().loads()
    }

    fn partitions(
        &self,
        table: &str,
        index: Option<&str>,
    ) -> Option<Box<dyn policy::Partitions + Send + Sync>> {
        Some(Box::new(Placed::of(&self.shown.partitions.as_ref()?(table)?, index)?))
    }
}
