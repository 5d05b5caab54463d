//! Key positions: the hash of a partition key, then the sort key. A split point is a key position
//! too.

use serde::{Deserialize, Serialize};

/// The part of a sort key that matters to partitions: its first 32 bytes, in the order of sort
/// keys. Keys that agree in their first 32 bytes stay in one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SortKey([u64; 4]);

impl SortKey {
    /// Before all others; also of a table without sort key.
    pub const MIN: SortKey = SortKey([0; 4]);
    /// After all others.
    pub const MAX: SortKey = SortKey([u64::MAX; 4]);

    /// Of a string (its UTF-8) or a binary: DynamoDB compares bytes, unsigned.
    pub fn bytes(bytes: &[u8]) -> SortKey {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_be_bytes(eight);
        }
        SortKey(words)
    }

    /// Of a whole number: smaller numbers first.
    pub const fn ordinal(number: u64) -> SortKey {
        SortKey([number, 0, 0, 0])
    }

    /// Of a number as a float: smaller ones first. Numbers that are one float are one sort key
    /// here.
    pub fn number(number: f64) -> SortKey {
        let bits = number.to_bits();
        let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        SortKey::ordinal(ordered)
    }

    /// About half way to `other`.
    pub(crate) fn middle(self, other: SortKey) -> SortKey {
        let mut words = [0; 4];
        let mut carry = 0u128;
        for (word, (a, b)) in words.iter_mut().zip(self.0.into_iter().zip(other.0)) {
            let sum = u128::from(a) + u128::from(b) + (carry << 64);
            *word = u64::try_from((sum >> 1) & u128::from(u64::MAX)).unwrap_or(u64::MAX);
            carry = sum & 1;
        }
        SortKey(words)
    }

    /// The bytes, as far as they can be shown: printable ASCII up to the first other byte.
    pub fn shown(self) -> String {
        let bytes = self.0.into_iter().flat_map(u64::to_be_bytes);
        bytes.take_while(|byte| (0x20..0x7f).contains(byte)).map(char::from).collect()
    }
}

/// The position of a key among all items of a table or index. Ordered by the hash, then by the sort
/// key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyPosition {
    /// [`crate::position`] of the partition key.
    pub position: u64,
    /// The sort key.
    pub sort: SortKey,
}

impl KeyPosition {
    /// Before all others.
    pub const MIN: KeyPosition = KeyPosition { position: 0, sort: SortKey::MIN };

    /// The first position of an item collection; the only one, in a table without sort key.
    pub const fn first(position: u64) -> KeyPosition {
        KeyPosition { position, sort: SortKey::MIN }
    }

    /// A position in an item collection.
    pub const fn new(position: u64, sort: SortKey) -> KeyPosition {
        KeyPosition { position, sort }
    }
}

/// The key range, and so the partitions, of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyRange {
    /// The partition that holds this point: an item, or where a `Query` starts.
    At(KeyPosition),
    /// A range of one item collection: a `Query`. All partitions that hold a part of it share the
    /// demand equally. It is throttled when any of them is at its ceiling.
    Stretch {
        /// [`crate::position`] of the partition key.
        position: u64,
        /// First sort key.
        from: SortKey,
        /// Last sort key, inclusive.
        to: SortKey,
    },
    /// All keys: a `Scan`. All partitions share the demand equally. It is throttled when any of
    /// them is at its ceiling.
    All,
    /// Unknown: only the table's or index's own bucket is checked and charged.
    Unknown,
}

impl KeyRange {
    /// The first position of the item collection with this [`crate::position`]; for tables without
    /// sort key.
    pub const fn key(position: u64) -> KeyRange {
        KeyRange::At(KeyPosition::first(position))
    }

    /// All of an item collection.
    pub const fn collection(position: u64) -> KeyRange {
        KeyRange::Stretch { position, from: SortKey::MIN, to: SortKey::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_keys_keep_their_order() {
        let mut texts = ["", "a", "a#1", "a#10", "b", "2026-11-20T10:00:00.001Z", "2026-11-20T10:00:00.002Z"];
        texts.sort_unstable();
        assert!(
            texts.windows(2).all(|two| SortKey::bytes(two[0].as_bytes()) < SortKey::bytes(two[1].as_bytes()))
        );
        let numbers = [f64::MIN, -7.5, -1.0, 0.0, 1e-9, 3.0, 1e20];
        assert!(numbers.windows(2).all(|two| SortKey::number(two[0]) < SortKey::number(two[1])));
    }

    #[test]
    fn the_middle_lies_between() {
        assert_eq!(SortKey::ordinal(10).middle(SortKey::ordinal(20)), SortKey::ordinal(15));
        let (a, b) = (SortKey::bytes(b"a"), SortKey::bytes(b"b"));
        assert!(a < a.middle(b) && a.middle(b) < b);
        assert!(SortKey::MIN < SortKey::MIN.middle(SortKey::MAX));
        assert_eq!(SortKey::bytes(b"ab\xff").shown(), "ab");
    }
}
