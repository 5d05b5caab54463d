//! Whoever changes a layout: takes one step of its program after the other, and goes on where
//! another was killed.

use std::sync::Arc;

use heatsink_fence::{Head, Registration, Step as Waiting, Wait};

use crate::config::{Config, Kind, Rule};
use crate::program::{Step, program};
use crate::world::{Id, Name, RAW, Record, RecordState, SHARD, TABLE, Tick, Value, World, at};

/// One that changes layouts: a gateway on behalf of its clients, or a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changer {
    /// How many of its changes are behind it.
    pub done: usize,
    pub change: Option<Change>,
}

/// A change under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    kind: Kind,
    /// The step that comes next.
    pub step: usize,
    /// The table, and the version of its record that this change has read or written; nought for no
    /// record.
    table: Id,
    version: u8,
    waiting: Option<Waiting>,
    /// When the registry was found, and whether it was made here.
    found: Tick,
    made: bool,
    /// The item that is being moved.
    value: Value,
    /// The gateways of a list that was read too early.
    early: Vec<usize>,
}

/// What a step leads to.
enum Next {
    Step,
    To(usize),
    Abandoned,
}

impl World {
    /// Begins the next change, or takes the next step of the one under way. `former`: by a
    /// description that is out of date.
    pub fn change(&mut self, config: &Config, number: usize, former: bool) -> Option<()> {
        let changer = self.changers.get(number)?;
        let mut change = match &changer.change {
            Some(change) if !former => change.clone(),
            Some(_) => return None,
            None => self.begun(config, *config.changers.get(number)?.get(changer.done)?, former)?,
        };
        let steps = program(config, change.kind);
        match self.step(config, number, &mut change, &steps)? {
            Next::Step => change.step += 1,
            Next::To(step) => change.step = step,
            Next::Abandoned => change.step = usize::MAX,
        }
        let over = change.step >= program(config, change.kind).len();
        let finished = over && change.step != usize::MAX;
        let changer = self.changers.get_mut(number)?;
        changer.done += usize::from(over);
        changer.change = (!over).then_some(change);
        self.finished += u8::from(finished);
        Some(())
    }

    /// A change that begins now: from its first step, or from the state that another has left
    /// behind.
    fn begun(&self, config: &Config, kind: Kind, former: bool) -> Option<Change> {
        let described = if former { self.store.former } else { self.store.table };
        if former && (!config.stale || self.store.former == self.store.table || kind != Kind::FirstUse) {
            return None;
        }
        let record = described.and_then(|table| self.record(table));
        let state = record.map(|record| record.state);
        let steps = program(config, kind);
        let last = steps.iter().rposition(|step| matches!(step, Step::Record(_)));
        let left = steps.iter().position(|step| state.is_some_and(|state| *step == Step::Record(state)));
        let step = match left.filter(|left| Some(*left) != last) {
            Some(left) if config.keeps(Rule::TakeoverPublishes) => left,
            Some(left) => left + steps.get(left..)?.iter().position(|step| *step == Step::Wait)? + 1,
            None if may_begin(kind, described, self.registry.name, state) => {
                let settled = if self.registry.settled { Step::Settle } else { Step::Found };
                steps
                    .iter()
                    .position(|step| *step == settled)
                    .map_or(0, |found| found + usize::from(self.registry.settled))
            }
            None => return None,
        };
        let version = record.map_or(0, |record| record.version);
        let table = described.unwrap_or_default();
        let change = Change {
            kind,
            step,
            table,
            version,
            waiting: None,
            found: 0,
            made: false,
            value: 0,
            early: Vec::new(),
        };
        Some(change)
    }

    /// Takes one step.
    fn step(&mut self, config: &Config, number: usize, change: &mut Change, steps: &[Step]) -> Option<Next> {
        let now = self.now;
        let holds = self.registry.claims & (1 << number) != 0 || !config.keeps(Rule::ClaimChecked);
        match *steps.get(change.step)? {
            Step::Found => {
                change.made = self.registry.head.is_none();
                change.found = now;
                self.registry.head.get_or_insert_default();
            }
            Step::Settle => return self.settle(config, change),
            Step::Record(state) => {
                if !config.keeps(Rule::ListAfterPublication) {
                    let list = self.registry.list.iter().enumerate();
                    change.early = list.filter_map(|(gateway, entry)| entry.map(|_| gateway)).collect();
                }
                return Some(self.write_record(change, state));
            }
            Step::Intent => match self.registry.name {
                Name::Free => self.registry.name = Name::Intent(u8::try_from(number).ok()?),
                _ => return Some(Next::Abandoned),
            },
            Step::Announce => {
                let head = self.registry.head.as_deref().cloned().unwrap_or_default();
                let head = head.with(TABLE, u64::from(change.version));
                let known = change.waiting.take().map(|before| before.liveness().clone()).unwrap_or_default();
                change.waiting = Some(Waiting::new(head.epoch, at(now)).knowing(known));
                self.registry.head = Some(Arc::<Head>::new(head));
            }
            Step::Wait => return self.wait(config, change),
            Step::Scan => {
                if self.store.cells != [0, 0] {
                    change.kind = Kind::Refuse;
                    return Some(Next::To(0));
                }
            }
            Step::CreateTable => match self.store.create() {
                Some(table) => change.table = table,
                None => return Some(Next::Abandoned),
            },
            Step::Bind(state) => return Some(self.bind(config, number, change, state)),
            Step::DeleteTable => {
                if self.delete_table().is_none() {
                    return Some(Next::Abandoned);
                }
            }
            Step::Claim => {
                if self.record(change.table).map(|record| record.version) != Some(change.version) {
                    return Some(Next::Abandoned);
                }
                self.registry.claims |= 1 << number;
            }
            Step::ReadItem(from) => {
                change.value = *self.store.cells.get(from)?;
                if change.value == 0 {
                    let release = steps.iter().position(|step| *step == Step::Release)?;
                    return Some(Next::To(release));
                }
            }
            Step::Copy(from) => {
                let to = self.store.cells.get_mut(RAW + SHARD - from)?;
                if !holds || *to != 0 && *to != change.value {
                    return Some(Next::Abandoned);
                }
                *to = change.value;
            }
            Step::Delete(from) => {
                let from = self.store.cells.get_mut(from)?;
                if !holds {
                    return Some(Next::Abandoned);
                }
                if *from == change.value {
                    *from = 0;
                }
                return Some(Next::To(read_again(steps)?));
            }
            Step::Rewrite => {
                if !holds {
                    return Some(Next::Abandoned);
                }
                if self.store.cells[RAW] == change.value {
                    self.store.cells = [0, change.value];
                }
                return Some(Next::To(read_again(steps)?));
            }
            Step::Release => self.registry.claims = 0,
        }
        Some(Next::Step)
    }

    /// Goes on once every gateway must have noticed the registry.
    fn settle(&mut self, config: &Config, change: &Change) -> Option<Next> {
        let bounds = config.bounds;
        let counts = change.made || config.keeps(Rule::SettledOnRecord);
        let until = at(change.found) + bounds.lease + bounds.straggler;
        let waits = !self.registry.settled && counts && config.keeps(Rule::RegistrySettled);
        if waits && at(self.now) < until {
            return None;
        }
        self.registry.settled = true;
        Some(Next::Step)
    }

    /// Writes the record, if it is still as it was read; with the first one, its table gets the
    /// name.
    fn write_record(&mut self, change: &mut Change, state: RecordState) -> Next {
        let found = self.record(change.table).map_or(0, |record| record.version);
        let name = self.registry.name;
        if found != change.version || found == 0 && matches!(name, Name::Bound(_)) {
            return Next::Abandoned;
        }
        change.version += 1;
        if let Some(record) = self.registry.records.get_mut(usize::from(change.table)) {
            *record = Some(Record { version: change.version, state });
        }
        if state == RecordState::Gone && name == Name::Bound(change.table) {
            self.registry.name = Name::Free;
        } else if found == 0 {
            self.registry.name = Name::Bound(change.table);
        }
        Next::Step
    }

    /// One transaction: the record of a table that has none, and the name that was reserved for it.
    fn bind(&mut self, config: &Config, number: usize, change: &mut Change, state: RecordState) -> Next {
        let reserved = match self.registry.name {
            Name::Intent(by) => usize::from(by) == number,
            Name::Free => !config.keeps(Rule::IntentBeforeCreate),
            Name::Bound(_) => false,
        };
        change.version = 0;
        if !reserved || self.record(change.table).is_some() {
            return Next::Abandoned;
        }
        self.registry.name = Name::Free;
        self.write_record(change, state)
    }

    /// Reads the list of gateways, where that tells something new.
    fn wait(&mut self, config: &Config, change: &mut Change) -> Option<Next> {
        let early = (!config.keeps(Rule::ListAfterPublication)).then_some(change.early.as_slice());
        let list = self.list(config, early);
        let waiting = change.waiting.as_mut()?;
        let before = waiting.clone();
        if waiting.listed(at(self.now), &list) == Wait::Over {
            return Some(Next::Step);
        }
        let missing = |waiting: &Waiting| waiting.missing(at(self.now)).count();
        let news = missing(waiting) != missing(&before)
            || (config.heartbeats || config.ends.is_some()) && *waiting != before;
        // The first list has nobody missing before it.
        news.then_some(Next::To(change.step))
    }

    /// The list of gateways.
    fn list(&self, config: &Config, only: Option<&[usize]>) -> Vec<Registration> {
        let listed = self.registry.list.iter().enumerate();
        let listed = listed.filter(|(gateway, _)| only.is_none_or(|only| only.contains(gateway)));
        let registration = |(gateway, entry): (usize, &Option<_>)| {
            let entry: &crate::world::Entry = entry.as_ref()?;
            let mut bounds = config.bounds_of(gateway);
            if !config.keeps(Rule::StragglersOfTheSilent)
                || entry.ended && !config.keeps(Rule::StragglersOfTheEnded)
            {
                bounds.straggler = std::time::Duration::ZERO;
            }
            Some(Registration {
                gateway: gateway.to_string(),
                beat: entry.beat,
                epoch: entry.epoch,
                unclean: std::time::Duration::from_secs(u64::from(entry.unclean)),
                bounds,
                ended: entry.ended,
            })
        };
        listed.filter_map(registration).collect()
    }

    /// Takes a gateway off the list that has been silent for so long that it must be dead.
    pub fn remove(&mut self, config: &Config, number: usize, gateway: usize) -> Option<()> {
        let change = self.changers.get(number)?.change.as_ref()?;
        let waiting = change.waiting.as_ref()?;
        let entry = self.registry.list.get_mut(gateway)?;
        let name = gateway.to_string();
        let silent = waiting
            .silent(at(self.now))
            .any(|(silent, beat)| silent == name && entry.is_some_and(|entry| entry.beat == beat));
        let missing = waiting.missing(at(self.now)).any(|(missing, _)| missing == name);
        if entry.is_none() || !silent && (config.keeps(Rule::RemovedOnlyWhenSilent) || !missing) {
            return None;
        }
        *entry = None;
        Some(())
    }
}

/// Where the moves begin again.
fn read_again(steps: &[Step]) -> Option<usize> {
    steps.iter().position(|step| matches!(step, Step::ReadItem(_)))
}

/// Whether a change may begin with its first step.
fn may_begin(kind: Kind, described: Option<Id>, name: Name, state: Option<RecordState>) -> bool {
    let whole = matches!(state, None | Some(RecordState::Whole)) && described.is_some();
    match kind {
        Kind::FirstUse => described.is_some() && state.is_none() && !matches!(name, Name::Bound(_)),
        Kind::Refuse => false,
        Kind::Create | Kind::CreateWhole => described.is_none() && name == Name::Free,
        Kind::Delete | Kind::Return => state == Some(RecordState::Active),
        Kind::Adopt | Kind::SpreadIndex => whole,
    }
}
