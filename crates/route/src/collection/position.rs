//! Where a row stands in the order of its collection, and what of a collection comes after that.
//!
//! An index can be sorted by several attributes. A key condition tests the first of them: with `=`,
//! all but the last tested one. So what comes after a position is no one range but up to one for
//! each attribute: the rows that share all values but the last, then those that share all but the
//! last two, and so on.

use std::ops::Bound;

use super::keys::Key;
use super::range::{Condition, Range};

/// A row's values of the sort attributes, in order; none without a sort key. The first stands
/// apart, so that the position of a key with one attribute takes no memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    first: Option<Key>,
    others: Vec<Key>,
}

/// A part of a collection that one key condition describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// What is tested of the first sort attributes.
    pub(crate) conditions: Vec<Condition>,
    /// Values of the last tested attribute that match though they are not wanted.
    dropped: Vec<Key>,
}

impl From<Option<Key>> for Position {
    fn from(first: Option<Key>) -> Self {
        Position { first, others: Vec::new() }
    }
}

impl FromIterator<Key> for Position {
    fn from_iter<T: IntoIterator<Item = Key>>(values: T) -> Self {
        let mut values = values.into_iter();
        Position { first: values.next(), others: values.collect() }
    }
}

impl Position {
    /// The values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Key> {
        self.first.iter().chain(&self.others)
    }

    /// The value of the first sort attribute.
    pub(crate) fn first(&self) -> Option<&Key> {
        self.first.as_ref()
    }

    /// The first values alone.
    pub(crate) fn leading(&self, count: usize) -> Position {
        self.values().take(count).cloned().collect()
    }

    /// Puts another value in the place of one.
    pub(crate) fn replace(&mut self, at: usize, value: Key) {
        let values = self.first.iter_mut().chain(&mut self.others);
        if let Some(old) = values.into_iter().nth(at) {
            *old = value;
        }
    }

    /// Whether conditions match it.
    pub(crate) fn matches(&self, conditions: &[Condition]) -> bool {
        let mut values = self.values();
        conditions
            .iter()
            .all(|condition| values.next().is_some_and(|value| Range::of(Some(condition)).contains(value)))
    }
}

impl Part {
    /// What conditions match.
    pub(crate) fn of(conditions: &[Condition]) -> Self {
        Part { conditions: conditions.to_vec(), dropped: Vec::new() }
    }

    /// What one condition on the first sort attribute matches, but for these values of it.
    pub(crate) fn dropping(condition: Option<Condition>, dropped: Vec<Key>) -> Self {
        Part { conditions: condition.into_iter().collect(), dropped }
    }

    /// Whether some rows that match are not wanted.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// One row's place, though the row itself is not wanted.
    pub(crate) fn behind(end: &Key) -> Self {
        Part { conditions: vec![Condition::Eq(end.clone())], dropped: vec![end.clone()] }
    }

    /// Whether a row that matches is not wanted.
    pub(crate) fn drops(&self, position: &Position) -> bool {
        let tested = || position.values().nth(self.conditions.len().checked_sub(1)?);
        !self.dropped.is_empty() && tested().is_some_and(|value| self.dropped.contains(value))
    }

    /// What conditions match from a position on, which they match, in the direction of reading; the
    /// rows there included or not. In the order of reading.
    pub(crate) fn rest(
        conditions: &[Condition],
        position: &Position,
        included: bool,
        descending: bool,
    ) -> Vec<Part> {
        let values: Vec<&Key> = position.values().collect();
        let part = |(at, value): (usize, &&Key)| {
            let last = at + 1 == values.len();
            let value = (*value).clone();
            let bound = if included && last { Bound::Included(value) } else { Bound::Excluded(value) };
            let rest = Range::of(conditions.get(at)).from(bound, descending).express()?;
            let shared = values.iter().take(at).map(|value| Condition::Eq((*value).clone()));
            let conditions = shared.chain(rest.condition).collect();
            Some(Part { conditions, dropped: rest.dropped })
        };
        values.iter().enumerate().rev().filter_map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use heatsink_dynamo::KeyValue;
    use proptest::prelude::*;

    use super::*;

    fn position(letters: &[u8]) -> Position {
        letters.iter().map(|letter| KeyValue::S(Cow::Owned(char::from(*letter).to_string()))).collect()
    }

    fn letters() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(b'a'..b'e', 3)
    }

    fn conditions() -> impl Strategy<Value = Vec<Condition>> {
        (0..3_usize, 0..7, letters(), letters()).prop_map(|(equal, kind, a, b)| {
            let key = |letters: &[u8], at| position(letters).values().nth(at).cloned().unwrap();
            let (low, high) = (key(&a, equal), key(&b, equal));
            let last = match kind {
                0 => Some(Condition::Eq(low)),
                1 => Some(Condition::Lt(low)),
                2 => Some(Condition::Le(low)),
                3 => Some(Condition::Gt(low)),
                4 => Some(Condition::Ge(low)),
                5 => Some(Condition::Between(low.clone().min(high.clone()), low.max(high))),
                _ => None,
            };
            (0..equal).map(|at| Condition::Eq(key(&a, at))).chain(last).collect()
        })
    }

    proptest! {
        #[test]
        fn the_parts_are_what_comes_after_in_order(
            conditions in conditions(), at in letters(), rows in prop::collection::vec(letters(), 0..40),
            included: bool, descending: bool,
        ) {
            let at = position(&at);
            prop_assume!(at.matches(&conditions));
            let mut rows: Vec<Position> = rows.iter().map(|row| position(row)).collect();
            rows.sort();
            if descending {
                rows.reverse();
            }
            let after = |row: &&Position| match row.cmp(&&at) {
                std::cmp::Ordering::Equal => included,
                order => order.is_lt() == descending,
            };
            let expected: Vec<&Position> = rows.iter().filter(after).filter(|row| row.matches(&conditions)).collect();
            let parts = Part::rest(&conditions, &at, included, descending);
            let mut found = Vec::new();
            for part in &parts {
                found.extend(rows.iter().filter(|row| row.matches(&part.conditions) && !part.drops(row)));
            }
            prop_assert_eq!(found, expected);
        }
    }
}
