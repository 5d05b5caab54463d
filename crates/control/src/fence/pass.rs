//! The right of one request to send calls and to return a result.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heatsink_dynamo::{Code, Error, Outcome};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_fence::Admission;
use heatsink_store::Permit;

use super::lease::Lease;
use crate::table_cache::Snapshot;

/// A request's right to send physical calls and to give its client a result. It ends when a change
/// of one of its tables is acknowledged. The right to send also ends with the gateway's lease.
pub struct Pass {
    lease: Arc<Lease>,
    first: Option<Admission>,
    rest: Vec<Admission>,
    /// The cached statuses when it was given.
    seen: Option<Arc<Snapshot>>,
    /// The tables of the request that do not exist. Few requests name one, and passes are moved
    /// about for each.
    #[allow(clippy::box_collection, reason = "one pointer instead of three words")]
    missing: Option<Box<Vec<String>>>,
    /// Whether the lease is checked.
    leased: bool,
    /// Whether the request depends on a key about to move; `None` where no key of its tables is.
    depends_on_moving: Option<Arc<AtomicBool>>,
    /// Whether the rules let calls of several requests become one.
    shares_calls: bool,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("holds", &self.holds()).field("missing", &self.missing()).finish()
    }
}

impl Pass {
    pub(crate) fn new(lease: Arc<Lease>) -> Self {
        Pass {
            lease,
            first: None,
            rest: Vec::new(),
            seen: None,
            missing: None,
            leased: true,
            depends_on_moving: None,
            shares_calls: false,
        }
    }

    /// Notes whether the rules let calls of several requests become one.
    pub(crate) fn sharing_calls(self, shares_calls: bool) -> Self {
        Pass { shares_calls, ..self }
    }

    /// Whether a call of the request may become one with those of others: some rule lets calls.
    pub fn shares_calls(&self) -> bool {
        self.shares_calls
    }

    /// For calls outside a gateway: it always holds.
    pub fn unfenced(env: Arc<dyn Env>) -> Self {
        Pass::free(&Arc::new(Lease::none(env)))
    }

    /// For operations that depend on no layout, such as a list of tables.
    pub(crate) fn free(lease: &Arc<Lease>) -> Self {
        Pass { leased: false, ..Pass::new(Arc::clone(lease)) }
    }

    pub(crate) fn add(&mut self, admission: Admission) {
        match self.first {
            None => self.first = Some(admission),
            Some(_) => self.rest.push(admission),
        }
    }

    /// Keys of its tables are about to move: from now on it is known whether the request depends on
    /// one.
    pub(crate) fn watch_moving(&mut self) {
        self.depends_on_moving.get_or_insert_default();
    }

    /// What to set where the request turns out to depend on a key about to move; `None` where there
    /// is no such key.
    pub(crate) fn dependence(&self) -> Option<Arc<AtomicBool>> {
        self.depends_on_moving.clone()
    }

    fn is_short(&self) -> bool {
        self.depends_on_moving.as_ref().is_some_and(|depends| depends.load(Ordering::Relaxed))
    }

    /// Whether the lease that the request needs has to be renewed before anything is sent.
    pub fn needs_renewal(&self) -> bool {
        self.is_short() && self.lease.is_short_over(self.lease.now())
    }

    fn lease_is_over(&self, now: MonotonicInstant) -> bool {
        self.leased && (self.lease.is_over(now) || self.is_short() && self.lease.is_short_over(now))
    }

    pub(crate) fn sees(&mut self, seen: Arc<Snapshot>) {
        self.seen = Some(seen);
    }

    pub(crate) fn seen(&self) -> Arc<Snapshot> {
        self.seen.clone().unwrap_or_default()
    }

    pub(crate) fn misses(&mut self, name: &str) {
        self.missing.get_or_insert_default().push(name.to_owned());
    }

    /// Whether a table that the request names does not exist. Such a request is answered here. If
    /// it were sent, the table could be created, and sharded, before it arrives.
    pub fn is_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// The tables that the request names and that do not exist.
    pub fn missing(&self) -> &[String] {
        self.missing.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Whether nothing has changed that the request was planned under.
    pub fn holds(&self) -> bool {
        self.admissions().all(Admission::holds)
    }

    /// The last check before a call is written to its connection.
    ///
    /// # Errors
    /// `ServiceUnavailable`, retryable, when the call must not be sent.
    pub fn check(&self) -> Result<MonotonicInstant, Error> {
        let now = self.lease.now();
        if self.lease_is_over(now) {
            return Err(unavailable(
                "The registry could not be reached for so long that stored data may be laid out in another way by now",
            ));
        }
        if !self.holds() {
            return Err(unavailable("The layout of the table changed while the request was in progress"));
        }
        Ok(now)
    }

    /// A call that is about to be sent, with this pass as its permit. `writes`: whether it may
    /// change anything.
    pub fn send(&self, writes: bool) -> Sending<'_> {
        Sending { pass: self, writes, sent: AtomicU64::new(NOT_SENT) }
    }

    fn admissions(&self) -> impl Iterator<Item = &Admission> {
        self.first.iter().chain(&self.rest)
    }

    /// The result for the client: the store's answer, if the layouts that it was planned under
    /// still hold.
    ///
    /// # Errors
    /// Outcome unknown, when a change was acknowledged meanwhile.
    pub fn deliver<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        match answer {
            Err(error) if error.outcome == Outcome::Unknown => Err(error),
            // Together with the lease: no changer can have continued before the call took effect,
            // however late it was.
            _ if self.holds() && !self.lease_is_over(self.lease.now()) => answer,
            Err(error) if error.code == Code::ServiceUnavailable => Err(error),
            _ => Err(Error::unavailable(
                "The layout of the table changed while the request was in progress; whether it was carried out is not known",
                Outcome::Unknown,
            )),
        }
    }
}

/// A call in flight. Until its answer is reported, a write that was permitted is assumed to arrive
/// late.
pub struct Sending<'a> {
    pass: &'a Pass,
    writes: bool,
    /// When it was last permitted.
    sent: AtomicU64,
}

const NOT_SENT: u64 = 0;

impl Sending<'_> {
    /// Reports the answer. An answer that leaves the outcome unknown does not count.
    pub fn answered<T>(mut self, answer: &Result<T, Error>) {
        if !answer.as_ref().is_err_and(|error| error.outcome == Outcome::Unknown) {
            *self.sent.get_mut() = NOT_SENT;
        }
    }
}

impl Permit for Sending<'_> {
    fn check(&self) -> Result<(), Error> {
        let now = self.pass.check()?;
        // Only the call itself asks, one attempt after the other.
        self.sent.store(now.0.max(1), Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let sent = *self.sent.get_mut();
        if self.writes && sent != NOT_SENT {
            self.pass.admissions().for_each(|admission| admission.unanswered(MonotonicInstant(sent)));
        }
    }
}

fn unavailable(message: &str) -> Error {
    Error::unavailable(message, Outcome::NotDone)
}
