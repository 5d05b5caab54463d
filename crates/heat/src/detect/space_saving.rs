//! Weighted Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and
//! top-k elements in data streams", 2005): the heaviest keys of a stream in a fixed number of
//! counters.
//!
//! A key without a counter takes the smallest one and its count, which is its error. So of a total
//! of N units over K counters every key with more than N/K has a counter, and its true count lies
//! between the count less the error and the count.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::clients::Clients;
use super::key::{Key, Room, StoredKey};
use super::refusals::RefusalCounts;
use super::signs::Signs;

/// The counters that every window has, whatever others take.
pub(super) const FIRST: usize = 16;
/// What a counter takes, in bytes: itself, its places in the heap and in the index.
pub(super) const BYTES: usize = size_of::<Counter>() + size_of::<Place>() + 2 * size_of::<(u64, u32)>();

/// What is counted of one key. All but the count begins with the key's taking of the counter.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) hash: u64,
    /// Thousandths of capacity units, the error included.
    pub(super) units: u64,
    /// The most of them that belong to other keys.
    pub(super) error: u64,
    pub(super) requests: u64,
    /// How many accesses were counted for these: of those that are drawn, one stands for many.
    pub(super) counted: u32,
    /// Of the requests: throttled.
    pub(super) refused: RefusalCounts,
    /// Of these: for pages of items; and their units.
    pub(super) pages: u64,
    pub(super) units_of_pages: u64,
    /// Of the units: those that were drawn or estimated, and their variance in thousandths squared.
    pub(super) drawn: u64,
    pub(super) variance: f64,
    /// The most units of one access.
    pub(super) largest: u64,
    pub(super) signs: Signs,
    pub(super) key: StoredKey,
}

/// A counter in the heap, with the units that it had when it was put there or last looked at: never
/// more than it has now.
#[derive(Clone, Copy, Debug)]
struct Place {
    units: u64,
    slot: u32,
}

/// The counters of one window.
#[derive(Debug)]
pub(super) struct SpaceSaving {
    counters: Vec<Counter>,
    /// By the hash of the key: names are not compared. Two keys of one hash are one key here, once
    /// in 2^64 pairs.
    slots: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    /// The smallest counter is near its root. Empty until one is taken from a key.
    heap: Vec<Place>,
    /// Who takes the units of each counter, its error not counted.
    clients: Clients,
    /// How many counters there is room for.
    granted: usize,
    most: usize,
}

impl SpaceSaving {
    /// At most `most` counters.
    pub(super) fn new(most: usize) -> Self {
        let granted = FIRST.min(most);
        SpaceSaving {
            counters: Vec::new(),
            slots: HashMap::default(),
            heap: Vec::new(),
            clients: Clients::default(),
            granted,
            most,
        }
    }

    /// Adds to the counter of a key, and to its `client` where that is known. `hash`: of its text.
    pub(super) fn add(
        &mut self,
        (key, hash): (Key<'_>, u64),
        units: u64,
        client: Option<&Arc<str>>,
        room: &mut Room,
    ) -> &mut Counter {
        let slot = match self.slots.get(&hash) {
            Some(slot) => *slot as usize,
            None => self.take(key, hash, room),
        };
        if let Some(client) = client {
            self.clients.add(slot, client, units, room);
        }
        let counter = &mut self.counters[slot];
        counter.units += units;
        counter
    }

    /// A counter for a key that has none.
    #[allow(clippy::cast_possible_truncation, reason = "at most a few thousand slots")]
    fn take(&mut self, key: Key<'_>, hash: u64, room: &mut Room) -> usize {
        // Not once a counter was taken from a key: a counter that begins at zero would show too
        // little of a key that had one before.
        if self.counters.len() == self.granted && self.heap.is_empty() {
            let more = self.granted.min(self.most - self.granted);
            if more > 0 && room.take(more * BYTES) {
                self.granted += more;
                self.counters.reserve_exact(more);
            }
        }
        let slot = self.counters.len();
        if slot < self.granted {
            self.counters.push(Counter {
                hash,
                units: 0,
                error: 0,
                requests: 0,
                counted: 0,
                refused: RefusalCounts::default(),
                pages: 0,
                units_of_pages: 0,
                drawn: 0,
                variance: 0.0,
                largest: 0,
                signs: Signs::NONE,
                key: StoredKey::new(key, room),
            });
            self.slots.insert(hash, slot as u32);
            return slot;
        }
        let slot = self.smallest();
        let counter = &mut self.counters[slot];
        self.slots.remove(&counter.hash);
        self.slots.insert(hash, slot as u32);
        counter.hash = hash;
        counter.error = counter.units;
        (counter.requests, counter.counted) = (0, 0);
        counter.refused = RefusalCounts::default();
        (counter.pages, counter.units_of_pages) = (0, 0);
        // What was drawn stays: it is of the error now.
        counter.largest = 0;
        counter.signs = Signs::NONE;
        counter.key.release(room);
        counter.key = StoredKey::new(key, room);
        self.clients.forget(slot);
        slot
    }

    /// The counter with the fewest units. Each place is brought up to date only when it comes to
    /// the root, so a counter that is added to costs nothing.
    #[allow(clippy::cast_possible_truncation, reason = "at most a few thousand slots")]
    fn smallest(&mut self) -> usize {
        if self.heap.is_empty() {
            let places = self.counters.iter().enumerate();
            self.heap.extend(places.map(|(slot, counter)| Place { units: counter.units, slot: slot as u32 }));
            for at in (0..=self.heap.len() / ARITY).rev() {
                sink(&mut self.heap, at);
            }
        }
        loop {
            let root = &mut self.heap[0];
            let now = self.counters[root.slot as usize].units;
            if root.units == now {
                return root.slot as usize;
            }
            root.units = now;
            sink(&mut self.heap, 0);
        }
    }

    /// Forgets all keys. Gives back the room of most counters if few were used.
    pub(super) fn clear(&mut self, room: &mut Room) {
        for counter in &mut self.counters {
            counter.key.release(room);
        }
        let used = self.counters.len();
        self.counters.clear();
        self.slots.clear();
        self.heap.clear();
        self.clients.clear(room);
        if self.granted > FIRST && used * 4 <= self.granted {
            room.give((self.granted - FIRST) * BYTES);
            self.granted = FIRST;
            self.counters.shrink_to(FIRST);
            self.slots.shrink_to(FIRST);
            self.heap.shrink_to(FIRST);
        }
    }

    pub(super) fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The heaviest clients of a key, as [`Clients::of`] tells them. `hash`: of its text.
    pub(super) fn clients(&self, hash: u64) -> Vec<(Arc<str>, u64)> {
        self.slots.get(&hash).map_or_else(Vec::new, |slot| self.clients.of(*slot as usize))
    }

    /// The most thousandths of units that a key without a counter can have: at most the total over
    /// the number of counters.
    pub(super) fn floor(&self) -> u64 {
        if self.counters.len() < self.granted {
            return 0;
        }
        self.counters.iter().map(|counter| counter.units).min().unwrap_or_default()
    }
}

/// Children of a place in the heap: four lie in one cache line, so the heap is half as deep as a
/// binary one.
const ARITY: usize = 4;

/// Moves the place at `at` down to where no child is smaller.
fn sink(heap: &mut [Place], mut at: usize) {
    let Some(&moved) = heap.get(at) else { return };
    loop {
        let first = at * ARITY + 1;
        let mut least: Option<(usize, Place)> = None;
        for (child, place) in heap.iter().enumerate().skip(first).take(ARITY) {
            if least.is_none_or(|(_, least)| place.units < least.units) {
                least = Some((child, *place));
            }
        }
        match least {
            Some((child, place)) if place.units < moved.units => {
                heap[at] = place;
                at = child;
            }
            _ => break,
        }
    }
    heap[at] = moved;
}

/// The keys of the index are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
