//! Keys that one gateway moves as a group: it is killed, stopped, or layouts are frozen, at every
//! step of the group; or that befalls another gateway. Nothing that was acknowledged is lost, no key
//! stays on its way, and the items of all keys can be written again soon.

use std::cell::Cell;
use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_control::reshard_intent::EndedAs;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use serde_json::json;

use super::{CHECK, CLEAR, COPY, HOLD, MOVE, PREPARE, PUBLICATION, RESERVE, WHOLE};
use crate::TABLE;
use crate::client::Reply;
use crate::network::{self, Fate, Weather};
use crate::scene::{put_all, scene, seconds, start, value};
use crate::world::World;

/// The keys that move.
const GROUP: [&str; 4] = ["game", "game2", "game3", "game4"];
/// Three gateways.
const THREE: [&str; 3] = [WHOLE, WHOLE, WHOLE];
/// What the record of a key holds that is where it goes.
const OVER: &str = r#""layout":{"S":"{\"hash\":\"JumpXxh3\",\"shards\":4"#;

fn items() -> Vec<String> {
    let of = |prefix: &str| (0..3).map(move |at| format!("{prefix}{at}")).collect::<Vec<String>>();
    ["p", "other", "third", "fourth", "idle"].into_iter().flat_map(of).collect()
}

/// Whom it befalls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Whom {
    /// The gateway that moves the keys.
    Mover,
    /// One that only serves.
    Other,
}

/// What befalls it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// It is killed, and started again after a while.
    Killed,
    Stopped(Duration),
}

/// The number in the name of a gateway.
fn number(name: &str) -> usize {
    name.trim_start_matches("gateway ").parse().unwrap()
}

/// The gateways serve, and every item is there.
async fn begun(world: &World, items: &[String]) {
    world.create_past().await;
    world.carry();
    start(world).await;
    put_all(world, items, &[0, 1, 2], seconds(0.3), 1).await;
}

/// Two clients of each item write and read it through all gateways, until it is over. Returns the
/// longest that a client of each item had no write acknowledged.
async fn used(world: &World, items: &[String], over: &Cell<bool>) -> Vec<Duration> {
    let client = async |at: usize, item: &String| {
        let (mut last, mut longest) = (world.clock.now(), Duration::ZERO);
        for round in at.. {
            if over.get() {
                break;
            }
            let operation = match round % 7 {
                0 => Operation::Add(1),
                1 => Operation::Update(value(10_000 * (round + 1) + at)),
                2 => Operation::Get,
                3 if at.is_multiple_of(3) => Operation::Delete,
                4 => Operation::Create(value(10_000 * (round + 1) + at)),
                _ => Operation::Put(value(10_000 * (round + 1) + at)),
            };
            let reply = world.call(round % 3, item, operation, seconds(4.0)).await;
            if operation != Operation::Get && matches!(reply, Reply::Answered(_)) {
                longest = longest.max(world.clock.now().since(last));
                last = world.clock.now();
            }
            world.clock.sleep(seconds(0.3)).await;
        }
        longest.max(world.clock.now().since(last))
    };
    join_all(items.iter().enumerate().map(|(at, item)| client(at, item))).await
}

/// The group moves to four shards while clients use it, and that befalls it. Returns the longest
/// that clients of one item had no write acknowledged.
async fn moved_beside(world: &World, items: &[String], befalls: impl Future<Output = ()>) -> Duration {
    let over = Cell::new(false);
    let moves = async {
        assert_eq!(world.ask_for(WHOLE, &GROUP, &4.into()).await, GROUP.len());
        if !world.until_carried(&GROUP, seconds(300.0)).await {
            world.book.fault("a key of the group is stuck".to_owned());
        }
    };
    let all = async {
        join(befalls, moves).await;
        world.clock.sleep(seconds(1.0)).await;
        over.set(true);
    };
    let (longest, ()) = join(used(world, items, &over), all).await;
    for one in world.intents().await {
        if one.ended.as_ref().is_none_or(|ended| ended.how != EndedAs::Moved) {
            world.book.fault(format!("{} did not come to its end: {:?}", one.key_text(), one.ended));
        }
    }
    world.all_have(&GROUP, 4).await;
    longest.into_iter().max().unwrap()
}

/// When a gateway sends a request that holds this, something befalls it or another one.
async fn befalls(world: &World, text: &str, before: usize, vanishes: bool, (whom, what): (Whom, What)) {
    let sent = world.network.sent("gateway", text, before, vanishes).await;
    let mover = number(&sent.expect("it was not sent"));
    let gateway = if whom == Whom::Mover { mover } else { (mover + 1) % THREE.len() };
    match what {
        What::Killed => {
            world.kill(gateway);
            world.clock.sleep(seconds(20.0)).await;
            let _ = world.start_surely(gateway).await;
        }
        What::Stopped(pause) => {
            world.stop(gateway, true);
            world.clock.sleep(pause).await;
            world.stop(gateway, false);
        }
    }
}

/// Plays that at each step of the group; nobody may wait longer than that for a write.
fn at_each_step(whom: Whom, what: What, longest: Duration) {
    for text in [RESERVE, PREPARE, HOLD, MOVE, COPY, CLEAR, OVER] {
        for vanishes in [false, true] {
            if vanishes && what != What::Killed {
                continue;
            }
            scene(1, &THREE, items(), 60, move |world, items| async move {
                begun(&world, &items).await;
                let mishap = befalls(&world, text, 0, vanishes, (whom, what));
                let waited = moved_beside(&world, &items, mishap).await;
                if waited > longest {
                    world.book.fault(format!("{whom:?} {what:?} at {text}: a write waited {waited:?}"));
                }
            });
        }
    }
}

#[test]
fn a_group_whose_mover_is_killed_at_any_step_is_taken_over() {
    at_each_step(Whom::Mover, What::Killed, seconds(15.0));
}

#[test]
fn a_group_whose_mover_is_stopped_at_any_step_goes_on() {
    for pause in [3.0, 40.0] {
        at_each_step(Whom::Mover, What::Stopped(seconds(pause)), seconds(20.0));
    }
}

#[test]
fn a_group_goes_on_when_a_gateway_is_killed_or_stopped_at_any_step() {
    // The mover waits as long for the answer to a request that is lost, also in HOLD.
    at_each_step(Whom::Other, What::Killed, network::PATIENCE + seconds(5.0));
    for pause in [3.0, 40.0] {
        at_each_step(Whom::Other, What::Stopped(seconds(pause)), seconds(20.0));
    }
}

#[test]
fn a_mover_of_a_group_can_be_killed_at_any_of_its_calls() {
    for before in (0..240).step_by(6) {
        let vanishes = before % 4 == 0;
        scene(1, &THREE, items(), 60, move |world, items| async move {
            begun(&world, &items).await;
            // From when the group has its first records.
            let kills = async {
                world.network.sent("gateway", RESERVE, 0, false).await.unwrap();
                befalls(&world, "", before, vanishes, (Whom::Mover, What::Killed)).await;
            };
            moved_beside(&world, &items, kills).await;
        });
    }
}

#[test]
fn who_takes_a_group_over_publishes_again_what_was_written_and_not_published() {
    for before in 0..6 {
        scene(1, &THREE, items(), 60, move |world, items| async move {
            begun(&world, &items).await;
            let kills = befalls(&world, PUBLICATION, before, true, (Whom::Mover, What::Killed));
            moved_beside(&world, &items, kills).await;
        });
    }
}

#[test]
fn a_freeze_leaves_no_writes_of_a_group_waiting() {
    for text in [RESERVE, PREPARE, HOLD, MOVE, COPY] {
        scene(1, &THREE, items(), 60, move |world, items| async move {
            begun(&world, &items).await;
            let freezes = async {
                world.network.sent("gateway", text, 0, false).await.unwrap();
                world.freeze(true).await;
                world.clock.sleep(seconds(40.0)).await;
                world.freeze(false).await;
            };
            let waited = moved_beside(&world, &items, freezes).await;
            if waited > seconds(20.0) {
                world.book.fault(format!("frozen at {text}: a write waited {waited:?}"));
            }
        });
    }
}

/// Calls of one key that have no answer take the group through CHECK.
#[test]
fn a_mover_of_a_group_is_killed_in_check() {
    scene(1, &THREE, items(), 60, move |world, items| async move {
        begun(&world, &items).await;
        let lost = async {
            world.network.sent("gateway", PREPARE, 0, false).await.unwrap();
            world.network.set(Weather { patience: seconds(0.5), ..Weather::default() });
            // The clients', and none of the registry's.
            for operation in [Wire::PutItem, Wire::UpdateItem] {
                world.network.plan(
                    "gateway",
                    operation,
                    r#""pk":{"S":"game3"}"#,
                    3,
                    Fate::late(seconds(3.5)),
                );
            }
            world.network.sent("gateway", HOLD, 0, false).await.unwrap();
            world.network.set(Weather::default());
        };
        let kills = befalls(&world, CHECK, 0, true, (Whom::Mover, What::Killed));
        let both = async {
            join(lost, kills).await;
        };
        moved_beside(&world, &items, both).await;
    });
}

/// One whose items cannot be moved, for its new slots are throttled, holds up no other.
#[test]
fn one_of_a_group_that_cannot_go_on_holds_up_no_other() {
    scene(1, &THREE, items(), 15, move |world, items| async move {
        begun(&world, &items).await;
        let throttled = Fate { throttled: true, ..Fate::late(seconds(0.01)) };
        world.network.plan("gateway", Wire::TransactWriteItems, "\"game3#~", 100_000, throttled);
        world.ask_for(WHOLE, &GROUP, &4.into()).await;
        let others = ["game", "game2", "game4"];
        if !world.until_carried(&others, seconds(30.0)).await {
            world.book.fault("a key is held up by one that is throttled".to_owned());
        }
        world.all_have(&others, 4).await;
        assert!(!world.until_carried(&["game3"], seconds(1.0)).await, "it is throttled");
        world.network.unplan();
        if !world.until_carried(&GROUP, seconds(200.0)).await {
            world.book.fault("a key of the group is stuck".to_owned());
        }
        world.all_have(&GROUP, 4).await;
    });
}

/// An item of a client under the name of a shard of one of them.
#[test]
fn one_of_a_group_whose_names_are_taken_stays_and_the_others_go_on() {
    scene(1, &THREE, items(), 15, move |world, items| async move {
        begun(&world, &items).await;
        let taken = json!({ "TableName": TABLE, "Item": { "pk": { "S": "game2#~1" }, "sk": { "S": "p9" } } });
        world.past(Wire::PutItem, &taken).await.unwrap();
        world.ask_for(WHOLE, &GROUP, &4.into()).await;
        assert!(world.until_carried(&GROUP, seconds(60.0)).await, "a key is stuck");
        world.all_have(&["game", "game3", "game4"], 4).await;
        world.all_have(&["game2"], 1).await;
        let gone = json!({ "TableName": TABLE, "Key": { "pk": { "S": "game2#~1" }, "sk": { "S": "p9" } } });
        world.past(Wire::DeleteItem, &gone).await.unwrap();
    });
}
