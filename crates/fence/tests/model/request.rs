//! A client's request on its way through a gateway: looked up, admitted, sent, landed, delivered.

use stateright::semantics::register::{RegisterOp, RegisterRet};

use heatsink_fence::Epoch;

use crate::config::{Config, Op, Rule};
use crate::gateway::Known;
use crate::world::{
    Fault, Id, LateCall, Name, Plan, Record, RecordState, SHARD, Tick, Value, World, at, can_land,
};

/// Whether the gate that let a request in is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passage {
    Open,
    Closed,
    /// It went through none.
    None,
}

/// Where the request of a gateway is. Each gateway has one at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// The next one has not begun.
    Idle,
    /// The table is looked up; these answers are in hand.
    LookUp { seen: Epoch, table: Option<Id>, name: Option<Name>, record: Option<Option<Record>> },
    /// Planned, and not sent.
    Admitted { plan: Plan, passage: Passage },
    /// On its way to the store.
    Sent { plan: Plan, passage: Passage, sent: Tick },
    /// The store has answered: with the item, if it was asked for.
    Landed { plan: Plan, passage: Passage, value: Value },
}

/// What a look-up says.
enum Verdict {
    Known(Plan),
    /// The client is told that there is no such table.
    NotFound,
    /// The client is told to try again. Nothing is remembered.
    Retry,
}

impl Request {
    /// Whether it is inside an open gate.
    pub fn is_inside(&self) -> bool {
        match self {
            Request::Admitted { passage, .. }
            | Request::Sent { passage, .. }
            | Request::Landed { passage, .. } => *passage == Passage::Open,
            Request::Idle | Request::LookUp { .. } => false,
        }
    }

    /// Its gate is closed.
    pub fn close(&mut self) {
        match self {
            Request::Admitted { passage, .. }
            | Request::Sent { passage, .. }
            | Request::Landed { passage, .. }
                if *passage == Passage::Open =>
            {
                *passage = Passage::Closed;
            }
            _ => {}
        }
    }
}

/// The number of an operation in the history.
fn operation(gateway: usize, op: u8) -> u8 {
    u8::try_from(gateway * 8).expect("few gateways") + op
}

/// The value that an operation writes.
fn written(gateway: usize, op: u8) -> Value {
    operation(gateway, op) + 1
}

impl World {
    fn op(&self, config: &Config, number: usize) -> Option<Op> {
        let ops = config.gateways.get(number)?.ops;
        ops.get(usize::from(self.gateways.get(number)?.op)).copied()
    }

    /// Begins to look the table up: asks for its description, which may be out of date.
    pub fn describe(&mut self, config: &Config, number: usize, former: bool) -> Option<()> {
        self.op(config, number)?;
        let table = if former { self.store.former } else { self.store.table };
        if former && (!config.stale || self.store.former == self.store.table) {
            return None;
        }
        let gateway = self.gateways.get_mut(number)?;
        if gateway.request != Request::Idle || gateway.known.is_some() || gateway.member.is_watching() {
            return None;
        }
        gateway.request = Request::LookUp { seen: gateway.seen, table, name: None, record: None };
        if !config.stale {
            self.read_name(config, number)?;
            self.read_record(config, number)?;
        }
        Some(())
    }

    /// Reads the entry of the table's name, strongly.
    pub fn read_name(&mut self, config: &Config, number: usize) -> Option<()> {
        let found = self.registry.name;
        match &mut self.gateways.get_mut(number)?.request {
            Request::LookUp { name: name @ None, .. } => *name = Some(found),
            _ => return None,
        }
        if !config.fine {
            // Nothing happens as long as the other answer is missing.
            let _ = self.conclude(config, number);
        }
        Some(())
    }

    /// Reads the record of the table that was described, strongly. The two reads come in any order.
    pub fn read_record(&mut self, config: &Config, number: usize) -> Option<()> {
        let Request::LookUp { table, record: None, .. } = self.gateways.get(number)?.request else {
            return None;
        };
        let found = table.and_then(|table| self.record(table));
        if let Request::LookUp { record, .. } = &mut self.gateways.get_mut(number)?.request {
            *record = Some(found);
        }
        if !config.fine {
            let _ = self.conclude(config, number);
        }
        Some(())
    }

    /// Takes what was looked up for known, if nothing has changed meanwhile.
    pub fn conclude(&mut self, config: &Config, number: usize) -> Option<()> {
        let shards = config.gateways.get(number)?.shards;
        let gateway = self.gateways.get_mut(number)?;
        let Request::LookUp { seen, table, name: Some(name), record: Some(record) } = gateway.request else {
            return None;
        };
        gateway.request = Request::Idle;
        if gateway.seen != seen && config.keeps(Rule::LookUpRedone) {
            return Some(());
        }
        match verdict(config, shards, table, name, record) {
            Verdict::Known(plan) => gateway.known = Some(Known { plan, unanswered: None }),
            Verdict::NotFound if !config.keeps(Rule::NotFoundAnswered) => {
                gateway.request = Request::Admitted { plan: Plan::Raw, passage: Passage::None };
            }
            Verdict::NotFound | Verdict::Retry => {}
        }
        Some(())
    }

    /// Lets the request in. While no registry has been seen, requests are forwarded as they are.
    pub fn admit(&mut self, config: &Config, number: usize) -> Option<()> {
        self.op(config, number)?;
        let shards = config.gateways.get(number)?.shards;
        let gateway = self.gateways.get_mut(number)?;
        if gateway.request != Request::Idle {
            return None;
        }
        let mut passage = Passage::Open;
        if gateway.known.is_none() && gateway.member.is_watching() && !shards {
            if config.keeps(Rule::GateWithoutRegistry) {
                gateway.known = Some(Known { plan: Plan::Raw, unanswered: None });
            } else {
                passage = Passage::None;
            }
        }
        let plan = match passage {
            Passage::None => Plan::Raw,
            _ => gateway.known.as_ref()?.plan,
        };
        gateway.request = Request::Admitted { plan, passage };
        if config.fine { Some(()) } else { self.send(config, number) }
    }

    /// Sends the call, if the lease runs and the gate is open. A request that may not be sent is
    /// told to try again.
    pub fn send(&mut self, config: &Config, number: usize) -> Option<()> {
        let (now, op) = (self.now, self.op(config, number)?);
        let gateway = self.gateways.get_mut(number)?;
        let Request::Admitted { plan, passage } = gateway.request else { return None };
        if passage == Passage::Closed && config.keeps(Rule::GateBeforeSending) {
            gateway.request = Request::Idle;
            return Some(());
        }
        if !gateway.member.may_send(at(now)) && config.keeps(Rule::LeaseBeforeSending) {
            return None;
        }
        gateway.request = Request::Sent { plan, passage, sent: now };
        let operation = (operation(number, gateway.op), written(number, gateway.op));
        match op {
            Op::Put => self.invoke(operation.0, RegisterOp::Write(operation.1)),
            Op::Get => self.invoke(operation.0, RegisterOp::Read),
        }
        Some(())
    }

    /// The call takes effect, and its answer is in the gateway's hand.
    pub fn land(&mut self, config: &Config, number: usize) -> Option<()> {
        let (now, op) = (self.now, self.op(config, number)?);
        let gateway = self.gateways.get(number)?;
        let Request::Sent { plan, passage, sent } = gateway.request else { return None };
        if !can_land(config, now, sent) {
            return None;
        }
        let mut value = written(number, gateway.op);
        if self.store.table.is_none() {
            // The client is told that there is no such table.
            let gateway = self.gateways.get_mut(number)?;
            (gateway.request, gateway.op) = (Request::Idle, gateway.op + 1);
            return Some(());
        }
        match op {
            Op::Put => self.store.put(config, plan.writes(), value),
            Op::Get => {
                if plan == Plan::Raw && self.store.cells[SHARD] != 0 && !config.unbounded {
                    self.fault.get_or_insert(Fault::PhysicalKeySeen);
                }
                value = plan.reads(self.store.cells);
            }
        }
        self.gateways.get_mut(number)?.request = Request::Landed { plan, passage, value };
        if config.fine { Some(()) } else { self.deliver(config, number) }
    }

    /// Gives the client its answer, if what it was planned under still holds; else the outcome is
    /// unknown.
    pub fn deliver(&mut self, config: &Config, number: usize) -> Option<()> {
        let (now, op) = (self.now, self.op(config, number)?);
        let gateway = self.gateways.get_mut(number)?;
        let Request::Landed { passage, value, .. } = gateway.request else { return None };
        let closed = passage == Passage::Closed && config.keeps(Rule::GateOnDelivery);
        let over = !gateway.member.may_send(at(now)) && config.keeps(Rule::LeaseOnDelivery);
        let operation = operation(number, gateway.op);
        gateway.request = Request::Idle;
        gateway.op += 1;
        if !closed && !over {
            self.answered += 1;
            self.answer(
                operation,
                if op == Op::Put { RegisterRet::WriteOk } else { RegisterRet::ReadOk(value) },
            );
        }
        Some(())
    }

    /// The gateway waits for the answer no longer: the outcome is unknown, and the call may still
    /// land.
    pub fn give_up(&mut self, config: &Config, number: usize) -> Option<()> {
        let (now, op) = (self.now, self.op(config, number)?);
        let gateway = self.gateways.get_mut(number)?;
        let Request::Sent { plan, passage, sent } = gateway.request else { return None };
        let landable = can_land(config, now, sent);
        if landable && !config.calls_lost && passage != Passage::Closed {
            return None;
        }
        if passage == Passage::Open
            && let Some(known) = &mut gateway.known
        {
            known.unanswered = known.unanswered.max(Some(sent));
        }
        gateway.request = Request::Idle;
        let value = written(number, gateway.op);
        gateway.op += 1;
        if op == Op::Put && landable {
            self.store.late.push(LateCall { sent, cell: plan.writes(), value });
            self.store.late.sort_unstable();
        }
        Some(())
    }

    /// A call takes effect that nobody waits for.
    pub fn land_late(&mut self, config: &Config, call: usize) -> Option<()> {
        if call >= self.store.late.len() {
            return None;
        }
        let call = self.store.late.remove(call);
        self.store.put(config, call.cell, call.value);
        Some(())
    }
}

/// What the answers of a look-up mean.
fn verdict(config: &Config, shards: bool, table: Option<Id>, name: Name, record: Option<Record>) -> Verdict {
    let Some(table) = table else {
        return if name == Name::Free { Verdict::NotFound } else { Verdict::Retry };
    };
    if name != Name::Free && name != Name::Bound(table) && config.keeps(Rule::NameChecked) {
        return Verdict::Retry;
    }
    if record.is_none() && name == Name::Bound(table) && config.keeps(Rule::BoundHasRecord) {
        // The record was read before it was written, the name afterwards.
        return Verdict::Retry;
    }
    match record.map(|record| record.state) {
        // With a rule it waits for the first use.
        None | Some(RecordState::Whole) if shards && !config.index => Verdict::Retry,
        None | Some(RecordState::Whole) => Verdict::Known(Plan::Raw),
        Some(RecordState::Active) => Verdict::Known(Plan::Sharded),
        Some(RecordState::SpreadingOld) => Verdict::Known(Plan::BothOld),
        Some(RecordState::SpreadingNew) => Verdict::Known(Plan::BothNew),
        Some(
            RecordState::Pending
            | RecordState::Going
            | RecordState::Gone
            | RecordState::Adopting
            | RecordState::Returning,
        ) => Verdict::Retry,
    }
}
