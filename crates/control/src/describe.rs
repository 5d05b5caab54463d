//! What the store says of a table: `DescribeTable`'s description, read into a schema and a status.
//!
//! `CreateTable`'s request has the same members for keys and indexes, so it is read here too, before a table exists.

use heatsink_dynamo::{AttributeDefinition, Error, IndexSchema, KeySchema, KeyType, TableSchema};
use serde::Deserialize;
use serde_json::Value as Json;

/// A table as the store described it.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub schema: TableSchema,
    /// `ACTIVE`, `CREATING`, `DELETING`, …
    pub status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Description {
    table_name: String,
    #[serde(default)]
    table_id: Option<String>,
    /// A number of seconds; some stores send it as text.
    #[serde(default)]
    creation_date_time: Option<Json>,
    #[serde(default)]
    table_status: String,
    #[serde(default)]
    attribute_definitions: Vec<Definition>,
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
    attribute_type: String,
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
    projection: Option<Projection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Projection {
    #[serde(default)]
    projection_type: Option<String>,
    #[serde(default)]
    non_key_attributes: Option<Vec<String>>,
}

/// Reads an answer of `DescribeTable` (member `Table`), or of `CreateTable`, `UpdateTable`, `DeleteTable`
/// (`TableDescription`).
///
/// # Errors
/// `InternalServerError` when the store's answer is not such a description.
pub(crate) fn answer(body: &[u8]) -> Result<Described, Error> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Error::internal(format!("The store's description of a table cannot be read: {why}"))
    };
    let mut body: Json = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let table = ["Table", "TableDescription"].iter().find_map(|member| body.get_mut(member).map(Json::take));
    let table = table.ok_or_else(|| unreadable(&"it has neither Table nor TableDescription"))?;
    let description: Description = serde_json::from_value(table).map_err(|error| unreadable(&error))?;
    let status = description.table_status.clone();
    let schema = schema(description).ok_or_else(|| unreadable(&"its key schema is not one of DynamoDB's"))?;
    if schema.id.is_empty() {
        return Err(unreadable(&"it has neither TableId nor CreationDateTime"));
    }
    Ok(Described { schema, status })
}

/// Reads a `CreateTable` request. `None` where it is malformed, which the store answers for itself.
pub(crate) fn request(body: &[u8]) -> Option<TableSchema> {
    schema(serde_json::from_slice(body).ok()?)
}

fn schema(description: Description) -> Option<TableSchema> {
    let Description {
        attribute_definitions: definitions,
        local_secondary_indexes: local,
        global_secondary_indexes: global,
        ..
    } = description;
    let created =
        description.creation_date_time.map(|at| at.as_str().map_or_else(|| at.to_string(), str::to_owned));
    let index = |local: bool| {
        let definitions = &definitions;
        move |index: Index| {
            let projection =
                index.projection.unwrap_or(Projection { projection_type: None, non_key_attributes: None });
            Some(IndexSchema {
                name: index.index_name,
                key: key(&index.key_schema, definitions)?,
                local,
                projects_all: projection.projection_type.as_deref() == Some("ALL"),
                included: projection.non_key_attributes.unwrap_or_default(),
            })
        }
    };
    let local = local.unwrap_or_default().into_iter().map(index(true));
    let indexes = local.chain(global.unwrap_or_default().into_iter().map(index(false)));
    Some(TableSchema {
        name: description.table_name,
        id: description.table_id.filter(|id| !id.is_empty()).or(created).unwrap_or_default(),
        key: key(&description.key_schema, &definitions)?,
        indexes: indexes.collect::<Option<Vec<_>>>()?,
    })
}

fn key(elements: &[KeyElement], definitions: &[Definition]) -> Option<KeySchema> {
    let attribute = |role: &str| {
        let name = &elements.iter().find(|element| element.key_type == role)?.attribute_name;
        let definition = definitions.iter().find(|definition| definition.attribute_name == *name)?;
        let key_type = match definition.attribute_type.as_str() {
            "S" => KeyType::S,
            "N" => KeyType::N,
            "B" => KeyType::B,
            _ => return None,
        };
        Some(AttributeDefinition { name: name.clone(), key_type })
    };
    let sort = attribute("RANGE");
    if sort.is_none() && elements.iter().any(|element| element.key_type == "RANGE") {
        return None;
    }
    Some(KeySchema { partition: attribute("HASH")?, sort })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = r#""AttributeDefinitions":[{"AttributeName":"a","AttributeType":"S"},{"AttributeName":"b","AttributeType":"N"}],
        "KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"b","KeyType":"RANGE"}],
        "GlobalSecondaryIndexes":[{"IndexName":"g","KeySchema":[{"AttributeName":"b","KeyType":"HASH"}],
            "Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["c"]}}],
        "LocalSecondaryIndexes":null"#;

    #[test]
    fn a_description_and_a_request_have_the_same_keys() {
        let body =
            format!(r#"{{"Table":{{"TableName":"t","TableId":"1-2","TableStatus":"ACTIVE",{KEYS}}}}}"#);
        let described = answer(body.as_bytes()).unwrap();
        assert_eq!((described.status.as_str(), described.schema.id.as_str()), ("ACTIVE", "1-2"));
        assert_eq!(described.schema.indexes[0].included, ["c"]);
        let requested = request(format!(r#"{{"TableName":"t",{KEYS}}}"#).as_bytes()).unwrap();
        assert_eq!((requested.key, requested.indexes), (described.schema.key, described.schema.indexes));
    }

    #[test]
    fn a_store_without_ids_gives_its_creation_time() {
        let body =
            format!(r#"{{"TableDescription":{{"TableName":"t","CreationDateTime":1500000000.25,{KEYS}}}}}"#);
        assert_eq!(answer(body.as_bytes()).unwrap().schema.id, "1500000000.25");
        let body = format!(r#"{{"Table":{{"TableName":"t",{KEYS}}}}}"#);
        assert!(answer(body.as_bytes()).is_err());
    }
}
