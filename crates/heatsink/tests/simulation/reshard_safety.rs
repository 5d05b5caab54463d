//! For rules of a reshard that chance seldom needs, what happens in the one order in which each is
//! needed. `without/run` shows that these fail where the rule is left out. What several rules guard
//! against fails where all of them are.
//!
//! | how | what it is for |
//! |---|---|
//! | puts that are given up and land late | what an acknowledgement that was not clean stands for |
//! | a copy that lands late | between the mover's read of an item and its copy there is time for a late put, and for a client that sees it |
//! | a mover's call that lands after its second attempt was answered | it was sent under a claim that is over by then |

use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;

use crate::client::PATIENCE;
use crate::network::{Fate, Lost, Weather};
use crate::reshard::{Mishap, Phases};
use crate::reshard_hazards::{
    CLEAR, COPY, HOLD, PREPARE, WHOLE, begun, count, killed, killed_at, moved, puts,
};
use crate::scene::{scene, seconds};
use crate::world::{World, name};

/// No rule for the table. Gateways look often, so that a move of few items is over before what is
/// late lands.
const BRISK: &str =
    "rule = []\n[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"500ms\"\nstraggler = \"4s\"\n";
/// The claim of a mover, and not that of a run which only ends the claims of others.
const CLAIM: &str = r#""permits":{"N":"10"}"#;
const CLOSING: &str = r#"\"closing\":true"#;

/// A run that is killed in MOVE, which all gateways know, as it claims the table: nothing is moved.
async fn killed_in_move(world: &World, shards: u16) {
    killed_at(world, shards, CLAIM).await;
}

/// Puts every item once through the second gateway, as blind puts are; each lands so late, and is
/// answered at once.
async fn late_puts(world: &World, items: &[String], late: Duration) {
    puts(world, 1, items, late, Duration::from_millis(1)).await;
}

/// Reads all items, again and again.
async fn watched(world: &World, items: &[String], times: usize) {
    for _ in 0..times {
        join_all(items.iter().map(|item| world.call(0, item, Operation::Get, PATIENCE))).await;
        world.clock.sleep(seconds(0.1)).await;
    }
}

/// Puts that are given up after half a second and land so late; then all items are read for a
/// while.
async fn given_up(world: &World, items: &[String], late: Duration, reads: usize) {
    world.network.set(Weather { patience: seconds(0.5), ..Weather::default() });
    let heals = async {
        world.clock.sleep(seconds(0.6)).await;
        world.network.set(Weather::default());
    };
    join(late_puts(world, items, late), heals).await;
    watched(world, items, reads).await;
}

/// The copies of movers land late: whatever lands before them is not in them.
fn copies_land_late(world: &World) {
    world.network.plan("run", Wire::TransactWriteItems, COPY, usize::MAX, Fate::late(seconds(3.5)));
}

/// A gateway says in each acknowledgement until when what it sent may land: that of HOLD tells of
/// puts of before PREPARE.
#[test]
fn puts_that_were_given_up_before_hold_are_waited_for_before_anything_moves() {
    scene(1, &[BRISK, BRISK], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        copies_land_late(&world);
        let late = async {
            world.network.sent("run", PREPARE, 0, false).await.unwrap();
            given_up(&world, &items, seconds(3.5), 60).await;
        };
        join(late, moved(&world, 4)).await;
        world.network.unplan();
    });
}

/// So do the acknowledgements that a run asks for which takes over.
#[test]
fn who_takes_over_waits_for_puts_that_were_given_up_before() {
    scene(1, &[BRISK, BRISK], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        copies_land_late(&world);
        let late = async {
            world.network.sent("run", PREPARE, 0, false).await.unwrap();
            given_up(&world, &items, seconds(3.9), 60).await;
        };
        let taken_over = async {
            killed_at(&world, 4, HOLD).await;
            moved(&world, 4).await;
        };
        join(late, taken_over).await;
        world.network.unplan();
    });
}

/// And those of the next move, if it did not wait for the end of the last one anyway.
#[test]
fn the_next_move_waits_for_puts_of_the_last_one() {
    scene(1, &[BRISK, BRISK], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let late = async {
            // The second one: RESERVE ends so too.
            world.network.sent("run", CLOSING, 1, false).await.unwrap();
            copies_land_late(&world);
            given_up(&world, &items, seconds(3.9), 70).await;
        };
        let there_and_back = async {
            moved(&world, 4).await;
            moved(&world, 1).await;
        };
        join(late, there_and_back).await;
        world.network.unplan();
    });
}

/// The rule: claims are ended before the next phase.
#[test]
fn a_movers_second_attempt_does_nothing_after_its_move() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        world.network.plan("run", Wire::TransactWriteItems, CLEAR, 1, Fate::late(seconds(30.0)));
        world.network.set(Weather { patience: seconds(1.0), ..Weather::default() });
        moved(&world, 4).await;
        killed_in_move(&world, 1).await;
        // Each lies where it was before the first move, beside its old copy.
        late_puts(&world, &items, Duration::from_millis(1)).await;
        world.clock.sleep(seconds(30.0)).await;
        watched(&world, &items, 1).await;
        moved(&world, 1).await;
    });
}

/// The rule: a claim is taken only while the record is as its worker saw it.
#[test]
fn a_claim_that_was_asked_for_in_an_earlier_move_is_not_taken() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        world.network.set(Weather { patience: seconds(100.0), ..Weather::default() });
        world.network.plan("run", Wire::TransactWriteItems, CLAIM, 1, Fate::late(seconds(40.0)));
        let late = Mishap { text: CLAIM, before: 0, vanishes: false, stops: Some(seconds(40.0)) };
        let phases = Arc::new(Phases::default());
        let sleeper = world.reshard(WHOLE, 4, &phases, Some(late));
        let others = async {
            world.clock.sleep(seconds(8.0)).await;
            moved(&world, 4).await;
            killed_in_move(&world, 1).await;
            late_puts(&world, &items, Duration::from_millis(1)).await;
        };
        join(sleeper, others).await;
        watched(&world, &items, 1).await;
        moved(&world, 1).await;
    });
}

/// The rule: only what is still in its old place is copied.
#[test]
fn a_copy_that_lands_after_its_item_was_deleted_brings_nothing_back() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        world.network.plan("run", Wire::TransactWriteItems, COPY, items.len(), Fate::late(seconds(8.0)));
        world.network.set(Weather { patience: seconds(1.0), ..Weather::default() });
        // All is moved by then, and the claim still holds.
        let at = Mishap { text: CLOSING, before: 1, vanishes: true, stops: None };
        killed(&world, 4, at).await;
        join_all(items.iter().map(|item| world.call(0, item, Operation::Delete, PATIENCE))).await;
        world.clock.sleep(seconds(10.0)).await;
        watched(&world, &items, 1).await;
        world.network.unplan();
        moved(&world, 4).await;
    });
}

/// The rule: a read looks into the new slot before it looks into the old one.
#[test]
fn a_read_shows_no_old_copy_whose_successor_is_deleted_meanwhile() {
    scene(1, &[WHOLE, WHOLE], count(), 24, |world, items| async move {
        begun(&world, &items).await;
        killed_in_move(&world, 4).await;
        // Each lies in its new slot, beside its old copy.
        late_puts(&world, &items, Duration::from_millis(1)).await;
        let slow = Fate { back: seconds(2.0), ..Fate::late(seconds(0.001)) };
        world.network.plan(&name(0), Wire::BatchGetItem, r#""pk":{"S":"game"}"#, items.len(), slow);
        let deletes = async {
            world.clock.sleep(seconds(0.5)).await;
            join_all(items.iter().map(|item| world.call(1, item, Operation::Delete, PATIENCE))).await;
        };
        join(watched(&world, &items, 1), deletes).await;
        world.network.unplan();
        moved(&world, 4).await;
    });
}

/// So does a Query.
#[test]
fn a_query_shows_no_old_copy_whose_successor_is_deleted_meanwhile() {
    scene(1, &[WHOLE, WHOLE], count(), 24, |world, items| async move {
        begun(&world, &items).await;
        killed_in_move(&world, 4).await;
        late_puts(&world, &items, Duration::from_millis(1)).await;
        // Both layouts have that slot: the new one is read first, then the old one.
        let slot = r#"{"S":"game"}"#;
        let slow = Fate { back: seconds(2.0), ..Fate::late(seconds(0.001)) };
        world.network.plan(&name(0), Wire::Query, slot, 2, slow);
        let old = world.network.sent(&name(0), slot, 1, false);
        let deletes = async {
            old.await.unwrap();
            world.clock.sleep(seconds(0.5)).await;
            join_all(items.iter().map(|item| world.call(1, item, Operation::Delete, PATIENCE))).await;
        };
        let (read, ()) = join(world.query(0, &items, None, 20, true), deletes).await;
        read.unwrap();
        world.network.unplan();
        moved(&world, 4).await;
    });
}

/// The rule: from PREPARE through CHECK a call is sent only while the short lease runs. A gateway's
/// puts, planned in PREPARE, wait for a connection while it sees nothing of what comes: when they
/// have one the move has ended, the gateway's lease still runs, and the short one is over.
#[test]
fn a_put_that_waits_for_a_connection_is_not_sent_when_the_short_lease_is_over() {
    scene(1, &[BRISK, BRISK], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let late = async {
            // The puts are planned, under a lease that was prolonged for them, before the record
            // says HOLD.
            world.network.plan("run", Wire::TransactWriteItems, HOLD, 1, Fate::late(seconds(0.6)));
            world.network.sent("run", HOLD, 0, false).await.unwrap();
            world.network.connects(&name(1), Wire::PutItem, "\"n\"", seconds(7.3));
            let unseen = async {
                world.clock.sleep(seconds(0.3)).await;
                let lost = Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(0.001)) };
                world.network.plan(&name(1), Wire::GetItem, "\"head\"", usize::MAX, lost);
            };
            join(late_puts(&world, &items, seconds(0.001)), unseen).await;
            world.network.unplan();
            watched(&world, &items, 10).await;
        };
        join(late, moved(&world, 4)).await;
    });
}
