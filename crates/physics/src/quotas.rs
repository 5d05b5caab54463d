//! The quotas of an AWS account: capacity, and how often it may change
//! (docs/explain/partitions.md#how-much-a-table-may-take).
//!
//! Not here: whether all tables together stay within them (`permit`).

use crate::demand::ResourceId;
use crate::mode::{Mode, QUOTA};

pub(crate) const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// The quotas of an account in one region. [`Quotas::default`] is what AWS gives a new account; all
/// are adjustable there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Most units per second of a table or index, reads and writes each. On demand it throttles;
    /// provisioned capacity beyond it is refused.
    pub table: u64,
    /// Most provisioned units per second of all tables and indexes together, reads and writes each.
    pub account: u64,
    /// Decreases of a table's or index's provisioned capacity at the start of a UTC day, and most
    /// that can be saved up; every hour of the day brings one more.
    pub decreases: u64,
    /// Switches of a table to on-demand within 24 hours.
    pub switches: usize,
    /// Most tables.
    pub tables: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Quotas { table: QUOTA, account: 2 * QUOTA, decreases: 4, switches: 4, tables: 2_500 }
    }
}

impl Quotas {
    /// No quotas. On-demand capacity still doubles from peak to peak.
    pub const NONE: Quotas = Quotas {
        table: u64::MAX,
        account: u64::MAX,
        decreases: u64::MAX,
        switches: usize::MAX,
        tables: usize::MAX,
    };
}

/// A table or index that is to be made, changed or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is now; `None` if it is new.
    pub on: Option<ResourceId>,
    /// What it is to be; `None` if it is to go.
    pub mode: Option<Mode>,
    /// Whether it is an index.
    pub index: bool,
}

/// A quota that a change would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// [`Quotas::table`].
    Table(u64),
    /// [`Quotas::account`].
    Account(u64),
    /// [`Quotas::decreases`].
    Decreases(u64),
    /// [`Quotas::switches`].
    Switches(usize),
    /// [`Quotas::tables`].
    Tables(usize),
}

impl std::fmt::Display for QuotaExceeded {
    /// `LimitExceededException`'s message. That of tables, and the first sentence of that of
    /// decreases, are AWS's; the others are ours in its style, as its own are not published.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Subscriber limit exceeded: ")?;
        match self {
            QuotaExceeded::Table(most) => {
                write!(
                    out,
                    "Provisioned throughput is limited to {most} read and {most} write units per table or index"
                )
            }
            QuotaExceeded::Account(most) => {
                write!(
                    out,
                    "Provisioned throughput is limited to {most} read and {most} write units per account"
                )
            }
            QuotaExceeded::Decreases(at_once) => write!(
                out,
                "Provisioned throughput decreases are limited within a given UTC day. After the first {at_once} decreases, each \
                 subsequent decrease in the same UTC day can be performed at most once every 3600 seconds."
            ),
            QuotaExceeded::Switches(most) => {
                write!(out, "Updates to PayPerRequest mode are limited to {most} in 1 day(s)")
            }
            QuotaExceeded::Tables(most) => write!(out, "There is a limit of {most} tables per subscriber"),
        }
    }
}

impl std::error::Error for QuotaExceeded {}

/// How often a table or index has changed, on the wall clock in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Decreases that are left as of the last one, and when that was.
    decreased: Option<(u64, u64)>,
    /// The switches to on-demand within the last day.
    switched: Vec<u64>,
}

impl Changes {
    /// Decreases that may be made now.
    pub fn decreases(&self, now: u64, most: u64) -> u64 {
        match self.decreased {
            Some((left, at)) if at / DAY == now / DAY => {
                left.saturating_add((now / HOUR).saturating_sub(at / HOUR)).min(most)
            }
            _ => most,
        }
    }

    /// Switches to on-demand within the last day.
    pub fn switches(&self, now: u64) -> usize {
        self.switched.iter().filter(|at| now.saturating_sub(**at) < DAY).count()
    }

    /// Writes a change down.
    pub fn note(&mut self, now: u64, before: Mode, after: Mode, most: u64) {
        if lowers(before, after) {
            self.decreased = Some((self.decreases(now, most).saturating_sub(1), now));
        }
        if before.provisioned() && !after.provisioned() {
            self.switched.retain(|at| now.saturating_sub(*at) < DAY);
            self.switched.push(now);
        }
    }
}

/// Whether that is a decrease of provisioned capacity.
pub(crate) fn lowers(before: Mode, after: Mode) -> bool {
    matches!((before, after), (
        Mode::Provisioned { read, write },
        Mode::Provisioned { read: to_read, write: to_write },
    ) if to_read < read || to_write < write)
}
