//! A place in a walk over the old copies of a key: shard by shard, in each by sort key.

use serde_json::Value as Json;

use crate::key::Sort;

/// How far a walk has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// The shard of the old layout.
    pub shard: u16,
    pub within: Within,
}

/// How far it has come within a shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Within {
    /// Up to this sort key.
    Upto(Sort),
    /// To its end.
    End,
}

/// An item that moves, and where a walk goes on behind its page.
#[derive(Clone, Debug)]
pub(crate) struct Old {
    pub item: Json,
    /// The physical keys.
    pub from: Json,
    pub to: Json,
}
