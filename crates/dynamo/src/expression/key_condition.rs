//! Key conditions: one partition, and a range of sort keys in it.

use super::ast::{Comparator, Condition, Operand, Path};
use super::bindings::{Bindings, Fresh};
use super::render::path_text;
use super::{Checks, Kind};
use crate::{AttributeDefinition, Error, KeySchema, Value};

/// What a sort key must satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SortTest {
    Eq(Value),
    Lt(Value),
    Le(Value),
    Gt(Value),
    Ge(Value),
    Between(Value, Value),
    BeginsWith(Value),
}

impl SortTest {
    /// The sort key beyond which nothing satisfies the test in the direction of reading, where that key itself does: of `<=`, `>=` and
    /// `BETWEEN`. On a table nothing can follow it, and DynamoDB gives and takes no cursor there.
    pub fn inclusive_end(&self, descending: bool) -> Option<&Value> {
        match (self, descending) {
            (SortTest::Le(end) | SortTest::Between(_, end), false)
            | (SortTest::Ge(end) | SortTest::Between(end, _), true) => Some(end),
            _ => None,
        }
    }
}

/// A `KeyConditionExpression`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCondition {
    /// The partition key's name and value.
    pub partition: (String, Value),
    /// The sort key's name and test, if there is one.
    pub sort: Option<(String, SortTest)>,
}

impl KeyCondition {
    /// Reads a `KeyConditionExpression` on a table or an index with that key.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn parse(text: &str, bindings: &Bindings<'_>, key: &KeySchema) -> Result<KeyCondition, Error> {
        KeyCondition::read(text, bindings, key, Checks::All)
    }

    /// [`parse`](Self::parse) with as many checks as are asked for.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn read(
        text: &str,
        bindings: &Bindings<'_>,
        key: &KeySchema,
        checks: Checks,
    ) -> Result<KeyCondition, Error> {
        let mut tests = Vec::new();
        collect(Condition::read(Kind::KeyCondition, text, bindings, checks)?, &mut tests)?;
        if tests.len() > 2 {
            return Err(Error::validation("Conditions can be of length 1 or 2 only"));
        }
        if tests.first().is_some_and(|(name, _)| tests.iter().skip(1).any(|(other, _)| name == other)) {
            return Err(
                Kind::KeyCondition.error("KeyConditionExpressions must only contain one condition per key")
            );
        }
        let missed =
            |name: &str| Error::validation(format!("Query condition missed key schema element: {name}"));
        let mut take = |definition: &AttributeDefinition| {
            let at = tests.iter().position(|(name, _)| *name == definition.name)?;
            Some(tests.swap_remove(at).1)
        };
        let partition = take(&key.partition).ok_or_else(|| missed(&key.partition.name))?;
        let sort = key.sort.as_ref().and_then(|sort| Some((sort, take(sort)?)));
        if !tests.is_empty() {
            return match (&key.sort, sort) {
                (Some(definition), None) => Err(missed(&definition.name)),
                _ => Err(Error::validation("Query key condition not supported")),
            };
        }
        let SortTest::Eq(value) = partition else {
            return Err(Error::validation("Query key condition not supported"));
        };
        check_type(&key.partition, [&value])?;
        let sort = sort.map(|(definition, test)| {
            check_type(definition, test.values())?;
            if matches!(&test, SortTest::BeginsWith(Value::N(_))) {
                return Err(Kind::KeyCondition.error(
                    "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
                ));
            }
            Ok((definition.name.clone(), test))
        });
        Ok(KeyCondition { partition: (key.partition.name.clone(), value), sort: sort.transpose()? })
    }

    /// The expression's text.
    pub fn render(&self, fresh: &mut Fresh) -> String {
        let (name, value) = &self.partition;
        let mut text = format!("{} = {}", fresh.name(name), fresh.value(value.clone()));
        if let Some((name, test)) = &self.sort {
            let name = path_text(&Path::root(name), fresh);
            let mut literal = |value: &Value| fresh.value(value.clone());
            let test = match test {
                SortTest::Eq(value) => format!("{name} = {}", literal(value)),
                SortTest::Lt(value) => format!("{name} < {}", literal(value)),
                SortTest::Le(value) => format!("{name} <= {}", literal(value)),
                SortTest::Gt(value) => format!("{name} > {}", literal(value)),
                SortTest::Ge(value) => format!("{name} >= {}", literal(value)),
                SortTest::Between(low, high) => {
                    format!("{name} BETWEEN {} AND {}", literal(low), literal(high))
                }
                SortTest::BeginsWith(prefix) => format!("begins_with({name}, {})", literal(prefix)),
            };
            text.push_str(" AND ");
            text.push_str(&test);
        }
        text
    }
}

impl SortTest {
    /// The values it compares with.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let (first, second) = match self {
            SortTest::Between(low, high) => (low, Some(high)),
            SortTest::Eq(value)
            | SortTest::Lt(value)
            | SortTest::Le(value)
            | SortTest::Gt(value)
            | SortTest::Ge(value)
            | SortTest::BeginsWith(value) => (value, None),
        };
        std::iter::once(first).chain(second)
    }
}

fn collect(condition: Condition, tests: &mut Vec<(String, SortTest)>) -> Result<(), Error> {
    let unsupported = |operator: &str| {
        Err(Kind::KeyCondition.error(&format!("Invalid operator used in KeyConditionExpression: {operator}")))
    };
    let (operand, test) = match condition {
        Condition::And(all) => return all.into_iter().try_for_each(|one| collect(one, tests)),
        Condition::Or(_) => return unsupported("OR"),
        Condition::Not(_) => return unsupported("NOT"),
        Condition::In(..) => return unsupported("IN"),
        Condition::Exists(_) => return unsupported("attribute_exists"),
        Condition::NotExists(_) => return unsupported("attribute_not_exists"),
        Condition::Type(..) => return unsupported("attribute_type"),
        Condition::Contains(..) => return unsupported("contains"),
        Condition::Compare(_, Comparator::Ne, _) => return unsupported("<>"),
        Condition::Compare(operand @ Operand::Path(_), comparator, Operand::Value(value)) => {
            (operand, compared(comparator, value))
        }
        Condition::Compare(Operand::Value(value), comparator, operand @ Operand::Path(_)) => {
            (operand, compared(comparator.flipped(), value))
        }
        Condition::Between(operand, Operand::Value(low), Operand::Value(high)) => {
            (operand, SortTest::Between(low, high))
        }
        Condition::BeginsWith(operand, Operand::Value(prefix)) => (operand, SortTest::BeginsWith(prefix)),
        Condition::Compare(Operand::Size(_), ..) | Condition::Compare(_, _, Operand::Size(_)) => {
            return unsupported("size");
        }
        _ => {
            return Err(Kind::KeyCondition
                .error("Invalid condition in KeyConditionExpression: a key must be compared with a value"));
        }
    };
    match operand {
        Operand::Path(path) if path.rest.is_empty() => {
            tests.push((path.root, test));
            Ok(())
        }
        Operand::Path(_) => {
            Err(Kind::KeyCondition
                .error("KeyConditionExpressions cannot have conditions on nested attributes"))
        }
        Operand::Size(_) => unsupported("size"),
        Operand::Value(_) => Err(Kind::KeyCondition
            .error("Invalid condition in KeyConditionExpression: a key must be compared with a value")),
    }
}

fn compared(comparator: Comparator, value: Value) -> SortTest {
    match comparator {
        Comparator::Eq | Comparator::Ne => SortTest::Eq(value),
        Comparator::Lt => SortTest::Lt(value),
        Comparator::Le => SortTest::Le(value),
        Comparator::Gt => SortTest::Gt(value),
        Comparator::Ge => SortTest::Ge(value),
    }
}

fn check_type<'a>(
    definition: &AttributeDefinition,
    values: impl IntoIterator<Item = &'a Value>,
) -> Result<(), Error> {
    if values.into_iter().all(|value| value.type_name() == definition.key_type.name()) {
        return Ok(());
    }
    Err(Error::validation(
        "One or more parameter values were invalid: Condition parameter type does not match schema type",
    ))
}
