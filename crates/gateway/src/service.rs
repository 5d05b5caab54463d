//! What serves the requests of clients, and what surrounds the stages of one (`stages`): who asks,
//! whether somebody watches, what of a batch of statements can be carried out.
//!
//! Not here: what operators are told (`status`), sockets, headers and signatures (`http`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use heatsink_access::{Caller, Clients};
use heatsink_control::Control;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::Env;
use heatsink_route::Answer;
use heatsink_store::Store;

use crate::budget::Budget;
use crate::combine::Combiner;
use crate::heat::{Heat, Recording};
use crate::item_size_monitor::ItemSizeMonitor;
use crate::metrics::Metrics;
use crate::planner::Planner;
use crate::reads::Reads;
use crate::rights::{self, Rights};
use crate::sent::Sent;
use crate::stages::Stages;
use crate::{Limits, access_log, missing_table_statements, spans};

/// Takes requests from clients and answers like one logical DynamoDB.
pub struct Service {
    stages: Stages,
    region: String,
    clients: Arc<ArcSwap<Clients>>,
    stopping: Arc<AtomicBool>,
}

impl Service {
    /// A service in front of `store`, which is in `region`. `control` knows what of it is sharded.
    /// Metrics go to the recorder that is installed by now.
    pub fn new(
        store: Arc<dyn Store>,
        control: Control,
        env: Arc<dyn Env>,
        limits: Limits,
        region: &str,
    ) -> Self {
        let budget = Budget::new(&limits, env.clone());
        let stages = Stages {
            combiner: Combiner::new(&budget),
            reads: Arc::new(Reads::new(limits.memory, &budget)),
            budget,
            heat: Arc::new(Heat::new(&*env)),
            planner: Arc::new(Planner::new(store, control, env)),
            limits,
            metrics: Metrics::new(),
            item_sizes: ItemSizeMonitor::new(),
            rights: Rights::default(),
        };
        Service { stages, region: region.to_owned(), clients: Arc::default(), stopping: Arc::default() }
    }

    /// The same service, which also records the traffic that it counts.
    #[must_use]
    pub fn with_recording(self, recording: Arc<Recording>) -> Self {
        self.stages.heat.record(recording);
        self
    }

    /// The same service, which serves these clients alone, if they are known. What is put in their
    /// place holds from the next request on.
    #[must_use]
    pub fn with_clients(self, clients: Arc<ArcSwap<Clients>>) -> Self {
        Service { clients, ..self }
    }

    /// The same service, which counts no heat: for measuring what that costs.
    #[must_use]
    pub fn without_heat(self, env: &dyn Env) -> Self {
        Service { stages: Stages { heat: Arc::new(Heat::idle(env)), ..self.stages }, ..self }
    }

    /// What plans its requests: its store, and the layouts of its tables.
    pub(crate) fn planner(&self) -> &Arc<Planner> {
        &self.stages.planner
    }

    /// What counts its requests by key.
    pub(crate) fn heat(&self) -> &Arc<Heat> {
        &self.stages.heat
    }

    /// Its reads that need not be sent.
    pub(crate) fn reads(&self) -> &Arc<Reads> {
        &self.stages.reads
    }

    /// What all requests may hold together.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.stages.budget
    }

    /// Whether the gateway is about to stop.
    pub(crate) fn stopping(&self) -> &Arc<AtomicBool> {
        &self.stopping
    }

    /// Whether the gateway is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Says that the gateway is about to stop: it is not ready any more, and each answer ends its
    /// connection, while requests are answered as before.
    pub(crate) fn stop_soon(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The AWS region that the service stands for.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Whom it serves.
    pub(crate) fn clients(&self) -> &ArcSwap<Clients> {
        &self.clients
    }

    /// Answers one request of this process, which may do all. Both bodies are JSON.
    ///
    /// # Errors
    /// DynamoDB's own error for the request, or the store's, unchanged.
    pub async fn call(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        // Not through `call_marked`: a future in a future is copied once more.
        self.call_until(operation, body, &Sent::default(), None).await.map(|answer| answer.body)
    }

    /// [`call`](Self::call) that also tells which shards the answer goes without. Only rules with
    /// `on_shard_error = "partial"` leave any out.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_marked(&self, operation: Operation, body: Bytes) -> Result<Answer, Error> {
        self.call_until(operation, body, &Sent::default(), None).await
    }

    /// [`call_marked`](Self::call_marked) for a client, that sends nothing once it was given up.
    pub(crate) async fn call_until(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        if access_log::is_on() || spans::are_taken() {
            // Apart, so that the future of a request that nobody watches stays small.
            return Box::pin(self.call_watched(operation, body, sent, caller)).await;
        }
        let answer = match caller {
            None => self.answer_whole(operation, body, sent, None).await,
            // Apart, as above.
            Some(_) => Box::pin(self.answer_caller(operation, body, sent, caller)).await,
        };
        self.stages.metrics.answered(operation, caller, answer.as_ref().err());
        answer
    }

    async fn call_watched(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        let begun = self.stages.planner.env.now();
        let answer =
            spans::request(operation, self.answer_caller(operation, body.clone(), sent, caller)).await;
        self.stages.metrics.answered(operation, caller, answer.as_ref().err());
        if access_log::is_on() {
            let took = self.stages.planner.env.now().since(begun);
            access_log::line(operation, &body, caller, &answer, took);
        }
        answer
    }

    /// A request as its caller may ask it.
    async fn answer_caller(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        let Some(caller) = caller else { return self.answer_whole(operation, body, sent, None).await };
        let body = rights::with_own_token(caller, operation, body);
        self.answer_whole(operation, body, sent, Some(caller)).await
    }

    /// A request, and of a batch of statements those that can be carried out.
    async fn answer_whole(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        if operation != Operation::BatchExecuteStatement {
            return self.stages.answer(operation, body, sent, caller).await;
        }
        let answer = Box::pin(self.stages.answer(operation, body.clone(), sent, caller)).await;
        if !answer.as_ref().is_err_and(|error| error.code == Code::ResourceNotFoundException) {
            return answer;
        }
        let split = Box::pin(missing_table_statements::split(&self.stages.planner.control, &body)).await?;
        let Some(split) = split else { return answer };
        let told = match split.asked.clone() {
            // What is wrong with the whole batch is told before anything is carried out.
            Some(asked) => Some(self.stages.planner.store.call(operation, asked).await?),
            None => None,
        };
        let Some(rest) = split.rest.clone() else {
            return split.merged(None, told.as_ref()).map(Answer::from);
        };
        let answer = Box::pin(self.stages.answer(operation, rest, sent, caller)).await?;
        Ok(Answer { body: split.merged(Some(&answer.body), told.as_ref())?, ..answer })
    }
}
