//! The error for a table that holds items and has a rule, but no record.
//!
//! Keys that look like shards are a sign that the table is sharded already: restored from a backup,
//! or created again and filled from one. Adopting such a table again would turn its shards into
//! logical keys of their own.
//!
//! Not here: other problems of the table (`adopt`, which reads all of it).

use std::sync::Arc;

use heatsink_dynamo::{Error, KeyValue, Operation, TableSchema};
use heatsink_layout::{Table, TableLayouts};
use serde_json::json;

use crate::registry::Registry;

/// The number of items that are read.
const LOOKED_AT: u32 = 100;

/// The reason why the table is refused, and what to do.
///
/// # Errors
/// The store's.
pub(crate) async fn refusal(
    registry: &Registry,
    schema: &TableSchema,
    layouts: &TableLayouts,
) -> Result<String, Error> {
    let name = &schema.name;
    let refused = format!(
        "Table {name} holds items and is not on record as sharded, so the rules cannot hold for it ({layouts})."
    );
    Ok(match like_a_shard(registry, schema, layouts).await? {
        None => format!(
            "{refused} Bring its items under the rules with `heatsink adopt {name}`, or take the table out of the rules"
        ),
        Some(key) => format!(
            "{refused} Some of its keys are written like shards, such as {key:?}. If it is a copy of a sharded table, or holds the items of one, put \
             it on record with `heatsink adopt {name} --as-it-lies`, or with the record of the original with `heatsink adopt {name} --records-from \
             ID`. If clients wrote these keys, bring its items under the rules with `heatsink adopt {name}`. Or take the table out of the rules"
        ),
    })
}

/// A key among the first items that looks like a shard.
async fn like_a_shard(
    registry: &Registry,
    schema: &TableSchema,
    layouts: &TableLayouts,
) -> Result<Option<String>, Error> {
    let table = Table::new(schema.clone(), Arc::new(layouts.clone()));
    let partition = &schema.key.partition;
    let body = json!({
        "TableName": schema.name, "Limit": LOOKED_AT, "ConsistentRead": true, "ProjectionExpression": "#k",
        "ExpressionAttributeNames": { "#k": partition.name },
    });
    let page = registry.call(Operation::Scan, body).await?;
    let items = page["Items"].as_array().into_iter().flatten();
    let mut keys = items.filter_map(|item| {
        let value = item.get(&partition.name)?.to_string();
        let key = KeyValue::read(value.as_bytes(), partition).ok()?;
        Some(key.canonical_bytes().into_owned())
    });
    Ok(keys.find(|key| table.is_reserved(key)).map(|key| String::from_utf8_lossy(&key).into_owned()))
}
