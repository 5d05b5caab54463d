//! One pull: an item's old copy is brought to its new place.
//!
//! Two transactions and never one: readers see transactions item by item, so one that put and
//! deleted would show them neither copy.
//! 1. *Copy*: put at the new place if nothing is there; the old copy is there.
//! 2. *Clear*: delete the old copy; the new copy is there.
//!
//! Both do the same a second time, so an unknown outcome is answered by sending the transaction again.
//! A pull that meets another transaction begins anew. What a worker pulls checks the worker's
//! [`Claim`](crate::Claim) in both; whoever sends them adds that. Not here: which items are pulled,
//! and when.

use crate::rules::{Rule, Rules};

/// A pull of one item. `T` is the item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pull<T> {
    at: At<T>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At<T> {
    Reading,
    Copying(T),
    Clearing,
}

/// What a pull wants sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PullCall<T> {
    /// A strongly consistent read of the old copy.
    Read,
    /// Put `item` at the new place if nothing is there. With `if_old`: and if the old copy is
    /// there.
    Copy {
        /// The old copy.
        item: T,
        /// Always, in production.
        if_old: bool,
    },
    /// Delete the old copy. With `if_new`: if the new copy is there.
    Clear {
        /// Always, in production.
        if_new: bool,
    },
}

/// What came of it. Where several conditions of a transaction failed, the first of these counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PullAnswer<T> {
    /// The old copy, or none.
    Read(Option<T>),
    /// The worker's claim is gone.
    ClaimGone,
    /// The transaction is done.
    Done,
    /// Copy: something is at the new place.
    NewExists,
    /// Copy: the old copy is gone.
    OldGone,
    /// Clear: the new copy is gone.
    NewGone,
    /// Copy: the item with its new key is longer than an item may be.
    TooLarge,
    /// A conflict with another transaction: it was not done. Mostly the other one is a pull of the same
    /// item, so the old copy is read again.
    Met,
    /// No answer: it may have been done.
    Again,
}

/// How a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pulled {
    /// There is no old copy any more. In MOVE there never will be one again.
    Clear,
    /// The item stays where it is.
    TooLarge,
    /// The worker may write no more.
    ClaimGone,
}

impl<T: Clone> Pull<T> {
    /// A pull of whatever the old copy is.
    pub fn new(rules: Rules) -> Self {
        Pull { at: At::Reading, rules }
    }

    /// A pull of an item that a strongly consistent read showed in this MOVE.
    pub fn of(item: T, rules: Rules) -> Self {
        Pull { at: At::Copying(item), rules }
    }

    /// The call to send.
    pub fn call(&self) -> PullCall<T> {
        match &self.at {
            At::Reading => PullCall::Read,
            At::Copying(item) => {
                PullCall::Copy { item: item.clone(), if_old: self.rules.keep(Rule::CopyNeedsOld) }
            }
            At::Clearing => PullCall::Clear { if_new: self.rules.keep(Rule::ClearNeedsNew) },
        }
    }

    /// Takes the answer to [`call`](Self::call). `Some` when the pull is over.
    pub fn answered(&mut self, answer: PullAnswer<T>) -> Option<Pulled> {
        self.at = match (&self.at, answer) {
            (_, PullAnswer::Again) => return None,
            (_, PullAnswer::ClaimGone) => return Some(Pulled::ClaimGone),
            (_, PullAnswer::TooLarge) => return Some(Pulled::TooLarge),
            (At::Reading, PullAnswer::Read(None)) | (At::Clearing, PullAnswer::Done) => {
                return Some(Pulled::Clear);
            }
            (_, PullAnswer::Read(Some(item))) => At::Copying(item),
            (At::Copying(_), PullAnswer::Done | PullAnswer::NewExists) => At::Clearing,
            // Somebody else has pulled the item, or is about to, or deleted it, or it has expired.
            _ => At::Reading,
        };
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_copies_and_clears_and_starts_over_when_somebody_else_did() {
        let mut pull = Pull::new(Rules::ALL);
        assert_eq!(pull.call(), PullCall::Read);
        assert_eq!(pull.answered(PullAnswer::Read(Some(7))), None);
        assert_eq!(pull.call(), PullCall::Copy { item: 7, if_old: true });
        assert_eq!(pull.answered(PullAnswer::Again), None);
        assert_eq!(pull.call(), PullCall::Copy { item: 7, if_old: true });
        assert_eq!(pull.answered(PullAnswer::Met), None);
        assert_eq!(pull.call(), PullCall::Read);
        assert_eq!(pull.answered(PullAnswer::Read(Some(7))), None);
        assert_eq!(pull.answered(PullAnswer::NewExists), None);
        assert_eq!(pull.call(), PullCall::Clear { if_new: true });
        assert_eq!(pull.answered(PullAnswer::NewGone), None);
        assert_eq!(pull.call(), PullCall::Read);
        assert_eq!(pull.answered(PullAnswer::Read(None)), Some(Pulled::Clear));
    }

    #[test]
    fn what_does_not_fit_stays_and_a_claim_that_is_gone_ends_it() {
        assert_eq!(Pull::of(7, Rules::ALL).answered(PullAnswer::TooLarge), Some(Pulled::TooLarge));
        assert_eq!(Pull::of(7, Rules::ALL).answered(PullAnswer::ClaimGone), Some(Pulled::ClaimGone));
        let mut pull = Pull::of(7, Rules::ALL);
        assert_eq!(pull.answered(PullAnswer::OldGone), None);
        assert_eq!(pull.call(), PullCall::Read);
    }
}
