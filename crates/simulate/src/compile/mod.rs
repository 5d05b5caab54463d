//! Compiles a scenario and one remedy to a run: resources, and streams of demands.
//!
//! The remedy takes effect here. Its effect on capacity is in `resources`, its effect on keys in `key_placement`.

mod key_placement;
mod resources;

use heatsink_dynamo::capacity::{self, read_units, write_units};
use heatsink_physics::{Access, Demand, ResourceId, Units};

use crate::model::{Model, Resource};
use crate::sampled_requests::{SameInstantBatch, SampledRequests};
use crate::scenario::{Client, Consistency, Kind, Length, Loaded, Operation, Remedy, Size, Sort, Workload};
use crate::schedule::Schedule;
use key_placement::Placement;

pub(crate) use key_placement::{Fill, spot};

/// Day boundaries, where a bucket strategy goes on to the next key.
const DAY: u64 = 86_400_000_000_000;

/// More cells are drawn one by one.
const MAX_CELLS: usize = 64;

/// Bytes of an item where the scenario does not say.
const ITEM_BYTES: u64 = 200;

/// What one run is made of.
pub(crate) struct Run {
    pub resources: Vec<Resource>,
    pub model: Model,
    pub streams: Vec<Stream>,
    pub client: Client,
}

/// Requests of one workload in one run.
pub(crate) struct Stream {
    /// The workload's name, and the day where its keys change by day: seeds what is random in it.
    pub name: String,
    /// The workload's number.
    pub workload: usize,
    pub operation: Operation,
    pub source: Source,
    /// Each ask is a request of its own: a scatter. Otherwise all asks are admitted or none.
    pub scatter: bool,
    pub cache: Option<Cache>,
    pub loader: Option<Loader>,
}

/// Where the requests come from.
pub(crate) enum Source {
    /// A few kinds of requests, drawn many at a time.
    Cells { schedule: Schedule, weights: Vec<f64>, cells: Vec<Vec<Demand>>, ascending: bool },
    /// Drawn one by one; offered so too, unless they are alike.
    Sampled { schedule: Schedule, each: Box<SampledRequests>, same_instant: Option<SameInstantBatch> },
    /// Recorded: when, and the asks.
    Trace { requests: Vec<(u64, Vec<Demand>)>, next: usize },
}

/// A read cache in front of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub ttl: u64,
    pub nodes: u64,
    /// By cell or key: when what is cached runs out.
    pub until: Vec<u64>,
    /// Whether what is cached is told apart by the part, not by the key.
    pub by_part: bool,
}

/// A load that must get in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader {
    pub items: u64,
    pub window: u64,
}

/// The table of that name, or its index.
type Own<'a> = &'a dyn Fn(&str, Option<&str>) -> ResourceId;

/// A run of `loaded` with `remedy`; without one, as it is.
pub(crate) fn compile(loaded: &Loaded, remedy: Option<&Remedy>) -> Run {
    let scenario = &loaded.scenario;
    let resources = resources::resources(scenario, remedy);
    let model = Model::new(&resources, scenario.strict_keys, scenario.seed);
    let own = |table: &str, index: Option<&str>| {
        let found = |resource: &Resource| resource.table == table && resource.index.as_deref() == index;
        model.id(resources.iter().position(found).unwrap_or(0))
    };
    let mut streams = Vec::new();
    for (nth, workload) in scenario.workload.iter().enumerate() {
        if workload.trace.is_some() {
            streams.push(key_placement::trace(loaded, nth, workload, &own));
            continue;
        }
        let days = if remedy.is_some_and(|remedy| remedy.kind == Kind::Bucket) {
            scenario.duration.0.div_ceil(DAY)
        } else {
            1
        };
        for day in 0..days {
            let (mut start, mut end) =
                (workload.start.unwrap_or_default().0, workload.end.map_or(u64::MAX, |end| end.0));
            if days > 1 {
                (start, end) = (start.max(day * DAY), end.min((day + 1) * DAY));
            }
            if start < end {
                streams.push(stream(loaded, remedy, &own, nth, day, (start, end)));
            }
        }
    }
    Run { client: scenario.client.clone(), resources, model, streams }
}

fn stream(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    own: Own<'_>,
    nth: usize,
    day: u64,
    (start, end): (u64, u64),
) -> Stream {
    let workload = &loaded.scenario.workload[nth];
    let operation = workload.operation.unwrap_or(Operation::Get);
    let placed = Placement::new(loaded, remedy, own, workload, day);
    let sizes = match &workload.item_bytes {
        Some(Size::Between(between)) => Some((between.from.0, between.to.0)),
        _ => None,
    };
    let load = workload.rate.clone().unwrap_or(crate::scenario::Load::Constant(crate::scenario::Rate(1.0)));
    let schedule = Schedule::new(load, workload.burst.clone(), Some(Length(start)), Some(Length(end)));
    let free = workload.sort == Sort::Random && !loaded.scenario.strict_keys && operation != Operation::Scan;
    let cells = if sizes.is_some() || free { None } else { placed.cells(MAX_CELLS) };
    let cached = remedy.filter(|remedy| {
        remedy.kind == Kind::ReadCache
            && matches!(operation, Operation::Get | Operation::Query)
            && workload.consistency == Consistency::Eventual
            && (operation == Operation::Query || workload.part.is_some() || workload.sort == Sort::One)
    });
    let by_part = operation == Operation::Get && workload.part.is_some();
    let cache = cached.map(|remedy| Cache {
        ttl: remedy.ttl.map_or(1_000_000_000, |ttl| ttl.0),
        nodes: remedy.nodes.map_or(3, |nodes| nodes.0),
        until: vec![0; cells.as_ref().map_or(placed.cacheable(by_part), |(_, cells)| cells.len())],
        by_part,
    });
    let loader = workload
        .items
        .map(|items| Loader { items: items.0, window: workload.window.map_or(100, |window| window.0) });
    let (operation, scatter) = (placed.operation, placed.scatter);
    let source = match cells {
        Some((weights, cells)) => {
            Source::Cells { schedule, weights, cells, ascending: workload.sort == Sort::Ascending }
        }
        None => {
            let flat = loaded.scenario.strict_keys || workload.sort == Sort::One;
            let each = placed.each(workload.sort, sizes);
            let same_instant = each
                .same_instant(flat)
                .filter(|_| !scatter && cache.is_none() && !loaded.scenario.client.reoffer);
            Source::Sampled { schedule, each: Box::new(each), same_instant }
        }
    };
    let name = if day == 0 { workload.name.clone() } else { format!("{}/{day}", workload.name) };
    Stream { name, workload: nth, operation, source, scatter, cache, loader }
}

/// Average bytes of a workload's items.
pub(crate) fn item_bytes(workload: &Workload) -> u64 {
    match &workload.item_bytes {
        None => ITEM_BYTES,
        Some(Size::Fixed(bytes)) => bytes.0,
        Some(Size::Between(between)) => u64::midpoint(between.from.0, between.to.0),
    }
}

/// Units for writing an item, or for reading so many bytes at once.
pub(crate) fn units(access: Access, bytes: u64) -> Units {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Units::from_f64(match access {
        Access::Write => write_units(0, bytes),
        Access::Strong => read_units(bytes, capacity::Consistency::Strong),
        Access::Eventual => read_units(bytes, capacity::Consistency::Eventual),
    })
}

fn access(workload: &Workload, operation: Operation) -> Access {
    match (operation.writes(), workload.consistency) {
        (true, _) => Access::Write,
        (false, Consistency::Strong) => Access::Strong,
        (false, Consistency::Eventual) => Access::Eventual,
    }
}

/// Items that each shard of a scatter is asked for first: mean and three standard deviations of Binomial(limit, 1/N).
pub(crate) fn share(limit: u64, shards: u64) -> u64 {
    let (limit_f, p) = (limit as f64, 1.0 / shards as f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the limit")]
    let share = (limit_f * p + 3.0 * (limit_f * p * (1.0 - p)).sqrt()).ceil() as u64;
    share.clamp(1, limit)
}

/// All of a table in one Scan, in bytes.
pub(crate) fn scan_bytes(table: &crate::scenario::Table) -> u64 {
    let items = table.items.map_or(0, |items| items.0);
    items.saturating_mul(table.item_bytes.map_or(ITEM_BYTES, |bytes| bytes.0))
}

impl Stream {
    /// Physical requests that one request sends at once.
    pub(crate) fn at_once(&self) -> usize {
        match &self.source {
            Source::Cells { cells, .. } if self.scatter => cells.first().map_or(1, Vec::len),
            Source::Sampled { each, .. } if self.scatter => each.templates.len(),
            _ => 1,
        }
    }

    /// Units of one request on its table (or on the index that it reads), on average.
    pub(crate) fn units(&self) -> f64 {
        let first = |asks: &[Demand]| {
            let own = asks.iter().take(if self.scatter { asks.len() } else { 1 });
            own.map(|ask| ask.units.to_f64()).sum()
        };
        match &self.source {
            Source::Cells { cells, .. } => cells.first().map_or(0.0, |asks| first(asks)),
            Source::Sampled { each, .. } => {
                let asks: Vec<Demand> = each.templates.iter().map(|(ask, _)| *ask).collect();
                first(&asks)
            }
            Source::Trace { requests, .. } => {
                requests.iter().map(|(_, asks)| first(asks)).sum::<f64>() / requests.len().max(1) as f64
            }
        }
    }
}
