//! What is counted: accesses, and what became of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::key::Key;

/// Reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "says it all")]
pub enum Kind {
    Read,
    Write,
}

impl Kind {
    /// `read` or `write`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
        }
    }
}

/// What became of an access. The reasons are those that the store gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, or refused by its own condition.
    #[default]
    Done,
    /// It was throttled, for a reason that is not known: left unprocessed in a batch, for one.
    Throttled,
    /// It was throttled because of the limit of the partition that its key is on.
    ThrottledByPartition,
    /// It was throttled because of the limit of a partition elsewhere, which the same request goes
    /// to: for a key of a table, a partition of one of its indexes.
    ThrottledByIndex,
    /// It was throttled because of the capacity, or the maximum, that was set for the table or the
    /// index as a whole.
    ThrottledByMaximum,
    /// It was throttled because of the account's limit.
    ThrottledByAccount,
}

/// The outcomes of what was throttled.
pub(super) const REASONS: [Outcome; 5] = [
    Outcome::Throttled,
    Outcome::ThrottledByPartition,
    Outcome::ThrottledByIndex,
    Outcome::ThrottledByMaximum,
    Outcome::ThrottledByAccount,
];

impl Outcome {
    /// Its place among [`REASONS`]; `None` where it was carried out.
    pub(super) fn reason(self) -> Option<usize> {
        REASONS.iter().position(|reason| *reason == self)
    }
}

/// One item, page or statement of a request. The default is one of no key that costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The logical partition key; `None` for a Scan, or where the key is not known. It counts for
    /// the part's totals only.
    pub key: Option<Key<'a>>,
    /// Thousandths of the capacity units that it takes.
    pub units: u64,
    /// How far these may be off where they are not told but estimated: a standard deviation, in
    /// thousandths.
    pub deviation: u64,
    /// Whether it reads a page of items, and not one by its key.
    pub is_page: bool,
    /// How many accesses it stands for: 1 if all are counted, n if one in n is drawn at random.
    pub weight: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// Who asks for it; `None` where clients are not known.
    pub client: Option<&'a Arc<str>>,
}

impl Default for Access<'_> {
    fn default() -> Self {
        Access {
            key: None,
            units: 0,
            deviation: 0,
            is_page: false,
            weight: 1,
            outcome: Outcome::Done,
            client: None,
        }
    }
}
