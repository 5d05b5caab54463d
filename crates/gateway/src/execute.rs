//! Executes the physical calls of a plan, with bounded concurrency. The seam of `heatsink_route` is
//! filled in here.
//!
//! Beneath: `send` (one call, and its retries), `spent` (what the calls cost, and the memory that
//! they hold), `repeats` (pages that one request asks for again and again).

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use heatsink_dynamo::Error;
use heatsink_route::{Answer, Calls, Plan, Round, Take};

use crate::blocking;
use crate::budget::Share;
use crate::limits::Cost;
use crate::repeats::{Repeated, Repeats};
use crate::send::Sender;
use crate::spent::Spent;

#[cfg(test)]
mod tests;

/// Executes the calls of one plan.
pub(crate) struct Executor<'a> {
    pub(crate) sender: Sender<'a>,
    pub(crate) cost: Cost,
}

impl Executor<'_> {
    /// Executes a plan.
    pub(crate) async fn run(self, plan: Plan, share: Share) -> Result<Answer, Error> {
        let unread = AtomicUsize::new(0);
        let spent = Spent::new(self.cost, share);
        let mut execution = Execution { executor: self, spent, repeats: Repeats::default(), unread: &unread };
        let answer = {
            let mut running = plan.run(&mut execution);
            // The answers of a round are what the plan processes next.
            poll_fn(|cx| blocking::run(unread.swap(0, Ordering::Relaxed), || running.as_mut().poll(cx))).await
        };
        let metrics = execution.executor.sender.metrics;
        metrics.sent(execution.spent.calls());
        if answer.as_ref().is_ok_and(|answer| !answer.missing.is_empty()) {
            metrics.partial();
        }
        answer
    }

    fn too_costly(&self, error: Error) -> Error {
        self.sender.metrics.too_costly();
        error
    }
}

/// A plan in execution.
struct Execution<'a> {
    executor: Executor<'a>,
    spent: Spent,
    repeats: Repeats,
    /// Bytes of answers that the plan has yet to process.
    unread: &'a AtomicUsize,
}

impl Calls for Execution<'_> {
    fn round<'r>(&'r mut self, round: Round, take: &'r mut Take<'_>) -> BoxFuture<'r, Result<(), Error>> {
        Box::pin(self.carry_out(round, take))
    }
}

impl Execution<'_> {
    async fn carry_out(&mut self, round: Round, take: &mut Take<'_>) -> Result<(), Error> {
        let Execution { executor, spent, repeats, unread } = self;
        let Round { mut calls, answers, bodies } = round;
        if calls.is_empty() {
            return Err(Error::internal("A plan requested no call and did not end"));
        }
        spent.count(&calls, bodies).map_err(|error| executor.too_costly(error))?;
        let mut room = spent.room(&calls, answers).await?;
        let before = spent.bytes();
        let mut taken = Ok(());
        // Most plans are one call.
        if calls.len() == 1
            && let Some(call) = calls.pop()
        {
            let (id, repeated) = (call.id, repeats.count(&call));
            let answer = advancing(repeated, executor.sender.send(call).await);
            let answer = room.take_in(answer, spent);
            taken = blocking::run(spent.bytes() - before, || take(id, answer));
        } else {
            let sender = &executor.sender;
            let all = calls.into_iter().map(|call| {
                let (id, repeated) = (call.id, repeats.count(&call));
                async move { (id, advancing(repeated, sender.send(call).await)) }
            });
            let mut answers = stream::iter(all).buffered(executor.cost.at_once.max(1));
            while let Some((id, answer)) = answers.next().await {
                let answer = room.take_in(answer, spent);
                spent.within_limit().map_err(|error| executor.too_costly(error))?;
                let bytes = answer.as_ref().map_or(0, Bytes::len);
                taken = taken.and(blocking::run(bytes, || take(id, answer)));
            }
        }
        unread.store(spent.bytes() - before, Ordering::Relaxed);
        if blocking::blocks(spent.bytes() - before) {
            // The plan continues in a poll of its own, which is known to block.
            tokio::task::yield_now().await;
        }
        taken
    }
}

/// The answer to a call; an error where it is to a page that was asked for before and does not
/// advance.
fn advancing(repeated: Option<Repeated>, answer: Result<Bytes, Error>) -> Result<Bytes, Error> {
    match repeated {
        None => answer,
        Some(repeated) => repeated.advancing(answer),
    }
}
