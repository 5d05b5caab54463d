//! Checks whether a rule can hold for a table: its key, its sort key, its indexes.
//!
//! Not here: the partition key of an index (`index`).

use heatsink_dynamo::{KeyType, TableSchema};
use heatsink_layout::{Hash, Layout};

use super::index;
use super::rule::{Rule, Spread};

/// Why a rule cannot hold for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// Because of its primary key, which never changes.
    Key(String),
    /// Because of its indexes, which can be added and removed while the table is in use.
    Indexes(String),
}

impl Unfit {
    /// The reason, as text.
    pub fn reason(&self) -> &str {
        match self {
            Unfit::Key(reason) | Unfit::Indexes(reason) => reason,
        }
    }
}

impl Rule {
    /// Whether the rule can hold for a table, or why not.
    pub(super) fn fits(&self, schema: &TableSchema) -> Result<(), Unfit> {
        let Spread::Sharded { layout, part_of } = &self.spread else { return Ok(()) };
        if let Some(index) = &self.index {
            return index::fits(index, schema).map_err(Unfit::Indexes);
        }
        match layout.counter_attributes() {
            Some(attributes) => {
                self.fits_key(layout, part_of.as_deref(), schema).map_err(Unfit::Key)?;
                counter_fits(attributes, schema)
            }
            None => self.fits_key(layout, part_of.as_deref(), schema).map_err(Unfit::Key),
        }
    }

    /// Whether it can hold for the table's own key, which never changes.
    fn fits_key(&self, layout: &Layout, part_of: Option<&str>, schema: &TableSchema) -> Result<(), String> {
        let partition = &schema.key.partition;
        if partition.key_type == KeyType::N && (layout.time().is_some() || layout.template().is_some()) {
            let what = if layout.template().is_some() { "template" } else { "bucket" };
            return Err(format!(
                "its partition key {} is a number, which has room for a shard and not for a {what}",
                partition.name
            ));
        }
        if let Some(attributes) = layout.counter_attributes() {
            return counter_key_fits(attributes, schema);
        }
        let Some(sort) = &schema.key.sort else {
            return Err("it has no sort key, so every key holds one item and there is nothing to spread; a table with a sort key can \
                        hold that item's parts as several items"
                .to_owned());
        };
        if let Some(points) = layout.split_points().filter(|points| points.key_type() != sort.key_type) {
            return Err(format!(
                "`split_at` names sort keys of type {}, and the sort key {} is of type {}",
                points.key_type().name(),
                sort.name,
                sort.key_type.name()
            ));
        }
        if let Some(attribute) = part_of {
            if attribute != sort.name {
                return Err(format!(
                    "`by` names the attribute {attribute}, but the table's sort key is {}; an attribute outside the primary key \
                     cannot decide: a request by primary key could not be routed. Where other code took the shard from it, strategy = \"template\" with \
                     hash = \"random\" finds items in any shard",
                    sort.name
                ));
            }
            if sort.key_type != KeyType::S {
                return Err(format!(
                    "`by` takes a part of the sort key {}, which is not a string",
                    sort.name
                ));
            }
        }
        let of_text = [Hash::Java, Hash::JavaAbs, Hash::JavaMask, Hash::JavaObjects].contains(&layout.hash);
        if of_text && sort.key_type == KeyType::B {
            return Err(format!(
                "hash = \"{}\" is of text, and the sort key {} is binary",
                layout.hash.name(),
                sort.name
            ));
        }
        if let Some(time) = layout.time() {
            if sort.key_type == KeyType::B {
                return Err(format!(
                    "the bucket comes from the time in the sort key, and {} is binary",
                    sort.name
                ));
            }
            if sort.key_type == KeyType::N && !time.prefix.is_empty() {
                return Err(format!("`time.prefix` is for string sort keys, and {} is a number", sort.name));
            }
        }
        Ok(())
    }
}

/// Whether keys of a table can be counters of those attributes, without a rule; otherwise why not.
///
/// # Errors
/// The reason, in words.
pub fn can_count(attributes: &[String], schema: &TableSchema) -> Result<(), String> {
    counter_key_fits(attributes, schema)?;
    counter_fits(attributes, schema).map_err(|unfit| unfit.reason().to_owned())
}

fn counter_key_fits(attributes: &[String], schema: &TableSchema) -> Result<(), String> {
    match attributes.iter().find(|name| schema.key.has(name)) {
        Some(name) => Err(format!("{name} is a key attribute, and a key cannot be added to")),
        None => Ok(()),
    }
}

/// Whether the indexes of a table allow counters of those attributes, or why not.
fn counter_fits(attributes: &[String], schema: &TableSchema) -> Result<(), Unfit> {
    for index in &schema.indexes {
        let (key, index) = (&index.key, &index.name);
        if let Some(name) = attributes.iter().find(|name| key.has(name)) {
            return Err(Unfit::Indexes(format!(
                "{name} is a key of the index {index}, which would hold the parts of each counter and not their sum; leave {name} out of \
                 `attributes`, or drop the index"
            )));
        }
        if key.names().all(|name| schema.key.has(name)) {
            return Err(Unfit::Indexes(format!(
                "the index {index} is made of the table's own key attributes, so it would hold every counter once for each shard; drop \
                 the index, or give it a key that only whole items have"
            )));
        }
    }
    Ok(())
}
