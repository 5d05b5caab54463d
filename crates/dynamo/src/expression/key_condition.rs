//! Key conditions: one partition, and a range of sort keys in it. Of an index key of several
//! attributes of a kind: `=` on each partition key attribute, `=` on the first sort key attributes,
//! and any test on the one behind them.

use super::ast::{Comparator, Condition, Operand, Path};
use super::bindings::{Bindings, Fresh};
use super::kind::{Checks, Kind};
use super::render::path_text;
use crate::{AttributeDefinition, Error, KeyAttributes, Value};

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
    /// The sort key beyond which nothing satisfies the test in the direction of reading, where that
    /// key itself does: of `<=`, `>=` and `BETWEEN`. On a table nothing can follow it, and DynamoDB
    /// gives and takes no cursor there.
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
    /// The names and values of the partition key's attributes, in the key's order.
    pub partition: Vec<(String, Value)>,
    /// The names and tests of the sort key's first attributes, in the key's order. All but the last
    /// are `=`.
    pub sort: Vec<(String, SortTest)>,
}

impl KeyCondition {
    /// Reads a `KeyConditionExpression` on a table or an index with that key.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn parse<'k>(
        text: &str,
        bindings: &Bindings<'_>,
        key: impl Into<KeyAttributes<'k>>,
    ) -> Result<KeyCondition, Error> {
        KeyCondition::read(text, bindings, key, Checks::All)
    }

    /// [`parse`](Self::parse) with as many checks as are asked for.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn read<'k>(
        text: &str,
        bindings: &Bindings<'_>,
        key: impl Into<KeyAttributes<'k>>,
        checks: Checks,
    ) -> Result<KeyCondition, Error> {
        let key = key.into();
        let mut tests = Vec::new();
        collect(Condition::read(Kind::KeyCondition, text, bindings, checks)?, &mut tests)?;
        let defined = key.all().count();
        if !key.is_composite() && tests.len() > 2 {
            return Err(Error::validation("Conditions can be of length 1 or 2 only"));
        }
        if tests
            .iter()
            .enumerate()
            .any(|(at, (name, _))| tests.iter().skip(at + 1).any(|(other, _)| name == other))
        {
            return Err(
                Kind::KeyCondition.error("KeyConditionExpressions must only contain one condition per key")
            );
        }
        if key.is_composite() && tests.len() > defined {
            return Err(Error::validation(format!(
                "The number of query conditions ({}) exceeds the number of key attributes defined in the schema ({defined})",
                tests.len()
            )));
        }
        let mut take = |definition: &AttributeDefinition| {
            let at = tests.iter().position(|(name, _)| *name == definition.name)?;
            Some(tests.swap_remove(at).1)
        };
        let partition = key.partition.iter().map(|definition| (definition, take(definition))).collect();
        let partition = equal(partition, key.is_composite())?;
        let sort = key.sort.iter().map(|definition| (definition, take(definition))).collect::<Vec<_>>();
        if !tests.is_empty() {
            return match sort.iter().find(|(_, test)| test.is_none()) {
                Some((definition, _)) => Err(missed(&definition.name)),
                None => Err(Error::validation("Query key condition not supported")),
            };
        }
        Ok(KeyCondition { partition, sort: leading(sort)? })
    }

    /// The expression's text.
    pub fn render(&self, fresh: &mut Fresh) -> String {
        let equal = |(name, value): &(String, Value)| {
            format!("{} = {}", fresh.name(name), fresh.value(value.clone()))
        };
        let mut text = self.partition.iter().map(equal).collect::<Vec<_>>().join(" AND ");
        for (name, test) in &self.sort {
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

fn missed(name: &str) -> Error {
    Error::validation(format!("Query condition missed key schema element: {name}"))
}

/// The values of the partition key's attributes.
fn equal(
    tests: Vec<(&AttributeDefinition, Option<SortTest>)>,
    composite: bool,
) -> Result<Vec<(String, Value)>, Error> {
    let is_equal = |test: &Option<SortTest>| matches!(test, Some(SortTest::Eq(_)));
    let lacking: Vec<&str> =
        tests.iter().filter(|(_, test)| !is_equal(test)).map(|(definition, _)| &*definition.name).collect();
    if composite && !lacking.is_empty() {
        return Err(Error::validation(format!(
            "HASH key attributes {} must have equality conditions specified in the query",
            lacking.join(", ")
        )));
    }
    let value = |(definition, test): (&AttributeDefinition, Option<SortTest>)| match test {
        Some(SortTest::Eq(value)) => {
            check_type(definition, [&value])?;
            Ok((definition.name.clone(), value))
        }
        Some(_) => Err(Error::validation("Query key condition not supported")),
        None => Err(missed(&definition.name)),
    };
    tests.into_iter().map(value).collect()
}

/// The tests of the sort key's first attributes, if no attribute is left out before a tested one,
/// and all before the last are `=`.
fn leading(tests: Vec<(&AttributeDefinition, Option<SortTest>)>) -> Result<Vec<(String, SortTest)>, Error> {
    let count = tests.iter().rposition(|(_, test)| test.is_some()).map_or(0, |last| last + 1);
    let before = tests.iter().take(count.saturating_sub(1));
    let lacking: Vec<&str> = before
        .filter(|(_, test)| !matches!(test, Some(SortTest::Eq(_))))
        .map(|(definition, _)| &*definition.name)
        .collect();
    if let (false, Some((last, _))) = (lacking.is_empty(), tests.get(count.saturating_sub(1))) {
        return Err(Error::validation(format!(
            "RANGE key attributes {} must have equality conditions specified in the query because a condition is present on key attribute {}",
            lacking.join(", "),
            last.name
        )));
    }
    let tests = tests.into_iter().filter_map(|(definition, test)| Some((definition, test?)));
    let checked = tests.map(|(definition, test)| {
        check_type(definition, test.values())?;
        if matches!(&test, SortTest::BeginsWith(Value::N(_))) {
            return Err(Kind::KeyCondition.error(
                "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
            ));
        }
        Ok((definition.name.clone(), test))
    });
    checked.collect()
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
