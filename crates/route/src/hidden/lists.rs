//! Lists of backups, exports, imports, global tables, streams and contributor insights, without
//! those of hidden tables.
//!
//! An entry is taken out of the page that the store gives. So a page can hold fewer entries than
//! its limit, as DynamoDB's own pages can; its cursor is the store's.
//!
//! Not here: `ListTables`, whose pages clients expect to be full (`list_tables`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use serde_json::Value as Json;

use crate::answer::unreadable;
use crate::plan::{Plan, Single};
use crate::tables::table_name;

/// The member that holds an operation's list, and the member of its entries that names their table,
/// by name or by ARN (AWS API reference).
fn list_of(operation: Operation) -> Option<(&'static str, &'static str)> {
    match operation {
        Operation::ListBackups => Some(("BackupSummaries", "TableName")),
        Operation::ListContributorInsights => Some(("ContributorInsightsSummaries", "TableName")),
        Operation::ListExports => Some(("ExportSummaries", "ExportArn")),
        Operation::ListGlobalTables => Some(("GlobalTables", "GlobalTableName")),
        Operation::ListImports => Some(("ImportSummaryList", "TableArn")),
        Operation::ListStreams => Some(("Streams", "StreamArn")),
        _ => None,
    }
}

/// The plan of an operation that lists what belongs to tables; nothing for other operations.
pub(crate) fn plan(operation: Operation, body: &Bytes, hidden: &Arc<[String]>) -> Option<Plan> {
    let (list, table) = list_of(operation)?;
    let hidden = Arc::clone(hidden);
    let finish = move |answer: Result<Bytes, Error>| without(operation, answer?, list, table, &hidden);
    let why = "Heatsink's own tables are left out of the answer";
    Some(Single::new(operation, body.clone(), Some(Box::new(finish)), why).plan())
}

/// The answer without the entries of those tables; byte for byte the store's where it has none.
fn without(
    operation: Operation,
    answer: Bytes,
    list: &str,
    table: &str,
    hidden: &[String],
) -> Result<Bytes, Error> {
    let is_hidden = |entry: &Json| {
        let name = entry.get(table).and_then(Json::as_str).map(table_name);
        name.is_some_and(|name| hidden.iter().any(|hidden| hidden == name))
    };
    let mut page: Json = serde_json::from_slice(&answer).map_err(|_| unreadable(operation))?;
    let Some(entries) = page.get_mut(list).and_then(Json::as_array_mut) else { return Ok(answer) };
    let all = entries.len();
    entries.retain(|entry| !is_hidden(entry));
    Ok(if entries.len() == all { answer } else { Bytes::from(page.to_string()) })
}
