//! A table that gets other layouts for all its keys, while clients use it. All keys that have items
//! are put on record as they lie; then the layouts of the table change for those that have none. So
//! that none of these has an item by then, a first write of such a key enters the key before it is
//! sent. Keys on record are moved afterwards, one by one.
//!
//! Not here: what a request does in each phase (`heatsink_reshard::unrecorded`), the phases' order
//! (`heatsink_reshard::TableCoordinator`), where entered keys stand (`route`, `control`).

use heatsink_dynamo::{KeyType, TableSchema};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::{TableLayouts, codec, number_codec};

/// How far the change of a table's layouts has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TablePhase {
    /// Keys without a record lie as ever, and are entered before they are written. All that have
    /// items are put on record.
    Enter,
    /// The same, planned under short leases.
    Prepare,
    /// Writes of keys that have no record wait.
    Hold,
    /// They wait, and the new layouts hold for such keys, of which none has an item.
    Turn,
    /// The new layouts hold. Keys on record that lie as before are moved.
    Rest,
}

impl TablePhase {
    /// Whether requests on the table are planned under short leases: until the next phase writes
    /// wait, or will.
    pub fn shortens_leases(self) -> bool {
        matches!(self, TablePhase::Prepare | TablePhase::Hold | TablePhase::Turn)
    }

    /// Whether the layouts that the change leads to hold for keys without a record.
    pub fn has_turned(self) -> bool {
        self >= TablePhase::Turn
    }
}

/// A table's change, as requests see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changing {
    /// How far it has come.
    pub phase: TablePhase,
    /// Which change it is: keys that were entered for another one count for nothing.
    pub run: u64,
    escapes: Option<Escapes>,
}

/// Which keys have another physical key before the change than after it, though they have one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    Strings,
    Numbers,
}

impl Changing {
    /// The change of a table of that schema between those layouts of its own keys and these.
    pub fn new(
        phase: TablePhase,
        run: u64,
        schema: &TableSchema,
        from: &TableLayouts,
        to: &TableLayouts,
    ) -> Self {
        let has_own = |layouts: &TableLayouts| layouts.iter().any(|one| one.index().is_none());
        let escapes = (has_own(from) != has_own(to)).then_some(match schema.key.partition.key_type {
            KeyType::N => Escapes::Numbers,
            KeyType::S | KeyType::B => Escapes::Strings,
        });
        Changing { phase, run, escapes }
    }

    /// Whether a logical key is written like a shard, and so is another physical key with rules than
    /// without them.
    pub fn rewrites(&self, key: &[u8]) -> bool {
        match self.escapes {
            Some(Escapes::Strings) => codec::is_reserved(key),
            Some(Escapes::Numbers) => number_codec::split_shard(key).is_some(),
            None => false,
        }
    }
}

/// Over how many keys of the directory the entered keys of one change are spread: each takes a
/// thousand first writes a second.
pub const ENTERED_PARTS: u128 = 16;

/// Where a key that was entered stands in the [directory](crate::DIRECTORY): its `pk` and `sk`. Two
/// keys share a place as seldom as two hashes of 128 bits are the same.
pub fn entered_place(table_id: &str, run: u64, key: &[u8]) -> (String, String) {
    let hash = xxh3_128(key);
    (entered_part(table_id, run, hash % ENTERED_PARTS), format!("{hash:032x}"))
}

/// The `pk` of one part of the keys that were entered for a change.
pub fn entered_part(table_id: &str, run: u64, part: u128) -> String {
    format!("entered#{table_id}#{run:016x}#{part:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_go_one_way() {
        use TablePhase::{Enter, Hold, Prepare, Rest, Turn};
        let all = [Enter, Prepare, Hold, Turn, Rest];
        assert!(all.is_sorted());
        assert_eq!(all.map(TablePhase::has_turned), [false, false, false, true, true]);
        assert_eq!(all.map(TablePhase::shortens_leases), [false, true, true, true, false]);
    }

    #[test]
    fn a_key_is_entered_in_one_place_for_each_change() {
        let place = entered_place("id", 7, b"key");
        assert_eq!(place, entered_place("id", 7, b"key"));
        assert_ne!(place.0, entered_place("id", 8, b"key").0);
        assert!((0..ENTERED_PARTS).any(|part| entered_part("id", 7, part) == place.0));
    }
}
