//! The stages of one request, from its operation and body to its answer: admit, authorize, plan,
//! execute, deliver, observe.
//!
//! A client's request has passed those of the HTTP front before: admission to a connection and to a
//! place, and the check of its signature (`http::front`).

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_access::Caller;
use heatsink_control::{Pass, Prepared};
use heatsink_dynamo::{Code, Error, Operation, memory_estimate};
use heatsink_layout::{LayoutSource, Table};
use heatsink_route::{Answer, Plan, name_rules};

use crate::budget::{Budget, Share, Stage, UNCOUNTED};
use crate::combine::{Combiner, Combining, given_up};
use crate::execute::Executor;
use crate::heat::{CountedCalls, DrawnRequest, Figures, Heat};
use crate::item_size_monitor::ItemSizeMonitor;
use crate::metrics::Metrics;
use crate::planner::{Planned, Planner};
use crate::reads::{Entered, Lead, Reads};
use crate::rights::Rights;
use crate::send::Sender;
use crate::send_once::{send, send_counted};
use crate::sent::Sent;
use crate::{Limits, blocking, shared_calls, spans};

/// What the stages of all requests work with.
pub(crate) struct Stages {
    pub(crate) planner: Arc<Planner>,
    pub(crate) limits: Limits,
    pub(crate) budget: Arc<Budget>,
    pub(crate) metrics: Metrics,
    pub(crate) item_sizes: ItemSizeMonitor,
    pub(crate) heat: Arc<Heat>,
    pub(crate) rights: Rights,
    pub(crate) combiner: Combiner,
    pub(crate) reads: Arc<Reads>,
}

impl Stages {
    /// The stages of one request. A client's request has passed those of the HTTP front before:
    /// admission to a connection and to a place, and the check of its signature (`http::front`).
    pub(crate) async fn answer(
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
            _ => {
                let until = (begun + self.limits.request, sent);
                self.planner.plan_when_due(operation, &body, until).await
            }
        };
        let Planned { names, plan, pass, prepared } =
            planned.inspect_err(|error| self.metrics.unplanned(error))?;
        let shares = pass.shares_calls();
        let combining = match shares {
            false => None,
            true => self.combining(operation, &body, &plan, &pass, sent).map(Box::new),
        };
        // From here on its client cannot be told any more that nothing was done. A write that may
        // wait for others of its item begins in its turn.
        if combining.is_none() && !sent.begin() {
            return Err(given_up());
        }
        let kind = self.metrics.planned(&plan);
        spans::planned(kind.name());
        let sharded = !matches!(plan, Plan::Forward { .. });
        self.item_sizes.see(operation, &body, sharded, begun);

        // Execute. The only stage that sends, and each call asks the pass right before its first
        // byte.
        // A read may be answered without being sent: it costs nothing, and is not counted.
        let read = match shares {
            false => None,
            true => Box::pin(self.read(operation, &body, &pass)).await,
        };
        let (lead, answered) = match read {
            None => (None, None),
            Some(Ok(lead)) => (Some(lead), None),
            Some(Err(answer)) => (None, Some(Box::new(answer))),
        };
        // A request that is counted is drawn before, so that the store can be asked what it costs.
        let drawn = if answered.is_some() { None } else { self.heat.draw(operation, begun) };
        let mut figures = Vec::new();
        let answer = match plan {
            _ if let Some(answer) = answered => *answer,
            Plan::Forward { operation, body, .. } if combining.is_none() => {
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
                let through = (&pass, combining.as_deref());
                let answer = Box::pin(self.execute(plan, through, share, counted, &names)).await;
                figures = of_calls.all();
                answer
            }
        };

        drop(combining);

        // Deliver. After all calls: an answer counts only if the lease held while they were sent.
        // Then the pass ends, for which changes of layouts wait.
        let answer = pass.deliver(answer);
        if let Some(lead) = lead {
            lead.answered(&answer);
        }
        // Before the client learns of it.
        if !operation.only_reads() && self.reads.has_begun() {
            shared_calls::wrote(&self.planner.control, &self.reads, (operation, &body), &names, &pass);
        }
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

    /// How a read goes that may be one with others: it leads, or has its answer. `None` of others.
    async fn read(
        &self,
        operation: Operation,
        body: &Bytes,
        pass: &Pass,
    ) -> Option<Result<Box<Lead<'_>>, Result<Answer, Error>>> {
        let Planner { control, env, .. } = &*self.planner;
        let (id, place, ways) = shared_calls::read(control, &self.reads, operation, body, pass)?;
        loop {
            match self.reads.enter(id.clone(), place, ways, env.now()) {
                Entered::Leads(lead) => return Some(Ok(Box::new(lead))),
                Entered::Has(answer) => return Some(Err(Ok(answer))),
                Entered::Waits(told) => {
                    // Without an answer who led has gone.
                    if let Ok(answer) = told.await {
                        return Some(Err(answer));
                    }
                }
            }
        }
    }

    /// What sends the one call of a write that its rule lets be combined with others of its item.
    fn combining<'a>(
        &'a self,
        operation: Operation,
        body: &[u8],
        plan: &Plan,
        pass: &'a Pass,
        sent: &'a Sent,
    ) -> Option<Combining<'a>> {
        let key = shared_calls::write(&self.planner.control, operation, body, plan, pass)?;
        let (combiner, store) = (&self.combiner, &*self.planner.store);
        Some(Combining { combiner, store, pass, sent, key })
    }

    /// Carries out a plan of several calls.
    async fn execute(
        &self,
        plan: Plan,
        (pass, combining): (&Pass, Option<&Combining<'_>>),
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
        let works = |table: Arc<Table>| table.is_migrating() || table.key_layouts().any_narrows();
        let sender = Sender {
            store: &**store,
            pass,
            env: &**env,
            metrics: &self.metrics,
            deadline,
            beside_worker: names.iter().any(|name| view.table(name).is_some_and(works)),
            counted,
            combining,
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
