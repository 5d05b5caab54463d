//! For each rule of the fence that chance seldom needs, what happens in the one order in which it
//! is needed. `without/run` shows that each of these fails where its rule is left out.
//!
//! | how | what it is for |
//! |---|---|
//! | a put into a bucket that is new to its gateway | it is two calls: what happens between them is under the old layout |
//! | a gateway that is stopped | its lease ends while it has a request in its hands |
//! | a look at the head that takes long | the gateway goes on with what it knows, under its lease |
//! | a put that lands a minute late | it is acknowledged, or not, long after the step that it delayed |

mod gates;
mod registry;
mod steps;
mod tables;

use std::time::Duration;

use futures::future::join_all;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use heatsink_workers::Direction;

use crate::network::{Fate, Lost, Weather};
use crate::scene::{put, put_all, seconds, start, value};
use crate::table::DAYS;
use crate::world::{World, name};

/// Longer than anything that is late here.
const LONG: Duration = Duration::from_secs(400);

/// Every process waits for its answers for as long as it takes.
fn be_patient(world: &World) {
    world.network.set(Weather { patience: LONG, ..Weather::default() });
}

/// The gateway's next looks at the head meet that fate.
fn looks(world: &World, gateway: usize, times: usize, fate: Fate) {
    world.network.plan(&name(gateway), Wire::GetItem, "\"head\"", times, fate);
}

/// The gateway's next look at the head is answered only after that time.
fn blind(world: &World, gateway: usize, back: Duration) {
    looks(world, gateway, 1, Fate { back, ..Fate::late(seconds(0.001)) });
}

/// A gateway looks at the head no more.
fn cut_off(world: &World, gateway: usize) {
    looks(world, gateway, usize::MAX, Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(0.001)) });
}

/// Puts every item through a gateway at once, once each. `late`: how late they land.
async fn put_once(world: &World, gateway: usize, items: &[String], late: Duration) {
    world.network.plan(&name(gateway), Wire::PutItem, "\"n\"", items.len(), Fate::late(late));
    let puts = items.iter().enumerate();
    join_all(puts.map(|(at, item)| world.call(gateway, item, Operation::Put(value(100 + at)), LONG))).await;
}

/// Puts one item after the other through a gateway, five in a second, each until that is
/// acknowledged.
async fn in_turn(world: &World, gateway: usize, items: &[String]) {
    let puts = items.iter().enumerate().map(|(at, item)| async move {
        world.clock.sleep(seconds(0.2) * at as u32).await;
        put(world, gateway, item, value(100 + at), seconds(0.2)).await;
    });
    join_all(puts).await;
}

/// A table in whole keys with items, which both gateways know.
async fn whole(world: &World, items: &[String]) {
    world.create_past().await;
    start(world).await;
    put_all(world, items, &[0, 1], seconds(1.0), 1).await;
    be_patient(world);
}

pub fn days() -> Vec<String> {
    (1..=6).map(|day| format!("2026-01-0{day}T00:00:00Z")).collect()
}

/// A table in buckets, which both gateways know. Each has entered the bucket of the first day.
async fn in_days(world: &World, items: &[String]) {
    world.create_past().await;
    start(world).await;
    world.adopt_surely(DAYS, Direction::Adopt).await;
    put_all(world, &items[..1], &[0], seconds(1.0), 1).await;
    put_all(world, &items[..1], &[1], seconds(1.0), 2).await;
    world.clock.sleep(seconds(15.0)).await;
    put_all(world, &items[..1], &[1], seconds(1.0), 3).await;
    be_patient(world);
}

/// Puts an item into a bucket that is new to gateway 1. The row of the directory is answered after
/// `between`, and then the put itself is sent, which lands so `late`.
async fn put_in_two(world: &World, item: &str, between: Duration, late: Duration) {
    let entered = Fate { back: between, ..Fate::late(seconds(0.001)) };
    world.network.plan(&name(1), Wire::PutItem, "heatsink.buckets", 1, entered);
    world.network.plan(&name(1), Wire::PutItem, "\"n\"", 1, Fate::late(late));
    world.call(1, item, Operation::Put(value(50)), LONG).await;
}

/// Stops a gateway after a moment, and lets it go on later.
async fn stopped(world: &World, gateway: usize, after: Duration, until: Duration) {
    world.clock.sleep(after).await;
    world.stop(gateway, true);
    world.clock.sleep(until - after).await;
    world.stop(gateway, false);
}

async fn brought_back(world: &World, after: Duration) {
    world.clock.sleep(after).await;
    world.adopt_surely(DAYS, Direction::Back).await;
}
