//! Conditions on a sort key as ranges, and their tightening by a cursor.
//!
//! Needed on indexes only: a base table's shards resume from the cursor's own sort key.

use std::borrow::Cow;
use std::ops::Bound;

use heatsink_dynamo::KeyValue;

use super::keys::Key;

/// A condition on a sort key, as `KeyConditionExpression` knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// `= a`
    Eq(Key),
    /// `< a`
    Lt(Key),
    /// `<= a`
    Le(Key),
    /// `> a`
    Gt(Key),
    /// `>= a`
    Ge(Key),
    /// `BETWEEN a AND b`
    Between(Key, Key),
    /// `begins_with(sort, a)`
    BeginsWith(Key),
}

impl Condition {
    /// The key beyond which a Query of a table finds nothing in its direction, where the condition
    /// includes that key. DynamoDB gives no cursor there and refuses one; with `=` and
    /// `begins_with` it does neither.
    pub(crate) fn inclusive_end(&self, descending: bool) -> Option<&Key> {
        match (self, descending) {
            (Condition::Le(end) | Condition::Between(_, end), false)
            | (Condition::Ge(end) | Condition::Between(end, _), true) => Some(end),
            _ => None,
        }
    }
}

/// All keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Where it starts.
    pub(crate) lower: Bound<Key>,
    /// Where it ends.
    pub(crate) upper: Bound<Key>,
}

/// What one key condition can say of a range: a condition that matches it and perhaps its excluded
/// ends, which are then dropped from the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expressed {
    /// The condition; `None` matches everything.
    pub(crate) condition: Option<Condition>,
    /// Keys that match it but are not in the range.
    pub(crate) dropped: Vec<Key>,
}

impl Range {
    /// The keys that a condition matches.
    pub(crate) fn of(condition: Option<&Condition>) -> Range {
        let (lower, upper) = match condition {
            None => (Bound::Unbounded, Bound::Unbounded),
            Some(Condition::Eq(a)) => (Bound::Included(a.clone()), Bound::Included(a.clone())),
            Some(Condition::Lt(a)) => (Bound::Unbounded, Bound::Excluded(a.clone())),
            Some(Condition::Le(a)) => (Bound::Unbounded, Bound::Included(a.clone())),
            Some(Condition::Gt(a)) => (Bound::Excluded(a.clone()), Bound::Unbounded),
            Some(Condition::Ge(a)) => (Bound::Included(a.clone()), Bound::Unbounded),
            Some(Condition::Between(a, b)) => (Bound::Included(a.clone()), Bound::Included(b.clone())),
            Some(Condition::BeginsWith(a)) => {
                (Bound::Included(a.clone()), successor(a).map_or(Bound::Unbounded, Bound::Excluded))
            }
        };
        Range { lower, upper }
    }

    /// Whether a key lies in it.
    pub(crate) fn contains(&self, key: &Key) -> bool {
        let from = match &self.lower {
            Bound::Included(lower) => lower <= key,
            Bound::Excluded(lower) => lower < key,
            Bound::Unbounded => true,
        };
        from && match &self.upper {
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
            Bound::Unbounded => true,
        }
    }

    /// Whether all keys in it are above this one.
    pub(crate) fn begins_above(&self, key: &Key) -> bool {
        match &self.lower {
            Bound::Included(lower) => lower > key,
            Bound::Excluded(lower) => lower >= key,
            Bound::Unbounded => false,
        }
    }

    /// What of it lies from one key on, and below another.
    pub(crate) fn between(self, from: Option<&Key>, below: Option<&Key>) -> Range {
        let later = |own: &Bound<Key>, from: &Key| match own {
            Bound::Included(own) | Bound::Excluded(own) => from > own,
            Bound::Unbounded => true,
        };
        let sooner = |own: &Bound<Key>, below: &Key| match own {
            Bound::Included(own) => below <= own,
            Bound::Excluded(own) => below < own,
            Bound::Unbounded => true,
        };
        let lower = match from.filter(|from| later(&self.lower, from)) {
            Some(from) => Bound::Included(from.clone()),
            None => self.lower,
        };
        let upper = match below.filter(|below| sooner(&self.upper, below)) {
            Some(below) => Bound::Excluded(below.clone()),
            None => self.upper,
        };
        Range { lower, upper }
    }

    /// What is left of it from `key` on, in the direction of reading. `key` lies in it.
    pub(crate) fn from(self, key: Bound<Key>, descending: bool) -> Range {
        if descending { Range { upper: key, ..self } } else { Range { lower: key, ..self } }
    }

    /// One condition for the range; `None` if nothing can lie in it.
    pub(crate) fn express(self) -> Option<Expressed> {
        let mut dropped = Vec::new();
        let condition = match (self.lower, self.upper) {
            (Bound::Unbounded, Bound::Unbounded) => None,
            (Bound::Included(a), Bound::Unbounded) => Some(Condition::Ge(a)),
            (Bound::Excluded(a), Bound::Unbounded) => Some(Condition::Gt(a)),
            (Bound::Unbounded, Bound::Included(b)) => Some(Condition::Le(b)),
            (Bound::Unbounded, Bound::Excluded(b)) => Some(Condition::Lt(b)),
            (lower, upper) => {
                let (a, a_out) = end(lower)?;
                let (b, b_out) = end(upper)?;
                if a > b || (a == b && (a_out || b_out)) {
                    return None;
                }
                dropped.extend(a_out.then(|| a.clone()));
                dropped.extend(b_out.then(|| b.clone()));
                Some(if a == b { Condition::Eq(a) } else { Condition::Between(a, b) })
            }
        };
        Some(Expressed { condition, dropped })
    }
}

/// A bounded end and whether it is excluded.
fn end(bound: Bound<Key>) -> Option<(Key, bool)> {
    match bound {
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
        Bound::Unbounded => None,
    }
}

/// The smallest key above everything that begins with `prefix`; `None` if there is none.
fn successor(prefix: &Key) -> Option<Key> {
    match prefix {
        KeyValue::S(text) => {
            let mut kept: Vec<char> = text.chars().collect();
            while let Some(last) = kept.pop() {
                // Between U+D7FF and U+E000 lie the surrogates, which are no characters.
                let next =
                    if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
                if let Some(next) = next {
                    kept.push(next);
                    return Some(KeyValue::S(Cow::Owned(kept.into_iter().collect())));
                }
            }
            None
        }
        KeyValue::B(bytes) => {
            let mut kept = bytes.to_vec();
            while let Some(last) = kept.pop() {
                if let Some(next) = last.checked_add(1) {
                    kept.push(next);
                    return Some(KeyValue::B(Cow::Owned(kept)));
                }
            }
            None
        }
        // begins_with is not for numbers; the request was refused before this.
        KeyValue::N(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(text: &str) -> Key {
        KeyValue::S(Cow::Owned(text.to_owned()))
    }

    fn matches(condition: Option<&Condition>, key: &str) -> bool {
        let key = &s(key);
        match condition {
            None => true,
            Some(Condition::Eq(a)) => key == a,
            Some(Condition::Lt(a)) => key < a,
            Some(Condition::Le(a)) => key <= a,
            Some(Condition::Gt(a)) => key > a,
            Some(Condition::Ge(a)) => key >= a,
            Some(Condition::Between(a, b)) => a <= key && key <= b,
            Some(Condition::BeginsWith(KeyValue::S(a))) => {
                matches!(key, KeyValue::S(text) if text.starts_with(a.as_ref()))
            }
            Some(Condition::BeginsWith(_)) => false,
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!['a', 'b', '\u{d7ff}', '\u{e000}', '\u{10ffff}']),
            0..4,
        )
        .prop_map(|chars| chars.into_iter().collect())
    }

    fn condition() -> impl Strategy<Value = Option<Condition>> {
        (0..8, text(), text()).prop_map(|(kind, a, b)| {
            let (a, b) = (s(&a), s(&b));
            Some(match kind {
                0 => Condition::Eq(a),
                1 => Condition::Lt(a),
                2 => Condition::Le(a),
                3 => Condition::Gt(a),
                4 => Condition::Ge(a),
                5 => Condition::Between(a.clone().min(b.clone()), a.max(b)),
                6 => Condition::BeginsWith(a),
                _ => return None,
            })
        })
    }

    proptest! {
        #[test]
        fn a_range_holds_what_its_condition_matches(condition in condition(), key in text()) {
            prop_assert_eq!(Range::of(condition.as_ref()).contains(&s(&key)), matches(condition.as_ref(), &key));
        }

        #[test]
        fn a_tightened_condition_matches_the_rest(
            condition in condition(), at in text(), key in text(), strict: bool, descending: bool,
        ) {
            let range = Range::of(condition.as_ref());
            prop_assume!(range.contains(&s(&at)));
            let bound = if strict { Bound::Excluded(s(&at)) } else { Bound::Included(s(&at)) };
            let found = range.from(bound, descending).express().is_some_and(|expressed| {
                if let Some(Condition::Between(a, b)) = &expressed.condition {
                    assert!(a <= b, "a store refuses such a BETWEEN");
                }
                matches(expressed.condition.as_ref(), &key) && !expressed.dropped.contains(&s(&key))
            });
            let rest = match (key == at, descending) {
                (true, _) => !strict,
                (false, true) => key < at,
                (false, false) => key > at,
            };
            prop_assert_eq!(found, rest && matches(condition.as_ref(), &key));
        }
    }
}
