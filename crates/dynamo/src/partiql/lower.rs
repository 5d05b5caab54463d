//! What a `WHERE` clause means for an item: a condition of the expression language, which has the
//! same tests.

use super::{Condition, Operand, Test, TestKind};
use crate::expression::{Condition as Meaning, Operand as Meant};
use crate::{Item, Value};

impl Condition {
    /// The same condition over an item, with the request's parameters put in. `None` where a
    /// parameter is missing, or where a test has no counterpart (`attribute_type` of something else
    /// than a path): DynamoDB refuses the former.
    pub fn meaning(&self, parameters: &[Value]) -> Option<Meaning> {
        let all = |parts: &[Condition]| -> Option<Vec<Meaning>> {
            parts.iter().map(|part| part.meaning(parameters)).collect()
        };
        Some(match self {
            Condition::And(parts) => Meaning::And(all(parts)?),
            Condition::Or(parts) => Meaning::Or(all(parts)?),
            Condition::Not(inner) => Meaning::Not(Box::new(inner.meaning(parameters)?)),
            Condition::Test(test) => test.meaning(parameters)?,
        })
    }
}

impl Test {
    /// Whether it holds for an item; `None` as for [`Condition::meaning`].
    pub fn holds(&self, parameters: &[Value], item: &Item) -> Option<bool> {
        self.meaning(parameters).map(|meaning| meaning.holds(item))
    }

    fn meaning(&self, parameters: &[Value]) -> Option<Meaning> {
        let operand = |operand: &Operand| operand.meaning(parameters);
        Some(match &self.kind {
            TestKind::Compare(a, comparator, b) => Meaning::Compare(operand(a)?, *comparator, operand(b)?),
            TestKind::Between(a, low, high) => Meaning::Between(operand(a)?, operand(low)?, operand(high)?),
            TestKind::In(a, list) => {
                Meaning::In(operand(a)?, list.iter().map(operand).collect::<Option<_>>()?)
            }
            TestKind::Exists(place) => Meaning::Exists(place.path.clone()),
            TestKind::Missing(place) => Meaning::NotExists(place.path.clone()),
            TestKind::Is(place, name) => Meaning::Type(place.path.clone(), (*name).to_owned()),
            TestKind::AttributeType(Operand::Path(place), Operand::Term(kind)) => {
                match kind.value(parameters)? {
                    Value::S(name) => Meaning::Type(place.path.clone(), name),
                    _ => return None,
                }
            }
            TestKind::AttributeType(..) => return None,
            TestKind::BeginsWith(a, b) => Meaning::BeginsWith(operand(a)?, operand(b)?),
            TestKind::Contains(a, b) => Meaning::Contains(operand(a)?, operand(b)?),
        })
    }
}

impl Operand {
    fn meaning(&self, parameters: &[Value]) -> Option<Meant> {
        Some(match self {
            Operand::Path(place) => Meant::Path(place.path.clone()),
            Operand::Term(term) => Meant::Value(term.value(parameters)?),
            Operand::Size(inner) => Meant::Size(Box::new(inner.meaning(parameters)?)),
        })
    }
}
