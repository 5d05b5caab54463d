//! What the policy decides, and what it leaves alone.

use heatsink_env::MonotonicInstant;
use heatsink_layout::SplitPoints;
use serde::Serialize;

use super::reason::Reason;
use crate::advice::{Finding, Observed};
use crate::{ClientShare, KeyLoad};

/// What changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Change {
    /// The shards of a key, or the slots of its shards, or both.
    Shards {
        /// How many.
        shards: u16,
        /// The slot of each shard: numbers below 10,000, each once. `None`: the first ones.
        slots: Option<Vec<u16>>,
    },
    /// The ranges of a key that lies in ranges of its sort key: some are split, or some are merged.
    Ranges {
        /// Where they begin.
        split_at: SplitPoints,
        /// The slot of each.
        slots: Vec<u16>,
    },
    /// The shards of a value of an index.
    IndexValue {
        /// How many.
        shards: u16,
    },
    /// An item that is only added to becomes a counter.
    Counter {
        /// How many.
        shards: u16,
    },
}

impl Change {
    /// Its name in JSON and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Change::Shards { .. } => "shards",
            Change::Ranges { .. } => "ranges",
            Change::IndexValue { .. } => "index-value",
            Change::Counter { .. } => "counter",
        }
    }

    /// How many shards there are then.
    pub fn shards(&self) -> u16 {
        match self {
            Change::Ranges { split_at, .. } => split_at.ranges(),
            Change::Shards { shards, .. } | Change::IndexValue { shards } | Change::Counter { shards } => {
                *shards
            }
        }
    }
}

/// A key of a table, or a value of a global index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName {
    /// The table's name.
    pub table: String,
    /// The index; `None` for a key of the table.
    pub index: Option<String>,
    /// The logical key's bytes, as [`KeyLoad::key`].
    pub key: Vec<u8>,
}

impl KeyName {
    /// Of that load.
    pub fn of(load: &KeyLoad) -> Self {
        KeyName { table: load.table.clone(), index: load.index.clone(), key: load.key.clone() }
    }
}

/// A change that the policy decides for. All decisions of one look for one table are meant to be
/// carried out together.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For what.
    pub name: KeyName,
    /// What changes.
    pub change: Change,
    /// What burns, or [`Finding::Cool`] where shards are taken away.
    pub finding: Finding,
    /// What was seen, what follows from it and what is done, without a full stop.
    pub sentence: String,
    /// The capacity units that the move is expected to take.
    pub units: f64,
    /// What was seen.
    pub seen: Observed,
}

/// A key that burns and is left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftAlone {
    /// What burns.
    pub name: KeyName,
    /// Since when.
    pub since: MonotonicInstant,
    /// What it is that burns.
    pub finding: Finding,
    /// Why nothing is done.
    pub reason: Reason,
    /// What was seen, and why nothing is done, without a full stop.
    pub sentence: String,
    /// The clients that make the most of it, where they are known.
    pub clients: Vec<ClientShare>,
}

/// What follows from one look at all loads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    /// What changes.
    pub decisions: Vec<Decision>,
    /// What burns beside that, in the order of the loads. Each burning key is in one of the lists.
    pub left_alone: Vec<LeftAlone>,
}
