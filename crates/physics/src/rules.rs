//! The settings of the model. Everything else is as measured or documented, and has no setting.

use crate::quotas::Quotas;

/// The switches of a model. [`Rules::default`] is DynamoDB as it is documented and measured today
/// (2026).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Draws the jitter of split delays and the samples of traffic. One seed, one run.
    pub seed: u64,
    /// One budget for reads and writes of a partition (`reads/3000 + writes/1000 ≤ 1`), as AWS's
    /// guide had it until 2020 (docs/explain/partitions.md#two-gates), instead of two independent
    /// ones. Eventually consistent reads then count half, without the three replicas.
    pub legacy_linear: bool,
    /// Whether hot partitions split at all (docs/explain/partitions.md#split-for-heat).
    pub splits: bool,
    /// The stricter reading of DynamoDB's promise: nothing ever lifts one partition key over 1,000
    /// write units/s, so no split falls inside an item collection, whatever its sort keys.
    pub one_key_one_partition: bool,
    /// From the decision to split until it takes effect, in seconds, drawn evenly: (least, most).
    ///
    /// 240 to 420 by default: "in the order of minutes"
    /// (docs/explain/partitions.md#split-for-heat), and with the minute of [`SUSTAINED_SECONDS`]
    /// the 5 to 8 minutes that fit what was measured (docs/explain/partitions.md#tested-against,
    /// S3, S6 and S7).
    pub split_delay_seconds: (u64, u64),
    /// What the account may provision and change.
    pub quotas: Quotas,
}

/// A partition is split for heat when it was hot for this long without a break. Not published: a
/// guess, together with [`Rules::split_delay_seconds`].
pub const SUSTAINED_SECONDS: u64 = 60;

/// A partition is hot from this share of its ceiling on, in thousandths. Not published; a partition
/// under a steady 900 writes/s was seen to split (docs/explain/partitions.md#tested-against), so it
/// is below 0.9.
pub const HOT: u64 = 850;

impl Default for Rules {
    fn default() -> Self {
        Rules {
            seed: 0,
            legacy_linear: false,
            splits: true,
            one_key_one_partition: false,
            split_delay_seconds: (240, 420),
            quotas: Quotas::default(),
        }
    }
}
