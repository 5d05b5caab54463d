//! The embedded store: DynamoDB's operations carried out by the dynoxide library (SQLite), in memory or in a file.
//!
//! A request is checked ([`heatsink_dynamo::wire`]) and read on the caller's task, carried out on the one thread that
//! owns the database, and its answer is written on the caller's task again: the thread, which every request has to
//! pass, does nothing but the engine's own work.
//!
//! Not here: partitions, capacity limits and throttling (`physics`), shards (`route`).

mod answer;
mod query_end;
mod refusal;
mod worker;

use std::path::Path;

use bytes::Bytes;
use dynoxide::Database;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Store;
use worker::Worker;

/// A DynamoDB within the process. Dropping it carries out what was already asked for and closes the database.
pub struct Embedded {
    worker: Worker,
}

impl Embedded {
    /// A store that lives in memory and ends with the value.
    ///
    /// # Errors
    /// When the engine cannot start.
    pub fn memory() -> Result<Self, Error> {
        Ok(Embedded { worker: Worker::start(None)? })
    }

    /// A store that keeps its tables in a file, made if there is none. Beside it stand SQLite's `-wal` and `-shm`
    /// while it is open. One process at a time.
    ///
    /// # Errors
    /// When the file cannot be opened, or is not a database of this engine.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Embedded { worker: Worker::start(Some(path.as_ref().to_owned()))? })
    }

    fn run<Q, A>(
        &self,
        operation: Operation,
        body: Bytes,
        act: fn(&Database, Q) -> dynoxide::Result<A>,
    ) -> BoxFuture<'_, Result<Bytes, Error>>
    where
        Q: DeserializeOwned + Send + 'static,
        A: Serialize + Send + 'static,
    {
        async move {
            wire::check(operation, &body)?;
            let request =
                serde_json::from_slice::<Q>(&body).map_err(|why| refusal::unreadable(operation, &why))?;
            drop(body);
            let job = move |database: &Database| act(database, request);
            let done = if operation.only_reads() {
                self.worker.run_if_awaited(job).await?
            } else {
                self.worker.run(job).await?
            };
            answer::write(&done.map_err(|why| refusal::refused(operation, why))?)
        }
        .boxed()
    }
}

impl Store for Embedded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        macro_rules! dispatch {
            ($($name:ident => $method:ident),* $(,)?) => {
                match operation {
                    Operation::Query => query_end::hold(body.clone(), self.run(operation, body, Database::query)),
                    $(Operation::$name => self.run(operation, body, Database::$method),)*
                    // The engine has no such operation; it is answered as DynamoDB answers a name it does not know.
                    _ => futures::future::ready(Err(Error::bare(Code::UnknownOperationException))).boxed(),
                }
            };
        }
        dispatch! {
            BatchExecuteStatement => batch_execute_statement,
            BatchGetItem => batch_get_item,
            BatchWriteItem => batch_write_item,
            CreateTable => create_table,
            DeleteItem => delete_item,
            DeleteTable => delete_table,
            DescribeStream => describe_stream,
            DescribeTable => describe_table,
            DescribeTimeToLive => describe_time_to_live,
            ExecuteStatement => execute_statement,
            ExecuteTransaction => execute_transaction,
            GetItem => get_item,
            GetRecords => get_records,
            GetShardIterator => get_shard_iterator,
            ListStreams => list_streams,
            ListTables => list_tables,
            ListTagsOfResource => list_tags_of_resource,
            PutItem => put_item,
            Scan => scan,
            SearchVectors => search_vectors,
            TagResource => tag_resource,
            TransactGetItems => transact_get_items,
            TransactWriteItems => transact_write_items,
            UntagResource => untag_resource,
            UpdateItem => update_item,
            UpdateTable => update_table,
            UpdateTimeToLive => update_time_to_live,
        }
    }
}
