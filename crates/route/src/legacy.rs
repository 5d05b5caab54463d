//! The parameters that expressions replaced: conditions as tests of an expression, and `Expected`
//! on the partition key of an item whose logical key is known.
//!
//! Elsewhere they pass on as they came: a store tests stored values, and only the partition key is
//! stored otherwise than sent.

pub(crate) mod expressed;
mod lowering;

use heatsink_dynamo::expression::{Bindings, Checks, Condition, Kind};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{AttributeDefinition, Error, Item, KeyType, Value, comparison};

use heatsink_layout::Table;

pub(crate) use self::lowering::modernized;
use crate::index_key::legacy::Stored;
use crate::index_key::{self, Spread};
use crate::key::{Located, literal};
use crate::request::Request;

/// A legacy parameter that is not of the form it must have: the store refuses it.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl From<Malformed> for Unreadable {
    fn from(_: Malformed) -> Self {
        Unreadable
    }
}

/// Collects the placeholders of the expressions that take the place of legacy parameters.
pub(crate) struct Placeholders {
    names: Object,
    values: Object,
    count: usize,
}

impl Placeholders {
    pub(crate) fn new() -> Self {
        Placeholders { names: Object::new(), values: Object::new(), count: 0 }
    }

    pub(crate) fn name(&mut self, name: &str) -> String {
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

    /// `ExpressionAttributeNames` and `ExpressionAttributeValues`; `None` where there are none.
    pub(crate) fn finish(self) -> [Option<Vec<u8>>; 2] {
        [self.names, self.values].map(|object| (!object.is_empty()).then(|| object.finish()))
    }
}

/// What the tests of a map of conditions are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// `KeyConditions`, which know fewer operators.
    Key,
    /// `QueryFilter` and `ScanFilter`.
    Filter,
}

/// The tests of a map of conditions, as expressions.
pub(crate) fn tests(
    conditions: &[u8],
    placeholders: &mut Placeholders,
    tests: Tests,
) -> Result<Vec<String>, Unreadable> {
    let mut found = Vec::new();
    for (attribute, condition) in json::members(conditions)? {
        let [operator, list] = json::attributes_of(condition, ["ComparisonOperator", "AttributeValueList"])?;
        let operator = json::string(operator.ok_or(Unreadable)?)?;
        let list = list.filter(|list| *list != b"null").map_or(Ok(Vec::new()), json::elements)?;
        found.push(test(&attribute, &operator, &list, placeholders, tests)?);
    }
    Ok(found)
}

fn test(
    attribute: &str,
    operator: &str,
    list: &[&[u8]],
    placeholders: &mut Placeholders,
    tests: Tests,
) -> Result<String, Unreadable> {
    let name = placeholders.name(attribute);
    let values: Vec<String> = list.iter().map(|value| placeholders.value(value)).collect();
    let any = tests == Tests::Filter;
    Ok(match (operator, values.as_slice()) {
        ("EQ", [value]) => format!("{name} = {value}"),
        ("LT", [value]) => format!("{name} < {value}"),
        ("LE", [value]) => format!("{name} <= {value}"),
        ("GT", [value]) => format!("{name} > {value}"),
        ("GE", [value]) => format!("{name} >= {value}"),
        ("BEGINS_WITH", [value]) => format!("begins_with({name}, {value})"),
        ("BETWEEN", [low, high]) => format!("{name} BETWEEN {low} AND {high}"),
        ("NE", [value]) if any => format!("{name} <> {value}"),
        ("CONTAINS", [value]) if any => format!("contains({name}, {value})"),
        // It holds for items without the attribute, as NOT does (seen of dynalite and of the
        // embedded engine, whose authors compare with AWS).
        ("NOT_CONTAINS", [value]) if any => format!("NOT contains({name}, {value})"),
        ("IN", [_, ..]) if any => format!("{name} IN ({})", values.join(", ")),
        ("NULL", []) if any => format!("attribute_not_exists({name})"),
        ("NOT_NULL", []) if any => format!("attribute_exists({name})"),
        _ => return Err(Unreadable),
    })
}

/// One filter out of several tests. They are joined by AND where nothing is said.
pub(crate) fn filter(
    conditions: &[u8],
    operator: Option<&str>,
    placeholders: &mut Placeholders,
) -> Result<Option<String>, Unreadable> {
    let join = match operator {
        None | Some("AND") => " AND ",
        Some("OR") => " OR ",
        Some(_) => return Err(Unreadable),
    };
    let tests = tests(conditions, placeholders, Tests::Filter)?;
    Ok((!tests.is_empty()).then(|| tests.join(join)))
}

/// `AttributesToGet` as a projection.
pub(crate) fn projection(names: &[u8], placeholders: &mut Placeholders) -> Result<String, Unreadable> {
    let mut listed = Vec::new();
    for name in json::elements(names)? {
        listed.push(placeholders.name(&json::string(name)?));
    }
    Ok(listed.join(", "))
}

/// Whether a map of conditions compares the value of an attribute. Those that only ask whether it
/// is there hold for physical keys as for logical ones.
pub(crate) fn compares(conditions: &[u8], name: &str) -> Result<bool, Unreadable> {
    for (attribute, condition) in json::members(conditions)? {
        if attribute == name {
            let [value, list] = json::attributes_of(condition, ["Value", "AttributeValueList"])?;
            let list = list.filter(|list| *list != b"null").map_or(Ok(Vec::new()), json::elements)?;
            return Ok(value.is_some_and(|value| value != b"null") || !list.is_empty());
        }
    }
    Ok(false)
}

/// What becomes of `Expected`.
pub(crate) enum Expected {
    /// It does not compare the partition key, or the physical key is the logical one.
    Unchanged,
    /// The parameter, which asks of the partition key what the logical key makes of the comparison.
    Changed(Vec<u8>),
    /// It has no form of its own for what these logical conditions mean of stored values
    /// ([`expressed`]).
    NoForm(Vec<u8>),
    /// It means nothing here: the error is the answer, unless the store has words of its own for
    /// it.
    Meaningless(Error),
}

/// Rewrites `Expected` for an item whose logical key is known.
pub(crate) fn expected(
    request: &Request<'_>,
    table: &Table,
    located: &Located<'_>,
) -> Result<Expected, Error> {
    let Some(conditions) = request.get("Expected") else { return Ok(Expected::Unchanged) };
    let partition = &table.key.partition;
    let mut changed = None;
    if !located.affixes.is_empty() {
        match compares(conditions, &partition.name) {
            Ok(false) => {}
            Ok(true) => {
                match (refusal(conditions, &partition.name), replaced(conditions, partition, located)) {
                    (Some(error), _) => return Ok(Expected::Meaningless(error)),
                    (None, Ok(replaced)) => changed = Some(replaced),
                    (None, Err(Unreadable)) => return Ok(meaningless(partition)),
                }
            }
            Err(Unreadable) => return Ok(meaningless(partition)),
        }
    }
    if let Some(spread) = Spread::of(table, located) {
        let logical = changed.as_deref().unwrap_or(conditions);
        match index_key::legacy::expected(logical, &spread)? {
            Stored::Unmentioned => {}
            Stored::InForm(stored) => changed = Some(stored),
            Stored::NoForm => return Ok(Expected::NoForm(logical.to_vec())),
        }
    }
    Ok(changed.map_or(Expected::Unchanged, Expected::Changed))
}

/// Rewrites `AttributeUpdates` for an item whose logical key is known; `None` where it stays as it
/// is.
pub(crate) fn attribute_updates(
    request: &Request<'_>,
    table: &Table,
    located: &Located<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    match (request.get("AttributeUpdates"), Spread::of(table, located)) {
        (Some(updates), Some(spread)) => index_key::legacy::updates(updates, &spread),
        _ => Ok(None),
    }
}

/// What DynamoDB says of the operands that the condition on an attribute compares with, if it
/// refuses them. Once the condition is replaced by what the logical key makes of it, the store can
/// no longer tell.
fn refusal(conditions: &[u8], name: &str) -> Option<Error> {
    let (_, condition) =
        json::members(conditions).ok()?.into_iter().find(|(attribute, _)| attribute == name)?;
    let members = ["Value", "ComparisonOperator", "AttributeValueList"];
    let [value, operator, list] =
        json::attributes_of(condition, members).ok()?.map(|raw| raw.filter(|raw| *raw != b"null"));
    let operands = match (value, list) {
        (Some(value), None) => vec![value],
        (None, list) => list.map_or(Ok(Vec::new()), json::elements).ok()?,
        // The two do not go together, which is another mistake.
        (Some(_), Some(_)) => return None,
    };
    let operands: Result<Vec<Value>, _> = operands.into_iter().map(Value::read).collect();
    comparison::check(&json::string(operator?).ok()?, &operands.ok()?).err()
}

fn meaningless(partition: &AttributeDefinition) -> Expected {
    Expected::Meaningless(Error::validation(format!(
        "One or more parameter values were invalid: Invalid Expected for attribute: {}",
        partition.name
    )))
}

fn replaced(
    conditions: &[u8],
    partition: &AttributeDefinition,
    located: &Located<'_>,
) -> Result<Vec<u8>, Unreadable> {
    let logical = literal(partition.key_type, &located.partition.bytes);
    let physical = located.affixes.around(&located.partition.bytes);
    let mut changed = Object::new();
    for (attribute, condition) in json::members(conditions)? {
        if attribute != partition.name {
            changed.raw(&attribute, condition);
            continue;
        }
        let item = Item::from([(partition.name.clone(), logical.clone())]);
        // A value that no item with this physical key has.
        let other = match partition.key_type {
            KeyType::S | KeyType::B => [physical.as_slice(), b"-"].concat(),
            KeyType::N => if physical == b"0" { "1" } else { "0" }.as_bytes().to_vec(),
        };
        let other = literal(partition.key_type, &other).to_json();
        let other = String::from_utf8_lossy(&other).into_owned();
        let list = |operator: &str| {
            format!(r#"{{"ComparisonOperator":"{operator}","AttributeValueList":[{other}]}}"#)
        };
        let test = match (
            holds(condition, &partition.name, &item)?,
            holds(condition, &partition.name, &Item::new())?,
        ) {
            (true, false) => r#"{"ComparisonOperator":"NOT_NULL"}"#.to_owned(),
            (false, true) => r#"{"ComparisonOperator":"NULL"}"#.to_owned(),
            (true, true) => list("NE"),
            (false, false) => list("EQ"),
        };
        changed.raw(&attribute, test.as_bytes());
    }
    Ok(changed.finish())
}

/// One expected condition as a test of an expression.
fn expected_test(
    condition: &[u8],
    name: &str,
    placeholders: &mut Placeholders,
) -> Result<String, Unreadable> {
    let members = ["Value", "Exists", "ComparisonOperator", "AttributeValueList"];
    let [value, exists, operator, list] =
        json::attributes_of(condition, members)?.map(|raw| raw.filter(|raw| *raw != b"null"));
    let mut said = |operator: &str, list: &[&[u8]]| {
        let checked = if operator == "IN" { list } else { list.get(..1).unwrap_or_default() };
        match checked.iter().all(|value| takes(operator, value)) {
            true => test(name, operator, list, placeholders, Tests::Filter),
            false => Err(Unreadable),
        }
    };
    match (value, exists, operator, list) {
        (Some(value), None | Some(b"true"), None, None) => said("EQ", &[value]),
        (None, Some(b"false"), None, None) => said("NULL", &[]),
        (None, None, Some(operator), None) => said(&json::string(operator)?, &[]),
        (None, None, Some(operator), Some(list)) => said(&json::string(operator)?, &json::elements(list)?),
        (Some(value), None, Some(operator), None) => said(&json::string(operator)?, &[value]),
        _ => Err(Unreadable),
    }
}

/// Whether an operator takes values of this one's type: DynamoDB refuses others, which expressions
/// take. It looks at the first value, and at all of IN (AWS API reference, `Condition`; seen of the
/// embedded engine, whose authors compare with AWS).
fn takes(operator: &str, value: &[u8]) -> bool {
    let types: &[&str] = match operator {
        "LT" | "LE" | "GT" | "GE" | "IN" | "BETWEEN" => &["S", "N", "B"],
        "BEGINS_WITH" => &["S", "B"],
        "CONTAINS" | "NOT_CONTAINS" => &["S", "N", "B", "BOOL", "NULL"],
        _ => return true,
    };
    json::members(value).is_ok_and(|members| members.iter().any(|(name, _)| types.contains(&&**name)))
}

/// Whether one expected condition holds for an item.
fn holds(condition: &[u8], name: &str, item: &Item) -> Result<bool, Unreadable> {
    let mut placeholders = Placeholders::new();
    let text = expected_test(condition, name, &mut placeholders)?;
    let [names, values] = placeholders.finish();
    let bindings = Bindings::read(names.as_deref(), values.as_deref()).map_err(|_| Unreadable)?;
    let condition =
        Condition::read(Kind::Condition, &text, &bindings, Checks::Meaning).map_err(|_| Unreadable)?;
    Ok(condition.holds(item))
}
