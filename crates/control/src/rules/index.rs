//! Checks whether a rule for the partition key of a global index can hold for a table.

use heatsink_dynamo::{KeyType, TableSchema};
use heatsink_layout::OfIndex;

use super::{Rule, Spread};

/// The index of a rule, in a table that it can hold for.
pub(super) fn of(rule: &Rule, schema: &TableSchema) -> Option<OfIndex> {
    let Spread::Sharded { .. } = rule.spread else { return None };
    let index = schema.index(rule.index.as_ref()?)?;
    Some(OfIndex { name: index.name.clone(), attribute: index.key.partition.clone() })
}

/// Whether the partition key of an index can be spread, or why not.
pub(super) fn fits(name: &str, schema: &TableSchema) -> Result<(), String> {
    if schema.composite_index(name).is_some() {
        return Err(format!(
            "the index {name} has several attributes of one kind in its key, and a rule cannot spread such a key yet"
        ));
    }
    let Some(index) = schema.index(name) else { return Err(format!("it has no index {name}")) };
    if index.local {
        return Err(format!(
            "the index {name} is local: its items lie with the table's, so spread the table's own key instead (without `index`)"
        ));
    }
    let attribute = &index.key.partition;
    if schema.key.partition.name == attribute.name {
        return Err(format!(
            "the partition key {} of the index {name} is the table's own: spread it there (without `index`)",
            attribute.name
        ));
    }
    if schema.key.has(&attribute.name) {
        return Err(format!(
            "the partition key {} of the index {name} is the table's sort key, which Queries of the table need as it is; give the \
             index an attribute of its own, with the same value",
            attribute.name
        ));
    }
    if attribute.key_type == KeyType::N {
        return Err(format!(
            "the partition key {} of the index {name} is a number, and a number has no room for a shard",
            attribute.name
        ));
    }
    let sorts = |other: &&heatsink_dynamo::IndexSchema| {
        other.key.sort.as_ref().is_some_and(|sort| sort.name == attribute.name)
    };
    if let Some(other) = schema.composite_indexes.iter().find(|other| other.has(&attribute.name)) {
        return Err(format!(
            "the partition key {} of the index {name} is also in the key of the index {}, which has several attributes of one kind and \
             could not be read any more; give one of them an attribute of its own",
            attribute.name, other.name
        ));
    }
    match schema.indexes.iter().find(sorts) {
        Some(other) => Err(format!(
            "the partition key {} of the index {name} is the sort key of the index {}, whose order shard suffixes would break; give \
             one of them an attribute of its own",
            attribute.name, other.name
        )),
        None => Ok(()),
    }
}
