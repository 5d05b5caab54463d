//! Scenarios by name: a script of its own before gateways of its own, and the end that all
//! simulations have.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use heatsink_dynamo::Code;
use heatsink_history::{Operation, Value};

use crate::client::{PATIENCE, Reply};
use crate::world::World;

pub fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// The names of so many items.
pub fn items(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("p{at:02}")).collect()
}

/// Plays a script before gateways with those rules, none of them started yet; at the end every item
/// is read in every way. Returns what is wrong, and how many writes were acknowledged.
pub fn played<F: Future<Output = ()> + 'static>(
    seed: u64,
    gateways: &[&str],
    items: Vec<String>,
    script: impl FnOnce(Rc<World>, Vec<String>) -> F + 'static,
) -> (Vec<String>, usize) {
    let world = World::new(seed);
    for rules in gateways {
        world.add_gateway(rules);
    }
    let rules = gateways[0].to_owned();
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let (told, played) = (Arc::clone(&wrong), Rc::clone(&world));
    world.run(async move {
        script(Rc::clone(&played), items.clone()).await;
        *told.lock().unwrap() = played.end(&items, &rules).await;
    });
    if crate::setting("HEATSINK_SEED").is_some() {
        world.log.take().iter().for_each(|line| println!("{line}"));
    }
    let wrong = std::mem::take(&mut *wrong.lock().unwrap());
    (wrong, world.book.counts().1)
}

/// Plays a script that nothing may come of but what is right. So many writes have to have been
/// acknowledged: a table that nobody can use loses nothing.
pub fn scene<F: Future<Output = ()> + 'static>(
    seed: u64,
    gateways: &[&str],
    items: Vec<String>,
    acknowledged: usize,
    script: impl FnOnce(Rc<World>, Vec<String>) -> F + 'static,
) {
    let (wrong, writes) = played(seed, gateways, items, script);
    assert!(wrong.is_empty(), "seed {seed}, {} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert!(writes >= acknowledged, "only {writes} writes were acknowledged");
}

/// Starts every gateway.
pub async fn start(world: &World) {
    for gateway in 0..world.gateways() {
        world.start_surely(gateway).await.unwrap();
    }
}

/// Puts an item until that is acknowledged. Not for ever: a gateway may refuse the table until it
/// is adopted.
pub async fn put(world: &World, gateway: usize, item: &str, value: Value, pause: Duration) {
    for _ in 0..3_000 {
        match world.call(gateway, item, Operation::Put(value), PATIENCE).await {
            Reply::Answered(_) => return,
            Reply::NotDone(error) if error.code == Code::ValidationException => return,
            _ => world.clock.sleep(pause).await,
        }
    }
}

/// What a put of that number puts.
pub fn value(number: usize) -> Value {
    Value { number: number as i64, label: 1 }
}

/// Clients that put an item each, at once, through one gateway or the other.
pub async fn put_all(world: &World, items: &[String], gateways: &[usize], pause: Duration, from: usize) {
    let puts = items
        .iter()
        .enumerate()
        .map(|(at, item)| put(world, gateways[at % gateways.len()], item, value(from + at), pause));
    join_all(puts).await;
}
