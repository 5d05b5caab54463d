//! The partition layer's data of each table: names, ARNs, keys, capacity. Read from table
//! descriptions.

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, KeyType};
use heatsink_physics::{Mode, ResourceId};
use serde::Deserialize;

/// A table's keys and capacity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableInfo {
    pub name: Arc<str>,
    /// Its partitions; set when it becomes known.
    pub id: ResourceId,
    /// The incarnation of the table: its id, or its creation time.
    pub incarnation: String,
    pub arn: String,
    pub mode: Mode,
    pub key: Key,
    /// The global indexes. Local ones live in the table's own partitions.
    pub indexes: Vec<IndexInfo>,
    /// The local indexes: they keep item collections whole.
    pub locals: Vec<LocalInfo>,
}

/// The attributes that an index projects, beside the keys of the table and its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Projection {
    All,
    Keys(Vec<String>),
}

/// A local index's key and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocalInfo {
    pub key: Key,
    pub projection: Projection,
}

/// A global index's key and capacity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IndexInfo {
    pub name: Arc<str>,
    /// Its partitions; set when it becomes known.
    pub id: ResourceId,
    pub arn: String,
    pub mode: Mode,
    pub key: Key,
    pub projection: Projection,
}

/// A key: one partition attribute and at most one sort attribute; an index may have up to four of
/// each (AWS, "Global secondary indexes").
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub partition: Vec<AttributeDefinition>,
    pub sort: Vec<AttributeDefinition>,
}

impl TableInfo {
    pub(super) fn index(&self, name: &str) -> Option<&IndexInfo> {
        self.indexes.iter().find(|index| &*index.name == name)
    }

    /// Keeps the partitions of the previous description.
    pub(super) fn take_ids(&mut self, before: &TableInfo) {
        self.id = before.id;
        for index in &mut self.indexes {
            index.id = before.index(&index.name).map_or_else(ResourceId::default, |known| known.id);
        }
    }

    /// The ARN of the table, or of one of its global indexes.
    pub(super) fn arn(&self, index: Option<&str>) -> &str {
        index.and_then(|name| self.index(name)).map_or(&self.arn, |index| &index.arn)
    }

    /// Reads a table description as `DescribeTable` gives it; `None` if it lacks what is needed
    /// here.
    pub(super) fn read(description: &[u8]) -> Option<TableInfo> {
        let told: Description = serde_json::from_slice(description).ok()?;
        let types: HashMap<String, KeyType> =
            told.attributes.into_iter().map(|attribute| (attribute.name, attribute.key_type)).collect();
        let on_demand = told.billing.is_some_and(|billing| billing.mode == "PAY_PER_REQUEST");
        let mode = |provisioned: Option<Provisioned>, maximum: Option<Maximum>| match provisioned {
            Some(Provisioned { read, write }) if !on_demand => Mode::Provisioned { read, write },
            _ => {
                let maximum = maximum.unwrap_or_default();
                let positive = |units: Option<i64>| units.and_then(|units| u64::try_from(units).ok());
                Mode::OnDemand { max_read: positive(maximum.read), max_write: positive(maximum.write) }
            }
        };
        let table_mode = mode(told.provisioned, told.maximum);
        let mut indexes = Vec::new();
        for index in told.indexes.unwrap_or_default() {
            indexes.push(IndexInfo {
                arn: index.arn.unwrap_or_else(|| format!("{}/index/{}", told.arn, index.name)),
                mode: if index.provisioned.is_none() && index.maximum.is_none() {
                    table_mode
                } else {
                    mode(index.provisioned, index.maximum)
                },
                key: key(index.key, &types)?,
                projection: projection(index.projection),
                id: ResourceId::default(),
                name: index.name.into(),
            });
        }
        let mut locals = Vec::new();
        for index in told.local_indexes.unwrap_or_default() {
            let (key, projection) = (key(index.key, &types)?, projection(index.projection));
            locals.push(LocalInfo { key, projection });
        }
        Some(TableInfo {
            name: told.name.into(),
            id: ResourceId::default(),
            incarnation: told.id.or_else(|| told.made.map(|made| made.to_string())).unwrap_or_default(),
            arn: told.arn,
            mode: table_mode,
            key: key(told.key, &types)?,
            indexes,
            locals,
        })
    }
}

fn key(elements: Vec<KeyElement>, types: &HashMap<String, KeyType>) -> Option<Key> {
    let mut key = Key { partition: Vec::new(), sort: Vec::new() };
    for element in elements {
        let key_type = *types.get(&element.name)?;
        let side = if element.role == "HASH" { &mut key.partition } else { &mut key.sort };
        side.push(AttributeDefinition { name: element.name, key_type });
    }
    (!key.partition.is_empty()).then_some(key)
}

fn projection(told: Option<Projected>) -> Projection {
    match told {
        Some(told) if told.kind != "ALL" => Projection::Keys(told.included.unwrap_or_default()),
        _ => Projection::All,
    }
}

#[derive(Deserialize)]
struct Projected {
    #[serde(rename = "ProjectionType", default)]
    kind: String,
    #[serde(rename = "NonKeyAttributes")]
    included: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Description {
    #[serde(rename = "TableName")]
    name: String,
    #[serde(rename = "TableId")]
    id: Option<String>,
    #[serde(rename = "CreationDateTime")]
    made: Option<f64>,
    #[serde(rename = "TableArn")]
    arn: String,
    #[serde(rename = "KeySchema")]
    key: Vec<KeyElement>,
    #[serde(rename = "AttributeDefinitions")]
    attributes: Vec<Attribute>,
    #[serde(rename = "BillingModeSummary")]
    billing: Option<Billing>,
    #[serde(rename = "ProvisionedThroughput")]
    provisioned: Option<Provisioned>,
    #[serde(rename = "OnDemandThroughput")]
    maximum: Option<Maximum>,
    #[serde(rename = "GlobalSecondaryIndexes")]
    indexes: Option<Vec<Index>>,
    #[serde(rename = "LocalSecondaryIndexes")]
    local_indexes: Option<Vec<Local>>,
}

#[derive(Deserialize)]
struct KeyElement {
    #[serde(rename = "AttributeName")]
    name: String,
    #[serde(rename = "KeyType")]
    role: String,
}

#[derive(Deserialize)]
struct Attribute {
    #[serde(rename = "AttributeName")]
    name: String,
    #[serde(rename = "AttributeType")]
    key_type: KeyType,
}

#[derive(Deserialize)]
struct Billing {
    #[serde(rename = "BillingMode")]
    mode: String,
}

#[derive(Deserialize)]
struct Provisioned {
    #[serde(rename = "ReadCapacityUnits")]
    read: u64,
    #[serde(rename = "WriteCapacityUnits")]
    write: u64,
}

/// `-1` stands for no maximum.
#[derive(Default, Deserialize)]
struct Maximum {
    #[serde(rename = "MaxReadRequestUnits")]
    read: Option<i64>,
    #[serde(rename = "MaxWriteRequestUnits")]
    write: Option<i64>,
}

#[derive(Deserialize)]
struct Local {
    #[serde(rename = "KeySchema")]
    key: Vec<KeyElement>,
    #[serde(rename = "Projection")]
    projection: Option<Projected>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(rename = "Projection")]
    projection: Option<Projected>,
    #[serde(rename = "IndexName")]
    name: String,
    #[serde(rename = "IndexArn")]
    arn: Option<String>,
    #[serde(rename = "KeySchema")]
    key: Vec<KeyElement>,
    #[serde(rename = "ProvisionedThroughput")]
    provisioned: Option<Provisioned>,
    #[serde(rename = "OnDemandThroughput")]
    maximum: Option<Maximum>,
}
