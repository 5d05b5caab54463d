//! What a coordinator asks for, and what it is told.
//!
//! Whoever drives it carries out a [`Do`], one after the other, and tells what came of it. Not
//! here: which one comes when ([`Coordinator`](crate::Coordinator)).

use heatsink_env::MonotonicInstant;

use crate::record::Record;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Its items move to other slots.
    Move,
    /// It is a counter that gets more fragments, and nothing that is stored moves. PREPARE is
    /// followed by STABLE.
    Widen,
    /// It is a counter that gets fewer fragments: what those hold that it loses is added to its base
    /// fragment in MOVE, which follows PREPARE.
    Narrow,
    /// Buckets that nothing lies in get another number of shards, and nothing is put there until
    /// STABLE, which follows PREPARE.
    Step,
}

/// What to do next, and then to tell with [`Coordinator::seen`](crate::Coordinator::seen).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Do {
    /// Write this record, if the one on record has this version; then, with `publish`, name it in
    /// the head of the registry.
    Write {
        /// What to write.
        record: Record,
        /// The condition; `None` only without a rule.
        if_version: Option<u64>,
        /// Whether gateways have to take notice.
        publish: bool,
    },
    /// List the gateways strongly, and wait until each has acknowledged this version, or may send
    /// nothing more under an older one.
    Acknowledge {
        /// The version.
        version: u64,
    },
    /// Wait until this moment.
    Wait {
        /// When to go on.
        until: MonotonicInstant,
    },
    /// Read strongly what lies under the new physical keys where the new layout puts items that
    /// move.
    Survey,
    /// Delete the orphans there, under a claim.
    Clear,
    /// Read the highest sort key under the old physical keys strongly, and write it with the next
    /// record. Nothing is lost where it cannot be read.
    MarkHighWater,
    /// Let a mover run until it has finished, under a claim. It may be paused. Of a counter that
    /// narrows it folds fragments ([`Fold`](crate::Fold)).
    Move,
    /// List all claims of this key strongly, and delete each.
    EndClaims,
    /// Nothing. This coordinator is done.
    Rest(Outcome),
}

/// How a coordinator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The new layout is in force, and the next change may begin.
    Moved,
    /// The old layout is in force, and the next change may begin: the move was cancelled or
    /// refused.
    Back,
    /// So many items do not fit under their new keys. The key stays in MOVE, which is correct and
    /// costs reads. Once they are shorter, or gone, the move is taken over.
    NotFinished(u64),
    /// Somebody else has written the record, or it is not known whether this coordinator did. Read
    /// it and take over.
    Superseded,
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// The record is written, and published.
    Written,
    /// The record has another version, or the outcome of the write is unknown.
    Superseded,
    /// Nobody plans by an older version any more.
    Acknowledged {
        /// Whether every gateway acknowledged, and every call planned under an older version was
        /// answered, earlier attempts included.
        clean: bool,
    },
    /// The moment has come.
    Waited,
    /// The survey.
    Surveyed {
        /// Items of other keys.
        foreign: u64,
        /// Items of this key, left there by an earlier layout.
        orphans: u64,
    },
    /// The orphans are deleted.
    Cleared,
    /// The high water is known, or nobody could read it.
    Marked,
    /// The mover has finished.
    Moved {
        /// Items that do not fit.
        left: u64,
    },
    /// The claims are deleted.
    ClaimsEnded,
}
