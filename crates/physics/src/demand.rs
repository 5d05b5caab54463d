//! What a request asks of one table or index, and why it is refused.

use std::sync::Arc;

use crate::units::Units;

/// Reads and writes are metered apart: a partition may throttle one while the other goes on (PHYSICS §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Access {
    Read,
    Write,
}

/// Which partitions a demand falls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The partition that holds this [`crate::position`].
    At(u64),
    /// All partitions in equal shares: a `Scan`. It is refused when any one of them is at its ceiling.
    Even,
    /// Not known: only the table's or index's own bucket is asked and charged.
    Unknown,
}

/// What one request, or one item of a batch or transaction, asks of a table or of one of its global indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table's name.
    pub table: Arc<str>,
    /// The global index's name; `None` for the table itself (and its local indexes).
    pub index: Option<Arc<str>>,
    /// Read or write.
    pub access: Access,
    /// Which partitions.
    pub place: Place,
    /// A lower bound of the cost, taken when the demand is admitted.
    pub units: Units,
}

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The partition's ceiling.
    KeyRange,
    /// The table's or index's provisioned capacity.
    Provisioned,
    /// The maximum configured for an on-demand table or index.
    MaxOnDemand,
    /// The quota of an on-demand table or index.
    AccountLimit,
}

/// Why a demand was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Which of the demands, counted from 0.
    pub demand: usize,
    /// The table's name.
    pub table: Arc<str>,
    /// The global index's name; `None` for the table itself.
    pub index: Option<Arc<str>>,
    /// Read or write.
    pub access: Access,
    /// What ran out.
    pub cause: Cause,
    /// Whether that table or index is in provisioned mode.
    pub provisioned: bool,
}

impl Throttle {
    /// The reason as it stands in `ThrottlingReasons`: one of 16 words (PHYSICS §9.1).
    pub fn reason(&self) -> String {
        let resource = if self.index.is_some() { "Index" } else { "Table" };
        let access = match self.access {
            Access::Read => "Read",
            Access::Write => "Write",
        };
        let cause = match self.cause {
            Cause::KeyRange => "KeyRangeThroughputExceeded",
            Cause::Provisioned => "ProvisionedThroughputExceeded",
            Cause::MaxOnDemand => "MaxOnDemandThroughputExceeded",
            Cause::AccountLimit => "AccountLimitExceeded",
        };
        format!("{resource}{access}{cause}")
    }
}
