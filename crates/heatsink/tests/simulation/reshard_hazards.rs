//! What can go wrong while a key moves, each by name, in the one order of events in which it does harm. `docs/resharding.md` lists them all.
//!
//! | how | what it is for |
//! |---|---|
//! | a run that is killed at one of its calls | the key stays in a phase for as long as the scene wants |
//! | a call that lands late | it was planned in an earlier phase |
//! | a gateway that is stopped | its lease ends while it has requests in its hands |

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_adopt::Direction;
use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_history::{Answer, Operation};
use heatsink_mover::ReshardError;
use serde_json::{Value as Json, json};

use crate::client::{PATIENCE, Reply, body, key};
use crate::network::{Fate, Lost, Weather};
use crate::reshard::{Mishap, Phases};
use crate::scene::{items, put_all, scene, seconds, start, value};
use crate::world::{World, name};
use crate::{INDEX, KEY, TABLE};

/// No rule for the table, and bounds as in the story.
pub const WHOLE: &str =
    "rule = []\n[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"1s\"\nstraggler = \"4s\"\n";
/// The same with a rule, for an adoption.
const RULED: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"calculated\"\nshards = 4\n[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"1s\"\nstraggler = \"4s\"\n";

/// What a run's call holds that writes the record of a phase, that copies an item, that deletes an old copy, that publishes.
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

pub async fn run(world: &World, shards: u16, mishap: Option<Mishap>) -> Option<Result<u16, ReshardError>> {
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

/// Does something while two clients put and read items in turn, one after the other, each through both gateways; and a little longer.
async fn beside(world: &World, items: &[String], does: impl Future<Output = ()>) {
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

#[test]
fn a_put_of_the_old_layout_that_lands_late_is_waited_for() {
    for late in [0.5, 1.5, 2.5, 3.9] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            world.network.set(Weather { patience: seconds(1.0), ..Weather::default() });
            let late = puts(&world, 1, &items, seconds(late), seconds(0.01));
            join(late, moved(&world, 4)).await;
            mixed(&world, &items, 200).await;
        });
    }
}

#[test]
fn a_success_that_is_in_flight_when_its_layout_is_over_is_found_or_not_told() {
    for back in [1.0, 3.0, 6.0, 12.0] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let put = puts(&world, 1, &items, seconds(0.01), seconds(back));
            join(put, moved(&world, 4)).await;
        });
    }
}

#[test]
fn a_gateway_that_is_stopped_past_its_lease_writes_nothing_where_the_key_was() {
    for stopped in [5.0, 15.0, 60.0] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            // The look-up is answered when the gateway no longer runs; the puts that wait for it are in its hands.
            world.clock.sleep(seconds(11.0)).await;
            world.network.plan(&name(1), Wire::DescribeTable, "", 1, Fate::late(seconds(0.2)));
            let late = join_all(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| world.call(1, item, Operation::Put(value(100 + at)), seconds(120.0))),
            );
            let sleeps = async {
                world.clock.sleep(seconds(0.1)).await;
                world.stop(1, true);
                let wakes = after(&world, seconds(stopped), async { world.stop(1, false) });
                join(moved(&world, 4), wakes).await;
            };
            join(late, sleeps).await;
            mixed(&world, &items, 200).await;
        });
    }
}

#[test]
fn calls_of_a_gateway_that_was_stopped_as_it_sent_them_land_in_the_old_layout_in_time() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let late = puts(&world, 1, &items, seconds(3.9), seconds(0.01));
        let stops = async {
            world.clock.sleep(seconds(0.05)).await;
            world.stop(1, true);
            let wakes = after(&world, seconds(20.0), async { world.stop(1, false) });
            join(moved(&world, 4), wakes).await;
        };
        join(late, stops).await;
    });
}

#[test]
fn a_gateway_whose_heartbeats_fail_while_its_reads_work_takes_no_part() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let lost = Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(0.01)) };
        world.network.plan(&name(1), Wire::UpdateItem, "gateways", 1_000, lost);
        let writes = async {
            for round in 0..20 {
                put_all(&world, &items[..2], &[1], seconds(30.0), 1_000 * round).await;
                world.clock.sleep(seconds(0.5)).await;
            }
        };
        let over = async {
            moved(&world, 4).await;
            world.network.unplan();
        };
        join(writes, over).await;
    });
}

#[test]
fn a_gateway_that_was_taken_off_the_list_comes_back_to_another_layout() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        world.stop(1, true);
        moved(&world, 4).await;
        world.clock.sleep(seconds(60.0)).await;
        moved(&world, 2).await;
        let wakes = async { world.stop(1, false) };
        join(wakes, puts(&world, 1, &items, seconds(0.01), seconds(0.01))).await;
        moved(&world, 5).await;
    });
}

#[test]
fn an_acknowledgement_that_is_lost_holds_nothing_up_for_ever() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let lost = Fate { lost: Some(Lost::Silent), ..Fate::late(seconds(0.01)) };
        world.network.plan(&name(1), Wire::UpdateItem, "gateways", 2, lost);
        join(mixed(&world, &items, 100), moved(&world, 4)).await;
    });
}

#[test]
fn gateways_that_have_never_registered_notice_the_first_key() {
    // Seed 4 begins without a registry.
    scene(4, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let late = after(&world, seconds(12.0), puts(&world, 1, &items, seconds(3.0), seconds(0.01)));
        join(late, moved(&world, 4)).await;
        mixed(&world, &items, 200).await;
    });
}

/// Puts that are sent in PREPARE, given up, and land late: they take the key through CHECK.
pub async fn unclean(world: &World, items: &[String]) {
    world.network.set(Weather { patience: seconds(0.5), ..Weather::default() });
    world.network.sent("run", PREPARE, 0, false).await.unwrap();
    puts(world, 1, items, seconds(3.5), seconds(0.01)).await;
    world.network.set(Weather::default());
}

#[test]
fn deletes_wait_in_check_and_come_back_to_no_old_copy() {
    for seed in 1..=6 {
        scene(seed, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
            begun(&world, &items).await;
            let deletes = async {
                world.network.sent("run", CHECK, 0, false).await.unwrap();
                let deletes = items.iter().enumerate().map(|(at, item)| {
                    let deletes = world.call(0, item, Operation::Delete, PATIENCE);
                    after(&world, seconds(0.3) * at as u32, deletes)
                });
                join_all(deletes).await;
            };
            join(join(unclean(&world, &items), deletes), moved(&world, 4)).await;
        });
    }
}

#[test]
fn only_blind_puts_go_on_in_check() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        join(unclean(&world, &items), killed_at(&world, 4, MOVE)).await;
        let held =
            join_all(items[..4].iter().map(|item| world.call(0, item, Operation::Add(1), seconds(2.0))));
        let waits: Vec<Reply> = held.await;
        assert!(waits.iter().any(|reply| matches!(reply, Reply::Unknown)), "{waits:?}");
        puts(&world, 0, &items, seconds(0.01), seconds(0.01)).await;
        moved(&world, 4).await;
    });
}

/// A copy of each item in a shard that the key had, as a call leaves it that landed later than any bound.
async fn leave_orphans(world: &World, items: &[String]) {
    for item in items {
        let mut orphan = body(item, value(900));
        orphan["pk"]["S"] = json!("game#~1");
        world.past(Wire::PutItem, &json!({ "TableName": TABLE, "Item": orphan })).await.unwrap();
    }
}

#[test]
fn an_orphan_in_the_destination_is_cleared_and_never_shown() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        moved(&world, 2).await;
        moved(&world, 1).await;
        leave_orphans(&world, &items).await;
        // No deletes: of an item whose only copy is an orphan nobody knows whether it was deleted.
        let writes = join_all(items.iter().map(|item| world.call(1, item, Operation::Add(1), PATIENCE)));
        join(writes, moved(&world, 2)).await;
    });
}

#[test]
fn a_mover_that_wakes_late_moves_nothing_of_the_next_move() {
    for (text, late) in [(COPY, 5.0), (CLEAR, 5.0), (COPY, 30.0), (CLEAR, 30.0)] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            world.network.set(Weather { patience: seconds(100.0), ..Weather::default() });
            world.network.plan("run", Wire::TransactWriteItems, text, 1, Fate::late(seconds(late)));
            let zombie = Mishap { text, before: 0, vanishes: false, stops: Some(seconds(late)) };
            let next = after(&world, seconds(8.0), async {
                moved(&world, 4).await;
                join(mixed(&world, &items, 100), moved(&world, 1)).await;
                mixed(&world, &items, 200).await;
            });
            join(run(&world, 4, Some(zombie)), next).await;
        });
    }
}

#[test]
fn who_clears_orphans_late_deletes_nothing_of_the_next_move() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        moved(&world, 2).await;
        moved(&world, 1).await;
        leave_orphans(&world, &items).await;
        world.network.set(Weather { patience: seconds(100.0), ..Weather::default() });
        world.network.plan("run", Wire::TransactWriteItems, CLEAR, 1, Fate::late(seconds(30.0)));
        let zombie = Mishap { text: CLEAR, before: 0, vanishes: false, stops: Some(seconds(25.0)) };
        let next = after(&world, seconds(5.0), async {
            moved(&world, 2).await;
            puts(&world, 0, &items, seconds(0.01), seconds(0.01)).await;
        });
        join(run(&world, 2, Some(zombie)), next).await;
    });
}

#[test]
fn two_movers_at_once_move_each_item_once() {
    for apart in [0.0, 0.1, 1.0, 3.0, 4.5] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let other = after(&world, seconds(apart), run(&world, 4, None));
            join(mixed(&world, &items, 100), join(run(&world, 4, None), other)).await;
            moved(&world, 4).await;
        });
    }
}

#[test]
fn a_run_can_be_killed_at_any_of_its_calls() {
    for before in (0..90).step_by(3) {
        let vanishes = before % 2 == 0;
        scene(1, &[WHOLE, WHOLE], items(4), 4, move |world, items| async move {
            begun(&world, &items).await;
            let mishap = Mishap { text: "", before, vanishes, stops: None };
            join(mixed(&world, &items, 100), run(&world, 3, Some(mishap))).await;
            mixed(&world, &items, 200).await;
            moved(&world, 3).await;
        });
    }
}

#[test]
fn who_takes_over_publishes_again_what_was_written_and_not_published() {
    for before in 0..7 {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let mishap = Mishap { text: PUBLICATION, before, vanishes: true, stops: None };
            slow(&world, 1);
            let taken_over = async {
                run(&world, 3, Some(mishap)).await;
                moved(&world, 3).await;
            };
            beside(&world, &items, taken_over).await;
            world.network.unplan();
        });
    }
}

#[test]
fn a_coordinator_that_is_killed_in_any_phase_is_taken_over() {
    for phase in [RESERVE, PREPARE, HOLD, MOVE, COPY, CLEAR] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            killed_at(&world, 4, phase).await;
            let writes = mixed(&world, &items, 100);
            join(writes, after(&world, seconds(3.0), moved(&world, 4))).await;
        });
    }
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        join(unclean(&world, &items), killed_at(&world, 4, CHECK)).await;
        join(mixed(&world, &items, 200), moved(&world, 4)).await;
    });
}

#[test]
fn a_registry_that_cannot_be_reached_for_a_while_stops_the_move_and_loses_nothing() {
    for away in [3.0, 6.0, 30.0] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let lost = Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(0.01)) };
            let goes = after(&world, seconds(2.5), async {
                world.network.plan(&name(1), Wire::GetItem, "\"head\"", 10_000, lost);
                world.network.plan(&name(1), Wire::UpdateItem, "gateways", 10_000, lost);
                world.clock.sleep(seconds(away)).await;
                world.network.unplan();
            });
            let writes = async {
                for round in 0..8 {
                    mixed(&world, &items[..4], 1_000 * (1 + round)).await;
                    world.clock.sleep(seconds(0.7)).await;
                }
            };
            join(join(goes, writes), moved(&world, 4)).await;
        });
    }
}

#[test]
fn a_mover_that_the_store_throttles_goes_on() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let throttled = Fate { throttled: true, ..Fate::late(seconds(0.01)) };
        world.network.plan("run", Wire::TransactWriteItems, "game", 12, throttled);
        join(mixed(&world, &items, 100), moved(&world, 4)).await;
    });
}

#[test]
fn writes_of_every_kind_that_meet_the_mover_are_done_once() {
    for seed in 1..=8 {
        scene(seed, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            killed_at(&world, 4, COPY).await;
            let late = seconds(0.05 * seed as f64);
            let writes = after(&world, late, async {
                for round in 0..3 {
                    mixed(&world, &items, 100 * (1 + round)).await;
                    let mut turned = items.clone();
                    turned.rotate_left(1 + round);
                    mixed(&world, &turned, 1_000 * (1 + round)).await;
                }
            });
            join(writes, moved(&world, 4)).await;
        });
    }
}

#[test]
fn an_item_that_moves_between_two_pages_is_in_one_of_them() {
    for backwards in [false, true] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let mut request = json!({
                "TableName": TABLE, "KeyConditionExpression": "pk = :k", "Limit": 3, "ConsistentRead": true, "ScanIndexForward": !backwards,
                "ExpressionAttributeValues": { ":k": { "S": KEY } },
            });
            let mut seen = Vec::new();
            for phase in [PREPARE, MOVE, COPY, CLEAR] {
                let page = world.ask(0, Wire::Query, &request, PATIENCE).await.unwrap();
                seen.extend(page["Items"].as_array().unwrap().iter().map(|row| row["sk"].clone()));
                if page["LastEvaluatedKey"].is_null() {
                    break;
                }
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
                killed_at(&world, 4, phase).await;
            }
            seen.sort_by_key(Json::to_string);
            let all: Vec<Json> = items.iter().map(|item| json!({ "S": item })).collect();
            assert_eq!(seen, all);
            moved(&world, 4).await;
        });
    }
}

/// A gateway asks while a key moves what is refused then.
pub async fn refused(world: &World, operation: Wire, request: Json) -> Error {
    let error = world.ask(0, operation, &request, PATIENCE).await.unwrap_err();
    assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}");
    error
}

#[test]
fn an_index_and_a_scan_show_each_item_once_while_a_key_moves_and_after_it() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let query = || {
            json!({
                "TableName": TABLE, "IndexName": INDEX, "KeyConditionExpression": "#s = :s",
                "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":s": { "S": "open" } },
            })
        };
        for phase in [COPY, CLEAR] {
            killed_at(&world, 4, phase).await;
            each_once(&world, Wire::Query, query(), &items).await;
            each_once(&world, Wire::Scan, json!({ "TableName": TABLE }), &items).await;
        }
        moved(&world, 4).await;
        each_once(&world, Wire::Scan, json!({ "TableName": TABLE }), &items).await;
        world.query(0, &items, Some(1), 3, true).await.unwrap();
    });
}

#[test]
fn a_transaction_whose_token_is_sent_again_after_the_move_is_done_once() {
    for late in [0.01, 2.0, 3.5] {
        scene(1, &[WHOLE, WHOLE], items(4), 4, move |world, items| async move {
            begun(&world, &items).await;
            let add = |item: &String| {
                json!({ "Update": {
                    "TableName": TABLE, "Key": key(item), "UpdateExpression": "ADD n :d", "ExpressionAttributeValues": { ":d": { "N": "1000" } },
                } })
            };
            let actions: Vec<Json> = items.iter().map(add).collect();
            let request = json!({ "TransactItems": actions, "ClientRequestToken": "once" });
            let lost = Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(late)) };
            world.network.plan(&name(0), Wire::TransactWriteItems, "once", 1, lost);
            let first = world.ask(0, Wire::TransactWriteItems, &request, PATIENCE);
            let (first, ()) = join(first, moved(&world, 4)).await;
            assert_eq!(first.unwrap_err().outcome, Outcome::Unknown);
            // To the store it is another request: done with the first one, or refused as such.
            let again = world.ask(1, Wire::TransactWriteItems, &request, PATIENCE).await;
            if let Err(error) = &again {
                assert_eq!(error.code, Code::IdempotentParameterMismatchException, "{error}");
            }
            for (at, item) in items.iter().enumerate() {
                let get = json!({ "TableName": TABLE, "Key": key(item), "ConsistentRead": true });
                let row = world.ask(0, Wire::GetItem, &get, PATIENCE).await.unwrap();
                assert_eq!(row["Item"]["n"]["N"], (1_001 + at).to_string());
            }
            put_all(&world, &items, &[0, 1], seconds(1.0), 5_000).await;
            for (at, item) in items.iter().enumerate() {
                let seen = world.call(0, item, Operation::Get, PATIENCE).await;
                assert!(
                    matches!(seen, Reply::Answered(Answer::Saw(Some(found))) if found == value(5_000 + at))
                );
            }
        });
    }
}

/// All pages, two items a page, show each of these items once.
async fn each_once(world: &World, operation: Wire, mut request: Json, items: &[String]) {
    request["Limit"] = json!(2);
    let mut shown = Vec::new();
    loop {
        let mut page = world.ask(0, operation, &request, PATIENCE).await.unwrap();
        let found = page["Items"].as_array().unwrap();
        assert!(found.iter().all(|item| item["pk"]["S"] == KEY), "{found:?}");
        shown.extend(found.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned()));
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        if request["ExclusiveStartKey"].is_null() {
            break;
        }
    }
    shown.sort_unstable();
    let mut expected = items.to_vec();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{operation:?}");
}

/// An item that is as large as an item can be, under the key as it is.
fn large(item: &str) -> Json {
    let mut large = body(item, value(1));
    // Names and values but for the padding: pk, game, sk, p00, n, 1, status, open.
    let bytes: usize = 2 + 4 + 2 + item.len() + 1 + 2 + 6 + 4 + 3;
    large["pad"] = json!({ "S": "x".repeat(409_600 - bytes) });
    large
}

#[test]
fn an_item_that_is_too_large_for_its_longer_key_stays_until_it_is_written_anew() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        for item in &items {
            let invoked = world.book.moment();
            let put = json!({ "TableName": TABLE, "Item": large(item) });
            world.ask(0, Wire::PutItem, &put, PATIENCE).await.unwrap();
            world.book.call(item, invoked, Operation::Put(value(1)), Some(Answer::Done));
        }
        let why = run(&world, 4, None).await.unwrap().unwrap_err().to_string();
        assert!(why.contains("too large"), "{why}");
        for item in &items {
            let row = json!({ "TableName": TABLE, "Key": key(item), "ConsistentRead": true });
            assert!(world.ask(1, Wire::GetItem, &row, PATIENCE).await.unwrap().get("Item").is_some());
        }
        // What has to bring an item first cannot; what replaces it can.
        let mut refused = 0;
        for item in &items {
            refused += usize::from(matches!(
                world.call(0, item, Operation::Add(1), PATIENCE).await,
                Reply::NotDone(_)
            ));
        }
        assert!(refused > 0 && refused < items.len(), "{refused} of {} move", items.len());
        for (at, item) in items.iter().enumerate() {
            let put = world.call(0, item, Operation::Put(value(100 + at)), PATIENCE).await;
            assert!(matches!(put, Reply::Answered(_)), "{put:?}");
        }
        // The old copy of some is still there, and too large: a pull clears it, of a client and of the mover.
        for item in items.iter().take(4) {
            let add = world.call(1, item, Operation::Add(1), PATIENCE).await;
            assert!(matches!(add, Reply::Answered(_)), "{add:?}");
        }
        moved(&world, 4).await;
    });
}

#[test]
fn the_error_of_a_pull_is_told_in_words_that_fit_the_request() {
    fn refusal() -> Error {
        let mut error = Error::new(Code::TransactionCanceledException, "Transaction cancelled");
        error.members.insert(
            "CancellationReasons".to_owned(),
            json!([{ "Code": "ThrottlingError" }, { "Code": "None" }]),
        );
        error
    }
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        killed_at(&world, 4, COPY).await;
        let refused = Fate { refused: Some(refusal), ..Fate::late(seconds(0.01)) };
        world.network.plan(&name(0), Wire::TransactWriteItems, "game", 100, refused);
        let mut met = 0;
        for item in &items {
            if let Reply::NotDone(error) = world.call(0, item, Operation::Add(1), PATIENCE).await {
                met += 1;
                assert_eq!(
                    (error.code.clone(), error.retryable()),
                    (Code::ServiceUnavailable, true),
                    "{error}"
                );
                assert!(error.to_string().contains("is being moved") && error.members.is_empty(), "{error}");
            }
        }
        assert!(met > 0, "some items move");
        world.network.unplan();
        moved(&world, 4).await;
    });
}

#[test]
fn a_record_that_is_read_in_the_middle_of_its_transaction_is_read_again() {
    for phase in [RESERVE, PREPARE, HOLD, MOVE] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            // A cached status is looked up again at the age of 5 s: within the transaction.
            let torn = Fate { torn: Some(seconds(7.0)), ..Fate::late(seconds(0.01)) };
            world.network.plan("run", Wire::TransactWriteItems, phase, 1, torn);
            slow(&world, 1);
            beside(&world, &items, moved(&world, 4)).await;
        });
    }
}

#[test]
fn an_adoption_that_begins_after_a_reshard_was_prepared_ends_it() {
    for late in [3.1, 3.2, 3.3, 5.0, 18.0] {
        scene(1, &[RULED, RULED], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            world.network.plan("run", Wire::TransactWriteItems, RESERVE, 1, Fate::late(seconds(late)));
            let adopts = after(&world, seconds(3.0), world.adopt_surely(RULED, Direction::Back));
            let (ended, _) = join(run(&world, 2, None), adopts).await;
            assert!(
                matches!(ended, Some(Err(ReshardError::Stopped(_) | ReshardError::Busy(_)))),
                "{late} s late: {ended:?}"
            );
            for gateway in 0..2 {
                world.set_rules(gateway, WHOLE);
                world.kill(gateway);
                world.start_surely(gateway).await.unwrap();
            }
            assert!(world.rows_by_key().await.iter().all(|(physical, _, _)| physical == KEY));
            mixed(&world, &items, 300).await;
            moved(&world, 2).await;
        });
    }
}

/// The items under the names that its shards would have are clients' own, before a key is sharded and after it was found so.
#[test]
fn a_name_of_a_shard_that_clients_use_ends_the_move_and_stays_theirs() {
    scene(1, &[WHOLE, WHOLE], items(4), 4, |world, items| async move {
        begun(&world, &items).await;
        let own = json!({ "pk": { "S": "game#~2" }, "sk": { "S": "own" }, "n": { "N": "1" } });
        world.ask(0, Wire::PutItem, &json!({ "TableName": TABLE, "Item": own }), PATIENCE).await.unwrap();
        let why = run(&world, 4, None).await.unwrap().unwrap_err().to_string();
        assert!(why.contains("items of clients lie under"), "{why}");
        let read = json!({ "TableName": TABLE, "Key": { "pk": own["pk"], "sk": own["sk"] }, "ConsistentRead": true });
        for gateway in 0..2 {
            assert_eq!(world.ask(gateway, Wire::GetItem, &read, PATIENCE).await.unwrap()["Item"], own);
        }
        let delete = json!({ "TableName": TABLE, "Key": { "pk": own["pk"], "sk": own["sk"] } });
        world.ask(1, Wire::DeleteItem, &delete, PATIENCE).await.unwrap();
        join(mixed(&world, &items, 100), moved(&world, 4)).await;
        // Now it is nobody's, and stays so when the key has fewer shards.
        for shards in [4, 2] {
            moved(&world, shards).await;
            let error = world
                .ask(0, Wire::PutItem, &json!({ "TableName": TABLE, "Item": own }), PATIENCE)
                .await
                .unwrap_err();
            assert!(error.code == Code::ValidationException, "{error}");
        }
    });
}
