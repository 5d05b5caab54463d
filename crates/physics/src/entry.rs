//! The cost of an item's write in a global index: zero, one or two writes
//! (docs/explain/partitions.md#indexes).

use crate::units::Units;

/// An item's entry in an index, as a write finds it or leaves it. What is not projected is no part
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<Key, Projected> {
    /// The indexed key attributes, all of them; an item that lacks one has no entry.
    pub key: Key,
    /// The projected attributes that are not key, or anything that differs when they do.
    pub projected: Projected,
    /// Bytes of the entry: its keys, the table's keys and the projected attributes.
    pub bytes: u64,
}

/// The effect of an item's write on an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryWrite {
    /// Not in the index before or after, or nothing changed that is projected: no write.
    Nothing,
    /// The entry is new: one write of the new entry.
    Put(Units),
    /// A projected attribute changed: one write, of the larger entry.
    Update(Units),
    /// The entry goes: one write of the old entry.
    Delete(Units),
    /// The key changed: a delete where the old entry lies, and a put where the new one does.
    Move {
        /// Of the old entry.
        delete: Units,
        /// Of the new entry.
        put: Units,
    },
}

impl EntryWrite {
    /// The effect of a write on an index with the entries `before` and `after`.
    pub fn of<Key: PartialEq, Projected: PartialEq>(
        before: Option<&Entry<Key, Projected>>,
        after: Option<&Entry<Key, Projected>>,
    ) -> EntryWrite {
        match (before, after) {
            (None, None) => EntryWrite::Nothing,
            (None, Some(new)) => EntryWrite::Put(kilobytes(new.bytes)),
            (Some(old), None) => EntryWrite::Delete(kilobytes(old.bytes)),
            (Some(old), Some(new)) if old.key != new.key => {
                EntryWrite::Move { delete: kilobytes(old.bytes), put: kilobytes(new.bytes) }
            }
            (Some(old), Some(new)) if old.projected != new.projected => {
                EntryWrite::Update(kilobytes(old.bytes.max(new.bytes)))
            }
            (Some(_), Some(_)) => EntryWrite::Nothing,
        }
    }

    /// Write units in all.
    pub fn units(self) -> Units {
        match self {
            EntryWrite::Nothing => Units::ZERO,
            EntryWrite::Put(units) | EntryWrite::Update(units) | EntryWrite::Delete(units) => units,
            EntryWrite::Move { delete, put } => delete + put,
        }
    }
}

/// Each write is rounded up to 1 KB of the entry.
fn kilobytes(bytes: u64) -> Units {
    Units::whole(bytes.div_ceil(1024).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_developer_guide() {
        let entry = |key: &'static str, projected: &'static str| Entry { key, projected, bytes: 100 };
        let (a, b, changed) = (entry("A", "x"), entry("B", "x"), entry("A", "y"));
        let writes = |before, after| EntryWrite::of(before, after).units();
        assert_eq!(writes(None, Some(&a)), Units::ONE, "gains the key");
        assert_eq!(writes(Some(&a), Some(&b)), Units::whole(2), "its value changes");
        assert_eq!(writes(Some(&a), None), Units::ONE, "loses it");
        assert_eq!(
            writes(None::<&Entry<&str, &str>>, None),
            Units::ZERO,
            "in the index neither before nor after"
        );
        assert_eq!(writes(Some(&a), Some(&changed)), Units::ONE, "projected attributes change");
        assert_eq!(writes(Some(&a), Some(&a)), Units::ZERO, "others change");
        let large = Entry { bytes: 2_500, ..changed };
        assert_eq!(writes(Some(&a), Some(&large)), Units::whole(3), "each write rounded up to 1 KB");
    }
}
