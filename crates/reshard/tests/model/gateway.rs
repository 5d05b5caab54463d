//! A gateway: one client's calls, one after the other, each planned by what it knows of the record.

use heatsink_reshard::{
    Access, Act, Guard, PointRead, PullAnswer, PullCall, RangeRead, Rules, Side, State, Write, WriteAnswer,
    WriteCall, WriteStep, act,
};

use crate::config::{Call, Config, Op};
use crate::monitor::{Answer, Item};
use crate::world::{Fault, Late, LateCall, View, World, place};

/// One gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    pub view: View,
    pub next: usize,
    pub run: Option<Run>,
}

/// A request under way: its next call is sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub planned: View,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Write(Write<Item>),
    Plain(Side),
    Read(PointRead<Item>),
    Query(RangeRead<usize, Item>, Vec<(usize, Item)>),
}

impl View {
    /// What is done with the items from `first` on.
    fn act(self, first: usize, access: Access, rules: Rules) -> Act {
        match self.state {
            State::Stable { in_force: Side::Old, .. } => Act::Old,
            State::Stable { in_force: Side::New, .. } => Act::New,
            State::Moving { phase, .. } => match act(phase, access, self.above & 1 << first != 0, rules) {
                // Nothing is known whose absence could be asked for.
                Act::NewIf(Guard::ExistsForGood, otherwise) if !self.expires => {
                    Act::NewIf(Guard::Exists, otherwise)
                }
                act => act,
            },
        }
    }

    /// Which side a read looks at; `None` for both.
    pub fn read(self, item: usize, rules: Rules) -> Option<Side> {
        match self.act(item, Access::Read, rules) {
            Act::Old => Some(Side::Old),
            Act::New => Some(Side::New),
            _ => None,
        }
    }
}

impl World {
    fn calls<'a>(&self, config: &'a Config, gateway: usize) -> &'a [Call] {
        &config.scripts[self.script][gateway]
    }

    pub fn is_done(&self, config: &Config, gateway: usize) -> bool {
        self.gateways[gateway].next == self.calls(config, gateway).len()
    }

    /// Reads the record and acknowledges it. What was planned before has been answered or given up.
    pub fn acknowledge(&mut self, config: &Config, number: usize) -> Option<()> {
        let gateway = &mut self.gateways[number];
        let busy = gateway.run.is_some() && !config.acknowledges_early;
        if gateway.view == self.head || busy {
            return None;
        }
        gateway.view = self.head;
        Some(())
    }

    /// Gateways without anything left to do acknowledge at once.
    pub fn acknowledge_idle(&mut self, config: &Config) {
        for number in 0..self.gateways.len() {
            if self.is_done(config, number) {
                self.gateways[number].view = self.head;
            }
        }
    }

    /// Begins the next call.
    pub fn ask(&mut self, config: &Config, number: usize) -> Option<()> {
        let gateway = &self.gateways[number];
        let (op, item) = *self.calls(config, number).get(gateway.next)?;
        if gateway.run.is_some() {
            return None;
        }
        let view = gateway.view;
        let kind = match view.act(item, op.access(view.expires), config.rules) {
            Act::Wait => return None,
            // A name in the form of a shard's is refused from RESERVE on, and so is time to live.
            _ if !op.is_of_items() => match view.state {
                State::Stable { in_force: Side::Old, .. } => Kind::Write(Write::new(Act::New, config.rules)),
                _ => {
                    self.gateways[number].next += 1;
                    return Some(());
                }
            },
            Act::ReadBoth if op == Op::Query => Kind::Query(RangeRead::new(None, config.rules), Vec::new()),
            Act::ReadBoth => Kind::Read(PointRead::new(config.rules)),
            Act::Old if op.only_reads() => Kind::Plain(Side::Old),
            Act::New if op.only_reads() => Kind::Plain(Side::New),
            act => Kind::Write(Write::new(act, config.rules)),
        };
        let call = config.number(self.script, number, gateway.next);
        self.gateways[number].run = Some(Run { planned: view, kind });
        for concerned in concerned(config, op, item) {
            self.monitors[concerned].begin(call, op, config.expiry);
        }
        Some(())
    }

    /// The call that was sent lands, is answered, and the next one is sent.
    pub fn go_on(&mut self, config: &Config, number: usize) -> Option<()> {
        let gateway = &self.gateways[number];
        let (op, item) = *self.calls(config, number).get(gateway.next)?;
        let Run { planned, kind } = gateway.run.clone()?;
        let leg = planned.leg;
        let call = config.number(self.script, number, gateway.next);
        let kind = match kind {
            Kind::Plain(side) => {
                let rows: Vec<_> = self.rows(config, leg, side, None);
                self.read_done(config, number, &rows);
                return Some(());
            }
            Kind::Read(mut read) => {
                let copy = *self.cell(item, leg, read.call());
                if let Some(found) = read.answered(copy) {
                    let rows: Vec<_> = found.into_iter().map(|found| (item, found)).collect();
                    self.read_done(config, number, &rows);
                    return Some(());
                }
                Kind::Read(read)
            }
            Kind::Query(mut read, mut rows) => {
                let asked = read.call();
                let mut page = heatsink_reshard::Page {
                    rows: self.rows(config, leg, asked.side, asked.after),
                    end: None,
                };
                // Pages of old rows are short, and those of new rows are not.
                if asked.side == Side::Old && !page.rows.is_empty() {
                    page.rows.truncate(1);
                    page.end = page.rows.last().map(|(row, _)| *row);
                }
                if let Some(range) = read.answered(page) {
                    rows.extend(range.rows);
                    if range.end.is_none() {
                        self.read_done(config, number, &rows);
                        return Some(());
                    }
                }
                Kind::Query(read, rows)
            }
            Kind::Write(mut write) => {
                let WriteStep::Send(sent) = write.step() else { return None };
                match sent {
                    WriteCall::Own { side, guard } => match self.own(op, call, item, leg, side, guard) {
                        Some(answer) => {
                            self.write_done(number, op, call, item, answer);
                            return Some(());
                        }
                        None if write.answers_failed_guard() => {
                            self.write_done(number, op, call, item, Answer::Refused);
                            return Some(());
                        }
                        None => write.answered(WriteAnswer::GuardFailed),
                    },
                    WriteCall::Pull(pull) => {
                        let answer = self.pull(config, item, leg, &pull, None);
                        write.answered(WriteAnswer::Pull(answer));
                    }
                }
                match write.step() {
                    WriteStep::Send(_) => Kind::Write(write),
                    WriteStep::Wait | WriteStep::TooLarge => {
                        self.monitors[item].undo(call);
                        let too_large = write.step() == WriteStep::TooLarge;
                        let gateway = &mut self.gateways[number];
                        gateway.run = None;
                        gateway.next += usize::from(too_large);
                        return Some(());
                    }
                }
            }
        };
        self.gateways[number].run = Some(Run { planned, kind });
        Some(())
    }

    /// A transaction of a pull meets another one, and is not done.
    pub fn meet(&mut self, config: &Config, number: usize) -> Option<()> {
        self.calls(config, number).get(self.gateways[number].next)?;
        let Some(Run { kind: Kind::Write(write), .. }) = &mut self.gateways[number].run else { return None };
        let WriteStep::Send(WriteCall::Pull(PullCall::Copy { .. } | PullCall::Clear { .. })) = write.step()
        else {
            return None;
        };
        write.answered(WriteAnswer::Pull(PullAnswer::Met));
        Some(())
    }

    /// Nobody waits for the call any more that was sent. With `again` it is a transaction of a
    /// pull, and is sent once more.
    pub fn give_up(&mut self, config: &Config, number: usize, again: bool) -> Option<()> {
        let gateway = &self.gateways[number];
        let (op, item) = *self.calls(config, number).get(gateway.next)?;
        let Run { planned, kind: Kind::Write(write) } = gateway.run.as_ref()? else { return None };
        let call = config.number(self.script, number, gateway.next);
        let WriteStep::Send(sent) = write.step() else { return None };
        let late = match sent {
            WriteCall::Own { .. } if again => return None,
            WriteCall::Own { side, guard } => {
                let guard = match guard {
                    None => 0,
                    Some(Guard::Exists) => 1,
                    Some(Guard::ExistsForGood) => 2,
                };
                Some(LateCall::Own { op, call, item, new: side == Side::New, guard })
            }
            WriteCall::Pull(PullCall::Copy { item: value, if_old }) => {
                Some(LateCall::Copy { item, value, if_old, claim: None })
            }
            WriteCall::Pull(PullCall::Clear { if_new }) => {
                Some(LateCall::Clear { item, if_new, claim: None })
            }
            WriteCall::Pull(PullCall::Read) if again => return None,
            WriteCall::Pull(PullCall::Read) => None,
        };
        if late.is_some() && self.late_of_clients() >= config.late {
            return None;
        }
        let planned = *planned;
        if let Some(late) = late {
            self.delay(Late { planned: Some(planned.version), leg: planned.leg, call: late });
        }
        if again {
            let gateway = &mut self.gateways[number];
            if let Some(Run { kind: Kind::Write(write), .. }) = &mut gateway.run {
                write.answered(WriteAnswer::Pull(PullAnswer::Again));
            }
            return Some(());
        }
        if op.is_of_items() {
            // Its own call was never sent unless it is the one that is late.
            match late {
                Some(LateCall::Own { .. }) => self.monitors[item].give_up(call),
                _ => self.monitors[item].undo(call),
            }
        }
        let gateway = &mut self.gateways[number];
        gateway.run = None;
        gateway.next += 1;
        Some(())
    }

    fn rows(&self, config: &Config, leg: u8, side: Side, after: Option<usize>) -> Vec<(usize, Item)> {
        let begin = after.map_or(0, |after| after + 1);
        let row = |item: usize| self.cells[item][place(leg, side)].map(|found| (item, found));
        (begin..config.items).filter_map(row).collect()
    }

    fn write_done(&mut self, number: usize, op: Op, call: usize, item: usize, answer: Answer) {
        if op.is_of_items() && !self.monitors[item].answer(call, answer) {
            self.fault = Some(Fault::Inexplicable);
        }
        let gateway = &mut self.gateways[number];
        gateway.run = None;
        gateway.next += 1;
    }

    fn read_done(&mut self, config: &Config, number: usize, rows: &[(usize, Item)]) {
        let gateway = &self.gateways[number];
        let (op, item) = self.calls(config, number)[gateway.next];
        let call = config.number(self.script, number, gateway.next);
        if rows.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            self.fault = Some(Fault::Disordered);
        }
        for concerned in concerned(config, op, item) {
            let seen = rows.iter().find(|(row, _)| *row == concerned).map(|(_, seen)| *seen);
            if !self.monitors[concerned].answer(call, Answer::Saw(seen)) {
                self.fault = Some(Fault::Inexplicable);
            }
        }
        let gateway = &mut self.gateways[number];
        gateway.run = None;
        gateway.next += 1;
    }
}

/// The items that a call is about.
fn concerned(config: &Config, op: Op, item: usize) -> std::ops::Range<usize> {
    match op {
        Op::Query => 0..config.items,
        Op::PutForeign | Op::TurnOn => 0..0,
        _ => item..item + 1,
    }
}
