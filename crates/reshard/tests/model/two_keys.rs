//! Two keys of one table that move beside each other, each with its own record and coordinator,
//! whose steps may become known by one publication; and requests that touch both: transactions,
//! batches, reads of both in one call, Scans. A small world of its own: every call is answered, and
//! both gateways live.
//!
//! Not here: one key beside late calls, deaths and workers (`world`).

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use heatsink_env::MonotonicInstant;
use heatsink_reshard::{
    Access, Act, Change, Coordinator, Do, Outcome, Phase, PointRead, Record, Rules, Seen, Side, State, act,
};

/// Larger than any state space here: to come to it is a fault of the test.
const LIMIT: usize = 3_000_000;

/// A call of a client. The writes of a script write 1, 2 and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    /// Puts both items in one transaction.
    Transact,
    /// Puts one item, as a batch sends it.
    Put(usize),
    /// Reads both items in one transaction.
    Get,
    /// Reads one item after the other, as a Scan reads keys that move.
    Scan,
}

/// What is left out.
#[derive(Clone, Copy, Debug, Default)]
struct Without {
    /// A step is served by a publication that was sent before its record was written.
    own_publication: bool,
    /// A gateway acknowledges while calls of the other key are under way.
    drain_of_all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    record: Record,
    coordinator: Coordinator,
    old: Option<u8>,
    new: Option<u8>,
    /// The publication that its step waits for.
    waits: Option<u8>,
    /// The newest value that a client was told is written.
    told: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Running {
    plan: [State; 2],
    /// What was told when it began.
    told: [u8; 2],
    at: At,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    /// The next key whose old copy is copied, or cleared.
    Pulling {
        key: usize,
        copied: bool,
    },
    Writing,
    /// A Scan, at this key.
    Scanning(usize, PointRead<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gateway {
    view: [State; 2],
    epoch: u8,
    done: usize,
    running: Option<Running>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    keys: [Key; 2],
    head: ([State; 2], u8),
    /// The first writes, the second reads.
    gateways: [Gateway; 2],
}

fn phase(state: State) -> Option<Phase> {
    match state {
        State::Moving { phase, .. } => Some(phase),
        State::Stable { .. } => None,
    }
}

/// What a request does with a key that it knows so.
fn does(state: State, access: Access) -> Act {
    match state {
        State::Moving { phase, .. } => act(phase, access, false, Rules::ALL),
        State::Stable { in_force: Side::Old, .. } => Act::Old,
        State::Stable { in_force: Side::New, .. } => Act::New,
    }
}

impl Call {
    fn keys(self) -> std::ops::Range<usize> {
        match self {
            Call::Put(key) => key..key + 1,
            _ => 0..2,
        }
    }

    fn access(self) -> Access {
        match self {
            Call::Put(_) => Access::BlindPut { leaves_ttl: false },
            Call::Transact => Access::Dependent,
            Call::Get | Call::Scan => Access::Read,
        }
    }
}

impl World {
    fn new() -> World {
        let coordinator =
            Coordinator::begin(Record::WHOLE, Change::Move, Duration::ZERO, Rules::ALL).unwrap();
        let key = Key { record: Record::WHOLE, coordinator, old: Some(0), new: None, waits: None, told: 0 };
        let view = [Record::WHOLE.state; 2];
        let gateway = Gateway { view, epoch: 0, done: 0, running: None };
        World { keys: [key.clone(), key], head: (view, 0), gateways: [gateway.clone(), gateway] }
    }

    /// All worlds that one step leads to.
    fn next(&self, scripts: &[Vec<Call>; 2], without: Without) -> Vec<World> {
        let mut next = Vec::new();
        for key in 0..2 {
            self.coordinate(key, without, &mut next);
        }
        for gateway in 0..2 {
            self.learn(gateway, scripts, without, &mut next);
            self.serve(gateway, scripts, &mut next);
        }
        next
    }

    /// A step of a key's coordinator.
    fn coordinate(&self, key: usize, without: Without, next: &mut Vec<World>) {
        let mut world = self.clone();
        let own = &mut world.keys[key];
        let seen = match own.coordinator.next() {
            Do::Write { record, .. } => {
                own.record = record;
                Seen::Written
            }
            Do::Acknowledge { .. } => match own.waits {
                None => return self.publish(key, without, next),
                Some(epoch) if self.gateways.iter().all(|gateway| gateway.epoch >= epoch) => {
                    own.waits = None;
                    Seen::Acknowledged { clean: true }
                }
                Some(_) => return,
            },
            Do::Wait { .. } => Seen::Waited,
            Do::Survey => Seen::Surveyed { foreign: 0, orphans: 0 },
            Do::Clear => Seen::Cleared,
            Do::MarkHighWater => Seen::Marked,
            Do::EndClaims => Seen::ClaimsEnded,
            Do::Move => match (own.old, own.new) {
                (None, _) => Seen::Moved { left: 0 },
                (Some(item), None) => {
                    own.new = Some(item);
                    return next.push(world);
                }
                (Some(_), Some(_)) => {
                    own.old = None;
                    return next.push(world);
                }
            },
            Do::Rest(_) => return,
        };
        own.coordinator.seen(MonotonicInstant(0), seen);
        next.push(world);
    }

    /// Publishes what is on record: for this key, or for both where the other one waits, too.
    fn publish(&self, key: usize, without: Without, next: &mut Vec<World>) {
        let mut world = self.clone();
        let epoch = self.head.1 + 1;
        world.head = ([0, 1].map(|key| self.keys[key].record.state), epoch);
        world.keys[key].waits = Some(epoch);
        let other = &mut world.keys[1 - key];
        if matches!(other.coordinator.next(), Do::Acknowledge { .. }) && other.waits.is_none() {
            let mut both = world.clone();
            both.keys[1 - key].waits = Some(epoch);
            next.push(both);
        }
        next.push(world);
        if without.own_publication && self.head.1 > 0 {
            let mut early = self.clone();
            early.keys[key].waits = Some(self.head.1);
            next.push(early);
        }
    }

    /// A gateway applies the head, and acknowledges it.
    fn learn(&self, at: usize, scripts: &[Vec<Call>; 2], without: Without, next: &mut Vec<World>) {
        let gateway = &self.gateways[at];
        let changed = |key: usize| self.head.0[key] != gateway.view[key];
        let drained = match (&gateway.running, scripts[at].get(gateway.done)) {
            (Some(_), Some(call)) => {
                without.drain_of_all && changed(0) != changed(1) && call.keys().len() == 2
            }
            _ => true,
        };
        if drained && gateway.epoch < self.head.1 {
            let mut world = self.clone();
            (world.gateways[at].view, world.gateways[at].epoch) = self.head;
            next.push(world);
        }
    }

    /// The next step of a gateway's call.
    fn serve(&self, at: usize, scripts: &[Vec<Call>; 2], next: &mut Vec<World>) {
        let Some(call) = scripts[at].get(self.gateways[at].done).copied() else { return };
        let mut world = self.clone();
        let gateway = &mut world.gateways[at];
        let Some(running) = &mut gateway.running else {
            let plan = gateway.view;
            if call.keys().any(|key| does(plan[key], call.access()) == Act::Wait) {
                return;
            }
            let at = match call {
                Call::Scan => At::Scanning(0, PointRead::new(Rules::ALL)),
                _ => At::Pulling { key: 0, copied: false },
            };
            gateway.running = Some(Running { plan, told: [0, 1].map(|key| self.keys[key].told), at });
            return next.push(world);
        };
        let plan = running.plan;
        let value = u8::try_from(self.gateways[at].done + 1).unwrap();
        match &mut running.at {
            At::Pulling { key, copied } => {
                let pulls = |key: usize| does(plan[key], call.access()) == Act::PullThenNew;
                match call.keys().find(|one| *one >= *key && pulls(*one)) {
                    None => running.at = At::Writing,
                    Some(pulled) => {
                        let of = &mut world.keys[pulled];
                        let over = *copied;
                        match over {
                            false if of.new.is_none() => of.new = of.old,
                            true if of.new.is_some() => of.old = None,
                            _ => {}
                        }
                        (*key, *copied) = (pulled + usize::from(over), !over);
                    }
                }
                return next.push(world);
            }
            At::Writing if matches!(call, Call::Get) => {
                let seen = [0, 1].map(|key| self.read_at_once(key, plan[key]));
                assert_eq!(seen[0], seen[1], "a transaction is read in parts: {self:?}");
                self.is_fresh(running, 0, seen[0]);
                self.is_fresh(running, 1, seen[1]);
            }
            At::Writing => {
                for key in call.keys() {
                    let of = &mut world.keys[key];
                    match does(plan[key], call.access()) {
                        Act::Old => of.old = Some(value),
                        _ => of.new = Some(value),
                    }
                    of.told = value;
                }
            }
            At::Scanning(key, read) => {
                let at = *key;
                let seen = match does(plan[at], Access::Read) {
                    Act::Old => Some(self.keys[at].old),
                    Act::New => Some(self.keys[at].new),
                    _ => {
                        let copy = match read.call() {
                            Side::Old => self.keys[at].old,
                            Side::New => self.keys[at].new,
                        };
                        read.answered(copy)
                    }
                };
                let Some(seen) = seen else { return next.push(world) };
                self.is_fresh(running, at, seen);
                if at == 0 {
                    running.at = At::Scanning(1, PointRead::new(Rules::ALL));
                    return next.push(world);
                }
            }
        }
        let gateway = &mut world.gateways[at];
        gateway.running = None;
        gateway.done += 1;
        next.push(world);
    }

    /// An item as a transaction sees it, which names both copies.
    fn read_at_once(&self, key: usize, plan: State) -> Option<u8> {
        let Key { old, new, .. } = self.keys[key];
        match does(plan, Access::Read) {
            Act::Old => old,
            Act::New => new,
            _ => new.or(old),
        }
    }

    fn is_fresh(&self, running: &Running, key: usize, seen: Option<u8>) {
        let told = running.told[key];
        assert!(
            seen.is_some_and(|seen| seen >= told),
            "{told} was told of key {key}, {seen:?} is seen: {self:?}"
        );
    }

    /// Where nothing more happens, all is done, and each item lies once, as it was last written.
    fn is_at_its_end(&self, scripts: &[Vec<Call>; 2]) {
        for (gateway, script) in self.gateways.iter().zip(scripts) {
            assert_eq!(gateway.done, script.len(), "a call waits for ever: {self:?}");
        }
        for key in &self.keys {
            assert_eq!(key.coordinator.next(), Do::Rest(Outcome::Moved), "{self:?}");
            assert_eq!((key.old, key.new), (None, Some(key.told)), "{self:?}");
            assert_eq!(phase(key.record.state), None);
        }
    }
}

/// Searches all worlds that the scripts lead to. Returns how many there are.
fn search(scripts: &[Vec<Call>; 2], without: Without) -> usize {
    let first = World::new();
    let mut known: HashSet<World> = [first.clone()].into();
    let mut left: VecDeque<World> = [first].into();
    while let Some(world) = left.pop_front() {
        let next = world.next(scripts, without);
        if next.is_empty() {
            world.is_at_its_end(scripts);
        }
        for world in next {
            if known.insert(world.clone()) {
                left.push_back(world);
            }
        }
        assert!(known.len() < LIMIT, "more than {LIMIT} states");
    }
    known.len()
}

/// Every writer beside every reader.
fn scripts() -> Vec<[Vec<Call>; 2]> {
    let writers =
        [vec![Call::Transact], vec![Call::Put(0), Call::Put(1)], vec![Call::Transact, Call::Put(1)]];
    let readers = [vec![Call::Scan], vec![Call::Get]];
    // What reads both at once is held against what writes both at once.
    let fits = |writer: &[Call], reader: &[Call]| {
        reader != [Call::Get] || writer.iter().all(|call| *call == Call::Transact)
    };
    let beside = |writer: &Vec<Call>| {
        readers
            .iter()
            .filter(|reader| fits(writer, reader))
            .map(|reader| [writer.clone(), reader.clone()])
            .collect::<Vec<_>>()
    };
    writers.iter().flat_map(beside).collect()
}

#[test]
fn requests_of_both_beside_two_keys_that_move() {
    let states: usize = scripts().iter().map(|scripts| search(scripts, Without::default())).sum();
    println!("two keys: {states} states");
}

#[test]
#[should_panic(expected = "")]
fn a_step_needs_a_publication_of_its_own_record() {
    let without = Without { own_publication: true, ..Without::default() };
    scripts().iter().for_each(|scripts| assert!(search(scripts, without) > 0));
}

#[test]
#[should_panic(expected = "")]
fn a_step_waits_for_calls_that_touch_the_other_key_too() {
    let without = Without { drain_of_all: true, ..Without::default() };
    scripts().iter().for_each(|scripts| assert!(search(scripts, without) > 0));
}
