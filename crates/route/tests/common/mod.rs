//! A fixed layout source, and a way to run plans against scripted stores.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{
    AttributeDefinition, Error, IndexKeySchema, IndexSchema, KeySchema, KeyType, Operation, TableSchema,
};
use heatsink_layout::{By, Hash, InForce, Layout, LayoutSource, Strategy, Table};
use heatsink_route::{Plan, Router};
use heatsink_testkit::{Step, Stepped};
use serde_json::Value as Json;

/// Tables `Tab` (string keys), `Indexed` (the same, with indexes), `Bin` (binary partition key,
/// numeric sort key) and `Plain` (no sort key), every key over `shards`.
#[derive(Clone)]
pub struct Fixed {
    pub shards: u16,
}

fn attribute(name: &str, key_type: KeyType) -> AttributeDefinition {
    AttributeDefinition { name: name.to_owned(), key_type }
}

/// A local index by `at`, which holds `v` as well, and a global one of the same keys by `player`,
/// which holds everything.
fn indexes() -> Vec<IndexSchema> {
    let key = |sort: &str| IndexKeySchema {
        partition: vec![attribute("pk", KeyType::S)],
        sort: vec![attribute(sort, KeyType::S)],
    };
    vec![
        IndexSchema {
            name: "by_at".to_owned(),
            key: key("at"),
            local: true,
            projects_all: false,
            included: vec!["v".to_owned()],
        },
        IndexSchema {
            name: "by_player".to_owned(),
            key: key("player"),
            local: false,
            projects_all: true,
            included: Vec::new(),
        },
    ]
}

impl LayoutSource for Fixed {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let key = match name {
            "Tab" | "Indexed" => {
                KeySchema { partition: attribute("pk", KeyType::S), sort: Some(attribute("sk", KeyType::S)) }
            }
            "Bin" => {
                KeySchema { partition: attribute("pk", KeyType::B), sort: Some(attribute("sk", KeyType::N)) }
            }
            "Plain" => KeySchema { partition: attribute("pk", KeyType::S), sort: None },
            _ => return None,
        };
        let schema = TableSchema {
            name: name.to_owned(),
            id: name.to_owned(),
            key,
            indexes: if name == "Indexed" { indexes() } else { Vec::new() },
        };
        Some(Arc::new(Table::new(schema, Arc::default())))
    }

    fn in_force(&self, _table: &Table, _key: &[u8]) -> InForce {
        InForce::Stable(Arc::new(Layout {
            strategy: Strategy::calculated(By::SortKey),
            shards: self.shards,
            hash: Hash::JumpXxh3,
            version: 1,
        }))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// The plan of a request with ten shards.
pub fn plan(operation: Operation, body: &str) -> Result<Plan, Error> {
    let router = Router::new().hiding(["hidden".to_owned()].into());
    router.plan(operation, &Bytes::copy_from_slice(body.as_bytes()), &Fixed { shards: 10 })
}

/// Runs a plan; `store` answers every call.
pub fn run(
    plan: Plan,
    mut store: impl FnMut(Operation, &Bytes) -> Result<Bytes, Error>,
) -> Result<Bytes, Error> {
    let mut running = Stepped::new(plan);
    loop {
        match running.step() {
            Step::Done(answer) => return answer,
            Step::Call(calls) => {
                for call in calls {
                    running.answer(call.id, store(call.operation, &call.body));
                }
            }
        }
    }
}

/// What a request sends, if it is one call.
pub fn sent(operation: Operation, body: &str) -> String {
    let mut sent = None;
    let plan = plan(operation, body).unwrap();
    let _ = run(plan, |_, body| {
        assert!(sent.is_none(), "one call");
        sent = Some(String::from_utf8(body.to_vec()).unwrap());
        Ok(Bytes::from_static(b"{}"))
    });
    sent.unwrap()
}

/// What the client gets when the store answers with `answer`.
pub fn answered(operation: Operation, body: &str, answer: &str) -> Result<String, Error> {
    run(plan(operation, body)?, |_, _| Ok(Bytes::copy_from_slice(answer.as_bytes())))
        .map(|body| String::from_utf8(body.to_vec()).unwrap())
}

/// A body as a JSON value.
pub fn json(body: &[u8]) -> Json {
    serde_json::from_slice(body).unwrap()
}
