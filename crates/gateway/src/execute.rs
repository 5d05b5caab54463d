//! Executes the physical calls of a plan, with bounded concurrency and memory. Retries throttled shards, and writes that conflicted with a
//! transaction of `heatsink adopt`.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use heatsink_control::Pass;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_route::{Answer, Calls, PhysicalCall, Plan, Round, Take};
use heatsink_store::Store;

use crate::blocking;
use crate::budget::{Held, Share, Stage, UNCOUNTED};
use crate::heat::Drawn;
use crate::limits::Cost;
use crate::memory_estimate::memory_estimate;
use crate::metrics::Metrics;
use crate::spans;

/// The mean of the first pause before a throttled shard is retried; it doubles with each further retry. A partition refills within a second, and
/// half of a shard's share is available soon.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest mean pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How often a write is retried that conflicted with a transaction: two and a half seconds, on average.
const CONFLICTS: u32 = 10;

/// Executes the calls of one plan.
pub(crate) struct Executor<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) pass: &'a Pass,
    pub(crate) env: &'a dyn Env,
    pub(crate) metrics: &'a Metrics,
    /// No retry begins after this time.
    pub(crate) deadline: MonotonicInstant,
    pub(crate) cost: Cost,
    /// A worker rewrites items of the request's tables in transactions. A client's write that conflicts with one is refused. A client that sends no
    /// transactions does not expect that, so the write is retried.
    pub(crate) beside_worker: bool,
    /// Where its calls are counted by shard.
    pub(crate) drawn: Option<Drawn<'a>>,
}

impl Executor<'_> {
    /// Executes a plan.
    pub(crate) async fn run(self, plan: Plan, share: Share) -> Result<Answer, Error> {
        let unread = AtomicUsize::new(0);
        let mut execution = Execution { executor: self, spent: Spent::new(share), unread: &unread };
        let answer = {
            let mut running = plan.run(&mut execution);
            // The answers of a round are what the plan processes next.
            poll_fn(|cx| blocking::run(unread.swap(0, Ordering::Relaxed), || running.as_mut().poll(cx))).await
        };
        let metrics = execution.executor.metrics;
        metrics.sent(execution.spent.calls);
        if answer.as_ref().is_ok_and(|answer| !answer.missing.is_empty()) {
            metrics.partial();
        }
        answer
    }

    /// Counts a round's calls against the cost limit of a request. At least `bodies` bytes of bodies are sent in this round and later ones.
    fn bound(&self, calls: &[PhysicalCall], bodies: usize, spent: &mut Spent) -> Result<(), Error> {
        spent.calls += calls.len();
        if spent.calls > self.cost.calls {
            return Err(self.too_costly(too_many_calls(self.cost.calls)));
        }
        let now: usize = calls.iter().map(|call| call.body.len()).sum();
        if spent.bodies.saturating_add(now.max(bodies)) > self.cost.bytes {
            return Err(self.too_costly(too_large_bodies(self.cost.bytes)));
        }
        spent.bodies += now;
        spent.bytes += now;
        Ok(())
    }

    /// Room for a round's calls and their expected answers. Calls of a request that may have written already do not wait.
    async fn room(&self, calls: &[PhysicalCall], expected: usize, spent: &mut Spent) -> Result<Room, Error> {
        let stage = if spent.begun { Stage::GoesOn } else { Stage::Begins };
        let written = spent.written;
        spent.begun = true;
        spent.written |= calls.iter().any(|call| !call.operation.only_reads());
        if spent.bytes.saturating_add(expected) <= UNCOUNTED {
            return Ok(Room::default());
        }
        let bodies: usize = calls.iter().map(|call| memory_estimate(&call.body)).sum();
        let bytes = bodies.saturating_add(expected);
        let mut held =
            if written { spent.share.force(bytes) } else { spent.share.enter(stage, bytes).await? };
        Ok(Room { _bodies: Some(held.give(bodies)), answers: Some(held) })
    }

    fn too_costly(&self, error: Error) -> Error {
        self.metrics.too_costly();
        error
    }

    async fn send(&self, call: PhysicalCall) -> Result<Bytes, Error> {
        let answer = self.send_again(&call).await;
        if let Some(drawn) = &self.drawn {
            drawn.count(call.operation, &call.body, answer.as_deref());
        }
        answer
    }

    async fn send_again(&self, call: &PhysicalCall) -> Result<Bytes, Error> {
        let mut mean = FIRST_PAUSE;
        let mut conflicts = if self.beside_worker { CONFLICTS } else { 0 };
        loop {
            match send(self.store, self.pass, call.operation, call.body.clone()).await {
                Err(error)
                    if call.retry_throttled && throttled(&error)
                        || conflicts > 0 && met_transaction(call.operation, &error) =>
                {
                    conflicts = conflicts.saturating_sub(u32::from(!throttled(&error)));
                    // Anywhere between zero and twice the mean, so that shards throttled together are not retried together.
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

/// Sends one physical call, if the request's pass allows it, and reports whether it was answered.
pub(crate) async fn send(
    store: &dyn Store,
    pass: &Pass,
    operation: Operation,
    body: Bytes,
) -> Result<Bytes, Error> {
    let sending = pass.send(!operation.only_reads());
    let bytes = body.len();
    let call = spans::physical_call(operation, store.call_if(operation, body, &sending));
    let answer = blocking::run_future(bytes, call).await;
    sending.answered(&answer);
    answer
}

/// A plan in execution.
struct Execution<'a> {
    executor: Executor<'a>,
    spent: Spent,
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
        let Execution { executor, spent, unread } = self;
        let Round { mut calls, answers, bodies } = round;
        if calls.is_empty() {
            return Err(Error::internal("A plan requested no call and did not end"));
        }
        executor.bound(&calls, bodies, spent)?;
        let mut room = executor.room(&calls, answers, spent).await?;
        let before = spent.bytes;
        let mut taken = Ok(());
        // Most plans are one call.
        if calls.len() == 1
            && let Some(call) = calls.pop()
        {
            let id = call.id;
            let answer = room.take_in(executor.send(call).await, spent);
            taken = blocking::run(spent.bytes - before, || take(id, answer));
        } else {
            let executor = &*executor;
            let all = calls.into_iter().map(|call| async move { (call.id, executor.send(call).await) });
            let mut answers = stream::iter(all).buffered(executor.cost.at_once.max(1));
            while let Some((id, answer)) = answers.next().await {
                let answer = room.take_in(answer, spent);
                if spent.bytes > executor.cost.bytes {
                    return Err(executor.too_costly(too_large(executor.cost.bytes)));
                }
                let bytes = answer.as_ref().map_or(0, Bytes::len);
                taken = taken.and(blocking::run(bytes, || take(id, answer)));
            }
        }
        unread.store(spent.bytes - before, Ordering::Relaxed);
        if blocking::blocks(spent.bytes - before) {
            // The plan continues in a poll of its own, which is known to block.
            tokio::task::yield_now().await;
        }
        taken
    }
}

/// The cost of a request so far.
struct Spent {
    calls: usize,
    /// Bytes of calls.
    bodies: usize,
    /// Bytes of calls and answers.
    bytes: usize,
    /// Whether a round has been executed.
    begun: bool,
    /// Whether a round had a call that may write.
    written: bool,
    share: Share,
}

impl Spent {
    fn new(share: Share) -> Self {
        Spent { calls: 0, bodies: 0, bytes: 0, begun: false, written: false, share }
    }
}

/// The bytes held for a round; none if the round is small.
#[derive(Default)]
struct Room {
    /// For the calls, until the round is over.
    _bodies: Option<Held>,
    /// For answers that have not arrived yet.
    answers: Option<Held>,
}

impl Room {
    /// Counts an answer. A large answer is counted until the plan drops it.
    fn take_in(&mut self, answer: Result<Bytes, Error>, spent: &mut Spent) -> Result<Bytes, Error> {
        let answer = answer?;
        spent.bytes += answer.len();
        if spent.bytes <= UNCOUNTED {
            return Ok(answer);
        }
        let held = match &mut self.answers {
            Some(expected) => expected.give(answer.len()),
            None => spent.share.force(answer.len()),
        };
        Ok(held.carried_by(answer))
    }
}

/// Only reads get here: a write is one call, or a few that locate its items.
fn too_many_calls(most: usize) -> Error {
    Error::validation(format!(
        "The request needs more than {most} reads of the store, for the shards that the rules of its table spread its keys over. Ask for \
         fewer keys at once, or use fewer shards"
    ))
}

/// Not retryable: a retry would fail in the same way.
fn too_large_bodies(most: usize) -> Error {
    Error::validation(format!(
        "The request's expressions and their values go to every shard of its key, which would take more than {} MB. Use smaller values, or \
         fewer shards",
        most / (1024 * 1024)
    ))
}

/// Retryable: by then the item sizes are learned, and rounds are smaller.
fn too_large(most: usize) -> Error {
    Error::unavailable(
        format!(
            "The request takes more than {} MB of requests to its shards and their answers. Repeat it, with a smaller Limit if that fails",
            most / (1024 * 1024)
        ),
        Outcome::NotDone,
    )
}

fn nanos(pause: Duration) -> u64 {
    u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2)
}

fn throttled(error: &Error) -> bool {
    matches!(
        error.code,
        Code::ProvisionedThroughputExceededException | Code::ThrottlingException | Code::RequestLimitExceeded
    )
}

/// Whether a write of one item was refused, and had no effect, because a transaction has the item.
fn met_transaction(operation: Operation, error: &Error) -> bool {
    let of_one_item = matches!(
        operation,
        Operation::DeleteItem | Operation::ExecuteStatement | Operation::PutItem | Operation::UpdateItem
    );
    of_one_item && error.code == Code::TransactionConflictException && error.outcome == Outcome::NotDone
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    use std::task::Poll;

    use futures::FutureExt;
    use heatsink_env::{HastyEnv, ManualEnv};
    use heatsink_route::{Explanation, Planned};

    use super::*;
    use crate::Limits;
    use crate::budget::Budget;

    fn executor<'a>(
        store: &'a dyn Store,
        pass: &'a Pass,
        env: &'a dyn Env,
        metrics: &'a Metrics,
        deadline: MonotonicInstant,
    ) -> Executor<'a> {
        Executor {
            store,
            pass,
            env,
            metrics,
            deadline,
            cost: Cost::default(),
            beside_worker: false,
            drawn: None,
        }
    }

    /// Refuses each body as often as its first byte says, then echoes it.
    #[derive(Default)]
    struct Refusing {
        seen: Mutex<HashMap<Bytes, usize>>,
        lose: bool,
    }

    impl Store for Refusing {
        fn call(&self, _: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
            let mut seen = self.seen.lock().unwrap();
            let count = seen.entry(body.clone()).or_default();
            *count += 1;
            let answer = if self.lose {
                Err(Error::unavailable("lost", Outcome::Unknown))
            } else if *count <= usize::from(body[0] - b'0') {
                Err(Error::new(Code::ProvisionedThroughputExceededException, "slow down"))
            } else {
                Ok(body)
            };
            async move { answer }.boxed()
        }
    }

    /// A test plan: rounds of similar calls, whose answers are kept and returned in a row.
    struct Rounds {
        operation: Operation,
        bodies: Vec<Bytes>,
        retry: bool,
        rounds: usize,
    }

    impl Rounds {
        fn once(bodies: &[&'static str], retry: bool) -> Plan {
            let bodies = bodies.iter().map(|body| Bytes::from_static(body.as_bytes())).collect();
            Plan::Scatter(Box::new(Rounds { operation: Operation::Query, bodies, retry, rounds: 1 }))
        }

        fn calls(&self) -> Vec<PhysicalCall> {
            let call = |(id, body): (usize, &Bytes)| PhysicalCall {
                id,
                operation: self.operation,
                body: body.clone(),
                retry_throttled: self.retry,
                target: None,
            };
            self.bodies.iter().enumerate().map(call).collect()
        }
    }

    impl Planned for Rounds {
        fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
            async move {
                let mut answers: Vec<Bytes> = Vec::new();
                for _ in 0..self.rounds {
                    let mut take = |_, answer: Result<Bytes, Error>| {
                        answers.push(answer?);
                        Ok(())
                    };
                    calls.round(self.calls().into(), &mut take).await?;
                }
                Ok(Bytes::from(answers.concat()).into())
            }
            .boxed()
        }

        fn explain(&self) -> Explanation {
            unreachable!("not asked for")
        }
    }

    fn share() -> Share {
        Budget::new(&Limits::default(), Arc::new(ManualEnv::seeded(3))).share()
    }

    fn run(store: &Refusing, bodies: &[&'static str], retry: bool, within: Duration) -> Result<Bytes, Error> {
        let env = HastyEnv(ManualEnv::seeded(3));
        let metrics = Metrics::new();
        let deadline = env.now() + within;
        let pass = Pass::unfenced(Arc::new(env.clone()));
        let executor = executor(store, &pass, &env, &metrics, deadline);
        let answer = executor.run(Rounds::once(bodies, retry), share()).now_or_never().unwrap();
        answer.map(|answer| answer.body)
    }

    #[test]
    fn a_throttled_shard_is_asked_again_and_the_others_are_not() {
        let store = Refusing::default();
        assert_eq!(run(&store, &["0a", "3b", "0c"], true, Duration::from_secs(30)).unwrap(), "0a3b0c");
        let seen = store.seen.lock().unwrap();
        assert_eq!((seen[&b"0a"[..]], seen[&b"3b"[..]], seen[&b"0c"[..]]), (1, 4, 1));
    }

    #[test]
    fn the_stores_error_comes_when_time_runs_out_or_no_retry_is_allowed() {
        let store = Refusing::default();
        let error = run(&store, &["0a", "9b"], true, Duration::from_millis(15)).unwrap_err();
        assert_eq!(error.code, Code::ProvisionedThroughputExceededException);
        assert!(store.seen.lock().unwrap()[&b"9b"[..]] < 9);
        let store = Refusing::default();
        run(&store, &["0a", "1b"], false, Duration::from_secs(30)).unwrap_err();
        assert_eq!(store.seen.lock().unwrap()[&b"1b"[..]], 1);
    }

    #[test]
    fn a_lost_answer_is_never_asked_for_again() {
        let store = Refusing { lose: true, ..Refusing::default() };
        assert_eq!(
            run(&store, &["0a"], true, Duration::from_secs(30)).unwrap_err().outcome,
            Outcome::Unknown
        );
        assert_eq!(store.seen.lock().unwrap()[&b"0a"[..]], 1);
    }

    /// Answers after it was polled twice, and counts how many calls wait at once.
    #[derive(Default)]
    struct Crowded {
        waiting: Mutex<(usize, usize)>,
        calls: AtomicUsize,
    }

    impl Store for Crowded {
        fn call(&self, _: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            async move {
                {
                    let mut waiting = self.waiting.lock().unwrap();
                    waiting.0 += 1;
                    waiting.1 = waiting.1.max(waiting.0);
                }
                let mut polled = false;
                futures::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                self.waiting.lock().unwrap().0 -= 1;
                Ok(body)
            }
            .boxed()
        }
    }

    fn run_at(cost: Cost, bodies: usize) -> (Result<Bytes, Error>, usize) {
        let store = Crowded::default();
        let env = HastyEnv(ManualEnv::seeded(3));
        let metrics = Metrics::new();
        let deadline = env.now() + Duration::from_secs(30);
        let pass = Pass::unfenced(Arc::new(env.clone()));
        let executor = Executor { cost, ..executor(&store, &pass, &env, &metrics, deadline) };
        let plan = Rounds::once(&vec!["0a"; bodies], true);
        let answer = futures::executor::block_on(executor.run(plan, share())).map(|answer| answer.body);
        let most = store.waiting.lock().unwrap().1;
        (answer, most)
    }

    #[test]
    fn so_many_calls_are_under_way_at_once_and_no_more() {
        let (answer, most) = run_at(Cost { at_once: 7, ..Cost::default() }, 100);
        assert_eq!((answer.unwrap().len(), most), (200, 7));
        assert_eq!(run_at(Cost { at_once: 0, ..Cost::default() }, 3).1, 1);
    }

    #[test]
    fn a_request_that_costs_more_than_it_may_is_refused_whole() {
        let error = run_at(Cost { calls: 99, ..Cost::default() }, 100).0.unwrap_err();
        assert_eq!((error.code.clone(), error.retryable()), (Code::ValidationException, false), "{error}");
        assert!(run_at(Cost { calls: 100, ..Cost::default() }, 100).0.is_ok());
        // 100 calls of two bytes, and as many answers.
        let error = run_at(Cost { bytes: 399, ..Cost::default() }, 100).0.unwrap_err();
        assert_eq!((error.code.clone(), error.retryable()), (Code::ServiceUnavailable, true), "{error}");
        assert_eq!(error.outcome, Outcome::NotDone);
        assert!(run_at(Cost { bytes: 400, ..Cost::default() }, 100).0.is_ok());
        let error = run_at(Cost { bytes: 199, ..Cost::default() }, 100).0.unwrap_err();
        assert_eq!((error.code.clone(), error.retryable()), (Code::ValidationException, false), "{error}");
    }

    /// The body of a large call.
    const LARGE: usize = 2 << 20;

    /// One large call after the other, while another request holds this much of a budget of 16 MB.
    fn run_beside(held: usize, operation: Operation, rounds: usize) -> (Result<Bytes, Error>, usize) {
        let env = HastyEnv(ManualEnv::seeded(3));
        let limits = Limits { memory: 16 << 20, ..Limits::default() };
        let budget = Budget::new(&limits, Arc::new(env.clone()));
        let mut other = budget.share();
        let _held = (held > 0).then(|| other.enter(Stage::Begins, held).now_or_never().unwrap().unwrap());
        let store = Crowded::default();
        let metrics = Metrics::new();
        let deadline = env.now() + Duration::from_secs(30);
        let pass = Pass::unfenced(Arc::new(env.clone()));
        let executor = executor(&store, &pass, &env, &metrics, deadline);
        let bodies = vec![Bytes::from(vec![b' '; LARGE])];
        let plan = Plan::Scatter(Box::new(Rounds { operation, bodies, retry: false, rounds }));
        let answer =
            futures::executor::block_on(executor.run(plan, budget.share())).map(|answer| answer.body);
        (answer, store.calls.load(Ordering::Relaxed))
    }

    #[test]
    fn a_read_without_room_is_throttled_and_a_write_that_has_begun_goes_on() {
        for operation in [Operation::Query, Operation::BatchWriteItem] {
            let (answer, calls) = run_beside(11 << 20, operation, 1);
            let error = answer.unwrap_err();
            assert_eq!((error.code, error.outcome, calls), (Code::ThrottlingException, Outcome::NotDone, 0));
        }
        // Each of its rounds takes 4 MB in progress, and 2 MB afterwards.
        let (answer, calls) = run_beside(8 << 20, Operation::Query, 4);
        assert_eq!((answer.unwrap_err().code, calls), (Code::ThrottlingException, 3));
        let (answer, calls) = run_beside(8 << 20, Operation::BatchWriteItem, 4);
        assert_eq!((answer.unwrap().len(), calls), (4 * LARGE, 4));
        // Alone it needs no room but its own.
        assert_eq!(run_beside(0, Operation::Query, 9).0.unwrap().len(), 9 * LARGE);
    }
}
