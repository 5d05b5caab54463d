//! Drives a plan under way: runs the physical calls that it asks for, all at once, and sends throttled shards again.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesOrdered;
use heatsink_dynamo::{Code, Error};
use heatsink_env::{Env, Moment};
use heatsink_route::{Execution, PhysicalCall, Step};
use heatsink_store::Store;

use crate::metrics::Metrics;

/// The mean of the first pause before a throttled shard is asked again; it doubles with each further one. A partition
/// refills in a second, and half the shards' share of it is soon there.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest mean pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What runs one execution.
pub(crate) struct Driver<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) env: &'a dyn Env,
    pub(crate) metrics: &'a Metrics,
    /// No retry begins after it.
    pub(crate) deadline: Moment,
}

impl Driver<'_> {
    /// Runs an execution to its end: its answer, and the shards that this goes without.
    pub(crate) async fn run(&self, mut execution: Box<dyn Execution>) -> (Result<Bytes, Error>, Vec<String>) {
        let mut sent = 0;
        let answer = loop {
            match execution.step() {
                Step::Done(answer) => break answer,
                Step::Call(calls) if calls.is_empty() => {
                    break Err(Error::internal("A plan asked for nothing and was not done"));
                }
                Step::Call(mut calls) if calls.len() == 1 => {
                    let Some(call) = calls.pop() else { continue };
                    sent += 1;
                    let id = call.id;
                    let answer = self.send(call).await;
                    execution.answer(id, answer);
                }
                Step::Call(calls) => {
                    sent += calls.len();
                    let all = calls.into_iter().map(|call| async move { (call.id, self.send(call).await) });
                    // In their order, so that an answer does not depend on who was faster; and each while the store works on the others.
                    let mut all: FuturesOrdered<_> = all.collect();
                    while let Some((id, answer)) = all.next().await {
                        execution.answer(id, answer);
                    }
                }
            }
        };
        self.metrics.sent(sent);
        let missing = execution.missing();
        if !missing.is_empty() {
            self.metrics.partial();
        }
        (answer, missing)
    }

    async fn send(&self, call: PhysicalCall) -> Result<Bytes, Error> {
        let mut mean = FIRST_PAUSE;
        loop {
            match self.store.call(call.operation, call.body.clone()).await {
                Err(error) if call.retry_throttled && throttled(&error) => {
                    // Anywhere between nothing and twice the mean, so that shards throttled together do not return together.
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

fn throttled(error: &Error) -> bool {
    matches!(
        error.code,
        Code::ProvisionedThroughputExceededException | Code::ThrottlingException | Code::RequestLimitExceeded
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use heatsink_dynamo::{Operation, Outcome};
    use heatsink_env::{HastyEnv, ManualEnv};

    use super::*;

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

    /// Sends the bodies at once and answers with all answers in a row.
    struct Together {
        bodies: Vec<&'static str>,
        retry: bool,
        answers: Vec<(usize, Result<Bytes, Error>)>,
    }

    impl Execution for Together {
        fn step(&mut self) -> Step {
            if self.answers.is_empty() {
                let call = |(id, body): (usize, &&'static str)| PhysicalCall {
                    id,
                    operation: Operation::Query,
                    body: Bytes::from_static(body.as_bytes()),
                    retry_throttled: self.retry,
                };
                return Step::Call(self.bodies.iter().enumerate().map(call).collect());
            }
            self.answers.sort_by_key(|(id, _)| *id);
            let all: Result<Vec<Bytes>, Error> = self.answers.drain(..).map(|(_, answer)| answer).collect();
            Step::Done(all.map(|all| all.concat().into()))
        }

        fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
            self.answers.push((id, answer));
        }
    }

    fn run(
        store: &Refusing,
        bodies: Vec<&'static str>,
        retry: bool,
        within: Duration,
    ) -> Result<Bytes, Error> {
        let env = HastyEnv(ManualEnv::seeded(3));
        let metrics = Metrics::new();
        let deadline = env.now() + within;
        let driver = Driver { store, env: &env, metrics: &metrics, deadline };
        let execution = Box::new(Together { bodies, retry, answers: Vec::new() });
        driver.run(execution).now_or_never().unwrap().0
    }

    #[test]
    fn a_throttled_shard_is_asked_again_and_the_others_are_not() {
        let store = Refusing::default();
        assert_eq!(run(&store, vec!["0a", "3b", "0c"], true, Duration::from_secs(30)).unwrap(), "0a3b0c");
        let seen = store.seen.lock().unwrap();
        assert_eq!((seen[&b"0a"[..]], seen[&b"3b"[..]], seen[&b"0c"[..]]), (1, 4, 1));
    }

    #[test]
    fn the_stores_error_comes_when_time_runs_out_or_no_retry_is_allowed() {
        let store = Refusing::default();
        let error = run(&store, vec!["0a", "9b"], true, Duration::from_millis(15)).unwrap_err();
        assert_eq!(error.code, Code::ProvisionedThroughputExceededException);
        assert!(store.seen.lock().unwrap()[&b"9b"[..]] < 9);
        let store = Refusing::default();
        run(&store, vec!["0a", "1b"], false, Duration::from_secs(30)).unwrap_err();
        assert_eq!(store.seen.lock().unwrap()[&b"1b"[..]], 1);
    }

    #[test]
    fn a_lost_answer_is_never_asked_for_again() {
        let store = Refusing { lose: true, ..Refusing::default() };
        assert_eq!(
            run(&store, vec!["0a"], true, Duration::from_secs(30)).unwrap_err().outcome,
            Outcome::Unknown
        );
        assert_eq!(store.seen.lock().unwrap()[&b"0a"[..]], 1);
    }
}
