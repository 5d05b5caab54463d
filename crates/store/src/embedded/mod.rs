//! The embedded store: DynamoDB's operations carried out by the dynoxide library (SQLite), in
//! memory or in a file.
//!
//! A request is checked ([`heatsink_dynamo::wire`]) and read on the caller's task, carried out on
//! the one thread that owns the database, and its answer is written on the caller's task again: the
//! thread, which every request has to pass, does nothing but the engine's own work.
//!
//! Not here: partitions, capacity limits and throttling (`physics`), shards (`route`).

mod act;
mod answer;
mod backups_table;
mod continuous_backups;
mod costly;
mod describe;
mod engine;
mod expiry;
mod expressions;
pub(crate) mod file;
mod key_condition;
mod one_transaction;
mod pages;
mod query_end;
mod refusal;
mod region;
mod stream_schema;
mod streams;
mod synchronous;
mod table_streams;
mod token_table;
mod tokens;
mod worker;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dynoxide::actions;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, wire};
use heatsink_env::{Env, RealEnv};

use crate::Store;
use act::{Act, Answer, Asked};
use costly::evaluator::Evaluator;
use costly::filter::Filtered;
use costly::write::{Costly, Look, Seen};
use engine::{Engine, drive};
use expressions::NO_TABLE;
pub use synchronous::Synchronous;
use worker::Worker;

/// A DynamoDB within the process. Dropping it executes the requests that it already has and closes
/// the database.
pub struct Embedded {
    worker: Worker,
    evaluator: Evaluator,
    /// Host and port of its endpoint.
    address: Arc<str>,
    /// The region in ARNs.
    region: Arc<str>,
}

impl Embedded {
    /// A store in memory, which ends with the value.
    ///
    /// # Errors
    /// When the engine cannot start.
    pub fn memory() -> Result<Self, Error> {
        Self::memory_with(Arc::new(RealEnv))
    }

    /// The same, with its own clock.
    ///
    /// # Errors
    /// When the engine cannot start.
    pub fn memory_with(env: Arc<dyn Env>) -> Result<Self, Error> {
        Self::of(Worker::start(None, env)?)
    }

    /// A store that keeps its tables in a file, created if it does not exist. Beside it are
    /// SQLite's `-wal` and `-shm` while it is open, and `.lock`. All are readable and writable only
    /// for their owner. Acknowledged writes survive `kill -9` ([`Synchronous::Normal`]).
    ///
    /// # Errors
    /// When another process has the file open, when it is not a database of this engine, when it is
    /// a symbolic link or no regular file, or when it cannot be opened. A file that is refused is
    /// not changed.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::file_with(path, Synchronous::default(), Arc::new(RealEnv))
    }

    /// The same, with what its writes survive, and with its own clock.
    ///
    /// # Errors
    /// As [`Embedded::file`].
    pub fn file_with(
        path: impl AsRef<Path>,
        synchronous: Synchronous,
        env: Arc<dyn Env>,
    ) -> Result<Self, Error> {
        Self::of(Worker::start(Some((path.as_ref().to_owned(), synchronous)), env)?)
    }

    fn of(worker: Worker) -> Result<Self, Error> {
        Ok(Embedded {
            worker,
            evaluator: Evaluator::start()?,
            address: "localhost".into(),
            region: region::DEFAULT.into(),
        })
    }

    /// Sets the host and port of the endpoint: the answer of `DescribeEndpoints`.
    #[must_use]
    pub fn served_at(self, address: &str) -> Self {
        Embedded { address: address.into(), ..self }
    }

    /// Sets the region that the ARNs of its tables, indexes and streams name; `us-east-1` without.
    #[must_use]
    pub fn in_region(self, region: &str) -> Self {
        Embedded { region: region.into(), ..self }
    }

    /// Deletes items whose time to live is over, as DynamoDB does: soon, never at once.
    #[must_use]
    pub fn expiring(self) -> Self {
        self.worker.expire();
        self
    }

    /// Answers operations that the engine does not have.
    fn describe(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let address = self.address.clone();
        async move {
            wire::check(operation, &body)?;
            let request: serde_json::Value =
                serde_json::from_slice(&body).map_err(|why| refusal::unreadable(operation, &why))?;
            let answer = move |engine: &Engine| {
                if streams::answers(operation) {
                    streams::answer(engine, operation, &request)
                } else if continuous_backups::answers(operation) {
                    continuous_backups::answer(engine, operation, &request)
                } else {
                    describe::answer(engine, operation, &request, &address)
                }
            };
            answer::write(&self.worker.run(body.len(), answer).await??)
        }
        .boxed()
    }

    fn run(&self, operation: Operation, body: Bytes, act: Act) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            wire::check(operation, &body)?;
            costly::reading::check(operation, &body)?;
            costly::legacy::check(operation, &body)?;
            costly::statement::check(operation, &body)?;
            if let Some(error) = expressions::refusal(operation, &body) {
                let error = refusal::enveloped(operation, error);
                return Err(self.first_of_several(operation, &body, act, error).await);
            }
            if let Some(filtered) = Filtered::read(operation, &body)? {
                return self.filtered(operation, filtered, &body, act).await;
            }
            match Costly::read(operation, &body)? {
                Some(costly) => self.careful(operation, costly, &body, act).await,
                None => self.engine(operation, &body, act).await,
            }
        }
        .boxed()
    }

    /// Executes the request in the engine unchanged.
    async fn engine(&self, operation: Operation, body: &[u8], act: Act) -> Result<Bytes, Error> {
        let asked = read(operation, body, act)?;
        let done = if operation.only_reads() {
            self.worker.run_if_awaited(body.len(), asked).await?
        } else {
            self.worker.run(body.len(), asked).await?
        };
        finish(operation, done)
    }

    /// The mistake that DynamoDB tells, where `error` is one of the request's.
    async fn first_of_several(&self, operation: Operation, body: &Bytes, act: Act, error: Error) -> Error {
        let Some(asked) = expressions::without_table(operation, body) else { return error };
        let asked = match read(operation, &asked, act) {
            Ok(asked) => asked,
            Err(first) => return first,
        };
        let found = self.worker.run(body.len(), move |engine| match engine.storage.table_exists(NO_TABLE) {
            Ok(false) => asked(engine).err(),
            _ => None,
        });
        match found.await {
            Err(stopped) => stopped,
            Ok(Some(found)) => match refusal::refused(operation, found) {
                first if first.code == Code::ResourceNotFoundException => error,
                first => first,
            },
            Ok(None) => error,
        }
    }

    /// Reads a page whose filter may be evaluated afterwards, on the evaluator's thread.
    async fn filtered(
        &self,
        operation: Operation,
        filtered: Filtered,
        body: &[u8],
        act: Act,
    ) -> Result<Bytes, Error> {
        let (asked, probe) = (read(operation, body, act)?, read(operation, &filtered.probe, act)?);
        let filtered = Arc::new(filtered);
        let weigh = Arc::clone(&filtered);
        let weighed = self.worker.run_if_awaited(body.len(), move |engine| {
            let cheap = match probe(engine) {
                Ok(told) => told.json().is_ok_and(|told| weigh.is_cheap(&told)),
                // The engine refuses the request as well, before it reads any row.
                Err(_) => true,
            };
            cheap.then(|| asked(engine))
        });
        if let Some(done) = weighed.await? {
            return finish(operation, done);
        }
        let apart = filtered.apart()?;
        let page = self.engine(operation, &apart.body, act).await?;
        self.evaluator.run(move || apart.apply(&page)).await?
    }

    /// Executes a write whose expressions may be evaluated beforehand, on the evaluator's thread.
    async fn careful(
        &self,
        operation: Operation,
        costly: Costly,
        body: &[u8],
        act: Act,
    ) -> Result<Bytes, Error> {
        let costly = Arc::new(costly);
        for _ in 0..ATTEMPTS {
            let (asked, look) = (read(operation, body, act)?, Arc::clone(&costly));
            let looked = self.worker.run(body.len(), move |engine| {
                if look.repeated(engine) {
                    return Ok(Looked::Done(asked(engine)));
                }
                Ok(match look.look(engine)? {
                    Look::Cheap => Looked::Done(asked(engine)),
                    Look::Costly(seen) => Looked::Seen(seen),
                })
            });
            let seen = match looked.await?? {
                Looked::Done(done) => return finish(operation, done),
                Looked::Seen(seen) => seen,
            };
            let evaluated = Arc::clone(&costly);
            let evaluate = move || Ok::<_, Error>((evaluated.rewritten(&seen)?, seen));
            let (rewritten, seen) = self.evaluator.run(evaluate).await??;
            let (asked, again) = (read(operation, &rewritten, act)?, Arc::clone(&costly));
            let done = self
                .worker
                .run(rewritten.len(), move |engine| {
                    let act = || again.act(engine, || asked(engine));
                    again.unchanged(engine, &seen).then(act)
                })
                .await?;
            if let Some(done) = done {
                return finish(operation, done);
            }
        }
        // Evaluated on the engine's thread, where no other write can come in between, so that it
        // ends under any load.
        let done = self.worker.run(body.len(), move |engine| {
            let body = match costly.look(engine)? {
                Look::Cheap => costly.body().clone(),
                Look::Costly(seen) => costly.rewritten(&seen)?,
            };
            let asked = read(operation, &body, act)?;
            Ok::<_, Error>(costly.act(engine, || asked(engine)))
        });
        finish(operation, done.await??)
    }
}

/// How often a write is evaluated again because its items changed meanwhile, before other requests
/// have to wait for it.
const ATTEMPTS: usize = 4;

type Done = dynoxide::Result<Box<dyn Answer>>;

enum Looked {
    Done(Done),
    Seen(Seen),
}

fn read(operation: Operation, body: &[u8], act: Act) -> Result<Asked, Error> {
    act(body).map_err(|why| refusal::unreadable(operation, &why))
}

fn finish(operation: Operation, done: Done) -> Result<Bytes, Error> {
    done.map_err(|why| refusal::refused(operation, why))?.json()
}

impl Store for Embedded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let answer = self.carry_out(operation, body);
        if !region::names(operation) {
            return answer;
        }
        async move { Ok(region::put(operation, &answer.await?, &self.region)) }.boxed()
    }
}

impl Embedded {
    /// Carries a request out; the answer has the engine's own region.
    fn carry_out(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if describe::answers(operation)
            || continuous_backups::answers(operation)
            || streams::answers(operation)
        {
            return self.describe(operation, body);
        }
        macro_rules! dispatch {
            ($($name:ident => $act:expr),* $(,)?) => {
                match operation {
                    Operation::Query => query_end::hold(body.clone(), self.run(operation, body, |body| act::read(body, pages::query))),
                    $(Operation::$name => self.run(operation, body, |body| act::read(body, $act)),)*
                    // The engine has no such operation; it is answered as DynamoDB answers a name
                    // it does not know.
                    _ => futures::future::ready(Err(Error::bare(Code::UnknownOperationException))).boxed(),
                }
            };
        }
        macro_rules! plain {
            ($module:ident) => {
                |engine, request| drive(actions::$module::execute(&engine.storage, request))
            };
        }
        macro_rules! with_vectors {
            ($module:ident) => {
                |engine, request| drive(actions::$module::execute(&engine.storage, request, &engine.vectors))
            };
        }
        dispatch! {
            BatchExecuteStatement => plain!(batch_execute_statement),
            BatchGetItem => plain!(batch_get_item),
            BatchWriteItem => plain!(batch_write_item),
            CreateTable => table_streams::create_table,
            DeleteItem => plain!(delete_item),
            DeleteTable => table_streams::delete_table,
            DescribeTable => with_vectors!(describe_table),
            DescribeTimeToLive => plain!(describe_time_to_live),
            ExecuteStatement => plain!(execute_statement),
            ExecuteTransaction => tokens::execute_transaction,
            GetItem => plain!(get_item),
            ListTables => plain!(list_tables),
            ListTagsOfResource => plain!(list_tags_of_resource),
            PutItem => plain!(put_item),
            Scan => pages::scan,
            SearchVectors => with_vectors!(search_vectors),
            TagResource => plain!(tag_resource),
            TransactGetItems => plain!(transact_get_items),
            TransactWriteItems => tokens::transact_write_items,
            UntagResource => plain!(untag_resource),
            UpdateItem => plain!(update_item),
            UpdateTable => table_streams::update_table,
            UpdateTimeToLive => plain!(update_time_to_live),
        }
    }
}
