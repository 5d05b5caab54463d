//! What is on record of one key: all that a coordinator has to remember.
//!
//! Not here: the two layouts themselves, and where the record is stored. Beside [`State`] nothing
//! is kept. Whether acknowledgements were clean is not: whoever takes over counts them as unclean,
//! which costs a wait and no correctness. Times are not: whoever waits counts from its own
//! observation. How far the mover came is in its claim, because each write of the record ends the
//! creation of claims under the version before.

use heatsink_layout::Phase;

/// One of the two layouts of a move, and an item's copy in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The layout before.
    Old,
    /// The layout after.
    New,
}

/// The record of a key, as far as a move is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Grows with every write of the record. Every write is conditional on it.
    pub version: u64,
    /// What gateways plan by.
    pub state: State,
}

/// What holds for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// One layout is in force.
    Stable {
        /// Which one of those of the last move: the old one if that was cancelled.
        in_force: Side,
        /// Whether no call of the last move can land any more. The next one begins after that.
        settled: bool,
    },
    /// The key moves.
    Moving {
        /// Where the move stands. Gateways plan by it.
        phase: Phase,
        /// The workers of this phase are done, and no claim is created any more. Gateways take no
        /// notice of it.
        closing: bool,
    },
}

impl Record {
    /// Of a key that never moved: its layout is the old one.
    pub const WHOLE: Record =
        Record { version: 0, state: State::Stable { in_force: Side::Old, settled: true } };

    /// The next version of the record.
    pub(crate) fn next(self, state: State) -> Record {
        Record { version: self.version + 1, state }
    }
}
