//! Gateways that are late, stopped, cut off or taken off the list while a key moves.

use futures::future::{join, join_all};
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;

use super::{CHECK, MOVE, WHOLE, after, begun, count, killed_at, mixed, moved, puts, unclean};
use crate::client::{PATIENCE, Reply};
use crate::network::{Fate, Lost, Weather};
use crate::scene::{put_all, scene, seconds, value};
use crate::world::name;

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
            // The look-up is answered when the gateway no longer runs; the puts that wait for it
            // are in its hands.
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
