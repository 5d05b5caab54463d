//! What puts without condition take of the partition that a key leaves: nothing, from the cutover
//! on, but for those whose shard lies there. Counted by the partitions of the embedded store.
use std::sync::Arc;

use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::Steering;
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};
use heatsink_physics::{Quotas, position};
use heatsink_reshard::{Phase, State};
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use heatsink_workers::{Progress, Reshard, ReshardOptions};
use serde_json::json;

use crate::town::{RULES, Town, table};

const OLD: usize = 40;
const NEW: usize = 160;
const SHARDS: u16 = 8;

/// Pauses the mover before it moves the first item.
struct Pauses(Arc<Steering>);

impl Progress for Pauses {
    fn state(&self, state: State) {
        if matches!(state, State::Moving { phase: Phase::Move, .. }) {
            self.0.pause(true);
        }
    }
}

#[test]
fn puts_take_nothing_of_the_partition_that_their_key_leaves() {
    let env = Arc::new(RealEnv);
    let store = Partitioned::start(Embedded::memory().unwrap(), env.clone(), Quotas::default());
    let store = Arc::new(block_on(store).unwrap());
    let town = Town::over(store.clone(), &table(&[]), &["one", "two", "three"], RULES, Fencing::shared);
    town.fill("game", OLD);
    let steering = Arc::new(Steering::default());
    let steers = Arc::clone(&steering);
    let (raw, rules) = (town.raw.clone(), town.rules.clone());
    let running = town.runtime.spawn(async move {
        let reshard = Reshard::prepare(raw, env, &rules, "Scores", b"game", SHARDS, false).await.unwrap();
        let options = ReshardOptions { exclusive: false, rate: u32::MAX };
        reshard.run_steered(options, &steers, &Pauses(Arc::clone(&steers))).await
    });
    let phase = || town.record("game")?.moves.map(|moves| moves.phase);
    town.until("MOVE", || phase().filter(|phase| *phase == Phase::Move));

    let left = position(b"game");
    let partition = || {
        let table = store.snapshot("Scores").unwrap().remove(0);
        table.partitions.into_iter().find(|one| (one.first..=one.last).contains(&left)).unwrap()
    };
    let strategy = Strategy::calculated(By::SortKey);
    let layout = Layout { strategy, shards: SHARDS, hash: Hash::JumpXxh3, version: 1 };
    let before = partition();
    let mut rng = Rng::with_seed(1);
    let mut stay = 0;
    // Over the old items, and of new ones.
    let old = (0..OLD).map(|nth| format!("x{nth:04}-old"));
    for sort in old.chain((0..NEW).map(|nth| format!("y{nth:04}"))) {
        let physical = match layout.shard_of(Some(SortKey::S(&sort))) {
            0 => "game".to_owned(),
            shard => format!("game#~{shard}"),
        };
        stay += u32::from((before.first..=before.last).contains(&position(physical.as_bytes())));
        let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort } });
        let put = json!({ "TableName": "Scores", "Item": item });
        town.insist(&mut rng, Operation::PutItem, &put).unwrap();
    }
    let after = partition();
    assert!(usize::try_from(stay).unwrap() < (OLD + NEW) / 2, "{stay} stay, so little is shown");
    let taken = (after.writes - before.writes, after.reads - before.reads);
    assert_eq!(taken, (f64::from(stay), 0.0), "write units, read units");

    steering.pause(false);
    block_on(running).unwrap().unwrap();
    assert_eq!(town.lies("game").values().sum::<usize>(), OLD + NEW);
}
