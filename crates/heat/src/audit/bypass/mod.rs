//! Writes that went past the gateways: stream records that no recorded request of the same time
//! explains.
//!
//! A request explains one record under each physical key of its item, so that counters and items on
//! their way to other shards need no rule of their own. An item that is taken from one physical key
//! and put under another without a request was moved by Heatsink. What is left was written past the
//! gateways, as far as the recordings tell.
//!
//! Where only a share of the requests is recorded, items cannot be told apart: the writes of a key
//! are counted, and only what chance does not explain is told. Of hashed keys only the writes of
//! the table are counted.
//!
//! Not here: the forms of records and traces, and what to do about a hot key ([`audit`](super)).

mod compare;
mod requested;
mod streamed;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use requested::Requested;
pub use streamed::{Event, Streamed};

/// A record and its request may be so many seconds apart: streams know seconds, and clocks differ.
pub const APART: i64 = 10;
/// The most keys that are named.
const KEYS: usize = 20;

/// What of the writes of a table went past the gateways.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bypass {
    /// Records of the time that all recordings have in common.
    pub writes: u64,
    /// Records of other times, about which nothing is said.
    pub outside: u64,
    /// Of the writes: items that Heatsink moved from one physical key to another.
    pub moved: u64,
    /// Of the writes: those that no recorded request explains.
    pub unexplained: u64,
    /// Whether these are a lower bound, beyond which chance may explain it: not all requests are
    /// recorded, or keys are hashes.
    pub at_least: bool,
    /// The keys with the most such writes; none where keys are hashes.
    pub keys: Vec<BypassedKey>,
    /// More keys with such writes.
    pub more_keys: usize,
    /// Recorded writes of keys that are not known, each of which may explain one.
    pub without_key: u64,
    /// Accesses that the recordings left out, each of which may explain one.
    pub dropped: u64,
}

/// A key that was written past the gateways.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BypassedKey {
    /// The logical key; bytes that are no text are shown as `�`.
    pub key: String,
    /// Its writes.
    pub writes: u64,
    /// Of these: those that no recorded request explains.
    pub unexplained: u64,
}

impl Bypass {
    /// The share of the writes that no recorded request explains, from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "counts, far below 2^52")]
    pub fn share(&self) -> f64 {
        self.unexplained as f64 / self.writes.max(1) as f64
    }
}
