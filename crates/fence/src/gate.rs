//! The gate of one table's requests: open while the layout holds that they were planned under,
//! closed from the acknowledgement of a change on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heatsink_env::MonotonicInstant;

/// Counts the requests that are planned under one version of a table's record, and can be closed to
/// them. The [`Admission`] of a request says what it may do.
#[derive(Debug, Default)]
pub struct Gate {
    /// The lowest bit: closed. The others: the number of requests inside.
    state: AtomicU64,
    /// When the last call was sent that was never answered, in nanoseconds; zero if there was none.
    unanswered: AtomicU64,
}

const CLOSED: u64 = 1;
const ONE: u64 = 2;

impl Gate {
    /// Admits a request; `None` once the gate is closed.
    pub fn admit(self: &Arc<Self>) -> Option<Admission> {
        // Counted first, so that a process that closes the gate cannot miss it.
        if self.state.fetch_add(ONE, Ordering::SeqCst) & CLOSED != 0 {
            self.state.fetch_sub(ONE, Ordering::SeqCst);
            return None;
        }
        Some(Admission { gate: Arc::clone(self) })
    }

    /// Whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Whether no request is inside.
    pub fn is_empty(&self) -> bool {
        self.state.load(Ordering::SeqCst) < ONE
    }

    /// Closes the gate if no request is inside and every call was answered, so that there is
    /// nothing to wait for. Returns whether it did.
    pub fn retire(&self) -> bool {
        let state = &self.state;
        self.unanswered.load(Ordering::SeqCst) == 0
            && match state.compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => true,
                Err(found) => found == CLOSED,
            }
    }

    /// Closes the gate: it admits no request, and requests inside may neither send a call nor give
    /// a client their result. Returns how long, from `now` on, their calls may still take effect;
    /// zero if each of them was answered.
    pub fn close(&self, now: MonotonicInstant, straggler: Duration) -> Duration {
        let before = self.state.fetch_or(CLOSED, Ordering::SeqCst);
        if before >= ONE {
            // Its call may have been sent at this very time.
            return straggler;
        }
        match self.unanswered.load(Ordering::SeqCst) {
            0 => Duration::ZERO,
            sent => straggler.saturating_sub(now.since(MonotonicInstant(sent))),
        }
    }
}

/// A request inside a gate. Dropping this lets it leave.
#[derive(Debug)]
pub struct Admission {
    gate: Arc<Gate>,
}

impl Admission {
    /// Whether the request may send a call, or give a client its result.
    pub fn holds(&self) -> bool {
        !self.gate.is_closed()
    }

    /// A call that was sent at `sent` has no answer: it may take effect later.
    pub fn unanswered(&self, sent: MonotonicInstant) {
        self.gate.unanswered.fetch_max(sent.0.max(1), Ordering::SeqCst);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.gate.state.fetch_sub(ONE, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRAGGLER: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    #[test]
    fn a_closed_gate_lets_nobody_in_and_nothing_out() {
        let gate = Arc::new(Gate::default());
        let inside = gate.admit().unwrap();
        assert!(inside.holds() && !gate.is_empty());
        assert_eq!(gate.close(at(1), STRAGGLER), STRAGGLER, "its call may be on its way");
        assert!(!inside.holds() && gate.admit().is_none());
        drop(inside);
        assert!(gate.is_empty() && gate.is_closed());
    }

    #[test]
    fn only_answered_calls_are_done_with() {
        let gate = Arc::new(Gate::default());
        let inside = gate.admit().unwrap();
        drop(inside);
        assert_eq!(gate.close(at(2), STRAGGLER), Duration::ZERO);

        let gate = Arc::new(Gate::default());
        let inside = gate.admit().unwrap();
        inside.unanswered(at(10));
        inside.unanswered(at(4));
        drop(inside);
        assert_eq!(gate.close(at(15), STRAGGLER), Duration::from_secs(25));
        assert_eq!(gate.close(at(40), STRAGGLER), Duration::ZERO);
    }
}
