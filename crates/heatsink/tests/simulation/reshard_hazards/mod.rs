//! What can go wrong while a key moves, each by name, in the one order of events in which it does
//! harm. `docs/develop/hazards.md` lists them all.
//!
//! | how | what it is for |
//! |---|---|
//! | a run that is killed at one of its calls | the key stays in a phase for as long as the scene wants |
//! | a call that lands late | it was planned in an earlier phase |
//! | a gateway that is stopped | its lease ends while it has requests in its hands |

mod frozen;
mod gateways;
mod records;
mod requests;
mod runs;
mod together;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_dynamo::{Error, Operation as Wire, Outcome};
use heatsink_history::Operation;
use heatsink_workers::WorkerError;
use serde_json::Value as Json;

use crate::client::PATIENCE;
use crate::network::{Fate, Weather};
use crate::reshard::{Mishap, Phases};
use crate::scene::{items, put_all, seconds, start, value};
use crate::world::{World, name};

/// No rule for the table, and bounds as in the story.
pub const WHOLE: &str =
    "rule = []\n[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"1s\"\nstraggler = \"4s\"\n";
/// The same with a rule, for an adoption.
pub const RULED: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"calculated\"\nshards = 4\n[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"1s\"\nstraggler = \"4s\"\n";

/// What a run's call holds that writes the record of a phase, that copies an item, that deletes an
/// old copy, that publishes.
pub const RESERVE: &str = r#"\"phase\":\"RESERVE"#;
pub const PREPARE: &str = r#"\"phase\":\"PREPARE"#;
pub const HOLD: &str = r#"\"phase\":\"HOLD"#;
pub const CHECK: &str = r#"\"phase\":\"CHECK"#;
pub const MOVE: &str = r#"\"phase\":\"MOVE"#;
pub const COPY: &str = "attribute_not_exists(#p)";
pub const CLEAR: &str = "\"Delete\":{\"Key\":{\"pk\":{\"S\":\"game";
pub const PUBLICATION: &str = "\"epoch\"";

/// Two gateways and a table that both know, whose items lie under the key as it is.
pub async fn begun(world: &World, items: &[String]) {
    world.create_past().await;
    start(world).await;
    put_all(world, items, &[0, 1], seconds(0.3), 1).await;
}

pub async fn run(world: &World, shards: u16, mishap: Option<Mishap>) -> Option<Result<u16, WorkerError>> {
    let phases = Arc::new(Phases::default());
    let run = world.reshard(WHOLE, shards, &phases, mishap).await?;
    Some(run.map(|report| report.to))
}

/// The key has so many shards afterwards.
pub async fn moved(world: &World, shards: u16) {
    let mut why = String::new();
    for _ in 0..5 {
        match run(world, shards, None).await {
            Some(Ok(to)) if to == shards => return,
            Some(Err(error)) => why = error.to_string(),
            _ => {}
        }
        world.clock.sleep(seconds(1.0)).await;
    }
    world.book.fault(format!("the key does not come to {shards} shards: {why}"));
}

/// A run that is killed at a call that holds a text, which never arrives.
pub async fn killed_at(world: &World, shards: u16, text: &'static str) {
    killed(world, shards, Mishap { text, before: 0, vanishes: true, stops: None }).await;
}

/// A run that is killed at a call, which arrives unless it vanishes.
pub async fn killed(world: &World, shards: u16, mishap: Mishap) {
    assert!(run(world, shards, Some(mishap)).await.is_none(), "{mishap:?} was not met");
}

/// Puts every item once through a gateway; each put lands, and is answered, so late.
pub async fn puts(world: &World, gateway: usize, items: &[String], there: Duration, back: Duration) {
    let fate = Fate { back, ..Fate::late(there) };
    world.network.plan(&name(gateway), Wire::PutItem, "\"n\"", items.len(), fate);
    let puts = items.iter().enumerate();
    join_all(puts.map(|(at, item)| world.call(gateway, item, Operation::Put(value(100 + at)), PATIENCE)))
        .await;
}

pub async fn after<T>(world: &World, pause: Duration, then: impl Future<Output = T>) -> T {
    world.clock.sleep(pause).await;
    then.await
}

/// Some writes of every kind, through both gateways.
async fn mixed(world: &World, items: &[String], from: usize) {
    let writes = items.iter().enumerate().map(|(at, item)| {
        let operation = match at % 6 {
            0 => Operation::Add(7),
            1 => Operation::Delete,
            2 => Operation::Create(value(from + at)),
            3 => Operation::Update(value(from + at)),
            _ => Operation::Put(value(from + at)),
        };
        world.call(at % 2, item, operation, PATIENCE)
    });
    join_all(writes).await;
}

/// The gateway notices each phase later than others.
fn slow(world: &World, gateway: usize) {
    let fate = Fate { back: seconds(1.5), ..Fate::late(seconds(0.01)) };
    world.network.plan(&name(gateway), Wire::GetItem, "\"head\"", 1_000, fate);
}

/// Does something while two clients put and read items in turn, one after the other, each through
/// both gateways; and a little longer.
pub async fn beside(world: &World, items: &[String], does: impl Future<Output = ()>) {
    let over = Cell::new(false);
    let client = async |first: usize| {
        for round in first.. {
            if over.get() {
                break;
            }
            let (item, gateway) = (&items[round / 2 % items.len()], round % 2);
            let operation = if round % 5 == 4 {
                Operation::Add(1)
            } else {
                Operation::Put(value(1_000 * (round + 1) + 100 * first))
            };
            world.call(gateway, item, operation, PATIENCE).await;
            world.call(1 - gateway, item, Operation::Get, PATIENCE).await;
            world.clock.sleep(seconds(0.05)).await;
        }
    };
    let does = async {
        does.await;
        world.clock.sleep(seconds(1.0)).await;
        over.set(true);
    };
    join(join(client(0), client(1)), does).await;
}

pub fn count() -> Vec<String> {
    items(8)
}

/// Puts that are sent in PREPARE, given up, and land late: they take the key through CHECK.
pub async fn unclean(world: &World, items: &[String]) {
    world.network.set(Weather { patience: seconds(0.5), ..Weather::default() });
    world.network.sent("run", PREPARE, 0, false).await.unwrap();
    puts(world, 1, items, seconds(3.5), seconds(0.01)).await;
    world.network.set(Weather::default());
}

/// A gateway asks while a key moves what is refused then.
pub async fn refused(world: &World, operation: Wire, request: Json) -> Error {
    let error = world.ask(0, operation, &request, PATIENCE).await.unwrap_err();
    assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}");
    error
}
