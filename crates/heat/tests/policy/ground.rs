//! The store: a table and its index, their partitions, and where the shards of each key lie.
//!
//! Not here: what is asked (`scene`), when layouts change (`world`).

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::KeyValue;
use heatsink_heat::policy::{Partitions, Units as Rates};
use heatsink_layout::{SplitPoints, encode, hash::jump_xxh3};
use heatsink_physics::{
    Access, Cause, Demand, KeyRange, Mode, PartitionSnapshot, ResourceId, Rules, Tables, Units, position,
};

use crate::gateway::{INDEX, TABLE};

pub struct Ground {
    tables: Tables,
    /// The table, and its index.
    on: [ResourceId; 2],
    /// The first position of each partition, of the table and of the index.
    pub firsts: [Vec<u64>; 2],
    positions: HashMap<(String, u16), u64>,
}

/// How a key's items lie: shard by shard the slot. While it moves, both ways.
#[derive(Clone, Debug)]
pub struct Lies {
    pub slots: Vec<u16>,
    /// Where its ranges begin, if its shards are that.
    pub points: Option<SplitPoints>,
    pub moves: Option<Move>,
}

/// A move: writes go to the new slots from `cut_over` on, and items are moved evenly until `ends`.
/// Nanoseconds.
#[derive(Clone, Debug)]
pub struct Move {
    pub to: Vec<u16>,
    pub points: Option<SplitPoints>,
    pub cut_over: u64,
    pub ends: u64,
}

impl Lies {
    pub fn whole() -> Self {
        Lies { slots: vec![0], points: None, moves: None }
    }

    /// The slot that a write of an item goes to.
    pub fn writes(&self, now: u64, sort: &[u8]) -> u16 {
        match &self.moves {
            Some(moves) if now >= moves.cut_over => of(&moves.to, moves.points.as_ref(), sort),
            _ => of(&self.slots, self.points.as_ref(), sort),
        }
    }

    /// The slots that are written to: those are measured, as at a gateway.
    pub fn written(&self, now: u64) -> &[u16] {
        self.moves.as_ref().filter(|moves| now >= moves.cut_over).map_or(&self.slots, |moves| &moves.to)
    }

    /// The slot that has an item.
    pub fn has(&self, now: u64, sort: &[u8]) -> u16 {
        match &self.moves {
            Some(moves) if self.moved(now) > f64::from(jump_xxh3(sort, 1_000)) / 1_000.0 => {
                of(&moves.to, moves.points.as_ref(), sort)
            }
            _ => of(&self.slots, self.points.as_ref(), sort),
        }
    }

    /// The slots that a Query of a page reads which begins at an item, and which share of the page
    /// each has.
    pub fn shares(&self, now: u64, sort: &[u8]) -> Vec<(u16, f64)> {
        let moved = self.moved(now);
        let mut shares = pages(&self.slots, self.points.as_ref(), sort, 1.0 - moved);
        if let Some(moves) = self.moves.as_ref().filter(|moves| now >= moves.cut_over) {
            for (slot, share) in pages(&moves.to, moves.points.as_ref(), sort, moved) {
                match shares.iter_mut().find(|(one, _)| *one == slot) {
                    Some((_, of)) => *of += share,
                    None => shares.push((slot, share)),
                }
            }
        }
        shares
    }

    fn moved(&self, now: u64) -> f64 {
        let Some(moves) = &self.moves else { return 0.0 };
        (now.saturating_sub(moves.cut_over) as f64 / (moves.ends - moves.cut_over).max(1) as f64).min(1.0)
    }

    /// Ends the move once it is over.
    pub fn settle(&mut self, now: u64) {
        if let Some(moves) = self.moves.take_if(|moves| now >= moves.ends) {
            (self.slots, self.points) = (moves.to, moves.points);
        }
    }
}

/// The slots of a page, of which together they have a share: a page in ranges is of one.
fn pages(slots: &[u16], points: Option<&SplitPoints>, sort: &[u8], share: f64) -> Vec<(u16, f64)> {
    match points {
        Some(_) => vec![(of(slots, points, sort), share)],
        None => slots.iter().map(|slot| (*slot, share / slots.len() as f64)).collect(),
    }
}

fn of(slots: &[u16], points: Option<&SplitPoints>, sort: &[u8]) -> u16 {
    let shards = u16::try_from(slots.len()).unwrap();
    let shard = match points {
        Some(points) => points.range_of(&KeyValue::S(String::from_utf8_lossy(sort))),
        None => jump_xxh3(sort, shards),
    };
    slots[usize::from(shard)]
}

impl Ground {
    /// `partitions`: of the table, and of the index where there is one.
    pub fn new(partitions: u64, indexed: bool) -> Self {
        let mut tables = Tables::new(Rules { splits: false, ..Rules::default() });
        let half = partitions / 2;
        let mode = Mode::Provisioned { read: half * 3_000, write: half * 1_000 };
        let table = tables.create(0, Arc::from(TABLE), mode);
        let indexes = if indexed { vec![(Arc::from(INDEX), mode)] } else { Vec::new() };
        let ids = tables.set_indexes(0, TABLE, &indexes);
        let index = ids.first().copied().unwrap_or_default();
        let mut ground =
            Ground { tables, on: [table, index], firsts: [vec![], vec![]], positions: HashMap::new() };
        let shown = ground.tables.snapshot(0, TABLE).unwrap();
        for (firsts, resource) in ground.firsts.iter_mut().zip(shown) {
            *firsts = resource.partitions.iter().map(|one| one.first).collect();
        }
        ground
    }

    pub fn place(&mut self, key: &str, slot: u16) -> u64 {
        if let Some(known) = self.positions.get(&(key.to_owned(), slot)) {
            return *known;
        }
        let place = position(&encode(key.as_bytes(), slot).unwrap());
        self.positions.insert((key.to_owned(), slot), place);
        place
    }

    pub fn demand(&mut self, index: bool, access: Access, place: u64, units: f64) -> Demand {
        let on = self.on[usize::from(index)];
        Demand { on, access, place: KeyRange::key(place), units: Units::from_f64(units) }
    }

    /// What is refused of a request of which all is carried out or nothing: by its demands' places.
    pub fn offer(&mut self, now: u64, demands: &[Demand]) -> Vec<(usize, Cause)> {
        match self.tables.admit(now, demands) {
            Ok(()) => Vec::new(),
            Err(throttles) => throttles.into_iter().map(|one| (one.demand, one.cause)).collect(),
        }
    }

    /// The partitions as the store tells them.
    pub fn told(&mut self, now: u64, index: bool) -> Told {
        let shown = self.tables.snapshot(now, TABLE).unwrap();
        let partitions = shown.into_iter().nth(usize::from(index)).map(|one| one.partitions);
        let told = |one: &PartitionSnapshot| {
            let (writes, reads) = (one.writes_per_second, one.reads_per_second);
            let refused = one.throttles_per_second as f64;
            let writes_most = writes >= reads;
            let rates = Rates {
                writes: writes + if writes_most { refused } else { 0.0 },
                reads: reads + if writes_most { 0.0 } else { refused },
            };
            (one.first, rates)
        };
        Told(partitions.iter().flatten().map(told).collect())
    }
}

/// By first position.
pub struct Told(Vec<(u64, Rates)>);

/// Which partition has a position.
pub fn partition(firsts: &[u64], place: u64) -> usize {
    firsts.partition_point(|first| *first <= place).saturating_sub(1)
}

impl Partitions for Told {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn of(&self, key: &[u8], slot: u16) -> usize {
        let place = position(&encode(key, slot).unwrap());
        self.0.partition_point(|(first, _)| *first <= place).saturating_sub(1)
    }

    fn load(&self, partition: usize) -> Rates {
        self.0[partition].1
    }
}
