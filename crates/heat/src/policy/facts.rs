//! What the policy has to know beside the loads: how keys are laid out, what may be done to them,
//! and where slots lie.
//!
//! Not here: where the facts come from (`heatsink-workers`).

use heatsink_layout::SplitPoints;

use super::reason::Reason;
use super::settings::Settings;
use crate::KeyLoad;

/// Tells what is known of keys and tables.
pub trait Facts {
    /// What is known of the key, or of the value of an index, that has that load.
    fn key(&self, load: &KeyLoad) -> KeyFacts;

    /// The partitions of a table or of a global index. `None` where the store does not tell, as
    /// DynamoDB does not.
    fn partitions(&self, _table: &str, _index: Option<&str>) -> Option<&dyn Partitions> {
        None
    }
}

/// What is known of one key, or of one value of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFacts {
    /// What is allowed.
    pub settings: Settings,
    /// Why nothing may be done to it; `None` where something may.
    pub barred: Option<Reason>,
    /// The slot of each shard; `[0]` of a whole key.
    pub slots: Vec<u16>,
    /// Where its ranges begin, if its shards are ranges of the sort key.
    pub split_points: Option<SplitPoints>,
    /// Whether slots can be named in its layout. Values of indexes and counters have the first ones.
    pub names_slots: bool,
    /// Whether the table has a sort key.
    pub sort_key: bool,
    /// Whether the table has a local index.
    pub local_index: bool,
    /// The key's items, where known.
    pub items: Option<u64>,
}

impl KeyFacts {
    /// A whole key of a table with a sort key, of which no more is known.
    pub fn whole(settings: Settings) -> Self {
        KeyFacts {
            settings,
            barred: None,
            slots: vec![0],
            split_points: None,
            names_slots: true,
            sort_key: true,
            local_index: false,
            items: None,
        }
    }
}

/// The partitions of one table or index, numbered from 0 on.
pub trait Partitions {
    /// How many there are.
    fn count(&self) -> usize;

    /// The partition under which a slot of a logical key lies. A key whose items are parted by
    /// sort key lies under the first of its partitions.
    fn of(&self, key: &[u8], slot: u16) -> usize;

    /// What the partition was asked for in the last seconds, what it refused included.
    fn load(&self, partition: usize) -> Units;
}

/// Capacity units a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// Write units.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
}
