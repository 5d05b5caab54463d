//! Checks whether a rule for the partition key of a global index can hold for a table.

use heatsink_dynamo::{AttributeDefinition, IndexSchema, KeyType, TableSchema};
use heatsink_layout::OfIndex;

use super::rule::{Rule, Spread};

/// The index of a rule, in a table that it can hold for.
pub(super) fn of(rule: &Rule, schema: &TableSchema) -> Option<OfIndex> {
    let Spread::Sharded { .. } = rule.spread else { return None };
    let name = rule.index.as_ref()?;
    Some(OfIndex { name: name.clone(), attribute: attribute_to_spread(name, schema).ok()?.clone() })
}

/// Whether the partition key of an index can be spread, or why not.
pub(super) fn fits(name: &str, schema: &TableSchema) -> Result<(), String> {
    attribute_to_spread(name, schema).map(drop)
}

/// The attribute of an index's partition key that is spread: of several the first that can be.
///
/// # Errors
/// Why none can be, in words.
pub fn attribute_to_spread<'a>(
    name: &str,
    schema: &'a TableSchema,
) -> Result<&'a AttributeDefinition, String> {
    let Some(index) = schema.index(name) else { return Err(format!("it has no index {name}")) };
    if index.local {
        return Err(format!(
            "the index {name} is local: its items lie with the table's, so spread the table's own key instead (without `index`)"
        ));
    }
    let mut reasons = Vec::new();
    for attribute in &index.key.partition {
        match unfit(attribute, index, schema) {
            None => return Ok(attribute),
            Some(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

/// Why an attribute of an index's partition key cannot be spread.
fn unfit(attribute: &AttributeDefinition, index: &IndexSchema, schema: &TableSchema) -> Option<String> {
    let name = &index.name;
    if schema.key.partition.name == attribute.name {
        return Some(format!(
            "the partition key {} of the index {name} is the table's own: spread it there (without `index`)",
            attribute.name
        ));
    }
    if schema.key.has(&attribute.name) {
        return Some(format!(
            "the partition key {} of the index {name} is the table's sort key, which Queries of the table need as it is; give the \
             index an attribute of its own, with the same value",
            attribute.name
        ));
    }
    if attribute.key_type == KeyType::N {
        return Some(format!(
            "the partition key {} of the index {name} is a number, and a number has no room for a shard",
            attribute.name
        ));
    }
    let other = schema.indexes.iter().find(|other| other.key.sort_has(&attribute.name))?;
    Some(format!(
        "the partition key {} of the index {name} is the sort key of the index {}, whose order shard suffixes would break; give \
         one of them an attribute of its own",
        attribute.name, other.name
    ))
}
