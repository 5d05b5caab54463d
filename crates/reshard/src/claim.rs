//! A worker's right to write: an item of its own, the *claim*, that every write of it checks.
//!
//! A claim is created by a transaction that checks the record, is checked by each write of its
//! worker in the same transaction, and is deleted by the coordinator before the next phase. So
//! nothing that a worker sent lands later, however late it is. Each worker has its own, because two
//! transactions that check one item conflict. The claim of a mover also says how far it came:
//! whoever takes over begins there.
//!
//! The coordinator closes the record before it deletes claims: otherwise a worker that wakes
//! between the deletion and the next phase would make itself a new one. Not here: what the worker
//! does with its right.

use crate::record::{Record, State};
use crate::rules::{Rule, Rules};

/// One worker's claim. Its number is never used again, by no worker of the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    worker: u64,
    version: u64,
    at: At,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Wanted,
    Held,
    Gone,
}

/// The transaction that creates a claim: put the worker's item if there is none; the record has
/// that version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Create {
    /// The worker.
    pub worker: u64,
    /// The version that the record must have; `None` only without a rule.
    pub if_version: Option<u64>,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Created {
    /// The claim is there, whether this put it or an earlier attempt.
    Done,
    /// The record is another one now.
    RecordChanged,
    /// A conflict, or no answer.
    Again,
}

impl Claim {
    /// A claim to be made by a worker that read this record. `None` where the record has no work
    /// for workers.
    pub fn new(worker: u64, record: Record, rules: Rules) -> Option<Self> {
        match record.state {
            State::Moving { phase, closing: false } if phase.has_workers() => {
                Some(Claim { worker, version: record.version, at: At::Wanted, rules })
            }
            _ => None,
        }
    }

    /// The transaction to send, until the claim is held or gone.
    pub fn create(&self) -> Option<Create> {
        let if_version = self.rules.keep(Rule::ClaimChecksRecord).then_some(self.version);
        (self.at == At::Wanted).then_some(Create { worker: self.worker, if_version })
    }

    /// Takes the answer to it.
    pub fn created(&mut self, created: Created) {
        match created {
            Created::Done if self.at == At::Wanted => self.at = At::Held,
            Created::RecordChanged => self.at = At::Gone,
            Created::Done | Created::Again => {}
        }
    }

    /// A write found that the claim is gone. The worker stops.
    pub fn lost(&mut self) {
        self.at = At::Gone;
    }

    /// Whether the worker may write.
    pub fn is_held(&self) -> bool {
        self.at == At::Held
    }

    /// Whether the worker has nothing more to do.
    pub fn is_gone(&self) -> bool {
        self.at == At::Gone
    }

    /// The worker whose claim each of its transactions has to check; `None` only without a rule.
    pub fn checked(&self) -> Option<u64> {
        self.rules.keep(Rule::ClaimChecked).then_some(self.worker)
    }

    /// Whose claim it is.
    pub fn worker(&self) -> u64 {
        self.worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heatsink_layout::Phase;

    #[test]
    fn a_claim_is_made_only_under_the_record_that_was_seen() {
        let moving = |phase, closing| Record { version: 4, state: State::Moving { phase, closing } };
        assert_eq!(Claim::new(1, Record::WHOLE, Rules::ALL), None);
        assert_eq!(Claim::new(1, moving(Phase::Hold, false), Rules::ALL), None);
        assert_eq!(Claim::new(1, moving(Phase::Move, true), Rules::ALL), None);
        let mut claim = Claim::new(1, moving(Phase::Move, false), Rules::ALL).unwrap_or_else(|| panic!());
        assert_eq!(claim.create(), Some(Create { worker: 1, if_version: Some(4) }));
        claim.created(Created::Again);
        assert!(!claim.is_held() && claim.create().is_some());
        claim.created(Created::Done);
        assert!(claim.is_held() && claim.create().is_none());
        claim.lost();
        assert!(claim.is_gone() && claim.create().is_none());
    }
}
