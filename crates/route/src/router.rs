//! From a request to its plan: which tables it names decides who handles it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Table};

use crate::assigned;
use crate::context::{Learned, Named, Places, PlanContext};
use crate::directory::enter_first;
use crate::items::point;
use crate::items::{batch, transact};
use crate::layout_cursor::{Bare, Unlaid};
use crate::request::Request;
use crate::shared::{ItemPlanner, Shared};
use crate::{
    Plan, counter, hidden, layout_cursor, list_tables, moving, partiql, query, scan, streams, tables_of,
    unrecorded,
};

/// Makes plans. Holds nothing but what it learned of item sizes and buckets; share one per process.
#[derive(Clone, Debug)]
pub struct Router {
    shared: Shared,
    /// The names of the tables that clients never see.
    hidden: Arc<[String]>,
}

impl Default for Router {
    fn default() -> Self {
        Router { shared: Shared::new(Arc::new(ByOperation)), hidden: Arc::default() }
    }
}

impl Router {
    /// A router that has learned nothing yet, and knows no time.
    pub fn new() -> Self {
        Router::default()
    }

    /// The same router, with a clock. Without one it does not know up to when writers that bypass
    /// Heatsink may have begun buckets, nor how old a transaction's token is.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Router { shared: self.shared.with_clock(clock), ..self }
    }

    /// The same router, which hides tables of these names from clients: Heatsink's own, whether
    /// they exist yet or not.
    #[must_use]
    pub fn hiding(self, hidden: Arc<[String]>) -> Self {
        Router { hidden, ..self }
    }

    /// The plan of a request. Every table that it names ([`tables_of`]) must be known to `layouts`
    /// by now: a table that `layouts` does not know is taken as unsharded.
    ///
    /// # Errors
    /// DynamoDB's own error where the request is wrong, `ValidationException` for what sharded
    /// tables do not support yet; nothing has been sent.
    pub fn plan(
        &self,
        operation: Operation,
        body: &Bytes,
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        self.plan_among(operation, body, &tables_of(operation, body)?, layouts)
    }

    /// [`plan`](Self::plan) for whoever has found the tables of the request already.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_among(
        &self,
        operation: Operation,
        body: &Bytes,
        tables: &[Cow<'_, str>],
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        if operation == Operation::ListTables {
            return self.list_tables(body, |_| true);
        }
        if let Some(hidden) = tables.iter().find(|name| is_one_of(name, &self.hidden)) {
            return Err(hidden::refuse(operation, hidden));
        }
        if operation == Operation::ListTagsOfResource {
            return Ok(hidden::list_tags(body));
        }
        if let Some(plan) = hidden::list(operation, body, &self.hidden) {
            return Ok(plan);
        }
        let Some(schema) = tables.iter().find_map(|name| layouts.table(name)) else {
            let position = match operation {
                Operation::Query | Operation::Scan => Unlaid::read(body),
                Operation::ExecuteStatement if partiql::names_layout(body) => Unlaid::Other,
                _ => Unlaid::Own,
            };
            let why = "no table of the request is sharded";
            return match position {
                Unlaid::Own => Ok(Plan::Forward { operation, body: body.clone(), why }),
                Unlaid::Before(body) => Ok(Plan::Forward { operation, body, why }),
                Unlaid::Other => Err(layout_cursor::of_no_layout(tables)),
            };
        };
        if operation == Operation::UpdateTimeToLive && schema.key_layouts().any_moves() {
            // The move knows what expires from its record: an item that expires in its new slot
            // must leave no old copy behind.
            return Err(moving::unsupported(operation, &schema.name));
        }
        if operation == Operation::UpdateTimeToLive && schema.has_counters() {
            counter::refuse_expiry(body)?;
        }
        if !operation.touches_items() {
            let why = "an operation on the table itself, not on its items";
            return Ok(Plan::Forward { operation, body: body.clone(), why });
        }
        let pages = matches!(operation, Operation::Query | Operation::Scan);
        let restored = pages.then(|| layout_cursor::restored(body, &schema)).flatten();
        let request = Request::checked(operation, restored.as_ref().unwrap_or(body))?;
        let plan =
            |request: &Request<'_>| plan_valid(&self.shared, operation, request, tables, &schema, layouts);
        if !pages {
            return plan(&request);
        }
        let index = request.string("IndexName")?;
        // The order of a Query of the table no layout changes.
        if operation == Operation::Query && index.is_none() {
            return plan(&request);
        }
        let bare = Bare::of(&schema, index.as_deref(), layouts);
        let plan = match operation {
            Operation::Query => layout_cursor::query(&request, &schema, bare, plan)?,
            _ => plan(&request)?,
        };
        Ok(layout_cursor::kept(plan, operation, &schema, bare))
    }

    /// The plan of `ListTables` for a client that sees the tables that `sees` says, of those that
    /// are not hidden.
    ///
    /// # Errors
    /// `SerializationException` for a body that is no JSON object, or that has a member twice.
    pub fn list_tables(
        &self,
        body: &Bytes,
        sees: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Plan, Error> {
        let hidden = Arc::clone(&self.hidden);
        list_tables::plan(body, move |name| !hidden.iter().any(|hidden| hidden == name) && sees(name))
    }
}

/// The plan of a valid request on items, of which `schema` is the first recorded table.
fn plan_valid(
    shared: &Shared,
    operation: Operation,
    request: &Request<'_>,
    tables: &[Cow<'_, str>],
    schema: &Arc<Table>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    let assigned =
        |name: &Cow<'_, str>| layouts.table(name).is_some_and(|table| table.has_externally_assigned());
    if schema.has_externally_assigned() || tables.len() > 1 && tables.iter().any(assigned) {
        return assigned::plan(shared, operation, request, schema, layouts);
    }
    ByOperation.plan(shared, operation, request, schema, layouts, None).map(|(plan, _)| plan)
}

/// Plans a request on items by its operation, then what comes before its calls: items that move,
/// buckets that are new.
#[derive(Debug)]
struct ByOperation;

impl ItemPlanner for ByOperation {
    fn plan(
        &self,
        shared: &Shared,
        operation: Operation,
        request: &Request<'_>,
        schema: &Arc<Table>,
        layouts: &dyn LayoutSource,
        places: Option<&Places>,
    ) -> Result<(Plan, Vec<Named>), Error> {
        let learned = RefCell::<Learned>::default();
        let now = || shared.now();
        let context = PlanContext::new(layouts, &now, places, operation, &learned);
        let mut plan = plan_recorded(shared, operation, request, schema, &context)?;
        if learned.borrow().is_nothing() {
            return Ok((plan, Vec::new()));
        }
        // A statement has Queries of its own.
        if operation == Operation::Query && learned.borrow().gathers_moving {
            plan = moving::query::plan(shared, request, schema, &context, plan)?;
        }
        let mut learned = learned.into_inner();
        if let Some(table) = &learned.held {
            return Err(moving::held(table));
        }
        let plan = moving::plan(plan, operation, request, std::mem::take(&mut learned.moving), layouts)?;
        let plan = enter_first(plan, std::mem::take(&mut learned.buckets), &shared.buckets);
        let plan = unrecorded::enter_first(plan, std::mem::take(&mut learned.entered), &shared.entered);
        Ok((plan, learned.assumed()))
    }
}

fn plan_recorded(
    shared: &Shared,
    operation: Operation,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    match operation {
        Operation::GetItem | Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
            point::plan(operation, request, schema, context, |counter| {
                counter::write::plan(shared, operation, request, schema, counter)
            })
        }
        Operation::Query => query::plan(shared, request, schema, context),
        Operation::Scan => scan::plan(shared, request, schema, context),
        Operation::BatchGetItem | Operation::BatchWriteItem => {
            batch::plan(operation, request, context, counter::batch::plan)
        }
        Operation::TransactGetItems | Operation::TransactWriteItems => {
            transact::plan(operation, request, context)
        }
        Operation::GetShardIterator => Ok(streams::iterator(request, schema)),
        Operation::GetRecords => Ok(streams::records(request, schema)),
        Operation::ExecuteStatement | Operation::BatchExecuteStatement | Operation::ExecuteTransaction => {
            partiql::plan(shared, operation, request, context)
        }
        _ => Err(Error::gateway_rejection(format!(
            "{} is not supported on a sharded table yet: table {} is sharded by a rule of Heatsink. Nothing was read or written",
            operation.name(),
            schema.name
        ))),
    }
}

/// Whether a table is one of these, by its name or by an ARN.
fn is_one_of(name: &str, tables: &[String]) -> bool {
    let bare = if name.starts_with("arn:") { name.rsplit('/').next().unwrap_or(name) } else { name };
    tables.iter().any(|table| table == bare)
}
