//! DynamoDB's partitions in front of a store that has none: the same throttles, with the same
//! errors.
//!
//! Each request is admitted by the token buckets that it touches ([`heatsink_physics`]), executed
//! by the store behind, and then charged the cost that the store reports.
//! docs/explain/partitions.md says what is modelled and what is not;
//! docs/develop/decisions/0002-admission.md why requests pay afterwards.
//!
//! Not here: the buckets themselves, sharding.

mod batch;
mod capacity;
mod catalogue;
mod change;
mod demands;
mod gate;
mod image;
mod initial_sizes;
mod item_write;
mod locate;
mod partiql;
mod persistence;
mod plan;
mod refusal;
mod report;
mod settle;
mod statement;
mod transact;
mod warm;
mod writing;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::Env;
use heatsink_physics::{Demand, KeyPosition, Quotas, ResourceSnapshot, position};

use crate::Store;
use capacity::{CapacityDetail, IndexCosts};
use catalogue::TableInfo;
use change::{Change, Stored};
use gate::Gate;
use item_write::{ItemLocks, ItemWrite};
use warm::Warming;

/// A store behind partitions.
pub struct Partitioned<S> {
    inner: S,
    gate: Gate,
    item_locks: ItemLocks,
}

impl<S: Store> Partitioned<S> {
    /// Puts partitions in front of a store, and reads all items of its tables once, for the bytes
    /// of each partition. Partitions are not stored: every table starts with those that its present
    /// capacity gives it.
    ///
    /// # Errors
    /// The store's own, when it cannot list or describe its tables.
    pub async fn start(inner: S, env: Arc<dyn Env>, quotas: Quotas) -> Result<Self, Error> {
        Partitioned { inner, gate: Gate::new(env, quotas), item_locks: ItemLocks::new() }.learned().await
    }

    /// As [`Partitioned::start`]; the partitions are those kept in `file`, and are kept there from
    /// now on.
    ///
    /// # Errors
    /// The store's own, and `InternalServerError` if the file cannot be read or is not what was
    /// written.
    pub async fn start_kept(inner: S, env: Arc<dyn Env>, quotas: Quotas, file: &Path) -> Result<Self, Error> {
        Partitioned { inner, gate: Gate::kept(env, quotas, file)?, item_locks: ItemLocks::new() }
            .learned()
            .await
    }

    async fn learned(self) -> Result<Self, Error> {
        let store = self;
        let mut after: Option<String> = None;
        loop {
            let mut request = Object::new();
            if let Some(table) = &after {
                request.string("ExclusiveStartTableName", table);
            }
            let answer = store.inner.call(Operation::ListTables, Bytes::from(request.finish())).await?;
            let [names, last] = json::attributes_of(&answer, ["TableNames", "LastEvaluatedTableName"])
                .map_err(|_| broken())?;
            for name in json::elements(names.unwrap_or(b"[]")).map_err(|_| broken())? {
                let name = json::string(name).map_err(|_| broken())?;
                store.describe(&name).await?;
                store.read_initial_sizes(&name).await?;
            }
            let last =
                last.filter(|last| *last != b"null").map(json::string).transpose().map_err(|_| broken())?;
            match last {
                Some(last) => after = Some(last.into_owned()),
                None => return Ok(store),
            }
        }
    }

    /// The partitions of a table and of its global indexes at this moment; `None` for a table that
    /// is not known.
    pub fn snapshot(&self, table: &str) -> Option<Vec<ResourceSnapshot>> {
        self.gate.snapshot(table)
    }

    /// The same as a JSON document, for tools (docs/reference/admin-api.md).
    pub fn report(&self, table: &str) -> Option<serde_json::Value> {
        self.gate.report(table)
    }

    /// Counts so many bytes as stored under a partition key of a table, as if items held them: so a
    /// full item collection can be tried without writing its 10 GB. A table that is not known stays
    /// as it is.
    pub fn assume_stored(&self, table: &str, key: &[u8], bytes: u64) {
        let Some(info) = self.gate.table(table) else { return };
        let point = KeyPosition::first(position(key));
        let stored = Stored { on: info.id, point, bytes: i64::try_from(bytes).unwrap_or(i64::MAX) };
        self.gate.add_stored(std::iter::once(Change { demands: Vec::new(), stored: vec![stored] }));
    }

    /// A request on one table or index.
    async fn single(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let now = self.gate.now();
        let read = || {
            let name = json::string(json::member(&body, "TableName").ok()??).ok()?;
            Some((self.gate.table(&name)?, CapacityDetail::read(&body)?))
        };
        // The store refuses an unknown table, or a request that cannot be parsed.
        let Some((table, told)) = read() else { return self.inner.call(operation, body).await };
        let action = match operation {
            Operation::PutItem => "Put",
            Operation::UpdateItem => "Update",
            Operation::DeleteItem => "Delete",
            _ => {
                let demands = demands::single(operation, &body, &table);
                self.gate.admit(now, &demands).map_err(|throttles| self.gate.refuse(&throttles))?;
                return self.metered(operation, body, told, IndexCosts::None, demands).await;
            }
        };
        match ItemWrite::read(action, &body, table, 1) {
            Some(asked) => self.write(now, operation, &body, told, asked).await,
            None => self.inner.call(operation, body).await,
        }
    }

    /// Executes an admitted request and charges its cost.
    async fn metered(
        &self,
        operation: Operation,
        body: Bytes,
        told: CapacityDetail,
        costs: IndexCosts,
        demands: Vec<Demand>,
    ) -> Result<Bytes, Error> {
        let body = capacity::ask(&body, told, costs != IndexCosts::None)?;
        let writes = (costs == IndexCosts::Changed).then(|| self.gate.index_writes(&demands));
        let done = self.inner.call(operation, body).await;
        match done.and_then(|answer| capacity::tell(answer, told, writes.as_ref())) {
            Ok((answer, consumed)) => {
                self.gate.settle(&demands, Ok(&consumed));
                Ok(answer)
            }
            Err(error) => {
                self.gate.settle(&demands, Err(&error));
                Err(error)
            }
        }
    }

    /// A request on a table itself. Its answer is not always the last word (a table is `UPDATING`
    /// for a while), so after an update the store is asked again.
    async fn administer(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let mut warming = Warming::none();
        let mut asked = Some(body.clone());
        if matches!(operation, Operation::CreateTable | Operation::UpdateTable) {
            let name =
                json::member(&body, "TableName").ok().flatten().and_then(|name| json::string(name).ok());
            let known = name.and_then(|name| self.gate.table(&name));
            self.gate.permit(&plan::plans(operation, &body, known.as_deref()))?;
            warming = Warming::read(operation, &body, known.as_deref())?;
            self.gate.permit_warm(known.as_ref().map(|known| &*known.name), &warming)?;
            asked = warming.without(operation, &body)?;
        }
        let answer = match asked {
            Some(asked) => self.inner.call(operation, asked).await?,
            // The engine has nothing to change.
            None => self.described(&body).await?,
        };
        let told = json::attributes_of(&answer, ["Table", "TableDescription"]).ok();
        let info = told.and_then(|[table, description]| TableInfo::read(table.or(description)?));
        let Some(info) = info else { return Ok(answer) };
        let name = Arc::clone(&info.name);
        match operation {
            Operation::DeleteTable => self.gate.forget(&info.name),
            Operation::UpdateTable if self.describe(&info.name).await.is_ok() => {}
            _ => self.gate.learn(info),
        }
        self.gate.warm_up(&name, &warming);
        let Some(resources) = self.gate.snapshot(&name) else { return Ok(answer) };
        warm::told(&answer, &resources)
    }

    /// The answer of an `UpdateTable` that changes nothing.
    async fn described(&self, body: &Bytes) -> Result<Bytes, Error> {
        let name = json::member(body, "TableName").ok().flatten().unwrap_or(b"null");
        let mut request = Object::new();
        request.raw("TableName", name);
        let answer = self.inner.call(Operation::DescribeTable, Bytes::from(request.finish())).await?;
        let description = json::member(&answer, "Table").map_err(|_| broken())?.ok_or_else(broken)?;
        let mut update = Object::new();
        update.raw("TableDescription", description);
        Ok(Bytes::from(update.finish()))
    }

    async fn describe(&self, table: &str) -> Result<(), Error> {
        let mut request = Object::new();
        request.string("TableName", table);
        match self.inner.call(Operation::DescribeTable, Bytes::from(request.finish())).await {
            Ok(answer) => {
                let description = json::member(&answer, "Table").map_err(|_| broken())?.ok_or_else(broken)?;
                self.gate.learn(TableInfo::read(description).ok_or_else(broken)?);
                Ok(())
            }
            // Dropped in the meantime.
            Err(error) if error.code == Code::ResourceNotFoundException => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl<S: Store> Store for Partitioned<S> {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        use Operation as O;
        match operation {
            O::GetItem | O::PutItem | O::UpdateItem | O::DeleteItem | O::Query | O::Scan => {
                self.single(operation, body).boxed()
            }
            O::BatchGetItem | O::BatchWriteItem => self.batch(operation, body).boxed(),
            O::TransactGetItems | O::TransactWriteItems => self.transact(operation, body).boxed(),
            O::ExecuteStatement => self.statement(body).boxed(),
            O::BatchExecuteStatement => self.statements(body).boxed(),
            O::ExecuteTransaction => self.transaction(body).boxed(),
            O::CreateTable | O::UpdateTable | O::DescribeTable | O::DeleteTable => {
                self.administer(operation, body).boxed()
            }
            _ => self.inner.call(operation, body),
        }
    }
}

fn broken() -> Error {
    Error::internal("The store's description of its tables cannot be read")
}
