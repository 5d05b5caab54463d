//! What a write means for the fragments of a counter, and what is refused because no fragment can
//! know it.

use heatsink_dynamo::expression::{Assigned, Bindings, Checks, Condition, Kind, Update};
use heatsink_dynamo::{Error, Operation, Value, json};

use crate::refusal::Unsent;
use crate::request::Request;

/// What a write does to the fragments.
#[derive(Debug)]
pub(crate) enum Effect {
    /// It only adds to declared numbers: any fragment can take it.
    Add(Update),
    /// It concerns the base fragment alone.
    Base,
    /// The base fragment takes the write, and in the others these attributes go; all that is
    /// declared, if `None`.
    All(Option<Vec<String>>),
}

/// Reads a PutItem, UpdateItem or DeleteItem, or such an action of a transaction; `None` for a
/// ConditionCheck.
pub(crate) fn read(
    operation: Option<Operation>,
    request: &Request<'_>,
    counted: &[String],
) -> Result<Effect, Unsent> {
    let bindings =
        Bindings::read(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
            .map_err(Unsent::Refused)?;
    let text = |name| request.string(name).map_err(Unsent::Refused);
    let condition = text("ConditionExpression")?;
    if let Some(text) = condition.as_deref() {
        let condition = Condition::read(Kind::Condition, text, &bindings, Checks::Meaning)
            .map_err(Unsent::Meaningless)?;
        if let Some(name) = counted.iter().find(|name| condition.mentions(name)) {
            return refused(format!(
                "a condition cannot read {name}: no single fragment has the sum. Read the item first, or keep a limit in an attribute that is \
                 not a counter"
            ));
        }
    }
    if text("ReturnValuesOnConditionCheckFailure")?.as_deref() == Some("ALL_OLD") {
        return refused(
            "ReturnValuesOnConditionCheckFailure = ALL_OLD would show a part of the numbers. Read the item with GetItem".to_owned(),
        );
    }
    legacy(request, counted)?;
    let returned = text("ReturnValues")?;
    let shows_all = matches!(returned.as_deref(), Some("ALL_OLD" | "ALL_NEW"));
    if shows_all {
        return refused(format!(
            "ReturnValues = {} would show a part of the numbers, and ids taken from it would repeat. Read the item with GetItem",
            returned.unwrap_or_default()
        ));
    }
    // What the store refuses for certain goes to the base fragment.
    let invalid = match operation {
        Some(Operation::UpdateItem) => {
            request.get("AttributeUpdates").is_some() && request.get("UpdateExpression").is_some()
        }
        _ => !matches!(returned.as_deref(), None | Some("NONE")),
    };
    if invalid {
        return Ok(Effect::Base);
    }
    match operation {
        Some(Operation::PutItem) => {
            let item = request.get("Item").unwrap_or(b"{}");
            for name in counted {
                let value = json::member(item, name).ok().flatten().map(Value::read);
                if let Some(Ok(value)) = value.filter(|value| !matches!(value, Ok(Value::N(_)))) {
                    return refused(no_number(name, &value));
                }
            }
            Ok(Effect::All(None))
        }
        Some(Operation::DeleteItem) => Ok(Effect::All(None)),
        Some(_) => {
            let Some(text) = text("UpdateExpression")? else { return Ok(Effect::Base) };
            let update = Update::parse(&text, &bindings).map_err(Unsent::Meaningless)?;
            let shows = matches!(returned.as_deref(), Some("UPDATED_OLD" | "UPDATED_NEW"));
            let plain = condition.is_none() && !shows;
            self::update(update, counted, shows, plain)
        }
        None => Ok(Effect::Base),
    }
}

/// Whether the checks here find something wrong with a write's expressions. A transaction may check
/// them otherwise, and has other words for what it finds.
pub(crate) fn doubtful(request: &Request<'_>) -> bool {
    let checked = || {
        let bindings = Bindings::read(
            request.get("ExpressionAttributeNames"),
            request.get("ExpressionAttributeValues"),
        )?;
        let condition = request.string("ConditionExpression")?;
        if let Some(text) = condition.as_deref() {
            Condition::read(Kind::Condition, text, &bindings, Checks::All)?;
        }
        let update = request.string("UpdateExpression")?;
        let texts: Vec<&str> = [&condition, &update].into_iter().flatten().map(|text| &**text).collect();
        bindings.check_unused(&texts)
    };
    checked().is_err()
}

fn update(update: Update, counted: &[String], shows: bool, plain: bool) -> Result<Effect, Unsent> {
    let mut gone = Vec::new();
    for name in counted {
        if let Some((_, value)) = update.set.iter().find(|(_, value)| reads(value, name)) {
            let example = matches!(value, Assigned::Plus(..) | Assigned::Minus(..));
            let instead =
                if example { format!("Use ADD {name} :n") } else { "Read the item first".to_owned() };
            return refused(format!("SET cannot read {name}: no single fragment has the sum. {instead}"));
        }
        if !update.writes(name) {
            continue;
        }
        if shows {
            return refused(format!(
                "ReturnValues would show a part of {name}, and ids taken from it would repeat. Read the item with GetItem"
            ));
        }
        if let Some(path) = update.targets().find(|path| path.root == *name && !path.rest.is_empty()) {
            return refused(format!("{path} lies in {name}, which is a number and holds nothing"));
        }
        if let Some((_, value)) = update
            .add
            .iter()
            .chain(&update.delete)
            .find(|(path, value)| path.root == *name && !matches!(value, Value::N(_)))
        {
            return refused(no_number(name, value));
        }
        match update.set.iter().find(|(path, _)| path.root == *name) {
            Some((_, Assigned::Value(Value::N(_)))) => gone.push(name.clone()),
            Some((_, Assigned::Value(value))) => return refused(no_number(name, value)),
            Some(_) => {
                return refused(format!(
                    "SET {name} takes a number given in the request (SET {name} = :n), since it is removed from all other fragments"
                ));
            }
            None if update.remove.iter().any(|path| path.root == *name) => gone.push(name.clone()),
            None => {}
        }
    }
    if gone.len() == counted.len() {
        return Ok(Effect::All(None));
    }
    if !gone.is_empty() {
        return Ok(Effect::All(Some(gone)));
    }
    let only_adds = update.set.is_empty()
        && update.remove.is_empty()
        && update.delete.is_empty()
        && update.add.iter().all(|(path, _)| counted.iter().any(|name| path.is_root(name)));
    Ok(if only_adds && plain { Effect::Add(update) } else { Effect::Base })
}

fn reads(value: &Assigned, name: &str) -> bool {
    match value {
        Assigned::Path(path) => path.root == name,
        Assigned::Value(_) => false,
        Assigned::IfNotExists(path, default) => path.root == name || reads(default, name),
        Assigned::ListAppend(a, b) | Assigned::Plus(a, b) | Assigned::Minus(a, b) => {
            reads(a, name) || reads(b, name)
        }
    }
}

/// The parameters that expressions replaced say nothing that expressions cannot: on counters they
/// may not name a declared number, and a write over all fragments is a transaction, which does not
/// have them.
fn legacy(request: &Request<'_>, counted: &[String]) -> Result<(), Unsent> {
    for member in ["AttributeUpdates", "Expected", "ConditionalOperator"] {
        let Some(raw) = request.get(member) else { continue };
        let named = json::members(raw).unwrap_or_default();
        let counts = named.iter().any(|(name, _)| counted.iter().any(|counted| counted == name));
        let transacts = request.get("AttributeUpdates").is_none();
        if counts || transacts {
            return refused(format!(
                "{member} is a legacy parameter that is not supported on counters; use UpdateExpression and ConditionExpression"
            ));
        }
    }
    Ok(())
}

pub(crate) fn no_number(name: &str, value: &Value) -> String {
    format!(
        "{name} is declared as a counter and takes numbers only, not a value of type {}",
        value.type_name()
    )
}

/// A refusal that all of this module's share the words of.
fn refused<T>(why: String) -> Result<T, Unsent> {
    Err(Unsent::Refused(refusal(&why)))
}

/// The error of what a counter does not support.
pub(crate) fn refusal(why: &str) -> Error {
    Error::gateway_rejection(format!(
        "Not supported on a counter, whose numbers are spread over fragments: {why}. Nothing was written"
    ))
}
