//! Where the ranges of a key's sort keys end: the split points of [`Strategy::Range`].
//!
//! Range k holds the sort keys from the split point before it on, up to the one behind it. Not here:
//! where points come from (`workers`, `heat`).

use std::borrow::Cow;
use std::ops::Bound;

use heatsink_dynamo::{KeyType, KeyValue, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::SortKey;

/// The most ranges of one key. Every gateway holds the split points of all keys on record.
pub const MOST_RANGES: u16 = 64;

/// The longest split point in bytes: what a sort key has at most (AWS Developer Guide, "Quotas and
/// limits").
const LONGEST: usize = 1_024;

/// The most bytes that the points of a key take together as JSON. Its record holds those of two
/// layouts while it moves, and an item has 400 KB.
const MOST_BYTES: usize = 100_000;

/// Why values are no split points.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSplitPoints {
    /// There is not one for each range but the first.
    #[error("{named} split points are named, and a key has 2 to {MOST_RANGES} ranges: name 1 to {most}", most = MOST_RANGES - 1)]
    Count {
        /// How many are named.
        named: usize,
    },
    /// A point that does not come after the one before it.
    #[error("the split point {after} does not come after {before}: points ascend")]
    Order {
        /// The one before.
        before: String,
        /// The one that should come after it.
        after: String,
    },
    /// A point that is of another type than the first.
    #[error("the split points {first} and {other} are of different types")]
    Mixed {
        /// The first.
        first: String,
        /// One of another type.
        other: String,
    },
    /// More than the record of a key has room for.
    #[error(
        "the split points take {0} bytes as JSON, and a key's record has room for {MOST_BYTES}: name shorter ones"
    )]
    TooMuch(usize),
    /// A point that no sort key reaches.
    #[error("a split point has {0} bytes, and a sort key has 1 to {LONGEST}")]
    Length(usize),
}

/// The split points of a key, in ascending order: 1 to 63, all of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Json>", into = "Vec<Json>")]
pub struct SplitPoints(Vec<KeyValue<'static>>);

impl SplitPoints {
    /// The split points with these values.
    ///
    /// # Errors
    /// [`BadSplitPoints`].
    pub fn new(points: Vec<KeyValue<'static>>) -> Result<Self, BadSplitPoints> {
        if !(1..usize::from(MOST_RANGES)).contains(&points.len()) {
            return Err(BadSplitPoints::Count { named: points.len() });
        }
        let lengths = points.iter().map(|point| match point {
            KeyValue::S(text) => text.len(),
            KeyValue::B(bytes) => bytes.len(),
            KeyValue::N(_) => 1,
        });
        if let Some(length) = lengths.into_iter().find(|length| !(1..=LONGEST).contains(length)) {
            return Err(BadSplitPoints::Length(length));
        }
        for (before, after) in points.iter().zip(points.iter().skip(1)) {
            if before.key_type() != after.key_type() {
                return Err(BadSplitPoints::Mixed { first: text(before), other: text(after) });
            }
            if before >= after {
                return Err(BadSplitPoints::Order { before: text(before), after: text(after) });
            }
        }
        let mut json = Vec::new();
        points.iter().for_each(|point| point.write(&mut json));
        match json.len() {
            bytes if bytes > MOST_BYTES => Err(BadSplitPoints::TooMuch(bytes)),
            _ => Ok(SplitPoints(points)),
        }
    }

    /// The points, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &KeyValue<'static>> {
        self.0.iter()
    }

    /// How many ranges they make.
    pub fn ranges(&self) -> u16 {
        u16::try_from(self.0.len()).map_or(MOST_RANGES, |points| points + 1)
    }

    /// The type of the sort keys that they divide.
    pub fn key_type(&self) -> KeyType {
        self.0.first().map_or(KeyType::S, KeyValue::key_type)
    }

    /// The number of the range in which a sort key lies.
    pub fn range_of(&self, sort: &KeyValue<'_>) -> u16 {
        let below = self.0.partition_point(|point| point <= sort);
        u16::try_from(below).unwrap_or(MOST_RANGES - 1)
    }

    /// The sort keys of a range: from the first on, and below the second.
    pub fn bounds(&self, range: u16) -> (Option<&KeyValue<'static>>, Option<&KeyValue<'static>>) {
        let at = usize::from(range);
        (at.checked_sub(1).and_then(|before| self.0.get(before)), self.0.get(at))
    }

    /// Whether a range can hold one of the sort keys between two bounds.
    pub fn can_hold(&self, range: u16, lower: Bound<&KeyValue<'_>>, upper: Bound<&KeyValue<'_>>) -> bool {
        let (from, below) = self.bounds(range);
        let begins_in_time = from.is_none_or(|from| match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => from <= upper,
            Bound::Excluded(upper) => from < upper,
        });
        let ends_late = below.is_none_or(|below| match lower {
            Bound::Unbounded => true,
            Bound::Included(lower) | Bound::Excluded(lower) => lower < below,
        });
        begins_in_time && ends_late
    }
}

/// A point for people: text in quotation marks, a number as it is, binary with escapes.
fn text(point: &KeyValue<'_>) -> String {
    match point {
        KeyValue::S(text) => format!("{text:?}"),
        KeyValue::N(number) => number.to_string(),
        KeyValue::B(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// How many points are written out for people.
const SHOWN: usize = 7;

impl std::fmt::Display for SplitPoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: Vec<String> = self.iter().take(SHOWN).map(text).collect();
        f.write_str(&shown.join(", "))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl From<SplitPoints> for Vec<Json> {
    fn from(points: SplitPoints) -> Self {
        let json = |point: &KeyValue<'_>| serde_json::from_slice(&point.to_value().to_json());
        points.iter().map(|point| json(point).unwrap_or_default()).collect()
    }
}

impl TryFrom<Vec<Json>> for SplitPoints {
    type Error = String;

    fn try_from(values: Vec<Json>) -> Result<Self, String> {
        let point = |value: &Json| {
            let read = Value::read(value.to_string().as_bytes()).ok();
            let point = read.as_ref().and_then(KeyValue::from_value).map(KeyValue::into_owned);
            point.ok_or_else(|| format!("{value} is no sort key"))
        };
        let points = values.iter().map(point).collect::<Result<_, _>>()?;
        SplitPoints::new(points).map_err(|bad| bad.to_string())
    }
}

/// The shortest value that lies above `below` and not above `at`, by which sort keys can be divided
/// between the two as by `at`. A number is as short as it is.
pub fn shortest_between(below: &KeyValue<'_>, at: &KeyValue<'_>) -> KeyValue<'static> {
    let shared =
        |below: &[u8], at: &[u8]| below.iter().zip(at).take_while(|(one, other)| one == other).count();
    match (below, at) {
        (KeyValue::S(below), KeyValue::S(at)) => {
            let mut end = (shared(below.as_bytes(), at.as_bytes()) + 1).min(at.len());
            while !at.is_char_boundary(end) {
                end += 1;
            }
            KeyValue::S(Cow::Owned(at.get(..end).unwrap_or(at).to_owned()))
        }
        (KeyValue::B(below), KeyValue::B(at)) => {
            let end = (shared(below, at) + 1).min(at.len());
            KeyValue::B(Cow::Owned(at.get(..end).unwrap_or(at).to_vec()))
        }
        (_, at) => at.clone().into_owned(),
    }
}

impl SortKey<'_> {
    /// The range in which it lies; the first for a number that is none, which the store refuses.
    pub(crate) fn range_in(self, points: &SplitPoints) -> u16 {
        self.value().map_or(0, |value| points.range_of(&value))
    }
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::Number;
    use proptest::prelude::*;

    use super::*;

    fn s(text: &str) -> KeyValue<'static> {
        KeyValue::S(Cow::Owned(text.to_owned()))
    }

    fn n(text: &str) -> KeyValue<'static> {
        KeyValue::N(Number::parse(text).unwrap())
    }

    fn points(texts: &[&str]) -> SplitPoints {
        SplitPoints::new(texts.iter().map(|text| s(text)).collect()).unwrap()
    }

    #[test]
    fn a_sort_key_lies_in_the_range_between_the_points_around_it() {
        let texts = points(&["b", "m"]);
        assert_eq!(["a", "b", "bz", "m", "z"].map(|sort| SortKey::S(sort).range_in(&texts)), [0, 1, 1, 2, 2]);
        let numbers = SplitPoints::new(vec![n("9"), n("10")]).unwrap();
        assert_eq!(
            ["-1", "9", "9.5", "10", "1e1", "11"].map(|sort| SortKey::N(sort).range_in(&numbers)),
            [0, 1, 1, 2, 2, 2]
        );
    }

    #[test]
    fn points_that_do_not_divide_are_refused() {
        let refused = |points: Vec<KeyValue<'static>>| SplitPoints::new(points).unwrap_err().to_string();
        assert!(refused(vec![]).contains("2 to 64 ranges"));
        assert!(refused((0..64).map(|at| n(&at.to_string())).collect()).contains("64 split points"));
        assert!(refused(vec![s("b"), s("a")]).contains("\"a\" does not come after \"b\""));
        assert!(refused(vec![s("b"), s("b")]).contains("does not come after"));
        assert!(refused(vec![s("b"), n("1")]).contains("different types"));
        assert!(refused(vec![s("")]).contains("0 bytes"));
        assert!(refused(vec![s(&"x".repeat(1_025))]).contains("1025 bytes"));
        let long = |at: u8| s(&format!("{}{}", char::from(b'0' + at), "\u{1}".repeat(1_023)));
        assert!(refused((0..60).map(long).collect()).contains("name shorter ones"));
        assert_eq!(SplitPoints::new((0..63).map(|at| n(&at.to_string())).collect()).unwrap().ranges(), 64);
    }

    #[test]
    fn the_shortest_point_divides_as_the_item_does() {
        assert_eq!(shortest_between(&s("anna"), &s("bert")), s("b"));
        assert_eq!(shortest_between(&s("anna"), &s("annalena")), s("annal"));
        assert_eq!(shortest_between(&s("a\u{e4}"), &s("a\u{fc}x")), s("a\u{fc}"));
        assert_eq!(shortest_between(&n("1"), &n("25")), n("25"));
    }

    proptest! {
        /// What can hold a sort key of a range is each of its ranges that does.
        #[test]
        fn only_ranges_without_a_wanted_sort_key_are_left_out(
            mut texts in prop::collection::btree_set("[a-d]{1,3}", 1..6), lower in "[a-d]{0,3}", upper in "[a-d]{0,3}", sort in "[a-d]{1,3}",
            from: bool, to: bool,
        ) {
            let points = SplitPoints::new(std::mem::take(&mut texts).iter().map(|text| s(text)).collect()).unwrap();
            let (low, high, sort) = (s(&lower), s(&upper), s(&sort));
            let lower = if from { Bound::Included(&low) } else { Bound::Excluded(&low) };
            let upper = if to { Bound::Included(&high) } else { Bound::Excluded(&high) };
            let within = std::ops::RangeBounds::<KeyValue<'_>>::contains(&(lower, upper), &sort);
            if within {
                prop_assert!(points.can_hold(points.range_of(&sort), lower, upper));
            }
        }

        #[test]
        fn the_shortest_point_lies_between(below in "[a-c\u{e4}\u{10ffff}]{1,6}", at in "[a-c\u{e4}\u{10ffff}]{1,6}") {
            prop_assume!(below < at);
            let point = shortest_between(&s(&below), &s(&at));
            prop_assert!(s(&below) < point && point <= s(&at));
        }
    }
}
