//! A dry run: what a plan would send first, told by the plan itself. Nothing is sent.

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::Error;

use crate::{CallExplanation, Calls, PhysicalCall, Round, Take};

/// Keeps the calls of the first round, and fails it.
#[derive(Debug, Default)]
struct FirstRound(Option<Vec<PhysicalCall>>);

impl Calls for FirstRound {
    fn round<'a>(&'a mut self, round: Round, _: &'a mut Take<'_>) -> BoxFuture<'a, Result<(), Error>> {
        self.0.get_or_insert(round.calls);
        std::future::ready(Err(Error::internal("A dry run sends nothing"))).boxed()
    }
}

/// The calls of the first round of what `run` does; none if it ends before it calls.
pub(crate) fn first_round<T>(run: impl AsyncFnOnce(&mut dyn Calls) -> T) -> Vec<PhysicalCall> {
    let mut first = FirstRound::default();
    // A plan waits for nothing but its calls, and those fail at once.
    let ended = run(&mut first).now_or_never();
    debug_assert!(ended.is_some(), "a plan waits for something beside its calls");
    first.0.unwrap_or_default()
}

/// The same calls, explained.
pub(crate) fn explained<T>(run: impl AsyncFnOnce(&mut dyn Calls) -> T) -> Vec<CallExplanation> {
    first_round(run).iter().map(CallExplanation::from).collect()
}
