//! Values of a Query's conditions on keys that no key has: DynamoDB refuses empty ones, the engine
//! finds nothing.

use heatsink_dynamo::expression::{Bindings, Checks, Condition, Kind, Operand};
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{Error, KeyValue, Value, json};

/// Refuses empty values; of a Query in which the engine found nothing wrong.
///
/// # Errors
/// `ValidationException`.
pub(super) fn check(body: &[u8]) -> Result<(), Error> {
    tests(body).unwrap_or_default().iter().try_for_each(|(name, value)| match KeyValue::from_value(value) {
        // Its length is the engine's to judge, which knows the part.
        Some(key)
            if matches!(value, Value::S(text) if text.is_empty())
                || matches!(value, Value::B(bytes) if bytes.is_empty()) =>
        {
            key.check(KeyPart::Partition, name)
        }
        _ => Ok(()),
    })
}

/// The names of key attributes, each with a value that it is compared with.
fn tests(body: &[u8]) -> Option<Vec<(String, Value)>> {
    let member = |name: &str| json::member(body, name).ok().flatten().filter(|raw| *raw != b"null");
    if let Some(conditions) = member("KeyConditions") {
        let mut found = Vec::new();
        for (name, condition) in json::members(conditions).ok()? {
            for value in json::elements(json::member(condition, "AttributeValueList").ok()??).ok()? {
                found.push((name.clone().into_owned(), Value::read(value).ok()?));
            }
        }
        return Some(found);
    }
    let text = json::string(member("KeyConditionExpression")?).ok()?;
    let names = member("ExpressionAttributeNames");
    let bindings = Bindings::read(names, member("ExpressionAttributeValues")).ok()?;
    let mut found = Vec::new();
    collect(Condition::read(Kind::KeyCondition, &text, &bindings, Checks::Meaning).ok()?, &mut found);
    Some(found)
}

fn collect(condition: Condition, found: &mut Vec<(String, Value)>) {
    let operands = match condition {
        Condition::And(parts) => return parts.into_iter().for_each(|part| collect(part, found)),
        Condition::Compare(a, _, b) | Condition::BeginsWith(a, b) => vec![a, b],
        Condition::Between(a, b, c) => vec![a, b, c],
        _ => return,
    };
    let Some(name) = operands.iter().find_map(Operand::path).map(|path| path.root.clone()) else { return };
    let value =
        |operand| if let Operand::Value(value) = operand { Some((name.clone(), value)) } else { None };
    found.extend(operands.into_iter().filter_map(value));
}
