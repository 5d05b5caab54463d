//! The operands of the comparison operators that expressions replaced: how many each takes, and of
//! which types.
//!
//! Sources: AWS API reference, `Condition`; wording and order of the checks as tried on DynamoDB
//! Local 1.11.478, which also takes `BOOL` and `NULL` for `CONTAINS`.

use crate::{Error, KeyValue, Value};

/// Checks the operands of an operator; one that DynamoDB does not have passes.
///
/// # Errors
/// `ValidationException`, in DynamoDB's words.
pub fn check(operator: &str, operands: &[Value]) -> Result<(), Error> {
    let count = match operator {
        "NULL" | "NOT_NULL" => operands.is_empty(),
        "BETWEEN" => operands.len() == 2,
        "IN" => !operands.is_empty(),
        "EQ" | "NE" | "LE" | "LT" | "GE" | "GT" | "BEGINS_WITH" | "CONTAINS" | "NOT_CONTAINS" => {
            operands.len() == 1
        }
        _ => return Ok(()),
    };
    if !count {
        return Err(invalid(&format!("Invalid number of argument(s) for the {operator} ComparisonOperator")));
    }
    if let Some(wrong) = operands.iter().find(|operand| !takes(operator, operand)) {
        let kind = wrong.type_name();
        return Err(invalid(&format!(
            "ComparisonOperator {operator} is not valid for {kind} AttributeValue type"
        )));
    }
    if let [first, others @ ..] = operands
        && others.iter().any(|other| other.type_name() != first.type_name())
    {
        return Err(invalid("AttributeValues inside AttributeValueList must be of same type"));
    }
    match (operator, operands) {
        ("BETWEEN", [low, high]) if KeyValue::from_value(low) > KeyValue::from_value(high) => {
            Err(Error::validation(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
            ))
        }
        _ => Ok(()),
    }
}

fn takes(operator: &str, operand: &Value) -> bool {
    let scalar = matches!(operand, Value::S(_) | Value::N(_) | Value::B(_));
    match operator {
        "LE" | "LT" | "GE" | "GT" | "BETWEEN" | "IN" => scalar,
        "BEGINS_WITH" => matches!(operand, Value::S(_) | Value::B(_)),
        "CONTAINS" | "NOT_CONTAINS" => scalar || matches!(operand, Value::Bool(_) | Value::Null),
        _ => true,
    }
}

fn invalid(why: &str) -> Error {
    Error::validation(format!("One or more parameter values were invalid: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_refused_in_dynamodbs_words() {
        let cases = [
            ("EQ", vec![r#"{"BOOL":true}"#], None),
            ("NE", vec![r#"{"L":[]}"#], None),
            ("NULL", vec![], None),
            ("CONTAINS", vec![r#"{"BOOL":true}"#], None),
            ("NOT_CONTAINS", vec![r#"{"NULL":true}"#], None),
            ("BETWEEN", vec![r#"{"N":"9"}"#, r#"{"N":"10"}"#], None),
            ("IN", vec![r#"{"S":"b"}"#, r#"{"S":"a"}"#], None),
            ("LIKE", vec![], None),
            (
                "GE",
                vec![r#"{"BOOL":true}"#],
                Some("ComparisonOperator GE is not valid for BOOL AttributeValue type"),
            ),
            (
                "LT",
                vec![r#"{"SS":["a"]}"#],
                Some("ComparisonOperator LT is not valid for SS AttributeValue type"),
            ),
            (
                "CONTAINS",
                vec![r#"{"M":{}}"#],
                Some("ComparisonOperator CONTAINS is not valid for M AttributeValue type"),
            ),
            (
                "BEGINS_WITH",
                vec![r#"{"N":"1"}"#],
                Some("ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"),
            ),
            (
                "IN",
                vec![r#"{"S":"a"}"#, r#"{"BOOL":true}"#],
                Some("ComparisonOperator IN is not valid for BOOL AttributeValue type"),
            ),
            (
                "IN",
                vec![r#"{"S":"a"}"#, r#"{"N":"1"}"#],
                Some("AttributeValues inside AttributeValueList must be of same type"),
            ),
            ("IN", vec![], Some("Invalid number of argument(s) for the IN ComparisonOperator")),
            (
                "NOT_NULL",
                vec![r#"{"S":"a"}"#],
                Some("Invalid number of argument(s) for the NOT_NULL ComparisonOperator"),
            ),
            (
                "BETWEEN",
                vec![r#"{"NULL":true}"#, r#"{"NULL":true}"#],
                Some("ComparisonOperator BETWEEN is not valid for NULL AttributeValue type"),
            ),
            (
                "BETWEEN",
                vec![r#"{"N":"10"}"#, r#"{"N":"9"}"#],
                Some("lower bound is greater than the upper bound"),
            ),
        ];
        for (operator, operands, words) in cases {
            let operands: Vec<Value> =
                operands.iter().map(|operand| Value::read(operand.as_bytes()).unwrap()).collect();
            let refused = check(operator, &operands).err().and_then(|error| error.message);
            match words {
                None => assert_eq!(refused, None, "{operator} {operands:?}"),
                Some(words) => assert!(refused.unwrap().ends_with(words), "{operator} {operands:?}"),
            }
        }
    }
}
