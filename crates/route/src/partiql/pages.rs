//! The requests that a SELECT is read by: a Query for each partition key that it names, or a Scan.

use bytes::Bytes;
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::json::Object;
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::partiql::{Condition, Operand, Test, TestKind};
use heatsink_dynamo::{AttributeDefinition, KeySchema, TableSchema, Value};

use crate::collection::keys::{Key, key_value};
use crate::request::Request;

/// The partition keys that a clause confines items to, in its order, each once; `None` if it leaves
/// them open.
pub(super) fn partitions(
    condition: &Condition,
    partition: &AttributeDefinition,
    values: &[Value],
) -> Option<Vec<Key>> {
    let key = |operand: &Operand| match operand {
        Operand::Term(term) => key_value(&term.value(values)?, partition, KeyPart::Partition),
        _ => None,
    };
    let mut found = match condition {
        Condition::And(parts) => parts.iter().find_map(|part| partitions(part, partition, values))?,
        Condition::Or(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(|part| partitions(part, partition, values)).collect();
            all?.concat()
        }
        Condition::Not(_) => return None,
        Condition::Test(test) => match &test.kind {
            TestKind::Compare(Operand::Path(path), Comparator::Eq, other)
            | TestKind::Compare(other, Comparator::Eq, Operand::Path(path))
                if path.is(&partition.name) =>
            {
                vec![key(other)?]
            }
            TestKind::In(Operand::Path(path), list) if path.is(&partition.name) => {
                list.iter().map(key).collect::<Option<_>>()?
            }
            _ => return None,
        },
    };
    let mut seen = std::collections::HashSet::new();
    found.retain(|key| seen.insert(key.clone()));
    Some(found)
}

/// A condition on a sort key as a key condition has it, with `#s` for the sort key.
pub(super) struct SortCondition {
    text: &'static str,
    values: Vec<Key>,
}

/// The key condition on the sort key, if all that a clause says of it at its top can be one.
pub(super) fn sort_condition(
    condition: &Condition,
    sort: &AttributeDefinition,
    values: &[Value],
) -> Option<SortCondition> {
    let mut found = None;
    for part in condition.conjuncts() {
        let (test, negated) = match part {
            Condition::Test(test) => (test, false),
            Condition::Not(inner) => match &**inner {
                Condition::Test(test) => (test, true),
                _ => continue,
            },
            _ => continue,
        };
        if !test.paths().iter().any(|path| path.is_root(&sort.name)) {
            continue;
        }
        let read = (!negated).then(|| key_condition(test, sort, values)).flatten()?;
        if found.replace(read).is_some() {
            // A key condition says one thing.
            return None;
        }
    }
    found
}

fn key_condition(test: &Test, sort: &AttributeDefinition, values: &[Value]) -> Option<SortCondition> {
    let key = |operand: &Operand| match operand {
        Operand::Term(term) => key_value(&term.value(values)?, sort, KeyPart::Sort),
        _ => None,
    };
    let is_sort = |operand: &Operand| matches!(operand, Operand::Path(path) if path.is(&sort.name));
    let (text, operands) = match &test.kind {
        TestKind::Compare(a, comparator, b) => {
            let (comparator, value) = if is_sort(a) { (*comparator, b) } else { (comparator.flipped(), a) };
            let text = match comparator {
                Comparator::Eq => "#s = :a",
                Comparator::Lt => "#s < :a",
                Comparator::Le => "#s <= :a",
                Comparator::Gt => "#s > :a",
                Comparator::Ge => "#s >= :a",
                Comparator::Ne => return None,
            };
            (text, vec![key(value)?])
        }
        TestKind::Between(a, low, high) if is_sort(a) => {
            ("#s BETWEEN :a AND :b", vec![key(low)?, key(high)?])
        }
        TestKind::BeginsWith(a, prefix) if is_sort(a) => ("begins_with(#s, :a)", vec![key(prefix)?]),
        TestKind::In(a, list) if is_sort(a) => match list.as_slice() {
            [only] => ("#s = :a", vec![key(only)?]),
            _ => return None,
        },
        _ => return None,
    };
    Some(SortCondition { text, values: operands })
}

/// What every request of a SELECT has in common.
pub(super) struct Common<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) schema: &'a TableSchema,
    pub(super) index: Option<&'a str>,
    /// Attributes are shown that a local index does not hold.
    pub(super) all_attributes: bool,
    pub(super) descending: bool,
}

impl Common<'_> {
    fn start(&self, after: Option<&[u8]>) -> Object {
        let mut body = Object::new();
        body.string("TableName", &self.schema.name);
        if let Some(index) = self.index {
            body.string("IndexName", index);
        }
        if self.all_attributes {
            body.string("Select", "ALL_ATTRIBUTES");
        }
        for name in ["Limit", "ConsistentRead", "ReturnConsumedCapacity"] {
            if let Some(value) = self.request.get(name) {
                body.raw(name, value);
            }
        }
        if let Some(after) = after {
            body.raw("ExclusiveStartKey", after);
        }
        body
    }

    /// A Scan of it all.
    pub(super) fn scan(&self, after: Option<&[u8]>) -> Bytes {
        Bytes::from(self.start(after).finish())
    }

    /// A Query for one partition key.
    pub(super) fn query(
        &self,
        key: &KeySchema,
        partition: &Key,
        sort: Option<&SortCondition>,
        after: Option<&[u8]>,
    ) -> Bytes {
        let mut body = self.start(after);
        let mut names = Object::new();
        names.string("#p", &key.partition.name);
        let mut bound = Object::new();
        partition.write(bound.name(":p"));
        let mut text = "#p = :p".to_owned();
        if let (Some(condition), Some(sort)) = (sort, &key.sort) {
            names.string("#s", &sort.name);
            for (name, value) in [":a", ":b"].into_iter().zip(&condition.values) {
                value.write(bound.name(name));
            }
            text = format!("{text} AND {}", condition.text);
        }
        body.string("KeyConditionExpression", &text)
            .raw("ExpressionAttributeNames", &names.finish())
            .raw("ExpressionAttributeValues", &bound.finish());
        if self.descending {
            body.raw("ScanIndexForward", b"false");
        }
        Bytes::from(body.finish())
    }
}
