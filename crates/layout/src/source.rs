//! Where the router learns how a key is laid out. Implemented by `control` over the registry, and
//! by tests.

use std::sync::Arc;

use crate::{InForce, Table};

/// The key of the tag by which a recorded table names its registry. Clients never see it.
pub const REGISTRY_TAG: &str = "heatsink.registry";

/// How reads of a logical key are gathered. From the rules, never on record: what is stored does
/// not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Whether its shards are seen as they were at one moment.
    pub consistency: Consistency,
    /// Whether a Query is answered, and marked so, without a shard that cannot be read.
    pub partial: bool,
}

/// What a Query over several shards shows of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Each shard as it was when it was read.
    #[default]
    Shard,
    /// All shards as they were at one moment: twice the reads, all of them consistent.
    Strong,
}

/// Answers, for every key that the router meets, which layout holds. Cheap: it is asked on every
/// request.
pub trait LayoutSource: Send + Sync {
    /// A table that is on record as sharded; `None` for a table without a record, whose requests go
    /// on byte for byte.
    fn table(&self, name: &str) -> Option<Arc<Table>>;

    /// What is in force for one logical partition key of a recorded table. `key` holds the key's
    /// bytes: UTF-8 for a string, raw for binary. Keys that no rule names get [`Layout::none`]:
    /// they stay whole, but are escaped like the rest.
    fn in_force(&self, table: &Table, key: &[u8]) -> InForce;

    /// How reads of one logical partition key are gathered.
    fn reads(&self, _table: &Table, _key: &[u8]) -> Reads {
        Reads::default()
    }

    /// Whether the layouts of a recorded table have been the ones in force for so long that every
    /// position which comes back was given out under them, also one that does not say so.
    fn has_rested(&self, _table: &Table) -> bool {
        true
    }

    /// The same source, to be kept by a plan that is made again once something was looked for.
    fn handle(&self) -> Arc<dyn LayoutSource>;
}
