//! A read of one item that may have two copies: the new one, the old one if that is absent, the new
//! one again.
//!
//! The new copy wins. Without the third read an item could be pulled between the first two and be
//! seen nowhere, or be put after the first and be seen as it was. All reads are strongly
//! consistent. Not here: several items at once ([`RangeRead`](crate::RangeRead)); TransactGetItems,
//! which names both copies in one call.

use crate::record::Side;
use crate::rules::{Rule, Rules};

/// A read of one item. `T` is what a copy holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PointRead<T> {
    at: At<T>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At<T> {
    First,
    Old,
    Again(Option<T>),
}

impl<T> PointRead<T> {
    /// A read that has not begun.
    pub fn new(rules: Rules) -> Self {
        let at = if rules.keep(Rule::NewReadFirst) { At::First } else { At::Old };
        PointRead { at, rules }
    }

    /// The copy to read next, strongly consistently.
    pub fn call(&self) -> Side {
        match self.at {
            At::First | At::Again(_) => Side::New,
            At::Old => Side::Old,
        }
    }

    /// Takes the copy that was read. `Some` when the read is over: the item, or none.
    pub fn answered(&mut self, copy: Option<T>) -> Option<Option<T>> {
        match std::mem::replace(&mut self.at, At::Old) {
            At::First if copy.is_some() => Some(copy),
            At::First => None,
            At::Old if self.rules.keep(Rule::NewReadAgain) => {
                self.at = At::Again(copy);
                None
            }
            At::Old => Some(copy),
            At::Again(old) => Some(copy.or(old)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(copies: &[Option<u8>]) -> (Option<u8>, usize) {
        let mut read = PointRead::new(Rules::ALL);
        for (place, (copy, side)) in copies.iter().zip([Side::New, Side::Old, Side::New]).enumerate() {
            assert_eq!(read.call(), side);
            if let Some(item) = read.answered(*copy) {
                return (item, place + 1);
            }
        }
        panic!("not over")
    }

    #[test]
    fn the_new_copy_wins_whenever_it_is_seen() {
        assert_eq!(read(&[Some(2)]), (Some(2), 1));
        assert_eq!(read(&[None, Some(1), None]), (Some(1), 3));
        assert_eq!(read(&[None, Some(1), Some(2)]), (Some(2), 3));
        assert_eq!(read(&[None, None, Some(2)]), (Some(2), 3));
        assert_eq!(read(&[None, None, None]), (None, 3));
    }
}
