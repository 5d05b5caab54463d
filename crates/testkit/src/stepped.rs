//! Runs a plan step by step: the calls that it requests, and the answers that the test gives.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::task::noop_waker_ref;
use heatsink_dynamo::Error;
use heatsink_route::{Answer, Calls, PhysicalCall, Plan, Round, Take};

/// What a plan wants next.
#[derive(Debug)]
pub enum Step {
    /// The answers of these.
    Call(Vec<PhysicalCall>),
    /// Nothing: this is the client's answer.
    Done(Result<Bytes, Error>),
}

/// A plan under way.
pub struct Stepped {
    running: BoxFuture<'static, Result<Answer, Error>>,
    between: Arc<Mutex<Between>>,
    /// How many bytes of bodies the last round says will be sent at least.
    pub bodies: usize,
}

/// What lies between the plan and the test.
#[derive(Default)]
struct Between {
    round: Option<Round>,
    answers: Vec<(usize, Result<Bytes, Error>)>,
}

impl Stepped {
    /// Begins a plan.
    pub fn new(plan: Plan) -> Self {
        let between = Arc::new(Mutex::new(Between::default()));
        let mut calls = Asked(Arc::clone(&between));
        let running = Box::pin(async move { plan.run(&mut calls).await });
        Stepped { running, between, bodies: 0 }
    }

    /// Goes on, once every call of the step before has its answer.
    ///
    /// # Panics
    /// Where one has none, or the plan waits for something else.
    #[allow(clippy::panic, reason = "the test is wrong, or the plan")]
    pub fn step(&mut self) -> Step {
        match self.running.as_mut().poll(&mut Context::from_waker(noop_waker_ref())) {
            Poll::Ready(answer) => Step::Done(answer.map(|answer| answer.body)),
            Poll::Pending => match lock(&self.between).round.take() {
                Some(round) => {
                    self.bodies = round.bodies;
                    Step::Call(round.calls)
                }
                None => panic!("the plan waits for something that is no answer to a call of the last step"),
            },
        }
    }

    /// Gives the answer of a call. The plan takes those of a round in the order in which they are
    /// given.
    pub fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        lock(&self.between).answers.push((id, answer));
    }
}

struct Asked(Arc<Mutex<Between>>);

impl Calls for Asked {
    fn round<'a>(&'a mut self, round: Round, take: &'a mut Take<'_>) -> BoxFuture<'a, Result<(), Error>> {
        let asked = round.calls.len();
        assert!(asked > 0, "a plan asks for something");
        lock(&self.0).round = Some(round);
        Box::pin(poll_fn(move |_| {
            let answers = &mut lock(&self.0).answers;
            if answers.len() < asked {
                return Poll::Pending;
            }
            let mut taken = Ok(());
            for (id, answer) in answers.drain(..) {
                taken = taken.and(take(id, answer));
            }
            Poll::Ready(taken)
        }))
    }
}

fn lock(between: &Mutex<Between>) -> MutexGuard<'_, Between> {
    between.lock().unwrap_or_else(PoisonError::into_inner)
}
