//! Layouts that change while clients go on: each scenario by name in which writes were lost before
//! changes were fenced, and all stories together.
//!
//! In each, clients note what was acknowledged, and in the end every way to read has to show it.

use std::rc::Rc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, join, join_all};
use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_history::{Answer, Operation, Value};
use heatsink_workers::Direction;
use serde_json::{Value as Json, json};

use crate::client::{PATIENCE, Reply};
use crate::network::{Fate, Weather};
use crate::scene::{items, put, put_all, scene, seconds, start, value};
use crate::stories::Story;
use crate::table::{BY_STATUS, DAYS, OWN};
use crate::world::{World, name};
use crate::{TABLE, play_seeds};

#[test]
fn puts_until_the_table_exists_are_found_although_the_store_denies_it_for_a_while() {
    // Whether a look-up is told "not found" is a matter of chance.
    for seed in 1..=8 {
        scene(seed, &[OWN], items(20), 20, |world, items| async move {
            start(&world).await;
            world.network.set(Weather { stale: seconds(0.5), ..Weather::default() });
            world.create_past().await;
            // What goes on to the store as it was sent is still on its way when another look-up
            // finds the table, and finds it empty.
            world.network.plan(&name(0), Wire::PutItem, "\"game\"", 20, Fate::late(seconds(0.4)));
            let puts = items.iter().enumerate().map(|(at, item)| {
                let world = &world;
                async move {
                    world.clock.sleep(seconds(0.025) * at as u32).await;
                    put(world, 0, item, value(1 + at), seconds(0.05)).await;
                }
            });
            join_all(puts).await;
        });
    }
}

#[test]
fn puts_until_the_table_exists_are_found_when_the_gateway_itself_makes_it() {
    scene(1, &[OWN], items(40), 40, |world, items| async move {
        start(&world).await;
        let made = async {
            world.clock.sleep(seconds(0.2)).await;
            world.change_table(0, Wire::CreateTable).await;
        };
        join(made, put_all(&world, &items, &[0], seconds(0.005), 1)).await;
    });
}

#[test]
fn a_rule_is_rolled_out_while_another_gateway_knows_the_empty_table_as_whole() {
    scene(1, &[OWN, ""], items(40), 1, |world, items| async move {
        world.create_past().await;
        world.start_surely(1).await.unwrap();
        let get = world.call(1, &items[0], Operation::Get, PATIENCE).await;
        assert!(matches!(get, Reply::Answered(Answer::Saw(None))));
        world.start_surely(0).await.unwrap();
        put_all(&world, &items, &[0, 1], seconds(1.0), 1).await;
        world.set_rules(1, OWN);
        world.kill(1);
        world.start_surely(1).await.unwrap();
    });
}

/// Has gateway 1 plan requests with what it knew nearly ten seconds ago: one request looks again,
/// and waits long for its answer, while those beside it go on with what is known.
async fn with_old_knowledge(world: &World, item: &str, writes: Vec<LocalBoxFuture<'_, Reply>>) {
    world.network.plan(&name(1), Wire::DescribeTable, "", 1, Fate::late(seconds(5.0)));
    let look = world.call(1, item, Operation::Get, PATIENCE);
    let writes = async {
        world.clock.sleep(seconds(0.05)).await;
        join_all(writes).await;
    };
    join(look, writes).await;
}

#[test]
fn puts_that_are_late_during_an_index_adoption_are_in_every_query() {
    scene(1, &["", ""], items(16), 24, |world, items| async move {
        world.create_past().await;
        start(&world).await;
        put_all(&world, &items, &[0], seconds(1.0), 1).await;
        world.clock.sleep(seconds(15.0)).await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        let late = async {
            world.clock.sleep(seconds(9.7)).await;
            world.network.plan(&name(1), Wire::PutItem, "", 8, Fate::late(seconds(14.0)));
            let put = |at: usize| {
                world.call(1, &items[at], Operation::Put(value(100 + at)), PATIENCE).boxed_local()
            };
            with_old_knowledge(&world, &items[0], (0..8).map(put).collect()).await;
        };
        join(late, world.adopt_surely(BY_STATUS, Direction::Adopt)).await;
    });
}

#[test]
fn an_update_that_is_slow_while_an_index_is_brought_back_shows_no_physical_key() {
    scene(1, &["", ""], items(8), 16, |world, items| async move {
        world.create_past().await;
        start(&world).await;
        put_all(&world, &items, &[0], seconds(1.0), 1).await;
        world.adopt_surely(BY_STATUS, Direction::Adopt).await;
        world.clock.sleep(seconds(15.0)).await;
        let late = async {
            world.clock.sleep(seconds(9.5)).await;
            world.call(1, &items[0], Operation::Get, PATIENCE).await;
            world.clock.sleep(seconds(9.7)).await;
            world.network.plan(&name(1), Wire::UpdateItem, "", 8, Fate::late(seconds(9.0)));
            let update = |at: usize| {
                let done = Value { number: 100 + at as i64, label: 2 };
                world.call(1, &items[at], Operation::Update(done), PATIENCE).boxed_local()
            };
            with_old_knowledge(&world, &items[0], (0..8).map(update).collect()).await;
        };
        join(late, world.adopt_surely(BY_STATUS, Direction::Back)).await;
    });
}

#[test]
fn a_put_that_waited_for_an_old_look_up_is_found() {
    scene(1, &[OWN, OWN], items(12), 6, |world, items| async move {
        start(&world).await;
        // The look-up that says "not found" is answered while the gateway is stopped, and read when
        // it goes on.
        let hangs_up = world.call(0, &items[0], Operation::Get, seconds(0.005));
        let waits = async {
            world.clock.sleep(seconds(0.001)).await;
            let put = |at: usize| world.call(0, &items[at], Operation::Put(value(1 + at)), seconds(90.0));
            join_all((0..6).map(put)).await;
        };
        let stopped = async {
            world.clock.sleep(seconds(0.005)).await;
            world.stop(0, true);
            world.clock.sleep(seconds(1.0)).await;
            world.create_past().await;
            put_all(&world, &items[6..], &[1], seconds(1.0), 100).await;
            world.clock.sleep(seconds(50.0)).await;
            world.stop(0, false);
        };
        world.network.plan(&name(0), Wire::DescribeTable, TABLE, 1, Fate::late(seconds(0.01)));
        join(join(hangs_up, waits), stopped).await;
    });
}

/// A request, sent again as long as it is not done and can be.
async fn asked(world: &World, gateway: usize, operation: Wire, body: &Json) -> Result<Json, Error> {
    for _ in 0..300 {
        match world.ask(gateway, operation, body, PATIENCE).await {
            Err(error) if error.retryable() && error.outcome == Outcome::NotDone => {
                world.clock.sleep(seconds(1.0)).await;
            }
            answer => return answer,
        }
    }
    Err(Error::internal("it is never done"))
}

const COUNTER: &str =
    "[[rule]]\ntable = \"Votes\"\nstrategy = \"counter\"\nattributes = [\"votes\"]\nshards = 8\n";

#[test]
fn time_to_live_brings_no_counter_back_from_the_dead() {
    let world = World::new(1);
    world.add_gateway(COUNTER);
    world.add_gateway(COUNTER);
    let played = Rc::clone(&world);
    world.run(async move {
        let world = played;
        start(&world).await;
        let table = json!({
            "TableName": "Votes", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        });
        world.past(Wire::CreateTable, &table).await.unwrap();
        let key = json!({ "pk": { "S": "c" } });
        let update = |expression: &str, values: Json| {
            json!({
                "TableName": "Votes", "Key": key, "UpdateExpression": expression, "ExpressionAttributeValues": values,
            })
        };
        let add = || update("ADD votes :n", json!({ ":n": { "N": "1" } }));
        let expires = update("SET expires = :t", json!({ ":t": { "N": "1767225601" } }));
        asked(&world, 0, Wire::UpdateItem, &expires).await.unwrap();
        for _ in 0..16 {
            asked(&world, 0, Wire::UpdateItem, &add()).await.unwrap();
        }
        // A gateway that was never asked for the table.
        let expiry = json!({
            "TableName": "Votes", "TimeToLiveSpecification": { "Enabled": true, "AttributeName": "expires" },
        });
        if let Err(error) = asked(&world, 1, Wire::UpdateTimeToLive, &expiry).await {
            assert!(error.code == Code::ValidationException && error.to_string().contains("counter"), "{error}");
            return;
        }
        // The store deletes what has expired: rows, as it knows of nothing else.
        world.clock.sleep(seconds(60.0)).await;
        let rows = world.past(Wire::Scan, &json!({ "TableName": "Votes" })).await.unwrap();
        for row in rows["Items"].as_array().unwrap().iter().filter(|row| row.get("expires").is_some()) {
            let delete = json!({ "TableName": "Votes", "Key": { "pk": row["pk"] } });
            world.past(Wire::DeleteItem, &delete).await.unwrap();
        }
        let get = json!({ "TableName": "Votes", "Key": key, "ConsistentRead": true });
        let gone = asked(&world, 0, Wire::GetItem, &get).await.unwrap();
        assert_eq!(gone.get("Item"), None, "the counter has expired");
        for _ in 0..8 {
            asked(&world, 0, Wire::UpdateItem, &add()).await.unwrap();
        }
        let again = asked(&world, 0, Wire::GetItem, &get).await.unwrap();
        assert_eq!(again["Item"]["votes"]["N"], "8", "and was made anew");
    });
}

#[test]
fn buckets_of_a_table_that_was_made_again_are_open_to_every_gateway() {
    let days = (1..=6).map(|day| format!("2026-01-0{day}T00:00:00Z")).collect();
    scene(1, &[DAYS, DAYS], days, 12, |world, items| async move {
        start(&world).await;
        world.change_table(0, Wire::CreateTable).await;
        put_all(&world, &items, &[0, 1], seconds(1.0), 1).await;
        world.change_table(0, Wire::DeleteTable).await;
        world.change_table(0, Wire::CreateTable).await;
        put_all(&world, &items, &[1], seconds(1.0), 100).await;
        world.kill(0);
        world.start_surely(0).await.unwrap();
    });
}

#[test]
fn a_gateway_that_is_killed_and_started_again_delays_a_change_by_its_late_calls_alone() {
    for seed in 1..=12 {
        scene(seed, &["", ""], items(16), 16, move |world, items| async move {
            world.create_past().await;
            start(&world).await;
            put_all(&world, &items, &[1], seconds(1.0), 1).await;
            let (world, items) = (&world, &items);
            for round in 1..=3 {
                // Puts that land when the next two have been started, up to the straggler bound.
                world.network.plan(&name(1), Wire::PutItem, "", 4, Fate::late(seconds(28.0)));
                let late = (0..4).map(|at| {
                    world.call(1, &items[4 * round + at], Operation::Put(value(100 + at)), seconds(0.5))
                });
                let killed = async {
                    world.clock.sleep(seconds(0.3)).await;
                    world.kill(1);
                };
                join(join_all(late), killed).await;
                world.start_surely(1).await.unwrap();
            }
            let begun = world.clock.now();
            world.adopt_surely(OWN, Direction::Adopt).await;
            let took = world.clock.now().since(begun);
            assert!(took < seconds(if world.are_together() { 60.0 } else { 200.0 }), "{took:?}");
        });
    }
}

#[test]
fn every_story_is_linearizable() {
    play_seeds("every_story_is_linearizable", 300, Story::of);
}
