//! Keys that get shards without being asked for. Which keys are hot is told by the test; the
//! gateways, their registry and the move are real.
use std::sync::{Arc, Mutex};
use std::time::Duration;

use heatsink_control::Control;
use heatsink_env::RealEnv;
use heatsink_heat::KeyLoad;
use heatsink_workers::{Automatic, HeatSource};

use crate::town::{RULES, Town};

/// What a gateway counts.
#[derive(Default)]
struct Told {
    loads: Mutex<Vec<KeyLoad>>,
    partitions: Option<u32>,
}

impl Told {
    fn of(loads: Vec<KeyLoad>) -> Self {
        Told { loads: Mutex::new(loads), partitions: None }
    }
}

impl HeatSource for Told {
    fn hottest(&self) -> Vec<KeyLoad> {
        self.loads.lock().unwrap().clone()
    }

    fn partitions(&self, _: &str) -> Option<u32> {
        self.partitions
    }
}

/// So many writes a second on a key, of which one partition takes 1,000.
fn hot(key: &str, writes: f64, all: f64) -> KeyLoad {
    let throttled = writes * (1.0 - 1_000.0 / all).max(0.0);
    KeyLoad {
        table: "Scores".to_owned(),
        key: key.as_bytes().to_vec(),
        writes,
        requests: writes,
        throttled,
        page: 100,
        item_bytes: 300,
        growing: 1.0,
        ..KeyLoad::default()
    }
}

/// Lets each gateway see that, and acts on it.
fn sees(town: &Arc<Town>, seen: &[Vec<KeyLoad>]) {
    for (control, seen) in town.controls.iter().zip(seen) {
        acts(town, control, Arc::new(Told::of(seen.clone())));
    }
}

fn acts(town: &Arc<Town>, control: &Control, told: Arc<Told>) {
    let automatic = Automatic::new(town.raw.clone(), Arc::new(RealEnv), control.clone(), told);
    let automatic = automatic.changing_each(Duration::from_secs(1));
    town.runtime.spawn(async move { automatic.run(futures::future::pending()).await });
}

fn rules(section: &str) -> String {
    format!("{RULES}[[automatic]]\ntable = \"Scores\"\n{section}")
}

#[test]
fn a_key_that_is_warm_at_three_gateways_gets_the_shards_of_the_whole_load() {
    let town = Town::new(&rules("keys = \"game_*\"\nmode = \"auto\""));
    let _carried = town.carry();
    town.fill("game_x", 20);
    let third = vec![hot("game_x", 1_700.0, 5_100.0), hot("user_x", 1_700.0, 5_100.0)];
    sees(&town, &[third.clone(), third.clone(), third]);
    let shards = town.until("shards", || Some(town.shards("game_x")).filter(|shards| *shards > 1));
    // 5,100 writes a second on a small table: more than a third of them needs, and within a factor
    // of two of what the whole needs.
    let whole = heatsink_heat::advice::diagnose(&hot("game_x", 5_100.0, 5_100.0).observed(1, false)).shards();
    assert_eq!(Some(shards), whole);
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
    acts(&town, &town.controls[0], Arc::new(told));
    let shards = town.until("shards", || Some(town.shards("game_x")).filter(|shards| *shards > 1));
    let unknown =
        heatsink_heat::advice::diagnose(&hot("game_x", 5_000.0, 5_000.0).observed(1, false)).shards();
    assert!((5..=20).contains(&shards) && Some(shards) < unknown, "{shards}, and {unknown:?}");
}

#[test]
fn what_is_only_proposed_changes_nothing() {
    let town = Town::new(&rules("mode = \"propose\""));
    let _carried = town.carry();
    sees(&town, &[vec![hot("game_x", 5_000.0, 5_000.0)]]);
    town.pause(Duration::from_secs(5));
    assert!(town.intent("game_x").is_none() && town.record("game_x").is_none());
}

#[test]
fn one_item_and_a_lukewarm_key_are_left_alone() {
    let town = Town::new(&rules("mode = \"auto\"\npatience = \"0s\""));
    let _carried = town.carry();
    let counter = KeyLoad { one_item: 1.0, ..hot("game_x", 5_000.0, 5_000.0) };
    sees(&town, &[vec![counter, hot("game_y", 400.0, 400.0)]]);
    town.pause(Duration::from_secs(5));
    assert!(town.intent("game_x").is_none() && town.intent("game_y").is_none());
}

#[test]
fn a_key_that_nobody_asks_for_any_more_is_whole_again() {
    let town = Town::new(&rules("mode = \"auto\"\ncold = \"3s\""));
    let _carried = town.carry();
    town.fill("game_x", 20);
    let told = Arc::new(Told::of(vec![hot("game_x", 5_000.0, 5_000.0)]));
    acts(&town, &town.controls[0], told.clone());
    town.until("shards", || Some(()).filter(|()| town.shards("game_x") > 1));
    town.ended("game_x");
    told.loads.lock().unwrap().clear();
    town.until("the end of the shards", || Some(()).filter(|()| town.shards("game_x") == 1));
    town.ended("game_x");
    assert_eq!(town.old(), 20);
}
