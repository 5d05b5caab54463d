//! Plays a scene in virtual time: the product's counting, policy and layouts over the model of
//! partitions.
//!
//! What the model has of its own: requests come evenly and are not tried again; a decision is in
//! force after about a second, and the items have moved some seconds later.
//!
//! Not here: what ought to come of it (`judge`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;

use fastrand::Rng;
use heatsink_dynamo::KeyValue;
use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;
use heatsink_heat::costs::RequestKind;
use heatsink_heat::detect::{Kind, Outcome};
use heatsink_heat::policy::{Change, Facts, KeyFacts, KeyName, Partitions, Policy, Reason, Settings};
use heatsink_layout::SplitPoints;
use heatsink_physics::{Access, Cause};

use crate::gateway::{Gateway, INDEX, OfSlot, Part, Seen, TABLE};
use crate::ground::{Ground, Lies, Move, Told};
use crate::scene::{Act, Key, Scene, likely};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
/// How often the automatic mode looks, and how often a gateway keeps its history.
const LOOK: u64 = SECOND;
const KEEP: u64 = SECOND / 2;
/// A report that is older is not reckoned with.
const STALE: u64 = 5 * SECOND;
/// A gateway tells of keys with so many units, and of those that are refused.
const LEAST: f64 = 20.0;
/// Table keys under which the items of an index's values lie.
const AUTHORS: u64 = 2_000;

/// What was decided.
#[derive(Clone, Debug)]
pub struct Changed {
    pub at: u64,
    pub key: usize,
    pub shards: u16,
    /// Whether they are ranges of the sort key.
    pub in_ranges: bool,
    pub sentence: String,
}

/// What came of a scene.
pub struct Story {
    /// By key and second: items asked for, and refused.
    pub bins: Vec<Vec<(u32, u32)>>,
    /// Of the refused ones: those that the capacity of the table or of the index refuses, too, and
    /// of a value of an index those that a partition of the table does. No place that the key, or
    /// the value, can have is free of it.
    pub limited: Vec<Vec<u32>>,
    pub changes: Vec<Changed>,
    /// The slots of each key in the end.
    pub slots: Vec<Vec<u16>>,
    /// Why keys were left alone, the last reason of each.
    pub left: HashMap<usize, (Reason, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask(usize),
    Keep(usize),
    Look(usize),
}

struct Deciding {
    policy: Policy,
    watched: BTreeSet<KeyName>,
}

struct World<'s> {
    scene: &'s Scene,
    rng: Rng,
    ground: Ground,
    lies: Vec<Lies>,
    places: HashMap<(bool, Vec<u8>), usize>,
    /// Items that were written under keys whose sort keys grow.
    grown: Vec<u64>,
    gateways: Vec<Gateway>,
    deciding: Vec<Deciding>,
    reports: Vec<Option<(u64, Vec<KeyLoad>)>>,
    story: Story,
}

/// Plays it; with the policy, or without.
pub fn play(scene: &Scene, acts: bool) -> Story {
    let mut rng = Rng::with_seed(scene.seed ^ 0x5eed);
    let keys = scene.keys.len();
    let places = scene.keys.iter().enumerate();
    let places = places.map(|(at, key)| ((key.index, key.name.as_bytes().to_vec()), at)).collect();
    let mut world = World {
        scene,
        ground: Ground::new(scene.partitions, scene.indexed),
        lies: scene.keys.iter().map(lies).collect(),
        places,
        grown: vec![0; keys],
        gateways: (0..scene.gateways).map(|_| Gateway::new(rng.u64(..), 0)).collect(),
        deciding: (0..scene.gateways)
            .map(|_| Deciding { policy: Policy::default(), watched: BTreeSet::new() })
            .collect(),
        reports: vec![None; scene.gateways],
        story: Story {
            bins: vec![vec![(0, 0); scene.seconds as usize]; keys],
            limited: vec![vec![0; scene.seconds as usize]; keys],
            changes: Vec::new(),
            slots: Vec::new(),
            left: HashMap::new(),
        },
        rng,
    };
    world.play(acts);
    world.story.slots = world.lies.iter().map(|lies| lies.slots.clone()).collect();
    world.story
}

/// How a key lies at the start.
fn lies(key: &Key) -> Lies {
    let points = key.split_at.iter().map(|at| KeyValue::S(format!("{at:010}").into()));
    match SplitPoints::new(points.collect()) {
        Ok(points) => Lies { slots: (0..points.ranges()).collect(), points: Some(points), moves: None },
        Err(_) => Lies::whole(),
    }
}

impl World<'_> {
    fn play(&mut self, acts: bool) {
        let mut events: BinaryHeap<Reverse<(u64, Event)>> = BinaryHeap::new();
        for (at, ask) in self.scene.asks.iter().enumerate() {
            let period = (SECOND as f64 / ask.per_second) as u64;
            events.push(Reverse((ask.begins * SECOND + self.rng.u64(..=period), Event::Ask(at))));
        }
        for gateway in 0..self.scene.gateways {
            events.push(Reverse((self.rng.u64(..KEEP), Event::Keep(gateway))));
            events.push(Reverse((self.rng.u64(..LOOK), Event::Look(gateway))));
        }
        while let Some(Reverse((now, event))) = events.pop() {
            if now >= self.scene.seconds * SECOND {
                break;
            }
            let next = match event {
                Event::Ask(at) => {
                    self.ask(now, at);
                    let period = SECOND as f64 / self.scene.asks[at].per_second;
                    (period * (0.5 + self.rng.f64())) as u64
                }
                Event::Keep(gateway) => {
                    let (places, lies) = (&self.places, &self.lies);
                    let slots = |key: &str| {
                        let at = places.get(&(false, key.as_bytes().to_vec()));
                        at.map_or_else(|| vec![0], |at| lies[*at].written(now).to_vec())
                    };
                    self.gateways[gateway].keep(now / MILLI, slots);
                    KEEP
                }
                Event::Look(gateway) => {
                    if acts && self.is_alive(now, gateway) {
                        self.look(now, gateway);
                    }
                    LOOK
                }
            };
            events.push(Reverse((now + next, event)));
        }
        (0..self.lies.len()).for_each(|at| self.lies[at].settle(u64::MAX));
    }

    fn is_alive(&self, now: u64, gateway: usize) -> bool {
        gateway > 0 || self.scene.killed.is_none_or(|killed| now < killed * SECOND)
    }

    /// A request, from the client to the counters.
    fn ask(&mut self, now: u64, at: usize) {
        let ask = self.scene.asks[at];
        let key = &self.scene.keys[ask.key];
        self.lies[ask.key].settle(now);
        let first = usize::from(!self.is_alive(now, 0));
        let gateway = self.rng.usize(first..self.scene.gateways);
        let sort = |world: &mut Self| {
            let number = if key.one_item {
                0
            } else if ask.act == Act::Value || key.growing && ask.act.writes() {
                world.grown[ask.key] += 1;
                key.items + world.grown[ask.key]
            } else {
                world.rng.u64(..key.items)
            };
            format!("{number:010}")
        };
        let kind = if ask.act.writes() { Kind::Write } else { Kind::Read };
        let part = Part { index: false, kind };
        let units = ask.act.units(ask.bytes);
        let mut seen = Vec::new();
        let mut of_slots = Vec::new();
        let sorts: Vec<String> = (0..ask.act.items()).map(|_| sort(self)).collect();
        let (mut refused, mut limited) = (0, 0);
        let request = match ask.act {
            Act::Update | Act::Add => RequestKind::Update,
            Act::Statement => RequestKind::Change,
            Act::Query(_) => RequestKind::Query,
            Act::GetStrong | Act::GetEventual => RequestKind::Get,
            _ => RequestKind::Put,
        };
        let one = Seen {
            at: 0,
            part,
            key: &key.name,
            is_number: key.is_number,
            request,
            units: (units * 1_000.0) as u64,
            outcome: Outcome::Done,
            page: None,
            is_page: false,
            sort: None,
            bytes: ask.bytes,
            adds: ask.act == Act::Add,
        };
        let of_slot = |at, slot, units: f64, outcome| OfSlot {
            at,
            kind,
            key: &key.name,
            slot,
            units: (units * 1_000.0) as u64,
            outcome,
        };
        match ask.act {
            Act::Value => {
                let author = format!("author_{}", self.rng.u64(..AUTHORS));
                let entry = format!("{author}/{}", sorts[0]);
                let slot = self.lies[ask.key].writes(now, entry.as_bytes());
                let places = [self.ground.place(&author, 0), self.ground.place(&key.name, slot)];
                let demands = [
                    self.ground.demand(false, Access::Write, places[0], 1.0),
                    self.ground.demand(true, Access::Write, places[1], 1.0),
                ];
                let throttles = self.ground.offer(now, &demands);
                let outcome = |demand: usize| match throttles.as_slice() {
                    [] => Outcome::Done,
                    all => all
                        .iter()
                        .find(|(one, _)| *one == demand)
                        .map_or(Outcome::ThrottledByIndex, |(_, cause)| told(*cause)),
                };
                refused = u32::from(!throttles.is_empty());
                let is_elsewhere = throttles.iter().any(|(demand, _)| *demand == 0);
                limited = u32::from(is_elsewhere || is_limited(&throttles));
                let sort = Some(sorts[0].as_bytes());
                let of_table = Seen { key: &author, outcome: outcome(0), sort, ..one };
                let part = Part { index: true, kind: Kind::Write };
                let of_index = Seen { part, outcome: outcome(1), sort: None, ..one };
                self.gateways[gateway].count(now / MILLI, 1, &[of_table, of_index], &[]);
                self.bin(now, ask.key, [1, refused, limited]);
                return;
            }
            Act::Query(items) => {
                let shares = self.lies[ask.key].shares(now, sorts[0].as_bytes());
                let bytes = f64::from(ask.bytes);
                let demands: Vec<_> = shares
                    .iter()
                    .map(|(slot, share)| {
                        let items = likely(f64::from(items), *share);
                        let units = (bytes * items / 4_096.0).ceil().max(1.0) / 2.0;
                        let place = self.ground.place(&key.name, *slot);
                        (*slot, units, self.ground.demand(false, Access::Eventual, place, units))
                    })
                    .collect();
                let all: Vec<_> = demands.iter().map(|(.., demand)| *demand).collect();
                // Each shard is asked by itself; one that refuses fails the page.
                let mut worst = Outcome::Done;
                for (demand, (slot, units, _)) in all.iter().zip(&demands) {
                    let throttles = self.ground.offer(now, &[*demand]);
                    let outcome = throttles.first().map_or(Outcome::Done, |one| told(one.1));
                    limited |= u32::from(is_limited(&throttles));
                    if outcome != Outcome::Done {
                        worst = outcome;
                    }
                    of_slots.push(of_slot(0, *slot, *units, outcome));
                }
                refused = u32::from(worst != Outcome::Done);
                let units: f64 = demands.iter().map(|(_, units, _)| units).sum();
                let page = Some(self.rng.u64(..));
                let units = (units * 1_000.0) as u64;
                seen.push(Seen { is_page: true, page, units, outcome: worst, ..one });
            }
            Act::Transact(_) => {
                let mut demands = Vec::new();
                let mut slots = Vec::new();
                for sort in &sorts {
                    let slot = self.lies[ask.key].writes(now, sort.as_bytes());
                    let place = self.ground.place(&key.name, slot);
                    demands.push(self.ground.demand(false, Access::Write, place, units));
                    slots.push(slot);
                }
                let throttles = self.ground.offer(now, &demands);
                refused = if throttles.is_empty() { 0 } else { ask.act.items() };
                limited = if is_limited(&throttles) { refused } else { 0 };
                for (at, (sort, slot)) in sorts.iter().zip(slots).enumerate() {
                    let is_refused = throttles.iter().any(|(one, _)| *one == at);
                    let outcome = if is_refused { Outcome::Throttled } else { Outcome::Done };
                    seen.push(Seen { at, outcome, sort: Some(sort.as_bytes()), ..one });
                    of_slots.push(of_slot(at, slot, units, outcome));
                }
            }
            act => {
                let access = match act {
                    Act::GetStrong => Access::Strong,
                    Act::GetEventual => Access::Eventual,
                    _ => Access::Write,
                };
                for (at, sort) in sorts.iter().enumerate() {
                    let lies = &self.lies[ask.key];
                    let writes = act.writes();
                    let slot = if writes {
                        lies.writes(now, sort.as_bytes())
                    } else {
                        lies.has(now, sort.as_bytes())
                    };
                    let place = self.ground.place(&key.name, slot);
                    let demand = self.ground.demand(false, access, place, units);
                    let throttles = self.ground.offer(now, &[demand]);
                    let cause = throttles.first().map(|one| one.1);
                    refused += u32::from(cause.is_some());
                    limited += u32::from(is_limited(&throttles));
                    let outcome = match cause {
                        None => Outcome::Done,
                        Some(_) if matches!(act, Act::Batch(_)) => Outcome::Throttled,
                        Some(cause) => told(cause),
                    };
                    let sort = Some(sort.as_bytes()).filter(|_| writes);
                    let page = (!writes).then(|| self.rng.u64(..));
                    seen.push(Seen { at, outcome, sort, page, ..one });
                    of_slots.push(of_slot(at, slot, units, outcome));
                }
            }
        }
        let most = match ask.act {
            Act::Batch(_) => 25,
            Act::Transact(_) => 100,
            _ => 1,
        };
        self.gateways[gateway].count(now / MILLI, most, &seen, &of_slots);
        self.bin(now, ask.key, [ask.act.items(), refused, limited]);
    }

    fn bin(&mut self, now: u64, key: usize, [asked, refused, limited]: [u32; 3]) {
        let second = (now / SECOND) as usize;
        let bin = &mut self.story.bins[key][second];
        bin.0 += asked;
        bin.1 += refused;
        self.story.limited[key][second] += limited;
    }

    /// One look of a gateway's automatic mode.
    fn look(&mut self, now: u64, gateway: usize) {
        let mut own = self.gateways[gateway].loads(now / MILLI);
        own.retain(|one| one.writes + one.reads >= LEAST || one.throttled > 0.0);
        self.reports[gateway] = (!own.is_empty()).then(|| (now, own.clone()));
        let is_fresh = |told: u64| now - told < STALE;
        let is_told = |at: usize| self.reports[at].as_ref().is_some_and(|(told, _)| is_fresh(*told));
        if (0..gateway).any(is_told) {
            return;
        }
        let mut loads = own;
        for (at, report) in self.reports.iter().enumerate() {
            let Some((told, others)) = report.as_ref().filter(|_| at != gateway) else { continue };
            for other in others.iter().filter(|_| is_fresh(*told)) {
                match loads.iter_mut().find(|one| one.is_of(other)) {
                    Some(one) => one.add(other),
                    None => loads.push(other.clone()),
                }
            }
        }
        let Deciding { policy, watched } = &mut self.deciding[gateway];
        let asked: BTreeSet<KeyName> = loads.iter().map(KeyName::of).collect();
        let cold = watched.difference(&asked).cloned();
        loads.extend(cold.map(|KeyName { table, index, key }| KeyLoad {
            table,
            index,
            key,
            ..KeyLoad::default()
        }));
        self.lies.iter_mut().for_each(|lies| lies.settle(now));
        let told = self.scene.told.then(|| {
            let index = if self.scene.indexed { Some(self.ground.told(now, true)) } else { None };
            (self.ground.told(now, false), index)
        });
        let known = Known { places: &self.places, lies: &self.lies, told, ranges: self.scene.ranges };
        let looked = policy.look(MonotonicInstant(0) + Duration::from_nanos(now), &loads, &known);
        for load in loads.iter().filter(|load| known.key(load).slots.len() > 1) {
            watched.insert(KeyName::of(load));
        }
        self.story.left.clear();
        for one in looked.left_alone {
            if let Some(at) = self.places.get(&(one.name.index.is_some(), one.name.key)) {
                self.story.left.insert(*at, (one.reason, one.sentence));
            }
        }
        for decision in looked.decisions {
            let points = match &decision.change {
                Change::Ranges { split_at, .. } => Some(split_at.clone()),
                _ => None,
            };
            let to = match &decision.change {
                Change::Shards { slots: Some(slots), .. } | Change::Ranges { slots, .. } => slots.clone(),
                change => (0..change.shards()).collect(),
            };
            let place = (decision.name.index.is_some(), decision.name.key.clone());
            let Some(key) = self.places.get(&place).copied() else { continue };
            let cut_over = now + self.rng.u64(600 * MILLI..1_400 * MILLI);
            let items = self.scene.keys[key].items;
            let ends = cut_over + SECOND + items * SECOND / 800;
            let shards = decision.change.shards();
            let (at, in_ranges) = (now / MILLI, points.is_some());
            self.lies[key].moves = Some(Move { to, points, cut_over, ends });
            self.story.changes.push(Changed { at, key, shards, in_ranges, sentence: decision.sentence });
        }
    }
}

/// Whether another limit than a partition's refuses.
fn is_limited(throttles: &[(usize, Cause)]) -> bool {
    throttles.iter().any(|(_, cause)| !matches!(cause, Cause::KeyRange | Cause::Scaling))
}

/// What an answer says of a request that was refused so.
fn told(cause: Cause) -> Outcome {
    match cause {
        Cause::KeyRange | Cause::Scaling => Outcome::ThrottledByPartition,
        Cause::Provisioned | Cause::MaxOnDemand => Outcome::ThrottledByMaximum,
        Cause::AccountLimit => Outcome::ThrottledByAccount,
    }
}

/// What the policy is told.
struct Known<'w> {
    places: &'w HashMap<(bool, Vec<u8>), usize>,
    lies: &'w [Lies],
    told: Option<(Told, Option<Told>)>,
    ranges: bool,
}

impl Facts for Known<'_> {
    fn key(&self, load: &KeyLoad) -> KeyFacts {
        let settings = Settings {
            patience: Duration::ZERO,
            index_values: true,
            units_per_hour: 1e9,
            ranges: self.ranges,
            ..Settings::DEFAULT
        };
        let whole = KeyFacts { names_slots: load.index.is_none(), ..KeyFacts::whole(settings) };
        let Some(at) = self.places.get(&(load.index.is_some(), load.key.clone())) else { return whole };
        let lies = &self.lies[*at];
        let barred = lies.moves.is_some().then_some(Reason::Moving);
        KeyFacts { barred, slots: lies.slots.clone(), split_points: lies.points.clone(), ..whole }
    }

    fn partitions(&self, table: &str, index: Option<&str>) -> Option<&dyn Partitions> {
        assert!(table == TABLE && index.is_none_or(|index| index == INDEX));
        let (of_table, of_index) = self.told.as_ref()?;
        match index {
            None => Some(of_table),
            Some(_) => of_index.as_ref().map(|told| -> &dyn Partitions { told }),
        }
    }
}
