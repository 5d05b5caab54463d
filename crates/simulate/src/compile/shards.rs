//! Numbers of shards, and which one an item has.

use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};

/// The shard of an item whose sort key is `score#part`: Heatsink's own hash of its own part.
pub(super) fn shard_of_part(part: &str, shards: u64) -> u16 {
    let by = By::Part { separator: "#".to_owned(), part: 1 };
    let layout = Layout {
        strategy: Strategy::calculated(by),
        shards: u16::try_from(shards).unwrap_or(u16::MAX),
        hash: Hash::JumpXxh3,
        version: 1,
    };
    layout.shard_of(Some(SortKey::S(&format!("0#{part}"))))
}

pub(super) fn narrow(shards: u64) -> usize {
    usize::try_from(shards).unwrap_or(usize::MAX)
}
