//! From a request to its plan: which tables it names decides who handles it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, wire};
use heatsink_layout::{Buckets, LayoutSource, Table};

use crate::directory::{Noting, writes};
use crate::drawn::{self, Tokens};
use crate::query::share::ItemSizes;
use crate::refusal::own;
use crate::request::Request;
use crate::{
    Plan, batch, composite, counter, hidden, partiql, point, query, rows, scan, scan_cursor, streams,
    tables_of, transact,
};

/// Makes plans. Holds nothing but what it learned of item sizes and buckets; share one per process.
#[derive(Clone, Debug, Default)]
pub struct Router {
    /// What the items of each table weigh, learned from answers.
    pub(crate) sizes: Arc<ItemSizes>,
    /// What is known of the directory of buckets.
    pub(crate) buckets: Arc<Buckets>,
    /// How many rows of counters were drawn.
    drawn: Arc<AtomicU16>,
    /// What transactions with tokens were sent as, where that does not follow from them.
    pub(crate) tokens: Tokens,
}

impl Router {
    /// A router that has learned nothing yet.
    pub fn new() -> Self {
        Router::default()
    }

    /// A row of a counter: all come in turn.
    pub(crate) fn draw(&self, shards: u16) -> u16 {
        self.drawn.fetch_add(1, Ordering::Relaxed) % shards.max(1)
    }

    /// The plan of a request. Every table that it names ([`tables_of`]) must be known to `layouts` by now: a table that `layouts`
    /// does not know is taken as unsharded.
    ///
    /// # Errors
    /// DynamoDB's own error where the request is wrong, `ValidationException` for what sharded tables do not
    /// support yet; nothing has been sent.
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
            return hidden::list_tables(body, layouts);
        }
        if let Some(hidden) = tables.iter().find(|name| layouts.is_hidden(name)) {
            return Err(hidden::refuse(operation, hidden));
        }
        if operation == Operation::ListTagsOfResource {
            return Ok(hidden::list_tags(body));
        }
        if let Some(plan) = hidden::list(operation, body, layouts) {
            return Ok(plan);
        }
        let Some(schema) = tables.iter().find_map(|name| layouts.table(name)) else {
            scan_cursor::refuse_of_before(operation, body, tables)?;
            return Ok(Plan::Forward {
                operation,
                body: body.clone(),
                why: "no table of the request is sharded",
            });
        };
        if operation == Operation::UpdateTimeToLive && schema.has_counters() {
            counter::refuse_expiry(body)?;
        }
        if !operation.touches_items() {
            let why = "an operation on the table itself, not on its items";
            return Ok(Plan::Forward { operation, body: body.clone(), why });
        }
        wire::check(operation, body)?;
        let request = Request::read(body)?;
        let plan = |request: &Request<'_>| self.plan_valid(operation, request, tables, &schema, layouts);
        if operation == Operation::Scan { scan_cursor::plan(&request, &schema, plan) } else { plan(&request) }
    }

    /// The plan of a valid request on items, of which `schema` is the first recorded table.
    fn plan_valid(
        &self,
        operation: Operation,
        request: &Request<'_>,
        tables: &[Cow<'_, str>],
        schema: &Arc<Table>,
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        let drawn = |name: &Cow<'_, str>| layouts.table(name).is_some_and(|table| table.has_drawn());
        if schema.has_drawn() || tables.len() > 1 && tables.iter().any(drawn) {
            return drawn::plan(self, operation, request, schema, layouts);
        }
        self.plan_noting(operation, request, schema, layouts)
    }

    /// The plan of a valid request, after the rows of the buckets that it is the first to put something into.
    pub(crate) fn plan_noting(
        &self,
        operation: Operation,
        request: &Request<'_>,
        schema: &Arc<Table>,
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        if !writes(operation) {
            return self.plan_recorded(operation, request, schema, layouts);
        }
        let noting = Noting::new(layouts);
        let plan = self.plan_recorded(operation, request, schema, &noting)?;
        Ok(noting.register(plan, &self.buckets))
    }

    fn plan_recorded(
        &self,
        operation: Operation,
        request: &Request<'_>,
        schema: &Arc<Table>,
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        if matches!(operation, Operation::Query | Operation::Scan)
            && let Some(index) = composite::named(request, schema)?
        {
            return composite::plan(operation, request, schema, index, layouts);
        }
        match operation {
            Operation::GetItem | Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
                let holder = request.get(point::holder(operation)).unwrap_or_default();
                match rows::layout_of(schema, layouts, holder) {
                    Some(layout) if operation == Operation::GetItem => {
                        rows::get(request, schema, &layout, layouts)
                    }
                    Some(layout) if layout.counted().is_some() => {
                        counter::point(self, operation, request, schema, &layout, layouts)
                    }
                    _ => point::plan(operation, request, schema, layouts),
                }
            }
            Operation::Query | Operation::Scan if schema.has_counters() => {
                self.plan_counting(operation, request, schema, layouts)
            }
            Operation::Query => query::plan(self, request.body, schema, layouts),
            Operation::Scan => scan::plan(request, schema, layouts),
            Operation::BatchGetItem | Operation::BatchWriteItem => batch::plan(operation, request, layouts),
            Operation::TransactGetItems | Operation::TransactWriteItems => {
                transact::plan(operation, request, layouts)
            }
            Operation::GetShardIterator => Ok(streams::iterator(request, schema)),
            Operation::GetRecords => Ok(streams::records(request, schema)),
            Operation::ExecuteStatement
            | Operation::BatchExecuteStatement
            | Operation::ExecuteTransaction => partiql::plan(self, operation, request, layouts),
            _ => Err(own(format!(
                "{} is not supported on a sharded table yet: table {} is sharded by a rule of Heatsink. Nothing was read or written",
                operation.name(),
                schema.name
            ))),
        }
    }

    /// A Query or Scan of a table with counters.
    fn plan_counting(
        &self,
        operation: Operation,
        request: &Request<'_>,
        schema: &Arc<Table>,
        layouts: &dyn LayoutSource,
    ) -> Result<Plan, Error> {
        let plain = |body: &Bytes| match operation {
            Operation::Query => query::plan(self, body, schema, layouts),
            _ => scan::plan(&Request::read(body)?, schema, layouts),
        };
        let index = request.string("IndexName")?;
        match index.as_deref().map(|name| schema.indexes.iter().find(|index| index.name == name)) {
            Some(Some(index)) => counter::index(operation, request, schema, index, &plain),
            None if operation == Operation::Scan => counter::scan(request, schema, layouts),
            // An index that is not known here is the store's to refuse.
            None | Some(None) => plain(request.body),
        }
    }
}
