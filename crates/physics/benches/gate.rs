//! The cost of the gate per request: admit and debit behind the mutex in which the store keeps it.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use divan::Bencher;
use heatsink_physics::{Access, Demand, KeyRange, Mode, ResourceId, Tables, Units, position};

/// A table of 60 partitions with one global index, among a hundred others.
struct Gate {
    tables: Mutex<Tables>,
    own: ResourceId,
    index: ResourceId,
}

impl Gate {
    fn new() -> Self {
        let tables = Mutex::new(Tables::default());
        let name: Arc<str> = Arc::from("Leaderboards");
        let index: Arc<str> = Arc::from("by_score");
        let mode = Mode::Provisioned { read: 90_000, write: 30_000 };
        let (own, index) = with(&tables, |tables| {
            let own = tables.create(0, Arc::clone(&name), mode);
            let indexes = tables.set_indexes(0, &name, &[(Arc::clone(&index), mode)]);
            for table in 0..100 {
                tables.create(0, Arc::from(format!("table-{table}")), Mode::ON_DEMAND);
            }
            (own, indexes[0])
        });
        Gate { tables, own, index }
    }

    /// Sends these demands in turn, `step` nanoseconds apart.
    fn run(&self, bencher: Bencher<'_, '_>, step: u64, demands: &[Vec<Demand>]) {
        let (mut now, mut turn) = (0, 0);
        bencher.bench_local(|| {
            now += step;
            turn = (turn + 1) % demands.len();
            let demands = &demands[turn];
            if with(&self.tables, |tables| tables.admit(black_box(now), black_box(demands))).is_ok() {
                with(&self.tables, |tables| tables.debit(now, &demands[0], Units::whole(2)));
            }
        });
    }

    /// A thousand keys, one after another.
    fn spread(&self) -> Vec<Vec<Demand>> {
        (0..1_000).map(|key| vec![demand(key, self.own)]).collect()
    }
}

fn demand(key: u64, on: ResourceId) -> Demand {
    let place = KeyRange::key(position(format!("game_{key}").as_bytes()));
    Demand { on, access: Access::Write, place, units: Units::ONE }
}

#[divan::bench]
fn admit_and_debit_60_partitions_all_accepted(bencher: Bencher<'_, '_>) {
    let gate = Gate::new();
    gate.run(bencher, 10_000_000, &gate.spread());
}

#[divan::bench]
fn admit_one_hot_key_most_refused(bencher: Bencher<'_, '_>) {
    let gate = Gate::new();
    gate.run(bencher, 100, &[vec![demand(1, gate.own)]]);
}

/// 50,000 requests of two units a second: partitions are hot, take samples and split while this
/// runs.
#[divan::bench]
fn admit_and_debit_60_partitions_hot_and_splitting(bencher: Bencher<'_, '_>) {
    let gate = Gate::new();
    gate.run(bencher, 20_000, &gate.spread());
}

#[divan::bench]
fn admit_and_debit_with_one_global_index(bencher: Bencher<'_, '_>) {
    let gate = Gate::new();
    gate.run(bencher, 10_000_000, &[vec![demand(1, gate.own), demand(1, gate.index)]]);
}

#[divan::bench]
fn position_of_a_partition_key() {
    black_box(position(black_box(b"game_x#~3")));
}

fn with<T>(tables: &Mutex<Tables>, act: impl FnOnce(&mut Tables) -> T) -> T {
    act(&mut tables.lock().unwrap_or_else(PoisonError::into_inner))
}

fn main() {
    divan::main();
}
