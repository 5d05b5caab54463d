//! The answer to ExecuteStatement with its keys made logical.

use std::sync::Arc;

use heatsink_dynamo::{Operation, json};
use heatsink_layout::Table;

use crate::answer::{logical_error, rewrite, strip_object};
use crate::plan::Finish;
use crate::splice::Splice;

/// Makes the keys of an answer to ExecuteStatement logical.
pub(super) fn logical(table: Arc<Table>) -> Finish {
    Box::new(move |answer| {
        let body = answer.map_err(|error| logical_error(&table, error))?;
        rewrite(Operation::ExecuteStatement, &body, |splice| strip_items(&table, &body, splice))
    })
}

fn strip_items<'a>(table: &Table, body: &'a [u8], splice: &mut Splice<'a>) -> Result<(), json::Malformed> {
    let items = json::member(body, "Items")?.filter(|items| *items != b"null").unwrap_or(b"[]");
    json::elements(items)?.into_iter().try_for_each(|item| strip_object(table, item, splice))
}
