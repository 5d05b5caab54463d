//! Plans of similar calls, over stores that refuse, lose or wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use heatsink_control::Pass;
use heatsink_dynamo::{Code, Operation, Outcome};
use heatsink_env::{Env, HastyEnv, ManualEnv, MonotonicInstant};
use heatsink_route::{Explanation, PhysicalCall, Planned};
use heatsink_store::Store;

use super::*;
use crate::Limits;
use crate::budget::{Budget, Stage};
use crate::metrics::Metrics;

fn executor<'a>(
    store: &'a dyn Store,
    pass: &'a Pass,
    env: &'a dyn Env,
    metrics: &'a Metrics,
    deadline: MonotonicInstant,
) -> Executor<'a> {
    let sender =
        Sender { store, pass, env, metrics, deadline, beside_worker: false, counted: None, combining: None };
    Executor { sender, cost: Cost::default() }
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
    assert_eq!(run(&store, &["0a"], true, Duration::from_secs(30)).unwrap_err().outcome, Outcome::Unknown);
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
    let answer = futures::executor::block_on(executor.run(plan, budget.share())).map(|answer| answer.body);
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

/// Answers each request for a page with one that goes on there.
struct Pages {
    next: &'static str,
    calls: AtomicUsize,
}

impl Store for Pages {
    fn call(&self, _: Operation, _: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let page = format!(r#"{{"Items":[],"LastEvaluatedKey":{{ "pk": {{ "S": "{}" }} }}}}"#, self.next);
        async move { Ok(Bytes::from(page)) }.boxed()
    }
}

/// So many rounds of one call with this body, and how many were sent.
fn run_again_and_again(
    operation: Operation,
    body: &'static str,
    next: &'static str,
    rounds: usize,
) -> (Result<Bytes, Error>, usize) {
    let env = HastyEnv(ManualEnv::seeded(3));
    let (store, metrics) = (Pages { next, calls: AtomicUsize::new(0) }, Metrics::new());
    let deadline = env.now() + Duration::from_secs(30);
    let pass = Pass::unfenced(Arc::new(env.clone()));
    let executor = executor(&store, &pass, &env, &metrics, deadline);
    let plan =
        Plan::Scatter(Box::new(Rounds { operation, bodies: vec![Bytes::from(body)], retry: false, rounds }));
    let answer = futures::executor::block_on(executor.run(plan, share())).map(|answer| answer.body);
    (answer, store.calls.load(Ordering::Relaxed))
}

#[test]
fn a_page_that_goes_on_where_it_began_ends_the_request() {
    let page = r#"{"TableName":"a","ExclusiveStartKey":{"pk":{"S":"a"}}}"#;
    for operation in [Operation::Query, Operation::Scan] {
        let (answer, calls) = run_again_and_again(operation, page, "a", 1000);
        let error = answer.unwrap_err();
        assert_eq!(error.code, Code::InternalServerError, "{error}");
        assert!(calls <= 20, "{calls} calls");
        // A circle takes longer to tell from a plan that asks several times.
        let (answer, calls) = run_again_and_again(operation, page, "b", 1000);
        assert!(answer.is_err() && calls < 600, "{calls} calls");
        assert!(run_again_and_again(operation, page, "b", 100).0.is_ok());
    }
    // First pages, and what is written, may be asked for as often as a plan likes.
    for (operation, body) in [(Operation::Query, r#"{"TableName":"a"}"#), (Operation::PutItem, page)] {
        let (answer, calls) = run_again_and_again(operation, body, "a", 1000);
        answer.unwrap();
        assert_eq!(calls, 1000);
    }
}
