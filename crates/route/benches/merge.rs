//! The ordered merge of a read over 10 shards, 10 × 20 items of about 400 bytes: alone, and from raw answers to the client's.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, KeyValue, Operation, TableSchema};
use heatsink_layout::{By, Hash, InForce, Layout, LayoutSource, Strategy, Table};
use heatsink_route::Router;
use heatsink_route::query::merge::{Merge, Next};
use heatsink_testkit::{Step, Stepped};

const LANES: usize = 10;
const ROWS: usize = 20;

fn sort_key(lane: usize, at: usize) -> String {
    format!("{:012}", at * 1_000_003 + (at * 7919 + lane * 104_729) % 1_000_003)
}

fn merge_only(c: &mut Criterion) {
    let key = |text: String| Some(KeyValue::S(text.into()));
    let pages: Vec<Vec<_>> =
        (0..LANES).map(|lane| (0..ROWS).map(|at| (key(sort_key(lane, at)), at)).collect()).collect();
    let mut group = c.benchmark_group("merge");
    group.throughput(Throughput::Elements((LANES * ROWS) as u64));
    group.bench_function("merge only, 10 x 20", |b| {
        b.iter_batched_ref(
            || {
                let mut merge = Merge::new(LANES, false);
                for (lane, page) in pages.clone().into_iter().enumerate() {
                    merge.read(lane, page, None);
                }
                merge
            },
            |merge| {
                let mut rows = 0;
                while let Next::Row(lane, row) = merge.advance() {
                    black_box((lane, row));
                    rows += 1;
                }
                assert_eq!(rows, LANES * ROWS);
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

#[derive(Clone)]
struct Ten(Arc<Table>, Arc<Layout>);

impl LayoutSource for Ten {
    fn table(&self, _: &str) -> Option<Arc<Table>> {
        Some(Arc::clone(&self.0))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::clone(&self.1))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

fn whole_answer(c: &mut Criterion) {
    let attribute = |name: &str| AttributeDefinition { name: name.into(), key_type: KeyType::S };
    let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
    let schema = TableSchema { name: "Games".into(), id: "1".into(), key, indexes: Vec::new() };
    let strategy = Strategy::Calculated { by: By::SortKey };
    let shards = u16::try_from(LANES).unwrap_or(1);
    let layouts = Ten(
        Arc::new(Table::new(schema, Arc::default())),
        Arc::new(Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }),
    );
    let request = Bytes::from_static(
        br#"{"TableName":"Games","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"game"}},"Limit":100}"#,
    );
    let answers: Vec<Bytes> = (0..LANES)
        .map(|lane| {
            let item = |at| {
                let data = "x".repeat(340);
                format!(r#"{{"data":{{"S":"{data}"}},"pk":{{"S":"game#~{lane}"}},"score":{{"N":"{at}"}},"sk":{{"S":"{}"}}}}"#, sort_key(lane, at))
            };
            let items: Vec<String> = (0..ROWS).map(item).collect();
            let used = r#""ConsumedCapacity":{"TableName":"Games","CapacityUnits":1.0,"Table":{"CapacityUnits":1.0}}"#;
            Bytes::from(format!(r#"{{"Count":20,"Items":[{}],"ScannedCount":20,{used}}}"#, items.join(",")))
        })
        .collect();
    let router = Router::new();
    let started = || {
        let mut running = router.plan(Operation::Query, &request, &layouts).map(Stepped::new);
        if let Ok(running) = &mut running {
            assert!(matches!(running.step(), Step::Call(calls) if calls.len() == LANES));
        }
        running
    };
    let mut group = c.benchmark_group("query");
    group.throughput(Throughput::Bytes(answers.iter().map(|answer| answer.len() as u64).sum()));
    group.bench_function("scan 10 x 20 raw rows, merge, write the top 100", |b| {
        b.iter_batched(
            started,
            |running| {
                let Ok(mut running) = running else { return };
                for (lane, answer) in answers.iter().enumerate() {
                    running.answer(lane, Ok(answer.clone()));
                }
                assert!(matches!(running.step(), Step::Done(Ok(_))));
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("plan and write 10 physical requests", |b| b.iter(started));
    group.finish();
}

criterion_group!(benches, merge_only, whole_answer);
criterion_main!(benches);
