//! A counter that narrows: one of the fragments that it loses is folded into its base fragment, and
//! its sum is read meanwhile.
//!
//! A [`Fold`] is one transaction: what the fragment holds is added to the base fragment, and the
//! fragment is deleted, if it still holds that. Nobody adds to it any more; clients delete it with
//! the counter, or when they set its numbers.
//!
//! Readers see transactions item by item. So a [`FoldRead`] reads the fragments that the counter
//! loses before and after all others: if they are the same, no fold came between.
//!
//! Not here: which fragments these are (`heatsink_layout::Narrowing`); TransactGetItems, which reads
//! all in one call; pulls of items that move ([`Pull`](crate::Pull)).

use crate::pull::Pulled;
use crate::rules::{Rule, Rules};

/// A fold of one fragment. `T` is the fragment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fold<T> {
    at: At<T>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At<T> {
    Reading { no_base: bool },
    Adding(T),
}

/// What a fold wants sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FoldCall<T> {
    /// A strongly consistent read of the fragment.
    Read,
    /// Add what it holds to the base fragment, if that is there, and delete it. With `if_same`: if
    /// it holds that still.
    Add {
        /// The fragment.
        fragment: T,
        /// Always, in production.
        if_same: bool,
    },
}

/// What came of it. Where several conditions of a transaction failed, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldAnswer<T> {
    /// The fragment, or none.
    Read(Option<T>),
    /// The worker's claim is gone.
    ClaimGone,
    /// The transaction is done.
    Done,
    /// There is no base fragment.
    NoBase,
    /// The fragment is another one, or gone.
    Changed,
    /// What the fragment holds cannot be added: the sum is no number that an item can hold, or it is
    /// no part of a counter.
    Stays,
    /// A conflict with another transaction, or no answer: it may have been done.
    Again,
}

impl<T: Clone> Fold<T> {
    /// A fold of a fragment that a strongly consistent read showed in this MOVE.
    pub fn of(fragment: T, rules: Rules) -> Self {
        Fold { at: At::Adding(fragment), rules }
    }

    /// The call to send.
    pub fn call(&self) -> FoldCall<T> {
        match &self.at {
            At::Reading { .. } => FoldCall::Read,
            At::Adding(fragment) => {
                let if_same = self.rules.keep(Rule::FoldUnchanged);
                FoldCall::Add { fragment: fragment.clone(), if_same }
            }
        }
    }

    /// Takes the answer to [`call`](Self::call). `Some` when the fold is over.
    pub fn answered(&mut self, answer: FoldAnswer<T>) -> Option<Pulled> {
        self.at = match (&self.at, answer) {
            (_, FoldAnswer::ClaimGone) => return Some(Pulled::ClaimGone),
            (_, FoldAnswer::Stays) => return Some(Pulled::TooLarge),
            (At::Reading { .. }, FoldAnswer::Read(None)) | (At::Adding(_), FoldAnswer::Done) => {
                return Some(Pulled::Clear);
            }
            // The base fragment exists whenever another one does: somebody else has put it there.
            (At::Reading { no_base: true }, FoldAnswer::Read(Some(_))) => return Some(Pulled::TooLarge),
            (_, FoldAnswer::Read(Some(fragment))) => At::Adding(fragment),
            // A client has deleted the counter, most likely.
            (_, FoldAnswer::NoBase) => At::Reading { no_base: true },
            // Perhaps it was done; perhaps a client has set the counter, or deleted it.
            _ => At::Reading { no_base: false },
        };
        None
    }
}

/// A read of one or more counters of which fragments are folded. `T` is what those fragments hold
/// that the counters lose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FoldRead<T> {
    lost: Option<T>,
    kept: bool,
    rules: Rules,
}

/// What such a read reads next, strongly consistently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldPart {
    /// The fragments that the counters lose.
    Lost,
    /// All others.
    Kept,
}

impl<T: PartialEq> FoldRead<T> {
    /// A read that has not begun.
    pub fn new(rules: Rules) -> Self {
        FoldRead { lost: None, kept: false, rules }
    }

    /// What to read next.
    pub fn call(&self) -> FoldPart {
        if self.lost.is_some() && !self.kept { FoldPart::Kept } else { FoldPart::Lost }
    }

    /// The others were read.
    pub fn kept(&mut self) {
        self.kept = true;
    }

    /// Takes the fragments that the counters lose. Whether the read is over: these and the others,
    /// as they were read last, are the counters.
    pub fn lost(&mut self, lost: T) -> bool {
        let seen = self.lost.as_ref().is_some_and(|before| *before == lost);
        if self.kept && (seen || !self.rules.keep(Rule::FoldSeen)) {
            return true;
        }
        (self.lost, self.kept) = (Some(lost), false);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_reads_again_whatever_happened_to_its_fragment() {
        let mut fold = Fold::of(7, Rules::ALL);
        assert_eq!(fold.call(), FoldCall::Add { fragment: 7, if_same: true });
        assert_eq!(fold.answered(FoldAnswer::Again), None);
        assert_eq!(fold.call(), FoldCall::Read);
        assert_eq!(fold.answered(FoldAnswer::Read(Some(5))), None);
        assert_eq!(fold.answered(FoldAnswer::Changed), None);
        assert_eq!(fold.answered(FoldAnswer::Read(Some(6))), None);
        assert_eq!(fold.answered(FoldAnswer::NoBase), None);
        assert_eq!(fold.call(), FoldCall::Read);
        let mut foreign = fold.clone();
        assert_eq!(foreign.answered(FoldAnswer::Read(Some(6))), Some(Pulled::TooLarge));
        assert_eq!(fold.answered(FoldAnswer::Read(None)), Some(Pulled::Clear));
        for (answer, ended) in [
            (FoldAnswer::Done, Pulled::Clear),
            (FoldAnswer::Stays, Pulled::TooLarge),
            (FoldAnswer::ClaimGone, Pulled::ClaimGone),
        ] {
            assert_eq!(Fold::of(7, Rules::ALL).answered(answer), Some(ended));
        }
    }

    #[test]
    fn a_read_is_over_when_nothing_was_folded_between_its_parts() {
        let mut read = FoldRead::new(Rules::ALL);
        assert_eq!(read.call(), FoldPart::Lost);
        assert!(!read.lost([Some(1), Some(2)]));
        assert_eq!(read.call(), FoldPart::Kept);
        read.kept();
        assert_eq!(read.call(), FoldPart::Lost);
        assert!(!read.lost([None, Some(2)]));
        assert_eq!(read.call(), FoldPart::Kept);
        read.kept();
        assert!(read.lost([None, Some(2)]));
    }
}
