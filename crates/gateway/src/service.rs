//! Processes a request from its operation and body to its answer: its tables, their layouts, the plan, the physical calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_dynamo::{Code, Error, Operation, Outcome, memory_estimate};
use heatsink_env::Env;
use heatsink_heat::KeyLoad;
use heatsink_heat::history::{Saved, Span};
use heatsink_layout::LayoutSource;
use heatsink_route::{Answer, Explanation, Plan, Router, name_rules};
use heatsink_store::Store;

use crate::Limits;
use crate::budget::{Budget, Stage, UNCOUNTED};
use crate::execute::Executor;
use crate::heat::{Drawn, Heat, HeatView, Recording};
use crate::item_size_monitor::ItemSizeMonitor;
use crate::metrics::Metrics;
use crate::partitions::{self, Partitions};
use crate::planner::{Planned, Planner};
use crate::send::{Sender, send};
use crate::sent::Sent;
use crate::{access_log, blocking, missing_table_statements, spans};

/// Takes requests from clients and answers like one logical DynamoDB.
pub struct Service {
    store: Arc<dyn Store>,
    control: Control,
    router: Router,
    env: Arc<dyn Env>,
    limits: Limits,
    budget: Arc<Budget>,
    metrics: Metrics,
    item_sizes: ItemSizeMonitor,
    heat: Heat,
    region: String,
    partitions: Option<Partitions>,
    recorded: Option<Recorded>,
    shows_store: bool,
    draining: AtomicBool,
}

/// Renders the metrics in Prometheus' text format.
pub type Recorded = Box<dyn Fn() -> String + Send + Sync>;

impl Service {
    /// A service in front of `store`, which is in `region`. `control` knows what of it is sharded. Metrics go to the recorder
    /// that is installed by now.
    pub fn new(
        store: Arc<dyn Store>,
        control: Control,
        env: Arc<dyn Env>,
        limits: Limits,
        region: &str,
    ) -> Self {
        let region = region.to_owned();
        let metrics = Metrics::new();
        let clock = Arc::clone(&env);
        let router = Router::new().hiding(control.hidden_tables()).with_clock(move || clock.unix_millis());
        Service {
            store,
            control,
            router,
            budget: Budget::new(&limits, env.clone()),
            heat: Heat::new(&*env),
            env,
            limits,
            metrics,
            item_sizes: ItemSizeMonitor::new(),
            region,
            partitions: None,
            recorded: None,
            shows_store: false,
            draining: AtomicBool::new(false),
        }
    }

    /// The same service, which also tells the partitions of its store's tables.
    #[must_use]
    pub fn with_partitions(self, partitions: Partitions) -> Self {
        Service { partitions: Some(partitions), ..self }
    }

    /// The same service, which also tells what its metrics count.
    #[must_use]
    pub fn with_metrics(self, recorded: Recorded) -> Self {
        Service { recorded: Some(recorded), ..self }
    }

    /// The same service, which also records the traffic that it counts.
    #[must_use]
    pub fn with_recording(mut self, recording: Arc<Recording>) -> Self {
        self.heat.record(recording);
        self
    }

    /// The same service, which shows its store to tools on this machine (`heatsink_store::PHYSICAL_PATH`). For a store that no other process can reach.
    #[must_use]
    pub fn showing_store(self) -> Self {
        Service { shows_store: true, ..self }
    }

    /// The store itself, where tools may reach it: physical keys, and the registry.
    pub(crate) fn shown_store(&self) -> Option<&Arc<dyn Store>> {
        self.shows_store.then_some(&self.store)
    }

    /// What knows its layouts.
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// No new connection of clients is accepted any more.
    pub(crate) fn set_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Why requests of clients would not be answered now; `None` where they would be.
    ///
    /// A lease says that the store was reached within its length (`heatsink_control::Bounds`), and that the layouts known here hold.
    pub(crate) fn not_ready(&self) -> Option<&'static str> {
        if self.draining.load(Ordering::Relaxed) {
            Some("the gateway is stopping")
        } else if !self.control.has_lease() {
            Some(
                "the gateway has no lease: it has not reached the registry in the store for too long, or has not caught up with it",
            )
        } else {
            None
        }
    }

    /// The keys of tables with the highest loads of the last full second, the highest first.
    pub fn hottest_keys(&self) -> Vec<KeyLoad> {
        self.heat().loads()
    }

    /// Which keys were hot in the last full second, and what would help: what `GET /_heatsink/heat` answers.
    pub fn heat_shown(&self) -> BoxFuture<'_, serde_json::Value> {
        async move { self.heat().shown(None).await }.boxed()
    }

    /// What all requests may hold together.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What tells the metrics, where they are recorded.
    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_ref()
    }

    /// What tells the partitions, where there are any.
    pub(crate) fn partitions(&self) -> Option<&Partitions> {
        self.partitions.as_ref()
    }

    /// How many partitions a table has, its indexes not counted; `None` where the store does not tell.
    pub fn partition_count(&self, table: &str) -> Option<u32> {
        partitions::count(self.partitions.as_ref()?, table)
    }

    /// Which keys are hot.
    pub(crate) fn heat(&self) -> HeatView<'_> {
        let Service { heat, control, env, partitions, .. } = self;
        HeatView { heat, control, env: &**env, partitions: partitions.as_ref() }
    }

    /// Keeps the heat accounting supplied with the keys of tables, and its history. It does not end; without it no heat is counted.
    pub async fn keep_heat(&self) {
        self.heat().keep(&*self.store).await;
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

    /// The AWS region that the service stands for.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Answers one request. Both bodies are JSON.
    ///
    /// # Errors
    /// DynamoDB's own error for the request, or the store's, unchanged.
    pub async fn call(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        // Not through `call_marked`: a future in a future is copied once more.
        self.call_until(operation, body, &Sent::default()).await.map(|answer| answer.body)
    }

    /// [`call`](Self::call) that also tells which shards the answer goes without. Only rules with `on_shard_error = "partial"` leave
    /// any out.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_marked(&self, operation: Operation, body: Bytes) -> Result<Answer, Error> {
        self.call_until(operation, body, &Sent::default()).await
    }

    /// [`call_marked`](Self::call_marked) that sends nothing once it was given up.
    pub(crate) async fn call_until(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
    ) -> Result<Answer, Error> {
        if access_log::is_on() || spans::are_taken() {
            // Apart, so that the future of a request that nobody watches stays small.
            return Box::pin(self.call_watched(operation, body, sent)).await;
        }
        let answer = self.answer_whole(operation, body, sent).await;
        self.metrics.answered(operation, answer.as_ref().err());
        answer
    }

    async fn call_watched(&self, operation: Operation, body: Bytes, sent: &Sent) -> Result<Answer, Error> {
        let begun = self.env.now();
        let answer = spans::request(operation, self.answer_whole(operation, body.clone(), sent)).await;
        self.metrics.answered(operation, answer.as_ref().err());
        if access_log::is_on() {
            access_log::line(operation, &body, &answer, self.env.now().since(begun));
        }
        answer
    }

    /// What [`Service::call`] would do with a request, without doing it. It resolves the tables as a call does.
    pub fn explain<'a>(&'a self, operation: Operation, body: &'a Bytes) -> BoxFuture<'a, Explanation> {
        async move {
            match self.planner().plan(operation, body).await {
                Ok(planned) => planned.plan.explain(),
                Err(error) => Explanation::refused(&error),
            }
        }
        .boxed()
    }

    fn planner(&self) -> Planner<'_> {
        let Service { store, control, router, env, .. } = self;
        Planner { store: &**store, control, router, env: &**env }
    }

    /// A request, and of a batch of statements those that can be carried out.
    async fn answer_whole(&self, operation: Operation, body: Bytes, sent: &Sent) -> Result<Answer, Error> {
        if operation != Operation::BatchExecuteStatement {
            return self.answer(operation, body, sent).await;
        }
        let answer = Box::pin(self.answer(operation, body.clone(), sent)).await;
        if !answer.as_ref().is_err_and(|error| error.code == Code::ResourceNotFoundException) {
            return answer;
        }
        let split = Box::pin(missing_table_statements::split(&self.control, &body)).await?;
        let Some(split) = split else { return answer };
        let told = match split.asked.clone() {
            // What is wrong with the whole batch is told before anything is carried out.
            Some(asked) => Some(self.store.call(operation, asked).await?),
            None => None,
        };
        let Some(rest) = split.rest.clone() else {
            return split.merged(None, told.as_ref()).map(Answer::from);
        };
        let answer = Box::pin(self.answer(operation, rest, sent)).await?;
        Ok(Answer { body: split.merged(Some(&answer.body), told.as_ref())?, ..answer })
    }

    async fn answer(&self, operation: Operation, body: Bytes, sent: &Sent) -> Result<Answer, Error> {
        let mut share = self.budget.share();
        // What a large body takes while it is read, here or in a store that it goes on to as it is.
        let reading = match body.len() {
            ..=UNCOUNTED => None,
            bytes => {
                let estimate = blocking::run(bytes, || memory_estimate(operation, &body));
                Some(share.enter(Stage::Begins, estimate).await?)
            }
        };
        let begun = self.env.now();
        // What is prepared for an operation on a table is on record before it is sent.
        if !operation.touches_items() && !sent.begin() {
            return Err(given_up());
        }
        let planned = self.planner().plan_when_due(operation, &body, begun + self.limits.request).await;
        let Planned { names, plan, pass, prepared } =
            planned.inspect_err(|error| self.metrics.unplanned(error))?;
        if !sent.begin() {
            return Err(given_up());
        }
        let kind = self.metrics.planned(&plan);
        spans::planned(kind.name());
        let sharded = !matches!(plan, Plan::Forward { .. });
        self.item_sizes.see(operation, &body, sharded, begun);
        let mut drawn = None;
        let answer = match plan {
            Plan::Forward { operation, body, .. } => {
                send(&*self.store, &pass, operation, body).await.map(Answer::from)
            }
            plan => {
                // What it took to read the request is free again; each round of calls finds room for itself.
                drop(reading);
                let deadline = self.env.now() + self.limits.request;
                let view = self.control.view(&pass);
                // Before its calls, which are counted too.
                drawn = self.heat.draw(operation, begun);
                let calls =
                    drawn.map(|draw| Drawn { heat: &self.heat, draw, layouts: &view, env: &*self.env });
                let turns = |name| view.table(name).is_some_and(|table| table.is_migrating());
                let sender = Sender {
                    store: &*self.store,
                    pass: &pass,
                    env: &*self.env,
                    metrics: &self.metrics,
                    deadline,
                    beside_worker: names.iter().any(|name| turns(name)),
                    drawn: calls,
                };
                Box::pin(Executor { sender, cost: self.limits.cost }.run(plan, share)).await
            }
        };
        let answer = pass.deliver(answer);
        drop(pass);
        let ended = self.env.now();
        self.metrics.took(operation, kind, ended.since(begun));
        // One that is forwarded is drawn now, so that nothing of it is kept while the store works.
        if let Some(draw) = if sharded { drawn } else { self.heat.draw(operation, ended) } {
            self.heat.count(draw, operation, &body, &answer, &*self.env);
        }
        let gone = answer.as_ref().is_err_and(|error| error.code == Code::ResourceNotFoundException);
        if gone || !operation.touches_items() {
            let answer = answer.as_ref().map(|answer| &answer.body);
            Box::pin(self.control.after(operation, &names, prepared, answer)).await;
            self.heat.forget(&names);
        }
        answer.map_err(|error| name_rules(error, &names, &self.control))
    }
}

/// For a request whose client was told so already.
fn given_up() -> Error {
    Error::unavailable("The request was given up before anything of it was sent", Outcome::NotDone)
}
