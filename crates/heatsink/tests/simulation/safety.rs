//! For each rule of the fence that chance seldom needs, what happens in the one order in which it is needed. `without/run` shows that each
//! of these fails where its rule is left out.
//!
//! | how | what it is for |
//! |---|---|
//! | a put into a bucket that is new to its gateway | it is two calls: what happens between them is under the old layout |
//! | a gateway that is stopped | its lease ends while it has a request in its hands |
//! | a look at the head that takes long | the gateway goes on with what it knows, under its lease |
//! | a put that lands a minute late | it is acknowledged, or not, long after the step that it delayed |

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_adopt::Direction;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;

use crate::client::PATIENCE;
use crate::counters::Counters;
use crate::network::{Fate, Lost, Weather};
use crate::scene::{items, put, put_all, scene, seconds, start, value};
use crate::table::{BY_STATUS, DAYS, OWN, VOTES};
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

/// Puts one item after the other through a gateway, five in a second, each until that is acknowledged.
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

/// Puts an item into a bucket that is new to gateway 1. The row of the directory is answered after `between`, and then the put itself is sent,
/// which lands so `late`.
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

#[test]
fn no_call_is_sent_under_a_lease_that_is_over() {
    scene(1, &["", ""], days(), 3, |world, items| async move {
        in_days(&world, &items).await;
        let put = put_in_two(&world, &items[4], seconds(1.0), seconds(0.01));
        let stopped = stopped(&world, 1, seconds(0.5), seconds(200.0));
        join(join(put, stopped), brought_back(&world, seconds(0.6))).await;
    });
}

#[test]
fn no_call_is_sent_through_a_closed_gate() {
    scene(1, &["", ""], days(), 3, |world, items| async move {
        in_days(&world, &items).await;
        let put = put_in_two(&world, &items[4], seconds(70.0), seconds(0.01));
        join(put, brought_back(&world, seconds(0.5))).await;
    });
}

#[test]
fn no_result_is_given_through_a_closed_gate() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.book.set_beyond(true);
        let adopted = world.adopt_surely(OWN, Direction::Adopt);
        join(put_once(&world, 1, &items, seconds(70.0)), adopted).await;
    });
}

#[test]
fn no_result_is_given_under_a_lease_that_is_over() {
    scene(1, &["", ""], items(8), 8, |world, items| async move {
        whole(&world, &items).await;
        world.book.set_beyond(true);
        let puts = put_once(&world, 1, &items, seconds(130.0));
        let stopped = stopped(&world, 1, seconds(0.5), seconds(180.0));
        let adopted = async {
            world.clock.sleep(seconds(0.6)).await;
            world.adopt_surely(OWN, Direction::Adopt).await;
        };
        join(join(puts, stopped), adopted).await;
    });
}

#[test]
fn a_look_up_that_a_change_overtook_is_made_again() {
    scene(1, &["", ""], items(8), 16, |world, items| async move {
        world.create_past().await;
        start(&world).await;
        put_all(&world, &items, &[0], seconds(1.0), 1).await;
        be_patient(&world);
        let answered = Fate { back: seconds(40.0), ..Fate::late(seconds(0.001)) };
        world.network.plan(&name(1), Wire::BatchGetItem, "", 1, answered);
        let adopted = world.adopt_surely(OWN, Direction::Adopt);
        join(put_all(&world, &items, &[1], seconds(1.0), 100), adopted).await;
    });
}

#[test]
fn requests_for_a_table_that_was_replaced_are_given_up_too() {
    scene(1, &[OWN, ""], items(8), 0, |world, items| async move {
        world.start_surely(1).await.unwrap();
        world.create_past().await;
        world.call(1, &items[0], Operation::Get, PATIENCE).await;
        be_patient(&world);
        world.book.set_beyond(true);
        world.drop_past().await;
        world.create_past().await;
        let puts = put_once(&world, 1, &items, seconds(70.0));
        let touched = async {
            world.clock.sleep(seconds(11.0)).await;
            world.call(1, &items[0], Operation::Get, PATIENCE).await;
            world.start_surely(0).await.unwrap();
        };
        join(puts, touched).await;
    });
}

#[test]
fn a_name_that_is_bound_between_two_reads_has_a_record() {
    scene(1, &[OWN, ""], items(40), 40, |world, items| async move {
        start(&world).await;
        world.clock.sleep(seconds(15.0)).await;
        world.network.plan(&name(0), Wire::TransactWriteItems, "", 1, Fate::late(seconds(2.0)));
        let split = Fate { split: Some(seconds(1.5)), ..Fate::late(seconds(0.001)) };
        world.network.plan(&name(1), Wire::BatchGetItem, "", 8, split);
        let puts = async {
            while world
                .past(Wire::DescribeTable, &serde_json::json!({ "TableName": crate::TABLE }))
                .await
                .is_err()
            {
                world.clock.sleep(seconds(0.01)).await;
            }
            blind(&world, 1, seconds(15.0));
            put_all(&world, &items, &[1], seconds(0.05), 1).await;
        };
        join(world.change_table(0, Wire::CreateTable), puts).await;
    });
}

#[test]
fn a_lease_counts_from_before_the_look_was_sent() {
    scene(1, &["", ""], days(), 3, |world, items| async move {
        in_days(&world, &items).await;
        blind(&world, 1, seconds(8.0));
        world.clock.sleep(seconds(2.6)).await;
        let put = put_in_two(&world, &items[4], seconds(12.0), seconds(29.9));
        let stopped = stopped(&world, 1, seconds(2.0), seconds(67.0));
        join(join(put, stopped), world.adopt_surely(DAYS, Direction::Back)).await;
    });
}

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

/// A seed before which there is no registry.
const NO_REGISTRY: u64 = 4;

#[test]
fn a_gateway_without_a_registry_has_a_short_lease() {
    scene(NO_REGISTRY, &[OWN, ""], items(12), 1, |world, items| async move {
        world.create_past().await;
        world.start_surely(1).await.unwrap();
        cut_off(&world, 1);
        world.start_surely(0).await.unwrap();
        put_all(&world, &items[..1], &[0], seconds(1.0), 1).await;
        put_once(&world, 1, &items[1..], seconds(0.01)).await;
        world.network.unplan();
    });
}

#[test]
fn what_was_forwarded_without_a_registry_is_given_up_when_there_is_one() {
    scene(NO_REGISTRY, &[OWN, ""], items(9), 1, |world, items| async move {
        world.create_past().await;
        world.start_surely(1).await.unwrap();
        be_patient(&world);
        world.book.set_beyond(true);
        let puts = put_once(&world, 1, &items[1..], seconds(80.0));
        let touched = async {
            world.clock.sleep(seconds(0.5)).await;
            world.start_surely(0).await.unwrap();
            put_all(&world, &items[..1], &[0], seconds(1.0), 1).await;
        };
        join(puts, touched).await;
    });
}

#[test]
fn a_registry_whose_maker_was_killed_settles_first() {
    scene(NO_REGISTRY, &[OWN, "", OWN], items(12), 4, |world, items| async move {
        world.create_past().await;
        world.start_surely(1).await.unwrap();
        cut_off(&world, 1);
        world.start_surely(0).await.unwrap();
        world.kill(0);
        world.start_surely(2).await.unwrap();
        let puts = async {
            world.clock.sleep(seconds(3.0)).await;
            put_once(&world, 1, &items[1..], seconds(0.01)).await;
        };
        join(puts, put_all(&world, &items[..1], &[2], seconds(1.0), 1)).await;
        world.network.unplan();
    });
}

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

/// A deletion waits until no gateway knows the table any more. Meanwhile the table is dropped by a request that bypasses Heatsink, and made again.
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

/// A run of `adopt` is killed while its next record is on its way, and another run turns round and finishes before that arrives.
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

/// A run of `adopt` is killed while its last record is on its way, and another run finishes it. The record arrives while a third run brings the
/// items back.
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
