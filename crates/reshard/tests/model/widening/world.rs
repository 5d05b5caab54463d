//! The store, the gateways and the coordinators, and each step that they can take.

use heatsink_reshard::{Coordinator, Do, Outcome, Seen, Side, State};

use super::config::{Config, DAY};
use crate::config::Op;
use crate::monitor::{Answer, Item, Monitor, apply};
use crate::narrowing::{Late, Parts, Worker};
use crate::world::{FOREIGN, NOW, STRAGGLER, View};

/// How many fragments the counter has at most.
pub const MOST: usize = 3;
/// A number that a fragment can hold from before.
pub const ORPHAN: u16 = 5_000;
/// A number that no item holds.
const TWICE: u16 = 6_000;

/// A call on its way: its gateway's view, and the fragment that it adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Sent {
    planned: u64,
    op: Op,
    call: usize,
    seen: usize,
    fragment: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gateway {
    /// What a read that is under way has read.
    pub(super) parts: Parts,
    pub(super) view: View,
    pub(super) next: usize,
    pub(super) sent: Option<Sent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) script: usize,
    pub(super) leg: u8,
    pub(super) head: View,
    /// The version that was published before the head.
    pub(super) before: u64,
    pub(super) record: heatsink_reshard::Record,
    pub(super) coordinators: Vec<Coordinator>,
    /// Beside each coordinator its worker, if it folds.
    pub(super) workers: Vec<Worker>,
    /// Folds whose workers do not wait for the answer any more.
    pub(super) late_folds: Vec<Late>,
    pub(super) deaths: u8,
    pub(super) cancels: u8,
    pub(super) gateways: Vec<Gateway>,
    /// Sorted.
    pub(super) late: Vec<Sent>,
    pub(super) cells: [Option<u16>; MOST],
    pub(super) monitor: Monitor,
    pub(super) fault: bool,
}

fn item(number: Option<u16>) -> Option<Item> {
    number.map(|number| Item { number, expires: false })
}

impl World {
    pub(super) fn begin(config: &Config, script: usize, stored: Option<u16>) -> Self {
        let record = heatsink_reshard::Record::WHOLE;
        let head = View::plain(0, 0, record.state);
        let first = usize::from(config.shards[0]);
        let mut cells = [None; MOST];
        cells[if config.steps.is_some() { config.slot(head).0 } else { 0 }] = stored;
        if config.orphan.is_some() {
            cells[first] = config.orphan;
        }
        if stored.is_some() {
            cells[1..first].fill(config.part);
        }
        let parts = cells[1..first].iter().flatten().sum::<u16>();
        let whole = if config.steps.is_some() { stored } else { stored.map(|base| base + parts) };
        World {
            script,
            leg: 0,
            head,
            before: 0,
            record,
            coordinators: vec![
                Coordinator::begin(record, config.change(0), STRAGGLER, config.rules).unwrap(),
            ],
            workers: vec![Worker::default()],
            late_folds: Vec::new(),
            deaths: 0,
            cancels: 0,
            gateways: config.scripts[script]
                .iter()
                .map(|_| Gateway { parts: Parts::default(), view: head, next: 0, sent: None })
                .collect(),
            late: Vec::new(),
            cells,
            monitor: Monitor::new(item(whole), false),
            fault: false,
        }
    }

    /// The counter, as who sees so many fragments reads it.
    fn sum(&self, seen: usize) -> Option<Item> {
        let others = self.cells[1..seen].iter().flatten();
        item(self.cells[0].map(|base| others.fold(base, |sum, part| sum.wrapping_add(*part))))
    }

    /// The item of a bucket as a Scan meets it, in whichever shard; twice in two of them.
    fn scanned(&self) -> Option<Item> {
        let found: Vec<u16> = self.cells.iter().flatten().copied().collect();
        item(if found.len() > 1 { Some(TWICE) } else { found.first().copied() })
    }

    /// What the store does with a call.
    pub(super) fn land(&mut self, config: &Config, sent: Sent) -> Answer {
        if config.steps.is_some() && sent.op == Op::Query {
            return Answer::Saw(self.scanned());
        }
        if config.steps.is_some() {
            let (after, answer) = apply(sent.op, sent.call, item(self.cells[sent.fragment]));
            self.cells[sent.fragment] = after.map(|item| item.number);
            return answer;
        }
        let put = |number| item(Some(number));
        match sent.op {
            Op::Get => Answer::Saw(self.sum(sent.seen)),
            Op::PutForeign => {
                self.cells[sent.fragment] = Some(FOREIGN.number);
                Answer::Done
            }
            Op::Count => {
                let new = self.cells[sent.fragment].is_none();
                let (after, answer) =
                    apply(Op::Count, sent.call, put(self.cells[sent.fragment].unwrap_or(0)));
                self.cells[sent.fragment] = after.map(|item| item.number);
                if new {
                    self.cells[0].get_or_insert(0);
                }
                answer
            }
            op => {
                let (after, answer) = apply(op, sent.call, item(self.cells[0]));
                self.cells[..sent.seen].fill(None);
                self.cells[0] = after.map(|item| item.number);
                answer
            }
        }
    }

    pub(super) fn is_done(&self, config: &Config, number: usize) -> bool {
        self.gateways[number].next == config.scripts[self.script][number].len()
    }

    pub(super) fn ask(&mut self, config: &Config, number: usize, fragment: usize) -> Option<()> {
        let gateway = &self.gateways[number];
        let (op, _) = *config.scripts[self.script][number].get(gateway.next)?;
        let (seen, adds) = if config.steps.is_some() { (1, 1) } else { config.fragments(gateway.view) };
        let call =
            config.scripts[self.script].iter().take(number).map(Vec::len).sum::<usize>() + gateway.next;
        let first = usize::from(config.shards[0]);
        let (may, fragment) = match op {
            _ if config.steps.is_some() => {
                let (slot, held) = config.slot(gateway.view);
                (fragment == 0 && !(held && config.holds && matches!(op, Op::Put | Op::Count)), slot)
            }
            Op::Count => (fragment < adds, fragment),
            // A name in the form of a shard's is refused from RESERVE on.
            Op::PutForeign if !matches!(gateway.view.state, State::Stable { in_force: Side::Old, .. }) => {
                self.gateways[number].next += 1;
                return (fragment == 0).then_some(());
            }
            Op::PutForeign => (fragment == 0, first),
            _ => (fragment == 0, 0),
        };
        if gateway.sent.is_some() || !may {
            return None;
        }
        let planned = gateway.view.version;
        self.gateways[number].sent = Some(Sent { planned, op, call, seen, fragment });
        if op != Op::PutForeign {
            self.monitor.begin(call, op, false);
        }
        Some(())
    }

    pub(super) fn answer(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        let reads = sent.op == Op::Get && config.steps.is_none();
        let answer = match reads.then(|| config.folds_from(self.gateways[number].view)) {
            // One part after the other.
            Some(from) if from.is_some() || config.apart => {
                let gateway = &mut self.gateways[number];
                match gateway.parts.read(&self.cells[..sent.seen], from, config.rules) {
                    Some(sum) => Answer::Saw(item(sum)),
                    None => {
                        gateway.sent = Some(sent);
                        return Some(());
                    }
                }
            }
            _ => self.land(config, sent),
        };
        self.gateways[number].parts = Parts::default();
        if sent.op != Op::PutForeign && !self.monitor.answer(sent.call, answer) {
            self.fault = true;
        }
        self.gateways[number].next += 1;
        Some(())
    }

    /// Nobody waits any more for the call that was sent, which may land yet.
    pub(super) fn give_up(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        self.gateways[number].parts = Parts::default();
        if sent.op.only_reads() {
            self.monitor.undo(sent.call);
        } else if self.late.len() < config.late {
            self.late.push(sent);
            self.late.sort_unstable();
            if sent.op != Op::PutForeign {
                self.monitor.give_up(sent.call);
            }
        } else {
            return None;
        }
        self.gateways[number].next += 1;
        Some(())
    }

    pub(super) fn acknowledge(&mut self, config: &Config, number: usize) -> Option<()> {
        let gateway = &mut self.gateways[number];
        let busy = gateway.sent.is_some() && !config.acknowledges_early;
        if gateway.view == self.head || busy {
            return None;
        }
        gateway.view = self.head;
        Some(())
    }

    pub(super) fn coordinate(&mut self, config: &Config, number: usize) -> Option<()> {
        let seen = match self.coordinators.get(number)?.next() {
            Do::Write { if_version: Some(version), .. } if version != self.record.version => Seen::Superseded,
            Do::Write { mut record, publish, .. } => {
                record.version = self.record.version + 1;
                self.record = record;
                if publish {
                    self.before = self.head.version;
                    self.head = View::plain(record.version, self.leg, record.state);
                }
                Seen::Written
            }
            Do::Acknowledge { version } => {
                if !self.gateways.iter().all(|gateway| gateway.view.version >= version) {
                    return None;
                }
                let since = self.before..self.head.version;
                Seen::Acknowledged { clean: !self.late.iter().any(|late| since.contains(&late.planned)) }
            }
            Do::Wait { .. } => {
                let covered = self.coordinators[number].record().version;
                self.late.retain(|late| late.planned >= covered);
                Seen::Waited
            }
            Do::Survey if let Some(steps) = config.steps => {
                let looks = steps[usize::from(self.leg)] <= DAY;
                let found = self.cells.iter().flatten().count() as u64;
                Seen::Surveyed { foreign: if looks { found } else { 0 }, orphans: 0 }
            }
            Do::Survey => {
                let new = usize::from(config.shards[usize::from(self.leg)])
                    ..usize::from(config.shards[usize::from(self.leg) + 1]);
                let found: Vec<u16> = self.cells[new].iter().flatten().copied().collect();
                let orphans = found.iter().filter(|number| **number == ORPHAN).count() as u64;
                Seen::Surveyed { foreign: found.len() as u64 - orphans, orphans }
            }
            Do::Clear => {
                for cell in &mut self.cells {
                    cell.take_if(|number| *number == ORPHAN);
                }
                Seen::Cleared
            }
            Do::EndClaims => {
                self.late_folds.clear();
                Seen::ClaimsEnded
            }
            Do::Move => {
                let lost = usize::from(config.shards[usize::from(self.leg) + 1]);
                match self.workers[number].step(&mut self.cells, lost, config.rules) {
                    true => Seen::Moved { left: 0 },
                    false => return Some(()),
                }
            }
            Do::MarkHighWater => unreachable!("nothing moves"),
            Do::Rest(outcome) => return self.rest(config, number, outcome),
        };
        self.coordinators[number].seen(NOW, seen);
        Some(())
    }

    fn rest(&mut self, config: &Config, number: usize, outcome: Outcome) -> Option<()> {
        if outcome == Outcome::Superseded && number + 1 < self.coordinators.len() {
            self.coordinators.remove(number);
            self.workers.remove(number);
            return Some(());
        }
        if outcome != Outcome::Moved || usize::from(self.leg) + 2 >= config.shards.len() {
            return None;
        }
        let change = config.change(self.leg + 1);
        self.coordinators[number] = Coordinator::begin(self.record, change, STRAGGLER, config.rules)?;
        self.workers[number] = Worker::default();
        self.leg += 1;
        // The layout in force is the old one of the next change.
        if let State::Stable { settled, .. } = self.record.state {
            self.record.state = State::Stable { in_force: Side::Old, settled };
        }
        Some(())
    }

    pub(super) fn take_over(&mut self, config: &Config) -> Option<()> {
        if self.deaths >= config.deaths {
            return None;
        }
        let change = config.change(self.leg);
        let taken = Coordinator::take_over(self.record, change, STRAGGLER, config.rules)?;
        self.deaths += 1;
        if !config.undead {
            // What the dead one's worker had sent may land yet.
            self.late_folds.extend(self.workers.iter_mut().filter_map(Worker::give_up));
            self.coordinators.clear();
            self.workers.clear();
        }
        self.coordinators.push(taken);
        self.workers.push(Worker::default());
        Some(())
    }

    pub(super) fn cancel(&mut self, config: &Config) -> Option<()> {
        if self.cancels >= config.cancels || !self.coordinators.last_mut()?.cancel() {
            return None;
        }
        self.cancels += 1;
        Some(())
    }

    /// Looks through the eyes of every gateway, and of one that has just been started.
    pub(super) fn check(&mut self, config: &Config) {
        let views: Vec<View> = self.gateways.iter().map(|gateway| gateway.view).chain([self.head]).collect();
        let seen = |view| match config.steps {
            Some(_) => item(self.cells[config.slot(view).0]),
            None => self.sum(config.fragments(view).0),
        };
        self.fault |= views.into_iter().any(|view| !self.monitor.can_hold(seen(view)));
        self.fault |= config.steps.is_some() && !self.monitor.can_hold(self.scanned());
    }
}
