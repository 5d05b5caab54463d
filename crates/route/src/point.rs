//! GetItem, PutItem, UpdateItem, DeleteItem: the shard follows from the primary key, so each is one physical request.

use std::sync::Arc;

use heatsink_dynamo::{Code, Error, Operation, TableSchema, json};
use heatsink_layout::LayoutSource;

use crate::answer::{self, pass_refusal};
use crate::expression::{self, Rewritten};
use crate::key::{Located, Lost, locate};
use crate::legacy;
use crate::plan::{Estimate, Finish, Plan, Single};
use crate::request::{Request, set_members};
use crate::splice::Splice;

/// The plan of a point operation on a recorded table.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    schema: &Arc<TableSchema>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    let holder = if operation == Operation::PutItem { "Item" } else { "Key" };
    let Some(object) = request.get(holder) else { return Ok(pass_refusal(operation, request.body)) };
    let located = match locate(schema, layouts, object) {
        Ok(located) => located,
        Err(Lost::Invalid) => return Ok(pass_refusal(operation, request.body)),
        Err(Lost::Refused(error)) => return Err(error),
    };
    legacy::refuse_comparison(request, "Expected", schema)?;
    let changes = match expression::rewrite(request, &schema.key.partition, &located)? {
        Rewritten::Unchanged => None,
        Rewritten::Invalid => return Ok(pass_refusal(operation, request.body)),
        Rewritten::Changed(changes) => Some(changes),
    };
    let mut splice = Splice::new(request.body);
    located.partition.append(&located.suffix, &mut splice);
    let mut body = splice.finish(request.body);
    if let Some(changes) = changes {
        body = set_members(&body, &changes)?;
    }
    let why = format!(
        "the item's primary key puts it into shard {}: one physical request, the partition key rewritten",
        located.shard
    );
    Ok(Single {
        shard: Some(located.shard),
        key: Some(located.readable()),
        estimate: Some(estimate(operation, request, object)),
        ..Single::new(operation, body, finish(operation, schema, &located), why)
    }
    .plan())
}

/// What to make of the answer. A key without a suffix is its own physical key, and its answers hold no other: they stay as
/// they are.
fn finish(operation: Operation, schema: &Arc<TableSchema>, located: &Located<'_>) -> Option<Finish> {
    if located.suffix.is_empty() {
        return None;
    }
    let schema = Arc::clone(schema);
    let suffix = located.suffix.len();
    Some(Box::new(move |answer| match answer {
        Ok(body) => answer::logical(operation, &schema, &body),
        Err(error) => Err(too_large(answer::logical_error(&schema, error), suffix)),
    }))
}

/// DynamoDB's refusal of an item over 400 KB does not say that the suffix counts; this does.
fn too_large(mut error: Error, suffix: usize) -> Error {
    let too_large = |message: &String| {
        message.contains("Item size has exceeded") || message.contains("Item size to update has exceeded")
    };
    if error.code == Code::ValidationException && error.message.as_ref().is_some_and(too_large) {
        let message = error.message.take().unwrap_or_default();
        error = Error::validation(format!(
            "{message} (the table is sharded, and the shard suffix of {suffix} bytes counts)"
        ));
    }
    error
}

/// DynamoDB rounds writes up to 1 KB and reads up to 4 KB (PHYSICS §3); what is stored is not known here.
fn estimate(operation: Operation, request: &Request<'_>, object: &[u8]) -> Estimate {
    let consistent = request.get("ConsistentRead") == Some(b"true");
    match operation {
        Operation::GetItem => Estimate {
            read_units: if consistent { 1.0 } else { 0.5 },
            write_units: 0.0,
            assumes: "an item of at most 4 KB".to_owned(),
        },
        Operation::PutItem => Estimate {
            read_units: 0.0,
            write_units: kilobytes(object),
            assumes: "no larger item is overwritten, and no index".to_owned(),
        },
        _ => Estimate {
            read_units: 0.0,
            write_units: 1.0,
            assumes: "an item of at most 1 KB, and no index".to_owned(),
        },
    }
}

/// The item's size in begun kilobytes, from its JSON without punctuation and type names; an estimate.
fn kilobytes(object: &[u8]) -> f64 {
    let members = json::members(object).unwrap_or_default();
    let size: usize = members.iter().map(|(name, value)| name.len() + value.len().saturating_sub(8)).sum();
    u32::try_from(size.div_ceil(1024).max(1)).map_or(f64::INFINITY, f64::from)
}
