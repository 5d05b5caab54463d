//! Steps of a change: who is waited for, what is written before what, what arrives late.

use futures::future::join;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use heatsink_workers::Direction;

use super::{LONG, blind, brought_back, cut_off, days, in_days, in_turn, looks, put_in_two, put_once, whole};
use crate::client::PATIENCE;
use crate::network::{Fate, Weather};
use crate::scene::{items, put_all, scene, seconds, value};
use crate::table::{BY_STATUS, OWN};
use crate::world::name;

#[test]
fn a_gateway_that_comes_during_a_change_is_listed() {
    scene(1, &[""], items(40), 40, |world, items| async move {
        world.create_past().await;
        world.network.plan("worker", Wire::TransactWriteItems, "ADOPTING", 1, Fate::late(seconds(4.0)));
        let comes = async {
            world.clock.sleep(seconds(1.0)).await;
            world.start_surely(0).await.unwrap();
            blind(&world, 0, seconds(15.0));
            in_turn(&world, 0, &items).await;
        };
        join(comes, world.adopt_surely(OWN, Direction::Adopt)).await;
    });
}

#[test]
fn a_gateway_that_comes_during_a_first_touch_is_listed() {
    scene(1, &[OWN, ""], items(12), 11, |world, items| async move {
        world.create_past().await;
        world.network.plan(&name(0), Wire::TransactWriteItems, "PENDING", 1, Fate::late(seconds(4.0)));
        let touched = async {
            world.start_surely(0).await.unwrap();
            put_all(&world, &items[..1], &[0], seconds(1.0), 1).await;
        };
        let comes = async {
            world.clock.sleep(seconds(1.0)).await;
            world.start_surely(1).await.unwrap();
            world.call(1, &items[0], Operation::Get, PATIENCE).await;
            blind(&world, 1, seconds(15.0));
            world.clock.sleep(seconds(5.0)).await;
            put_once(&world, 1, &items[1..], seconds(0.01)).await;
        };
        join(touched, comes).await;
    });
}

#[test]
fn a_gateway_that_sees_no_change_acts_until_its_lease_is_over() {
    scene(1, &["", ""], days(), 3, |world, items| async move {
        in_days(&world, &items).await;
        cut_off(&world, 1);
        let put = put_in_two(&world, &items[4], seconds(45.0), seconds(0.01));
        join(put, brought_back(&world, seconds(0.1))).await;
        world.network.unplan();
    });
}

#[test]
fn its_last_call_lands_later_still() {
    scene(1, &["", ""], days(), 3, |world, items| async move {
        in_days(&world, &items).await;
        cut_off(&world, 1);
        let put = put_in_two(&world, &items[4], seconds(50.0), seconds(29.0));
        join(put, brought_back(&world, seconds(0.1))).await;
        world.network.unplan();
    });
}

#[test]
fn a_call_that_was_given_up_is_waited_for() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.network.set(Weather { patience: seconds(1.0), ..Weather::default() });
        world.network.plan(&name(1), Wire::PutItem, "\"n\"", 1, Fate::late(seconds(25.0)));
        world.call(1, &items[0], Operation::Put(value(50)), LONG).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        world.clock.sleep(seconds(30.0)).await;
    });
}

#[test]
fn a_record_stands_before_gateways_are_told_of_it() {
    scene(1, &["", ""], items(48), 48, |world, items| async move {
        whole(&world, &items[..8]).await;
        world.clock.sleep(seconds(15.0)).await;
        world.network.plan("worker", Wire::TransactWriteItems, "ADOPTING", 1, Fate::late(seconds(5.0)));
        let puts = async {
            world.clock.sleep(seconds(4.0)).await;
            blind(&world, 1, seconds(15.0));
            in_turn(&world, 1, &items[8..]).await;
        };
        join(puts, world.adopt_surely(OWN, Direction::Adopt)).await;
    });
}

#[test]
fn whoever_goes_on_tells_of_it_again() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.clock.sleep(seconds(15.0)).await;
        // The first step is told of; the second one is on record when its worker is killed.
        let told =
            |late| world.network.plan("worker", Wire::PutItem, "\"changes\"", 1, Fate::late(seconds(late)));
        told(0.01);
        told(100.0);
        let know = async {
            for _ in 0..32 {
                world.clock.sleep(seconds(0.1)).await;
                world.call(1, &items[0], Operation::Get, PATIENCE).await;
            }
            blind(&world, 1, seconds(8.0));
        };
        join(world.adopt(BY_STATUS, Direction::Adopt, seconds(3.6)), know).await;
        join(put_once(&world, 1, &items, seconds(3.0)), world.adopt_surely(BY_STATUS, Direction::Adopt))
            .await;
    });
}

/// A run of `adopt` is killed while its next record is on its way, and another run turns round and
/// finishes before that arrives.
#[test]
fn a_record_that_arrives_late_replaces_no_newer_one() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        world.network.plan("worker", Wire::PutItem, "\\\"writes_new\\\":true", 1, Fate::late(seconds(60.0)));
        let rules = format!("{OWN}{BY_STATUS}");
        let _ = world.adopt(&rules, Direction::Adopt, seconds(20.0)).await;
        world.adopt_surely(&rules, Direction::Back).await;
        for at in 0..200 {
            // One gateway has looked the table up just before, the other one looks just after.
            world.clock.sleep(seconds(0.5)).await;
            let item = &items[at % items.len()];
            world.call(at % 2, item, Operation::Put(value(1_000 + at)), PATIENCE).await;
            let _ = world.query((at + 1) % 2, &items, Some(1), 8, true).await;
        }
    });
}

/// A run of `adopt` is killed while its last record is on its way, and another run finishes it. The
/// record arrives while a third run brings the items back.
#[test]
fn a_record_that_arrives_late_ends_no_later_run() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.network.plan("worker", Wire::PutItem, "ACTIVE", 1, Fate::late(seconds(60.0)));
        world.adopt(OWN, Direction::Adopt, seconds(30.0)).await;
        world.adopt_surely(OWN, Direction::Adopt).await;
        let moves = format!("\"TableName\":\"{}\"", crate::TABLE);
        world.network.plan("worker", Wire::TransactWriteItems, &moves, 8, Fate::late(seconds(12.0)));
        let reads = async {
            world.clock.sleep(seconds(32.0)).await;
            world.kill(1);
            world.start_surely(1).await.unwrap();
            for item in &items {
                world.call(1, item, Operation::Get, PATIENCE).await;
            }
        };
        join(world.adopt_surely(OWN, Direction::Back), reads).await;
    });
}

/// Two changes at one moment each tell of themselves.
#[test]
fn no_change_of_the_head_is_lost() {
    const OTHER: &str = "[[rule]]\ntable = \"Other\"\nstrategy = \"calculated\"\nshards = 4\n";
    let both = format!("{OWN}{OTHER}");
    scene(1, &[&both, "", OTHER], items(40), 20, |world, items| async move {
        world.start_surely(1).await.unwrap();
        world.start_surely(2).await.unwrap();
        world.create_past().await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        // Gateway 1 looks at the head after both, and what it knows is new enough to go on with.
        looks(&world, 1, 1, Fate::late(seconds(4.0)));
        world.clock.sleep(seconds(2.6)).await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        let text = "\"changes\"";
        world.network.plan(&name(0), Wire::PutItem, text, 1, Fate::late(seconds(0.3)));
        world.network.plan(&name(2), Wire::PutItem, text, 1, Fate::late(seconds(1.0)));
        let other = async {
            let mut create = crate::table::create();
            create["TableName"] = serde_json::json!("Other");
            let _ = world.ask(2, Wire::CreateTable, &create, PATIENCE).await;
        };
        // Through the gateway with the rule the table is empty still.
        let puts = async {
            world.clock.sleep(seconds(4.2)).await;
            in_turn(&world, 1, &items).await;
        };
        let touched = async { world.start_surely(0).await.unwrap() };
        join(join(other, touched), puts).await;
    });
}
