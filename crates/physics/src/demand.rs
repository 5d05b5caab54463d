//! The demand of a request on one table or index, and the reason of a throttle.

use crate::key_position::KeyRange;
use crate::units::Units;

/// A table or a global index. Never used again once its table or index is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub(crate) u32);

/// Of no table: every demand on it is admitted.
impl Default for ResourceId {
    fn default() -> Self {
        ResourceId(u32::MAX)
    }
}

/// Reads and writes are metered apart: a partition may throttle one while the other goes on
/// (docs/explain/partitions.md#two-gates).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A strongly consistent read: only the leader of a partition's three replicas answers it
    /// (docs/explain/partitions.md#three-replicas).
    Strong = 0,
    /// An eventually consistent read: any of the three replicas answers it, at half a unit per 4
    /// KB.
    Eventual = 1,
    /// A write.
    Write = 2,
}

impl Access {
    /// Whether it writes.
    pub const fn writes(self) -> bool {
        matches!(self, Access::Write)
    }
}

/// The demand of one request, or of one item of a batch or transaction, on a table or one of its
/// global indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table or the global index. Local indexes are their table.
    pub on: ResourceId,
    /// Read or write.
    pub access: Access,
    /// Which partitions.
    pub place: KeyRange,
    /// Capacity units. Where the true cost is known only afterwards, a lower bound of it
    /// ([`crate::Tables::debit`]).
    pub units: Units,
}

/// The capacity that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The partition's ceiling.
    KeyRange,
    /// Twice the previous peak of an on-demand table or index, which is still growing. Throttled
    /// requests name the key range as their reason then too
    /// (docs/explain/partitions.md#where-the-cost-of-a-request-goes-in-the-server).
    Scaling,
    /// The table's or index's provisioned capacity.
    Provisioned,
    /// The maximum configured for an on-demand table or index.
    MaxOnDemand,
    /// The quota of an on-demand table or index.
    AccountLimit,
}

impl Cause {
    /// All of them, in the order of [`crate::Tally::causes`].
    pub const ALL: [Cause; 5] =
        [Cause::KeyRange, Cause::Scaling, Cause::Provisioned, Cause::MaxOnDemand, Cause::AccountLimit];
}

/// Why a demand was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Which of the demands, counted from 0.
    pub demand: usize,
    /// The table or index that refused it.
    pub on: ResourceId,
    /// Whether that is an index.
    pub index: bool,
    /// Read or write.
    pub access: Access,
    /// The capacity that ran out.
    pub cause: Cause,
    /// Whether that table or index is in provisioned mode.
    pub provisioned: bool,
}

impl Throttle {
    /// The reason in `ThrottlingReasons`: one of 16 words
    /// (docs/explain/partitions.md#where-the-cost-of-a-request-goes-in-the-server).
    pub fn reason(&self) -> String {
        let resource = if self.index { "Index" } else { "Table" };
        let access = if self.access.writes() { "Write" } else { "Read" };
        let cause = match self.cause {
            Cause::KeyRange | Cause::Scaling => "KeyRangeThroughputExceeded",
            Cause::Provisioned => "ProvisionedThroughputExceeded",
            Cause::MaxOnDemand => "MaxOnDemandThroughputExceeded",
            Cause::AccountLimit => "AccountLimitExceeded",
        };
        format!("{resource}{access}{cause}")
    }
}
