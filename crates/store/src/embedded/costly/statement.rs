//! PartiQL statements that could cost too much. Their functions and conditions are counted, because
//! a statement does not tell the sizes of what it reads.

use heatsink_dynamo::{Error, Operation, Value, json};

use super::refused;

/// The most calls of one of these functions in all statements of a request.
const CALLS: usize = 8;
/// The most conditions joined by AND and OR in one statement.
const CONDITIONS: usize = 50;
/// The most members of a set that is added or taken out, where it is a parameter.
const MEMBERS: usize = 250;
/// The longest statement that adds or takes out a set that it writes out, in bytes.
const WRITTEN: usize = 2048;
/// The longest binary that is searched for, in bytes.
const BINARY: usize = 2048;

/// Refuses statements that could keep the engine busy.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn check(operation: Operation, body: &[u8]) -> Result<(), Error> {
    let list = match operation {
        Operation::ExecuteStatement => None,
        Operation::BatchExecuteStatement => Some("Statements"),
        Operation::ExecuteTransaction => Some("TransactStatements"),
        _ => return Ok(()),
    };
    let statements = match list {
        None => vec![body],
        Some(member) => {
            let list = json::member(body, member).ok().flatten();
            list.and_then(|list| json::elements(list).ok()).unwrap_or_default()
        }
    };
    let mut calls = [0_usize; 2];
    for statement in statements {
        let Ok([text, parameters]) = json::attributes_of(statement, ["Statement", "Parameters"]) else {
            continue;
        };
        let Some(text) = text.and_then(|text| json::string(text).ok()) else { continue };
        let text = text.to_ascii_lowercase();
        let count = |word: &str| text.matches(word).count();
        let (contains, appends) = (count("contains"), count("list_append"));
        for (sum, more) in calls.iter_mut().zip([contains, appends]) {
            *sum += more;
            if *sum > CALLS {
                return Err(refused(&format!("more than {CALLS} calls of one function in PartiQL")));
            }
        }
        if count(" and ") + count(" or ") >= CONDITIONS {
            return Err(refused(&format!("a statement of more than {CONDITIONS} conditions")));
        }
        let joins = count("set_add") + count("set_delete") > 0;
        if joins && text.len() > WRITTEN {
            return Err(refused("a statement that writes out so large a set"));
        }
        if !joins && contains == 0 {
            continue;
        }
        for parameter in parameters.and_then(|list| json::elements(list).ok()).unwrap_or_default() {
            match Value::read(parameter) {
                Ok(Value::B(bytes)) if contains > 0 && bytes.len() > BINARY => {
                    return Err(refused(&format!("contains of more than {BINARY} bytes in PartiQL")));
                }
                Ok(set) if joins && members(&set) > MEMBERS => {
                    return Err(refused(&format!("a set of more than {MEMBERS} members in PartiQL")));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn members(value: &Value) -> usize {
    match value {
        Value::Ss(set) => set.len(),
        Value::Ns(set) => set.len(),
        Value::Bs(set) => set.len(),
        _ => 0,
    }
}
