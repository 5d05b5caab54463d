//! Between which places the last few writes of records of keys lie: a hint in the table's record, by
//! which a gateway that knows the records of before reads those alone that may have changed.
//!
//! It is a hint and no more. The table's [tally](crate::Tally) tells whether what was read together
//! with what was known is all that is on record. Older builds take it off with their next write. Not
//! here: reading them (`key_record`).

use serde_json::json;

/// The most writes that are kept, and the most bytes of their places: an item costs by its length.
const MOST: usize = 8;
const MOST_BYTES: usize = 1024;

/// One write of records of keys.
#[derive(Clone, Debug)]
struct Write {
    /// The version of the table's record by which records of keys were written before.
    after: u64,
    /// That by which these were.
    version: u64,
    /// The first place, and the last.
    between: (String, String),
}

/// The last few writes of records of keys, the newest last. Two records that differ in nothing else
/// say the same, and are equal.
#[derive(Clone, Debug, Default)]
pub struct Touched(Vec<Write>);

impl PartialEq for Touched {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Touched {}

impl Touched {
    /// With another write of records at these places, which follows that of the version `after`.
    #[must_use]
    pub(crate) fn with<'a>(
        &self,
        after: u64,
        version: u64,
        places: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let (Some(first), Some(last)) = (places.clone().min(), places.max()) else { return self.clone() };
        let between = (first.to_owned(), last.to_owned());
        let mut writes = self.0.clone();
        writes.push(Write { after, version, between });
        let mut bytes = 0;
        let kept = writes.iter().rev().take(MOST).take_while(|write| {
            bytes += write.between.0.len() + write.between.1.len();
            bytes <= MOST_BYTES
        });
        let dropped = writes.len() - kept.count();
        Touched(writes.split_off(dropped))
    }

    /// Where records may have changed since the write of the version `known`, up to that of the
    /// version `now`: disjoint, in order. `None` where it does not say.
    pub(crate) fn since(&self, known: u64, now: u64) -> Option<Vec<(&str, &str)>> {
        let first = self.0.iter().position(|write| write.after == known)?;
        let writes = self.0.get(first..)?;
        let follow = writes.iter().zip(writes.iter().skip(1)).all(|(one, next)| one.version == next.after);
        if !follow || writes.last()?.version != now {
            return None;
        }
        let mut all: Vec<(&str, &str)> =
            writes.iter().map(|write| (&*write.between.0, &*write.between.1)).collect();
        all.sort_unstable();
        let mut disjoint: Vec<(&str, &str)> = Vec::new();
        for (first, last) in all {
            match disjoint.last_mut() {
                Some((_, before)) if first <= *before => *before = last.max(*before),
                _ => disjoint.push((first, last)),
            }
        }
        Some(disjoint)
    }

    /// It as text; `None` where it says nothing.
    pub(crate) fn text(&self) -> Option<String> {
        let of = |write: &Write| json!([write.after, write.version, write.between.0, write.between.1]);
        (!self.0.is_empty()).then(|| json!(self.0.iter().map(of).collect::<Vec<_>>()).to_string())
    }

    /// Reads [its text](Self::text). What it cannot read says nothing.
    pub(crate) fn read(text: Option<&str>) -> Self {
        let writes = text.and_then(|text| serde_json::from_str::<Vec<(u64, u64, String, String)>>(text).ok());
        let writes = writes.filter(|writes| writes.iter().all(|(_, _, first, last)| first <= last));
        let write = |(after, version, first, last)| Write { after, version, between: (first, last) };
        Touched(writes.unwrap_or_default().into_iter().map(write).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_where_records_changed_since_a_version_that_it_knows() {
        let touched = Touched::default()
            .with(0, 3, ["key:b", "key:a"].into_iter())
            .with(3, 5, ["key:x"].into_iter())
            .with(5, 6, ["key:c", "key:b"].into_iter());
        let read = Touched::read(touched.text().as_deref());
        for touched in [&touched, &read] {
            assert_eq!(touched.since(0, 6), Some(vec![("key:a", "key:c"), ("key:x", "key:x")]));
            assert_eq!(touched.since(5, 6), Some(vec![("key:b", "key:c")]));
            assert_eq!(touched.since(6, 6), None, "nobody reads what has not changed");
            assert_eq!(touched.since(0, 5), None, "another version than its newest");
            assert_eq!(touched.since(4, 6), None, "between two writes");
        }
        // An older build has written meanwhile.
        assert_eq!(touched.with(7, 8, ["key:a"].into_iter()).since(5, 8), None);
        for damaged in ["?", r#"[[0,1,"key:b","key:a"]]"#] {
            assert_eq!(Touched::read(Some(damaged)).since(0, 1), None);
        }
        assert_eq!(Touched::default().text(), None);
    }

    #[test]
    fn it_keeps_the_newest_writes_alone() {
        let long = "k".repeat(170);
        let mut touched = Touched::default();
        for version in 1..=100 {
            touched = touched.with(version - 1, version, [long.as_str()].into_iter());
        }
        assert_eq!(touched.0.len(), 3);
        assert!(touched.since(97, 100).is_some() && touched.since(96, 100).is_none());
        let mut touched = Touched::default();
        for version in 1..=100 {
            touched = touched.with(version - 1, version, ["key:a"].into_iter());
        }
        assert_eq!(touched.0.len(), MOST);
        // One that is longer than all may be says nothing, and what was before it is of no use.
        let endless = "k".repeat(2 * MOST_BYTES);
        assert_eq!(touched.with(100, 101, [endless.as_str()].into_iter()).text(), None);
    }
}
