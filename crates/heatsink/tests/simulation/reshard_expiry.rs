//! Items that expire while their key moves: the store deletes one copy of an item, and no older one
//! may come to light.

use futures::future::{join, join_all};
use heatsink_dynamo::{Code, Operation as Wire};
use heatsink_history::{Answer, Operation, Value};
use serde_json::{Value as Json, json};

use crate::TABLE;
use crate::client::{EXPIRES, EXPIRING, PATIENCE, Reply, body};
use crate::network::Fate;
use crate::reshard_hazards::{
    CHECK, CLEAR, COPY, HOLD, MOVE, PREPARE, RESERVE, WHOLE, after, begun, count, killed_at, moved, refused,
    run, unclean,
};
use crate::scene::{scene, seconds};
use crate::table::expiry;
use crate::world::{World, name};

/// What a write puts that has expired.
fn expired(number: usize) -> Value {
    Value { number: number as i64, label: EXPIRING }
}

/// A write of every kind that leaves an expiry.
#[derive(Clone, Copy, Debug)]
enum How {
    Put,
    Batch,
    Transaction,
    Update,
    /// A put of what does not expire, and an update that has it expire.
    PutAndUpdate,
}

/// One write of an item. Whether it was done.
async fn written(world: &World, gateway: usize, item: &str, how: How, value: Value) -> bool {
    let put = body(item, value);
    let (wire, request) = match how {
        How::Put => return is_done(&world.call(gateway, item, Operation::Put(value), PATIENCE).await),
        How::Update => return is_done(&world.call(gateway, item, Operation::Update(value), PATIENCE).await),
        How::PutAndUpdate => {
            let lasting = Value { number: value.number + 50, label: 0 };
            let put = world.call(gateway, item, Operation::Put(lasting), PATIENCE).await;
            let update = world.call(1 - gateway, item, Operation::Update(value), PATIENCE).await;
            return is_done(&put) && is_done(&update);
        }
        How::Batch => {
            (Wire::BatchWriteItem, json!({ "RequestItems": { TABLE: [{ "PutRequest": { "Item": put } }] } }))
        }
        How::Transaction => {
            let put = json!({ "Put": { "TableName": TABLE, "Item": put } });
            (Wire::TransactWriteItems, json!({ "TransactItems": [put] }))
        }
    };
    let invoked = world.book.moment();
    let done = world.ask(gateway, wire, &request, PATIENCE).await.is_ok();
    world.book.call(item, invoked, Operation::Put(value), done.then_some(Answer::Done));
    done
}

fn is_done(reply: &Reply) -> bool {
    matches!(reply, Reply::Answered(Answer::Done))
}

/// Writes each item so that it has expired; then the store deletes all that has, and nobody may
/// find any.
async fn expire_all(world: &World, items: &[String], how: How, from: usize) {
    let writes = items.iter().enumerate().map(|(at, item)| async move {
        assert!(written(world, at % 2, item, how, expired(from + at)).await, "{item}, {how:?}");
    });
    join_all(writes).await;
    world.delete_expired(|| true).await;
    gone(world, items).await;
}

async fn gone(world: &World, items: &[String]) {
    for (at, item) in items.iter().enumerate() {
        let found = world.call(at % 2, item, Operation::Get, PATIENCE).await;
        assert!(matches!(found, Reply::Answered(Answer::Saw(None))), "{item} is back: {found:?}");
    }
}

#[test]
fn an_item_that_expires_mid_move_does_not_come_back() {
    for how in [How::Put, How::Batch, How::Transaction, How::Update, How::PutAndUpdate] {
        for text in [COPY, CLEAR] {
            scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
                world.create_past().await;
                world.expire_past().await;
                begun(&world, &items).await;
                killed_at(&world, 4, text).await;
                expire_all(&world, &items, how, 100).await;
                moved(&world, 4).await;
                gone(&world, &items).await;
            });
        }
    }
}

#[test]
fn nor_while_the_move_is_paused() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        world.create_past().await;
        world.expire_past().await;
        begun(&world, &items).await;
        killed_at(&world, 4, COPY).await;
        // Nothing is moved but what clients write.
        for (round, how) in [How::Put, How::PutAndUpdate, How::Batch].into_iter().enumerate() {
            world.clock.sleep(seconds(1_200.0)).await;
            let from = 100 * (round + 1);
            expire_all(&world, &items, how, from).await;
            // Some are made anew, and stay.
            for (at, item) in items.iter().enumerate().filter(|(at, _)| at % 3 == round) {
                let value = Value { number: (from + 80 + at) as i64, label: 1 };
                world.call(0, item, Operation::Create(value), PATIENCE).await;
            }
        }
        world.clock.sleep(seconds(1_200.0)).await;
        moved(&world, 4).await;
    });
}

/// Between the two transactions of a pull there are two copies of one version. Each may be deleted,
/// and the other is still the item.
#[test]
fn copies_that_expire_while_they_are_brought_over_are_gone_or_there() {
    for seed in 1..=12 {
        scene(seed, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            world.create_past().await;
            world.expire_past().await;
            begun(&world, &items).await;
            for (at, item) in items.iter().enumerate() {
                written(&world, 0, item, How::Put, expired(50 + at)).await;
            }
            killed_at(&world, 4, if seed % 2 == 0 { CLEAR } else { COPY }).await;
            let mut rng = fastrand::Rng::with_seed(seed);
            let late = Fate::late(seconds(0.2));
            world.network.plan("run", Wire::TransactWriteItems, "game", 6, late);
            world.network.plan(&name(1), Wire::TransactWriteItems, "game", 6, late);
            let store = async {
                for _ in 0..20 {
                    world.clock.sleep(seconds(0.05)).await;
                    world.delete_expired(|| rng.u32(..4) == 0).await;
                }
            };
            let clients = join_all(items.iter().enumerate().map(|(at, item)| {
                let world = &world;
                async move {
                    for round in 0..4 {
                        world.call(round % 2, item, Operation::Get, PATIENCE).await;
                        let value = expired(100 * (round + 1) + at);
                        match (at + round) % 4 {
                            0 => drop(written(world, 1, item, How::Put, value).await),
                            1 => drop(world.call(1, item, Operation::Add(1), PATIENCE).await),
                            2 => drop(world.call(1, item, Operation::Delete, PATIENCE).await),
                            _ => drop(world.call(1, item, Operation::Create(value), PATIENCE).await),
                        }
                    }
                }
            }));
            join(join(store, clients), moved(&world, 4)).await;
        });
    }
}

#[test]
fn what_may_expire_waits_in_check() {
    for how in [How::Put, How::Batch] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            world.create_past().await;
            world.expire_past().await;
            begun(&world, &items).await;
            // Puts of the first two that land late take the key through CHECK.
            let (first, others) = items.split_at(2);
            let expires = async {
                world.network.sent("run", CHECK, 0, false).await.unwrap();
                after(&world, seconds(1.0), expire_all(&world, others, how, 200)).await;
            };
            // It stays in CHECK for longer than the puts take where nothing holds them.
            let moves = async {
                join(unclean(&world, first), killed_at(&world, 4, MOVE)).await;
                world.clock.sleep(seconds(5.0)).await;
                moved(&world, 4).await;
            };
            join(expires, moves).await;
        });
    }
}

#[test]
fn who_takes_over_knows_of_what_expires() {
    for phase in [RESERVE, PREPARE, HOLD, MOVE] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            world.create_past().await;
            world.expire_past().await;
            begun(&world, &items).await;
            killed_at(&world, 4, phase).await;
            killed_at(&world, 4, COPY).await;
            expire_all(&world, &items, How::Put, 100).await;
            moved(&world, 4).await;
        });
    }
}

#[test]
fn time_to_live_is_not_turned_on_while_a_key_moves() {
    for phase in [HOLD, COPY] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            killed_at(&world, 4, phase).await;
            let error = refused(&world, Wire::UpdateTimeToLive, expiry(true)).await;
            assert!(error.to_string().contains("is being moved"), "{error}");
            assert!(!world.expires().await);
            moved(&world, 4).await;
            world.ask(0, Wire::UpdateTimeToLive, &expiry(true), PATIENCE).await.unwrap();
            killed_at(&world, 2, COPY).await;
            expire_all(&world, &items, How::Put, 100).await;
            // Nor is it turned off: what was put before might expire later still.
            refused(&world, Wire::UpdateTimeToLive, expiry(false)).await;
            moved(&world, 2).await;
        });
    }
}

#[test]
fn time_to_live_that_is_turned_on_as_a_move_begins_is_known_to_it() {
    for late in [0.5, 1.5, 2.5, 3.9] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            world.network.plan(&name(1), Wire::UpdateTimeToLive, EXPIRES, 1, Fate::late(seconds(late)));
            let asked = expiry(true);
            let turned = world.ask(1, Wire::UpdateTimeToLive, &asked, PATIENCE);
            let (turned, ()) = join(turned, killed_at(&world, 4, COPY)).await;
            // Its gateway may have given the answer up.
            assert!(turned.is_ok() || turned.is_err_and(|error| error.code != Code::ValidationException));
            assert!(world.expires().await);
            expire_all(&world, &items, How::Put, 100).await;
            moved(&world, 4).await;
        });
    }
    // It came past Heatsink, after the move was prepared.
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        world.network.plan("run", Wire::TransactWriteItems, RESERVE, 1, Fate::late(seconds(1.0)));
        join(killed_at(&world, 4, COPY), after(&world, seconds(0.7), world.expire_past())).await;
        expire_all(&world, &items, How::Put, 100).await;
        moved(&world, 4).await;
    });
}

/// A table of which a rule makes counters of other keys.
const COUNTS: &str = "[[rule]]\ntable = \"Board\"\nkeys = \"votes*\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 4\n\
                      [fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"1s\"\nstraggler = \"4s\"\n";

#[test]
fn no_key_moves_in_a_table_with_counters_that_expire() {
    for late in [false, true] {
        scene(1, &[COUNTS, COUNTS], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let refused = async {
                let why = run(&world, 4, None).await.unwrap().unwrap_err().to_string();
                assert!(why.contains("counters"), "{why}");
            };
            if late {
                world.network.plan("run", Wire::TransactWriteItems, RESERVE, 1, Fate::late(seconds(1.0)));
                join(refused, after(&world, seconds(0.7), world.expire_past())).await;
            } else {
                world.expire_past().await;
                refused.await;
            }
            let rows = world.past(Wire::Scan, &json!({ "TableName": TABLE })).await.unwrap();
            let whole = |row: &Json| row["pk"]["S"] == crate::KEY;
            assert!(rows["Items"].as_array().unwrap().iter().all(whole));
        });
    }
}
