//! Which keys are hot now: counts the capacity units of each partition key that requests ask for,
//! and tells the hottest ones.
//!
//! Traffic is counted in parts: reads and writes of each table and index. A part has [`COUNTERS`]
//! counters, however many keys there are ([`space_saving`]), in windows of a second: one is counted
//! in, the one before it is told. Rates are by the measured length of a window.
//!
//! Sans-IO: accesses and the time in, rates out. Not here: which keys a request has and what it
//! costs (`gateway`), rates over hours (`history`), what to do about a key.

mod access;
mod bounds;
mod clients;
mod key;
mod part;
mod refusals;
mod report;
mod shards;
mod signs;
mod sorts;
mod space_saving;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;

pub use access::{Access, Kind, Outcome};
pub use bounds::Drawn;
pub use clients::CLIENTS;
pub use key::{Key, ShownKey};
pub use part::PartName;
pub use refusals::{Refusals, RefusedRates};
pub use report::{ClientHeat, KeyHeat, PartHeat, ShardHeat};
pub use shards::SHARDS;
pub use signs::Signs;

use key::Room;
use part::Part;
use shards::{ShardCount, ShardCounts};

/// Counters of a part in a window. A key is found if it has more than a thousandth of the part's
/// units, ten times below the one percent from which a key matters: a partition takes 1,000 write
/// units a second, and what is less than a hundredth of a part is hot only where the part takes
/// 100,000.
pub const COUNTERS: usize = 1_000;
/// The least length of a window, in milliseconds: over a second DynamoDB's own limits hold.
pub const WINDOW: u64 = 1_000;
/// The most parts that are counted apart. What is beyond them is counted together.
pub const PARTS: usize = 512;
/// The most bytes that counters, keys and clients take, beyond the first few counters of every part
/// (3 MB if there are as many parts as there may be).
pub const BYTES: usize = 9 << 20;

/// A part of a [`Detector`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartId(usize);

/// Counts accesses. The time that it is given is in milliseconds, of any clock that does not go
/// back.
#[derive(Debug)]
pub struct Detector {
    /// The first two take what is beyond [`PARTS`].
    parts: Vec<Part>,
    hash: FixedState,
    room: Room,
    shards: ShardCounts,
    /// The number of the window that is counted in, and when it began.
    number: u64,
    began: u64,
    /// How long the window before it took, in milliseconds.
    frozen: u64,
    /// How many accesses one stands for that is drawn in the window that is counted in, and in the
    /// one before it, at most.
    weights: [u32; 2],
    counters: usize,
    bytes: usize,
}

impl Detector {
    /// A detector that has counted nothing. `seed` decides the hashes of keys: clients must not
    /// know it.
    pub fn new(seed: u64, now: u64) -> Self {
        Detector::with(seed, now, COUNTERS, BYTES)
    }

    /// The same with other bounds.
    pub fn with(seed: u64, now: u64, counters: usize, bytes: usize) -> Self {
        let other = |kind| Part::new(PartName { table: None, index: None, kind }, counters);
        Detector {
            parts: vec![other(Kind::Read), other(Kind::Write)],
            hash: FixedState::with_seed(seed),
            room: Room(bytes),
            shards: ShardCounts::default(),
            number: 2,
            began: now,
            frozen: 0,
            weights: [1, 1],
            counters,
            bytes,
        }
    }

    /// The part of that name; from [`PARTS`] on one that is shared by all further ones. Parts are
    /// few, and looked for one after another: keep the id.
    pub fn part(&mut self, table: &Arc<str>, index: Option<&Arc<str>>, kind: Kind) -> PartId {
        let name = PartName { table: Some(Arc::clone(table)), index: index.cloned(), kind };
        let known = self.parts.iter().position(|part| part.name == name);
        PartId(known.unwrap_or_else(|| match self.parts.len() {
            PARTS.. => usize::from(kind == Kind::Write),
            next => {
                self.parts.push(Part::new(name, self.counters));
                next
            }
        }))
    }

    /// What a part is of.
    pub fn name(&self, part: PartId) -> Option<&PartName> {
        self.parts.get(part.0).map(|part| &part.name)
    }

    /// Counts one access. Gives the signs of the key where this access is to be examined: one of
    /// several.
    #[inline]
    pub fn count(&mut self, now: u64, part: PartId, access: &Access<'_>) -> Option<&mut Signs> {
        self.advance(now);
        self.draws(access.weight);
        let hash = access.key.map_or(0, |key| self.hash(key.text));
        self.parts.get_mut(part.0)?.count(self.number, access, hash, &mut self.room)
    }

    /// From now on one that is counted stands for so many, at most: what is not seen until the
    /// window ends may be as much.
    #[inline]
    pub fn draws(&mut self, weight: u32) {
        self.weights[0] = self.weights[0].max(weight);
    }

    /// The slots of these keys, each in the order of its shards, are measured from the next window
    /// on: as many as [`SHARDS`] has room for, the first ones first.
    pub fn measure_shards<'a>(
        &mut self,
        keys: impl IntoIterator<Item = (&'a PartName, &'a ShownKey, Vec<u16>)>,
    ) {
        let (parts, hash) = (&self.parts, &self.hash);
        let place = |(name, key, slots): (&PartName, &ShownKey, Vec<u16>)| {
            let part = parts.iter().position(|part| part.name == *name)?;
            Some(((part, hash_of(hash, key.text.as_bytes())), slots))
        };
        self.shards.measure(self.number, keys.into_iter().filter_map(place));
    }

    /// Whether the shards of any key are measured.
    pub fn measures_shards(&self) -> bool {
        !self.shards.is_empty()
    }

    /// Counts what a physical request asks of one slot of a logical key, where that is measured. It
    /// counts for nothing else.
    pub fn count_shard(&mut self, now: u64, part: PartId, slot: u16, access: &Access<'_>) {
        self.advance(now);
        let Some(key) = access.key else { return };
        let requests = u64::from(access.weight);
        let refused = u64::from(access.outcome != Outcome::Done);
        let place = (part.0, self.hash(key.text));
        let more = ShardCount {
            slot,
            units: access.units * requests,
            requests,
            throttled: refused * requests,
            counted: (1, refused),
        };
        self.shards.add(self.number, place, more);
    }

    /// The hash by which keys and pages are told apart.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        hash_of(&self.hash, bytes)
    }

    /// Ends the window if it is due. A window in which nobody called for long is as long as it
    /// took.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        if now.saturating_sub(self.began) >= WINDOW {
            self.turn(now);
        }
    }

    #[cold]
    fn turn(&mut self, now: u64) {
        self.frozen = now - self.began;
        self.began = now;
        self.number += 1;
        self.weights = [1, self.weights[0]];
        if self.room.0 < self.bytes / 4 {
            let frozen = self.number - 1;
            self.parts.iter_mut().for_each(|part| part.drop_before(frozen, &mut self.room));
        }
    }

    /// The length of the last window that ended, in milliseconds; 0 before one has.
    pub fn window(&self) -> u64 {
        self.frozen
    }

    /// When the window ends that is counted in.
    pub fn ends(&self) -> u64 {
        self.began + WINDOW
    }

    /// The number of the window that is counted in: another one means that there is a new last
    /// window.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The parts of the last window that ended, with at most `keys` keys each. Parts without
    /// traffic are left out.
    pub fn heat(&self, keys: usize) -> Vec<PartHeat> {
        let parts = self.parts.iter().enumerate();
        let shards = |at: usize| move |hash: u64| self.shards.of(self.number - 1, (at, hash));
        parts
            .filter_map(|(at, part)| {
                let window = (self.number - 1, self.frozen, self.weights[1]);
                PartHeat::of(part, window, keys, shards(at))
            })
            .collect()
    }

    /// The bytes that counters, keys and clients take, beyond the first few counters of every part.
    pub fn bytes(&self) -> usize {
        self.bytes - self.room.0
    }
}

#[inline]
fn hash_of(hash: &FixedState, bytes: &[u8]) -> u64 {
    let mut hasher = hash.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
