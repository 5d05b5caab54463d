//! Capacity modes of a table or an index, and the partitions that it starts with.

/// Default quota per table or index, units per second, reads and writes each
/// (docs/explain/partitions.md#how-much-a-table-may-take).
pub const QUOTA: u64 = 40_000;

/// Reads and writes per second that a new on-demand table or index serves
/// (docs/explain/partitions.md#how-much-a-table-may-take).
const ON_DEMAND_START: [u64; 2] = [12_000, 4_000];

/// Which is what four partitions do (docs/explain/partitions.md#how-much-a-table-may-take).
const ON_DEMAND_PARTITIONS: u64 = 4;

/// Most partitions of one table or index. Memory is the limit here; DynamoDB's default quota of
/// 40,000 units is far below.
pub(crate) const PARTITIONS_MAX: usize = 10_000;

/// Capacity mode of a table or of one global index. All figures are units per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `PROVISIONED`.
    Provisioned {
        /// `ReadCapacityUnits`.
        read: u64,
        /// `WriteCapacityUnits`.
        write: u64,
    },
    /// `PAY_PER_REQUEST`.
    OnDemand {
        /// `MaxReadRequestUnits`, where configured.
        max_read: Option<u64>,
        /// `MaxWriteRequestUnits`, where configured.
        max_write: Option<u64>,
    },
}

impl Mode {
    /// On demand, without a configured maximum.
    pub const ON_DEMAND: Mode = Mode::OnDemand { max_read: None, max_write: None };

    /// Partitions of a new table or index. Provisioned: `ceil(R/3000 + W/1000)`, which AWS
    /// published until 2017 and no longer does
    /// (docs/explain/partitions.md#how-much-a-table-may-take). At most 10,000, whatever is asked
    /// for.
    pub fn partitions(self) -> u64 {
        match self {
            Mode::Provisioned { read, write } => {
                let thousandths = u128::from(read) + 3 * u128::from(write);
                u64::try_from(thousandths.div_ceil(3_000)).unwrap_or(u64::MAX).clamp(1, PARTITIONS_MAX as u64)
            }
            Mode::OnDemand { .. } => ON_DEMAND_PARTITIONS,
        }
    }

    /// Reads and writes per second that a new table or index serves: also its warm throughput
    /// (docs/explain/partitions.md#how-much-a-table-may-take).
    pub fn start(self) -> [u64; 2] {
        match self {
            Mode::Provisioned { read, write } => [read, write],
            Mode::OnDemand { .. } => ON_DEMAND_START,
        }
    }

    /// Whether the capacity is provisioned. Decides the type of throttling errors
    /// (docs/explain/partitions.md#where-the-cost-of-a-request-goes-in-the-server).
    pub fn provisioned(self) -> bool {
        matches!(self, Mode::Provisioned { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_counts_of_the_sources() {
        // The 2017 guide, AWS's blog, USENIX ATC'22 (writes only):
        // docs/explain/partitions.md#sources, 10, 3 and 5.
        let counts = [
            (1_000, 500, 1),
            (1_000, 1_000, 2),
            (5_000, 2_000, 4),
            (0, 10_000, 10),
            (0, 3_200, 4),
            (1, 1, 1),
        ];
        for (read, write, partitions) in counts {
            assert_eq!(Mode::Provisioned { read, write }.partitions(), partitions, "{read} {write}");
        }
        assert_eq!(Mode::ON_DEMAND.partitions(), 4);
        assert_eq!(Mode::Provisioned { read: 90_000, write: 30_000 }.partitions(), 60);
        assert_eq!(Mode::Provisioned { read: u64::MAX, write: u64::MAX }.partitions(), PARTITIONS_MAX as u64);
    }
}
