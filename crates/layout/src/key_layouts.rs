//! The layouts on record for single logical keys of one table. They precede the table's rules.
//!
//! In a table without layouts of its own, keys stay as clients send them, and only the shards of recorded keys have the reserved form: `K#~i` is
//! shard i of K if K is on record with more than i shards, at any time. Every other key of that form is the client's.
//!
//! Not here: where these layouts are recorded (`control`), and how a physical key is written and read ([`Table`](crate::Table)).

use std::collections::HashMap;

use xxhash_rust::xxh3::Xxh3;

use crate::{InForce, codec};

/// One logical key on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedKey {
    /// What is in force.
    pub in_force: InForce,
    /// Shards from 1 up to this number, exclusive, are this key's and nobody else's: the most shards that it ever had.
    pub reserved: u16,
}

/// The layouts of the recorded keys of one table. Immutable, and shared by all requests of one version.
#[derive(Debug, Default)]
pub struct KeyLayouts {
    version: u64,
    digest: u64,
    moving: usize,
    by_key: HashMap<Box<[u8]>, RecordedKey>,
}

impl KeyLayouts {
    /// The layouts of these keys, read when the table's record had that version of them; not 0.
    pub fn new(version: u64, keys: impl IntoIterator<Item = (Vec<u8>, RecordedKey)>) -> Self {
        let by_key: HashMap<Box<[u8]>, RecordedKey> =
            keys.into_iter().map(|(key, of)| (key.into_boxed_slice(), of)).collect();
        let mut sorted: Vec<_> = by_key.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let mut digest = Xxh3::new();
        for (key, of) in sorted {
            digest.update(&key.len().to_be_bytes());
            digest.update(key);
            let (layout, moves) = match &of.in_force {
                InForce::Stable(layout) => (layout, None),
                InForce::Moving(moving) => (&moving.from, Some((&*moving.to, moving.phase))),
            };
            digest.update(&serde_json::to_vec(&(&**layout, moves)).unwrap_or_default());
            digest.update(&of.reserved.to_be_bytes());
        }
        let moving = by_key.values().filter(|of| matches!(of.in_force, InForce::Moving(_))).count();
        KeyLayouts { version, digest: digest.digest(), moving, by_key }
    }

    /// The version that the table's record had; 0 for a table that never had a recorded key.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A digest of all of them: another one where a key lies elsewhere.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// How many keys are on record.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether no key is on record.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether a key moves.
    pub fn any_moves(&self) -> bool {
        self.moving > 0
    }

    /// What is on record for a logical key.
    pub fn get(&self, key: &[u8]) -> Option<&RecordedKey> {
        self.by_key.get(key)
    }

    /// The recorded keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &RecordedKey)> {
        self.by_key.iter().map(|(key, of)| (&**key, of))
    }

    /// Reads a key as a shard of a recorded one: the recorded key, a part of it, and the shard, at least 1. `None` for a client's key.
    pub fn shard<'a>(&self, key: &'a [u8]) -> Option<(&'a [u8], u16)> {
        if self.by_key.is_empty() {
            return None;
        }
        let (logical, shard) = codec::split_shard(key)?;
        (shard < self.get(logical)?.reserved).then_some((logical, shard))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Layout;

    fn recorded(reserved: u16) -> RecordedKey {
        RecordedKey { in_force: InForce::Stable(Arc::new(Layout::none())), reserved }
    }

    #[test]
    fn only_shards_of_recorded_keys_are_shards() {
        let keys = [("hot", 4), ("hot#~7", 3), ("whole", 1)];
        let keys = keys.map(|(key, reserved)| (key.as_bytes().to_vec(), recorded(reserved)));
        let layouts = KeyLayouts::new(1, keys);
        let shard = |key: &'static str| layouts.shard(key.as_bytes());
        assert_eq!(shard("hot#~3"), Some((&b"hot"[..], 3)));
        assert_eq!(shard("hot#~7#~2"), Some((&b"hot#~7"[..], 2)));
        for own in
            ["hot", "hot#~0", "hot#~4", "hot#~7", "hot#~03", "cold#~1", "whole#~1", "hot#~99999", "#~1"]
        {
            assert_eq!(shard(own), None, "{own}");
        }
    }
}
