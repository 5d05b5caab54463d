//! The changes in which no item moves: a counter that gets more fragments (`counters`), or fewer
//! (`counters_back`), and buckets from one on that get another number of shards (`steps`), while
//! clients write, delete and read.
//!
//! One counter: a cell for each fragment. Or one item of one bucket: a cell for each shard in which
//! it may lie. Which of them a request concerns says [`heatsink_layout`] itself, by the view of its
//! gateway. Every call is atomic, as the store's transactions are. So are reads of several
//! fragments, which are not: what rests on that is no affair of a widening; of a narrowing it is
//! (`narrowing`). Clearing orphans is one step here, and its claims are those of the other
//! configurations.

mod config;
mod world;

use heatsink_reshard::{Do, Outcome};
use stateright::{Checker, HasDiscoveries, Model, Property};

pub use config::{Config, DAY};
use world::World;
pub use world::{MOST, ORPHAN};

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
    GiveUpFold(usize),
    LandFold(usize),
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
        actions.extend((0..world.workers.len()).map(Action::GiveUpFold));
        actions.extend((0..world.late_folds.len()).map(Action::LandFold));
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
            Action::GiveUpFold(number) => {
                if next.late_folds.len() >= config.late {
                    return None;
                }
                next.late_folds.push(next.workers[number].give_up()?);
            }
            Action::LandFold(number) => {
                next.late_folds.remove(number).land(&mut next.cells);
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
