//! A former number of shards of a key's buckets.

use serde::{Deserialize, Serialize};

use crate::Bucket;

/// A former number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Buckets before this one have it, down to the step before.
    pub before: Bucket,
    /// How many shards each of them has.
    pub shards: u16,
}
