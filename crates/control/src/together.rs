//! Callers that come while another one is served wait, and are then served together: by one request
//! to the store for all of them. What each gets was asked for after it came.
//!
//! Not here: what is asked for (`key_record::writes`, `fence::changer`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures::future::{BoxFuture, poll_fn};
use futures::lock::Mutex as Turn;

/// Serves callers together. `Q` is what a caller wants, `A` what it gets.
pub struct Together<Q, A> {
    waiting: Mutex<Waiting<Q, A>>,
    turn: Turn<()>,
}

struct Waiting<Q, A> {
    last: u64,
    asked: BTreeMap<u64, Q>,
    answers: BTreeMap<u64, A>,
}

impl<Q, A> Default for Together<Q, A> {
    fn default() -> Self {
        let waiting = Waiting { last: 0, asked: BTreeMap::new(), answers: BTreeMap::new() };
        Together { waiting: Mutex::new(waiting), turn: Turn::new(()) }
    }
}

/// One caller. When it is dropped, nobody asks for it any more.
struct Caller<'a, Q, A> {
    number: u64,
    of: &'a Together<Q, A>,
}

impl<Q, A> Drop for Caller<'_, Q, A> {
    fn drop(&mut self) {
        let mut waiting = self.of.waiting();
        waiting.asked.remove(&self.number);
        waiting.answers.remove(&self.number);
    }
}

impl<Q: Clone, A> Together<Q, A> {
    /// Asks, together with all who wait too, but no more than `most` at once. `serve` gives one
    /// answer for each that it is given, in their order. It may be dropped at any time: the next
    /// caller asks again for all.
    ///
    /// # Errors
    /// Those of `serve`, for the caller whose turn it was alone: the next one asks again.
    pub async fn ask<'a, E>(
        &'a self,
        asked: Q,
        most: usize,
        serve: impl Fn(Vec<Q>) -> BoxFuture<'a, Result<Vec<A>, E>>,
    ) -> Result<A, E> {
        let caller = self.comes(asked);
        // Those who come at the same moment are served with this one.
        once_more().await;
        let _turn = self.turn.lock().await;
        loop {
            if let Some(answer) = self.waiting().answers.remove(&caller.number) {
                return Ok(answer);
            }
            let (numbers, asked): (Vec<u64>, Vec<Q>) = {
                let waiting = self.waiting();
                waiting.asked.iter().take(most.max(1)).map(|(number, asked)| (*number, asked.clone())).unzip()
            };
            let answers = serve(asked).await?;
            let mut waiting = self.waiting();
            for (number, answer) in numbers.into_iter().zip(answers) {
                // Who has gone meanwhile takes no answer.
                if waiting.asked.remove(&number).is_some() {
                    waiting.answers.insert(number, answer);
                }
            }
        }
    }

    fn comes(&self, asked: Q) -> Caller<'_, Q, A> {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let number = waiting.last;
        waiting.asked.insert(number, asked);
        Caller { number, of: self }
    }
}

impl<Q, A> Together<Q, A> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<Q, A>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets whoever is ready go first, once.
async fn once_more() {
    let mut first = true;
    poll_fn(|context| match std::mem::take(&mut first) {
        true => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        false => Poll::Ready(()),
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use futures::channel::oneshot;
    use futures::executor::block_on;
    use futures::future::join_all;
    use heatsink_dynamo::{Error, Outcome};

    use super::*;

    #[test]
    fn who_comes_at_once_is_served_at_once_and_each_gets_its_own() {
        let (together, served) = (Together::default(), AtomicUsize::new(0));
        let ask = |number: usize| {
            together.ask(number, 4, |asked: Vec<usize>| {
                served.fetch_add(1, Ordering::Relaxed);
                async move { Ok::<_, Error>(asked.into_iter().map(|number| number * 10).collect()) }.boxed()
            })
        };
        let answers = block_on(join_all((0..10).map(ask)));
        let answers: Vec<usize> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..10).map(|number| number * 10).collect::<Vec<_>>());
        assert_eq!(served.load(Ordering::Relaxed), 3, "four, four and two");
    }

    #[test]
    fn an_error_is_its_callers_alone() {
        let (together, served) = (Together::default(), AtomicUsize::new(0));
        let ask = |number: usize| {
            together.ask(number, 9, |asked: Vec<usize>| {
                let first = served.fetch_add(1, Ordering::Relaxed) == 0;
                let failed = || Err(Error::unavailable("no", Outcome::NotDone));
                async move { if first { failed() } else { Ok(asked) } }.boxed()
            })
        };
        let answers = block_on(join_all((0..3).map(ask)));
        assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
        assert_eq!(served.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_next_one_asks_again_for_all_when_one_is_dropped_on_its_turn() {
        let together: Together<usize, usize> = Together::default();
        let (_never, waits) = oneshot::channel::<()>();
        let waits = waits.shared();
        let mut first = together
            .ask(1, 9, |_| {
                let waits = waits.clone();
                async move { waits.await.map(|()| Vec::new()).map_err(|_| Error::internal("gone")) }.boxed()
            })
            .boxed();
        let mut second = together.ask(2, 9, |asked| async move { Ok::<_, Error>(asked) }.boxed()).boxed();
        for _ in 0..3 {
            assert!((&mut first).now_or_never().is_none());
            assert!((&mut second).now_or_never().is_none());
        }
        drop(first);
        assert_eq!(block_on(second).unwrap(), 2);
        assert!(together.waiting().asked.is_empty() && together.waiting().answers.is_empty());
    }
}
