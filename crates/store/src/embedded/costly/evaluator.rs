//! The thread that evaluates costly expressions, one after another. They wait for each other, and
//! no other request waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::JoinHandle;

use futures::channel::oneshot;
use heatsink_dynamo::Error;

/// Expressions nest as deep as their text allows; see [`super::super::worker`].
const STACK: usize = 64 << 20;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Evaluator {
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Evaluator {
    pub(crate) fn start() -> Result<Self, Error> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let work = move || {
            while let Ok(job) = todo.recv() {
                // Dropping the job tells its caller, because the job holds the sender of the
                // answer.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        };
        let thread = std::thread::Builder::new()
            .name("embedded-evaluator".to_owned())
            .stack_size(STACK)
            .spawn(work)
            .map_err(|why| Error::internal(format!("the evaluator's thread could not start: {why}")))?;
        Ok(Evaluator { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs `job`, unless its caller has gone before it starts.
    ///
    /// # Errors
    /// `InternalServerError`, nothing done, when it panicked.
    pub(crate) async fn run<A: Send + 'static>(
        &self,
        job: impl FnOnce() -> A + Send + 'static,
    ) -> Result<A, Error> {
        let gone = || Error::internal("the embedded store could not evaluate this request");
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !answer.is_canceled() {
                let _ = answer.send(job());
            }
        });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
