//! The one thread that owns the database.
//!
//! The engine is one lock around one SQLite connection, so more threads would only wait for each other; a pool of
//! blocking threads would also cost a wake-up of a cold thread for every request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use dynoxide::storage::Storage;
use futures::channel::oneshot;
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::Env;

use super::engine::Engine;
use super::file::DataFile;

/// The engine reads expressions and statements by recursion, one level for each parenthesis; both are at most 8 KB
/// of text, and this holds that many levels many times over. Only what is touched is ever real memory.
const STACK: usize = 256 << 20;

type Job = Box<dyn FnOnce(&Engine) + Send>;

pub(super) struct Worker {
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Opens the database on a new thread; in memory if there is no path.
    pub(super) fn start(path: Option<PathBuf>, env: Arc<dyn Env>) -> Result<Self, Error> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (report, opened) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("embedded-store".to_owned())
            .stack_size(STACK)
            .spawn(move || match Home::open(path, env) {
                Ok((home, engine)) => {
                    let _ = report.send(Ok(()));
                    work(&home, engine, &todo);
                }
                Err(why) => {
                    let _ = report.send(Err(why));
                }
            })
            .map_err(|why| Error::internal(format!("the embedded store's thread could not start: {why}")))?;
        opened.recv().unwrap_or_else(|_| {
            Err(Error::internal("the embedded store's thread ended while it opened the database"))
        })?;
        Ok(Worker { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `job` on the database. It runs to its end even if the caller stops waiting.
    ///
    /// # Errors
    /// `InternalServerError`, its outcome unknown, when the engine panicked.
    pub(super) async fn run<A: Send + 'static>(
        &self,
        job: impl FnOnce(&Engine) -> A + Send + 'static,
    ) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        self.hand_over(Box::new(move |engine| {
            // Nobody waits for it any more: the work is done all the same.
            let _ = answer.send(job(engine));
        }))?;
        await_answer(answered).await
    }

    /// Runs `job`, which changes nothing, on the database; not if the caller has stopped waiting before its turn comes.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) async fn run_if_awaited<A: Send + 'static>(
        &self,
        job: impl FnOnce(&Engine) -> A + Send + 'static,
    ) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        self.hand_over(Box::new(move |engine| {
            if !answer.is_canceled() {
                let _ = answer.send(job(engine));
            }
        }))?;
        await_answer(answered).await
    }

    fn hand_over(&self, job: Job) -> Result<(), Error> {
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())
    }
}

async fn await_answer<A>(answered: oneshot::Receiver<A>) -> Result<A, Error> {
    answered.await.map_err(|_| {
        let mut error = Error::internal("the embedded engine failed on this request");
        error.outcome = Outcome::Unknown;
        error
    })
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic outside a job has nobody left to tell.
            let _ = thread.join();
        }
    }
}

fn gone() -> Error {
    Error::internal("the embedded store's thread has ended")
}

/// Where the database lives, so that it can be opened again.
struct Home {
    place: Place,
    env: Arc<dyn Env>,
}

enum Place {
    /// A database in memory ends with its last connection: the keeper is one that is never used.
    Memory {
        name: String,
        _keeper: Box<Storage>,
    },
    File(DataFile),
}

impl Home {
    fn open(path: Option<PathBuf>, env: Arc<dyn Env>) -> Result<(Home, Engine), Error> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let place = match path {
            None => {
                // SQLite's name for a database in this process's memory that several connections can open.
                let number = STORES.fetch_add(1, Ordering::Relaxed);
                let name = format!("file:heatsink-{number}?mode=memory&cache=shared");
                let keeper = Storage::new(&name).map_err(|why| unopened(&name, &why))?;
                Place::Memory { name, _keeper: Box::new(keeper) }
            }
            Some(path) => Place::File(DataFile::hold(&path)?),
        };
        let home = Home { place, env };
        let engine = home.connect()?;
        Ok((home, engine))
    }

    fn connect(&self) -> Result<Engine, Error> {
        let (name, exclusive) = match &self.place {
            Place::Memory { name, .. } => (name.as_str(), false),
            Place::File(file) => (file.name(), true),
        };
        Engine::open(name, exclusive, self.env.clone()).map_err(|why| unopened(name, &why))
    }
}

fn unopened(name: &str, why: &dynoxide::DynoxideError) -> Error {
    Error::internal(format!("{name} could not be opened as a database: {why}"))
}

fn work(home: &Home, engine: Engine, todo: &mpsc::Receiver<Job>) {
    let mut open = Some(engine);
    while let Ok(job) = todo.recv() {
        if open.is_none() {
            open = home.connect().ok();
        }
        // Without a database the job is dropped, and its caller told.
        let Some(engine) = &open else { continue };
        if catch_unwind(AssertUnwindSafe(|| job(engine))).is_err() {
            // Closing this connection lets SQLite roll back what the panic left half done; the next job opens another.
            open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use dynoxide::actions::create_table;
    use heatsink_env::RealEnv;

    use super::super::engine::drive;
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_unknown_outcome_and_the_data_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        for path in [None, Some(folder.path().join("data.db"))] {
            let worker = Worker::start(path, Arc::new(RealEnv)).unwrap();
            let other = Worker::start(None, Arc::new(RealEnv)).unwrap();
            let table = serde_json::json!({
                "TableName": "game", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            });
            let table = serde_json::from_value(table).unwrap();
            let created =
                worker.run(move |engine| drive(create_table::execute(&engine.storage, table)).map(|_| ()));
            created.await.unwrap().unwrap();
            for _ in 0..3 {
                let failed = worker.run(|_| -> () { panic!("a defect of the engine") }).await.unwrap_err();
                assert_eq!((failed.status, failed.outcome), (500, Outcome::Unknown));
                assert_eq!(worker.run(|engine| engine.storage.table_count().unwrap()).await.unwrap(), 1);
            }
            assert_eq!(other.run(|engine| engine.storage.table_count().unwrap()).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn work_asked_for_is_done_before_the_end() {
        let worker = Worker::start(None, Arc::new(RealEnv)).unwrap();
        let (done, seen) = mpsc::channel();
        for n in 0..100 {
            let done = done.clone();
            let asked = worker.run(move |_| done.send(n));
            // Polled once, then forgotten: the caller hung up.
            assert!(futures::FutureExt::now_or_never(asked).is_none_or(|answer| answer.is_ok()));
        }
        drop(worker);
        assert!(seen.try_iter().eq(0..100));
    }

    #[tokio::test]
    async fn a_read_that_nobody_waits_for_is_not_begun() {
        let worker = Worker::start(None, Arc::new(RealEnv)).unwrap();
        let (hold, held) = mpsc::channel::<()>();
        let (done, seen) = mpsc::channel();
        let busy = worker.run(move |_| held.recv());
        let mut busy = std::pin::pin!(busy);
        assert!(futures::poll!(&mut busy).is_pending());
        for n in 0..100 {
            let done = done.clone();
            let asked = worker.run_if_awaited(move |_| done.send(n));
            assert!(futures::FutureExt::now_or_never(asked).is_none());
        }
        let done = done.clone();
        let awaited = worker.run_if_awaited(move |_| done.send(100));
        hold.send(()).unwrap();
        let (busy, awaited) = futures::join!(busy, awaited);
        assert!(busy.unwrap().is_ok() && awaited.unwrap().is_ok());
        assert!(seen.try_iter().eq([100]));
    }
}
