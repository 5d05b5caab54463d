//! Which tables a request names, found without reading the rest of it.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::{Error, Operation, json, partiql};

use crate::request::malformed;

/// Members that name a table, by name or ARN, in operations that act on one.
pub const NAMING: [&str; 12] = [
    "TableName",
    "TableArn",
    "GlobalTableName",
    "ResourceArn",
    "StreamArn",
    "BackupArn",
    "ExportArn",
    "ImportArn",
    "SourceTableName",
    "SourceTableArn",
    "TargetTableName",
    "ShardIterator",
];

/// The most tables that a request names, and the most elements of its list: as many as a
/// transaction has actions, or BatchGetItem keys. The wire check has DynamoDB's words for most
/// requests that have more.
const MOST: usize = 100;

/// The longest statement, in bytes of JSON: 8,192 characters (service model 2012-08-10), each an
/// escape of two halves at worst.
const LONGEST_STATEMENT: usize = 8192 * 12;

/// The tables that a request names, each once; ARNs are cut down to the table's name. Empty where
/// none is named, and without what no table can be named. What it costs is linear in the body.
///
/// # Errors
/// `SerializationException` if the body is not JSON, or the place of a name holds something else;
/// `ValidationException` if it names more than 100 tables, or has a longer list or statement than
/// any operation takes.
pub fn tables_of(operation: Operation, body: &[u8]) -> Result<Vec<Cow<'_, str>>, Error> {
    let mut found = Names::default();
    match operation {
        Operation::BatchGetItem | Operation::BatchWriteItem => {
            for name in json::names_under(body, "RequestItems").map_err(|_| malformed())? {
                found.add(name)?;
            }
        }
        Operation::TransactGetItems | Operation::TransactWriteItems => {
            for element in elements(body, "TransactItems")? {
                for (_, action) in json::members(element).map_err(|_| malformed())? {
                    if action != b"null" {
                        add_named(&mut found, action, &["TableName"])?;
                    }
                }
            }
        }
        Operation::ExecuteStatement => statement_tables(body, &mut found)?,
        Operation::BatchExecuteStatement | Operation::ExecuteTransaction => {
            let list =
                if operation == Operation::ExecuteTransaction { "TransactStatements" } else { "Statements" };
            for element in elements(body, list)? {
                statement_tables(element, &mut found)?;
            }
        }
        _ => {
            if operation == Operation::ImportTable {
                for table in named(body, &["TableCreationParameters"])? {
                    add_named(&mut found, table, &["TableName"])?;
                }
            }
            for (name, raw) in json::members(body).map_err(|_| malformed())? {
                if NAMING.contains(&&*name) && raw != b"null" {
                    let text = json::string(raw).map_err(|_| malformed())?;
                    if name == "ShardIterator" {
                        if let Some(table) = iterator_table(&text) {
                            found.add(Cow::Owned(table.into_owned()))?;
                        }
                    } else {
                        found.add(text)?;
                    }
                }
            }
        }
    }
    Ok(found.names)
}

/// The table of a shard iterator, by name or by the ARN with which it begins; `None` where it does
/// not say. DynamoDB and DynamoDB Local write the stream's ARN into it, the embedded engine base64
/// of a JSON object.
pub fn iterator_table(iterator: &str) -> Option<Cow<'_, str>> {
    if let Some(arn) = iterator.find("arn:").and_then(|at| iterator.get(at..)) {
        return Some(Cow::Borrowed(arn));
    }
    let decoded = STANDARD.decode(iterator).ok()?;
    let name = json::string(json::member(&decoded, "table_name").ok()??).ok()?;
    Some(Cow::Owned(name.into_owned()))
}

/// A table's name from its name or from an ARN of the table, its stream or its index
/// (`arn:…:table/NAME/…`).
pub fn table_name(name_or_arn: &str) -> &str {
    match name_or_arn.starts_with("arn:").then(|| name_or_arn.split_once(":table/")).flatten() {
        Some((_, rest)) => rest.split(['/', '|']).next().unwrap_or(rest),
        None => name_or_arn,
    }
}

/// The bytes that a table's name may have.
const IN_NAMES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        allowed[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        byte += 1;
    }
    allowed
};

/// The name of a table that may exist, of a name or an ARN: an ARN of something else names the
/// table of its last part, such as a global table.
fn possible(name_or_arn: &str) -> Option<&str> {
    // Service model: up to 255 letters, digits and three signs.
    let is_name =
        |name: &&str| (1..=255).contains(&name.len()) && name.bytes().all(|byte| IN_NAMES[usize::from(byte)]);
    let name = table_name(name_or_arn);
    let last = || name.starts_with("arn:").then(|| name.rsplit('/').next()).flatten();
    Some(name).filter(is_name).or_else(|| last().filter(is_name))
}

/// Up to this many names are compared one by one; most requests name one table.
const FEW: usize = 8;

/// Names, each once, in the order in which they came.
#[derive(Default)]
struct Names<'a> {
    names: Vec<Cow<'a, str>>,
    /// The same, once they are more than a few.
    met: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    fn add(&mut self, name: Cow<'a, str>) -> Result<(), Error> {
        let name = match name {
            Cow::Borrowed(name) => possible(name).map(Cow::Borrowed),
            Cow::Owned(name) => possible(&name).map(|name| Cow::Owned(name.to_owned())),
        };
        // Nothing is known of what is no table's name, and nobody is asked: who carries the request
        // out says what is wrong with it.
        let Some(name) = name else { return Ok(()) };
        let few = self.names.len() <= FEW;
        if few && self.names.contains(&name) || self.met.contains(&name) {
            return Ok(());
        }
        if self.names.len() == MOST {
            return Err(too_many("tables"));
        }
        self.names.push(name);
        if self.names.len() > FEW {
            let unmet = self.names.get(self.met.len()..).unwrap_or_default();
            self.met.extend(unmet.iter().cloned());
        }
        Ok(())
    }
}

fn too_many(what: &str) -> Error {
    Error::validation(format!("The request names too many {what}: at most {MOST}"))
}

fn add_named<'a>(found: &mut Names<'a>, object: &'a [u8], names: &[&str]) -> Result<(), Error> {
    for raw in named(object, names)? {
        found.add(json::string(raw).map_err(|_| malformed())?)?;
    }
    Ok(())
}

fn statement_tables(object: &[u8], found: &mut Names<'_>) -> Result<(), Error> {
    for statement in named(object, &["Statement"])? {
        if statement.len() > LONGEST_STATEMENT {
            return Err(Error::validation("The statement is longer than 8192 characters"));
        }
        for name in partiql::tables(&json::string(statement).map_err(|_| malformed())?) {
            found.add(Cow::Owned(name))?;
        }
    }
    Ok(())
}

/// The members of those names that are not `null`. A repeated member is given every time: whichever
/// of them a store believes, its table must be known here.
fn named<'a>(object: &'a [u8], names: &[&str]) -> Result<Vec<&'a [u8]>, Error> {
    let members = json::members(object).map_err(|_| malformed())?;
    let wanted = members.into_iter().filter(|(name, value)| names.contains(&&**name) && *value != b"null");
    Ok(wanted.map(|(_, value)| value).collect())
}

fn elements<'a>(body: &'a [u8], name: &str) -> Result<Vec<&'a [u8]>, Error> {
    let mut found = Vec::new();
    for list in named(body, &[name])? {
        let some = json::few_elements(list, MOST).map_err(|_| malformed())?;
        found.extend(some.ok_or_else(|| too_many("items"))?);
        if found.len() > MOST {
            return Err(too_many("items"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: Operation, body: &str) -> Vec<String> {
        tables_of(operation, body.as_bytes()).unwrap().into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn the_longest_statement_is_read_and_no_longer_one() {
        let read = |bytes: usize| {
            // Its quotes count.
            let body = format!(r#"{{"Statement":"{}"}}"#, " ".repeat(bytes - 2));
            tables_of(Operation::ExecuteStatement, body.as_bytes()).is_ok()
        };
        assert!(read(LONGEST_STATEMENT) && !read(LONGEST_STATEMENT + 1));
    }

    #[test]
    fn every_way_to_name_a_table() {
        assert_eq!(of(Operation::GetItem, r#"{"Key":{"TableName":{"S":"x"}},"TableName":"a"}"#), ["a"]);
        let arn = r#"{"TableName":"arn:aws:dynamodb:eu-west-1:1:table/a"}"#;
        assert_eq!(of(Operation::GetItem, arn), ["a"]);
        let stream = r#"{"StreamArn":"arn:aws:dynamodb:eu-west-1:1:table/a/stream/2024-01-01T00:00:00.000"}"#;
        assert_eq!(of(Operation::DescribeStream, stream), ["a"]);
        for (operation, member, part) in [
            (Operation::DescribeBackup, "BackupArn", "backup/01489602797149-73d8d5bc"),
            (Operation::DescribeExport, "ExportArn", "export/01489602797149-73d8d5bc"),
            (Operation::DescribeImport, "ImportArn", "import/01489602797149-73d8d5bc"),
        ] {
            let body = format!(r#"{{"{member}":"arn:aws:dynamodb:eu-west-1:1:table/a/{part}"}}"#);
            assert_eq!(of(operation, &body), ["a"]);
        }
        assert_eq!(of(Operation::DescribeGlobalTable, r#"{"GlobalTableName":"a"}"#), ["a"]);
        let import = r#"{"S3BucketSource":{"S3Bucket":"b"},"TableCreationParameters":{"TableName":"a"}}"#;
        assert_eq!(of(Operation::ImportTable, import), ["a"]);
        let iterators = [
            "arn:aws:dynamodb:eu-west-1:1:table/a/stream/2024-01-01T00:00:00.000|1|AAAA",
            "000|arn:aws:dynamodb:ddblocal:000000000000:table/a/stream/2024-01-01T00:00:00.000|AAAA",
            "eyJ0YWJsZV9uYW1lIjoiYSIsInNoYXJkX2lkIjoiMCIsInBvc2l0aW9uIjowfQ==",
        ];
        for iterator in iterators {
            assert_eq!(of(Operation::GetRecords, &format!(r#"{{"ShardIterator":"{iterator}"}}"#)), ["a"]);
        }
        let none = Vec::<String>::new();
        assert_eq!(of(Operation::GetRecords, r#"{"ShardIterator":"opaque"}"#), none);
        let long = "a".repeat(3_000);
        for text in [long.as_str(), "a b", "", &format!("arn:aws:dynamodb:eu-west-1:1:table/{long}/stream/1")]
        {
            assert_eq!(of(Operation::GetShardIterator, &format!(r#"{{"StreamArn":"{text}"}}"#)), none);
            assert_eq!(of(Operation::GetItem, &format!(r#"{{"TableName":"{text}"}}"#)), none);
        }
        let global = r#"{"ResourceArn":"arn:aws:dynamodb::1:global-table/a"}"#;
        assert_eq!(of(Operation::ListTagsOfResource, global), ["a"]);
        let batch = r#"{"RequestItems":{"a":[],"b":[],"a":[]}}"#;
        assert_eq!(of(Operation::BatchWriteItem, batch), ["a", "b"]);
        let transaction =
            r#"{"TransactItems":[{"Put":{"TableName":"a"}},{"ConditionCheck":{"TableName":"b"}}]}"#;
        assert_eq!(of(Operation::TransactWriteItems, transaction), ["a", "b"]);
        let statements =
            r#"{"Statements":[{"Statement":"SELECT * FROM \"a\".\"i\""},{"Statement":"update b set x=1"}]}"#;
        assert_eq!(of(Operation::BatchExecuteStatement, statements), ["a", "b"]);
        assert_eq!(of(Operation::ListTables, "{}"), Vec::<String>::new());
        assert!(tables_of(Operation::GetItem, b"{\"TableName\":5}").is_err());
        assert!(tables_of(Operation::GetItem, b"[").is_err());
    }

    #[test]
    fn a_request_names_a_hundred_tables_at_most() {
        let batch = |count: usize| {
            let tables: Vec<String> = (0..count).map(|at| format!(r#""t{at}":[],"t0":[]"#)).collect();
            (Operation::BatchWriteItem, format!(r#"{{"RequestItems":{{{}}}}}"#, tables.join(",")))
        };
        let (operation, body) = batch(101);
        assert_eq!(
            tables_of(operation, body.as_bytes()).unwrap_err().code,
            heatsink_dynamo::Code::ValidationException
        );
        assert_eq!(tables_of(operation, batch(100).1.as_bytes()).unwrap().len(), 100);
    }
}
