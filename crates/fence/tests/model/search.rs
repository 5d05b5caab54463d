//! The search itself: every order of every action, by stateright.

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::config::Config;
use crate::request::Request;
use crate::world::World;

/// How many times a step may be taken, to a new state or to one that is known, before the search of
/// a configuration gives up. None comes near it.
const LIMIT: usize = 20_000_000;

/// What can happen next. Numbers are those of gateways, changers and late calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Look(usize),
    Looked(usize),
    Register(usize),
    Beat(usize),
    BeatUnanswered(usize),
    Describe(usize),
    DescribeFormer(usize),
    ReadName(usize),
    ReadRecord(usize),
    Conclude(usize),
    Admit(usize),
    Send(usize),
    Land(usize),
    Deliver(usize),
    GiveUp(usize),
    LandLate(usize),
    Change(usize),
    ChangeFormer(usize),
    Remove(usize, usize),
    End(usize),
    Mark(usize),
    Other,
}

/// The safety rule.
const SAFE: &str = "answers are explicable, no physical key is seen, no item is misplaced";
/// Keeps a configuration from holding for want of anything happening.
const DONE: &str = "every operation is answered and every change goes to its end";

/// A configuration as stateright sees it.
#[derive(Clone, Debug)]
struct Search(Config);

impl Model for Search {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::begin(&self.0)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let config = &self.0;
        if world.now < config.horizon {
            actions.push(Action::Tick);
        }
        if let Some(number) = config.ends {
            actions.push(Action::Mark(number));
        }
        for (number, gateway) in world.gateways.iter().enumerate() {
            if gateway.ended {
                continue;
            }
            if config.ends == Some(number) {
                actions.push(Action::End(number));
            }
            actions.push(if gateway.look.is_some() { Action::Looked(number) } else { Action::Look(number) });
            if gateway.member.is_unregistered() {
                actions.push(Action::Register(number));
            }
            actions.push(Action::Beat(number));
            if config.beats_lost > gateway.beats_lost {
                actions.push(Action::BeatUnanswered(number));
            }
            match &gateway.request {
                Request::Idle => {
                    actions.extend([Action::Admit(number), Action::Describe(number)]);
                    if config.stale {
                        actions.push(Action::DescribeFormer(number));
                    }
                }
                Request::LookUp { .. } => {
                    let steps =
                        [Action::ReadName(number), Action::ReadRecord(number), Action::Conclude(number)];
                    actions.extend(steps);
                }
                Request::Admitted { .. } => actions.push(Action::Send(number)),
                Request::Sent { .. } => actions.extend([Action::Land(number), Action::GiveUp(number)]),
                Request::Landed { .. } => actions.push(Action::Deliver(number)),
            }
        }
        actions.extend((0..world.store.late.len()).map(Action::LandLate));
        for number in 0..world.changers.len() {
            actions.push(Action::Change(number));
            if config.stale {
                actions.push(Action::ChangeFormer(number));
            }
            if config.heartbeats || config.ends.is_some() {
                actions.extend((0..world.gateways.len()).map(|gateway| Action::Remove(number, gateway)));
            }
        }
        actions.push(Action::Other);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        if world.fault.is_some() {
            return None;
        }
        let config = &self.0;
        let mut next = world.clone();
        match action {
            Action::Tick => next.tick(config),
            Action::Look(number) => next.look(config, number)?,
            Action::Looked(number) => next.looked(config, number)?,
            Action::Register(number) => next.register(config, number)?,
            Action::Beat(number) => next.beat(config, number, true)?,
            Action::BeatUnanswered(number) => next.beat(config, number, false)?,
            Action::Describe(number) => next.describe(config, number, false)?,
            Action::DescribeFormer(number) => next.describe(config, number, true)?,
            Action::ReadName(number) => next.read_name(config, number)?,
            Action::ReadRecord(number) => next.read_record(config, number)?,
            Action::Conclude(number) => next.conclude(config, number)?,
            Action::Admit(number) => next.admit(config, number)?,
            Action::Send(number) => next.send(config, number)?,
            Action::Land(number) => next.land(config, number)?,
            Action::Deliver(number) => next.deliver(config, number)?,
            Action::GiveUp(number) => next.give_up(config, number)?,
            Action::LandLate(call) => next.land_late(config, call)?,
            Action::Change(number) => next.change(config, number, false)?,
            Action::ChangeFormer(number) => next.change(config, number, true)?,
            Action::Remove(number, gateway) => next.remove(config, number, gateway)?,
            Action::End(number) => next.end(config, number)?,
            Action::Mark(number) => next.mark(config, number)?,
            Action::Other => next.other(*config.others.get(usize::from(world.others))?)?,
        }
        next.acknowledge_idle(config);
        next.check_places(config);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, world: &World| world.fault.is_none()),
            Property::sometimes(DONE, |search: &Search, world: &World| {
                let operations = search.0.gateways.iter().map(|gateway| gateway.ops.len()).sum::<usize>();
                usize::from(world.answered) == operations
                    && world
                        .changers
                        .iter()
                        .zip(&search.0.changers)
                        .all(|(changer, all)| changer.done == all.len())
                    && usize::from(world.finished) >= search.0.least_finished
            }),
        ]
    }
}

/// Searches a configuration to its end. Fails when something goes wrong in any order, when the
/// limit is hit, or when no order gets through.
pub fn exhaust(name: &str, config: &Config) {
    let checker = Search(config.clone()).checker().target_state_count(LIMIT).spawn_bfs().join();
    // Where the limit is hit, stateright says that it is done.
    assert!(checker.state_count() < LIMIT, "{name}: not exhausted in {LIMIT} steps");
    println!("{name}: {} states, all of them", checker.unique_state_count());
    checker.assert_properties();
}

/// Searches a configuration in which a rule is left out. Fails unless something goes wrong.
pub fn breaks(name: &str, config: &Config) {
    let search = Search(config.clone());
    let search = search.checker().target_state_count(LIMIT).finish_when(HasDiscoveries::AnyFailures);
    let checker = search.spawn_bfs().join();
    let states = checker.unique_state_count();
    assert!(checker.state_count() < LIMIT, "{name}: not exhausted in {LIMIT} steps");
    let Some(path) = checker.discovery(SAFE) else {
        panic!("{name}: nothing goes wrong in {states} states without {:?}", config.left_out)
    };
    let fault = path.last_state().fault;
    let actions = path.into_actions();
    println!(
        "{name} without {:?}: {fault:?} after {} actions, {states} states",
        config.left_out,
        actions.len()
    );
    if std::env::var_os("HEATSINK_TRACE").is_some() {
        actions.iter().for_each(|action| println!("    {action:?}"));
    }
}
