//! The cost of the gate per request: admit and debit behind the mutex in which the store keeps it.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use criterion::{Criterion, criterion_group, criterion_main};
use heatsink_physics::{Access, Demand, KeyRange, Mode, ResourceId, Tables, Units, position};

fn gate(criterion: &mut Criterion) {
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
    let demand = |key: u64, on: ResourceId| Demand {
        on,
        access: Access::Write,
        place: KeyRange::key(position(format!("game_{key}").as_bytes())),
        units: Units::ONE,
    };
    let spread: Vec<Demand> = (0..1_000).map(|key| demand(key, own)).collect();
    let mut now = 0;
    let mut run = |label: &str, step: u64, demands: &[Vec<Demand>]| {
        let mut turn = 0;
        criterion.bench_function(label, |bencher| {
            bencher.iter(|| {
                now += step;
                turn = (turn + 1) % demands.len();
                let demands = &demands[turn];
                if with(&tables, |tables| tables.admit(black_box(now), black_box(demands))).is_ok() {
                    with(&tables, |tables| tables.debit(now, &demands[0], Units::whole(2)));
                }
            });
        });
    };
    let cold: Vec<Vec<Demand>> = spread.iter().map(|demand| vec![*demand]).collect();
    run("admit and debit, 60 partitions, all accepted", 10_000_000, &cold);
    run("admit, one hot key, most refused", 100, &[vec![demand(1, own)]]);
    // 50,000 requests of two units a second: partitions are hot, take samples and split while this runs.
    run("admit and debit, 60 partitions, hot, splitting", 20_000, &cold);
    run("admit and debit, with one global index", 10_000_000, &[vec![demand(1, own), demand(1, index)]]);
    criterion.bench_function("position of a partition key", |bencher| {
        bencher.iter(|| position(black_box(b"game_x#~3")));
    });
}

fn with<T>(tables: &Mutex<Tables>, act: impl FnOnce(&mut Tables) -> T) -> T {
    act(&mut tables.lock().unwrap_or_else(PoisonError::into_inner))
}

criterion_group!(benches, gate);
criterion_main!(benches);
