//! One limit on the bytes that all requests hold together: bodies, calls to the store, answers.
//!
//! A request that has progressed further may fill more of the budget. It gives back what it holds only at its end, so it must not wait for requests
//! that have not begun. Up to [`UNCOUNTED`] bytes of a request are not counted, and up to [`SMALL`] do not wait behind larger ones.
//!
//! Not here: how many bytes a call takes (`memory_estimate`), the error when there is no room (the caller's).

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use heatsink_dynamo::{Code, Error};
use heatsink_env::Env;
use metrics::{Counter, Gauge, counter, gauge};
use tokio::sync::Notify;

use crate::Limits;

/// Up to this many bytes of a request are not counted: a connection's own read buffer may hold as much. So large requests leave room for ordinary
/// ones. The limits on connections and requests bound the small ones.
pub(crate) const UNCOUNTED: usize = 64 * 1024;

/// Up to this many bytes a request may use all of the budget from its beginning, and waits only behind requests that are as small.
const SMALL: usize = 1024 * 1024;

/// What bytes are held for: the label `of` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The bodies of clients' requests.
    Requests,
    /// Calls to the store and what it answers.
    Work,
    /// Answers that clients have not taken yet.
    Answers,
}

/// The progress of the request that needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its body arrives. It may fill all of the budget, but bodies no more than half.
    Arrives,
    /// Its processing begins. It may fill three quarters.
    Begins,
    /// Its processing continues, or its answer exists. It may fill all.
    GoesOn,
}

/// The budget: the limit, and the bytes in use.
pub(crate) struct Budget {
    limit: usize,
    patience: Duration,
    env: Arc<dyn Env>,
    used: Mutex<Used>,
    /// Notified when bytes are given back.
    freed: Notify,
    /// The holder of each lock is the next to get room: one for requests that begin, one for requests that continue.
    turns: [tokio::sync::Mutex<()>; 2],
    gauges: [Gauge; 3],
    waits: Counter,
    over_work: Counter,
}

/// The bytes in use, and the number of holders and waiters.
#[derive(Default)]
struct Used {
    bytes: usize,
    /// Of these, the bytes of bodies.
    bodies: usize,
    /// Requests that hold bytes for their processing.
    working: usize,
    /// Requests that wait for room.
    waiting: usize,
    /// Of these, those that already hold bytes for their processing.
    stuck: usize,
}

/// The share of one request.
pub(crate) struct Share {
    budget: Arc<Budget>,
    /// Whether it has got room, and is counted as working.
    working: bool,
}

/// Held bytes. Dropping this gives them back.
pub(crate) struct Held {
    budget: Arc<Budget>,
    of: Of,
    bytes: usize,
}

impl Budget {
    /// The budget of these limits. Its metrics go to the recorder that is installed by now.
    pub(crate) fn new(limits: &Limits, env: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Budget {
            limit: limits.memory,
            patience: limits.memory_wait,
            env,
            used: Mutex::default(),
            freed: Notify::new(),
            turns: Default::default(),
            gauges: ["requests", "work", "answers"].map(|of| gauge!("heatsink_held_bytes", "of" => of)),
            waits: counter!("heatsink_memory_waits_total"),
            over_work: counter!("heatsink_refused_total", "limit" => "held_work"),
        })
    }

    /// The error for a request that got no room for `what`.
    pub(crate) fn no_room(&self, what: &str) -> Error {
        let limit = self.limit / (1024 * 1024);
        let message =
            format!("The requests in progress hold up to {limit} MB, and there was no room for {what}");
        Error::new(Code::ThrottlingException, message)
    }

    /// An empty holding of this budget.
    pub(crate) fn hold(self: &Arc<Self>, of: Of) -> Held {
        Held { budget: Arc::clone(self), of, bytes: 0 }
    }

    /// The share of one request.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), working: false }
    }

    /// Room for an answer that waits for its client; `None` if there is none in time.
    pub(crate) async fn enter_answer(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        self.enter(Of::Answers, Stage::GoesOn, bytes, None).await
    }

    /// Room for `bytes`, in the order of the requests; `None` if there is none in time.
    async fn enter(
        self: &Arc<Self>,
        of: Of,
        stage: Stage,
        bytes: usize,
        mut working: Option<&mut bool>,
    ) -> Option<Held> {
        let stage = if bytes <= SMALL { Stage::GoesOn } else { stage };
        let turn = &self.turns[usize::from(stage == Stage::GoesOn)];
        let mut held = self.hold(of);
        if turn.try_lock().is_ok() && held.take(bytes, stage, &mut working, 0) {
            return Some(held);
        }
        self.waits.increment(1);
        let stuck = usize::from(working.as_ref().is_some_and(|working| **working));
        let room = async {
            let waiting = Waiting::new(self, stuck);
            let _turn = turn.lock().await;
            loop {
                let freed = self.freed.notified();
                if held.take(bytes, stage, &mut working, stuck) {
                    break;
                }
                freed.await;
            }
            // Before the lock is released: the next waiter has to see that this request is in progress.
            drop(waiting);
        };
        let found = matches!(select(pin!(room), self.env.sleep(self.patience)).await, Either::Left(_));
        found.then_some(held)
    }

    /// Whether other requests need what is held: a request waits, or more is held than beginning requests may fill.
    pub(crate) fn is_pressed(&self) -> bool {
        let used = self.used();
        used.waiting > 0 || used.bytes > self.most(Stage::Begins)
    }

    fn most(&self, stage: Stage) -> usize {
        match stage {
            Stage::Begins => self.limit / 4 * 3,
            Stage::Arrives | Stage::GoesOn => self.limit,
        }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Room for `bytes`, in the order of the requests. If no other request is in progress there always is room: a request that needs more than the
    /// whole budget runs alone, and if all requests that have begun wait, the first of them continues.
    ///
    /// # Errors
    /// `ThrottlingException`, if there is no room in time.
    pub(crate) async fn enter(&mut self, stage: Stage, bytes: usize) -> Result<Held, Error> {
        let held = self.budget.enter(Of::Work, stage, bytes, Some(&mut self.working)).await;
        held.ok_or_else(|| {
            self.budget.over_work.increment(1);
            self.budget.no_room("the work on this one")
        })
    }

    /// Holds `bytes` without waiting for room: for bytes that exist already, or for requests that must not stop half-way.
    pub(crate) fn force(&self, bytes: usize) -> Held {
        let mut held = self.budget.hold(Of::Work);
        held.force(bytes);
        held
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.working {
            self.budget.used().working -= 1;
            self.budget.freed.notify_waiters();
        }
    }
}

impl Held {
    /// Holds `bytes` of a body that arrives, if there is room; otherwise keeps what it held before. Up to [`UNCOUNTED`] bytes always fit.
    pub(crate) fn reach(&mut self, bytes: usize) -> bool {
        bytes <= UNCOUNTED || self.take(bytes.saturating_sub(self.bytes), Stage::Arrives, &mut None, 0)
    }

    /// Holds `bytes` more without waiting for room, because they exist already.
    pub(crate) fn force(&mut self, bytes: usize) {
        self.count(&mut self.budget.used(), bytes);
        self.bytes += bytes;
    }

    /// Passes `bytes` on, and counts those that are not held yet.
    pub(crate) fn give(&mut self, bytes: usize) -> Held {
        let given = bytes.min(self.bytes);
        self.bytes -= given;
        let mut other = Held { budget: Arc::clone(&self.budget), of: self.of, bytes: given };
        if bytes > given {
            other.force(bytes - given);
        }
        other
    }

    /// The same bytes. They hold this until their last copy is dropped.
    pub(crate) fn carried_by(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Carried { bytes, _held: self })
    }

    /// Takes `bytes` if they fit, or if no other request is in progress. `stuck` is 1 for a request that waits for more than it holds.
    fn take(&mut self, bytes: usize, stage: Stage, working: &mut Option<&mut bool>, stuck: usize) -> bool {
        let mut used = self.budget.used();
        let within = |used: usize, most| used.checked_add(bytes).is_some_and(|sum| sum <= most);
        let fits = within(used.bytes, self.budget.most(stage))
            && (stage != Stage::Arrives || within(used.bodies, self.budget.limit / 2));
        // All bytes of others are given back only after one of the waiting requests continues: one that has begun.
        let alone = working.as_ref().is_some_and(|working| match **working {
            true => used.working - 1 == used.stuck - stuck,
            false => used.working == 0,
        });
        if !fits && !alone {
            return false;
        }
        if let Some(working) = working {
            used.working += usize::from(!**working);
            **working = true;
        }
        self.count(&mut used, bytes);
        drop(used);
        self.bytes += bytes;
        true
    }

    fn count(&self, used: &mut Used, bytes: usize) {
        used.bytes = used.bytes.saturating_add(bytes);
        if self.of == Of::Requests {
            used.bodies = used.bodies.saturating_add(bytes);
        }
        self.budget.gauges[self.of as usize].increment(figure(bytes));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut used = self.budget.used();
            used.bytes -= self.bytes;
            if self.of == Of::Requests {
                used.bodies -= self.bytes;
            }
            drop(used);
            self.budget.gauges[self.of as usize].decrement(figure(self.bytes));
            self.budget.freed.notify_waiters();
        }
    }
}

/// A request that waits for room.
struct Waiting<'a> {
    budget: &'a Budget,
    stuck: usize,
}

impl<'a> Waiting<'a> {
    fn new(budget: &'a Budget, stuck: usize) -> Self {
        let mut used = budget.used();
        used.waiting += 1;
        used.stuck += stuck;
        drop(used);
        // Possibly no other request is in progress any more.
        budget.freed.notify_waiters();
        Waiting { budget, stuck }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut used = self.budget.used();
        used.waiting -= 1;
        used.stuck -= self.stuck;
    }
}

/// Counted bytes.
struct Carried {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Carried {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[allow(clippy::cast_precision_loss, reason = "a gauge of bytes need not be exact beyond 2^53")]
fn figure(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use heatsink_env::ManualEnv;

    use super::*;

    const MB: usize = 1024 * 1024;

    fn budget(memory: usize) -> (Arc<Budget>, Arc<ManualEnv>) {
        let env = Arc::new(ManualEnv::seeded(1));
        let limits = Limits { memory, memory_wait: Duration::from_secs(5), ..Limits::default() };
        (Budget::new(&limits, env.clone()), env)
    }

    #[test]
    fn bodies_fill_half_and_are_given_back() {
        let (budget, _) = budget(20 * UNCOUNTED);
        let work = enter(&mut budget.share(), Stage::GoesOn, 10 * UNCOUNTED).unwrap();
        let [mut one, mut two, mut small] = [(); 3].map(|()| budget.hold(Of::Requests));
        assert!(one.reach(4 * UNCOUNTED) && one.reach(6 * UNCOUNTED));
        assert!(one.reach(UNCOUNTED + 1), "less than it has");
        assert!(!two.reach(5 * UNCOUNTED));
        assert!(two.reach(4 * UNCOUNTED));
        assert!(small.reach(UNCOUNTED) && !small.reach(UNCOUNTED + 1));
        drop(work);
        assert!(!two.reach(5 * UNCOUNTED), "half is theirs, whatever else is free");
        small.force(2 * UNCOUNTED);
        drop((one, two));
        assert_eq!(budget.used().bytes, 2 * UNCOUNTED);
        drop(small);
        assert_eq!(budget.used().bytes, 0);
    }

    fn enter(share: &mut Share, stage: Stage, bytes: usize) -> Option<Held> {
        share.enter(stage, bytes).now_or_never()?.ok()
    }

    #[test]
    fn what_has_begun_and_what_is_small_has_room_that_others_wait_for() {
        let (budget, _) = budget(16 * MB);
        let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
        let first = enter(&mut one, Stage::Begins, 12 * MB).unwrap();
        assert!(enter(&mut two, Stage::Begins, 2 * MB).is_none(), "three quarters are full");
        let _small = enter(&mut two, Stage::Begins, MB).unwrap();
        let _on = enter(&mut one, Stage::GoesOn, 3 * MB).unwrap();
        assert!(enter(&mut one, Stage::GoesOn, 2 * MB).is_none(), "all is full");
        assert!(enter(&mut three, Stage::Begins, MB).is_none());
        assert!(budget.enter_answer(MB).now_or_never().flatten().is_none());
        drop(first);
        assert!(enter(&mut three, Stage::Begins, 8 * MB).is_some());
    }

    #[test]
    fn room_is_given_in_the_order_in_which_it_was_asked_for() {
        let (budget, _) = budget(16 * MB);
        let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
        let first = enter(&mut one, Stage::Begins, 10 * MB).unwrap();
        let mut large = Box::pin(two.enter(Stage::Begins, 9 * MB));
        let mut little = Box::pin(three.enter(Stage::Begins, 2 * MB));
        assert!((&mut large).now_or_never().is_none() && budget.is_pressed());
        assert!((&mut little).now_or_never().is_none(), "there would be room, but it is not its turn");
        drop(first);
        assert!((&mut little).now_or_never().is_none());
        let large = (&mut large).now_or_never().unwrap().unwrap();
        let little = (&mut little).now_or_never().unwrap().unwrap();
        assert_eq!(budget.used().bytes, 11 * MB);
        drop((large, little));
        assert!(!budget.is_pressed());
    }

    #[test]
    fn who_waits_too_long_goes_without_and_who_stops_waiting_holds_nobody_up() {
        let (budget, env) = budget(16 * MB);
        let [mut one, mut two, mut three, mut four] = [(); 4].map(|()| budget.share());
        let first = enter(&mut one, Stage::Begins, 12 * MB).unwrap();
        let mut late = Box::pin(two.enter(Stage::Begins, 9 * MB));
        let mut gone = Box::pin(three.enter(Stage::Begins, 9 * MB));
        let mut last = Box::pin(four.enter(Stage::Begins, 9 * MB));
        assert!((&mut late).now_or_never().is_none() && (&mut gone).now_or_never().is_none());
        env.advance(Duration::from_secs(4));
        assert!((&mut late).now_or_never().is_none() && (&mut last).now_or_never().is_none());
        env.advance(Duration::from_secs(1));
        assert!((&mut late).now_or_never().unwrap().is_err());
        drop(gone);
        drop(first);
        assert!((&mut last).now_or_never().unwrap().is_ok());
        drop((late, last));
        drop((one, two, three, four));
        let used = budget.used();
        assert_eq!((used.bytes, used.waiting, used.stuck, used.working), (0, 0, 0, 0));
    }

    #[test]
    fn work_that_needs_more_than_there_is_goes_alone() {
        let (budget, _) = budget(16 * MB);
        let mut body = budget.hold(Of::Requests);
        assert!(body.reach(8 * MB));
        let [mut one, mut two] = [(); 2].map(|()| budget.share());
        let alone = enter(&mut one, Stage::Begins, 20 * MB).unwrap();
        assert!(enter(&mut two, Stage::Begins, MB).is_none());
        assert!(enter(&mut one, Stage::GoesOn, 20 * MB).is_some(), "it waits for nobody but itself");
        drop((alone, one));
        assert!(enter(&mut two, Stage::Begins, 20 * MB).is_some());
    }

    #[test]
    fn where_all_that_have_begun_wait_one_of_them_goes_on() {
        let (budget, _) = budget(16 * MB);
        let [mut one, mut two, mut three] = [(); 3].map(|()| budget.share());
        let begun = [&mut one, &mut two].map(|share| enter(share, Stage::Begins, 6 * MB).unwrap());
        let mut first = Box::pin(one.enter(Stage::GoesOn, 5 * MB));
        let mut second = Box::pin(two.enter(Stage::GoesOn, 5 * MB));
        let mut newcomer = Box::pin(three.enter(Stage::Begins, 5 * MB));
        assert!((&mut first).now_or_never().is_none(), "the second is under way");
        assert!((&mut newcomer).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        let first = (&mut first).now_or_never().unwrap().unwrap();
        assert!((&mut second).now_or_never().is_none(), "one at a time");
        assert!((&mut newcomer).now_or_never().is_none(), "and none that has not begun");
        drop((first, begun));
        assert!((&mut second).now_or_never().unwrap().is_ok());
    }

    #[test]
    fn bytes_hold_what_they_carry_until_their_last_part_is_gone() {
        let (budget, _) = budget(16 * MB);
        let mut expected = enter(&mut budget.share(), Stage::GoesOn, 3 * MB).unwrap();
        let [one, two] = [2 * MB, 2 * MB].map(|bytes| expected.give(bytes).carried_by(vec![7; bytes].into()));
        assert_eq!(budget.used().bytes, 4 * MB, "what came beyond what was expected is counted too");
        drop(expected);
        let part = one.slice(MB..MB + 1);
        drop((one, two));
        assert_eq!((budget.used().bytes, &part[..]), (2 * MB, &[7][..]));
        drop(part);
        assert_eq!(budget.used().bytes, 0);
    }
}
