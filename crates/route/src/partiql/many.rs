//! BatchExecuteStatement and ExecuteTransaction: every statement names one item, so they stay one
//! request.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::partiql::Action;
use heatsink_dynamo::{Code, Error, Operation, json};
use heatsink_layout::Table;
use heatsink_reshard::Side;
use serde_json::{Value as Json, json};

use super::keys::{Place, Target, names_assigned, target};
use super::refused::not_understood;
use super::statement::Written;
use super::{both, guard, over, rewrite};
use crate::answer::{logical_item, rewrite as edited, strip_object, unreadable};
use crate::context::PlanContext;
use crate::fragments::effect;
use crate::items::added::Added;
use crate::plan::{Plan, Single};
use crate::request::{Request, malformed};
use crate::splice::Splice;
use crate::tables::table_name;

/// What is to be made of one statement's answer.
enum Kept {
    /// Its table is not sharded.
    Plain,
    /// Its items' keys are made logical.
    Physical(Arc<Table>),
    /// It reads more than an item, which stores refuse; it went as it came.
    Unkeyed,
    /// It went under the name of no table; where the store refuses that, this is its error.
    Guarded(Error),
}

/// The plan of several statements, of which some name a recorded table.
pub(super) fn plan(
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let (body, kept, added) = physical(operation, request, &context.side(Side::New))?;
    let moves = |one: &Kept| matches!(one, Kept::Physical(schema) if schema.key_layouts().any_moves());
    let old = match kept.iter().any(moves) {
        true => Some(physical(operation, request, &context.side(Side::Old))?.0),
        false => None,
    };
    let why =
        "every statement names one primary key: one physical request, the keys rewritten where they stand";
    let finish = move |answer: Result<Bytes, Error>| match answer {
        Ok(body) if added.is_empty() => answered(operation, &kept, &body),
        Ok(body) => answered(operation, &kept, &added.answer(kept.len(), &body)?),
        Err(error) if added.is_empty() => Err(cancelled(&kept, error)),
        Err(error) => Err(cancelled(&kept, added.error(kept.len(), error))),
    };
    if let Some(old) = old.filter(|old| *old != body) {
        return both::plan(operation, list(operation), body, &old, Box::new(finish));
    }
    Ok(Single::new(operation, body, Some(Box::new(finish)), why).plan())
}

/// The body with its statements made physical, what is to be made of their answers, and what was
/// added behind them for other fragments of counters.
fn physical(
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
) -> Result<(Bytes, Vec<Kept>, Added), Error> {
    let all = request.get(list(operation)).unwrap_or(b"[]");
    let elements = json::elements(all).map_err(|_| malformed())?;
    let mut splice = Splice::new(request.body);
    let mut kept = Vec::with_capacity(elements.len());
    let mut added = Added::default();
    for element in elements {
        let whole = (operation == Operation::ExecuteTransaction).then_some(&mut added);
        kept.push(one(element, kept.len(), context, &mut splice, whole)?);
    }
    if !added.is_empty() {
        splice.insert(all, 1, added.tail(kept.len())?);
    }
    Ok((splice.finish(request.body), kept, added))
}

/// The member that holds the statements.
fn list(operation: Operation) -> &'static str {
    if operation == Operation::ExecuteTransaction { "TransactStatements" } else { "Statements" }
}

/// The statement at `place`. Of a transaction, of which a statement that is refused refuses all,
/// `whole` takes what is added to it.
fn one<'a>(
    element: &'a [u8],
    place: usize,
    context: &PlanContext<'_>,
    splice: &mut Splice<'a>,
    mut whole: Option<&mut Added>,
) -> Result<Kept, Error> {
    let members = ["Statement", "Parameters", "ReturnValuesOnConditionCheckFailure"];
    let [text, parameters, on_failure] = json::attributes_of(element, members).map_err(|_| malformed())?;
    let Some(raw) = text.filter(|raw| *raw != b"null") else { return Ok(Kept::Plain) };
    let text = json::string(raw).map_err(|_| malformed())?;
    if !heatsink_dynamo::partiql::tables(&text).iter().any(|name| context.table(table_name(name)).is_some()) {
        return Ok(Kept::Plain);
    }
    let mut guarded = |error| {
        splice.replace(raw, guard::json_text(&text));
        Ok(Kept::Guarded(error))
    };
    let written = match Written::of(raw, parameters.filter(|raw| *raw != b"null"), on_failure) {
        Ok(written) => written,
        Err(why) => return guarded(not_understood(&why)),
    };
    let Some(schema) = context.table(table_name(&written.statement.table.name)) else {
        return guarded(not_understood("it names several tables"));
    };
    let selects = matches!(written.statement.action, Action::Select { .. });
    if whole.is_some() && selects && names_assigned(&written, &schema, context) {
        return Err(Error::gateway_rejection(
            "ExecuteTransaction does not read keys whose shard other writers assign (hash = \"random\"): the items would be located before \
             they are read, and not at the same moment. Use TransactGetItems. Nothing was read or written",
        ));
    }
    match target(&written, &schema, &context.selecting(selects), selects) {
        Target::At(Place { deleted, .. }) if !deleted.is_empty() && whole.is_none() => {
            guarded(effect::refusal(
                "a statement that concerns all its fragments is a transaction of its own. Use ExecuteStatement or ExecuteTransaction",
            ))
        }
        Target::At(item) => match rewrite::into(splice, &written, &schema, &item) {
            Ok(()) => {
                if let Some(added) = &mut whole {
                    over::deletions(&written, &item)?
                        .into_iter()
                        .for_each(|deletion| added.add(place, deletion));
                }
                Ok(Kept::Physical(schema))
            }
            // A SELECT that says more than the key is refused by the store.
            Err(_) if selects => Ok(Kept::Unkeyed),
            Err(error) => Err(error),
        },
        Target::Invalid => Ok(Kept::Physical(schema)),
        Target::Counter(error) if whole.is_some() => Err(error),
        Target::Nowhere(_) if selects => Ok(Kept::Unkeyed),
        Target::Nowhere(error) | Target::Counter(error) => {
            splice.replace(raw, guard::json_text(&text));
            Ok(Kept::Guarded(error))
        }
    }
}

/// The answer with its keys made logical.
fn answered(operation: Operation, kept: &[Kept], body: &Bytes) -> Result<Bytes, Error> {
    let body = if kept.iter().any(|one| matches!(one, Kept::Guarded(_))) {
        let mut answer: Json = serde_json::from_slice(body).map_err(|_| unreadable(operation))?;
        let responses = answer["Responses"].as_array_mut().into_iter().flatten();
        for (one, response) in kept.iter().zip(responses) {
            if let (Kept::Guarded(error), Some(refused)) = (one, response.get("Error"))
                && of_the_name(refused)
            {
                *response = json!({ "Error": reason(error) });
            }
        }
        Bytes::from(answer.to_string())
    } else {
        body.clone()
    };
    edited(operation, &body, |splice| {
        let responses = json::member(&body, "Responses")?.filter(|raw| *raw != b"null").unwrap_or(b"[]");
        for (one, response) in kept.iter().zip(json::elements(responses)?) {
            let [item, error] = json::attributes_of(response, ["Item", "Error"])?;
            let schema = match one {
                Kept::Physical(schema) => schema,
                Kept::Unkeyed if item.is_some_and(|item| item != b"null") => return Err(json::Malformed),
                _ => continue,
            };
            let refused = match error.filter(|raw| *raw != b"null") {
                Some(error) => json::member(error, "Item")?,
                None => None,
            };
            for item in [item, refused].into_iter().flatten() {
                strip_object(schema, item, splice)?;
            }
        }
        Ok(())
    })
}

/// A cancelled transaction, with the items in its reasons made logical.
fn cancelled(kept: &[Kept], error: Error) -> Error {
    let Some(Json::Array(reasons)) = error.members.get("CancellationReasons") else { return error };
    let mut reasons = reasons.clone();
    let mut renamed = false;
    for (one, reason_of) in kept.iter().zip(&mut reasons) {
        match one {
            Kept::Plain | Kept::Unkeyed => {}
            Kept::Guarded(error) if of_the_name(reason_of) => {
                *reason_of = reason(error);
                renamed = true;
            }
            Kept::Guarded(_) => {}
            Kept::Physical(schema) => {
                if let Some(item) = reason_of.get("Item").and_then(|item| logical_item(schema, item)) {
                    reason_of["Item"] = item;
                }
            }
        }
    }
    let mut error = error;
    if renamed {
        let codes: Vec<&str> = reasons.iter().filter_map(|reason| reason["Code"].as_str()).collect();
        error.message = Some(format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        ));
    }
    error.with("CancellationReasons", Json::Array(reasons))
}

fn of_the_name(refused: &Json) -> bool {
    let code = match refused["Code"].as_str() {
        Some("ResourceNotFound") => Code::ResourceNotFoundException,
        _ => Code::ValidationException,
    };
    guard::of_the_name(&code, refused["Message"].as_str())
}

fn reason(error: &Error) -> Json {
    json!({ "Code": "ValidationError", "Message": error.message })
}
