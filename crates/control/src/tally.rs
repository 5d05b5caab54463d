//! What a table's record says of the records of its keys: how many there are, and which version
//! each has. By it a reader notices a record that is lost, and one that is older or newer than the
//! table's.
//!
//! Not here: reading and writing them (`key_record`).

use sha2::{Digest, Sha256};

/// The tally of the records of a table's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    /// How many keys have records.
    pub count: u64,
    /// The sum of a hash of each record's place and version. `None` where an older build has
    /// written the table's record since.
    pub(crate) sum: Option<u128>,
}

impl Tally {
    pub(crate) const NONE: Self = Tally { count: 0, sum: Some(0) };

    /// With one more record, at that place.
    #[must_use]
    pub(crate) fn with(self, place: &str, version: u64) -> Self {
        let sum = self.sum.map(|sum| sum.wrapping_add(hash(place, version)));
        Tally { count: self.count + 1, sum }
    }

    /// Without the record of that version at that place.
    #[must_use]
    pub(crate) fn without(self, place: &str, version: u64) -> Self {
        let sum = self.sum.map(|sum| sum.wrapping_sub(hash(place, version)));
        Tally { count: self.count.saturating_sub(1), sum }
    }

    /// With another version of the record at that place.
    #[must_use]
    pub(crate) fn replacing(self, place: &str, before: u64, version: u64) -> Self {
        let change = hash(place, version).wrapping_sub(hash(place, before));
        Tally { sum: self.sum.map(|sum| sum.wrapping_add(change)), ..self }
    }

    /// The sum as it is stored; `None` without one.
    pub(crate) fn text(self) -> Option<String> {
        self.sum.map(|sum| format!("{sum:032x}"))
    }

    pub(crate) fn read(count: u64, sum: Option<&str>) -> Option<Self> {
        let sum = match sum {
            Some(text) => Some(u128::from_str_radix(text, 16).ok()?),
            None => None,
        };
        Some(Tally { count, sum })
    }

    /// How records that were found stand to those that this tally is of.
    pub(crate) fn compare(self, found: Self) -> Found {
        match self.sum {
            Some(sum) if found.sum == Some(sum) && found.count == self.count => Found::These,
            None if found.count >= self.count => Found::These,
            _ if found.count < self.count => Found::TooFew,
            _ => Found::Others,
        }
    }
}

/// What was found where a tally is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Those that the tally is of, as far as it can tell.
    These,
    /// Some are lost.
    TooFew,
    /// More, or other versions.
    Others,
}

fn hash(place: &str, version: u64) -> u128 {
    let mut hash = Sha256::new();
    hash.update(version.to_be_bytes());
    hash.update(place);
    let mut first = [0; 16];
    first.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_tells_lost_older_and_newer_records() {
        let two = Tally::NONE.with("key:a", 1).with("key:b", 7);
        let three = two.with("key:c", 3);
        assert_eq!(two, Tally::NONE.with("key:b", 7).with("key:a", 1), "in any order");
        assert_eq!(three.without("key:c", 3), two);
        let newer = two.replacing("key:a", 1, 2);
        assert_eq!(newer, Tally::NONE.with("key:a", 2).with("key:b", 7));
        for (known, found, says) in [
            (two, two, Found::These),
            (three, two, Found::TooFew),
            (two, three, Found::Others),
            (two, newer, Found::Others),
            (newer, two, Found::Others),
            (Tally { sum: None, ..two }, newer, Found::These),
            (Tally { sum: None, ..three }, newer, Found::TooFew),
        ] {
            assert_eq!(known.compare(found), says, "{known:?} {found:?}");
        }
        assert_eq!(Tally::read(2, two.text().as_deref()), Some(two));
        assert_eq!(Tally::read(2, Some("x")), None);
    }
}
