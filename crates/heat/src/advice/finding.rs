//! What it is that burns.

use serde::{Deserialize, Serialize};

use super::evidence::is_alone;
use super::limits::{MOST, NEAR, THROTTLED};
use super::observed::Observed;
use super::split::Split;

/// What it is that burns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Nothing.
    Cool,
    /// The key: its partitions cannot take what it asks for.
    Key,
    /// A value of a global index.
    IndexValue,
    /// One item of the key.
    Item,
    /// One page or item that is read again and again.
    RepeatedPage,
    /// A partition that the key shares with other keys, each below the ceiling.
    SharedPartition,
    /// One shard, or some, that lie beside another hot key or beside each other, while the others
    /// are cool.
    CrowdedShard,
    /// A key that asks for little, on a partition that another key fills.
    Neighbour,
    /// No partition, but the table's or the account's limit.
    Limit,
}

/// Below this share of what its partition is asked for, a key is not what fills it.
const SMALL: f64 = 0.25;

impl Finding {
    /// Of what was seen.
    pub(crate) fn of(seen: &Observed) -> Self {
        if !seen.is_hot() {
            return Finding::Cool;
        }
        let (writes, reads) = seen.filled();
        if seen.by_index >= THROTTLED && writes < 1.0 && !seen.is_refused_by_partition() {
            return Finding::IndexValue;
        }
        if seen.crowded > 0 {
            return Finding::CrowdedShard;
        }
        if writes < NEAR && seen.same_page >= MOST && reads >= NEAR {
            return Finding::RepeatedPage;
        }
        let own = if writes >= reads { seen.asked_writes() } else { seen.asked_reads() };
        if seen.beside > 0.0 && !is_alone(own, own + seen.beside) {
            let is_small = own < SMALL * (own + seen.beside);
            return if is_small { Finding::Neighbour } else { Finding::SharedPartition };
        }
        // No partition says that it refuses, and each shard is below its ceiling.
        if writes.max(reads) < 1.0 && seen.throttled >= THROTTLED && !seen.is_refused_by_partition() {
            return Finding::Limit;
        }
        if matches!(Split::of(seen), Split::OneItem | Split::NoSortKey) {
            return Finding::Item;
        }
        if seen.of_index { Finding::IndexValue } else { Finding::Key }
    }

    /// Its name in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Finding::Cool => "cool",
            Finding::Key => "key",
            Finding::IndexValue => "index-value",
            Finding::Item => "item",
            Finding::RepeatedPage => "repeated-page",
            Finding::SharedPartition => "shared-partition",
            Finding::CrowdedShard => "crowded-shard",
            Finding::Neighbour => "neighbour",
            Finding::Limit => "limit",
        }
    }
}
