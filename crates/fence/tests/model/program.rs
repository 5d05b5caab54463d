//! What each change of a layout does, step by step, and how a rule that is left out shortens it.

use crate::config::{Config, Kind, Rule};
use crate::world::{RAW, RecordState, SHARD};

/// One step of whoever changes a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Finds the registry, or makes it.
    Found,
    /// Waits until every gateway must have noticed a new registry.
    Settle,
    /// Writes the table's record, if it has not changed since it was read.
    Record(RecordState),
    /// Reserves the name.
    Intent,
    /// Publishes an epoch.
    Announce,
    /// Waits for every gateway.
    Wait,
    /// Looks whether the table is empty, strongly.
    Scan,
    CreateTable,
    /// Writes the record of the table that was made, and gives it the name that was reserved.
    Bind(RecordState),
    DeleteTable,
    /// Takes a claim to move items.
    Claim,
    /// Reads the item where it lies. No item: the next step after the moves.
    ReadItem(usize),
    /// Copies it to the other cell.
    Copy(usize),
    /// Deletes it where it was, if it is what was copied. Then reads again.
    Delete(usize),
    /// Gives an index key its new form, if the item is what was read. Then reads again.
    Rewrite,
    /// Deletes every claim.
    Release,
}

/// The steps of a change.
pub fn program(config: &Config, kind: Kind) -> Vec<Step> {
    let mut steps = complete(kind);
    let remove = |steps: &mut Vec<Step>, which: &[Step]| {
        for one in which {
            if let Some(found) = steps.iter().position(|step| step == one) {
                steps.remove(found);
            }
        }
    };
    if !config.keeps(Rule::RecordBeforeHead) {
        for at in 1..steps.len() {
            if matches!(steps[at - 1], Step::Record(_)) && steps[at] == Step::Announce {
                steps.swap(at - 1, at);
            }
        }
    }
    if kind == Kind::FirstUse && !config.keeps(Rule::PendingAcknowledged)
        || matches!(kind, Kind::Create | Kind::CreateWhole) && !config.keeps(Rule::IntentAcknowledged)
        || !config.keeps(Rule::StepWaitedFor)
    {
        remove(&mut steps, &[Step::Wait]);
    }
    if kind == Kind::Create && !config.keeps(Rule::IntentBeforeCreate) {
        remove(&mut steps, &[Step::Intent, Step::Announce, Step::Wait]);
    }
    if kind == Kind::Delete && !config.keeps(Rule::DeleteAnnounced) {
        remove(&mut steps, &[Step::Record(RecordState::Going), Step::Announce, Step::Wait]);
    }
    steps
}

fn complete(kind: Kind) -> Vec<Step> {
    use RecordState as State;
    use Step::{Announce, Bind, Claim, Copy, Delete, Found, Record, Release, Rewrite, Scan, Settle, Wait};
    // While the name is reserved, or the record pending, nobody plans by it: what ends that needs
    // no epoch.
    let create = |state| vec![Step::Intent, Announce, Wait, Step::CreateTable, Bind(state)];
    let moves = |during, from, end| {
        let steps = [Record(during), Announce, Wait, Claim, Step::ReadItem(from), Copy(from), Delete(from)];
        steps.into_iter().chain([Release, Record(end), Announce]).collect()
    };
    match kind {
        Kind::FirstUse => {
            let pending = Record(State::Pending);
            vec![Found, Settle, pending, Announce, Wait, Scan, Record(State::Active)]
        }
        Kind::Refuse => vec![Record(State::Whole), Announce],
        Kind::Create => create(State::Active),
        Kind::CreateWhole => create(State::Whole),
        Kind::Delete => {
            let going = Record(State::Going);
            vec![going, Announce, Wait, Step::DeleteTable, Record(State::Gone), Announce]
        }
        Kind::Adopt => moves(State::Adopting, RAW, State::Active),
        Kind::Return => moves(State::Returning, SHARD, State::Whole),
        Kind::SpreadIndex => {
            let (old, new) = (Record(State::SpreadingOld), Record(State::SpreadingNew));
            let first = [old, Announce, Wait, new, Announce, Wait, Claim, Step::ReadItem(RAW), Rewrite];
            first.into_iter().chain([Release, Record(State::Active), Announce]).collect()
        }
    }
}
