//! Whether DynamoDB's own split of a hot partition can help a key
//! (docs/explain/partitions.md#split-for-heat).

use serde::Serialize;

use super::observed::Observed;

/// From this share of growing sort keys on, a split leaves all new items on one side.
const GROWING: f64 = 0.9;
/// From this share of the load on, a split leaves the load on one side.
const ONE_ITEM: f64 = 0.5;

/// Whether a split helps, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Nothing is in the way: DynamoDB splits the partition between two sort keys, in minutes.
    InMinutes,
    /// The load is one item's.
    OneItem,
    /// Each key is one item.
    NoSortKey,
    /// Sort keys only grow.
    GrowingSortKey,
    /// A local index keeps the items of a key on one partition.
    LocalIndex,
}

impl Split {
    /// Of a key that was seen so.
    pub(crate) fn of(seen: &Observed) -> Self {
        match seen {
            Observed { sort_key: false, .. } => Split::NoSortKey,
            Observed { one_item, .. } if *one_item >= ONE_ITEM => Split::OneItem,
            Observed { local_index: true, .. } => Split::LocalIndex,
            Observed { growing, writes, .. } if *growing >= GROWING && *writes > 0.0 => Split::GrowingSortKey,
            _ => Split::InMinutes,
        }
    }

    /// In words, after a comma.
    pub const fn words(self) -> &'static str {
        match self {
            Split::InMinutes => "and nothing is in the way of DynamoDB's own split, which takes minutes",
            Split::OneItem => "and most of it goes to one item, which DynamoDB cannot split",
            Split::NoSortKey => "and the key is one item, which DynamoDB cannot split",
            Split::GrowingSortKey => {
                "and its sort keys only grow, so DynamoDB does not split it: all new items would lie on one side"
            }
            Split::LocalIndex => "and the table's local index keeps DynamoDB from splitting it",
        }
    }
}
