//! The changes in which nothing moves: a counter that gets more fragments (`counters`), and buckets
//! from one on that get another number of shards (`steps`), while clients write, delete and read.
//!
//! One counter: a cell for each fragment. Or one item of one bucket: a cell for each shard in which
//! it may lie. Which of them a request concerns says [`heatsink_layout`] itself, by the view of its
//! gateway. Every call is atomic, as the store's transactions are; so are reads of several
//! fragments, which are not: what rests on that is no affair of a widening. Clearing orphans is one
//! step here, and its claims are those of the other configurations.

use std::sync::{Arc, OnceLock};

use heatsink_layout::{
    Bucket, By, Epoch, Granularity, Hash, InForce, Layout, Moving, Placement, SortKey, Strategy, Time,
};
use heatsink_reshard::{Change, Coordinator, Do, Outcome, Rule, Rules, Seen, Side, State};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::config::{Op, Script};
use crate::monitor::{Answer, CALLS, Item, Monitor, apply};
use crate::world::{FOREIGN, NOW, STRAGGLER, View};

/// How many fragments the counter has at most.
const MOST: usize = 3;
/// A number that a fragment can hold from before.
pub const ORPHAN: u16 = 5_000;
/// A number that no item holds.
const TWICE: u16 = 6_000;

/// The bucket of the item, where it lies in one.
pub const DAY: u8 = 20;

#[derive(Clone, Debug)]
pub struct Config {
    pub scripts: Vec<Script>,
    pub stored: Vec<Option<u16>>,
    /// What lies under the name of the first new fragment.
    pub orphan: Option<u16>,
    /// How many fragments there are, change by change; or how many shards a bucket has.
    pub shards: &'static [u16],
    /// From which bucket on each change holds; `None` for a counter.
    pub steps: Option<&'static [u8]>,
    /// Whether writes wait that put an item into such a bucket: a rule of `heatsink_layout` that
    /// can be left out.
    pub holds: bool,
    pub late: usize,
    pub deaths: u8,
    pub undead: bool,
    pub cancels: u8,
    pub acknowledges_early: bool,
    pub rules: Rules,
    pub left_out: Vec<Rule>,
    pub ends: Outcome,
    /// The sort key of the item of a bucket.
    pub sort: OnceLock<String>,
}

impl Config {
    pub fn new(scripts: Vec<Script>) -> Self {
        assert!(scripts.iter().all(|script| script.iter().map(Vec::len).sum::<usize>() <= CALLS));
        Config {
            scripts,
            stored: vec![None, Some(7)],
            orphan: None,
            shards: &[1, 2],
            steps: None,
            holds: true,
            late: 1,
            deaths: 0,
            undead: false,
            cancels: 0,
            acknowledges_early: false,
            rules: Rules::ALL,
            left_out: Vec::new(),
            ends: Outcome::Moved,
            sort: OnceLock::new(),
        }
    }

    pub fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self.left_out.push(rule);
        self
    }

    /// The layout after so many changes; before the first one the key is whole, or has one number
    /// of shards in every bucket.
    fn layout(&self, leg: u8) -> Arc<Layout> {
        if let Some(steps) = self.steps {
            let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
            let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
            let first = Layout { strategy, shards: self.shards[0], hash: Hash::JumpXxh3, version: 1 };
            let changes = steps.iter().zip(&self.shards[1..]).take(leg.into());
            return Arc::new(
                changes.fold(first, |layout, (day, shards)| layout.stepped(bucket(*day), *shards).unwrap()),
            );
        }
        let shards = self.shards[usize::from(leg)];
        if shards == 1 {
            return Arc::new(Layout::none());
        }
        let strategy = Strategy::Counter { attributes: vec!["n".to_owned()] };
        Arc::new(Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 })
    }

    fn change(&self) -> Change {
        if self.steps.is_some() { Change::Step } else { Change::Widen }
    }

    fn in_force(&self, view: View) -> InForce {
        match view.state {
            State::Stable { in_force: Side::Old, .. } => InForce::Stable(self.layout(view.leg)),
            State::Stable { in_force: Side::New, .. } => InForce::Stable(self.layout(view.leg + 1)),
            State::Moving { phase, .. } => Moving {
                from: self.layout(view.leg),
                to: self.layout(view.leg + 1),
                phase,
                expires: None,
                high_water: None,
            }
            .in_force(),
        }
    }

    /// How many fragments a gateway with that view sees and clears, and to how many of them it
    /// adds.
    pub fn fragments(&self, view: View) -> (usize, usize) {
        match self.in_force(view).placement(None).unwrap() {
            Some(Placement::SumOf { others, adds, .. }) => (others.len() + 1, adds.into()),
            _ => (1, 1),
        }
    }

    /// The cell in which a gateway with that view looks for the item of a bucket, and whether
    /// writes that may make it wait.
    pub fn slot(&self, view: View) -> (usize, bool) {
        let in_force = self.in_force(view);
        let sort = self.sort.get_or_init(|| self.sort());
        let slot = in_force.placement(Some(SortKey::N(sort))).unwrap().unwrap().first();
        (slot.shard.into(), in_force.holds(bucket(DAY)))
    }

    /// A sort key whose item lies in the last shard, however many there are.
    fn sort(&self) -> String {
        let is_last = |sort: &String| {
            let last = |leg: u8| {
                let (layout, day) = (self.layout(leg), bucket(DAY));
                layout.shard_of(Some(SortKey::N(sort))) + 1 == layout.shards_in(day)
            };
            (0..self.shards.len()).all(|leg| last(u8::try_from(leg).unwrap()))
        };
        let begins = bucket(DAY).start();
        (begins..begins + 86_400).map(|second| second.to_string()).find(is_last).unwrap()
    }
}

fn bucket(day: u8) -> Bucket {
    Bucket::at(i64::from(day) * 86_400, Granularity::Day).unwrap()
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
        let head = View::plain(0, 0, record.state);
        let first = usize::from(config.shards[0]);
        let mut cells = [None; MOST];
        cells[if config.steps.is_some() { config.slot(head).0 } else { 0 }] = stored;
        if config.orphan.is_some() {
            cells[first] = config.orphan;
        }
        World {
            script,
            leg: 0,
            head,
            before: 0,
            record,
            coordinators: vec![Coordinator::begin(record, config.change(), STRAGGLER, config.rules).unwrap()],
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

    /// The item of a bucket as a Scan meets it, in whichever shard; twice in two of them.
    fn scanned(&self) -> Option<Item> {
        let found: Vec<u16> = self.cells.iter().flatten().copied().collect();
        item(if found.len() > 1 { Some(TWICE) } else { found.first().copied() })
    }

    /// What the store does with a call.
    fn land(&mut self, config: &Config, sent: Sent) -> Answer {
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

    fn is_done(&self, config: &Config, number: usize) -> bool {
        self.gateways[number].next == config.scripts[self.script][number].len()
    }

    fn ask(&mut self, config: &Config, number: usize, fragment: usize) -> Option<()> {
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

    fn answer(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
        let answer = self.land(config, sent);
        if sent.op != Op::PutForeign && !self.monitor.answer(sent.call, answer) {
            self.fault = true;
        }
        self.gateways[number].next += 1;
        Some(())
    }

    /// Nobody waits any more for the call that was sent, which may land yet.
    fn give_up(&mut self, config: &Config, number: usize) -> Option<()> {
        let sent = self.gateways[number].sent.take()?;
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
            Do::EndClaims => Seen::ClaimsEnded,
            Do::MarkHighWater | Do::Move => unreachable!("nothing moves"),
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
        self.coordinators[number] =
            Coordinator::begin(self.record, config.change(), STRAGGLER, config.rules)?;
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
        let taken = Coordinator::take_over(self.record, config.change(), STRAGGLER, config.rules)?;
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
        let seen = |view| match config.steps {
            Some(_) => item(self.cells[config.slot(view).0]),
            None => self.sum(config.fragments(view).0),
        };
        self.fault |= views.into_iter().any(|view| !self.monitor.can_hold(seen(view)));
        self.fault |= config.steps.is_some() && !self.monitor.can_hold(self.scanned());
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
            Action::Answer(number) => next.answer(config, number)?,
            Action::GiveUp(number) => next.give_up(config, number)?,
            Action::Land(number) => {
                let late = next.late.remove(number);
                next.land(config, late);
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

pub fn exhaust(name: &str, config: &Config) {
    let checker = Search(config.clone()).checker().spawn_bfs().join();
    if let Some(path) = checker.discovery(SAFE) {
        panic!("{name}: something goes wrong: {:#?}", path.into_vec());
    }
    checker.assert_properties();
    let beginnings = config.scripts.len() * config.stored.len();
    println!("{name}: {beginnings} beginnings, {} states, all of them", checker.unique_state_count());
}

pub fn breaks(name: &str, config: &Config) {
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
