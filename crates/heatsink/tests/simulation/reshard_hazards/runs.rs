//! Runs of the reshard, coordinator and mover, that are killed, wake late or meet each other.

use futures::future::{join, join_all};
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use serde_json::json;

use super::{
    CHECK, CLEAR, COPY, HOLD, MOVE, PREPARE, PUBLICATION, RESERVE, WHOLE, after, begun, beside, count,
    killed_at, mixed, moved, puts, run, slow, unclean,
};
use crate::TABLE;
use crate::client::{PATIENCE, body};
use crate::network::{Fate, Lost, Weather};
use crate::reshard::Mishap;
use crate::scene::{items, scene, seconds, value};
use crate::world::{World, name};

/// A copy of each item in a shard that the key had, as a call leaves it that landed later than any
/// bound.
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
