//! Coordinators: each does what its machine says, one step at a time, and may be taken for dead
//! between any two.

use heatsink_reshard::{Change, Coordinator, Do, MoverDo, Outcome, Phase, Seen, Side, State};

use crate::config::Config;
use crate::worker::Duty;
use crate::world::{FOREIGN, NOW, STRAGGLER, View, World};

impl World {
    /// The next step of a coordinator, and those after it that nobody can see: to stop there is the
    /// same as to stop before.
    pub fn coordinate(&mut self, config: &Config, number: usize) -> Option<()> {
        self.coordinate_once(config, number)?;
        loop {
            match self.coordinators.get(number)?.next() {
                Do::Write { .. } | Do::Survey | Do::EndClaims if !config.fine => {
                    self.coordinate_once(config, number)?
                }
                _ => break,
            }
        }
        Some(())
    }

    fn coordinate_once(&mut self, config: &Config, number: usize) -> Option<()> {
        let coordinator = self.coordinators.get(number)?;
        let seen = match coordinator.next() {
            Do::Write { if_version: Some(version), .. } if version != self.record.version => Seen::Superseded,
            Do::Write { mut record, publish, .. } => {
                if let State::Moving { phase: Phase::Reserve, closing: false } = record.state
                    && let State::Stable { in_force: Side::New, .. } = self.record.state
                {
                    self.leg += 1;
                }
                record.version = self.record.version + 1;
                self.record = record;
                if publish {
                    self.before = self.head.version;
                    let (leg, expires) = (self.leg, self.found_expiring);
                    // Who takes over in MOVE keeps what is on record.
                    let above = match (record.state, self.head.state) {
                        (
                            State::Moving { phase: Phase::Move, .. },
                            State::Moving { phase: Phase::Move, .. },
                        ) => self.head.above,
                        (State::Moving { phase: Phase::Move, .. }, _) => self.marks[number],
                        _ => 0,
                    };
                    self.head = View { version: record.version, leg, state: record.state, expires, above };
                }
                Seen::Written
            }
            Do::Acknowledge { version } => {
                let acknowledged = |view: View| view.version >= version;
                let all = self.gateways.iter().all(|gateway| acknowledged(gateway.view));
                if !all {
                    return None;
                }
                // A gateway tells of what it gave up since it acknowledged last.
                let since = self.before..self.head.version;
                let unclean =
                    self.late.iter().any(|late| late.planned.is_some_and(|planned| since.contains(&planned)));
                Seen::Acknowledged { clean: !unclean }
            }
            Do::Wait { .. } => {
                // CHECK counts from when HOLD was acknowledged: what was planned under HOLD is not
                // covered.
                let covered = match coordinator.record().state {
                    State::Moving { phase: Phase::Check, .. } => self.before,
                    _ => coordinator.record().version,
                };
                self.late.retain(|late| late.planned.is_none_or(|planned| planned >= covered));
                Seen::Waited
            }
            Do::Survey => {
                self.found_expiring = self.expires;
                let found = (0..config.items).filter_map(|item| *self.cell(item, self.leg, Side::New));
                let found: Vec<_> = found.collect();
                let foreign = found.iter().filter(|item| **item == FOREIGN).count() as u64;
                Seen::Surveyed { foreign, orphans: found.len() as u64 - foreign }
            }
            Do::MarkHighWater => {
                let old: Vec<bool> =
                    (0..config.items).map(|item| self.cell(item, self.leg, Side::Old).is_some()).collect();
                let below = old.iter().rposition(|is_there| *is_there).map_or(0, |highest| highest + 1);
                self.marks[number] = (below..config.items).map(|item| 1 << item).sum();
                Seen::Marked
            }
            Do::Clear => {
                if !(self
                    .workers
                    .iter()
                    .any(|worker| matches!(worker.duty, Duty::Clear { left } if left == 0)))
                {
                    return None;
                }
                self.workers.retain(|worker| !matches!(worker.duty, Duty::Clear { left: 0 }));
                Seen::Cleared
            }
            Do::Move => {
                let leg = self.leg;
                let finished = |worker: &mut crate::worker::Worker| match &mut worker.duty {
                    Duty::Move { mover, pull: None } if worker.leg == leg && worker.claim.is_held() => {
                        match mover.next(NOW, 1) {
                            MoverDo::Finished(moved) => Some(moved.left),
                            _ => None,
                        }
                    }
                    _ => None,
                };
                let (at, left) = self
                    .workers
                    .iter_mut()
                    .enumerate()
                    .find_map(|(at, worker)| finished(worker).map(|left| (at, left)))?;
                self.workers.remove(at);
                Seen::Moved { left }
            }
            Do::EndClaims => {
                self.claims = 0;
                Seen::ClaimsEnded
            }
            Do::Rest(outcome) => return self.rest(config, number, outcome),
        };
        self.coordinators[number].seen(NOW, seen);
        Some(())
    }

    /// The next move begins when the last has ended.
    fn rest(&mut self, config: &Config, number: usize, outcome: Outcome) -> Option<()> {
        if outcome == Outcome::Superseded && number + 1 < self.coordinators.len() {
            self.coordinators.remove(number);
            self.marks.remove(number);
            return Some(());
        }
        if self.changes >= config.changes {
            return None;
        }
        self.coordinators[number] = Coordinator::begin(self.record, Change::Move, STRAGGLER, config.rules)?;
        self.changes += 1;
        Some(())
    }

    /// Another coordinator takes over.
    pub fn take_over(&mut self, config: &Config) -> Option<()> {
        if self.deaths >= config.deaths {
            return None;
        }
        let taken = Coordinator::take_over(self.record, Change::Move, STRAGGLER, config.rules)?;
        self.deaths += 1;
        if !config.undead {
            self.coordinators.clear();
            self.marks.clear();
        }
        self.coordinators.push(taken);
        self.marks.push(0);
        Some(())
    }

    /// The operator changes his mind.
    pub fn cancel(&mut self, config: &Config) -> Option<()> {
        let last = self.coordinators.len() - 1;
        if self.cancels >= config.cancels || !self.coordinators[last].cancel() {
            return None;
        }
        self.cancels += 1;
        Some(())
    }
}
