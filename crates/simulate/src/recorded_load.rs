//! The load of the hottest keys of traces, as advice is computed from it.
//!
//! Not here: what is advised (`heatsink-heat`), what becomes of it (`advised`).

use std::collections::HashMap;

use heatsink_heat::advice::Observed;
use heatsink_heat::detect::Drawn;

use crate::partitions::partitions;
use crate::scenario::trace::Recorded;
use crate::scenario::{Loaded, Operation};

/// The most keys that are looked at.
const KEYS: usize = 20;
/// Rates are of the busiest five seconds: over less, a sample's chance decides, and what partitions
/// keep in reserve.
pub(crate) const WINDOW: u64 = 5_000_000_000;

/// The table and the key.
pub(crate) type TableKey<'a> = (&'a str, &'a str);

/// The hottest keys of tables in the traces that the scenario's workloads take, hottest first.
pub(crate) fn hottest(loaded: &Loaded) -> Vec<(TableKey<'_>, Observed)> {
    let mut units: HashMap<TableKey<'_>, f64> = HashMap::new();
    for (which, request) in requests(loaded) {
        *units.entry(which).or_default() += units_of(request);
    }
    let mut hottest: Vec<(TableKey<'_>, f64)> = units.into_iter().collect();
    hottest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hottest.truncate(KEYS);
    let mut seen: Vec<Seen<'_>> = hottest.iter().map(|_| Seen::default()).collect();
    let places: HashMap<TableKey<'_>, usize> =
        hottest.iter().enumerate().map(|(at, (which, _))| (*which, at)).collect();
    for (which, request) in requests(loaded) {
        if let Some(seen) = places.get(&which).and_then(|at| seen.get_mut(*at)) {
            seen.add(request);
        }
    }
    hottest.into_iter().zip(seen).map(|((which, _), seen)| (which, seen.observed(loaded, which.0))).collect()
}

/// The recorded requests of tables, those of indexes left out, each with its table and key.
fn requests(loaded: &Loaded) -> impl Iterator<Item = (TableKey<'_>, &Recorded)> {
    let traces = loaded.traces.values().flatten();
    traces.filter_map(|request| {
        let more = request.more.as_ref().filter(|more| more.index.is_none())?;
        (!request.key.is_empty()).then_some(((&*more.table, &*request.key), request))
    })
}

fn units_of(request: &Recorded) -> f64 {
    let units = request.more.as_ref().map_or(0, |more| more.units);
    units as f64 / 1_000.0 * request.weight() as f64
}

/// One kind of units.
#[derive(Clone, Copy, Default)]
struct Units {
    all: f64,
    /// Of them: those of requests that stand for others.
    drawn: Drawn,
}

#[derive(Default)]
struct Window {
    writes: Units,
    reads: Units,
    queries: f64,
}

/// What was recorded of one key.
#[derive(Default)]
struct Seen<'a> {
    windows: HashMap<u64, Window>,
    requests: f64,
    throttled: f64,
    writes: f64,
    growing: f64,
    same_item: f64,
    largest: &'a str,
    item: &'a str,
    bytes: f64,
    sized: f64,
    reads: f64,
    same_page: f64,
    page: &'a str,
    items: u32,
}

impl<'a> Seen<'a> {
    fn add(&mut self, request: &'a Recorded) {
        let Some(more) = &request.more else { return };
        let weight = request.weight() as f64;
        let window = self.windows.entry(request.at / WINDOW).or_default();
        let of = if request.operation.writes() { &mut window.writes } else { &mut window.reads };
        let units = units_of(request);
        of.all += units;
        if weight > 1.0 {
            of.drawn = of.drawn.plus(Drawn { units, variance: units * units, one: units });
        }
        self.requests += weight;
        self.throttled += if more.throttled { weight } else { 0.0 };
        if request.operation.writes() {
            let sort = request.sort.as_str();
            if self.writes > 0.0 {
                let grows = if more.hashed { more.grows } else { sort > self.largest };
                self.growing += if grows { weight } else { 0.0 };
                self.same_item += if sort == self.item { weight } else { 0.0 };
            }
            self.writes += weight;
            self.largest = self.largest.max(sort);
            self.item = sort;
        } else {
            window.queries += if request.operation == Operation::Query { weight } else { 0.0 };
            self.same_page += if self.reads > 0.0 && request.sort == self.page { weight } else { 0.0 };
            self.reads += weight;
            self.page = &request.sort;
            self.items = self.items.max(more.items);
        }
        if request.operation != Operation::Query && request.bytes > 0 {
            self.bytes += request.bytes as f64 * weight;
            self.sized += weight;
        }
    }

    fn observed(&self, loaded: &Loaded, table: &str) -> Observed {
        let seconds = WINDOW.min(loaded.scenario.duration.0).max(1) as f64 / 1e9;
        let busiest = |of: fn(&Window) -> Units| {
            let units =
                self.windows.values().map(of).max_by(|a, b| a.all.total_cmp(&b.all)).unwrap_or_default();
            (units.all / seconds, units.drawn.times(1.0 / seconds).below())
        };
        let (writes, write_error) = busiest(|window| window.writes);
        let (reads, read_error) = busiest(|window| window.reads);
        let queries = self.windows.values().map(|window| window.queries).fold(0.0, f64::max) / seconds;
        let share = |part: f64, whole: f64| if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 };
        let known = loaded.scenario.table.iter().find(|known| known.name == table);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` cuts to the range")]
        let item_bytes = (self.bytes / self.sized.max(1.0)) as u32;
        Observed {
            writes,
            peak_writes: writes,
            reads,
            write_error,
            read_error,
            queries,
            page: self.items,
            throttled: share(self.throttled, self.requests),
            item_bytes,
            growing: share(self.growing, self.writes),
            one_item: share(self.same_item, self.writes),
            same_page: share(self.same_page, self.reads),
            shards: 1,
            sort_key: self.writes == 0.0 || !self.item.is_empty(),
            local_index: known.is_some_and(|known| known.local_indexes),
            partitions: known.and_then(partitions),
            ..Observed::default()
        }
    }
}
