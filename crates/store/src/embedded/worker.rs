//! The one thread that owns the database.
//!
//! The engine is one lock around one SQLite connection, so more threads would only wait for each other; a pool of
//! blocking threads would also cost a wake-up of a cold thread for every request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use dynoxide::Database;
use futures::channel::oneshot;
use heatsink_dynamo::{Error, Outcome};

/// The engine reads expressions and statements by recursion, one level for each parenthesis; both are at most 8 KB
/// of text, and this holds that many levels many times over. Only what is touched is ever real memory.
const STACK: usize = 256 << 20;

type Job = Box<dyn FnOnce(&Database) + Send>;

pub(super) struct Worker {
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Opens the database on a new thread.
    pub(super) fn start(path: Option<PathBuf>) -> Result<Self, Error> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (report, opened) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("embedded-store".to_owned())
            .stack_size(STACK)
            .spawn(move || match open(path.as_deref()) {
                Ok(database) => {
                    let _ = report.send(Ok(()));
                    work(database, path.as_deref(), &todo);
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
        job: impl FnOnce(&Database) -> A + Send + 'static,
    ) -> Result<A, Error> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |database| {
            // Nobody waits for it any more: the work is done all the same.
            let _ = answer.send(job(database));
        });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| {
            let mut error = Error::internal("the embedded engine panicked on this request");
            error.outcome = Outcome::Unknown;
            error
        })
    }
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

fn open(path: Option<&Path>) -> Result<Database, Error> {
    let opened = match path {
        None => Database::memory(),
        Some(path) => {
            let name = path
                .to_str()
                .ok_or_else(|| Error::internal(format!("{} is not a UTF-8 path", path.display())))?;
            Database::new(name)
        }
    };
    opened.map_err(|why| match path {
        None => Error::internal(format!("the embedded engine could not start: {why}")),
        Some(path) => Error::internal(format!("{} could not be opened as a database: {why}", path.display())),
    })
}

fn work(mut database: Database, path: Option<&Path>, todo: &mpsc::Receiver<Job>) {
    while let Ok(job) = todo.recv() {
        if catch_unwind(AssertUnwindSafe(|| job(&database))).is_err() {
            // The panic left the engine's lock poisoned: whatever was half done is rolled back by a new connection.
            if let Ok(fresh) = open(path) {
                database = fresh;
            }
        }
    }
}
