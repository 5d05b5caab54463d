//! The search itself: every order of every action, by stateright.

use heatsink_reshard::{Do, Outcome, State};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::config::Config;
use crate::world::World;

/// How many times a step may be taken before the search of a configuration gives up. None comes
/// near it.
const LIMIT: usize = 1_000_000_000;

/// What can happen next. Numbers are those of coordinators, gateways, workers, late calls and
/// items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Coordinate(usize),
    TakeOver,
    Cancel,
    Acknowledge(usize),
    Ask(usize),
    GoOn(usize),
    GiveUp(usize),
    SendAgain(usize),
    Meet(usize),
    Land(usize),
    Hire,
    Work(usize),
    ReadLagging(usize),
    Crash(usize),
    WorkerSendsAgain(usize),
    Expire(usize, usize),
}

const SAFE: &str = "every answer is explicable, and every read would be";
/// Keeps a configuration from holding for want of anything happening.
const DONE: &str = "every call is answered, and the last move ends";

/// A configuration as stateright sees it.
#[derive(Clone, Debug)]
struct Search(Config);

impl Model for Search {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let config = &self.0;
        let scripts = 0..config.scripts.len();
        scripts
            .flat_map(|script| config.stored.iter().map(move |stored| World::begin(config, script, *stored)))
            .collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let config = &self.0;
        actions.extend((0..world.coordinators.len()).map(Action::Coordinate));
        // With nobody left who could be told anything wrong, only the end of the move is waited
        // for.
        let quiet =
            world.late.is_empty() && (0..world.gateways.len()).all(|number| world.is_done(config, number));
        if quiet && !config.fine {
            actions.push(Action::Hire);
            actions.extend(
                (0..world.workers.len())
                    .flat_map(|number| [Action::Work(number), Action::ReadLagging(number)]),
            );
            return;
        }
        actions.extend([Action::TakeOver, Action::Cancel, Action::Hire]);
        for (number, gateway) in world.gateways.iter().enumerate() {
            actions.push(Action::Acknowledge(number));
            if gateway.run.is_none() {
                actions.push(Action::Ask(number));
            } else {
                actions.extend([Action::GoOn(number), Action::GiveUp(number)]);
                if config.retries {
                    actions.extend([Action::SendAgain(number), Action::Meet(number)]);
                }
            }
        }
        actions.extend((0..world.late.len()).map(Action::Land));
        for number in 0..world.workers.len() {
            let steps = [Action::Work(number), Action::ReadLagging(number), Action::Crash(number)];
            actions.extend(steps);
            if config.retries {
                actions.push(Action::WorkerSendsAgain(number));
            }
        }
        if world.expires {
            actions.extend(
                (0..config.items).flat_map(|item| [Action::Expire(item, 0), Action::Expire(item, 1)]),
            );
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        if world.fault.is_some() {
            return None;
        }
        let config = &self.0;
        let mut next = world.clone();
        match action {
            Action::Coordinate(number) => next.coordinate(config, number)?,
            Action::TakeOver => next.take_over(config)?,
            Action::Cancel => next.cancel(config)?,
            Action::Acknowledge(number) => next.acknowledge(config, number)?,
            Action::Ask(number) => next.ask(config, number)?,
            Action::GoOn(number) => next.go_on(config, number)?,
            Action::GiveUp(number) => next.give_up(config, number, false)?,
            Action::SendAgain(number) => next.give_up(config, number, true)?,
            Action::Meet(number) => next.meet(config, number)?,
            Action::Land(number) => next.land(config, number)?,
            Action::Hire => next.hire(config)?,
            Action::Work(number) => next.work(config, number, false)?,
            Action::ReadLagging(number) => next.work(config, number, true)?,
            Action::Crash(number) => next.crash(config, number, false)?,
            Action::WorkerSendsAgain(number) => next.crash(config, number, true)?,
            Action::Expire(item, place) => {
                next.cells[item][place].take_if(|item| item.expires)?;
            }
        }
        next.acknowledge_idle(config);
        next.tidy();
        next.check(config);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFE, |_, world: &World| world.fault.is_none()),
            Property::sometimes(DONE, |search: &Search, world: &World| {
                let config = &search.0;
                let ended = world.coordinators.last().map(|last| last.next());
                ended == Some(Do::Rest(config.ends))
                    && world.changes == config.changes
                    && (0..world.gateways.len()).all(|gateway| world.is_done(config, gateway))
                    && (config.ends != Outcome::Moved
                        || matches!(world.record.state, State::Stable { settled: true, .. }))
            }),
        ]
    }
}

/// Searches a configuration to its end. Fails when something goes wrong in any order, when the
/// limit is hit, or when no order gets through.
pub fn exhaust(name: &str, config: &Config) {
    let states = search(name, config);
    let beginnings = config.scripts.len() * config.stored.len();
    println!("{name}: {beginnings} beginnings, {states} states, all of them");
}

/// [`exhaust`], one script after the other: what one search remembers has to fit into memory.
pub fn exhaust_each(name: &str, config: &Config) {
    let (mut states, mut largest) = (0, 0);
    for (number, script) in config.scripts.iter().enumerate() {
        let found = search(name, &Config { scripts: vec![script.clone()], ..config.clone() });
        (states, largest) = (states + found, largest.max(found));
        if (number + 1) % 50 == 0 {
            println!("{name}: {} scripts, {states} states", number + 1);
        }
    }
    let beginnings = config.scripts.len() * config.stored.len();
    println!("{name}: {beginnings} beginnings, {states} states, all of them, at most {largest} of a script");
}

fn search(name: &str, config: &Config) -> usize {
    let checker = Search(config.clone()).checker().target_state_count(LIMIT).spawn_bfs().join();
    // Where the limit is hit, stateright says that it is done.
    assert!(checker.state_count() < LIMIT, "{name}: not exhausted in {LIMIT} steps");
    if let Some(path) = checker.discovery(SAFE) {
        explain(path);
        panic!("{name}: something goes wrong with {:?}", config.scripts);
    }
    checker.assert_properties();
    checker.unique_state_count()
}

/// Searches a configuration in which a rule is left out. Fails unless something goes wrong.
pub fn breaks(name: &str, config: &Config) {
    let search = Search(config.clone());
    let search = search.checker().target_state_count(LIMIT).finish_when(HasDiscoveries::AnyFailures);
    let checker = search.spawn_bfs().join();
    let states = checker.unique_state_count();
    let Some(path) = checker.discovery(SAFE) else {
        panic!("{name}: nothing goes wrong in {states} states without {:?}", config.left_out)
    };
    let fault = path.last_state().fault;
    println!("{name} without {:?}: {fault:?}, {states} states", config.left_out);
    if std::env::var_os("HEATSINK_TRACE").is_some() {
        explain(path);
    }
}

/// Prints what happened, with what the cells of the items hold.
fn explain(path: stateright::Path<World, Action>) {
    for (number, (world, action)) in path.into_vec().into_iter().enumerate() {
        if number == 0 {
            println!("    {:?}", world.script);
        }
        let cell = |item: usize, place: usize| world.cells[item][place].map_or(0, |item| item.number);
        let cells = [[cell(0, 0), cell(0, 1)], [cell(1, 0), cell(1, 1)]];
        let runs: Vec<_> =
            world.gateways.iter().map(|gateway| gateway.run.as_ref().map(|run| &run.kind)).collect();
        println!("    {cells:?} {:?} late {:?} {runs:?}\n      {action:?}", world.record.state, world.late);
    }
}
