//! Takes one key from phase to phase, to its new layout or back to the old one.
//!
//! A coordinator may die anywhere: what it has to remember is the [`Record`], and any other one
//! takes over from that. Two at once do no harm, because every write of the record is conditional
//! on its version. Not here: whether the move is wise, which layouts they are, how anything is
//! stored.

use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::record::{Record, Side, State};
use crate::rules::{Rule, Rules};
use crate::steps::{Change, Do, Outcome, Seen};
use heatsink_layout::Phase;

/// Whoever takes a key from layout to layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    /// As it was last written or read.
    record: Record,
    change: Change,
    at: At,
    /// Every acknowledgement of this move was clean, and this coordinator has seen each.
    clean: bool,
    /// When this coordinator knew that HOLD was acknowledged.
    held: Option<MonotonicInstant>,
    cancelled: bool,
    straggler: Duration,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Writing { state: State, publish: bool },
    Acknowledging,
    Waiting { until: MonotonicInstant },
    Surveying,
    Clearing,
    Marking,
    Moving,
    EndingClaims,
    Resting(Outcome),
}

impl Coordinator {
    /// A new change of a key. `None` unless the record is settled: then take over first.
    /// `straggler` is how late a call may land.
    pub fn begin(record: Record, change: Change, straggler: Duration, rules: Rules) -> Option<Self> {
        let State::Stable { settled: true, .. } = record.state else { return None };
        let state = State::Moving { phase: Phase::Reserve, closing: false };
        let at = At::Writing { state, publish: true };
        Some(Coordinator { record, change, at, clean: true, held: None, cancelled: false, straggler, rules })
    }

    /// Goes on with a record that another coordinator left, or that this one wrote without learning
    /// of it. It is written and published once more, so that the other one can write nothing any
    /// more. `None` if there is nothing to do. `change` is the one on record.
    pub fn take_over(record: Record, change: Change, straggler: Duration, rules: Rules) -> Option<Self> {
        let state = match record.state {
            State::Stable { settled: true, .. } => return None,
            // Closed perhaps because it was refused or cancelled: look again.
            State::Moving { phase: Phase::Reserve, .. } => {
                State::Moving { phase: Phase::Reserve, closing: false }
            }
            state => state,
        };
        let publish = !matches!(state, State::Moving { closing: true, .. });
        let at = At::Writing { state, publish };
        let clean = !rules.keep(Rule::TakeoverUnclean);
        let (held, cancelled) = (None, false);
        let mut taken = Coordinator { record, change, at, clean, held, cancelled, straggler, rules };
        if publish && !rules.keep(Rule::TakeoverWaits) {
            taken.acknowledged(MonotonicInstant(0), clean);
        }
        Some(taken)
    }

    /// What to do next.
    pub fn next(&self) -> Do {
        match self.at {
            At::Writing { state, publish } => {
                let if_version = self.rules.keep(Rule::RecordByVersion).then_some(self.record.version);
                Do::Write { record: self.record.next(state), if_version, publish }
            }
            At::Acknowledging => Do::Acknowledge { version: self.record.version },
            At::Waiting { until } => Do::Wait { until },
            At::Surveying => Do::Survey,
            At::Clearing => Do::Clear,
            At::Marking => Do::MarkHighWater,
            At::Moving => Do::Move,
            At::EndingClaims => Do::EndClaims,
            At::Resting(outcome) => Do::Rest(outcome),
        }
    }

    /// The record as this coordinator knows it.
    pub fn record(&self) -> Record {
        self.record
    }

    /// Goes back to the old layout, if nothing has been written to the new one. Only while nothing
    /// of [`next`](Self::next) is under way. Says whether it does.
    pub fn cancel(&mut self) -> bool {
        let State::Moving { phase, .. } = self.record.state else { return false };
        // In PREPARE readers look for what is put into the buckets of a step under its new number.
        let too_late = !phase.may_cancel() || self.change == Change::Step && phase > Phase::Reserve;
        if too_late && self.rules.keep(Rule::CancelThroughHold) {
            return false;
        }
        self.cancelled = true;
        match phase {
            // A worker may have a claim.
            Phase::Reserve => self.close(),
            _ => self.publish(State::Stable { in_force: Side::Old, settled: false }),
        }
        true
    }

    /// Whether [`next`](Self::next) is done although layouts are frozen. A step waits where writes
    /// go on: before RESERVE, PREPARE and HOLD, and at the end of MOVE. Where they wait it goes
    /// forward, and so does whatever goes back. What a takeover publishes is on record already.
    pub fn goes_on_while_frozen(&self) -> bool {
        let At::Writing { state, publish: true } = self.at else { return true };
        match self.record.state {
            _ if self.cancelled => true,
            State::Moving { phase: Phase::Hold | Phase::Check, .. } => true,
            // What comes into the buckets of a step waits.
            State::Moving { phase: Phase::Prepare, .. } if self.change == Change::Step => true,
            State::Moving { phase, .. } => {
                matches!(state, State::Moving { phase: next, .. } if next == phase)
            }
            State::Stable { settled, .. } => !settled,
        }
    }

    /// Takes what was seen of [`next`](Self::next), known at `now`.
    pub fn seen(&mut self, now: MonotonicInstant, seen: Seen) {
        match (self.at, seen) {
            (At::Writing { .. }, Seen::Superseded) => self.at = At::Resting(Outcome::Superseded),
            (At::Writing { state, publish }, Seen::Written) => {
                self.record = self.record.next(state);
                self.written(now, publish);
            }
            (At::Acknowledging, Seen::Acknowledged { clean }) => self.acknowledged(now, clean),
            (At::Waiting { .. }, Seen::Waited) => self.waited(),
            (At::Surveying, Seen::Surveyed { foreign: 0, orphans: 0 }) => self.close(),
            (At::Surveying, Seen::Surveyed { foreign: 0, .. }) => self.at = At::Clearing,
            (At::Surveying, Seen::Surveyed { .. }) => {
                self.cancelled = true;
                self.close();
            }
            (At::Clearing, Seen::Cleared) => self.at = At::Surveying,
            (At::Marking, Seen::Marked) => self.marked(),
            (At::Moving, Seen::Moved { left: 0 }) => self.close(),
            (At::Moving, Seen::Moved { left }) => self.at = At::Resting(Outcome::NotFinished(left)),
            (At::EndingClaims, Seen::ClaimsEnded) => self.claims_ended(),
            // What was not asked for changes nothing.
            _ => {}
        }
    }

    fn written(&mut self, now: MonotonicInstant, publish: bool) {
        match self.record.state {
            State::Stable { in_force, settled: true } => {
                let outcome = if in_force == Side::New { Outcome::Moved } else { Outcome::Back };
                self.at = At::Resting(outcome);
            }
            State::Moving { closing: true, .. } => self.end_claims(),
            _ if publish && self.rules.keep(Rule::AcknowledgementsAwaited) => self.at = At::Acknowledging,
            _ => self.acknowledged(now, true),
        }
    }

    fn acknowledged(&mut self, now: MonotonicInstant, clean: bool) {
        self.clean &= clean;
        match self.record.state {
            // Nothing is put under a new name.
            State::Moving { phase: Phase::Reserve, .. } if self.change == Change::Narrow => self.close(),
            State::Moving { phase: Phase::Reserve, .. } => {
                let wait = !self.clean && self.rules.keep(Rule::SurveyAfterStragglers);
                if wait { self.wait(now) } else { self.survey() }
            }
            State::Moving { phase: Phase::Prepare, .. } if self.change == Change::Narrow => {
                let wait = !self.clean && self.rules.keep(Rule::FoldAfterStragglers);
                if wait { self.wait(now) } else { self.enter(Phase::Move) }
            }
            State::Moving { phase: Phase::Prepare, .. } if self.change == Change::Widen => {
                let wait = !self.clean && self.rules.keep(Rule::WidenAfterStragglers);
                if wait { self.wait(now) } else { self.widen() }
            }
            // What may land late puts nothing into the buckets of a step: since RESERVE it has
            // waited.
            State::Moving { phase: Phase::Prepare, .. } if self.change == Change::Step => self.widen(),
            State::Moving { phase: Phase::Prepare, .. } if !self.rules.keep(Rule::HighWaterAfterHold) => {
                self.at = At::Marking;
            }
            State::Moving { phase: Phase::Prepare, .. } => self.enter(Phase::Hold),
            State::Moving { phase: Phase::Hold, .. } => {
                self.held = Some(now);
                let clean = if self.rules.keep(Rule::CleanCountsAll) { self.clean } else { clean };
                let skip = clean || !self.rules.keep(Rule::UncleanChecked);
                if skip { self.mark() } else { self.enter(Phase::Check) }
            }
            State::Moving { phase: Phase::Check, .. } if !self.rules.keep(Rule::HighWaterAfterStragglers) => {
                self.at = At::Marking;
            }
            State::Moving { phase: Phase::Check, .. } if self.rules.keep(Rule::CheckWaits) => {
                self.wait(self.held.unwrap_or(now));
            }
            State::Moving { phase: Phase::Check, .. } => self.mark(),
            State::Moving { phase: Phase::Move, .. } => {
                if self.rules.keep(Rule::MoverAwaited) {
                    self.at = At::Moving
                } else {
                    self.close()
                }
            }
            State::Stable { .. } if self.clean || !self.rules.keep(Rule::Settled) => self.settle(),
            State::Stable { .. } => self.wait(now),
        }
    }

    /// Waits until no call that was sent before `from` can land any more.
    fn wait(&mut self, from: MonotonicInstant) {
        self.at = At::Waiting { until: from + self.straggler };
    }

    fn waited(&mut self) {
        match self.record.state {
            State::Moving { phase: Phase::Reserve, .. } => {
                // Everything from before RESERVE has landed, or never will.
                self.clean = true;
                self.survey();
            }
            State::Moving { phase: Phase::Prepare, .. } if self.change == Change::Narrow => {
                // Everything that was planned with more fragments has landed, or never will.
                self.clean = true;
                self.enter(Phase::Move);
            }
            State::Moving { phase: Phase::Prepare, .. } => {
                // Everything that was planned without the new fragments has landed, or never will.
                self.clean = true;
                self.widen();
            }
            State::Moving { .. } if self.rules.keep(Rule::HighWaterAfterStragglers) => self.mark(),
            State::Moving { .. } => self.enter(Phase::Move),
            State::Stable { .. } => self.settle(),
        }
    }

    /// The old slots get no item any more. Then MOVE begins.
    fn mark(&mut self) {
        if self.rules.keep(Rule::HighWaterAfterHold) {
            self.at = At::Marking
        } else {
            self.enter(Phase::Move)
        }
    }

    fn marked(&mut self) {
        match self.record.state {
            // Only without a rule.
            State::Moving { phase: Phase::Prepare, .. } => self.enter(Phase::Hold),
            State::Moving { phase: Phase::Check, .. } if !self.rules.keep(Rule::HighWaterAfterStragglers) => {
                self.wait(self.held.unwrap_or(MonotonicInstant(0)));
            }
            _ => self.enter(Phase::Move),
        }
    }

    /// Everybody sees the new fragments, or shards: from now on they are written to.
    fn widen(&mut self) {
        self.publish(State::Stable { in_force: Side::New, settled: false });
    }

    fn survey(&mut self) {
        if self.rules.keep(Rule::Surveyed) { self.at = At::Surveying } else { self.close() }
    }

    /// The workers are done: no claim is created any more.
    fn close(&mut self) {
        let State::Moving { phase, .. } = self.record.state else { return };
        if self.rules.keep(Rule::ClaimsClosed) {
            self.at = At::Writing { state: State::Moving { phase, closing: true }, publish: false };
        } else {
            self.end_claims();
        }
    }

    fn end_claims(&mut self) {
        if self.rules.keep(Rule::ClaimsEnded) { self.at = At::EndingClaims } else { self.claims_ended() }
    }

    fn claims_ended(&mut self) {
        match self.record.state {
            State::Moving { phase: Phase::Reserve, .. } if !self.cancelled => match self.change {
                Change::Widen | Change::Step if !self.rules.keep(Rule::WidenReadersFirst) => self.widen(),
                _ => self.enter(Phase::Prepare),
            },
            State::Moving { phase: Phase::Move, .. } => {
                self.publish(State::Stable { in_force: Side::New, settled: false });
            }
            _ => self.publish(State::Stable { in_force: Side::Old, settled: false }),
        }
    }

    fn settle(&mut self) {
        let State::Stable { in_force, .. } = self.record.state else { return };
        self.at = At::Writing { state: State::Stable { in_force, settled: true }, publish: false };
    }

    fn enter(&mut self, phase: Phase) {
        self.publish(State::Moving { phase, closing: false });
    }

    fn publish(&mut self, state: State) {
        self.at = At::Writing { state, publish: true };
    }
}
