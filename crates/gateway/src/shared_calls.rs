//! Which requests may become one with others, by the rule of the key that they name.
//!
//! Not here: how writes do (`combine`), how reads do (`reads`).

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use heatsink_control::{Control, Pass, SharedKey};
use heatsink_dynamo::expression::{Bindings, Checks, KeyCondition};
use heatsink_dynamo::{Operation, TableSchema, json};
use heatsink_route::{Explanation, Plan, table_name};

use crate::only_reads::only_reads;
use crate::planner::Planned;
use crate::reads::{Place, ReadId, Reads, Ways};

/// What a write's rule says of it, if it lets it be combined with others of its item.
pub(crate) fn write(
    control: &Control,
    operation: Operation,
    body: &[u8],
    plan: &Plan,
    pass: &Pass,
) -> Option<SharedKey> {
    if !operation.writes_one_item() || !plan.is_one_call() {
        return None;
    }
    let [table, object] = json::attributes_of(body, ["TableName", holder(operation)]).ok()?;
    let table = json::string(table?).ok()?;
    let key = control.shared_calls(pass, &table, object?)?;
    key.calls.combine.then_some(key)
}

/// A read, and how its rule lets it be answered without being sent.
pub(crate) fn read(
    control: &Control,
    reads: &Reads,
    operation: Operation,
    body: &Bytes,
    pass: &Pass,
) -> Option<(ReadId, Place, Ways)> {
    if !matches!(operation, Operation::GetItem | Operation::Query) {
        return None;
    }
    let names = [
        "TableName",
        "ConsistentRead",
        "IndexName",
        "Key",
        "KeyConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
    ];
    let [table, strong, index, key, condition, names, values] = json::attributes_of(body, names).ok()?;
    let is_eventual = matches!(strong, None | Some(b"false" | b"null"));
    if !is_eventual || !matches!(index, None | Some(b"null")) {
        return None;
    }
    let table = json::string(table?).ok()?;
    let (calls, key) = match operation {
        Operation::GetItem => {
            let shared = control.shared_calls(pass, &table, key?)?;
            (shared.calls, shared.key)
        }
        _ => {
            let text = json::string(condition?).ok()?;
            let of = |schema: &TableSchema| {
                let bindings = Bindings::read(names, values).ok()?;
                let condition = KeyCondition::read(&text, &bindings, &schema.key, Checks::Meaning).ok()?;
                condition.partition.into_iter().next().map(|(_, value)| value)
            };
            let shared = control.shared_calls_of(pass, &table, of)?;
            (shared.calls, shared.key)
        }
    };
    let max_age = calls.cache_max_age_ms.map(|age| Duration::from_millis(u64::from(age)));
    if !calls.coalesce && max_age.is_none() {
        return None;
    }
    let place = reads.place(table_name(&table), &key);
    Some((ReadId::new(operation, body)?, place, Ways { coalesce: calls.coalesce, max_age }))
}

/// A request may have written, whose client is not told yet: reads that come after that show it.
pub(crate) fn wrote(
    control: &Control,
    reads: &Reads,
    (operation, body): (Operation, &Bytes),
    names: &[Cow<'_, str>],
    pass: &Pass,
) {
    if only_reads(operation, body) {
        return;
    }
    let one = || {
        let object = json::member(body, holder(operation)).ok()??;
        let name = names.first()?;
        Some(reads.place(table_name(name), &control.partition_key(pass, name, object)?))
    };
    match operation.writes_one_item().then(one).flatten() {
        Some(place) => reads.wrote(place),
        None => names.iter().for_each(|name| reads.wrote_any(table_name(name))),
    }
}

/// What a plan would do, and which calls of it may become one with those of others.
pub(crate) fn explained(
    control: &Control,
    planned: &Planned<'_>,
    reads: &Reads,
    operation: Operation,
    body: &Bytes,
) -> Explanation {
    let mut explained = planned.plan.explain();
    let Planned { plan, pass, .. } = planned;
    if !control.shares_calls() {
        return explained;
    }
    if write(control, operation, body, plan, pass).is_some() {
        explained.why += "; by its rule it waits while another write of the item is under way, and goes with others that wait";
    }
    if let Some((_, _, Ways { coalesce, max_age })) = read(control, reads, operation, body, pass) {
        if coalesce {
            explained.why +=
                "; by its rule it is not sent while the same read is under way, whose answer it gets";
        }
        if let Some(age) = max_age {
            explained.why += &format!(
                "; by its rule an answer that is less than {} ms old is given again",
                age.as_millis()
            );
        }
    }
    explained
}

/// The member of a write of one item that holds its key.
fn holder(operation: Operation) -> &'static str {
    if operation == Operation::PutItem { "Item" } else { "Key" }
}
