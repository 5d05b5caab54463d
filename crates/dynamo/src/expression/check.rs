//! What DynamoDB refuses in a predicate before it looks at any item: literals of the wrong type,
//! bounds out of order.

use super::ast::{Comparator, Condition, Operand};
use super::eval;
use super::faults::{Faults, Grave};
use super::kind::Kind;
use crate::{Error, KeySchema, Value};

impl Condition {
    /// Refuses a filter that reads what DynamoDB keeps out of filters: in a Query any attribute of
    /// the key that is queried, elsewhere paths into key attributes. `index` is the key of the
    /// index that is read, if one is.
    ///
    /// # Errors
    /// `ValidationException`.
    pub fn check_filter_keys(
        &self,
        table: &KeySchema,
        index: Option<&KeySchema>,
        query: bool,
    ) -> Result<(), Error> {
        for path in self.paths() {
            if query && index.unwrap_or(table).has(&path.root) {
                return Err(Error::validation(format!(
                    "Filter Expression can only contain non-primary key attributes: Primary key attribute: {}",
                    path.root
                )));
            }
            let kind = if table.has(&path.root) { "Key" } else { "IndexKey" };
            let is_key = table.has(&path.root) || index.is_some_and(|index| index.has(&path.root));
            if is_key && !path.rest.is_empty() {
                return Err(Error::validation(format!(
                    "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {kind}: {}",
                    path.root
                )));
            }
        }
        Ok(())
    }
}

/// Notes what is wrong with one predicate.
pub(super) fn predicate(condition: &Condition, kind: Kind, faults: &mut Faults) {
    let mut note = |grave, message: String| faults.note(grave, kind, &message);
    match condition {
        Condition::Compare(left, comparator, right) => {
            distinct(comparator.symbol(), left, &[right], &mut note);
            if !matches!(comparator, Comparator::Eq | Comparator::Ne) {
                ordered(comparator.symbol(), &[left, right], &mut note);
            }
        }
        Condition::Between(tested, low, high) => {
            distinct("BETWEEN", tested, &[low, high], &mut note);
            ordered("BETWEEN", &[tested, low, high], &mut note);
            let (Operand::Value(low), Operand::Value(high)) = (low, high) else { return };
            let complaint = if low.type_name() != high.type_name() {
                "same data type for lower and upper bounds"
            } else if eval::compare(low, Comparator::Gt, high) {
                "upper bound to be greater than or equal to lower bound"
            } else {
                return;
            };
            note(
                Grave::Function,
                format!(
                    "The BETWEEN operator requires {complaint}; lower bound operand: AttributeValue: {}, upper bound operand: AttributeValue: {}",
                    shown(low),
                    shown(high)
                ),
            );
        }
        Condition::BeginsWith(first, second) => {
            distinct("begins_with", first, &[second], &mut note);
            for operand in [first, second] {
                if let Some(name) = literal(operand).filter(|name| !matches!(*name, "S" | "B")) {
                    note(Grave::Function, wrong_type("begins_with", name));
                }
            }
        }
        Condition::Contains(first, second) => distinct("contains", first, &[second], &mut note),
        Condition::In(first, others) => distinct("IN", first, &others.iter().collect::<Vec<_>>(), &mut note),
        _ => {}
    }
}

/// Notes what is wrong with the argument of `size`.
pub(super) fn size(argument: &Operand, kind: Kind, faults: &mut Faults) {
    if let Some(name) = literal(argument).filter(|name| matches!(*name, "N" | "BOOL" | "NULL")) {
        faults.note(Grave::Function, kind, &wrong_type("size", name));
    }
}

/// The type that `attribute_type` asks for.
pub(super) fn type_name(operand: Operand) -> Result<String, String> {
    const TYPES: [&str; 10] = ["B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"];
    match operand {
        Operand::Value(Value::S(name)) if TYPES.contains(&name.as_str()) => Ok(name),
        Operand::Value(Value::S(name)) => Err(format!(
            "Invalid attribute type name found; type: {name}, valid types: {{{}}}",
            TYPES.join(",")
        )),
        other => {
            Err(wrong_type("attribute_type", literal(&other).unwrap_or("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}")))
        }
    }
}

/// Notes the first literal that has no order.
fn ordered(operator: &str, operands: &[&Operand], note: &mut impl FnMut(Grave, String)) {
    let mut literals = operands.iter().filter_map(|operand| literal(operand));
    if let Some(name) = literals.find(|name| !matches!(*name, "S" | "N" | "B")) {
        note(Grave::Function, wrong_type(operator, name));
    }
}

fn wrong_type(function: &str, name: &str) -> String {
    format!(
        "Incorrect operand type for operator or function; operator or function: {function}, operand type: {name}"
    )
}

fn literal(operand: &Operand) -> Option<&'static str> {
    match operand {
        Operand::Value(value) => Some(value.type_name()),
        Operand::Size(_) => Some("N"),
        Operand::Path(_) => None,
    }
}

/// Notes a path that is compared with itself; of sizes it may be.
pub(super) fn distinct(
    operator: &str,
    first: &Operand,
    others: &[&Operand],
    note: &mut impl FnMut(Grave, String),
) {
    if let (Operand::Path(path), true) = (first, others.contains(&first)) {
        note(
            Grave::Distinct,
            format!(
                "The first operand must be distinct from the remaining operands for this operator or function; operator: {operator}, first operand: {path}"
            ),
        );
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::S(text) | Value::N(text) => text.clone(),
        other => String::from_utf8_lossy(&other.to_json())
            .split_once(':')
            .map(|(_, inner)| inner.trim_end_matches('}').trim_matches('"').to_owned())
            .unwrap_or_default(),
    };
    format!("{{{}:{text}}}", value.type_name())
}
