//! Everything that exists in one state of the search, and what the store does with a call.

use heatsink_reshard::{Change, Coordinator, Guard, PullAnswer, PullCall, Record, Side, State};

use crate::config::{Config, Op};
use crate::gateway::Gateway;
use crate::monitor::{Answer, Item, Monitor, apply};
use crate::worker::Worker;

/// How late a call may land. The clock stands still: what a wait covers is told by versions.
pub const STRAGGLER: std::time::Duration = std::time::Duration::from_secs(1);
pub const NOW: heatsink_env::MonotonicInstant = heatsink_env::MonotonicInstant(0);

/// An item of another key.
pub const FOREIGN: Item = Item { number: 9_999, expires: false };

/// What a gateway plans by: a published record. Moves take turns between the two places, so the
/// number of the move says which place is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub version: u64,
    pub leg: u8,
    pub state: State,
    /// Whether the record says that items expire.
    pub expires: bool,
    /// The items that are above the high water on record, one bit each: in MOVE they are in their
    /// new places alone.
    pub above: u8,
}

impl View {
    /// Where items do not expire, and no high water is on record.
    pub fn plain(version: u64, leg: u8, state: State) -> Self {
        View { version, leg, state, expires: false, above: 0 }
    }
}

/// A call that nobody waits for any more, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Late {
    /// The version it was planned under; `None` for a worker's, which may be as late as it likes.
    pub planned: Option<u64>,
    pub leg: u8,
    pub call: LateCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LateCall {
    Own { op: Op, call: usize, item: usize, new: bool, guard: u8 },
    Copy { item: usize, value: Item, if_old: bool, claim: Option<u64> },
    Clear { item: usize, if_new: bool, claim: Option<u64> },
    Create { worker: u64, if_version: Option<u64> },
    ClearOrphan { item: usize, claim: Option<u64> },
}

impl PartialOrd for Op {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Op {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An answer fits no order of the calls.
    Inexplicable,
    /// A read through a gateway, begun and ended now, would see what the item cannot hold.
    WrongItem,
    /// A Query's rows are out of order, or doubled.
    Disordered,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub script: usize,
    pub leg: u8,
    pub record: Record,
    /// Whether items expire, and whether they did when the new places were looked at last.
    pub expires: bool,
    pub found_expiring: bool,
    /// What is published, and the version that was published before it.
    pub head: View,
    pub before: u64,
    /// The last is the one that is not taken for dead.
    pub coordinators: Vec<Coordinator>,
    /// What each of them has found above the high water.
    pub marks: Vec<u8>,
    pub deaths: u8,
    pub cancels: u8,
    pub changes: u8,
    pub workers: Vec<Worker>,
    pub hired: u64,
    pub crashes: u8,
    /// One bit each.
    pub claims: u64,
    pub gateways: Vec<Gateway>,
    /// Sorted.
    pub late: Vec<Late>,
    /// By item and place.
    pub cells: [[Option<Item>; 2]; 2],
    pub monitors: [Monitor; 2],
    pub fault: Option<Fault>,
}

/// Which place a side of a move is.
pub fn place(leg: u8, side: Side) -> usize {
    (usize::from(leg) + usize::from(side == Side::New)) % 2
}

impl World {
    pub fn begin(config: &Config, script: usize, stored: [Option<Item>; 2]) -> Self {
        let record = Record::WHOLE;
        let head = View::plain(0, 0, record.state);
        let gateways = config.scripts[script].iter().map(|_| Gateway { view: head, next: 0, run: None });
        let coordinator = Coordinator::begin(record, Change::Move, STRAGGLER, config.rules).unwrap();
        World {
            script,
            leg: 0,
            record,
            expires: config.expiry && !config.turned_on,
            found_expiring: false,
            head,
            before: 0,
            coordinators: vec![coordinator],
            marks: vec![0],
            deaths: 0,
            cancels: 0,
            changes: 1,
            workers: Vec::new(),
            hired: 0,
            crashes: 0,
            claims: 0,
            gateways: gateways.collect(),
            late: Vec::new(),
            cells: [[stored[0], config.orphans[0]], [stored[1], config.orphans[1]]],
            monitors: stored.map(|item| Monitor::new(item, config.expiry)),
            fault: None,
        }
    }

    pub fn cell(&mut self, item: usize, leg: u8, side: Side) -> &mut Option<Item> {
        &mut self.cells[item][place(leg, side)]
    }

    /// A client's own write. `None` if its guard fails.
    pub fn own(
        &mut self,
        op: Op,
        call: usize,
        item: usize,
        leg: u8,
        side: Side,
        guard: Option<Guard>,
    ) -> Option<Answer> {
        if op == Op::TurnOn {
            self.expires = true;
            return Some(Answer::Done);
        }
        let cell = self.cell(item, leg, side);
        if op == Op::PutForeign {
            *cell = Some(FOREIGN);
            return Some(Answer::Done);
        }
        let holds = match guard {
            None => true,
            Some(Guard::Exists) => cell.is_some(),
            Some(Guard::ExistsForGood) => cell.is_some_and(|item| !item.expires),
        };
        if !holds {
            return None;
        }
        let (after, answer) = apply(op, call, *cell);
        *cell = after;
        Some(answer)
    }

    pub fn holds_claim(&self, claim: Option<u64>) -> bool {
        claim.is_none_or(|worker| self.claims & 1 << worker != 0)
    }

    /// A call of a pull; `claim` is the worker's that it checks.
    pub fn pull(
        &mut self,
        config: &Config,
        item: usize,
        leg: u8,
        call: &PullCall<Item>,
        claim: Option<u64>,
    ) -> PullAnswer<Item> {
        let (old, new) = (*self.cell(item, leg, Side::Old), *self.cell(item, leg, Side::New));
        match call {
            PullCall::Read => PullAnswer::Read(old),
            _ if !self.holds_claim(claim) => PullAnswer::ClaimGone,
            PullCall::Copy { item: value, .. } if config.too_large == Some(value.number) => {
                PullAnswer::TooLarge
            }
            PullCall::Copy { .. } if new.is_some() => PullAnswer::NewExists,
            PullCall::Copy { if_old: true, .. } if old.is_none() => PullAnswer::OldGone,
            PullCall::Copy { item: value, .. } => {
                *self.cell(item, leg, Side::New) = Some(*value);
                PullAnswer::Done
            }
            PullCall::Clear { if_new: true } if new.is_none() => PullAnswer::NewGone,
            PullCall::Clear { .. } => {
                *self.cell(item, leg, Side::Old) = None;
                PullAnswer::Done
            }
        }
    }

    pub fn create_claim(&mut self, worker: u64, if_version: Option<u64>) -> bool {
        let holds = if_version.is_none_or(|version| version == self.record.version);
        if holds {
            self.claims |= 1 << worker;
        }
        holds
    }

    pub fn delay(&mut self, late: Late) {
        self.late.push(late);
        self.late.sort_unstable();
    }

    pub fn late_of_clients(&self) -> usize {
        self.late.iter().filter(|late| late.planned.is_some()).count()
    }

    /// A late call lands.
    pub fn land(&mut self, config: &Config, number: usize) -> Option<()> {
        let late = self.late.get(number).copied()?;
        // Which of two equal ones lands is the same.
        if number > 0 && self.late[number - 1] == late {
            return None;
        }
        self.late.remove(number);
        let leg = late.leg;
        match late.call {
            LateCall::Own { op, call, item, new, guard } => {
                let guard = [None, Some(Guard::Exists), Some(Guard::ExistsForGood)][usize::from(guard)];
                self.own(op, call, item, leg, if new { Side::New } else { Side::Old }, guard);
            }
            LateCall::Copy { item, value, if_old, claim } => {
                self.pull(config, item, leg, &PullCall::Copy { item: value, if_old }, claim);
            }
            LateCall::Clear { item, if_new, claim } => {
                self.pull(config, item, leg, &PullCall::Clear { if_new }, claim);
            }
            LateCall::Create { worker, if_version } => {
                self.create_claim(worker, if_version);
            }
            LateCall::ClearOrphan { item, claim } => self.clear_orphan(item, leg, claim),
        }
        Some(())
    }

    pub fn clear_orphan(&mut self, item: usize, leg: u8, claim: Option<u64>) {
        if self.holds_claim(claim) {
            *self.cell(item, leg, Side::New) = None;
        }
    }

    /// What a read of one copy or both sees that begins and ends now.
    fn sees(&self, config: &Config, view: View, item: usize) -> Option<Item> {
        let at = |side| self.cells[item][place(view.leg, side)];
        match view.read(item, config.rules) {
            Some(side) => at(side),
            None => at(Side::New).or(at(Side::Old)),
        }
    }

    /// Looks through the eyes of every gateway, and of one that has just been started.
    pub fn check(&mut self, config: &Config) {
        let views = self.gateways.iter().map(|gateway| gateway.view).chain([self.head]);
        let wrong = |view: View| {
            (0..config.items).any(|item| !self.monitors[item].can_hold(self.sees(config, view, item)))
        };
        if views.clone().any(wrong) {
            self.fault.get_or_insert(Fault::WrongItem);
        }
    }

    /// Forgets what can have no effect any more: calls and workers whose claim is gone or can never
    /// be made.
    pub fn tidy(&mut self) {
        let (claims, version) = (self.claims, self.record.version);
        let gone = |claim: Option<u64>| claim.is_some_and(|worker| claims & 1 << worker == 0);
        let creating: Vec<u64> = self
            .late
            .iter()
            .filter_map(|late| match late.call {
                LateCall::Create { worker, if_version } if if_version.is_none_or(|then| then >= version) => {
                    Some(worker)
                }
                _ => None,
            })
            .collect();
        self.late.retain(|late| match late.call {
            LateCall::Copy { claim, .. }
            | LateCall::Clear { claim, .. }
            | LateCall::ClearOrphan { claim, .. } => {
                !gone(claim) || claim.is_some_and(|worker| creating.contains(&worker))
            }
            LateCall::Create { worker, .. } => creating.contains(&worker),
            LateCall::Own { .. } => true,
        });
        self.workers.retain(|worker| match worker.claim.create() {
            Some(create) => create.if_version.is_none_or(|then| then >= version),
            None => !worker.claim.is_gone() && !gone(worker.claim.checked()),
        });
        if self.workers.is_empty() && self.late.iter().all(|late| late.planned.is_some()) {
            (self.hired, self.claims) = (0, 0);
        }
    }
}
