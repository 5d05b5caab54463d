//! The slot of an item, from its sort key.
//!
//! Equal sort keys must meet in one shard however they were written: they are hashed in their
//! canonical form (`sort_key`).

use std::borrow::Cow;

use crate::{Bucket, By, Digest, Hash, Layout, Slot, SortKey, Strategy, Unplaced, hash};

impl Layout {
    /// The number of the slot in which the item with that sort key lies, within its bucket if there
    /// are buckets. `None` is a table without a sort key, whose one item per key lies in its first
    /// shard. For layouts whose shard follows from the primary key; others are asked by
    /// [`slot_of`](Self::slot_of).
    pub fn shard_of(&self, sort: Option<SortKey<'_>>) -> u16 {
        self.slot_of(sort).map_or(0, |slot| slot.shard)
    }

    /// The slot in which the item with that sort key lies.
    ///
    /// # Errors
    /// [`Unplaced`] where it does not follow from the primary key, or the sort key cannot be an
    /// item's.
    pub fn slot_of(&self, sort: Option<SortKey<'_>>) -> Result<Slot, Unplaced> {
        if !self.follows_from_key() {
            return Err(Unplaced::NotFromKey);
        }
        self.hashed_slot(sort)
    }

    /// The slot into which an item that is nowhere yet is put. Of externally assigned shards all
    /// gateways choose the same one, so that a write that is sent again, and two that meet, concern
    /// one item.
    ///
    /// # Errors
    /// [`Unplaced`] for a sort key that cannot be an item's.
    pub fn hashed_slot(&self, sort: Option<SortKey<'_>>) -> Result<Slot, Unplaced> {
        let by = match &self.strategy {
            Strategy::None | Strategy::Counter { .. } => return Ok(Slot::default()),
            Strategy::Range { split_points, .. } => {
                let range = sort.map_or(0, |sort| sort.range_in(split_points));
                return Ok(Slot::shard(self.slot_number(range)));
            }
            Strategy::Calculated { by, .. } | Strategy::Bucket { by, .. } | Strategy::Template { by, .. } => {
                by
            }
        };
        let bucket = self.bucket_of(sort)?;
        if matches!(self.strategy, Strategy::Bucket { .. }) && bucket.is_none() {
            return Ok(Slot::default());
        }
        let shards = bucket.map_or(self.shards, |bucket| self.shards_in(bucket));
        let shard = match sort {
            None => 0,
            Some(sort) => self.shard(by, sort, shards)?,
        };
        Ok(Slot { bucket, shard: self.slot_number(shard) })
    }

    /// The slots in which the item with that sort key can lie.
    ///
    /// # Errors
    /// [`Unplaced`] for a sort key that cannot be an item's.
    pub fn slots_of(&self, sort: Option<SortKey<'_>>) -> Result<Vec<Slot>, Unplaced> {
        if self.follows_from_key() {
            return self.slot_of(sort).map(|slot| vec![slot]);
        }
        let bucket = self.bucket_of(sort)?;
        Ok((0..self.shards).map(|shard| Slot { bucket, shard }).collect())
    }

    fn bucket_of(&self, sort: Option<SortKey<'_>>) -> Result<Option<Bucket>, Unplaced> {
        let Some(time) = self.time() else { return Ok(None) };
        match (sort.and_then(|sort| time.bucket_of(sort)), &self.strategy) {
            (None, Strategy::Template { .. }) => {
                Err(Unplaced::NoTime(sort.map_or_else(String::new, |sort| sort.to_string())))
            }
            (bucket, _) => Ok(bucket),
        }
    }

    fn shard(&self, by: &By, from: SortKey<'_>, shards: u16) -> Result<u16, Unplaced> {
        let part = match (by, from) {
            (By::Part { separator, part }, SortKey::S(text)) => text.split(separator.as_str()).nth(*part),
            _ => None,
        };
        if matches!(self.hash, Hash::JumpXxh3 | Hash::Random) {
            let canonical = from.canonical();
            return Ok(hash::jump_xxh3(part.map_or(&*canonical, str::as_bytes), shards));
        }
        let plain = match part {
            Some(part) => Cow::Borrowed(part.as_bytes()),
            None => from.plain(),
        };
        let text = || std::str::from_utf8(&plain).map_err(|_| Unplaced::NoText);
        Ok(match self.hash {
            Hash::Sha1 => hash::digest(Digest::Sha1, 0, &plain, shards),
            Hash::Slice { digest, digits } => hash::digest(digest, digits, &plain, shards),
            Hash::Crc32 => hash::crc32(&plain, shards),
            Hash::Java => hash::java(text()?, shards),
            Hash::JavaAbs => hash::java_abs(text()?, shards),
            Hash::JavaMask => hash::java_mask(text()?, shards),
            Hash::JavaObjects => hash::java_objects(text()?, shards),
            Hash::Md5 => hash::md5(&plain, shards),
            Hash::Sha256 => hash::sha256(&plain, shards),
            Hash::Fnv1a32 => hash::fnv1a32(&plain, shards),
            Hash::Fnv1a64 => hash::fnv1a64(&plain, shards),
            Hash::Modulo => hash::modulo(&plain, shards)
                .ok_or_else(|| Unplaced::NoNumber(String::from_utf8_lossy(&plain).into_owned()))?,
            Hash::JumpXxh3 | Hash::Random => 0,
        })
    }
}
