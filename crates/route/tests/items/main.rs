//! Items that may lie in several slots: fragments of counters are summed, externally assigned
//! shards are looked into, and what is explained is what is sent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

mod counter_writes;
mod counters;
mod externally_assigned;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{json, run};
use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, KeySchema, KeyType, Operation, TableSchema};
use heatsink_layout::{
    By, Glob, Hash, InForce, KeyLayout, Layout, LayoutSource, Strategy, Table, TableLayouts, Template,
};
use heatsink_route::Router;
use serde_json::{Value, json as value};

/// Every key of the tables `Tab` and `Two` is laid out so.
#[derive(Clone)]
struct All(Layout);

/// Counters of three fragments; `n` is summed.
fn counters() -> All {
    let strategy = Strategy::Counter { attributes: vec!["n".to_owned()] };
    All(Layout { strategy, shards: 3, hash: Hash::JumpXxh3, version: 1 })
}

/// Three shards that other writers assign: `a.1`, `a.2`, `a.3`.
fn assigned() -> All {
    let template = Template::read("{pk}.{shard+1}").unwrap();
    let strategy = Strategy::Template { template, by: By::SortKey, time: None };
    All(Layout { strategy, shards: 3, hash: Hash::Random, version: 1 })
}

impl LayoutSource for All {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
        let schema = TableSchema {
            name: name.to_owned(),
            id: name.to_owned(),
            key: KeySchema { partition, sort: None },
            indexes: Vec::new(),
        };
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), self.0.clone())]);
        matches!(name.rsplit('/').next(), Some("Tab" | "Two"))
            .then(|| Arc::new(Table::new(schema, Arc::new(layouts))))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::new(self.0.clone()))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// A store that knows BatchGetItem; everything else is answered by what the test says.
#[derive(Default)]
struct Store {
    /// The items of `Tab`, by their partition key.
    items: BTreeMap<String, Value>,
    /// How often the item with that key is left unread.
    unread: BTreeMap<String, usize>,
    /// What was sent.
    sent: Vec<(Operation, Value)>,
}

impl Store {
    fn with(items: &[(&str, Value)]) -> Self {
        let item = |(key, item): &(&str, Value)| {
            let mut item = item.clone();
            item["pk"] = value!({ "S": key });
            ((*key).to_owned(), item)
        };
        Store { items: items.iter().map(item).collect(), ..Store::default() }
    }

    fn batch(&mut self, body: &Value) -> Value {
        let (mut responses, mut unread) = (value!({}), value!({}));
        for (name, part) in body["RequestItems"].as_object().unwrap() {
            if name == "Other" {
                responses[name] = part["Keys"].clone();
                continue;
            }
            let (mut found, mut left) = (Vec::new(), Vec::new());
            for key in part["Keys"].as_array().unwrap() {
                let text = key["pk"]["S"].as_str().unwrap();
                match self.unread.get_mut(text).filter(|times| **times > 0) {
                    Some(times) => {
                        *times -= 1;
                        left.push(key.clone());
                    }
                    None => found.extend(self.items.get(text).cloned()),
                }
            }
            responses[name] = value!(found);
            if !left.is_empty() {
                unread[name] = value!({ "Keys": left });
            }
        }
        value!({ "Responses": responses, "UnprocessedKeys": unread })
    }

    /// The client's answer.
    fn call(
        &mut self,
        layouts: &All,
        operation: Operation,
        body: &Value,
        mut other: impl FnMut(Operation, &Value) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        let plan = Router::new().plan(operation, &Bytes::from(body.to_string()), layouts)?;
        let answer = run(plan, |operation, body| {
            let body = json(body);
            self.sent.push((operation, body.clone()));
            let answer = match operation {
                Operation::BatchGetItem => Ok(self.batch(&body)),
                _ => other(operation, &body),
            };
            answer.map(|answer| Bytes::from(answer.to_string()))
        });
        answer.map(|body| json(&body))
    }

    fn read(&mut self, layouts: &All, operation: Operation, body: &Value) -> Result<Value, Error> {
        self.call(layouts, operation, body, |operation, _| panic!("{operation:?} is no read of these"))
    }

    fn operations(&self) -> Vec<Operation> {
        self.sent.iter().map(|(operation, _)| *operation).collect()
    }
}

fn number(n: &str) -> Value {
    value!({ "n": { "N": n } })
}

fn get(key: &str) -> Value {
    value!({ "TableName": "Tab", "Key": { "pk": { "S": key } } })
}

fn votes() -> Store {
    Store::with(&[
        ("a", value!({ "n": { "N": "1" }, "name": { "S": "x" } })),
        ("a#~1", number("20")),
        ("a#~2", number("300")),
        ("b#~1", number("7")),
    ])
}
