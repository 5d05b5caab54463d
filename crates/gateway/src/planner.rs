//! Plans a request: finds its tables, resolves their layouts, and has the router plan it. A request
//! that has to wait for a lease, or for a layout to change, is planned again.
//!
//! Not here: how a plan is made (`heatsink_route`), what is known of tables (`heatsink_control`),
//! carrying it out (`execute`).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_access::Caller;
use heatsink_control::{Control, Pass, Prepared};
use heatsink_dynamo::{Error, Operation, Origin, wire};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_route::{Plan, Router, name_rules, tables_of};
use heatsink_store::Store;

use crate::blocking;
use crate::sent::Sent;
use crate::{former_stream, missing_table};

/// How often a request that waits for a layout to change looks whether one has.
const HELD_LOOK: Duration = Duration::from_millis(5);

/// After this time it is planned again even if none was seen.
const HELD_AT_MOST: Duration = Duration::from_secs(1);

/// How often a request is planned again because its lease ran out meanwhile.
const RENEWALS: usize = 4;

/// A request that is planned, and may be carried out for as long as its pass holds.
pub(crate) struct Planned<'a> {
    pub(crate) names: Vec<Cow<'a, str>>,
    pub(crate) plan: Plan,
    pub(crate) pass: Pass,
    pub(crate) prepared: Prepared,
}

/// Plans the requests of a gateway.
pub(crate) struct Planner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) control: Control,
    router: Router,
    pub(crate) env: Arc<dyn Env>,
}

impl Planner {
    /// Plans requests for `store`, of which `control` knows what is sharded.
    pub(crate) fn new(store: Arc<dyn Store>, control: Control, env: Arc<dyn Env>) -> Self {
        let clock = Arc::clone(&env);
        let router = Router::new().hiding(control.hidden_tables()).with_clock(move || clock.unix_millis());
        Planner { store, control, router, env }
    }

    /// The plan of a request. One that has to wait for a layout to change says so to `sent`, and is
    /// planned again after each change, until `deadline`.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub(crate) async fn plan_when_due<'a>(
        &self,
        operation: Operation,
        body: &'a Bytes,
        (deadline, sent): (MonotonicInstant, &Sent),
    ) -> Result<Planned<'a>, Error> {
        loop {
            let seen = self.control.changes_seen();
            match self.plan(operation, body).await {
                Err(error) if error.origin == Origin::Held && self.env.now() < deadline => {
                    sent.waits(&error);
                }
                planned => return planned,
            }
            // No pass is held meanwhile: the change that is waited for waits for requests that have
            // one.
            let again = (self.env.now() + HELD_AT_MOST).min(deadline);
            while self.control.changes_seen() == seen && self.env.now() < again {
                self.env.sleep(HELD_LOOK).await;
            }
        }
    }

    /// The plan of a client's `ListTables`, which shows it the tables that it may see. It depends
    /// on no layout.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub(crate) fn list_tables_of(&self, caller: &Caller, body: &Bytes) -> Result<Planned<'static>, Error> {
        let caller = caller.clone();
        let plan = self.router.list_tables(body, move |name| caller.may_see(name))?;
        let mut prepared = Prepared::default();
        Ok(Planned { names: Vec::new(), plan, pass: prepared.pass(&self.control), prepared })
    }

    /// The plan of a request. One that depends on a key about to move has the lease that it needs.
    ///
    /// # Errors
    /// DynamoDB's own error where the request is wrong, a refusal with the rules in force, and
    /// retryable ones where the layouts cannot be told now.
    pub(crate) async fn plan<'a>(&self, operation: Operation, body: &'a Bytes) -> Result<Planned<'a>, Error> {
        let mut planned = self.plan_leased(operation, body).await?;
        for _ in 0..RENEWALS {
            if !planned.pass.needs_renewal() {
                break;
            }
            drop(planned);
            Box::pin(self.control.renew()).await?;
            planned = self.plan_leased(operation, body).await?;
        }
        Ok(planned)
    }

    async fn plan_leased<'a>(&self, operation: Operation, body: &'a Bytes) -> Result<Planned<'a>, Error> {
        // Names are found by a reader that skips over everything else. What it cannot read is
        // wrong, and the checks of the whole request know how DynamoDB says so.
        let named = blocking::run(body.len(), || {
            tables_of(operation, body)
                .map_err(|unreadable| wire::check(operation, body).err().unwrap_or(unreadable))
        });
        let names = named?;
        let (pass, prepared) = if operation.touches_items() {
            (self.control.resolve(&names).await?, Prepared::default())
        } else {
            let mut prepared = Box::pin(self.control.before(operation, body, &names)).await?;
            (prepared.pass(&self.control), prepared)
        };
        if pass.is_missing() {
            if !operation.is_streams() {
                let missing = pass.missing();
                return Err(Box::pin(missing_table::refusal(&*self.store, operation, body, missing)).await);
            }
            for name in &names {
                if Box::pin(self.control.was_recorded(name)).await? {
                    return Err(missing_table::stream(name));
                }
            }
        }
        if operation == Operation::GetShardIterator && !pass.is_missing() {
            Box::pin(former_stream::check(&*self.store, &self.control, body)).await?;
        }
        let view = self.control.view(&pass);
        match blocking::run(body.len(), || self.router.plan_among(operation, body, &names, &view)) {
            Ok(plan) => Ok(Planned { names, plan, pass, prepared }),
            Err(error) => Err(name_rules(error, &names, &self.control)),
        }
    }
}
