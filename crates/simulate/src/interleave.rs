//! The order of requests within a tick, if several workloads compete for the same capacity.
//!
//! No time passes within a tick, so earlier requests take what a bucket holds. The requests of each
//! workload are therefore cut into up to [`PARTS`] parts, and the parts of all competing workloads
//! come in random order. Each workload gets its share of the offered load, to within one part in
//! [`PARTS`]. Workloads that share no bucket are not cut, because their order changes nothing.

use std::collections::HashSet;

use fastrand::Rng;
use heatsink_physics::{Demand, ResourceId};

use crate::stream::{Source, Stream};

/// The most parts into which one workload's requests of a tick are cut.
pub(crate) const PARTS: u64 = 32;

/// Requests of one tick that come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// Its place in the order.
    at: u64,
    /// Of parts at one place, that of the first workload by name comes first.
    rank: usize,
    /// Keeps the order of parts at one place.
    nth: u64,
    pub stream: usize,
    pub what: What,
}

/// The content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// That many requests of the workload: first attempts, and a loader's retries.
    Own(u64),
    /// The retry of that number in the list of those that are due.
    Retry(usize),
}

/// Which streams compete, and the parts of the current tick.
pub(crate) struct Interleaving {
    /// Streams that compete, directly or through others; in the order of their names.
    pub groups: Vec<Vec<usize>>,
    /// The place of each stream in the order of names.
    ranks: Vec<usize>,
    parts: Vec<Part>,
}

impl Interleaving {
    pub(crate) fn new(streams: &[Stream]) -> Interleaving {
        let mut order: Vec<usize> = (0..streams.len()).collect();
        order.sort_by(|a, b| streams[*a].name.cmp(&streams[*b].name));
        let mut ranks = vec![0; streams.len()];
        let mut groups: Vec<(Buckets, Vec<usize>)> = Vec::new();
        for (rank, stream) in order.into_iter().enumerate() {
            ranks[stream] = rank;
            let mut asks = buckets(&streams[stream]);
            let mut members = Vec::new();
            // Joins all groups that it shares a bucket with.
            groups.retain_mut(|(others, of)| {
                let apart = others.is_disjoint(&asks);
                if !apart {
                    asks.extend(others.drain());
                    members.append(of);
                }
                apart
            });
            members.push(stream);
            groups.push((asks, members));
        }
        let mut groups: Vec<Vec<usize>> = groups.into_iter().map(|(_, members)| members).collect();
        for group in &mut groups {
            group.sort_by_key(|stream| ranks[*stream]);
        }
        groups.sort_by_key(|group| group.first().map(|stream| ranks[*stream]));
        Interleaving { groups, ranks, parts: Vec::new() }
    }

    /// Adds all requests of a stream as one part.
    pub(crate) fn whole(&mut self, stream: usize, count: u64) {
        self.push(stream, 0, What::Own(count));
    }

    /// Adds the requests of a stream, cut into parts at random places; `more` of them at the end.
    pub(crate) fn cut(&mut self, stream: usize, count: u64, more: u64, rng: &mut Rng) {
        let parts = count.min(PARTS);
        for nth in 0..parts {
            let longer = u64::from(nth < count % parts);
            self.push(stream, rng.u64(..), What::Own(count / parts + longer));
        }
        if more > 0 {
            self.push(stream, u64::MAX, What::Own(more));
        }
    }

    /// Adds one part at a place.
    pub(crate) fn push(&mut self, stream: usize, at: u64, what: What) {
        let nth = self.parts.len() as u64;
        self.parts.push(Part { at, rank: self.ranks[stream], nth, stream, what });
    }

    /// The parts added since the last call, in order. Give them back to [`Interleaving::reuse`].
    pub(crate) fn take(&mut self) -> Vec<Part> {
        self.parts.sort_unstable();
        std::mem::take(&mut self.parts)
    }

    /// Keeps the memory of a list.
    pub(crate) fn reuse(&mut self, mut parts: Vec<Part>) {
        parts.clear();
        self.parts = parts;
    }
}

/// Tables and indexes, and whether it is their writes.
type Buckets = HashSet<(ResourceId, bool)>;

/// The buckets that the requests of a stream draw from.
fn buckets(stream: &Stream) -> Buckets {
    let bucket = |ask: &Demand| (ask.on, ask.access.writes());
    match &stream.source {
        Source::Cells { cells, .. } => cells.iter().flatten().map(bucket).collect(),
        Source::Sampled { each, .. } => each.templates.iter().map(|(ask, _)| bucket(ask)).collect(),
        Source::Trace(replay) => {
            replay.requests.iter().map(|request| (replay.on, request.access.writes())).collect()
        }
    }
}
