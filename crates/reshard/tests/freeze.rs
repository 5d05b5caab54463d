//! Where a move may wait while layouts are frozen: only where clients go on writing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helper functions included"
)]

use std::time::Duration;

use heatsink_env::MonotonicInstant;
use heatsink_reshard::{Change, Coordinator, Do, Phase, Record, Rules, Seen, Side, State};

const NOW: MonotonicInstant = MonotonicInstant(1);

fn begin(change: Change) -> Coordinator {
    Coordinator::begin(Record::WHOLE, change, Duration::ZERO, Rules::ALL).unwrap()
}

fn take_over(state: State) -> Coordinator {
    let record = Record { version: 9, state };
    Coordinator::take_over(record, Change::Move, Duration::ZERO, Rules::ALL).unwrap()
}

fn moving(phase: Phase) -> State {
    State::Moving { phase, closing: false }
}

fn done(next: Do, clean: bool) -> Seen {
    match next {
        Do::Write { .. } => Seen::Written,
        Do::Acknowledge { .. } => Seen::Acknowledged { clean },
        Do::Wait { .. } => Seen::Waited,
        Do::Survey => Seen::Surveyed { foreign: 0, orphans: 0 },
        Do::Clear => Seen::Cleared,
        Do::MarkHighWater => Seen::Marked,
        Do::Move => Seen::Moved { left: 0 },
        Do::EndClaims => Seen::ClaimsEnded,
        Do::Rest(_) => Seen::Superseded,
    }
}

/// The states before whose record a move waits while layouts are frozen, with the one that it waits
/// in.
fn waits(mut coordinator: Coordinator, clean: bool) -> Vec<(State, State)> {
    let mut waits = Vec::new();
    loop {
        let next = coordinator.next();
        if !coordinator.goes_on_while_frozen() {
            let Do::Write { record, .. } = next else { panic!("{next:?} waits") };
            waits.push((coordinator.record().state, record.state));
        }
        if let Do::Rest(_) = next {
            return waits;
        }
        coordinator.seen(NOW, done(next, clean));
    }
}

#[test]
fn a_move_waits_only_where_writes_go_on() {
    let stable = State::Stable { in_force: Side::New, settled: false };
    let begins =
        [(Record::WHOLE.state, moving(Phase::Reserve)), (moving(Phase::Reserve), moving(Phase::Prepare))];
    let ends = |change| match change {
        Change::Move => vec![(moving(Phase::Prepare), moving(Phase::Hold)), (moving(Phase::Move), stable)],
        Change::Widen => vec![(moving(Phase::Prepare), stable)],
        Change::Narrow => {
            vec![(moving(Phase::Prepare), moving(Phase::Move)), (moving(Phase::Move), stable)]
        }
        Change::Step => Vec::new(),
    };
    for (change, clean) in [Change::Move, Change::Widen, Change::Narrow, Change::Step]
        .into_iter()
        .flat_map(|one| [(one, true), (one, false)])
    {
        // The end of RESERVE and of MOVE is written before, and told to nobody.
        let found = waits(begin(change), clean).into_iter().map(|(from, to)| match from {
            State::Moving { phase, .. } => (moving(phase), to),
            from => (from, to),
        });
        assert_eq!(found.collect::<Vec<_>>(), [&begins[..], &ends(change)].concat(), "{change:?}");
    }
}

/// What it publishes first is on record, and what came before may be what gateways know: in HOLD
/// and CHECK writes wait.
#[test]
fn what_is_taken_over_is_published_and_goes_forward_from_where_writes_wait() {
    for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Check, Phase::Move] {
        let coordinator = take_over(moving(phase));
        assert!(coordinator.goes_on_while_frozen(), "{phase:?}");
        let first = waits(coordinator, false)[0];
        let waits_in = if phase < Phase::Hold { phase } else { Phase::Move };
        assert!(matches!(first.0, State::Moving { phase, .. } if phase == waits_in), "{phase:?}: {first:?}");
    }
    assert!(take_over(State::Stable { in_force: Side::Old, settled: false }).goes_on_while_frozen());
}

#[test]
fn what_is_cancelled_goes_back() {
    for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold] {
        let mut coordinator = take_over(moving(phase));
        for _ in 0..2 {
            coordinator.seen(NOW, done(coordinator.next(), true));
        }
        assert!(coordinator.cancel());
        assert_eq!(waits(coordinator, true), [], "{phase:?}");
    }
}
