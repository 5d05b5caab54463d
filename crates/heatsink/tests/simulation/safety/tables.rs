//! Tables that are made, put on record, deleted, and given time to live.

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::join;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use heatsink_workers::Direction;

use super::{LONG, blind, cut_off, put_once, whole};
use crate::client::PATIENCE;
use crate::counters::Counters;
use crate::network::Weather;
use crate::scene::{items, put_all, scene, seconds, start};
use crate::table::{OWN, VOTES};
use crate::world::World;

#[test]
fn a_table_that_is_being_put_on_record_is_looked_at_again() {
    scene(1, &[OWN, ""], items(8), 8, |world, items| async move {
        world.start_surely(1).await.unwrap();
        world.create_past().await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        blind(&world, 1, seconds(6.0));
        world.clock.sleep(seconds(2.6)).await;
        let touched = world.start_surely(0);
        join(put_once(&world, 1, &items, seconds(2.0)), touched).await.1.unwrap();
    });
}

#[test]
fn a_name_is_reserved_before_its_table_is_made() {
    scene(1, &[OWN, ""], items(8), 0, |world, items| async move {
        world.start_surely(1).await.unwrap();
        world.create_past().await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        blind(&world, 1, seconds(9.0));
        world.clock.sleep(seconds(2.6)).await;
        world.drop_past().await;
        let made = async {
            world.start_surely(0).await.unwrap();
            world.change_table(0, Wire::CreateTable).await;
        };
        join(put_once(&world, 1, &items, seconds(4.0)), made).await;
    });
}

#[test]
fn a_table_is_made_by_nobody_who_was_taken_for_dead() {
    scene(1, &[OWN, ""], items(8), 0, |world, items| async move {
        start(&world).await;
        world.clock.sleep(seconds(15.0)).await;
        blind(&world, 1, seconds(15.0));
        world.clock.sleep(seconds(2.6)).await;
        let create = crate::table::create();
        let made = world.ask(0, Wire::CreateTable, &create, LONG);
        let meanwhile = async {
            world.clock.sleep(seconds(1.0)).await;
            world.stop(0, true);
            world.clock.sleep(seconds(120.0)).await;
            world.change_table(1, Wire::CreateTable).await;
            world.call(1, &items[0], Operation::Get, PATIENCE).await;
            blind(&world, 1, seconds(9.0));
            world.clock.sleep(seconds(2.6)).await;
            world.drop_past().await;
            world.stop(0, false);
            put_once(&world, 1, &items, seconds(2.0)).await;
        };
        let _ = join(made, meanwhile).await;
        world.create_past().await;
    });
}

#[test]
fn nothing_that_was_meant_for_a_deleted_table_reaches_the_next() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        world.clock.sleep(seconds(15.0)).await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        blind(&world, 1, seconds(9.0));
        world.clock.sleep(seconds(2.6)).await;
        let again = async {
            world.change_table(0, Wire::DeleteTable).await;
            world.create_past().await;
        };
        join(put_once(&world, 1, &items, seconds(4.0)), again).await;
    });
}

/// A deletion waits until no gateway knows the table any more. Meanwhile the table is dropped by a
/// request that bypasses Heatsink, and made again.
#[test]
fn a_deletion_that_waited_deletes_no_later_table() {
    scene(1, &["", ""], items(8), 16, |world, items| async move {
        whole(&world, &items).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        world.clock.sleep(seconds(15.0)).await;
        cut_off(&world, 1);
        let table = serde_json::json!({ "TableName": crate::TABLE });
        let deleted = world.ask(0, Wire::DeleteTable, &table, LONG);
        let again = async {
            world.clock.sleep(seconds(5.0)).await;
            world.drop_past().await;
            world.create_past().await;
        };
        let (deleted, ()) = join(deleted, again).await;
        assert_eq!(deleted.unwrap_err().code, heatsink_dynamo::Code::ResourceNotFoundException);
        world.network.unplan();
        put_all(&world, &items, &[0], seconds(1.0), 100).await;
    });
}

/// A client hangs up and sends its DeleteTable again.
#[test]
fn whoever_deletes_a_table_that_is_being_deleted_waits_too() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        world.clock.sleep(seconds(15.0)).await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        blind(&world, 1, seconds(9.0));
        world.clock.sleep(seconds(2.6)).await;
        let table = serde_json::json!({ "TableName": crate::TABLE });
        let first = world.ask(0, Wire::DeleteTable, &table, LONG);
        let again = async {
            world.clock.sleep(seconds(1.0)).await;
            let _ = world.ask(0, Wire::DeleteTable, &table, LONG).await;
            world.create_past().await;
        };
        let _ = join(join(first, again), put_once(&world, 1, &items, seconds(4.0))).await;
    });
}

/// Plays a script with a gateway that has a rule for counters. Nothing may be wrong in the end.
fn counting<F: Future<Output = ()> + 'static>(
    seed: u64,
    script: impl FnOnce(Rc<World>, Rc<Counters>) -> F + 'static,
) {
    let world = World::new(seed);
    world.add_gateway(VOTES);
    let wrong = Rc::new(RefCell::new(Vec::new()));
    let (told, played) = (Rc::clone(&wrong), Rc::clone(&world));
    world.run(async move {
        let counters = Rc::new(Counters::new(Rc::clone(&played), items(2)));
        played.start_surely(0).await.unwrap();
        script(Rc::clone(&played), Rc::clone(&counters)).await;
        for _ in 0..8 {
            let _ = counters.add(0, "p00", PATIENCE).await;
        }
        *told.borrow_mut() = counters.end(VOTES).await;
    });
    assert_eq!(wrong.borrow().join("\n"), "", "seed {seed}");
}

#[test]
fn a_table_with_time_to_live_takes_no_counters() {
    counting(1, |world, _| async move {
        world.create_past().await;
        world.expire_past().await;
    });
}

#[test]
fn time_to_live_is_not_turned_on_while_the_store_denies_the_table() {
    for seed in [1, 2, 3, 5, 6, 7] {
        counting(seed, |world, _| async move {
            world.change_table(0, Wire::CreateTable).await;
            world.network.set(Weather { stale: seconds(5.0), ..Weather::default() });
            for _ in 0..4 {
                world.expire(0, true).await;
            }
        });
    }
}
