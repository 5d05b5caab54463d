//! A counter that gets more fragments, while clients add to it, set it, delete it and read it.
//!
//! One counter: a cell for each fragment. Which of them a request concerns says [`heatsink_layout`] itself, by the view of its gateway. Every call is
//! atomic, as the store's transactions are; so are reads of several fragments, which are not: what rests on that is no affair of a widening.
//! Clearing orphans is one step here, and its claims are those of the other configurations.

use std::sync::Arc;

use heatsink_layout::{Hash, InForce, Layout, Moving, Placement, Strategy};
use heatsink_reshard::{Change, Coordinator, Do, Outcome, Phase, Rule, Rules, Seen, Side, State};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::config::{Op, Script, script, scripts};
use crate::monitor::{Answer, CALLS, Item, Monitor, apply};
use crate::world::{FOREIGN, NOW, STRAGGLER, View};

/// How many fragments the counter has at most.
const MOST: usize = 3;
/// A number that a fragment can hold from before.
const ORPHAN: u16 = 5_000;

#[derive(Clone, Debug)]
struct Config {
    scripts: Vec<Script>,
    stored: Vec<Option<u16>>,
    /// What lies under the name of the first new fragment.
    orphan: Option<u16>,
    /// How many fragments there are, change by change.
    shards: &'static [u16],
    late: usize,
    deaths: u8,
    undead: bool,
    cancels: u8,
    acknowledges_early: bool,
    rules: Rules,
    left_out: Vec<Rule>,
    ends: Outcome,
}

impl Config {
    fn new(scripts: Vec<Script>) -> Self {
        assert!(scripts.iter().all(|script| script.iter().map(Vec::len).sum::<usize>() <= CALLS));
        Config {
            scripts,
            stored: vec![None, Some(7)],
            orphan: None,
            shards: &[1, 2],
            late: 1,
            deaths: 0,
            undead: false,
            cancels: 0,
            acknowledges_early: false,
            rules: Rules::ALL,
            left_out: Vec::new(),
            ends: Outcome::Moved,
        }
    }

    fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self.left_out.push(rule);
        self
    }

    /// The layout after so many changes; before the first one the key is whole.
    fn layout(&self, leg: u8) -> Arc<Layout> {
        let shards = self.shards[usize::from(leg)];
        if shards == 1 {
            return Arc::new(Layout::none());
        }
        let strategy = Strategy::Counter { attributes: vec!["n".to_owned()] };
        Arc::new(Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 })
    }

    /// How many fragments a gateway with that view sees and clears, and to how many of them it adds.
    fn fragments(&self, view: View) -> (usize, usize) {
        let in_force = match view.state {
            State::Stable { in_force: Side::Old, .. } => InForce::Stable(self.layout(view.leg)),
            State::Stable { in_force: Side::New, .. } => InForce::Stable(self.layout(view.leg + 1)),
            State::Moving { phase, .. } => {
                Moving { from: self.layout(view.leg), to: self.layout(view.leg + 1), phase, expires: None }
                    .in_force()
            }
        };
        match in_force.placement(None).unwrap() {
            Placement::SumOf { others, adds, .. } => (others.len() + 1, adds.into()),
            _ => (1, 1),
        }
    }
}

/// A call on its way: its gateway's view, and the fragment that it adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Sent {
    planned: u64,
    op: Op,
    call: usize,
    seen: usize,
    fragment: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gateway {
    view: View,
    next: usize,
    sent: Option<Sent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    script: usize,
    leg: u8,
    head: View,
    /// The version that was published before the head.
    before: u64,
    record: heatsink_reshard::Record,
    coordinators: Vec<Coordinator>,
    deaths: u8,
    cancels: u8,
    gateways: Vec<Gateway>,
    /// Sorted.
    late: Vec<Sent>,
    cells: [Option<u16>; MOST],
    monitor: Monitor,
    fault: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Coordinate(usize),
    TakeOver,
    Cancel,
    Acknowledge(usize),
    /// The next call of a gateway is sent, to that fragment if it adds.
    Ask(usize, usize),
    Answer(usize),
    GiveUp(usize),
    Land(usize),
}

fn item(number: Option<u16>) -> Option<Item> {
    number.map(|number| Item { number, expires: false })
}

impl World {
    fn begin(config: &Config, script: usize, stored: Option<u16>) -> Self {
        let record = heatsink_reshard::Record::WHOLE;
        let head = View { version: 0, leg: 0, state: record.state, expires: false };
        let first = usize::from(config.shards[0]);
        let mut cells = [stored, None, None];
        cells[first] = config.orphan;
        World {
            script,
            leg: 0,
            head,
            before: 0,
            record,
            coordinators: vec![Coordinator::begin(record, Change::Widen, STRAGGLER, config.rules).unwrap()],
            deaths: 0,
            cancels: 0,
            gateways: config.scripts[script]
                .iter()
                .map(|_| Gateway { view: head, next: 0, sent: None })
                .collect(),
            late: Vec::new(),
            cells,
            monitor: Monitor::new(item(stored), false),
            fault: false,
        }
    }

    /// The counter, as who sees so many fragments reads it.
    fn sum(&self, seen: usize) -> Option<Item> {
        let others = self.cells[1..seen].iter().flatten();
        item(self.cells[0].map(|base| others.fold(base, |sum, part| sum.wrapping_add(*part))))
    }

    /// What the store does with a call.
    fn land(&mut self, sent: Sent) -> Answer {
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

    fn is_done(&self, config: &Config, number: usize) -> bool {
        self.gateways[number].next == config.scripts[self.script][number].len()
    }

    fn ask(&mut self, config: &Config, number: usize, fragment: usize) -> Option<()> {
        let gateway = &self.gateways[number];
        let (op, _) = *config.scripts[self.script][number].get(gateway.next)?;
        let (seen, adds) = config.fragments(gateway.view);
        let call =
            config.scripts[self.script].iter().take(number).map(Vec::len).sum::<usize>() + gateway.next;
        let first = usize::from(config.shards[0]);
        let (may, fragment) = match op {
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

    fn answer(&mut self, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        let answer = self.land(sent);
        if sent.op != Op::PutForeign && !self.monitor.answer(sent.call, answer) {
            self.fault = true;
        }
        self.gateways[number].next += 1;
        Some(())
    }

    /// Nobody waits any more for the call that was sent, which may land yet.
    fn give_up(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        if sent.op == Op::Get {
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

    fn acknowledge(&mut self, config: &Config, number: usize) -> Option<()> {
        let gateway = &mut self.gateways[number];
        let busy = gateway.sent.is_some() && !config.acknowledges_early;
        if gateway.view == self.head || busy {
            return None;
        }
        gateway.view = self.head;
        Some(())
    }

    fn coordinate(&mut self, config: &Config, number: usize) -> Option<()> {
        let seen = match self.coordinators.get(number)?.next() {
            Do::Write { if_version: Some(version), .. } if version != self.record.version => Seen::Superseded,
            Do::Write { mut record, publish, .. } => {
                record.version = self.record.version + 1;
                self.record = record;
                if publish {
                    self.before = self.head.version;
                    self.head =
                        View { version: record.version, leg: self.leg, state: record.state, expires: false };
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
            Do::EndClaims => Seen::ClaimsEnded,
            Do::Move => unreachable!("nothing moves"),
            Do::Rest(outcome) => return self.rest(config, number, outcome),
        };
        self.coordinators[number].seen(NOW, seen);
        Some(())
    }

    fn rest(&mut self, config: &Config, number: usize, outcome: Outcome) -> Option<()> {
        if outcome == Outcome::Superseded && number + 1 < self.coordinators.len() {
            self.coordinators.remove(number);
            return Some(());
        }
        if outcome != Outcome::Moved || usize::from(self.leg) + 2 >= config.shards.len() {
            return None;
        }
        self.coordinators[number] = Coordinator::begin(self.record, Change::Widen, STRAGGLER, config.rules)?;
        self.leg += 1;
        // The layout in force is the old one of the next change.
        if let State::Stable { settled, .. } = self.record.state {
            self.record.state = State::Stable { in_force: Side::Old, settled };
        }
        Some(())
    }

    fn take_over(&mut self, config: &Config) -> Option<()> {
        if self.deaths >= config.deaths {
            return None;
        }
        let taken = Coordinator::take_over(self.record, Change::Widen, STRAGGLER, config.rules)?;
        self.deaths += 1;
        if !config.undead {
            self.coordinators.clear();
        }
        self.coordinators.push(taken);
        Some(())
    }

    fn cancel(&mut self, config: &Config) -> Option<()> {
        if self.cancels >= config.cancels || !self.coordinators.last_mut()?.cancel() {
            return None;
        }
        self.cancels += 1;
        Some(())
    }

    /// Looks through the eyes of every gateway, and of one that has just been started.
    fn check(&mut self, config: &Config) {
        let views: Vec<View> = self.gateways.iter().map(|gateway| gateway.view).chain([self.head]).collect();
        self.fault |=
            views.into_iter().any(|view| !self.monitor.can_hold(self.sum(config.fragments(view).0)));
    }
}

#[derive(Clone, Debug)]
struct Search(Config);

const SAFE: &str = "every answer is explicable, and every read would be";
const DONE: &str = "every call is answered, and the last change ends";

impl Model for Search {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let config = &self.0;
        let begin = |script| config.stored.iter().map(move |stored| World::begin(config, script, *stored));
        (0..config.scripts.len()).flat_map(begin).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend((0..world.coordinators.len()).map(Action::Coordinate));
        actions.extend([Action::TakeOver, Action::Cancel]);
        for (number, gateway) in world.gateways.iter().enumerate() {
            actions.push(Action::Acknowledge(number));
            match gateway.sent {
                None => actions.extend((0..MOST).map(|fragment| Action::Ask(number, fragment))),
                Some(_) => actions.extend([Action::Answer(number), Action::GiveUp(number)]),
            }
        }
        actions.extend((0..world.late.len()).map(Action::Land));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        if world.fault {
            return None;
        }
        let (config, mut next) = (&self.0, world.clone());
        match action {
            Action::Coordinate(number) => next.coordinate(config, number)?,
            Action::TakeOver => next.take_over(config)?,
            Action::Cancel => next.cancel(config)?,
            Action::Acknowledge(number) => next.acknowledge(config, number)?,
            Action::Ask(number, fragment) => next.ask(config, number, fragment)?,
            Action::Answer(number) => next.answer(number)?,
            Action::GiveUp(number) => next.give_up(config, number)?,
            Action::Land(number) => {
                let late = next.late.remove(number);
                next.land(late);
            }
        }
        next.check(config);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, world: &World| !world.fault),
            Property::sometimes(DONE, |search: &Search, world: &World| {
                let ended = world.coordinators.last().map(|last| last.next());
                ended == Some(Do::Rest(search.0.ends))
                    && (search.0.ends != Outcome::Moved
                        || usize::from(world.leg) + 2 == search.0.shards.len())
                    && (0..world.gateways.len()).all(|gateway| world.is_done(&search.0, gateway))
            }),
        ]
    }
}

fn exhaust(name: &str, config: &Config) {
    let checker = Search(config.clone()).checker().spawn_bfs().join();
    if let Some(path) = checker.discovery(SAFE) {
        panic!("{name}: something goes wrong: {:#?}", path.into_vec());
    }
    checker.assert_properties();
    let beginnings = config.scripts.len() * config.stored.len();
    println!("{name}: {beginnings} beginnings, {} states, all of them", checker.unique_state_count());
}

fn breaks(name: &str, config: &Config) {
    let checker =
        Search(config.clone()).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let states = checker.unique_state_count();
    let Some(path) = checker.discovery(SAFE) else {
        panic!("{name}: nothing goes wrong in {states} states without {:?}", config.left_out)
    };
    println!("{name} without {:?}: {states} states", config.left_out);
    if std::env::var_os("HEATSINK_TRACE").is_some() {
        for (world, action) in path.into_vec() {
            println!(
                "    {:?} {:?} late {:?}\n      {action:?}",
                world.cells, world.record.state, world.late
            );
        }
    }
}

const ALL: [(Op, usize); 4] = [(Op::Count, 0), (Op::Put, 0), (Op::Delete, 0), (Op::Get, 0)];

fn pairs() -> Config {
    Config::new(scripts(&ALL, &[1, 1]))
}

/// A delete that leaves a part behind, which comes to light when the counter is made again; and a put that does, beside a read.
fn left_behind() -> Vec<Script> {
    vec![
        script(&[&[Op::Delete], &[Op::Count, Op::Get, Op::Count]]),
        script(&[&[Op::Put], &[Op::Count, Op::Get]]),
    ]
}

#[test]
fn a_counter_is_widened_under_its_clients() {
    exhaust("widening, 1 + 1 calls", &pairs());
    exhaust("widening, 2 + 1 calls", &Config::new(scripts(&ALL, &[2, 1])));
    exhaust("widening 2 to 3, 1 + 1 calls", &Config { shards: &[2, 3], ..pairs() });
    exhaust("widening twice, 1 + 1 calls", &Config { shards: &[1, 2, 3], ..pairs() });
}

#[test]
fn readers_are_widened_before_writers_and_late_calls_waited_for() {
    for rule in [Rule::WidenReadersFirst, Rule::AcknowledgementsAwaited] {
        breaks("widening, 1 + 1 calls", &pairs().without(rule));
    }
    for one in left_behind() {
        breaks("widening, what is left behind", &Config::new(vec![one]).without(Rule::WidenAfterStragglers));
    }
    breaks("widening, results of old plans", &Config { acknowledges_early: true, late: 0, ..pairs() });
}

#[test]
fn the_next_widening_waits_for_the_last() {
    let twice = Config { shards: &[1, 2, 3], ..Config::new(left_behind()) };
    exhaust("widening twice, what is left behind", &twice);
    breaks("widening twice, what is left behind", &twice.without(Rule::Settled));
}

#[test]
fn names_of_new_fragments_are_proved_empty() {
    let calls = [(Op::Count, 0), (Op::Get, 0), (Op::Delete, 0)];
    let orphan = Config { orphan: Some(ORPHAN), ..Config::new(scripts(&calls, &[1])) };
    exhaust("widening over an orphan, 1 call", &orphan);
    breaks("widening over an orphan, 1 call", &orphan.without(Rule::Surveyed));
    let foreign = Config::new(vec![script(&[&[Op::PutForeign, Op::Count]])]);
    exhaust("widening, an item of another key, late", &foreign);
    breaks("widening, an item of another key, late", &foreign.without(Rule::SurveyAfterStragglers));
    let ends = Config { ends: Outcome::Back, ..Config::new(vec![script(&[&[Op::PutForeign]])]) };
    exhaust("widening, an item of another key", &ends);
}

#[test]
fn a_widening_is_cancelled_until_it_is_stable() {
    let cancelled = Config { cancels: 1, ends: Outcome::Back, ..pairs() };
    exhaust("widening, cancelled, 1 + 1 calls", &cancelled);
    // One coordinator cannot be late for itself: after the publication nothing is taken back.
    let mut one =
        Coordinator::begin(heatsink_reshard::Record::WHOLE, Change::Widen, STRAGGLER, Rules::ALL).unwrap();
    while !matches!(one.record().state, State::Stable { in_force: Side::New, .. }) {
        let seen = match one.next() {
            Do::Write { .. } => Seen::Written,
            Do::Acknowledge { .. } => Seen::Acknowledged { clean: true },
            Do::Survey => Seen::Surveyed { foreign: 0, orphans: 0 },
            Do::EndClaims => Seen::ClaimsEnded,
            other => panic!("{other:?}"),
        };
        one.seen(NOW, seen);
    }
    assert!(!one.cancel());
}

#[test]
fn coordinators_of_a_widening_die() {
    let dies = |scripts| Config { deaths: 1, ..Config::new(scripts) };
    exhaust("widening, a coordinator dies, 1 + 1 calls", &dies(scripts(&ALL, &[1, 1])));
    let undead = Config { undead: true, cancels: 1, ..dies(scripts(&ALL, &[1, 1])) };
    breaks("widening, a coordinator taken for dead", &undead.without(Rule::RecordByVersion));
    breaks("widening, a coordinator dies", &dies(left_behind()).without(Rule::TakeoverUnclean));
    let early = vec![script(&[&[Op::Get], &[Op::Count]]), script(&[&[Op::Delete], &[Op::Count]])];
    breaks("widening, a coordinator dies", &dies(early).without(Rule::TakeoverWaits));
}

#[test]
#[ignore = "a quarter of a minute of a core"]
fn long_coordinator_of_a_widening_that_was_taken_for_dead() {
    let undead = Config { deaths: 1, undead: true, cancels: 1, ..Config::new(scripts(&ALL, &[1, 1])) };
    exhaust("widening, a coordinator taken for dead, 1 + 1 calls", &undead);
}

#[test]
fn prepare_adds_to_no_new_fragment() {
    let view =
        |phase| View { version: 1, leg: 0, state: State::Moving { phase, closing: false }, expires: false };
    let config = pairs();
    assert_eq!(config.fragments(view(Phase::Reserve)), (1, 1));
    assert_eq!(config.fragments(view(Phase::Prepare)), (2, 1));
}
