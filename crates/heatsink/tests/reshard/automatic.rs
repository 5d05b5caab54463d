//! Keys that get shards without being asked for. Which keys are hot is told by the test; the
//! gateways, their registry and the move are real.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heatsink_control::Control;
use heatsink_env::RealEnv;
use heatsink_heat::policy::{Partitions, Units};
use heatsink_heat::{HeatSource, KeyLoad, Refused};
use heatsink_store::Store;
use heatsink_workers::{Acts, Automatic};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::town::{RULES, Town};

/// What a gateway counts.
#[derive(Default)]
pub(super) struct Told {
    loads: Mutex<Vec<KeyLoad>>,
    partitions: Option<usize>,
}

/// So many cool partitions, each with one of that many slots of a key.
struct Cool(usize);

impl Partitions for Cool {
    fn count(&self) -> usize {
        self.0
    }

    fn of(&self, key: &[u8], slot: u16) -> usize {
        (key.iter().map(|byte| usize::from(*byte)).sum::<usize>() + usize::from(slot)) % self.0
    }

    fn load(&self, _: usize) -> Units {
        Units::default()
    }
}

impl Told {
    pub(super) fn of(loads: Vec<KeyLoad>) -> Self {
        Told { loads: Mutex::new(loads), partitions: None }
    }
}

impl Told {
    pub(super) fn set(&self, loads: Vec<KeyLoad>) {
        *self.loads.lock().unwrap() = loads;
    }
}

impl HeatSource for Told {
    fn hottest(&self) -> Vec<KeyLoad> {
        self.loads.lock().unwrap().clone()
    }

    fn partitions(&self, _: &str, _: Option<&str>) -> Option<Box<dyn Partitions + Send + Sync>> {
        self.partitions.map(|count| -> Box<dyn Partitions + Send + Sync> { Box::new(Cool(count)) })
    }
}

/// So many writes a second on a key, of which one partition takes 1,000.
pub(super) fn hot(key: &str, writes: f64, all: f64) -> KeyLoad {
    let throttled = writes * (1.0 - 1_000.0 / all).max(0.0);
    KeyLoad {
        table: "Scores".to_owned(),
        key: key.as_bytes().to_vec(),
        writes,
        requests: writes,
        throttled,
        writes_refused: Refused {
            requests: writes,
            throttled,
            by_partition: throttled,
            ..Refused::default()
        },
        page: 100,
        item_bytes: 300,
        growing: 1.0,
        ..KeyLoad::default()
    }
}

/// Lets each gateway see that, and acts on it.
pub(super) fn sees(town: &Arc<Town>, seen: &[Vec<KeyLoad>]) -> Vec<Acting> {
    let told = seen.iter().map(|seen| Arc::new(Told::of(seen.clone())));
    town.controls.iter().zip(told).map(|(control, told)| acts(town, control, told)).collect()
}

/// A gateway that acts, until its task is aborted.
pub(super) struct Acting {
    pub(super) task: JoinHandle<()>,
    pub(super) acts: Arc<Acts>,
}

impl Acting {
    /// The reason why a key is left alone, if it is.
    pub(super) fn reason(&self, key: &str) -> Option<String> {
        let shown = self.acts.shown();
        let left = shown["left_alone"].as_array().unwrap();
        let one = left.iter().find(|one| one["key"] == key)?;
        Some(one["reason"].as_str().unwrap().to_owned())
    }
}

pub(super) fn acts(town: &Arc<Town>, control: &Control, told: Arc<Told>) -> Acting {
    acts_over(&town.runtime, town.raw.clone(), control, told)
}

pub(super) fn acts_over(
    runtime: &Runtime,
    store: Arc<dyn Store>,
    control: &Control,
    told: Arc<Told>,
) -> Acting {
    let acts = Arc::new(Acts::default());
    let automatic = Automatic::new(store, Arc::new(RealEnv), control.clone(), told, Arc::clone(&acts));
    let task = runtime.spawn(async move { automatic.run(futures::future::pending()).await });
    Acting { task, acts }
}

pub(super) fn rules(section: &str) -> String {
    format!("{RULES}[[automatic]]\ntable = \"Scores\"\n{section}")
}

#[test]
fn a_key_that_is_warm_at_three_gateways_gets_the_shards_of_the_whole_load() {
    let town = Town::new(&rules("keys = \"game_*\"\nmode = \"auto\""));
    let _carried = town.carry();
    town.fill("game_x", 20);
    let third = vec![hot("game_x", 1_700.0, 5_100.0), hot("user_x", 1_700.0, 5_100.0)];
    let _acting = sees(&town, &[third.clone(), third.clone(), third]);
    let shards = town.until("shards", || Some(town.shards("game_x")).filter(|shards| *shards > 1));
    // A third of 5,100 writes a second needs two, the whole at least six.
    let most = heatsink_heat::advice::diagnose(&hot("game_x", 5_100.0, 5_100.0).observed(1, false)).shards();
    assert!((6..=most.unwrap()).contains(&shards), "{shards}, and at most {most:?}");
    assert!(town.intent("game_x").unwrap().request.by.starts_with("automatic"));
    town.ended("game_x");
    assert_eq!(town.old(), 20);
    assert!(town.intent("user_x").is_none(), "no section is for it");
}

#[test]
fn of_a_table_whose_partitions_are_known_a_key_gets_fewer_shards() {
    let town = Town::new(&rules("mode = \"auto\""));
    let _carried = town.carry();
    let told = Told { partitions: Some(60), ..Told::of(vec![hot("game_x", 5_000.0, 5_000.0)]) };
    let _acting = acts(&town, &town.controls[0], Arc::new(told));
    let shards = town.until("shards", || Some(town.shards("game_x")).filter(|shards| *shards > 1));
    let unknown =
        heatsink_heat::advice::diagnose(&hot("game_x", 5_000.0, 5_000.0).observed(1, false)).shards();
    assert!((5..=20).contains(&shards) && Some(shards) < unknown, "{shards}, and {unknown:?}");
}

#[test]
fn what_is_only_proposed_changes_nothing() {
    let town = Town::new(&rules("mode = \"propose\""));
    let _carried = town.carry();
    let _acting = sees(&town, &[vec![hot("game_x", 5_000.0, 5_000.0)]]);
    town.pause(Duration::from_secs(5));
    assert!(town.intent("game_x").is_none() && town.record("game_x").is_none());
}

#[test]
fn one_item_and_a_lukewarm_key_are_left_alone() {
    let town = Town::new(&rules("mode = \"auto\"\npatience = \"0s\""));
    let _carried = town.carry();
    let counter = KeyLoad { one_item: 1.0, ..hot("game_x", 5_000.0, 5_000.0) };
    let _acting = sees(&town, &[vec![counter, hot("game_y", 400.0, 400.0)]]);
    town.pause(Duration::from_secs(5));
    assert!(town.intent("game_x").is_none() && town.intent("game_y").is_none());
}

#[test]
fn a_key_that_nobody_asks_for_any_more_is_whole_again() {
    let town = Town::new(&rules("mode = \"auto\"\ncold = \"3s\""));
    let _carried = town.carry();
    town.fill("game_x", 20);
    let told = Arc::new(Told::of(vec![hot("game_x", 5_000.0, 5_000.0)]));
    let _acting = acts(&town, &town.controls[0], told.clone());
    town.until("shards", || Some(()).filter(|()| town.shards("game_x") > 1));
    town.ended("game_x");
    told.set(Vec::new());
    town.until("the end of the shards", || Some(()).filter(|()| town.shards("game_x") == 1));
    town.ended("game_x");
    assert_eq!(town.old(), 20);
}
