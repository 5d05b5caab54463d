//! One limit on the bytes that all requests hold together: bodies, calls to the store, answers.
//!
//! A request that has progressed further may fill more of the budget. It gives back what it holds
//! only at its end, so it must not wait for requests that have not begun. Up to [`UNCOUNTED`] bytes
//! of a request are not counted, and up to [`SMALL`] do not wait behind larger ones.
//!
//! Beneath: `account` (what is held, and whether more fits). Not here: how many bytes a call takes
//! (`memory_estimate`).

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

mod account;
#[cfg(test)]
mod tests;

use self::account::Account;
pub(crate) use self::account::{Claimant, Of, Stage};

/// Up to this many bytes of a request are not counted: a connection's own read buffer may hold as
/// much. So large requests leave room for ordinary ones. The limits on connections and requests
/// bound the small ones.
pub(crate) const UNCOUNTED: usize = 64 * 1024;

/// Up to this many bytes a request may use all of the budget from its beginning, and waits only
/// behind requests that are as small.
const SMALL: usize = 1024 * 1024;

/// The budget: the limit, and the bytes in use.
pub(crate) struct Budget {
    patience: Duration,
    env: Arc<dyn Env>,
    used: Mutex<Account>,
    /// Notified when bytes are given back.
    freed: Notify,
    /// The holder of each lock is the next to get room: one for requests that begin, one for
    /// requests that continue.
    turns: [tokio::sync::Mutex<()>; 2],
    gauges: [Gauge; 3],
    waits: Counter,
    over_work: Counter,
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
    /// In whose name, while that is not proven.
    claimant: Option<Claimant>,
}

impl Budget {
    /// The budget of these limits. Its metrics go to the recorder that is installed by now.
    pub(crate) fn new(limits: &Limits, env: Arc<dyn Env>) -> Arc<Self> {
        Arc::new(Budget {
            patience: limits.memory_wait,
            env,
            used: Mutex::new(Account::new(limits.memory)),
            freed: Notify::new(),
            turns: Default::default(),
            gauges: ["requests", "work", "answers"].map(|of| gauge!("heatsink_held_bytes", "of" => of)),
            waits: counter!("heatsink_memory_waits_total"),
            over_work: counter!("heatsink_refused_total", "limit" => "held_work"),
        })
    }

    /// The error for a request that got no room for `what`.
    pub(crate) fn no_room(&self, what: &str) -> Error {
        let limit = self.used().limit / (1024 * 1024);
        let message =
            format!("The requests in progress hold up to {limit} MB, and there was no room for {what}");
        Error::new(Code::ThrottlingException, message)
    }

    /// An empty holding of this budget.
    pub(crate) fn hold(self: &Arc<Self>, of: Of) -> Held {
        Held { budget: Arc::clone(self), of, bytes: 0, claimant: None }
    }

    /// Holds `bytes` of a request that waits for another one, if there is room now.
    pub(crate) fn try_hold(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let mut held = self.hold(Of::Work);
        held.take(bytes, Stage::Begins, &mut None, 0).then_some(held)
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
            // Before the lock is released: the next waiter has to see that this request is in
            // progress.
            drop(waiting);
        };
        let found = matches!(select(pin!(room), self.env.sleep(self.patience)).await, Either::Left(_));
        found.then_some(held)
    }

    /// Whether other requests need what is held: a request waits, or more is held than beginning
    /// requests may fill.
    pub(crate) fn is_pressed(&self) -> bool {
        self.used().is_pressed()
    }

    /// How many bytes are held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.used().bytes
    }

    fn gauge(&self, of: Of) -> &Gauge {
        &self.gauges[of as usize]
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Account> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Room for `bytes`, in the order of the requests. If no other request is in progress there
    /// always is room: a request that needs more than the whole budget runs alone, and if all
    /// requests that have begun wait, the first of them continues.
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

    /// Holds `bytes` without waiting for room: for bytes that exist already, or for requests that
    /// must not stop half-way.
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
    /// The same for a body in the name of a client, which has a [fair share](Account::is_fair) until
    /// it is [proven](Self::prove) to be the client's.
    pub(crate) fn claim(&mut self, claimant: Claimant) {
        self.claimant = Some(claimant);
    }

    /// It is proven whose it is.
    pub(crate) fn prove(&mut self) {
        if let Some(claimant) = self.claimant.take() {
            self.budget.used().disclaim(&claimant.id, self.bytes);
        }
    }

    /// Holds `bytes` of a body that arrives, if there is room; otherwise keeps what it held before.
    /// Up to [`UNCOUNTED`] bytes always fit.
    pub(crate) fn reach(&mut self, bytes: usize) -> bool {
        bytes <= UNCOUNTED || self.take(bytes.saturating_sub(self.bytes), Stage::Arrives, &mut None, 0)
    }

    /// Holds `bytes` more without waiting for room, because they exist already.
    pub(crate) fn force(&mut self, bytes: usize) {
        self.budget.used().add(self.of, bytes);
        self.budget.gauge(self.of).increment(figure(bytes));
        self.bytes += bytes;
    }

    /// Passes `bytes` on, and counts those that are not held yet.
    pub(crate) fn give(&mut self, bytes: usize) -> Held {
        let given = bytes.min(self.bytes);
        self.bytes -= given;
        let mut other = Held { budget: Arc::clone(&self.budget), of: self.of, bytes: given, claimant: None };
        if bytes > given {
            other.force(bytes - given);
        }
        other
    }

    /// The same bytes. They hold this until their last copy is dropped.
    pub(crate) fn carried_by(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Carried { bytes, _held: self })
    }

    /// Takes `bytes` if they fit, or if no other request is in progress. `stuck` is 1 for a request
    /// that waits for more than it holds.
    fn take(&mut self, bytes: usize, stage: Stage, working: &mut Option<&mut bool>, stuck: usize) -> bool {
        let mut used = self.budget.used();
        let is_fair = self.claimant.as_ref().is_none_or(|one| used.is_fair(one, self.bytes, bytes));
        let taken = is_fair && used.take(self.of, bytes, stage, working, stuck);
        if taken {
            if let Some(claimant) = &self.claimant {
                used.claim(&claimant.id, bytes);
            }
            drop(used);
            self.budget.gauge(self.of).increment(figure(bytes));
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.prove();
        if self.bytes > 0 {
            self.budget.used().give_back(self.of, self.bytes);
            self.budget.gauge(self.of).decrement(figure(self.bytes));
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
