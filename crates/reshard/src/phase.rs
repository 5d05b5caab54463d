//! The phases of a move, and what a request does in each: the whole table in one function.
//!
//! Only for items whose slot changes. An item that has the same slot in both layouts is read and
//! written there in every phase; a key that does not move is in no phase. Not here: when a phase
//! ends ([`Coordinator`](crate::Coordinator)).

use heatsink_layout::Phase;

use crate::rules::{Rule, Rules};

/// What a request needs of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A PutItem without condition and without ReturnValues.
    BlindPut {
        /// On a table with time to live: the item that is put has that attribute.
        leaves_ttl: bool,
    },
    /// An UpdateItem whose outcome is right if it succeeds with the [`Guard`] added to its
    /// condition. So are updates without ReturnValues of an absent item, upserts included: where
    /// the guard holds, the new copy is the item.
    Update {
        /// On a table with time to live: the update may set that attribute.
        leaves_ttl: bool,
    },
    /// A DeleteItem, with or without condition.
    Delete,
    /// Everything else whose effect or answer depends on what the item is: creates, conditional
    /// puts, ReturnValues of puts, transactions.
    Dependent,
    /// A read.
    Read,
}

/// What is added to the condition of an update that is tried on the new copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The item exists.
    Exists,
    /// The item exists and, on a table with time to live, has no such attribute: an expiry of the
    /// new copy would bring an old one to light.
    ExistsForGood,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// It goes to the old copy, as before the move.
    Old,
    /// It goes to the new copy.
    New,
    /// It waits in the gateway for another phase. If that takes too long the answer is retryable,
    /// nothing done.
    Wait,
    /// The old copy is pulled; then it goes to the new copy.
    PullThenNew,
    /// It goes to the new copy under a guard. If the guard fails, nothing was done.
    NewIf(Guard, Otherwise),
    /// It reads both copies: [`PointRead`](crate::PointRead), [`RangeRead`](crate::RangeRead).
    ReadBoth,
}

/// What an update does whose guard failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Otherwise {
    /// As [`Act::Wait`].
    Wait,
    /// As [`Act::PullThenNew`].
    PullThenNew,
    /// Only without a rule: the failure is the answer.
    Answer,
}

/// What a request does with an item whose slot changes. `above`: whether the item is above the high
/// water on record, which is known only in MOVE. No old slot holds such an item, and none will.
pub fn act(phase: Phase, access: Access, above: bool, rules: Rules) -> Act {
    let keep = |rule| rules.keep(rule);
    let update = |leaves_ttl: bool, otherwise: Otherwise, rule: Rule| {
        if leaves_ttl && keep(Rule::ExpiringPutPulls) {
            return if phase == Phase::Check { Act::Wait } else { Act::PullThenNew };
        }
        if !keep(Rule::UpdatesGuarded) {
            return Act::New;
        }
        let guard = if keep(Rule::ExpiringUpdatePulls) { Guard::ExistsForGood } else { Guard::Exists };
        Act::NewIf(guard, if keep(rule) { otherwise } else { Otherwise::Answer })
    };
    match (phase, access) {
        (Phase::Reserve, _) => Act::Old,
        (Phase::Move, _) if above => Act::New,
        (Phase::Hold, Access::Read) if !keep(Rule::HoldReadsBoth) => Act::Old,
        (_, Access::Read) => Act::ReadBoth,
        (Phase::Prepare, _) => Act::Old,
        (Phase::Hold, _) if keep(Rule::HoldWaits) => Act::Wait,
        (Phase::Hold, _) => Act::Old,

        (Phase::Check, Access::BlindPut { leaves_ttl }) if leaves_ttl && keep(Rule::ExpiringPutPulls) => {
            Act::Wait
        }
        (Phase::Move, Access::BlindPut { leaves_ttl }) if leaves_ttl && keep(Rule::ExpiringPutPulls) => {
            Act::PullThenNew
        }
        (Phase::Check | Phase::Move, Access::BlindPut { .. }) => Act::New,

        (Phase::Check, Access::Update { leaves_ttl }) => {
            update(leaves_ttl, Otherwise::Wait, Rule::CheckHoldsMissing)
        }
        (Phase::Move, Access::Update { leaves_ttl }) => {
            update(leaves_ttl, Otherwise::PullThenNew, Rule::MissingPulls)
        }

        (Phase::Check, Access::Delete) if keep(Rule::CheckHoldsDeletes) => Act::Wait,
        (Phase::Check, Access::Dependent) if keep(Rule::CheckHoldsDependent) => Act::Wait,
        (Phase::Move, Access::Delete) if keep(Rule::DeletePulls) => Act::PullThenNew,
        (Phase::Move, Access::Dependent) if keep(Rule::DependentPulls) => Act::PullThenNew,
        (Phase::Check | Phase::Move, Access::Delete | Access::Dependent) => Act::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Act::{New, NewIf, Old, PullThenNew, ReadBoth, Wait};
        let phases = [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Check, Phase::Move];
        let row = |access| phases.map(|phase| act(phase, access, false, Rules::ALL));
        let tried = |otherwise| NewIf(Guard::ExistsForGood, otherwise);
        assert_eq!(row(Access::BlindPut { leaves_ttl: false }), [Old, Old, Wait, New, New]);
        assert_eq!(row(Access::BlindPut { leaves_ttl: true }), [Old, Old, Wait, Wait, PullThenNew]);
        let update = [Old, Old, Wait, tried(Otherwise::Wait), tried(Otherwise::PullThenNew)];
        assert_eq!(row(Access::Update { leaves_ttl: false }), update);
        assert_eq!(row(Access::Update { leaves_ttl: true }), [Old, Old, Wait, Wait, PullThenNew]);
        assert_eq!(row(Access::Delete), [Old, Old, Wait, Wait, PullThenNew]);
        assert_eq!(row(Access::Dependent), [Old, Old, Wait, Wait, PullThenNew]);
        assert_eq!(row(Access::Read), [Old, ReadBoth, ReadBoth, ReadBoth, ReadBoth]);
        for access in [Access::BlindPut { leaves_ttl: true }, Access::Delete, Access::Dependent, Access::Read]
        {
            let above = |phase| act(phase, access, true, Rules::ALL);
            assert_eq!(above(Phase::Move), New);
            assert_eq!(above(Phase::Reserve), Old, "nothing is known to be above before MOVE");
        }
    }
}
