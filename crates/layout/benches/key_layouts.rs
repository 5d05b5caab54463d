//! What single keys on record cost a request for any key of their table: one look-up, once with a
//! record and once without.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
use heatsink_layout::{By, Hash, InForce, KeyLayouts, Layout, RecordedKey, Strategy, Table, TableLayouts};

/// Keys looked up in one round: more than a cache next to the processor holds of the records.
const ROUND: u32 = 10_000;

fn table(recorded: u32) -> Table {
    let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
    let key = KeySchema { partition, sort: None };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    let strategy = Strategy::calculated(By::PrimaryKey);
    let layout = Arc::new(Layout { strategy, shards: 16, hash: Hash::JumpXxh3, version: 1 });
    let of = || RecordedKey {
        in_force: InForce::Stable(Arc::clone(&layout)),
        reserved: 16,
        since: 1,
        settled: true,
    };
    let keys = KeyLayouts::new(1, (0..recorded).map(|nth| (name(nth).into_bytes(), of())));
    Table::new(schema, Arc::new(TableLayouts::default())).with_key_layouts(Arc::new(keys))
}

fn name(nth: u32) -> String {
    format!("conversation#{:08x}", nth.wrapping_mul(0x9E37_79B9))
}

/// Names in an order that no processor guesses.
fn names(first: u32) -> Vec<String> {
    (0..ROUND).map(|nth| name(first + nth.wrapping_mul(7_919) % ROUND)).collect()
}

#[divan::bench(args = [0, 10_000])]
fn a_key_without_a_record(bencher: Bencher<'_, '_>, recorded: u32) {
    let (table, names) = (table(recorded), names(1_000_000));
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        names.iter().filter(|name| table.in_force(black_box(name.as_bytes())).is_some()).count()
    });
}

#[divan::bench(args = [10_000])]
fn a_key_on_record(bencher: Bencher<'_, '_>, recorded: u32) {
    let (table, names) = (table(recorded), names(0));
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        names.iter().filter(|name| table.in_force(black_box(name.as_bytes())).is_some()).count()
    });
}

fn main() {
    divan::main();
}
