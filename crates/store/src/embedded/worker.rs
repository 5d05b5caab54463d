//! The thread that owns the database.
//!
//! The engine is one lock around one SQLite connection, so more threads would only wait for each
//! other; a pool of blocking threads would also cost a wake-up of a cold thread for every request.
//!
//! Short jobs pass long ones: of the waiting jobs, requests of up to [`SHORT`] bytes come first,
//! and a longer one after every [`PASSING`] of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use dynoxide::storage::Storage;
use futures::channel::oneshot;
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::Env;

use super::engine::Engine;
use super::expiry::Expiry;
use super::file::DataFile;
use super::synchronous::Synchronous;

/// The engine reads expressions and statements by recursion, one level for each parenthesis; both
/// are at most 8 KB of text, and this holds that many levels many times over. Only what is touched
/// is ever real memory.
const STACK: usize = 256 << 20;

/// The largest request, in bytes, that counts as a short job.
const SHORT: usize = 64 * 1024;
/// How many short jobs may pass a long one.
const PASSING: usize = 8;

struct Job {
    /// How long the request is, in bytes.
    bytes: usize,
    act: Box<dyn FnOnce(&Engine) + Send>,
}

pub(super) struct Worker {
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Whether items expire.
    expires: Arc<AtomicBool>,
}

impl Worker {
    /// Opens the database on a new thread; in memory if there is no file.
    pub(super) fn start(file: Option<(PathBuf, Synchronous)>, env: Arc<dyn Env>) -> Result<Self, Error> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (report, opened) = mpsc::channel();
        let expires = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&expires);
        let thread = std::thread::Builder::new()
            .name("embedded-store".to_owned())
            .stack_size(STACK)
            .spawn(move || match DatabaseSource::open(file, env) {
                Ok((source, engine)) => {
                    let _ = report.send(Ok(()));
                    work(&source, engine, &todo, &told);
                }
                Err(why) => {
                    let _ = report.send(Err(why));
                }
            })
            .map_err(|why| Error::internal(format!("the embedded store's thread could not start: {why}")))?;
        opened.recv().unwrap_or_else(|_| {
            Err(Error::internal("the embedded store's thread ended while it opened the database"))
        })?;
        Ok(Worker { jobs: Some(jobs), thread: Some(thread), expires })
    }

    /// Lets items expire from now on.
    pub(super) fn expire(&self) {
        self.expires.store(true, Ordering::Relaxed);
    }

    /// Runs `job`, of a request of so many bytes, on the database. It runs to its end even if its
    /// caller has gone.
    ///
    /// # Errors
    /// `InternalServerError`, its outcome unknown, when the engine panicked.
    pub(super) async fn run<A: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce(&Engine) -> A + Send + 'static,
    ) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        let act = Box::new(move |engine: &Engine| {
            // The caller has gone: the work is done all the same.
            let _ = answer.send(job(engine));
        });
        self.hand_over(Job { bytes, act })?;
        await_answer(answered).await
    }

    /// Runs `job`, of a request of so many bytes that changes nothing, on the database, unless its
    /// caller has gone before it starts.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) async fn run_if_awaited<A: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce(&Engine) -> A + Send + 'static,
    ) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        let act = Box::new(move |engine: &Engine| {
            if !answer.is_canceled() {
                let _ = answer.send(job(engine));
            }
        });
        self.hand_over(Job { bytes, act })?;
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
            // A panic outside a job has no caller to report to.
            let _ = thread.join();
        }
    }
}

fn gone() -> Error {
    Error::internal("the embedded store's thread has ended")
}

/// The location of the database, so that it can be opened again.
struct DatabaseSource {
    location: DatabaseLocation,
    env: Arc<dyn Env>,
}

enum DatabaseLocation {
    /// A database in memory ends with its last connection: the keeper is one that is never used.
    Memory {
        name: String,
        _keeper: Box<Storage>,
    },
    File(DataFile, Synchronous),
}

impl DatabaseSource {
    fn open(
        file: Option<(PathBuf, Synchronous)>,
        env: Arc<dyn Env>,
    ) -> Result<(DatabaseSource, Engine), Error> {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let location = match file {
            None => {
                // SQLite's name for a database in this process's memory that several connections
                // can open.
                let number = STORES.fetch_add(1, Ordering::Relaxed);
                let name = format!("file:heatsink-{number}?mode=memory&cache=shared");
                let keeper = Storage::new(&name).map_err(|why| unopened(&name, &why))?;
                DatabaseLocation::Memory { name, _keeper: Box::new(keeper) }
            }
            Some((path, synchronous)) => DatabaseLocation::File(DataFile::hold(&path)?, synchronous),
        };
        let source = DatabaseSource { location, env };
        let engine = source.connect()?;
        Ok((source, engine))
    }

    fn connect(&self) -> Result<Engine, Error> {
        let (name, file) = match &self.location {
            DatabaseLocation::Memory { name, .. } => (name.as_str(), None),
            DatabaseLocation::File(file, synchronous) => (file.name(), Some(*synchronous)),
        };
        Engine::open(name, file, self.env.clone()).map_err(|why| unopened(name, &why))
    }
}

fn unopened(name: &str, why: &dynoxide::DynoxideError) -> Error {
    Error::internal(format!("{name} could not be opened as a database: {why}"))
}

/// The waiting jobs, in the order of execution.
struct Jobs<'a> {
    coming: &'a mpsc::Receiver<Job>,
    short: VecDeque<Job>,
    long: VecDeque<Job>,
    /// Short jobs that have passed the first long one.
    passed: usize,
}

impl<'a> Jobs<'a> {
    fn new(coming: &'a mpsc::Receiver<Job>) -> Self {
        Jobs { coming, short: VecDeque::new(), long: VecDeque::new(), passed: 0 }
    }

    fn put(&mut self, job: Job) {
        if job.bytes <= SHORT { &mut self.short } else { &mut self.long }.push_back(job);
    }
}

/// Ends once no job waits and no sender is left.
impl Iterator for Jobs<'_> {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        while let Ok(job) = self.coming.try_recv() {
            self.put(job);
        }
        if self.short.is_empty() && self.long.is_empty() {
            self.put(self.coming.recv().ok()?);
        }
        let first = if self.passed < PASSING || self.long.is_empty() { self.short.pop_front() } else { None };
        match first {
            Some(job) => {
                self.passed += usize::from(!self.long.is_empty());
                Some(job)
            }
            None => {
                self.passed = 0;
                self.long.pop_front()
            }
        }
    }
}

fn work(source: &DatabaseSource, engine: Engine, todo: &mpsc::Receiver<Job>, expires: &AtomicBool) {
    let mut open = Some(engine);
    let mut expiry = Expiry::default();
    for job in Jobs::new(todo) {
        if open.is_none() {
            open = source.connect().ok();
        }
        // Without a database the job is dropped, and its caller told.
        let Some(engine) = &open else { continue };
        let act = || {
            if expires.load(Ordering::Relaxed) {
                expiry.carry_on(engine);
            }
            (job.act)(engine);
        };
        if catch_unwind(AssertUnwindSafe(act)).is_err() {
            // Closing this connection lets SQLite roll back what the panic left half done; the next
            // job opens another.
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
            let file = path.map(|path| (path, Synchronous::default()));
            let worker = Worker::start(file, Arc::new(RealEnv)).unwrap();
            let other = Worker::start(None, Arc::new(RealEnv)).unwrap();
            let table = serde_json::json!({
                "TableName": "game", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            });
            let table = serde_json::from_value(table).unwrap();
            let created =
                worker.run(0, move |engine| drive(create_table::execute(&engine.storage, table)).map(|_| ()));
            created.await.unwrap().unwrap();
            for _ in 0..3 {
                let failed = worker.run(0, |_| -> () { panic!("a defect of the engine") }).await.unwrap_err();
                assert_eq!((failed.status, failed.outcome), (500, Outcome::Unknown));
                assert_eq!(worker.run(0, |engine| engine.storage.table_count().unwrap()).await.unwrap(), 1);
            }
            assert_eq!(other.run(0, |engine| engine.storage.table_count().unwrap()).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn work_asked_for_is_done_before_the_end() {
        let worker = Worker::start(None, Arc::new(RealEnv)).unwrap();
        let (done, seen) = mpsc::channel();
        for n in 0..100 {
            let done = done.clone();
            let asked = worker.run(0, move |_| done.send(n));
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
        let busy = worker.run(0, move |_| held.recv());
        let mut busy = std::pin::pin!(busy);
        assert!(futures::poll!(&mut busy).is_pending());
        for n in 0..100 {
            let done = done.clone();
            let asked = worker.run_if_awaited(0, move |_| done.send(n));
            assert!(futures::FutureExt::now_or_never(asked).is_none());
        }
        let done = done.clone();
        let awaited = worker.run_if_awaited(0, move |_| done.send(100));
        hold.send(()).unwrap();
        let (busy, awaited) = futures::join!(busy, awaited);
        assert!(busy.unwrap().is_ok() && awaited.unwrap().is_ok());
        assert!(seen.try_iter().eq([100]));
    }

    #[tokio::test]
    async fn short_jobs_pass_long_ones_and_hold_none_up_for_good() {
        let worker = Worker::start(None, Arc::new(RealEnv)).unwrap();
        let (hold, held) = mpsc::channel::<()>();
        let (done, seen) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        let mut busy = Box::pin(worker.run(0, move |_| begin.send(()).is_ok() && held.recv().is_ok()));
        assert!(futures::poll!(&mut busy).is_pending());
        begun.await.unwrap();
        let long = (0..3).map(|n| (SHORT + 1, 100 + n));
        let short = (0..20).map(|n| (SHORT, n));
        let mut waiting = Vec::new();
        for (bytes, n) in long.chain(short) {
            let done = done.clone();
            let mut asked = Box::pin(worker.run(bytes, move |_| done.send(n)));
            assert!(futures::poll!(&mut asked).is_pending());
            waiting.push(asked);
        }
        hold.send(()).unwrap();
        assert!(busy.await.unwrap());
        for asked in waiting {
            asked.await.unwrap().unwrap();
        }
        let order: Vec<i32> = seen.try_iter().collect();
        let expected = (0..8).chain([100]).chain(8..16).chain([101]).chain(16..20).chain([102]);
        assert!(order.iter().copied().eq(expected), "{order:?}");
    }
}
