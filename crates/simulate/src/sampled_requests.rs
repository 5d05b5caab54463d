//! Requests that are sampled one by one, some hundred ahead, and what the requests of one stream
//! share.
//!
//! The position of a key is looked up in a table larger than a processor's caches, at a random
//! place. A loop that does nothing else keeps many such look-ups in flight; one by one, each would
//! be waited for. That is most of the time of a long run.

use std::sync::Arc;

use fastrand::Rng;
use heatsink_physics::{Access, Demand, KeyPosition, KeyRange, SortKey};

use crate::key_sampler::KeySampler;
use crate::scenario::{Operation, Sort};
use crate::sizes::units;

/// How the position of a demand follows from the sample.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// It is the template's own.
    Fixed,
    /// By the key's number.
    Key(Arc<[u64]>),
    /// By the part's number.
    Part(Arc<[u64]>),
    /// By key and shard: `positions[key * shards + shard]`, the shard by the part's number.
    Sharded { positions: Arc<[u64]>, shard: Arc<[u16]>, shards: usize },
    /// By key and a shard of its own draw: sort keys are many, and each is hashed.
    Drawn { positions: Arc<[u64]>, shards: usize },
    /// By a draw of its own.
    Own(Box<KeySampler>, Arc<[u64]>),
}

/// How the requests of a stream are sampled, and the last sample.
pub(crate) struct SampledRequests {
    pub keys: KeySampler,
    pub parts: Option<KeySampler>,
    pub sort: Sort,
    pub sizes: Option<(u64, u64)>,
    pub templates: Vec<(Demand, Fill)>,
    pub batch: Batch,
}

/// Requests that differ only by one position.
pub(crate) struct SameInstantBatch {
    pub shared: Vec<Demand>,
    pub each: Demand,
    /// The positions of the last sample.
    pub points: Vec<KeyPosition>,
}

/// One sample of requests. The lists are kept to reuse their memory.
#[derive(Default)]
pub(crate) struct Batch {
    picks: Vec<Pick>,
    /// What templates sample for themselves, request by request.
    extras: Vec<usize>,
    /// The positions of the demands: for each request as many as there are templates.
    positions: Vec<u64>,
    asks: Vec<Demand>,
}

#[derive(Clone, Copy)]
struct Pick {
    key: usize,
    part: usize,
    sort: u64,
    bytes: Option<u64>,
}

impl SampledRequests {
    /// Draws the next `count` requests.
    pub(crate) fn draw(&mut self, now: u64, rng: &mut Rng, count: u64) {
        let Batch { picks, extras, positions, .. } = &mut self.batch;
        picks.clear();
        extras.clear();
        positions.clear();
        for _ in 0..count {
            let key = self.keys.pick(now, rng);
            let part = self.parts.as_mut().map_or(0, |parts| parts.pick(now, rng));
            let sort = match self.sort {
                Sort::Random => rng.u64(..),
                Sort::Ascending => now,
                Sort::One => 0,
            };
            let bytes = self.sizes.map(|(from, to)| rng.u64(from..=to));
            picks.push(Pick { key, part, sort, bytes });
            for (_, fill) in &mut self.templates {
                match fill {
                    Fill::Drawn { shards, .. } => extras.push(rng.usize(..*shards)),
                    Fill::Own(sampler, _) => extras.push(sampler.pick(now, rng)),
                    _ => {}
                }
            }
        }
        let mut extras = extras.iter().copied();
        for Pick { key, part, .. } in picks {
            for (_, fill) in &self.templates {
                positions.push(match fill {
                    Fill::Fixed => 0,
                    Fill::Key(positions) => positions[*key],
                    Fill::Part(positions) => positions[*part],
                    Fill::Sharded { positions, shard, shards } => {
                        positions[*key * *shards + usize::from(shard[*part])]
                    }
                    Fill::Drawn { positions, shards } => {
                        positions[*key * *shards + extras.next().unwrap_or(0)]
                    }
                    Fill::Own(_, positions) => positions[extras.next().unwrap_or(0)],
                });
            }
        }
    }

    /// What the requests have in common, if they differ only by the position of their last demand.
    /// `flat`: all items of a key are on one partition.
    pub(crate) fn same_instant(&self, flat: bool) -> Option<SameInstantBatch> {
        let ((each, last), others) = self.templates.split_last()?;
        let one = |(ask, fill): &(Demand, Fill)| {
            let position = match fill {
                Fill::Fixed => return Some(*ask),
                Fill::Key(positions) if positions.len() == 1 && flat => positions[0],
                _ => return None,
            };
            Some(Demand { place: spot(ask, fill, position, 0), ..*ask })
        };
        let shared: Option<Vec<Demand>> = others.iter().map(one).collect();
        let apart = self.sizes.is_none() && !matches!(last, Fill::Fixed);
        apart.then_some(SameInstantBatch { shared: shared?, each: *each, points: Vec::new() })
    }

    /// Draws the next `count` requests, and gives only the positions of their last demands.
    pub(crate) fn draw_points(&mut self, now: u64, rng: &mut Rng, count: u64, points: &mut Vec<KeyPosition>) {
        self.draw(now, rng, count);
        let Batch { picks, positions, .. } = &self.batch;
        let last = positions.iter().skip(self.templates.len() - 1).step_by(self.templates.len());
        points.clear();
        points.extend(
            picks
                .iter()
                .zip(last)
                .map(|(pick, position)| KeyPosition::new(*position, SortKey::ordinal(pick.sort))),
        );
    }

    /// The size of the last sample.
    pub(crate) fn drawn(&self) -> usize {
        self.batch.picks.len()
    }

    /// The numbers of the key and the part of the `nth` of them.
    pub(crate) fn picked(&self, nth: usize) -> (usize, usize) {
        (self.batch.picks[nth].key, self.batch.picks[nth].part)
    }

    /// The demands of the `nth` of them.
    #[inline]
    pub(crate) fn asks(&mut self, nth: usize, operation: Operation) -> &[Demand] {
        let Batch { picks, positions, asks, .. } = &mut self.batch;
        let Pick { sort, bytes, .. } = picks[nth];
        let places = &positions[nth * self.templates.len()..];
        asks.clear();
        for ((ask, fill), position) in self.templates.iter().zip(places) {
            let units = match bytes {
                Some(bytes) if ask.access == Access::Write || operation == Operation::Get => {
                    units(ask.access, bytes)
                }
                _ => ask.units,
            };
            asks.push(Demand { place: spot(ask, fill, *position, sort), units, ..*ask });
        }
        asks
    }
}

/// The range of a demand with that position.
pub(crate) fn spot(ask: &Demand, fill: &Fill, position: u64, sort: u64) -> KeyRange {
    match fill {
        Fill::Fixed => ask.place,
        _ => KeyRange::At(KeyPosition::new(position, SortKey::ordinal(sort))),
    }
}
