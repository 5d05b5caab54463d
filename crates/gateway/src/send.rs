//! Sends one physical call, and sends it again where the store throttled it, and where a write met
//! a transaction of `heatsink adopt`.
//!
//! Not here: sending it once (`send_once`), how many calls run concurrently, and what they may cost (`execute`).

use std::time::Duration;

use bytes::Bytes;
use heatsink_control::Pass;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_route::PhysicalCall;
use heatsink_store::Store;

use crate::combine::Combining;
use crate::heat::CountedCalls;
use crate::metrics::Metrics;
use crate::send_once::send;

/// The mean of the first pause before a throttled shard is retried; it doubles with each further
/// retry. A partition refills within a second, and half of a shard's share is available soon.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest mean pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How often a write is retried that conflicted with a transaction: two and a half seconds, on
/// average.
const CONFLICTS: u32 = 10;

/// Sends the calls of one plan.
pub(crate) struct Sender<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) pass: &'a Pass,
    pub(crate) env: &'a dyn Env,
    pub(crate) metrics: &'a Metrics,
    /// No retry begins after this time.
    pub(crate) deadline: MonotonicInstant,
    /// A worker rewrites items of the request's tables in transactions. A client's write that
    /// conflicts with one is refused. A client that sends no transactions does not expect that, so
    /// the write is retried.
    pub(crate) beside_worker: bool,
    /// Where its calls are counted.
    pub(crate) counted: Option<CountedCalls<'a>>,
    /// What sends the only call of a request that may be combined with others.
    pub(crate) combining: Option<&'a Combining<'a>>,
}

impl Sender<'_> {
    /// Sends a call, and retries it until the deadline.
    pub(crate) async fn send(&self, call: PhysicalCall) -> Result<Bytes, Error> {
        let Some(counted) = &self.counted else { return self.send_again(&call).await };
        let asked = counted.asking(call.operation, call.body.clone());
        let call = PhysicalCall { body: asked.body.clone(), ..call };
        let (answer, figures) = asked.answered(self.send_again(&call).await);
        counted.count(call.operation, &call.body, answer.as_deref(), figures);
        answer
    }

    async fn send_again(&self, call: &PhysicalCall) -> Result<Bytes, Error> {
        let mut mean = FIRST_PAUSE;
        let mut conflicts = if self.beside_worker { CONFLICTS } else { 0 };
        loop {
            let answer = match self.combining {
                None => send(self.store, self.pass, call.operation, call.body.clone()).await,
                Some(combining) => Box::pin(combining.send(call.operation, call.body.clone())).await,
            };
            match answer {
                Err(error)
                    if call.retry_throttled && error.is_throttled()
                        || conflicts > 0 && met_transaction(call.operation, &error) =>
                {
                    conflicts = conflicts.saturating_sub(u32::from(!error.is_throttled()));
                    // Anywhere between zero and twice the mean, so that shards throttled together
                    // are not retried together.
                    let pause = Duration::from_nanos(self.env.random() % (2 * nanos(mean)));
                    if self.env.now() + pause > self.deadline {
                        return Err(error);
                    }
                    self.metrics.retried();
                    self.env.sleep(pause).await;
                    mean = (mean * 2).min(LONGEST_PAUSE);
                }
                answer => return answer,
            }
        }
    }
}

fn nanos(pause: Duration) -> u64 {
    u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// Whether a write of one item was refused, and had no effect, because a transaction has the item.
fn met_transaction(operation: Operation, error: &Error) -> bool {
    operation.writes_one_item()
        && error.code == Code::TransactionConflictException
        && error.outcome == Outcome::NotDone
}
