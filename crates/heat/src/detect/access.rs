//! What is counted: accesses, and what became of them.

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

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, or refused by its own condition.
    Done,
    /// It was throttled, or left unprocessed in a batch.
    Throttled,
    /// It was throttled because of the limit of one partition, as the store says.
    ThrottledByPartition,
}

/// One item, page or statement of a request.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The logical partition key; `None` for a Scan, or where the key is not known. It counts for
    /// the part's totals only.
    pub key: Option<Key<'a>>,
    /// Thousandths of the capacity units that it takes.
    pub units: u64,
    /// How many accesses it stands for: 1 if all are counted, n if one in n is drawn at random.
    pub weight: u32,
    /// What became of it.
    pub outcome: Outcome,
}
