//! A table of which all keys get other layouts, as one of its keys lives through it: one that has
//! items, or gets its first one meanwhile.
//!
//! The key's own move is one step here, once no call is under way: that it is right is the affair of
//! the other configurations. Two cells: the item's copy under the former layouts, and under the new
//! ones.

use heatsink_reshard::{
    FirstWrite, Rule, Rules, Side, TableCoordinator, TableDo, TablePhase, TableSeen, first_write,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::config::{Call, FIRST, Op, Script, script, scripts};
use crate::monitor::{Answer, Item, Monitor, apply};

const LATE: usize = 2;

#[derive(Clone, Debug)]
struct Config {
    scripts: Vec<Script>,
    deaths: u8,
    /// How often the change may be turned round: but for TURN at any moment.
    turns: u8,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct View {
    version: u8,
    /// Which change it is: there, and back.
    leg: u8,
    phase: Option<TablePhase>,
    /// As which layouts say the key lies by a record of its own.
    recorded: Option<Side>,
}

fn before(leg: u8) -> Side {
    if leg == 0 { Side::Old } else { Side::New }
}

fn after(leg: u8) -> Side {
    if leg == 0 { Side::New } else { Side::Old }
}

impl View {
    fn side(self) -> Side {
        let turned = self.phase.is_some_and(TablePhase::has_turned);
        self.recorded.unwrap_or(if turned { after(self.leg) } else { before(self.leg) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Sent {
    /// For which change.
    Enter(u8),
    /// Which call of the script, and in which cell.
    Own(Op, usize, usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gateway {
    view: View,
    next: usize,
    /// In which change it knows the key to be entered.
    knows: [bool; 2],
    sent: Option<Sent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    script: usize,
    leg: u8,
    head: View,
    /// The key's record, which may be newer than what was published.
    recorded: Option<Side>,
    coordinator: TableCoordinator,
    deaths: u8,
    gateways: Vec<Gateway>,
    /// Sorted.
    late: Vec<Sent>,
    entered: [bool; 2],
    cells: [Option<Item>; 2],
    monitor: Monitor,
    fault: bool,
}

fn at(side: Side) -> usize {
    usize::from(side == Side::New)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Coordinate,
    TakeOver,
    TurnRound,
    Acknowledge(usize),
    Ask(usize),
    Answer(usize),
    GiveUp(usize),
    Land(usize),
}

impl World {
    fn begin(config: &Config, script: usize, stored: Option<Item>) -> Self {
        let head = View { version: 0, leg: 0, phase: None, recorded: None };
        let gateway = |_: &Vec<Call>| Gateway { view: head, next: 0, knows: [false; 2], sent: None };
        World {
            script,
            leg: 0,
            head,
            recorded: None,
            coordinator: TableCoordinator::new(None, config.rules),
            deaths: 0,
            gateways: config.scripts[script].iter().map(gateway).collect(),
            late: Vec::new(),
            entered: [false; 2],
            cells: [stored, None],
            monitor: Monitor::new(stored, false),
            fault: false,
        }
    }

    fn publish(&mut self, phase: Option<TablePhase>) {
        self.head = View { version: self.head.version + 1, leg: self.leg, phase, recorded: self.recorded };
    }

    fn coordinate(&mut self) -> Option<()> {
        let seen = match self.coordinator.next() {
            TableDo::Write(phase) => {
                self.publish(Some(phase));
                TableSeen::Done
            }
            TableDo::Acknowledge(phase) => {
                let known = self.gateways.iter().all(|one| one.view == self.head);
                // ENTER alone waits for what may land late.
                if !known || phase == TablePhase::Enter && !self.late.is_empty() {
                    return None;
                }
                TableSeen::Done
            }
            TableDo::RecordAll => {
                if self.recorded.is_none() && self.cells.iter().any(Option::is_some) {
                    self.recorded = Some(before(self.leg));
                }
                TableSeen::Done
            }
            TableDo::Move => {
                let idle = self.gateways.iter().all(|one| one.sent.is_none());
                if !idle || !self.late.is_empty() {
                    return None;
                }
                let item = self.cells[0].or(self.cells[1]);
                self.cells = [None; 2];
                self.cells[at(after(self.leg))] = item;
                self.recorded = Some(after(self.leg));
                self.publish(self.head.phase);
                self.gateways.iter_mut().for_each(|one| one.view = self.head);
                TableSeen::Done
            }
            TableDo::RecordEntered => {
                if self.entered[usize::from(self.leg)] && self.recorded.is_none() {
                    self.recorded = Some(before(self.leg));
                }
                TableSeen::Done
            }
            TableDo::List => TableSeen::Listed(usize::from(self.recorded == Some(before(self.leg)))),
            TableDo::End => return None,
        };
        self.coordinator.seen(seen);
        Some(())
    }

    fn op(&self, config: &Config, number: usize) -> Option<(Op, usize)> {
        let calls = &config.scripts[self.script];
        let (op, _) = *calls[number].get(self.gateways[number].next)?;
        Some((op, calls.iter().take(number).map(Vec::len).sum::<usize>() + self.gateways[number].next))
    }

    fn ask(&mut self, config: &Config, number: usize) -> Option<()> {
        let (op, call) = self.op(config, number)?;
        let gateway = &self.gateways[number];
        if gateway.sent.is_some() {
            return None;
        }
        let view = gateway.view;
        let act = match view.phase {
            Some(phase) if !op.only_reads() && view.recorded.is_none() => {
                first_write(phase, gateway.knows[usize::from(view.leg)], config.rules)
            }
            _ => FirstWrite::Send,
        };
        self.gateways[number].sent = Some(match act {
            FirstWrite::Wait => return None,
            FirstWrite::EnterFirst => Sent::Enter(view.leg),
            FirstWrite::Send => {
                self.monitor.begin(call, op, false);
                Sent::Own(op, call, at(view.side()))
            }
        });
        Some(())
    }

    fn land(&mut self, sent: Sent) -> Option<(usize, Answer)> {
        match sent {
            Sent::Enter(leg) => {
                self.entered[usize::from(leg)] = true;
                None
            }
            Sent::Own(op, call, cell) => {
                let cell = &mut self.cells[cell];
                let (after, answer) = apply(op, call, *cell);
                *cell = after;
                Some((call, answer))
            }
        }
    }

    fn answer(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        match self.land(sent) {
            // The write goes on under the plan that it has.
            None => {
                let (op, call) = self.op(config, number)?;
                let leg = usize::from(self.gateways[number].view.leg);
                self.gateways[number].knows[leg] = true;
                self.monitor.begin(call, op, false);
                let cell = at(self.gateways[number].view.side());
                self.gateways[number].sent = Some(Sent::Own(op, call, cell));
            }
            Some((call, answer)) => {
                self.fault |= !self.monitor.answer(call, answer);
                self.gateways[number].next += 1;
            }
        }
        Some(())
    }

    fn give_up(&mut self, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        match sent {
            Sent::Own(op, call, _) if op.only_reads() => self.monitor.undo(call),
            _ if self.late.len() >= LATE => return None,
            _ => {
                if let Sent::Own(_, call, _) = sent {
                    self.monitor.give_up(call);
                }
                self.late.push(sent);
                self.late.sort_unstable();
            }
        }
        self.gateways[number].next += 1;
        Some(())
    }

    fn take_over(&mut self, config: &Config) -> Option<()> {
        if self.deaths >= config.deaths || self.coordinator.next() == TableDo::End {
            return None;
        }
        self.deaths += 1;
        // What was turned round and is not on record yet is lost, and done again or not.
        if self.head.leg != self.leg {
            self.leg = self.head.leg;
        }
        self.coordinator = TableCoordinator::new(self.head.phase, config.rules);
        Some(())
    }

    /// Looks through the eyes of every gateway, and of one that has just been started.
    fn check(&mut self) {
        let views: Vec<View> = self.gateways.iter().map(|one| one.view).chain([self.head]).collect();
        self.fault |= views.into_iter().any(|view| !self.monitor.can_hold(self.cells[at(view.side())]));
    }
}

#[derive(Clone, Debug)]
struct Search(Config);

const SAFE: &str = "every answer is explicable, and every read would be";
const DONE: &str = "every call is answered, and the change ends with the item in its new place";

impl Model for Search {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let begin = |script| [None, FIRST].map(|stored| World::begin(&self.0, script, stored));
        (0..self.0.scripts.len()).flat_map(begin).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend([Action::Coordinate, Action::TakeOver, Action::TurnRound]);
        for number in 0..world.gateways.len() {
            use Action::{Acknowledge, Answer, Ask, GiveUp};
            actions.extend([Acknowledge(number), Ask(number), Answer(number), GiveUp(number)]);
        }
        actions.extend((0..world.late.len()).map(Action::Land));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        if world.fault {
            return None;
        }
        let (config, mut next) = (&self.0, world.clone());
        match action {
            Action::Coordinate => next.coordinate()?,
            Action::TakeOver => next.take_over(config)?,
            Action::TurnRound => {
                let phase = next.head.phase.filter(|phase| *phase != TablePhase::Turn)?;
                if next.leg >= config.turns || next.leg != next.head.leg {
                    return None;
                }
                next.leg += 1;
                next.coordinator = TableCoordinator::turning_round(phase, config.rules);
            }
            Action::Acknowledge(number) => {
                let gateway = &mut next.gateways[number];
                if gateway.view == next.head || gateway.sent.is_some() {
                    return None;
                }
                gateway.view = next.head;
            }
            Action::Ask(number) => next.ask(config, number)?,
            Action::Answer(number) => next.answer(config, number)?,
            Action::GiveUp(number) => next.give_up(number)?,
            Action::Land(number) => {
                let late = next.late.remove(number);
                next.land(late);
            }
        }
        next.check();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, world: &World| !world.fault),
            Property::sometimes(DONE, |search: &Search, world: &World| {
                let scripts = &search.0.scripts[world.script];
                let done = world.gateways.iter().zip(scripts).all(|(one, calls)| one.next == calls.len());
                done && world.coordinator.next() == TableDo::End
                    && world.leg == search.0.turns
                    && world.cells[at(before(world.leg))].is_none()
                    && world.cells[at(after(world.leg))].is_some()
            }),
        ]
    }
}

const OPS: [Call; 4] = [(Op::Put, 0), (Op::Add, 0), (Op::Delete, 0), (Op::Get, 0)];

fn config(scripts: Vec<Script>) -> Config {
    Config { scripts, deaths: 0, turns: 0, rules: Rules::ALL }
}

fn exhaust(name: &str, config: &Config) {
    let checker = Search(config.clone()).checker().spawn_bfs().join();
    if let Some(path) = checker.discovery(SAFE) {
        panic!("{name}: something goes wrong: {:#?}", path.into_vec());
    }
    checker.assert_properties();
    println!("{name}: {} states, all of them", checker.unique_state_count());
}

fn breaks(rule: Rule) {
    let scripts = scripts(&OPS, &[2, 1]);
    let config = Config { rules: Rules::ALL.without(rule), ..config(scripts) };
    let checker = Search(config).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery(SAFE).is_some(), "nothing goes wrong without {rule:?}");
    println!("a table without {rule:?}: {} states", checker.unique_state_count());
}

#[test]
fn a_table_turns_under_its_clients() {
    exhaust("a table, 2 + 1 calls", &config(scripts(&OPS, &[2, 1])));
    exhaust("a table, there and back, 1 + 1 calls", &Config { turns: 1, ..config(scripts(&OPS, &[1, 1])) });
    let both = vec![
        script(&[&[Op::Put, Op::Get, Op::Get], &[Op::Put]]),
        script(&[&[Op::Add, Op::Get], &[Op::Delete]]),
    ];
    exhaust("a table, there and back", &Config { turns: 1, ..config(both) });
}

#[test]
fn coordinators_of_a_table_die() {
    exhaust(
        "a table, a coordinator dies, 1 + 1 calls",
        &Config { deaths: 1, ..config(scripts(&OPS, &[1, 1])) },
    );
    let first = vec![script(&[&[Op::Put, Op::Get], &[Op::Put]])];
    exhaust("a table, two coordinators die", &Config { deaths: 2, turns: 1, ..config(first) });
}

#[test]
fn every_rule_of_a_table_is_needed() {
    for rule in [
        Rule::NewKeysEntered,
        Rule::NewKeysHeld,
        Rule::TurnHeld,
        Rule::TablePhasesAwaited,
        Rule::EnteredRecorded,
        Rule::ListedAfterEntering,
    ] {
        breaks(rule);
    }
}
