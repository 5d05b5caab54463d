//! Which keys a command is for: one, those of a file, or those that begin in some way.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::{KeyType, Operation};
use heatsink_mover::TableContext;
use serde_json::{Value as Json, json};

use super::args::Start;
use super::opened::Opened;
use crate::cli::open::not_answered;
use crate::exit::{Exit, in_words};

/// The most keys of one command.
const MOST_KEYS: usize = 1_000;

/// The most items whose keys are read to find those that begin in some way.
const MOST_ITEMS: u64 = 1_000_000;

/// The keys of a command, and how many items were read to find them.
pub(super) struct Keys {
    pub keys: Vec<Vec<u8>>,
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
    match context.key_type() {
        KeyType::B => STANDARD.decode(key).map_err(|_| {
            let table = &context.table().name;
            Exit::usage(format!("the partition keys of table {table} are binary: give {key:?} in base64"))
        }),
        _ => Ok(key.as_bytes().to_vec()),
    }
}

/// The keys that `start` names.
pub(super) async fn named(opened: &Opened, context: &TableContext, start: &Start) -> Result<Keys, Exit> {
    if let Some(key) = &start.key {
        return Ok(Keys { keys: vec![bytes(context, key)?], read: None });
    }
    if let Some(prefix) = &start.prefix {
        return beginning(opened, context, &bytes(context, prefix)?).await;
    }
    let lines = lines(start)?;
    bounded(lines.len(), &start.table)?;
    let keys = lines.iter().map(|line| bytes(context, line)).collect::<Result<_, _>>()?;
    Ok(Keys { keys, read: None })
}

/// The lines of the file that `start` names, each once.
pub(super) fn lines(start: &Start) -> Result<BTreeSet<String>, Exit> {
    let file = start.file.clone().unwrap_or_default();
    let cannot = |why: &str| Exit::usage(format!("--file {}: {why}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|error| cannot(&in_words(&error)))?;
    let lines: BTreeSet<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if lines.is_empty() { Err(cannot("it names no key")) } else { Ok(lines) }
}

/// The logical keys that begin so, by a Scan of keys.
async fn beginning(opened: &Opened, context: &TableContext, prefix: &[u8]) -> Result<Keys, Exit> {
    if prefix.is_empty() {
        return Err(Exit::usage("--prefix: every key of the table begins with nothing"));
    }
    let table = context.table();
    let name = &table.key.partition.name;
    let value = match context.key_type() {
        KeyType::B => json!({ "B": STANDARD.encode(prefix) }),
        other => json!({ other.name(): String::from_utf8_lossy(prefix) }),
    };
    let (mut found, mut read, mut start) = (BTreeSet::new(), 0, Json::Null);
    loop {
        let mut body = json!({
            "TableName": table.name, "ProjectionExpression": "#p", "FilterExpression": "begins_with(#p, :p)",
            "ExpressionAttributeNames": { "#p": name }, "ExpressionAttributeValues": { ":p": value },
        });
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let page = opened.registry.call_patiently(Operation::Scan, body).await;
        let mut page = page.map_err(|error| not_answered("The keys could not be read", &error))?;
        read += page["ScannedCount"].as_u64().unwrap_or(0);
        for item in page["Items"].as_array().into_iter().flatten() {
            let physical = match item[name]["B"].as_str() {
                Some(encoded) => STANDARD.decode(encoded).unwrap_or_default(),
                None => item[name]["S"].as_str().unwrap_or_default().as_bytes().to_vec(),
            };
            let logical = table.logical(&physical);
            if logical.starts_with(prefix) && !found.contains(logical) {
                found.insert(logical.to_vec());
            }
        }
        if found.len() > MOST_KEYS {
            return Err(Exit::usage(format!(
                "More than {MOST_KEYS} keys of table {} begin so, found among {read} items, and one command is for {MOST_KEYS} at most: choose a longer \
                 prefix, or name them in files, with --file",
                table.name
            )));
        }
        start = page["LastEvaluatedKey"].take();
        if start.is_null() {
            break;
        }
        if read >= MOST_ITEMS {
            return Err(Exit::usage(format!(
                "{read} items of table {} were read and there are more, so not all keys are known that begin so: name them in a file, with --file",
                table.name
            )));
        }
    }
    if found.is_empty() {
        return Err(Exit::usage(format!(
            "No key of table {} begins so; {read} items were read. A key without items can be named by itself",
            table.name
        )));
    }
    Ok(Keys { keys: found.into_iter().collect(), read: Some(read) })
}
