//! Table schemas out of what DynamoDB says and is told.

use serde::Deserialize;

use super::{AttributeDefinition, IndexKeySchema, IndexSchema, KeySchema, KeyType, TableSchema};
use crate::Error;

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "Table", alias = "TableDescription")]
    table: Description,
}

/// The members that a `CreateTable` request and a `TableDescription` share, and the two ids of the
/// latter.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    table_name: String,
    table_id: Option<String>,
    creation_date_time: Option<serde_json::Number>,
    #[serde(default)]
    attribute_definitions: Option<Vec<Definition>>,
    key_schema: Vec<KeyElement>,
    #[serde(default)]
    local_secondary_indexes: Option<Vec<Index>>,
    #[serde(default)]
    global_secondary_indexes: Option<Vec<Index>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Definition {
    attribute_name: String,
    attribute_type: KeyType,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyElement {
    attribute_name: String,
    key_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Index {
    index_name: String,
    key_schema: Vec<KeyElement>,
    #[serde(default)]
    projection: Option<Projected>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Projected {
    projection_type: Option<String>,
    non_key_attributes: Option<Vec<String>>,
}

impl TableSchema {
    /// Reads the answer of `DescribeTable` (or of `CreateTable`, `UpdateTable`, `DeleteTable`).
    ///
    /// # Errors
    /// `InternalServerError` for what is not such an answer.
    pub fn from_description(answer: &[u8]) -> Result<TableSchema, Error> {
        let answer: Answer = serde_json::from_slice(answer).map_err(|error| {
            Error::internal(format!("The store's table description cannot be read: {error}"))
        })?;
        answer
            .table
            .schema()
            .map_err(|why| Error::internal(format!("The store's table description cannot be read: {why}")))
    }

    /// Reads the body of a `CreateTable` request. The id is empty: the store gives it.
    ///
    /// # Errors
    /// `ValidationException` for what defines no key.
    pub fn from_create(request: &[u8]) -> Result<TableSchema, Error> {
        let request: Description = serde_json::from_slice(request)
            .map_err(|error| Error::validation(format!("The table definition cannot be read: {error}")))?;
        request.schema().map_err(Error::validation)
    }
}

impl Description {
    fn schema(self) -> Result<TableSchema, String> {
        let definitions = self.attribute_definitions.unwrap_or_default();
        let local = self.local_secondary_indexes.unwrap_or_default();
        let global = self.global_secondary_indexes.unwrap_or_default();
        let id = self.table_id.or_else(|| self.creation_date_time.map(|time| time.to_string()));
        let mut schema = TableSchema {
            name: self.table_name,
            id: id.unwrap_or_default(),
            key: single(&self.key_schema, &definitions)?,
            indexes: Vec::with_capacity(local.len() + global.len()),
        };
        for index in local {
            let key = single(&index.key_schema, &definitions)?;
            schema.indexes.push(index.schema(true, key.into()));
        }
        for index in global {
            let key = key(&index.key_schema, &definitions)?;
            schema.indexes.push(index.schema(false, key));
        }
        Ok(schema)
    }
}

impl Index {
    fn schema(self, local: bool, key: IndexKeySchema) -> IndexSchema {
        let projected =
            self.projection.unwrap_or(Projected { projection_type: None, non_key_attributes: None });
        IndexSchema {
            key,
            name: self.index_name,
            local,
            projects_all: projected.projection_type.as_deref() == Some("ALL"),
            included: projected.non_key_attributes.unwrap_or_default(),
        }
    }
}

/// The key of a table or a local index: at most one attribute of each kind.
fn single(elements: &[KeyElement], definitions: &[Definition]) -> Result<KeySchema, String> {
    let mut key = key(elements, definitions)?;
    if key.attributes().is_composite() {
        return Err("only a global index can have several HASH or RANGE attributes".to_owned());
    }
    let partition = key.partition.pop().ok_or(NO_PARTITION)?;
    Ok(KeySchema { partition, sort: key.sort.pop() })
}

const NO_PARTITION: &str = "the key has no HASH attribute";

fn key(elements: &[KeyElement], definitions: &[Definition]) -> Result<IndexKeySchema, String> {
    let find = |kind: &str| {
        let of_kind = elements.iter().filter(|element| element.key_type == kind);
        let defined = of_kind.map(|element| {
            let defined = definitions.iter().find(|one| one.attribute_name == element.attribute_name);
            let defined = defined
                .ok_or_else(|| format!("the key attribute {} has no definition", element.attribute_name))?;
            Ok(AttributeDefinition { name: defined.attribute_name.clone(), key_type: defined.attribute_type })
        });
        defined.collect::<Result<Vec<_>, String>>()
    };
    let key = IndexKeySchema { partition: find("HASH")?, sort: find("RANGE")? };
    if key.partition.is_empty() { Err(NO_PARTITION.to_owned()) } else { Ok(key) }
}
