//! One gateway of the world: it draws, counts and tells as the product does, with the product's
//! own parts.
//!
//! Not here: what is asked (`scene`), what becomes of it (`ground`).

use std::sync::Arc;

use heatsink_dynamo::KeyType;
use heatsink_heat::costs::{CostOf, Costs, RequestKind};
use heatsink_heat::detect::{Access, Detector, Key, Kind, Outcome, PartHeat, PartId, PartName, ShownKey};
use heatsink_heat::draw::{Chosen, Draw, Drawing, Pace};
use heatsink_heat::{KeyLoad, TOLD_KEYS, all_loads};

pub const TABLE: &str = "T";
pub const INDEX: &str = "by-value";
/// The most keys of a part that the product shows, and whose shards it measures.
const SHOWN_KEYS: usize = 100;

/// A part of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub index: bool,
    pub kind: Kind,
}

/// One item or page of a request, as its answer shows it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its place among the items of the request.
    pub at: usize,
    pub part: Part,
    pub key: &'a str,
    pub is_number: bool,
    pub request: RequestKind,
    /// Thousandths of the units that it costs where it is carried out.
    pub units: u64,
    pub outcome: Outcome,
    /// A hash of the page or item that is read.
    pub page: Option<u64>,
    pub is_page: bool,
    pub sort: Option<&'a [u8]>,
    pub bytes: u32,
    pub adds: bool,
}

/// What a physical request asked of a slot of a table key.
#[derive(Clone, Copy, Debug)]
pub struct OfSlot<'a> {
    pub at: usize,
    pub kind: Kind,
    pub key: &'a str,
    pub slot: u16,
    pub units: u64,
    pub outcome: Outcome,
}

pub struct Gateway {
    drawing: Drawing,
    pace: Pace,
    detector: Detector,
    costs: Costs,
    /// Of reads and writes of the table, then of the index.
    parts: [PartId; 4],
    /// The number of the last window after which shards were chosen to be measured.
    taken: u64,
}

impl Gateway {
    pub fn new(seed: u64, now: u64) -> Self {
        let mut detector = Detector::new(seed, now);
        let (table, index) = (Arc::from(TABLE), Arc::from(INDEX));
        let mut part = |index, kind| detector.part(&table, index, kind);
        let parts = [
            part(None, Kind::Read),
            part(None, Kind::Write),
            part(Some(&index), Kind::Read),
            part(Some(&index), Kind::Write),
        ];
        let costs = Costs::new(seed);
        Gateway { drawing: Drawing::new(seed), pace: Pace::default(), detector, costs, parts, taken: 0 }
    }

    fn part(&self, part: Part) -> PartId {
        self.parts[usize::from(part.index) * 2 + usize::from(part.kind == Kind::Write)]
    }

    /// Counts an answered request of at most `most` items, if it is drawn.
    pub fn count(&mut self, now: u64, most: u32, seen: &[Seen<'_>], of_slots: &[OfSlot<'_>]) {
        let (draw, chosen) = if most > 1 {
            let draw = self.drawing.batch(now);
            (draw, self.drawing.choose(draw, most))
        } else {
            let Some(draw) = self.drawing.request(now) else { return };
            (draw, Chosen::ALL)
        };
        if chosen.is_empty() {
            return;
        }
        self.slots(now, draw, most, of_slots);
        let found: Vec<&Seen<'_>> = seen.iter().filter(|one| chosen.has(one.at)).collect();
        for one in &found {
            let part = self.part(one.part);
            let (units, deviation) = self.price(one);
            let kind = if one.is_number { KeyType::N } else { KeyType::S };
            let access = Access {
                key: Some(Key { kind, text: one.key.as_bytes() }),
                units,
                deviation,
                is_page: one.is_page,
                weight: draw.weight(),
                outcome: one.outcome,
                ..Access::default()
            };
            let page = one.page.map(|page| self.detector.hash(&page.to_be_bytes()));
            if let Some(signs) = self.detector.count(now, part, &access) {
                signs.item(one.bytes as usize);
                if one.part.kind == Kind::Write && one.request == RequestKind::Update {
                    signs.adds(one.adds);
                }
                page.into_iter().for_each(|page| signs.reads(page));
                if let Some(sort) = one.sort {
                    signs.writes(sort);
                    signs.sorted_at(format!("{{\"S\":\"{}\"}}", String::from_utf8_lossy(sort)).as_bytes());
                }
            }
        }
        self.detector.advance(now);
        let window = (self.detector.number(), self.detector.ends());
        let weight = self.drawing.counted(&mut self.pace, window, draw, found.len());
        self.detector.draws(weight);
    }

    /// What an access is counted for: what the store tells, else what such accesses cost.
    fn price(&mut self, one: &Seen<'_>) -> (u64, u64) {
        let of = CostOf { part: self.part(one.part), kind: one.request, key: Some(one.key) };
        if one.outcome == Outcome::Done {
            self.costs.learn(of, one.units, None);
            return (one.units, 0);
        }
        let known = self.costs.estimate(of);
        if known.is_none() && one.request == RequestKind::Put {
            return (one.units, 0);
        }
        let known = known.or_else(|| self.costs.estimate(CostOf { key: None, ..of }));
        known.map_or((1_000, 0), |cost| (cost.units, cost.deviation))
    }

    fn slots(&mut self, now: u64, draw: Draw, most: u32, of_slots: &[OfSlot<'_>]) {
        if !self.detector.measures_shards() {
            return;
        }
        // Each physical call is drawn by itself.
        let chosen = self.drawing.choose(draw, most);
        for one in of_slots.iter().filter(|one| chosen.has(one.at)) {
            let access = Access {
                key: Some(Key { kind: KeyType::S, text: one.key.as_bytes() }),
                units: one.units,
                weight: draw.weight(),
                outcome: one.outcome,
                ..Access::default()
            };
            let part = self.part(Part { index: false, kind: one.kind });
            self.detector.count_shard(now, part, one.slot, &access);
        }
    }

    fn heat(&mut self, now: u64, keys: usize) -> Vec<PartHeat> {
        self.detector.advance(now);
        self.detector.heat(keys)
    }

    /// The loads of the last window.
    pub fn loads(&mut self, now: u64) -> Vec<KeyLoad> {
        all_loads(&self.heat(now, TOLD_KEYS))
    }

    /// The last window, as loads and as it is shown.
    pub fn window(&mut self, now: u64) -> (Vec<KeyLoad>, Vec<PartHeat>) {
        let parts = self.heat(now, TOLD_KEYS);
        (all_loads(&parts), parts)
    }

    /// Looks whether a window has ended, and chooses the keys whose shards are measured.
    pub fn keep(&mut self, now: u64, slots: impl Fn(&str) -> Vec<u16>) {
        let parts = self.heat(now, SHOWN_KEYS);
        if self.detector.number() == self.taken {
            return;
        }
        self.taken = self.detector.number();
        let mut sharded: Vec<(f64, &PartName, &ShownKey, Vec<u16>)> = Vec::new();
        for part in parts.iter().filter(|part| part.name.index.is_none()) {
            for heat in part.keys.iter().filter(|heat| heat.key.kind == KeyType::S) {
                let slots = slots(&heat.key.text);
                if slots.len() > 1 {
                    sharded.push((heat.units_per_s, &part.name, &heat.key, slots));
                }
            }
        }
        sharded.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.detector.measure_shards(sharded.into_iter().map(|(_, name, key, slots)| (name, key, slots)));
    }
}
