//! Which keys, or values of an index, a command is for: those that it names, those of a file, or
//! those that begin in some way.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::rules::attribute_to_spread;
use heatsink_dynamo::{AttributeDefinition, KeyType, Operation};
use heatsink_layout::{MAX_VALUE_LAYOUTS, Table, number_codec};
use heatsink_workers::TableContext;
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use super::args::Start;
use super::opened::Opened;
use super::told::unread;
use crate::cli::open::not_answered;
use crate::cli::progress::bar;
use crate::exit::{Exit, in_words};
use crate::output::Output;

/// The most keys of one command.
const MOST_KEYS: usize = 1_000;

/// The most items whose keys are read to find those that begin in some way.
const MOST_ITEMS: u64 = 1_000_000;

/// The keys of a command, and how many items were read to find them.
pub(super) struct Keys {
    pub keys: Vec<Vec<u8>>,
    pub read: Option<u64>,
}

/// The values of an index of a command, as people write them, and how many items were read to find
/// them.
pub(super) struct Values {
    pub values: Vec<String>,
    pub read: Option<u64>,
}

/// Refuses more keys than one command is for.
pub(super) fn bounded(keys: usize, table: &str) -> Result<(), Exit> {
    match keys <= MOST_KEYS {
        true => Ok(()),
        false => Err(Exit::usage(format!(
            "{keys} keys of table {table} are meant, and one command is for {MOST_KEYS} at most: name them in files, with --file"
        ))),
    }
}

/// The bytes of a key as people write it.
pub(super) fn bytes(context: &TableContext, key: &str) -> Result<Vec<u8>, Exit> {
    attribute_bytes(&context.table().key.partition, key)
}

fn attribute_bytes(attribute: &AttributeDefinition, key: &str) -> Result<Vec<u8>, Exit> {
    match attribute.key_type {
        KeyType::B => STANDARD.decode(key).map_err(|_| {
            Exit::usage(format!("the key {} is binary: give {key:?} in base64", attribute.name))
        }),
        KeyType::N => {
            let number = number_codec::canonical(key).map(|number| number.into_owned().into_bytes());
            number.ok_or_else(|| {
                Exit::usage(format!("the key {} is a number, and {key:?} is none", attribute.name))
            })
        }
        KeyType::S => Ok(key.as_bytes().to_vec()),
    }
}

/// Whether a person means that key by this text: a number has several spellings.
pub(super) fn means(text: &str, key: &[u8], key_type: KeyType) -> bool {
    let is_number = || number_codec::canonical(text).is_some_and(|number| number.as_bytes() == key);
    text == key_text(key, key_type) || key_type == KeyType::N && is_number()
}

/// The keys that `start` names.
pub(super) async fn named(opened: &Opened, context: &TableContext, start: &Start) -> Result<Keys, Exit> {
    if !start.key.is_empty() {
        let named: BTreeSet<&String> = start.key.iter().collect();
        bounded(named.len(), &start.table)?;
        let keys: BTreeSet<_> = named.into_iter().map(|key| bytes(context, key)).collect::<Result<_, _>>()?;
        let keys = keys.into_iter().collect();
        return Ok(Keys { keys, read: None });
    }
    if let Some(prefix) = &start.prefix {
        if context.key_type() == KeyType::N {
            return Err(Exit::usage(format!(
                "--prefix: the partition keys of table {} are numbers, which begin with nothing: name them, or a file with --file",
                start.table
            )));
        }
        return beginning(opened, context, &bytes(context, prefix)?, start.place.output).await;
    }
    let lines = lines(start)?;
    bounded(lines.len(), &start.table)?;
    // One number can be written in several ways.
    let keys: BTreeSet<_> = lines.iter().map(|line| bytes(context, line)).collect::<Result<_, _>>()?;
    Ok(Keys { keys: keys.into_iter().collect(), read: None })
}

/// The lines of the file that `start` names, each once.
fn lines(start: &Start) -> Result<BTreeSet<String>, Exit> {
    let file = start.file.clone().unwrap_or_default();
    let cannot = |why: &str| Exit::usage(format!("--file {}: {why}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|error| cannot(&in_words(&error)))?;
    let lines: BTreeSet<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if lines.is_empty() { Err(cannot("it names no key")) } else { Ok(lines) }
}

/// The logical keys of a table that begin so.
async fn beginning(
    opened: &Opened,
    context: &TableContext,
    prefix: &[u8],
    output: Output,
) -> Result<Keys, Exit> {
    let table = context.table();
    let scan = PrefixScan {
        table: &table.name,
        index: None,
        attribute: &table.key.partition,
        prefix,
        most: MOST_KEYS,
        what: format!("keys of table {}", table.name),
        shown: progress(output),
    };
    scan.run(opened, |physical| table.logical(physical)).await
}

/// The logical values of an index that `start` names.
pub(super) async fn values(opened: &Opened, start: &Start, index: &str) -> Result<Values, Exit> {
    if !start.key.is_empty() {
        return Ok(Values { values: start.key.clone(), read: None });
    }
    let Some(prefix) = &start.prefix else {
        return Ok(Values { values: lines(start)?.into_iter().collect(), read: None });
    };
    let name = &start.table;
    let described = opened.registry.describe(name).await.map_err(unread)?;
    let Some(described) = described else { return Err(Exit::usage(format!("There is no table {name}"))) };
    let attribute = attribute_to_spread(index, &described.schema).map_err(|reason| {
        Exit::usage(format!("No value of it can be resharded in table {name}: {reason}"))
    })?;
    let record = opened.registry.read(&described.schema.id).await.map_err(unread)?;
    let (layouts, values) = record.map(|record| (record.layouts, record.values)).unwrap_or_default();
    let table = Table::new(described.schema.clone(), Arc::new(layouts)).with_value_layouts(&values);
    let prefix = attribute_bytes(attribute, prefix)?;
    let what = format!("values of the index {index} of table {name}");
    let scan = PrefixScan {
        table: name,
        index: Some(index),
        attribute,
        prefix: &prefix,
        most: MAX_VALUE_LAYOUTS,
        what,
        shown: progress(start.place.output),
    };
    let stored = table.index_key(&attribute.name);
    let found = scan.run(opened, |value| stored.map_or(value, |key| key.logical(value))).await?;
    let text = |value: &Vec<u8>| key_text(value, attribute.key_type);
    Ok(Values { values: found.keys.iter().map(text).collect(), read: found.read })
}

/// Shows how many items have been read; how many there are is not known.
fn progress(output: Output) -> ProgressBar {
    bar(output, None, "looking {human_pos} items, {per_sec}")
}

/// Finds the keys of a table, or of an index of it, that begin in some way, by a Scan of keys.
struct PrefixScan<'a> {
    table: &'a str,
    index: Option<&'a str>,
    /// The partition key.
    attribute: &'a AttributeDefinition,
    prefix: &'a [u8],
    /// The most that one command is for.
    most: usize,
    /// What is looked for, in words: `keys of table Scores`.
    what: String,
    shown: ProgressBar,
}

impl PrefixScan<'_> {
    async fn run(&self, opened: &Opened, logical: impl Fn(&[u8]) -> &[u8]) -> Result<Keys, Exit> {
        let PrefixScan { attribute, prefix, most, what, .. } = self;
        if prefix.is_empty() {
            return Err(Exit::usage(format!("--prefix: all {what} begin with nothing")));
        }
        let (mut found, mut read, mut start) = (BTreeSet::new(), 0, Json::Null);
        loop {
            let page = opened.registry.call_patiently(Operation::Scan, self.page(start)).await;
            let mut page = page.map_err(|error| not_answered("The keys could not be read", &error))?;
            read += page["ScannedCount"].as_u64().unwrap_or(0);
            self.shown.set_position(read);
            for item in page["Items"].as_array().into_iter().flatten() {
                let physical = match item[&attribute.name]["B"].as_str() {
                    Some(encoded) => STANDARD.decode(encoded).unwrap_or_default(),
                    None => item[&attribute.name]["S"].as_str().unwrap_or_default().as_bytes().to_vec(),
                };
                let logical = logical(&physical);
                if logical.starts_with(prefix) && !found.contains(logical) {
                    found.insert(logical.to_vec());
                }
            }
            if found.len() > *most {
                return Err(Exit::usage(format!(
                    "More than {most} {what} begin so, found among {read} items, and one command is for {most} at most: choose a longer prefix, or name them \
                     in files, with --file"
                )));
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                break;
            }
            if read >= MOST_ITEMS {
                return Err(Exit::usage(format!(
                    "{read} items were read and there are more, so not all {what} are known that begin so: name them in a file, with --file"
                )));
            }
        }
        if found.is_empty() {
            return Err(Exit::usage(format!(
                "None of the {what} begin so; {read} items were read. One without items can be named by itself"
            )));
        }
        self.shown.finish_and_clear();
        Ok(Keys { keys: found.into_iter().collect(), read: Some(read) })
    }

    /// The request for a page, from a cursor on.
    fn page(&self, start: Json) -> Json {
        let AttributeDefinition { name, key_type } = self.attribute;
        let prefix = match key_type {
            KeyType::B => STANDARD.encode(self.prefix),
            _ => String::from_utf8_lossy(self.prefix).into_owned(),
        };
        let mut body = json!({
            "TableName": self.table, "ProjectionExpression": "#p", "FilterExpression": "begins_with(#p, :p)",
            "ExpressionAttributeNames": { "#p": name }, "ExpressionAttributeValues": { ":p": { key_type.name(): prefix } },
        });
        if let Some(index) = self.index {
            body["IndexName"] = json!(index);
        }
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        body
    }
}
