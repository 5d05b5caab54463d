//! Planning and rewriting one sharded GetItem and one PutItem of 400 B, and making a GetItem's
//! answer logical.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use divan::Bencher;
use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, Operation, TableSchema};
use heatsink_layout::{By, Hash, InForce, Layout, LayoutSource, Strategy, Table};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};

/// One table whose keys all have the same layout.
#[derive(Clone)]
struct One {
    schema: Arc<Table>,
    layout: Arc<Layout>,
}

impl LayoutSource for One {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        (name == self.schema.name).then(|| Arc::clone(&self.schema))
    }

    fn in_force(&self, _table: &Table, _key: &[u8]) -> InForce {
        InForce::Stable(Arc::clone(&self.layout))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

fn source() -> One {
    let attribute = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
    let schema = TableSchema {
        name: "Leaderboards".to_owned(),
        id: "1".to_owned(),
        key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
        indexes: Vec::new(),
    };
    let by = By::Part { separator: "#".to_owned(), part: 1 };
    let layout = Layout { strategy: Strategy::calculated(by), shards: 10, hash: Hash::JumpXxh3, version: 1 };
    One { schema: Arc::new(Table::new(schema, Arc::default())), layout: Arc::new(layout) }
}

const KEY: &str = r#""pk":{"S":"game_x"},"sk":{"S":"0000123#player_7"}"#;

fn get(table: &str) -> Bytes {
    Bytes::from(format!(r#"{{"TableName":"{table}","Key":{{{KEY}}},"ReturnConsumedCapacity":"TOTAL"}}"#))
}

fn item() -> String {
    let text = "x".repeat(300);
    format!(r#"{{{KEY},"score":{{"N":"123"}},"at":{{"N":"1700000000"}},"text":{{"S":"{text}"}}}}"#)
}

/// How many calls a request begins with.
fn begin(bencher: Bencher<'_, '_>, operation: Operation, body: &Bytes) {
    let (router, layouts) = (Router::new(), source());
    let start = || {
        let mut running = router.plan(operation, black_box(body), &layouts).map(Stepped::new).ok();
        running.as_mut().map(|running| match running.step() {
            Step::Call(calls) => calls.len(),
            Step::Done(_) => 0,
        })
    };
    assert_eq!(start(), Some(1));
    bencher.bench_local(start);
}

#[divan::bench]
fn forwarded_get_item(bencher: Bencher<'_, '_>) {
    begin(bencher, Operation::GetItem, &get("Meaderboards"));
}

#[divan::bench]
fn sharded_get_item(bencher: Bencher<'_, '_>) {
    begin(bencher, Operation::GetItem, &get("Leaderboards"));
}

#[divan::bench]
fn sharded_put_item_of_400_bytes(bencher: Bencher<'_, '_>) {
    let put = Bytes::from(format!(r#"{{"TableName":"Leaderboards","Item":{}}}"#, item()));
    begin(bencher, Operation::PutItem, &put);
}

#[divan::bench]
fn sharded_get_item_with_its_answer_of_400_bytes(bencher: Bencher<'_, '_>) {
    let (router, layouts, get) = (Router::new(), source(), get("Leaderboards"));
    let answer = Bytes::from(format!(r#"{{"Item":{}}}"#, item().replace("game_x", "game_x#~1")));
    bencher.bench_local(|| {
        let mut running =
            router.plan(Operation::GetItem, black_box(&get), &layouts).map(Stepped::new).ok()?;
        running.step();
        running.answer(0, Ok(answer.clone()));
        match running.step() {
            Step::Done(answer) => answer.ok(),
            Step::Call(_) => None,
        }
    });
}

fn main() {
    divan::main();
}
