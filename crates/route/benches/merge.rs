//! The ordered merge of a read over 10 shards, 10 × 20 items of about 400 bytes: alone, and from
//! raw answers to the client's.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
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

#[divan::bench]
fn merge_only_10_x_20(bencher: Bencher<'_, '_>) {
    let key = |text: String| Some(KeyValue::S(text.into()));
    let pages: Vec<Vec<_>> =
        (0..LANES).map(|lane| (0..ROWS).map(|at| (key(sort_key(lane, at)), at)).collect()).collect();
    let read = || {
        let mut merge = Merge::new(LANES, false);
        for (lane, page) in pages.clone().into_iter().enumerate() {
            merge.read(lane, page, None);
        }
        merge
    };
    bencher.counter(ItemsCount::new(LANES * ROWS)).with_inputs(read).bench_local_refs(|merge| {
        let mut rows = 0;
        while let Next::Row(lane, row) = merge.advance() {
            black_box((lane, row));
            rows += 1;
        }
        assert_eq!(rows, LANES * ROWS);
    });
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

/// A Query over ten shards, and what each of them answers.
struct TopHundred {
    layouts: Ten,
    request: Bytes,
    answers: Vec<Bytes>,
}

impl TopHundred {
    fn new() -> Self {
        let attribute = |name: &str| AttributeDefinition { name: name.into(), key_type: KeyType::S };
        let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
        let schema = TableSchema { name: "Games".into(), id: "1".into(), key, indexes: Vec::new() };
        let strategy = Strategy::calculated(By::SortKey);
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
        TopHundred { layouts, request, answers }
    }

    /// With its ten physical requests written.
    fn started(&self) -> Option<Stepped> {
        let mut running =
            Router::new().plan(Operation::Query, &self.request, &self.layouts).map(Stepped::new).ok()?;
        assert!(matches!(running.step(), Step::Call(calls) if calls.len() == LANES));
        Some(running)
    }
}

#[divan::bench]
fn scan_10_x_20_raw_rows_merge_write_the_top_100(bencher: Bencher<'_, '_>) {
    let query = TopHundred::new();
    let bytes: usize = query.answers.iter().map(Bytes::len).sum();
    bencher.counter(BytesCount::new(bytes)).with_inputs(|| query.started()).bench_local_values(|running| {
        let mut running = running?;
        for (lane, answer) in query.answers.iter().enumerate() {
            running.answer(lane, Ok(answer.clone()));
        }
        assert!(matches!(running.step(), Step::Done(Ok(_))));
        Some(running)
    });
}

#[divan::bench]
fn plan_and_write_10_physical_requests(bencher: Bencher<'_, '_>) {
    let query = TopHundred::new();
    bencher.bench_local(|| query.started());
}

fn main() {
    divan::main();
}
