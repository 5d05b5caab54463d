//! A table of each form of physical keys, for plans to be made against.

use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, IndexSchema, KeySchema, KeyType, TableSchema};
use heatsink_layout::{
    By, Glob, Hash, InForce, KeyLayout, Layout, LayoutSource, Strategy, Table, TableLayouts,
};

/// Tables `S` (string keys, indexes of every kind) and `B` (binary partition key, numeric sort
/// key), every key over three shards.
#[derive(Clone)]
pub struct Tables(Arc<Layout>);

impl Tables {
    pub fn new() -> Self {
        Tables(Arc::new(calculated()))
    }
}

pub fn calculated() -> Layout {
    Layout { strategy: Strategy::calculated(By::SortKey), shards: 3, hash: Hash::JumpXxh3, version: 1 }
}

fn attribute(name: &str, key_type: KeyType) -> AttributeDefinition {
    AttributeDefinition { name: name.to_owned(), key_type }
}

pub fn schema(name: &str) -> Option<TableSchema> {
    let key = |partition, sort| KeySchema { partition, sort: Some(sort) };
    let index = |name: &str, partition: &str, sort: &str, local| IndexSchema {
        name: name.to_owned(),
        key: key(attribute(partition, KeyType::S), attribute(sort, KeyType::S)).into(),
        local,
        projects_all: !local,
        included: Vec::new(),
    };
    let (key, indexes) = match name {
        "S" => (
            key(attribute("pk", KeyType::S), attribute("sk", KeyType::S)),
            vec![
                index("local", "pk", "t", true),
                index("shared", "pk", "t", false),
                index("other", "t", "u", false),
                index("inverted", "sk", "pk", false),
            ],
        ),
        "B" => (key(attribute("pk", KeyType::B), attribute("sk", KeyType::N)), Vec::new()),
        _ => return None,
    };
    Some(TableSchema { name: name.to_owned(), id: name.to_owned(), key, indexes })
}

impl LayoutSource for Tables {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), Layout::clone(&self.0))]);
        schema(name).map(|schema| Arc::new(Table::new(schema, Arc::new(layouts))))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::clone(&self.0))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}
