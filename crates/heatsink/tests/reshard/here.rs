//! A command carries a reshard out itself, beside gateways, and is killed. Gateways go on with it,
//! in whatever phase it was; while it lives they leave it alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use heatsink_control::reshard_intent::{EndedAs, Request};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_layout::Phase;
use heatsink_reshard::{Side, State};
use heatsink_store::Store;
use heatsink_workers::{Here, Pace, Progress, ReshardReport, Unwatched, WorkerError};
use serde_json::json;
use tokio::task::{AbortHandle, JoinHandle};

use super::frozen::Freezes;
use super::town::Town;

const RULES: &str =
    "rule = []\n[fence]\nlease = \"4s\"\nheartbeat = \"1s\"\npoll = \"100ms\"\nstraggler = \"200ms\"\n";

/// Kills a command when a state is on record that is meant.
struct Kills<W> {
    when: W,
    command: Mutex<Option<AbortHandle>>,
}

impl<W: Fn(State) -> bool + Send + Sync> Progress for Kills<W> {
    fn state(&self, state: State) {
        if (self.when)(state) {
            self.command.lock().unwrap().iter().for_each(AbortHandle::abort);
        }
    }
}

/// A command that runs.
type Command = JoinHandle<Result<ReshardReport, WorkerError>>;

/// The pace of commands.
const PACE: Pace = Pace {
    look: Duration::from_millis(50),
    beat: Duration::from_millis(100),
    taken_over: Duration::from_secs(1),
    ..Pace::DEFAULT
};

/// A command that gives `game` four shards.
fn start(town: &Arc<Town>, store: Arc<dyn Store>, rate: u32, progress: Arc<dyn Progress>) -> Command {
    let town = Arc::clone(town);
    let runtime = town.runtime.handle().clone();
    runtime.spawn(async move {
        let here = Here::new(store, Arc::new(RealEnv), &town.rules, "a command", false);
        let here = here.at(PACE);
        let registry = town.registry();
        let id = registry.describe("Scores").await?.unwrap().schema.id;
        let subject = (b"game".as_slice(), KeyType::S).into();
        let before = registry.intent_for(&id, subject).await?;
        if let Some(before) = &before {
            assert!(here.is_left(before).await?, "somebody carries it out: {before:?}");
        }
        let (layout, by) = (4.into(), "test".to_owned());
        let request = Request { layout, rate, streams_confirmed: false, by, asked: 1 };
        here.carry(before.as_ref(), ((&id, "Scores"), subject), request, progress).await
    })
}

/// A command that is killed when that state is on record; returns when it is dead.
fn killed(town: &Arc<Town>, store: Arc<dyn Store>, when: impl Fn(State) -> bool + Send + Sync + 'static) {
    let kills = Arc::new(Kills { when, command: Mutex::default() });
    // It says nothing before it can be killed.
    let mut command_of = kills.command.lock().unwrap();
    let command = start(town, store, u32::MAX, kills.clone());
    *command_of = Some(command.abort_handle());
    drop(command_of);
    let ended = futures::executor::block_on(command);
    assert!(ended.is_err_and(|error| error.is_cancelled()), "it ended before it was killed");
}

fn is_in(state: State, wanted: Phase) -> bool {
    matches!(state, State::Moving { phase, .. } if phase == wanted)
}

/// Writes of every item of the key, each until it is done.
fn write_all(town: &Town, rng: &mut fastrand::Rng) {
    for number in 0..20 {
        let body = json!({
            "TableName": "Scores", "Key": { "pk": { "S": "game" }, "sk": { "S": format!("x{number:04}-old") } },
            "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": { ":v": { "N": "1" } },
        });
        town.insist(rng, Operation::UpdateItem, &body).unwrap();
    }
}

#[test]
fn gateways_go_on_in_whatever_phase_a_command_is_killed() {
    for phase in [Phase::Reserve, Phase::Prepare, Phase::Hold, Phase::Move] {
        let town = Town::new(RULES);
        town.fill("game", 20);
        killed(&town, town.raw.clone(), move |state| is_in(state, phase));
        let left = town.record("game").unwrap().moves.map(|moves| moves.phase);
        assert_eq!(left, Some(phase));
        let _gateways = town.carry();
        write_all(&town, &mut fastrand::Rng::with_seed(1));
        assert_eq!(town.ended("game").0, EndedAs::Moved, "{phase:?}");
        assert_eq!((town.shards("game"), town.old()), (4, 20), "{phase:?}");
        assert!(town.lies("game").len() == 4, "{phase:?}");
    }
}

#[test]
fn gateways_go_on_with_the_way_back_of_a_command_that_is_killed() {
    let town = Town::new(RULES);
    town.fill("game", 20);
    let frozen = Arc::new(Freezes { raw: town.raw.clone(), changer: town.changer() });
    let is_back = |state| matches!(state, State::Stable { in_force: Side::Old, settled: false });
    let cancels = Arc::clone(&town);
    let cancel = std::thread::spawn(move || {
        cancels.until("that it waits", || {
            let progress = cancels.intent("game")?.progress;
            (progress.phase == Some(Phase::Prepare)).then_some(progress.hindered).flatten()
        });
        assert!(cancels.change("game", |intent| intent.cancelled = true));
    });
    killed(&town, frozen, is_back);
    cancel.join().unwrap();
    assert!(town.intent("game").unwrap().is_open());
    let _gateways = town.carry();
    assert_eq!(town.ended("game").0, EndedAs::Cancelled);
    let record = town.record("game").unwrap();
    assert!(record.settled && record.moves.is_none() && record.layout.shards == 1, "{record:?}");
}

#[test]
fn a_command_that_lives_is_left_alone_and_leaves_no_intent() {
    let town = Town::new(RULES);
    town.fill("game", 60);
    let pace = Pace { taken_over: Duration::from_secs(3), ..Pace::DEFAULT.faster(20) };
    let _gateways =
        (0..3).map(|gateway| town.carries_at(pace, gateway, town.raw.clone())).collect::<Vec<_>>();
    let begun = RealEnv.now();
    let command = start(&town, town.raw.clone(), 30, Arc::new(Unwatched));
    let carrier = || town.intent("game")?.carrier;
    let first = town.until("a carrier", carrier);
    assert_eq!((&*first.gateway, &*first.name), ("", "a command"));
    // Another command does not take it over.
    let intent = town.intent("game").unwrap();
    let other = Here::new(town.raw.clone(), Arc::new(RealEnv), &town.rules, "another", false);
    let is_left = town.runtime.block_on(other.at(PACE).is_left(&intent)).unwrap();
    assert!(!is_left && !command.is_finished());
    let report = town.runtime.block_on(command).unwrap().unwrap();
    assert!(RealEnv.now().since(begun) > Duration::from_secs(4), "it was slower than a takeover");
    assert_eq!((report.to, town.shards("game"), town.old()), (4, 4, 60));
    assert!(report.moved > 30, "it has moved all of them itself: {}", report.moved);
    assert_eq!(town.intent("game"), None);
}

#[test]
fn a_command_that_is_paused_stays_so_where_a_gateway_goes_on() {
    let town = Town::new(RULES);
    town.fill("game", 20);
    let command = start(&town, town.raw.clone(), 8, Arc::new(Unwatched));
    town.until("that items move", || {
        let intent = town.intent("game")?;
        (intent.progress.phase == Some(Phase::Move)).then_some(())
    });
    assert!(town.change("game", |intent| intent.paused = true));
    command.abort();
    let _ = town.runtime.block_on(command);
    let _gateways = town.carry();
    town.until("a gateway", || town.intent("game")?.carrier.filter(|one| !one.gateway.is_empty()));
    town.pause(Duration::from_millis(500));
    let before = town.lies("game");
    assert!(before["game"] > 4, "{before:?}");
    town.pause(Duration::from_secs(1));
    assert_eq!(town.lies("game"), before, "nothing moves");
    assert!(town.change("game", |intent| intent.paused = false));
    assert_eq!(town.ended("game").0, EndedAs::Moved);
}

#[test]
fn without_gateways_the_same_command_goes_on() {
    let town = Town::new(RULES);
    town.fill("game", 20);
    killed(&town, town.raw.clone(), |state| is_in(state, Phase::Hold));
    let carrier = town.intent("game").unwrap().carrier;
    assert!(carrier.is_some(), "it had no time to give it back");
    let again = start(&town, town.raw.clone(), u32::MAX, Arc::new(Unwatched));
    let report = town.runtime.block_on(again).unwrap().unwrap();
    assert_eq!((report.from, report.to, town.shards("game")), (1, 4, 4));
    assert_eq!(town.intent("game"), None);
}

#[test]
fn what_could_not_begin_is_not_asked_for_afterwards() {
    let town = Town::new(RULES);
    let body = json!({ "TableName": "Scores", "Item": { "pk": { "S": "game#~1" }, "sk": { "S": "own" } } });
    town.insist(&mut fastrand::Rng::with_seed(1), Operation::PutItem, &body).unwrap();
    let command = start(&town, town.raw.clone(), u32::MAX, Arc::new(Unwatched));
    let why = town.runtime.block_on(command).unwrap().unwrap_err().to_string();
    assert!(why.contains("game#~1"), "{why}");
    assert_eq!(town.intent("game"), None);
}
