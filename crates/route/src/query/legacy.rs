//! The parameters that expressions replaced, as expressions: `KeyConditions`, `QueryFilter`, `ConditionalOperator`,
//! `AttributesToGet`.
//!
//! `NOT_CONTAINS` is refused: for items without the attribute it is not documented to be what `NOT contains` is.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Error, Operation};

use super::request::Unplanned;
use crate::request::Request;

const LEGACY: [&str; 4] = ["KeyConditions", "QueryFilter", "ConditionalOperator", "AttributesToGet"];
const MODERN: [&str; 5] = [
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
];

/// The request with expressions in the place of legacy parameters; `None` if it has none.
pub(crate) fn modernized(body: &Bytes) -> Result<Option<Bytes>, Unplanned> {
    let request = Request::read(body).map_err(Unplanned::Refused)?;
    if LEGACY.iter().all(|name| request.get(name).is_none()) {
        return Ok(None);
    }
    if MODERN.iter().any(|name| request.get(name).is_some()) {
        return Err(Unplanned::Invalid);
    }
    let mut placeholders = Placeholders { names: Object::new(), values: Object::new(), count: 0 };
    let mut changes: Vec<(&str, Option<Vec<u8>>)> = LEGACY.iter().map(|name| (*name, None)).collect();
    let conditions = request.get("KeyConditions").ok_or(Unplanned::Invalid)?;
    let tests = tests(conditions, &mut placeholders, true)?;
    changes.push(("KeyConditionExpression", Some(quoted(&tests.join(" AND ")))));
    let operator = request.string("ConditionalOperator").map_err(|_| Unplanned::Invalid)?;
    match (request.get("QueryFilter"), operator.as_deref()) {
        (None, None) => {}
        (Some(filter), operator @ (None | Some("AND" | "OR"))) => {
            let tests = self::tests(filter, &mut placeholders, false)?;
            // One filter after another is joined by AND where nothing is said.
            let text = tests.join(if operator == Some("OR") { " OR " } else { " AND " });
            if !tests.is_empty() {
                changes.push(("FilterExpression", Some(quoted(&text))));
            }
        }
        _ => return Err(Unplanned::Invalid),
    }
    if let Some(names) = request.get("AttributesToGet") {
        let mut listed = Vec::new();
        for name in json::elements(names)? {
            listed.push(placeholders.name(&json::string(name)?));
        }
        changes.push(("ProjectionExpression", Some(quoted(&listed.join(", ")))));
    }
    changes.push(("ExpressionAttributeNames", Some(placeholders.names.finish())));
    changes.push(("ExpressionAttributeValues", Some(placeholders.values.finish())));
    let changes: Vec<(&str, Option<&[u8]>)> =
        changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    Ok(Some(Bytes::from(json::splice_members(body, &changes)?)))
}

struct Placeholders {
    names: Object,
    values: Object,
    count: usize,
}

impl Placeholders {
    fn name(&mut self, name: &str) -> String {
        self.count += 1;
        let placeholder = format!("#l{}", self.count);
        self.names.string(&placeholder, name);
        placeholder
    }

    fn value(&mut self, value: &[u8]) -> String {
        self.count += 1;
        let placeholder = format!(":l{}", self.count);
        self.values.raw(&placeholder, value);
        placeholder
    }
}

/// The tests of a map of conditions, as expressions.
fn tests(conditions: &[u8], placeholders: &mut Placeholders, key: bool) -> Result<Vec<String>, Unplanned> {
    let mut tests = Vec::new();
    for (attribute, condition) in json::members(conditions)? {
        let [operator, list] = json::attributes_of(condition, ["ComparisonOperator", "AttributeValueList"])?;
        let operator = json::string(operator.ok_or(Unplanned::Invalid)?)?;
        let name = placeholders.name(&attribute);
        let list = list.filter(|list| *list != b"null").map_or(Ok(Vec::new()), json::elements)?;
        let values: Vec<String> = list.into_iter().map(|value| placeholders.value(value)).collect();
        let test = match (&*operator, values.as_slice()) {
            ("EQ", [value]) => format!("{name} = {value}"),
            ("LT", [value]) => format!("{name} < {value}"),
            ("LE", [value]) => format!("{name} <= {value}"),
            ("GT", [value]) => format!("{name} > {value}"),
            ("GE", [value]) => format!("{name} >= {value}"),
            ("BEGINS_WITH", [value]) => format!("begins_with({name}, {value})"),
            ("BETWEEN", [low, high]) => format!("{name} BETWEEN {low} AND {high}"),
            ("NE", [value]) if !key => format!("{name} <> {value}"),
            ("CONTAINS", [value]) if !key => format!("contains({name}, {value})"),
            ("IN", [_, ..]) if !key => format!("{name} IN ({})", values.join(", ")),
            ("NULL", []) if !key => format!("attribute_not_exists({name})"),
            ("NOT_NULL", []) if !key => format!("attribute_exists({name})"),
            ("NOT_CONTAINS", [_]) if !key => {
                return Err(Unplanned::Refused(Error::validation(format!(
                    "{} with the legacy operator NOT_CONTAINS is not supported on a sharded table: use a FilterExpression with \
                     NOT contains(…) instead",
                    Operation::Query.name()
                ))));
            }
            _ => return Err(Unplanned::Invalid),
        };
        tests.push(test);
    }
    Ok(tests)
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    json::write_string(&mut out, text);
    out
}
