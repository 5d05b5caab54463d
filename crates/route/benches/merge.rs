//! The ordered merge of a top-200 read over 10 shards: 10 × 20 items.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use heatsink_route::query::merge::{Merge, Next};

fn merge(c: &mut Criterion) {
    let pages: Vec<Vec<(String, usize)>> =
        (0..10).map(|lane| (0..20).map(|at| (format!("{:012}", (at * 7919 + lane * 104_729) % 1_000_003 + at * 1_000_003), at)).collect()).collect();
    c.bench_function("merge only, 10 x 20", |b| {
        b.iter_batched(
            || pages.clone(),
            |pages| {
                let mut merge = Merge::new(10, false);
                for (lane, page) in pages.into_iter().enumerate() {
                    merge.read(lane, page, None);
                }
                let mut rows = 0;
                while let Next::Row(_, row) = merge.next() {
                    rows += black_box(row).min(1) + 1;
                }
                rows
            },
            criterion::BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, merge);
criterion_main!(benches);
