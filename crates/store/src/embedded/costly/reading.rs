//! Requests that DynamoDB takes, and that the engine would need too much memory or time for before
//! it evaluates anything.

use heatsink_dynamo::{Error, Operation, json, memory_estimate};

use super::refused;

/// The most that reading one request may take, as it is estimated.
const MEMORY: usize = 320 << 20;
/// Shorter bodies take less, whatever is in them: some 150 MB where they nest as deep as they may.
const SHORT: usize = 64 << 10;

/// The most names of `AttributesToGet`: the engine compares each with each.
const NAMES: usize = 10_000;
/// The most operands of the conditions of one member: the engine copies them for each page.
const OPERANDS: usize = 20_000;

/// Refuses a request that is too large in one of these ways.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn check(operation: Operation, body: &[u8]) -> Result<(), Error> {
    // An operand has ten bytes, a name three.
    if body.len() > 3 * NAMES {
        names(operation, body)?;
        operands(operation, body)?;
    }
    if body.len() > SHORT && memory_estimate(operation, body) > MEMORY {
        return Err(refused(&format!("reading it takes more than {} MB", MEMORY >> 20)));
    }
    Ok(())
}

fn names(operation: Operation, body: &[u8]) -> Result<(), Error> {
    match operation {
        Operation::GetItem | Operation::Query | Operation::Scan => few_names(body),
        Operation::BatchGetItem => {
            let tables = json::member(body, "RequestItems").ok().flatten().unwrap_or(b"{}");
            let tables = json::members(tables).unwrap_or_default();
            tables.iter().try_for_each(|(_, table)| few_names(table))
        }
        _ => Ok(()),
    }
}

fn few_names(object: &[u8]) -> Result<(), Error> {
    match json::member(object, "AttributesToGet").ok().flatten().map(|names| json::few_elements(names, NAMES))
    {
        Some(Ok(None)) => Err(refused(&format!("AttributesToGet of more than {NAMES} names"))),
        _ => Ok(()),
    }
}

fn operands(operation: Operation, body: &[u8]) -> Result<(), Error> {
    let members: &[&str] = match operation {
        Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => &["Expected"],
        Operation::Query => &["QueryFilter", "KeyConditions"],
        Operation::Scan => &["ScanFilter"],
        _ => &[],
    };
    for member in members {
        let Ok(Some(conditions)) = json::member(body, member) else { continue };
        let mut left = OPERANDS;
        for (_, condition) in json::members(conditions).unwrap_or_default() {
            let list = json::member(condition, "AttributeValueList").ok().flatten().unwrap_or(b"[]");
            // A condition without operands is no less work.
            let taken = match json::few_elements(list, left) {
                Ok(None) => left + 1,
                Ok(Some(operands)) => operands.len().max(1),
                Err(_) => 1,
            };
            left = left
                .checked_sub(taken)
                .ok_or_else(|| refused(&format!("{member} with more than {OPERANDS} operands")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(operation: Operation, body: &str) -> Option<String> {
        check(operation, body.as_bytes()).err().and_then(|error| error.message)
    }

    #[test]
    fn what_would_keep_others_waiting_is_refused_by_name() {
        let list = |one: &str, count: usize| vec![one; count].join(",");
        let names = |count: usize| format!(r#""AttributesToGet":[{}]"#, list("\"a\"", count));
        for (operation, body) in [
            (Operation::Query, "{NAMES}"),
            (Operation::BatchGetItem, r#"{"RequestItems":{"a":{"Keys":[]},"b":{NAMES}}}"#),
        ] {
            assert_eq!(refusal(operation, &body.replace("NAMES", &names(NAMES))), None);
            let refused = refusal(operation, &body.replace("NAMES", &names(NAMES + 1))).unwrap();
            assert!(refused.contains("AttributesToGet of more than 10000 names"), "{refused}");
        }
        let one = |count: usize| {
            format!(
                r#""a":{{"ComparisonOperator":"IN","AttributeValueList":[{}]}}"#,
                list(r#"{"S":"a"}"#, count)
            )
        };
        let many = |count: usize| list(r#""a":{"ComparisonOperator":"NULL"}"#, count);
        let both = |count: usize| format!("{},{}", one(count / 2), many(count - count / 2));
        for (operation, member) in [
            (Operation::Query, "QueryFilter"),
            (Operation::Scan, "ScanFilter"),
            (Operation::PutItem, "Expected"),
        ] {
            for conditions in [&one as &dyn Fn(usize) -> String, &many, &both] {
                let body = |count| format!(r#"{{"{member}":{{{}}}}}"#, conditions(count));
                assert_eq!(refusal(operation, &body(OPERANDS)), None, "{member}");
                let refused = refusal(operation, &body(OPERANDS + 1)).unwrap();
                assert!(refused.contains(&format!("{member} with more than 20000 operands")), "{refused}");
            }
        }
        let parameters =
            |count| format!(r#"{{"Statement":"x","Parameters":[{}]}}"#, list(r#"{"M":{}}"#, count));
        assert_eq!(refusal(Operation::ExecuteStatement, &parameters(100_000)), None);
        assert!(
            refusal(Operation::ExecuteStatement, &parameters(200_000)).unwrap().contains("more than 320 MB")
        );
    }
}
