//! TransactGetItems and TransactWriteItems: every action names one item. A transaction stays one
//! request: an action goes to the first slot of its item, and what other slots need is added to it
//! (`added`). Recorded and unrecorded tables may mix.
//!
//! The same bytes with the same layouts always become the same physical bytes: a retry with a
//! `ClientRequestToken` is to the store the request it was.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::Table;
use serde_json::Value as Json;

use super::added::Added;
use super::physical::{MEANINGLESS, Physical, in_store_words, meaningless as nowhere, physical};
use crate::answer::{logical_item, rewrite, strip_metrics_list, strip_object};
use crate::context::PlanContext;
use crate::plan::{Plan, Single};
use crate::preflight;
use crate::preflight::accepted;
use crate::preflight::pass_refusal;
use crate::refusal::{Unsent, size_note};
use crate::request::{Request, malformed};
use crate::splice::Splice;
use crate::tables::table_name;

/// The actions of a transaction, and the member of each that holds the key.
const ACTIONS: [(&str, &str); 5] =
    [("Get", "Key"), ("Put", "Item"), ("Update", "Key"), ("Delete", "Key"), ("ConditionCheck", "Key")];

/// An action on a recorded table: the table, and the length of its item's suffix.
type Action = Option<(Arc<Table>, usize)>;

/// An action in a request: its bytes, its name and the member that holds its key, and its table.
type Found = (Bytes, (&'static str, &'static str), Arc<Table>);

/// The plan of a transaction that names a recorded table.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let Some(items) = request.get("TransactItems") else { return Ok(pass_refusal(operation, request.body)) };
    let mut actions = Vec::new();
    let mut splice = Splice::new(request.body);
    let (mut meaningless, mut invalid) = (None, false);
    let mut added = Added::default();
    for element in json::elements(items).map_err(|_| malformed())? {
        let Some((whole, (name, holder), schema)) = action(request.body, element, context)? else {
            actions.push(None);
            continue;
        };
        let action = Request::read(&whole)?;
        let physical = match physical(&action, holder, &schema, context)? {
            Physical::Sent { body, located } => {
                match added.take(actions.len(), name, &action, body, &schema, &located) {
                    Ok(body) => Physical::Sent { body, located },
                    Err(Unsent::Meaningless(error)) => nowhere(&action, &located, error),
                    Err(Unsent::Refused(error)) => return Err(error),
                }
            }
            other => other,
        };
        let suffix = match physical {
            // It goes on as it came, and the store refuses the transaction for it. The others go to
            // their own items all the same: the reasons say how each of them stands.
            Physical::Invalid => {
                invalid = true;
                0
            }
            Physical::Sent { body, located } => {
                if body != whole {
                    splice.replace(&whole, body.to_vec());
                }
                located.affixes.len()
            }
            Physical::Meaningless { body, error } => {
                splice.replace(&whole, body.to_vec());
                meaningless.get_or_insert(error);
                0
            }
        };
        actions.push(Some((schema, suffix)));
    }
    if let Some(error) = meaningless {
        let body = splice.finish(request.body);
        return Ok(Single::new(operation, body, Some(in_store_words(error)), MEANINGLESS).plan());
    }
    let shows_index_keys =
        actions.iter().flatten().any(|(schema, _): &(Arc<Table>, usize)| !schema.index_keys().is_empty());
    if splice.is_empty() && added.is_empty() && !invalid && !shows_index_keys {
        let why = "every item of the transaction lies in its shard 0, whose physical key is the logical key";
        return Ok(Single::new(operation, request.body.clone(), None, why).plan());
    }
    let why = if added.is_empty() {
        "every item of the transaction has one physical key: one physical transaction, keys rewritten"
    } else {
        splice.insert(items, 1, added.tail(actions.len())?);
        "one physical transaction, keys rewritten; an action that sets, deletes or reads a counter concerns all its fragments, and a read of \
         an item whose shard other writers assign all shards: what the others need is added behind"
    };
    let doubtful = added.doubtful;
    let finish = move |answer: Result<Bytes, Error>| match answer {
        Ok(_) if invalid => Err(accepted()),
        Ok(body) => {
            let body = if added.is_empty() { body } else { added.answer(actions.len(), &body)? };
            let own = |(place, action): (usize, &Action)| action.clone().filter(|_| !added.reads(place));
            let actions: Vec<Action> = actions.iter().enumerate().map(own).collect();
            rewrite(operation, &body, |splice| logical(&actions, &body, splice))
        }
        Err(error) if added.is_empty() => Err(logical_reasons(&actions, error)),
        Err(error) => Err(logical_reasons(&actions, added.error(actions.len(), error))),
    };
    let plan = Single::new(operation, splice.finish(request.body), Some(Box::new(finish)), why).plan();
    Ok(if doubtful {
        preflight::first(
            operation,
            request.body.clone(),
            plan,
            "whether the projections are valid, the store says",
        )
    } else {
        plan
    })
}

/// The action of one element, if it is on a recorded table.
fn action(body: &Bytes, element: &[u8], context: &PlanContext<'_>) -> Result<Option<Found>, Error> {
    let element = body.slice_ref(element);
    let element = Request::read(&element)?;
    for (name, holder) in ACTIONS {
        let Some(action) = element.get(name) else { continue };
        let whole = body.slice_ref(action);
        let Some(named) =
            Request::read(&whole)?.string("TableName")?.map(|name| context.table(table_name(&name)))
        else {
            continue;
        };
        return Ok(named.map(|schema| (whole, (name, holder), schema)));
    }
    Ok(None)
}

/// Makes every key of an answer logical.
fn logical<'a>(actions: &[Action], body: &'a [u8], splice: &mut Splice<'a>) -> Result<(), json::Malformed> {
    let [responses, metrics] = json::attributes_of(body, ["Responses", "ItemCollectionMetrics"])?;
    if let Some(responses) = responses.filter(|raw| *raw != b"null") {
        for (response, action) in json::elements(responses)?.into_iter().zip(actions) {
            if let (Some((schema, _)), true) = (action, response != b"null")
                && let Some(item) = json::member(response, "Item")?
            {
                strip_object(schema, item, splice)?;
            }
        }
    }
    if let Some(metrics) = metrics.filter(|raw| *raw != b"null") {
        for (name, table) in json::members(metrics)? {
            let named = |action: &&Action| {
                action.as_ref().is_some_and(|(schema, _)| schema.name == table_name(&name))
            };
            let Some(Some((schema, _))) = actions.iter().find(named) else { continue };
            strip_metrics_list(schema, table, splice)?;
        }
    }
    Ok(())
}

/// An error with the items of its cancellation reasons made logical. The reasons stand in the order
/// of the actions, which is the client's.
fn logical_reasons(actions: &[Action], mut error: Error) -> Error {
    let Some(Json::Array(mut reasons)) = error.members.get("CancellationReasons").cloned() else {
        return error;
    };
    let mut changed = false;
    for (reason, action) in reasons.iter_mut().zip(actions) {
        let (Some((schema, suffix)), Json::Object(reason)) = (action, reason) else { continue };
        if *suffix == 0 && schema.index_keys().is_empty() {
            continue;
        }
        if let Some(item) = reason.get("Item").and_then(|item| logical_item(schema, item)) {
            reason.insert("Item".to_owned(), item);
            changed = true;
        }
        let noted = reason.get("Message").and_then(Json::as_str).and_then(|text| size_note(text, *suffix));
        if let Some(noted) = noted {
            reason.insert("Message".to_owned(), noted.into());
            changed = true;
        }
    }
    if changed {
        error = error.with("CancellationReasons", Json::Array(reasons));
    }
    error
}
