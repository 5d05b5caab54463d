//! Answers the requests of clients: what becomes of one from its operation and body to its answer,
//! in stages.
//!
//! Not here: what operators are told (`status`), sockets, headers and signatures (`http`).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use heatsink_access::{Caller, Clients};
use heatsink_control::{Control, Pass, Prepared};
use heatsink_dynamo::{Code, Error, Operation, Outcome, memory_estimate};
use heatsink_env::Env;
use heatsink_layout::LayoutSource;
use heatsink_route::{Answer, Plan, name_rules};
use heatsink_store::Store;

use crate::Limits;
use crate::budget::{Budget, Share, Stage, UNCOUNTED};
use crate::execute::Executor;
use crate::heat::{CountedCalls, DrawnRequest, Figures, Heat, Recording};
use crate::item_size_monitor::ItemSizeMonitor;
use crate::metrics::Metrics;
use crate::planner::{Planned, Planner};
use crate::rights::{self, Rights};
use crate::send::{Sender, send, send_counted};
use crate::sent::Sent;
use crate::{access_log, blocking, missing_table_statements, spans};

/// Takes requests from clients and answers like one logical DynamoDB.
pub struct Service {
    planner: Arc<Planner>,
    limits: Limits,
    budget: Arc<Budget>,
    metrics: Metrics,
    item_sizes: ItemSizeMonitor,
    heat: Arc<Heat>,
    region: String,
    clients: Arc<ArcSwap<Clients>>,
    rights: Rights,
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
        Service {
            budget: Budget::new(&limits, env.clone()),
            heat: Arc::new(Heat::new(&*env)),
            planner: Arc::new(Planner::new(store, control, env)),
            limits,
            metrics: Metrics::new(),
            item_sizes: ItemSizeMonitor::new(),
            region: region.to_owned(),
            clients: Arc::default(),
            rights: Rights::default(),
            stopping: Arc::default(),
        }
    }

    /// The same service, which also records the traffic that it counts.
    #[must_use]
    pub fn with_recording(self, recording: Arc<Recording>) -> Self {
        self.heat.record(recording);
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
        Service { heat: Arc::new(Heat::idle(env)), ..self }
    }

    /// What plans its requests: its store, and the layouts of its tables.
    pub(crate) fn planner(&self) -> &Arc<Planner> {
        &self.planner
    }

    /// What counts its requests by key.
    pub(crate) fn heat(&self) -> &Arc<Heat> {
        &self.heat
    }

    /// What all requests may hold together.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
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
        self.metrics.answered(operation, caller, answer.as_ref().err());
        answer
    }

    async fn call_watched(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        let begun = self.planner.env.now();
        let answer =
            spans::request(operation, self.answer_caller(operation, body.clone(), sent, caller)).await;
        self.metrics.answered(operation, caller, answer.as_ref().err());
        if access_log::is_on() {
            let took = self.planner.env.now().since(begun);
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
            return self.answer(operation, body, sent, caller).await;
        }
        let answer = Box::pin(self.answer(operation, body.clone(), sent, caller)).await;
        if !answer.as_ref().is_err_and(|error| error.code == Code::ResourceNotFoundException) {
            return answer;
        }
        let split = Box::pin(missing_table_statements::split(&self.planner.control, &body)).await?;
        let Some(split) = split else { return answer };
        let told = match split.asked.clone() {
            // What is wrong with the whole batch is told before anything is carried out.
            Some(asked) => Some(self.planner.store.call(operation, asked).await?),
            None => None,
        };
        let Some(rest) = split.rest.clone() else {
            return split.merged(None, told.as_ref()).map(Answer::from);
        };
        let answer = Box::pin(self.answer(operation, rest, sent, caller)).await?;
        Ok(Answer { body: split.merged(Some(&answer.body), told.as_ref())?, ..answer })
    }

    /// The stages of one request. A client's request has passed those of the HTTP front before:
    /// admission to a connection and to a place, and the check of its signature (`http::front`).
    async fn answer(
        &self,
        operation: Operation,
        body: Bytes,
        sent: &Sent,
        caller: Option<&Caller>,
    ) -> Result<Answer, Error> {
        let env = &*self.planner.env;

        // Admit. First, because reading a large body takes many times its memory: nothing reads it
        // before there is room, here or in the store that it goes on to as it is.
        let mut share = self.budget.share();
        let reading = match self.memory_to_read(operation, &body) {
            None => None,
            Some(estimate) => Some(share.enter(Stage::Begins, estimate).await?),
        };
        let begun = env.now();

        // Authorize. Who asks follows from headers (`http::front`), and a caller in this process is
        // trusted. What a client may do with the tables of its request is judged here, before the
        // plan: on the logical keys that it names.
        let restricted = caller.filter(|caller| caller.is_restricted());
        if let Some(caller) = restricted {
            let store = &*self.planner.store;
            let judged = Box::pin(self.rights.check(caller, store, env, operation, &body)).await;
            judged.inspect_err(|error| self.metrics.unjudged(caller, error))?;
        }

        // Plan. Before anything is sent: a wrong request costs the store nothing, and the pass that
        // comes with the plan holds its layouts until the answer is delivered. What is prepared for
        // an operation on a table is on record before it is sent.
        if !operation.touches_items() && !sent.begin() {
            return Err(given_up());
        }
        let planned = match restricted {
            Some(caller) if operation == Operation::ListTables => self.planner.list_tables_of(caller, &body),
            _ => self.planner.plan_when_due(operation, &body, begun + self.limits.request).await,
        };
        let Planned { names, plan, pass, prepared } =
            planned.inspect_err(|error| self.metrics.unplanned(error))?;
        // From here on its client cannot be told any more that nothing was done.
        if !sent.begin() {
            return Err(given_up());
        }
        let kind = self.metrics.planned(&plan);
        spans::planned(kind.name());
        let sharded = !matches!(plan, Plan::Forward { .. });
        self.item_sizes.see(operation, &body, sharded, begun);

        // Execute. The only stage that sends, and each call asks the pass right before its first
        // byte.
        // A request that is counted is drawn before, so that the store can be asked what it costs.
        let drawn = self.heat.draw(operation, begun);
        let mut figures = Vec::new();
        let answer = match plan {
            Plan::Forward { operation, body, .. } => {
                let answer = match drawn.filter(|drawn| drawn.is_asked(operation)) {
                    None => send(&*self.planner.store, &pass, operation, body).await,
                    // Apart, so that the future of a request that does not ask stays small.
                    Some(drawn) => {
                        let store = &*self.planner.store;
                        Box::pin(send_counted(store, &pass, drawn, operation, body, &mut figures)).await
                    }
                };
                answer.map(Answer::from)
            }
            plan => {
                // What it took to read the request is free again; each round of calls finds room
                // for itself.
                drop(reading);
                let of_calls = Figures::default();
                let counted = drawn.map(|drawn| (drawn, &of_calls));
                let answer = Box::pin(self.execute(plan, &pass, share, counted, &names)).await;
                figures = of_calls.all();
                answer
            }
        };

        // Deliver. After all calls: an answer counts only if the lease held while they were sent.
        // Then the pass ends, for which changes of layouts wait.
        let answer = pass.deliver(answer);
        drop(pass);

        // Observe. After the pass, so that no layout waits for figures.
        let ended = env.now();
        self.metrics.took(operation, kind, ended.since(begun));
        if let Some(drawn) = drawn {
            let client = caller.map(Caller::shared_id);
            let asked = self.heat.count(drawn, (operation, &body), &answer, &figures, client, env);
            caller.into_iter().for_each(|caller| self.metrics.asked(caller, &asked));
        }
        let gone = answer.as_ref().is_err_and(|error| error.code == Code::ResourceNotFoundException);
        if gone || !operation.touches_items() {
            Box::pin(self.after_table_change(operation, &names, prepared, &answer)).await;
        }
        answer.map_err(|error| name_rules(error, &names, &self.planner.control))
    }

    /// What a large body takes while it is read, in bytes; `None` for a small one, which is not
    /// counted.
    fn memory_to_read(&self, operation: Operation, body: &Bytes) -> Option<usize> {
        match body.len() {
            ..=UNCOUNTED => None,
            bytes => Some(blocking::run(bytes, || memory_estimate(operation, body))),
        }
    }

    /// Carries out a plan of several calls.
    async fn execute(
        &self,
        plan: Plan,
        pass: &Pass,
        share: Share,
        counted: Option<(DrawnRequest, &Figures)>,
        names: &[Cow<'_, str>],
    ) -> Result<Answer, Error> {
        let Planner { store, control, env, .. } = &*self.planner;
        let deadline = env.now() + self.limits.request;
        let view = control.view(pass);
        let (heat, layouts) = (&*self.heat, &view);
        let counted =
            counted.map(|(drawn, figures)| CountedCalls { heat, drawn, layouts, env: &**env, figures });
        let turns = |name| view.table(name).is_some_and(|table| table.is_migrating());
        let sender = Sender {
            store: &**store,
            pass,
            env: &**env,
            metrics: &self.metrics,
            deadline,
            beside_worker: names.iter().any(|name| turns(name)),
            counted,
        };
        Executor { sender, cost: self.limits.cost }.run(plan, share).await
    }

    /// Takes note of what an operation on tables has changed, and of tables that are gone.
    async fn after_table_change(
        &self,
        operation: Operation,
        names: &[Cow<'_, str>],
        prepared: Prepared,
        answer: &Result<Answer, Error>,
    ) {
        let answer = answer.as_ref().map(|answer| &answer.body);
        self.planner.control.after(operation, names, prepared, answer).await;
        self.heat.forget(names);
        self.rights.forget(names);
    }
}

/// For a request whose client was told so already.
fn given_up() -> Error {
    Error::unavailable("The request was given up before anything of it was sent", Outcome::NotDone)
}
