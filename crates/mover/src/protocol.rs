//! The record of a key as the protocol knows it, and back.

use heatsink_control::{Awaits, KeyRecord, Move};
use heatsink_layout::{Layout, Phase};
use heatsink_reshard::{Record, Side, State};

/// What is on record, as far as the protocol cares.
pub(crate) fn read(record: Option<&KeyRecord>) -> Record {
    let Some(record) = record else { return Record::WHOLE };
    let state = match &record.moves {
        Some(Move { phase, closing, .. }) => State::Moving { phase: *phase, closing: *closing },
        None => State::Stable { in_force: Side::Old, settled: record.settled },
    };
    Record { version: record.version, state }
}

/// The record to write for a state of the protocol, after `before`, for a key that moves to `to`. `expires`: by which attribute items of the table do,
/// as the survey of RESERVE has found. From PREPARE on the record says so itself, to whoever takes over.
pub(crate) fn write(
    before: &KeyRecord,
    to: &Layout,
    expires: Option<&str>,
    next: Record,
    now: u64,
) -> KeyRecord {
    let same = KeyRecord { version: next.version, changed: now, ..before.clone() };
    let reserved_before = before.moves.as_ref().map_or(before.reserved, |moves| moves.reserved_before);
    match next.state {
        State::Moving { phase, closing } => {
            let expires = match before.moves.as_ref().filter(|moves| moves.phase > Phase::Reserve) {
                Some(moves) => moves.expires.clone(),
                None => expires.filter(|_| phase > Phase::Reserve).map(str::to_owned),
            };
            let moves = Some(Move { to: to.clone(), phase, reserved_before, closing, expires });
            KeyRecord { moves, settled: false, reserved: before.reserved.max(to.shards), ..same }
        }
        // Of a record without a move the layout is the one in force already.
        State::Stable { in_force: Side::New, settled } if before.moves.is_some() => {
            KeyRecord { layout: to.clone(), moves: None, settled, ..same }
        }
        State::Stable { settled, .. } => {
            KeyRecord { moves: None, settled, reserved: reserved_before, ..same }
        }
    }
}

/// What a publication of that state waits for. That calls may land late is the coordinator's affair.
///
/// From PREPARE on gateways plan for the key under their short lease. PREPARE itself waits for all longer ones, so those that come after it need not.
pub(crate) fn awaits(state: State) -> Awaits {
    match state {
        State::Moving { phase, .. } if phase.follows_short_leases() => Awaits::ResultsUnderShortLease,
        _ => Awaits::Results,
    }
}
