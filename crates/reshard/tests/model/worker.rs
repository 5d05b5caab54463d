//! Movers, and those that clear orphans: they may be killed with a call under way, and that call
//! may land as late as it likes.

use heatsink_reshard::{
    Claim, Created, Do, Mover, MoverDo, Page, Phase, Pull, PullAnswer, PullCall, Pulled, Side, State,
};

use crate::config::Config;
use crate::monitor::Item;
use crate::world::{Late, LateCall, NOW, World, place};

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Worker {
    pub claim: Claim,
    pub leg: u8,
    pub duty: Duty,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "nearly all workers of a world are movers")]
pub enum Duty {
    Move {
        mover: Mover<usize, Item>,
        pull: Option<(usize, Pull<Item>)>,
    },
    /// So many items from the end.
    Clear {
        left: usize,
    },
}

impl World {
    /// A gateway becomes a worker under the record that it reads.
    pub fn hire(&mut self, config: &Config) -> Option<()> {
        let at_work = self.workers.iter().filter(|worker| worker.leg == self.leg).count();
        if at_work >= config.movers {
            return None;
        }
        let mut claim = Claim::new(self.hired, self.record, config.rules)?;
        if let (false, Some(create)) = (config.fine, claim.create()) {
            self.create_claim(create.worker, create.if_version);
            claim.created(Created::Done);
        }
        let State::Moving { phase, .. } = self.record.state else { return None };
        let duty = if phase == Phase::Move {
            Duty::Move { mover: Mover::new(None, 1, config.rules), pull: None }
        } else {
            if self.coordinators.last()?.next() != Do::Clear {
                return None;
            }
            Duty::Clear { left: config.items }
        };
        self.hired += 1;
        self.workers.push(Worker { claim, leg: self.leg, duty });
        Some(())
    }

    /// A worker's next call lands and is answered. With `lagging`, a read shows the items as they
    /// were at the beginning.
    pub fn work(&mut self, config: &Config, number: usize, lagging: bool) -> Option<()> {
        let mut worker = self.workers.get(number)?.clone();
        if let Some(create) = worker.claim.create() {
            if lagging {
                return None;
            }
            let created = self.create_claim(create.worker, create.if_version);
            worker.claim.created(if created { Created::Done } else { Created::RecordChanged });
            self.workers[number] = worker;
            return Some(());
        }
        let (leg, claim) = (worker.leg, worker.claim.checked());
        match &mut worker.duty {
            Duty::Clear { left } => {
                if lagging || *left == 0 {
                    return None;
                }
                let item = config.items - *left;
                self.clear_orphan(item, leg, claim);
                *left -= 1;
            }
            Duty::Move { mover, pull } => {
                if let Some((item, pulling)) = pull {
                    if lagging {
                        return None;
                    }
                    let answer = self.pull(config, *item, leg, &pulling.call(), claim);
                    if let Some(pulled) = pulling.answered(answer) {
                        mover.pulled(item, pulled);
                        *pull = None;
                        if pulled == Pulled::ClaimGone {
                            worker.claim.lost();
                        }
                    }
                } else {
                    let MoverDo::Read { strong, .. } = mover.next(NOW, 1) else { return None };
                    if lagging && strong {
                        return None;
                    }
                    mover.page(Page { rows: self.old_rows(config, leg, lagging), end: None });
                }
                if pull.is_none()
                    && let MoverDo::Pull(item, value) = mover.next(NOW, 1)
                {
                    *pull = Some((item, Pull::of(value, config.rules)));
                }
            }
        }
        self.workers[number] = worker;
        Some(())
    }

    /// What a replica may show: the items as they are, or as they were at the beginning.
    fn old_rows(&self, config: &Config, leg: u8, lagging: bool) -> Vec<(usize, Item)> {
        let stored = config.stored[0];
        let row = |item: usize| match lagging {
            true => stored[item],
            false => self.cells[item][place(leg, Side::Old)],
        };
        (0..config.items).filter_map(|item| row(item).map(|found| (item, found))).collect()
    }

    /// A worker dies with a call under way; with `again`, it sends the call once more.
    pub fn crash(&mut self, config: &Config, number: usize, again: bool) -> Option<()> {
        let worker = self.workers.get(number)?;
        if self.crashes >= config.crashes || (again && !config.retries) {
            return None;
        }
        let claim = worker.claim.checked();
        let call = match (worker.claim.create(), &worker.duty) {
            (Some(create), _) => LateCall::Create { worker: create.worker, if_version: create.if_version },
            (None, Duty::Clear { left: 0 }) => return None,
            (None, Duty::Clear { left }) => LateCall::ClearOrphan { item: config.items - left, claim },
            (None, Duty::Move { pull, .. }) => {
                match pull.as_ref().map(|(item, pull)| (*item, pull.call()))? {
                    (_, PullCall::Read) => return None,
                    (item, PullCall::Copy { item: value, if_old }) => {
                        LateCall::Copy { item, value, if_old, claim }
                    }
                    (item, PullCall::Clear { if_new }) => LateCall::Clear { item, if_new, claim },
                }
            }
        };
        let leg = worker.leg;
        self.crashes += 1;
        self.delay(Late { planned: None, leg, call });
        if again {
            if let Duty::Move { pull: Some((_, pull)), .. } = &mut self.workers[number].duty {
                pull.answered(PullAnswer::Again);
            }
        } else {
            self.workers.remove(number);
        }
        Some(())
    }
}
