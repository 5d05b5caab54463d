//! Prepares the reshard of a value: compares the table, its indexes, its record and the rules.
//! Changes nothing.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::rules::attribute_to_spread;
use heatsink_control::{
    Announcer, Changer, DesiredLayout, Fencing, Record, Rules, State, claim, lost_registry,
};
use heatsink_dynamo::{AttributeDefinition, KeyType, Operation};
use heatsink_env::Env;
use heatsink_layout::{MAX_PARTITION_KEY, MAX_VALUE_BYTES, MAX_VALUE_LAYOUTS, OfIndex, ValueLayout};
use heatsink_store::Store;
use serde_json::json;

use super::{ValueReshard, plain};
use crate::eligible;
use crate::error::{WorkerError, usage};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ValueAsked<'a> {
    /// The table.
    pub table: &'a str,
    /// The index.
    pub index: &'a str,
    /// The value of its partition key; binary in base64.
    pub value: &'a str,
    /// Over how many shards it is to be spread; at least 1.
    pub shards: u16,
}

impl ValueReshard {
    /// Checks whether a value of an index can get so many shards. Changes nothing.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not, and what to do.
    pub fn prepare<'a>(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &'a Rules,
        asked: ValueAsked<'a>,
    ) -> BoxFuture<'a, Result<Self, WorkerError>> {
        async move {
            let registry = rules.fence().registry_in(store, env);
            let described = eligible::usable(&registry, asked.table).await?;
            let record = registry.read(&described.schema.id).await?;
            let (index, walked, may_miss) = index(&registry, &described, record.as_ref(), asked).await?;
            let value = bytes(asked, &index.attribute)?;
            match &record {
                None => {
                    unnamed(&registry, &described).await?;
                    if let Some(problem) = lost_registry::refusal(&registry, &described).await? {
                        return usage(problem);
                    }
                }
                Some(record) if record.state != State::Active => {
                    return usage(format!(
                        "Table {} is being adopted, deleted or recorded; wait until that is done",
                        asked.table
                    ));
                }
                Some(_) => {}
            }
            let busy = busy(record.as_ref(), &index, &value, asked);
            under_no_rule(rules, &described, record.as_ref(), &index)?;
            let values = record.as_ref().map(|record| &*record.values).unwrap_or_default();
            room(values, &index, &value, asked)?;
            if !claim::is_possible(&registry).await? {
                return usage(format!(
                    "The store of table {} has no TransactWriteItems, without which a run that was killed could still change items after it was run again",
                    asked.table
                ));
            }
            let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "reshard"));
            let (announcer, shards) = (Announcer::Beside(Box::new(changer)), asked.shards.max(1));
            Ok(ValueReshard { registry, announcer, described, record, index, value, shards, walked, may_miss, busy })
        }
        .boxed()
    }
}

/// The index, the one in which the value's items are found, and whether that may miss some.
async fn index(
    registry: &Registry,
    described: &Described,
    record: Option<&Record>,
    asked: ValueAsked<'_>,
) -> Result<(OfIndex, String, bool), WorkerError> {
    let schema = &described.schema;
    let attribute = match attribute_to_spread(asked.index, schema) {
        Ok(attribute) => attribute.clone(),
        Err(reason) => {
            let on_record =
                record.and_then(|record| record.values.iter().find(|one| one.index.name == asked.index));
            let again = on_record.map_or_else(String::new, |one| {
                format!(
                    ". Values of it are on record, and their items are found in an index: give the table one with the partition key {}, under any name, and name \
                     that",
                    one.index.attribute.name
                )
            });
            return usage(format!(
                "No value of it can be resharded in table {}: {reason}{again}",
                asked.table
            ));
        }
    };
    let of_attribute = schema
        .indexes
        .iter()
        .filter(|index| !index.local && index.key.partition.iter().eq(std::iter::once(&attribute)));
    let named = of_attribute.clone().find(|index| index.name == asked.index);
    // An index without a sort key holds every item that has the attribute.
    let whole = of_attribute.clone().find(|index| index.key.sort.is_empty());
    let Some(walked) = whole.or(named) else {
        return usage(format!(
            "The partition key of the index {0} has several attributes, and a value of one of them cannot be read by itself. Spread it by a rule (`index = {0:?}`) \
             and `heatsink adopt {1}`",
            asked.index, asked.table
        ));
    };
    let answer = registry.call(Operation::DescribeTable, json!({ "TableName": asked.table })).await?;
    let found = answer["Table"]["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
    let status = found
        .filter(|index| index["IndexName"] == walked.name.as_str())
        .find_map(|index| index["IndexStatus"].as_str());
    if let Some(status) = status.filter(|status| *status != "ACTIVE") {
        return usage(format!("The index {} is {status}; wait until it is ACTIVE", walked.name));
    }
    let may_miss = !walked.key.sort.is_empty();
    Ok((OfIndex { name: asked.index.to_owned(), attribute }, walked.name.clone(), may_miss))
}

/// The value's bytes.
fn bytes(asked: ValueAsked<'_>, attribute: &AttributeDefinition) -> Result<Vec<u8>, WorkerError> {
    let value = match attribute.key_type {
        KeyType::B => BASE64.decode(asked.value).map_err(|_| {
            WorkerError::Usage(format!("{} is binary: give the value in base64", attribute.name))
        })?,
        _ => asked.value.as_bytes().to_vec(),
    };
    if value.is_empty() {
        return usage("An index holds no empty value".to_owned());
    }
    let longest = plain(&value, asked.shards.max(1) - 1).len();
    if longest > MAX_PARTITION_KEY {
        return usage(format!(
            "The value has {} bytes, and with its shard suffix {longest}, of at most {MAX_PARTITION_KEY}",
            value.len()
        ));
    }
    Ok(value)
}

/// That no table of that name is on record, where this one is not.
async fn unnamed(registry: &Registry, described: &Described) -> Result<(), WorkerError> {
    let schema = &described.schema;
    match eligible::named_before(registry, &schema.name, &schema.id).await? {
        Some(problem) => usage(problem),
        None => Ok(()),
    }
}

/// That no rule spreads the attribute, or waits to lay the table out.
fn under_no_rule(
    rules: &Rules,
    described: &Described,
    record: Option<&Record>,
    index: &OfIndex,
) -> Result<(), WorkerError> {
    let (schema, attribute) = (&described.schema, &index.attribute.name);
    let desired = match record {
        Some(record) => rules.desired_layout_recorded(schema, &record.layouts).0,
        None => rules.desired_layout(schema),
    };
    let by_rule = |from: &str| {
        usage(format!(
            "{attribute} is spread by {from}, and its values have the shards of rules: change `shards` in the rule, or give it one with `keys`, and run `heatsink \
             adopt {}`",
            schema.name
        ))
    };
    if record.is_some_and(|record| !record.layouts.of_attribute(attribute).is_empty()) {
        return by_rule("a rule on record");
    }
    match desired {
        DesiredLayout::Sharded(desired) if !desired.of_attribute(attribute).is_empty() => by_rule("a rule"),
        // A record without what a rule says would contradict gateways that have the rule, or leave
        // it waiting.
        DesiredLayout::Sharded(_) if record.is_none() => usage(format!(
            "Table {0} has rules, and is not on record with them yet. If it is empty, one request through a gateway that has them records it; otherwise run \
             `heatsink adopt {0}`, or take the rules out",
            schema.name
        )),
        DesiredLayout::Impossible(reason) => usage(reason),
        DesiredLayout::Unsharded => usage(format!(
            "The rules say that every key of table {} stays whole, which a value on record would contradict: take that rule out",
            schema.name
        )),
        _ => Ok(()),
    }
}

/// Another value that is on its way.
fn busy(record: Option<&Record>, index: &OfIndex, value: &[u8], asked: ValueAsked<'_>) -> Option<String> {
    let is_other = |one: &&ValueLayout| one.value != value || one.index.attribute != index.attribute;
    let mut others = record?.values.iter().filter(is_other);
    let other = others.find(|one| one.migration.is_some())?;
    Some(format!(
        "The value {:?} of the index {} is being resharded, and one value of a table goes at a time. Let that end, or go on with it if it was interrupted: \
         `heatsink reshard status {}`",
        key_text(&other.value, other.index.attribute.key_type),
        other.index.name,
        asked.table
    ))
}

/// That one more value can be on record, and is not the stored form of another one.
fn room(
    values: &[ValueLayout],
    index: &OfIndex,
    value: &[u8],
    asked: ValueAsked<'_>,
) -> Result<(), WorkerError> {
    if values.iter().any(|one| one.index.attribute == index.attribute && one.value == value) {
        return Ok(());
    }
    let back = format!(
        "Bring one back first, with --shards 1: `heatsink reshard status {}` lists them. A rule has no such bound",
        asked.table
    );
    if values.len() >= MAX_VALUE_LAYOUTS {
        return usage(format!(
            "{MAX_VALUE_LAYOUTS} values of indexes of table {} are on record, the most that can be. {back}",
            asked.table
        ));
    }
    let other = &index.attribute;
    let same_name = |one: &&ValueLayout| one.index.attribute.name == other.name;
    if let Some(one) = values.iter().find(same_name).filter(|one| one.index.attribute != *other) {
        return usage(format!(
            "The value {:?} of the attribute {} is on record, as one of another type: that index is gone. {back}",
            key_text(&one.value, one.index.attribute.key_type),
            other.name
        ));
    }
    // As they are written on record, where a control character takes six bytes.
    let written = |value: &[u8]| json!(String::from_utf8_lossy(value)).to_string().len();
    let bytes: usize = values.iter().map(|one| written(&one.value)).sum();
    if bytes + written(value) > MAX_VALUE_BYTES {
        return usage(format!(
            "The values of indexes of table {} on record take {bytes} bytes together, and {MAX_VALUE_BYTES} is the most. {back}",
            asked.table
        ));
    }
    let shard_of = values
        .iter()
        .filter(|one| one.index.attribute == index.attribute)
        .find(|one| (1..one.reserved).any(|shard| plain(&one.value, shard) == value));
    match shard_of {
        None => Ok(()),
        Some(one) => usage(format!(
            "{:?} is a shard of the value {:?}, which is on record: reshard that one",
            asked.value,
            key_text(&one.value, one.index.attribute.key_type)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(key_type: KeyType) -> OfIndex {
        OfIndex {
            name: "kinds".to_owned(),
            attribute: AttributeDefinition { name: "kind".to_owned(), key_type },
        }
    }

    fn on_record(value: &[u8]) -> ValueLayout {
        let (value, former) = (value.to_vec(), Vec::new());
        ValueLayout { index: index(KeyType::S), value, shards: 4, migration: None, former, reserved: 4 }
    }

    fn refusal(values: &[ValueLayout], key_type: KeyType, value: &[u8]) -> Option<String> {
        let asked = ValueAsked { table: "Book", index: "kinds", value: "x", shards: 4 };
        room(values, &index(key_type), value, asked).err().map(|error| error.to_string())
    }

    #[test]
    fn an_attribute_has_values_of_one_type_on_record() {
        let values = [on_record(b"open")];
        assert_eq!(refusal(&values, KeyType::S, b"done"), None);
        let why = refusal(&values, KeyType::B, b"done").unwrap();
        assert!(why.contains("another type") && why.contains("\"open\""), "{why}");
    }

    #[test]
    fn values_are_as_long_as_they_are_written() {
        let values: Vec<_> =
            (0..90_u8).map(|nth| on_record(&[&[nth], [1; 1_000].as_slice()].concat())).collect();
        assert!(values.iter().map(|one| one.value.len()).sum::<usize>() < MAX_VALUE_BYTES);
        let why = refusal(&values, KeyType::S, b"open").unwrap();
        assert!(why.contains("bytes together"), "{why}");
    }

    #[test]
    fn a_shard_of_a_value_on_record_is_none() {
        let values = [on_record(b"open")];
        assert!(refusal(&values, KeyType::S, b"open#~3").is_some());
        assert_eq!(refusal(&values, KeyType::S, b"open#~4"), None);
    }
}
