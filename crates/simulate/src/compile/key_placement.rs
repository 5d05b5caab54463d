//! The effect of a remedy on keys: the physical keys of a workload's requests.

use std::sync::Arc;

use heatsink_layout::codec;
use heatsink_physics::{Access, Demand, KeyRange, ResourceId, Units, position};

use super::ranges::Ranges;
use super::resources::{FindResource, REMEDY_INDEX};
use super::shards::{narrow, shard_of_part};
use crate::key_sampler::{KeySampler, KeySet};
use crate::sampled_requests::{Batch, Fill, SampledRequests, spot};
use crate::scenario::{Keys, Kind, Loaded, Operation, Remedy, Sort, Workload};
use crate::sizes::{access, item_bytes, scan_bytes, share, units};

/// A workload's physical requests.
pub(super) struct Placement {
    pub operation: Operation,
    pub scatter: bool,
    keys: KeySet,
    parts: Option<KeySet>,
    templates: Vec<(Demand, Fill)>,
}

impl Placement {
    pub(super) fn new(
        loaded: &Loaded,
        remedy: Option<&Remedy>,
        find: FindResource<'_>,
        workload: &Workload,
        day: u64,
    ) -> Placement {
        let kind = remedy.map_or(Kind::Nothing, |remedy| remedy.kind);
        let items = workload.items.map_or(0, |items| items.0);
        let fallback = Keys::Constant("all".to_owned());
        let mut keys = KeySet::new(workload.key.as_ref().unwrap_or(&fallback), loaded, items);
        let parts = workload.part.as_ref().map(|part| KeySet::new(part, loaded, items));
        let chosen =
            |name: &str| remedy.and_then(|remedy| remedy.key.as_deref()).is_none_or(|only| only == name);
        let picked: Vec<bool> = keys.names.iter().map(|name| chosen(name)).collect();
        if kind == Kind::Bucket {
            for (name, _) in keys.names.iter_mut().zip(&picked).filter(|(_, picked)| **picked) {
                *name = format!("{name}#day-{day}");
            }
        }
        let shards = match kind {
            Kind::WriteSharding | Kind::CounterSharding | Kind::Bucket | Kind::Range
                if workload.index.is_none() =>
            {
                remedy.and_then(|remedy| remedy.shards).map_or(1, |shards| shards.0)
            }
            _ => 1,
        };
        let mut asked = workload.operation.unwrap_or(Operation::Get);
        let access = access(workload, asked);
        let turned = kind == Kind::TurnKeyRound && workload.index.is_none();
        if turned && asked == Operation::Query {
            asked = Operation::Scan;
        }
        let bytes = match asked {
            Operation::Query => workload.limit.map_or(1, |limit| limit.0) * item_bytes(workload),
            Operation::Scan => {
                loaded.scenario.table.iter().find(|table| table.name == workload.table).map_or(0, scan_bytes)
            }
            _ => item_bytes(workload),
        };
        let main = demand(find(&workload.table, workload.index.as_deref()), access, units(access, bytes));
        let physical = physical(&keys, shards, &picked);
        let counter = kind == Kind::CounterSharding;
        let mut placed = Placement { operation: asked, scatter: false, keys, parts, templates: Vec::new() };
        let ranged = kind == Kind::Range && shards > 1;
        match (asked, &placed.parts) {
            (Operation::Scan, _) => placed.templates.push((main, Fill::Fixed)),
            (_, parts) if ranged => {
                let of = Ranges {
                    workload,
                    keys: &placed.keys,
                    parts: parts.as_ref(),
                    positions: &physical,
                    count: shards,
                };
                placed.templates = if asked != Operation::Query {
                    vec![(main, of.item(asked))]
                } else if is_whole(&physical, shards) {
                    vec![(main, Fill::Key(every(&physical, shards)))]
                } else {
                    of.page(loaded, |bytes| Demand { units: units(access, bytes), ..main })
                };
                placed.scatter = placed.templates.len() > 1;
            }
            (_, Some(parts)) if turned => placed.templates.push((main, Fill::Part(positions(parts)))),
            (Operation::Query | Operation::Get, _)
                if shards > 1 && (counter || asked == Operation::Query) =>
            {
                // Counters read all of every shard; lists ask each for its likely share.
                let each = if counter || asked == Operation::Get {
                    main.units
                } else {
                    units(
                        access,
                        share(workload.limit.map_or(1, |limit| limit.0), shards) * item_bytes(workload),
                    )
                };
                placed.scatter = true;
                placed.gather(&Demand { units: each, ..main }, main, &physical, shards);
            }
            (Operation::Put | Operation::Delete, _) if counter => {
                placed.templates.push((main, Fill::Key(every(&physical, shards))));
            }
            _ if shards == 1 => placed.templates.push((main, Fill::Key(physical))),
            (Operation::Update, _) if counter => {
                placed.templates.push((main, Fill::Drawn { positions: physical, shards: narrow(shards) }));
            }
            (_, Some(parts)) => {
                let shard = parts.names.iter().map(|part| shard_of_part(part, shards)).collect();
                placed
                    .templates
                    .push((main, Fill::Sharded { positions: physical, shard, shards: narrow(shards) }));
            }
            // One item has one sort key and so one shard; it stays as hot as it was.
            (_, None) if workload.sort == Sort::One => {
                placed.templates.push((main, Fill::Key(every(&physical, shards))));
            }
            (_, None) => {
                placed.templates.push((main, Fill::Drawn { positions: physical, shards: narrow(shards) }))
            }
        }
        if asked.writes() {
            placed.indexes(loaded, remedy, workload, find, item_bytes(workload));
        }
        placed
    }

    /// One demand for each shard. All shards of an unsharded key are one position, which is read
    /// once, for all items.
    fn gather(&mut self, each: &Demand, whole: Demand, physical: &Arc<[u64]>, shards: u64) {
        let count = narrow(shards);
        if is_whole(physical, shards) {
            self.templates.push((whole, Fill::Key(every(physical, shards))));
            self.scatter = false;
            return;
        }
        for shard in 0..count {
            let column: Arc<[u64]> = physical.chunks(count).map(|places| places[shard]).collect();
            self.templates.push((*each, Fill::Key(column)));
        }
    }

    fn indexes(
        &mut self,
        loaded: &Loaded,
        remedy: Option<&Remedy>,
        workload: &Workload,
        find: FindResource<'_>,
        bytes: u64,
    ) {
        let Some(table) = loaded.scenario.table.iter().find(|table| table.name == workload.table) else {
            return;
        };
        let write = units(Access::Write, bytes);
        for index in &table.index {
            let times = match workload.operation {
                Some(Operation::Update) => index.update_units.map_or(1, |units| u64::from(units.0)),
                _ => 1,
            };
            if times == 0 {
                continue;
            }
            let ask = demand(find(&table.name, Some(&index.name)), Access::Write, write.times(times));
            let spread = remedy.and_then(|remedy| match remedy.kind {
                Kind::IndexSharding => remedy.shards,
                _ => remedy.index_shards,
            });
            let shards = spread.map_or(1, |shards| shards.0);
            let fill = match (&index.key, &self.parts) {
                (None, Some(parts)) if shards == 1 => Fill::Part(positions(parts)),
                (None, None) if shards == 1 => Fill::Key(positions(&self.keys)),
                (None, parts) => {
                    let of = parts.as_ref().unwrap_or(&self.keys);
                    own_draw(
                        KeySet {
                            names: of.names.clone(),
                            sampler: of.sampler.clone(),
                            weights: of.weights.clone(),
                        },
                        shards,
                    )
                }
                (Some(keys), _) => own_draw(KeySet::new(keys, loaded, 0), shards),
            };
            self.templates.push((ask, fill));
        }
        if remedy.is_some_and(|remedy| remedy.kind == Kind::Index)
            && let Some(parts) = &self.parts
        {
            let ask = demand(find(&table.name, Some(REMEDY_INDEX)), Access::Write, write);
            self.templates.push((ask, Fill::Part(positions(parts))));
        }
    }

    /// The keys before the remedy.
    pub(super) fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// The number of entries that a cache distinguishes.
    pub(super) fn cacheable(&self, by_part: bool) -> usize {
        self.parts.as_ref().filter(|_| by_part).map_or(self.keys.names.len(), |parts| parts.names.len())
    }

    /// The kinds of requests of this workload, with their weights; `None` if there are more than
    /// `most`, or if they follow no weights.
    pub(super) fn cells(&self, most: usize) -> Option<(Vec<f64>, Vec<Vec<Demand>>)> {
        let mut columns: Vec<Vec<(f64, u64)>> = Vec::new();
        let mut drawn = 0;
        let single = self.keys.names.len() == 1;
        for (_, fill) in &self.templates {
            let column: Vec<(f64, u64)> = match fill {
                Fill::Fixed => vec![(1.0, 0)],
                Fill::Key(positions) if single => vec![(1.0, positions[0])],
                Fill::Key(_) | Fill::Part(_) => return None,
                Fill::Sharded { positions, shard, shards } if single => {
                    let weights = &self.parts.as_ref()?.weights;
                    if weights.is_empty() {
                        return None;
                    }
                    let mut of = vec![0.0; *shards];
                    for (weight, shard) in weights.iter().zip(shard.iter()) {
                        of[usize::from(*shard)] += weight;
                    }
                    of.into_iter().zip(positions.iter().copied()).collect()
                }
                Fill::Drawn { positions, shards } if single => {
                    positions.iter().take(*shards).map(|position| (1.0, *position)).collect()
                }
                Fill::Own(sampler, positions) => match &**sampler {
                    KeySampler::One => vec![(1.0, positions[0])],
                    KeySampler::Uniform(_) => positions.iter().map(|position| (1.0, *position)).collect(),
                    _ => return None,
                },
                Fill::Sharded { .. } | Fill::Drawn { .. } => return None,
            };
            if column.len() > most {
                return None;
            }
            drawn += usize::from(column.len() > 1);
            columns.push(column);
        }
        // Two draws at once would make a grid of cells.
        if drawn > 1 {
            return None;
        }
        let count = columns.iter().map(Vec::len).max().unwrap_or(1);
        let weights = columns
            .iter()
            .find(|column| column.len() == count)
            .map(|column| column.iter().map(|(weight, _)| *weight).collect())?;
        let cells = (0..count).map(|cell| {
            let asks = self.templates.iter().zip(&columns).map(|((ask, fill), column)| {
                let (_, position) = column[cell.min(column.len() - 1)];
                Demand { place: spot(ask, fill, position, 0), ..*ask }
            });
            asks.collect()
        });
        Some((weights, cells.collect()))
    }

    pub(super) fn each(self, sort: Sort, sizes: Option<(u64, u64)>) -> SampledRequests {
        SampledRequests {
            keys: self.keys.sampler,
            parts: self.parts.map(|parts| parts.sampler),
            sort,
            sizes,
            templates: self.templates,
            batch: Batch::default(),
        }
    }
}

fn demand(on: ResourceId, access: Access, units: Units) -> Demand {
    Demand { on, access, place: KeyRange::All, units }
}

/// Positions of the physical keys of every key, `shards` for each. The codec's own keys, hashed
/// like any.
fn physical(keys: &KeySet, shards: u64, picked: &[bool]) -> Arc<[u64]> {
    let mut positions = Vec::with_capacity(keys.names.len() * narrow(shards));
    for (nth, name) in keys.names.iter().enumerate() {
        for shard in 0..u16::try_from(shards).unwrap_or(u16::MAX) {
            let shard = if picked.get(nth) == Some(&false) { 0 } else { shard };
            let suffix = codec::suffix(name.as_bytes(), shard);
            positions.push(position(format!("{name}{suffix}").as_bytes()));
        }
    }
    positions.into()
}

/// Whether no key is spread: all shards of each are one position.
fn is_whole(physical: &Arc<[u64]>, shards: u64) -> bool {
    let is_one = |places: &[u64]| places.iter().all(|place| Some(place) == places.first());
    physical.chunks(narrow(shards)).all(is_one)
}

/// Shard 0 of every key.
fn every(physical: &Arc<[u64]>, shards: u64) -> Arc<[u64]> {
    physical.iter().step_by(narrow(shards)).copied().collect()
}

fn positions(of: &KeySet) -> Arc<[u64]> {
    of.names.iter().map(|name| position(name.as_bytes())).collect()
}

/// An index key that is sampled independently, over `shards`. The shard follows from the hash of
/// the item's primary key, which is as good as random.
fn own_draw(of: KeySet, shards: u64) -> Fill {
    let positions = physical(&of, shards, &[]);
    match (of.names.len(), shards) {
        (1, 1) => Fill::Own(Box::new(KeySampler::One), positions),
        (1, _) => Fill::Own(Box::new(KeySampler::Uniform(shards)), positions),
        (_, 1) => Fill::Own(Box::new(of.sampler), positions),
        (count, _) => Fill::Own(Box::new(KeySampler::Uniform(count as u64 * shards)), positions),
    }
}
