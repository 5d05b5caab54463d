//! Planning and rewriting one sharded GetItem and one PutItem of 400 B, and making a GetItem's answer logical.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
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
    let layout =
        Layout { strategy: Strategy::Calculated { by }, shards: 10, hash: Hash::JumpXxh3, version: 1 };
    One { schema: Arc::new(Table::new(schema, Arc::default())), layout: Arc::new(layout) }
}

fn plan(c: &mut Criterion) {
    let (router, layouts) = (Router::new(), source());
    let key = r#""pk":{"S":"game_x"},"sk":{"S":"0000123#player_7"}"#;
    let get = Bytes::from(format!(
        r#"{{"TableName":"Leaderboards","Key":{{{key}}},"ReturnConsumedCapacity":"TOTAL"}}"#
    ));
    let text = "x".repeat(300);
    let item =
        format!(r#"{{{key},"score":{{"N":"123"}},"at":{{"N":"1700000000"}},"text":{{"S":"{text}"}}}}"#);
    let put = Bytes::from(format!(r#"{{"TableName":"Leaderboards","Item":{item}}}"#));
    let other =
        Bytes::from(get.iter().map(|byte| if *byte == b'L' { b'M' } else { *byte }).collect::<Vec<u8>>());
    let start = |operation, body: &Bytes| {
        let mut running = router.plan(operation, body, &layouts).map(Stepped::new).ok();
        running.as_mut().map(|running| match running.step() {
            Step::Call(calls) => calls.len(),
            Step::Done(_) => 0,
        })
    };
    for (name, operation, body) in [
        ("forwarded GetItem", Operation::GetItem, &other),
        ("sharded GetItem", Operation::GetItem, &get),
        ("sharded PutItem of 400 B", Operation::PutItem, &put),
    ] {
        assert_eq!(start(operation, body), Some(1));
        c.bench_function(name, |b| b.iter(|| start(operation, black_box(body))));
    }
    let answer = Bytes::from(format!(r#"{{"Item":{}}}"#, item.replace("game_x", "game_x#~1")));
    c.bench_function("sharded GetItem with its answer of 400 B", |b| {
        b.iter(|| {
            let mut running =
                router.plan(Operation::GetItem, black_box(&get), &layouts).map(Stepped::new).ok()?;
            running.step();
            running.answer(0, Ok(answer.clone()));
            match running.step() {
                Step::Done(answer) => answer.ok(),
                Step::Call(_) => None,
            }
        });
    });
}

criterion_group!(benches, plan);
criterion_main!(benches);
