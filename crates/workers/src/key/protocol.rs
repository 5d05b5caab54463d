//! The record of a key as the protocol knows it, and back.

use heatsink_control::{Awaits, KeyRecord, Move};
use heatsink_layout::{Layout, Moving, Phase};
use heatsink_reshard::{Change, Record, Side, State};

use crate::key::survey::Found;

/// What is on record, as far as the protocol cares.
pub(crate) fn read(record: Option<&KeyRecord>) -> Record {
    let Some(record) = record else { return Record::WHOLE };
    let state = match &record.moves {
        Some(Move { phase, closing, .. }) => State::Moving { phase: *phase, closing: *closing },
        None => State::Stable { in_force: Side::Old, settled: record.settled },
    };
    Record { version: record.version, state }
}

/// The record to write for a state of the protocol, after `before`, for a key that moves to `to`.
/// `found` tells by which attribute items of the table expire, and what its stream shows, from the
/// survey of RESERVE, and the
/// high water, from the end of HOLD or CHECK. From the next phase on the record says so itself, to
/// whoever takes over.
pub(crate) fn write(before: &KeyRecord, to: &Layout, found: &Found, next: Record, now: u64) -> KeyRecord {
    let same = KeyRecord { version: next.version, changed: now, ..before.clone() };
    let reserved_before = before.moves.as_ref().map_or(before.reserved, |moves| moves.reserved_before);
    match next.state {
        State::Moving { phase, closing } => {
            let after = |phase| before.moves.as_ref().filter(move |moves| moves.phase > phase);
            let expires = match after(Phase::Reserve) {
                Some(moves) => moves.expires.clone(),
                None => found.expires.clone().filter(|_| phase > Phase::Reserve),
            };
            let marks = match after(Phase::Reserve) {
                Some(moves) => moves.marks,
                None => found.marks && phase > Phase::Reserve,
            };
            let high_water = match after(Phase::Check) {
                Some(moves) => moves.high_water.clone(),
                None => found.high_water.clone().filter(|_| phase == Phase::Move),
            };
            let moves =
                Some(Move { to: to.clone(), phase, reserved_before, closing, expires, marks, high_water });
            KeyRecord { moves, settled: false, reserved: before.reserved.max(to.slot_bound()), ..same }
        }
        // Of a record without a move the layout is the one in force already.
        State::Stable { in_force: Side::New, settled } if before.moves.is_some() => {
            KeyRecord { layout: to.clone(), moves: None, settled, ..same }
        }
        State::Stable { settled, .. } => {
            // Writes that clear the other fragments of a counter may still land under their names,
            // and deletes under those of a bucket's new shards: nobody else gets these back.
            let clears = |moves: &Move| {
                moves.phase > Phase::Reserve && Moving::leaves_items(&before.layout, &moves.to)
            };
            let kept = before.moves.as_ref().is_some_and(clears);
            let reserved = if kept { before.reserved } else { reserved_before };
            KeyRecord { moves: None, settled, reserved, ..same }
        }
    }
}

/// Whether items may leave a slot, or fragments in it are folded.
pub(crate) fn is_left(change: Change, from: &Layout, to: &Layout, slot: u16) -> bool {
    match change {
        Change::Move => !from.keeps_slot(to, slot),
        Change::Narrow => slot >= to.shards,
        Change::Widen | Change::Step => false,
    }
}

/// What a publication of that state waits for. That calls may land late is the coordinator's
/// affair.
///
/// From PREPARE on gateways plan for a key that moves under their short lease. PREPARE itself waits
/// for all longer ones, so those that come after it need not. For other changes they keep theirs.
pub(crate) fn awaits(state: State, change: Change) -> Awaits {
    match state {
        State::Moving { phase, .. } if phase.follows_short_leases() && change == Change::Move => {
            Awaits::ResultsUnderShortLease
        }
        _ => Awaits::Results,
    }
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::KeyType;
    use heatsink_layout::{By, Hash, Strategy};

    use super::*;

    /// How many shards are reserved after a key that was to get four stays whole, from that phase
    /// on.
    fn reserved_after(strategy: Strategy, phase: Phase) -> u16 {
        let to = Layout { strategy, shards: 4, hash: Hash::JumpXxh3, version: 1 };
        let whole = KeyRecord {
            key: b"p".to_vec(),
            key_type: KeyType::S,
            layout: Layout::none(),
            moves: None,
            settled: true,
            reserved: 1,
            version: 0,
            changed: 0,
            since: 0,
        };
        let at = |version, state| Record { version, state };
        let found = Found::default();
        let begun = write(&whole, &to, &found, at(1, State::Moving { phase, closing: false }), 0);
        assert_eq!(begun.reserved, 4);
        let back =
            write(&begun, &to, &found, at(2, State::Stable { in_force: Side::Old, settled: false }), 0);
        let settled =
            write(&back, &to, &found, at(3, State::Stable { in_force: Side::Old, settled: true }), 0);
        assert_eq!(settled.reserved, back.reserved);
        settled.reserved
    }

    #[test]
    fn names_that_a_late_clearing_may_reach_are_not_given_back() {
        let counter = || Strategy::Counter { attributes: vec!["n".to_owned()] };
        assert_eq!(reserved_after(counter(), Phase::Reserve), 1);
        assert_eq!(reserved_after(counter(), Phase::Prepare), 4);
        assert_eq!(reserved_after(Strategy::calculated(By::SortKey), Phase::Prepare), 1);
    }
}
