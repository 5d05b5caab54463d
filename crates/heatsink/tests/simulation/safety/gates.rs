//! What a gateway may send and answer: under a lease, through an open gate, by what it looked up.

use futures::future::join;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;
use heatsink_workers::Direction;

use super::{be_patient, blind, brought_back, days, in_days, put_in_two, put_once, stopped, whole};
use crate::client::PATIENCE;
use crate::network::Fate;
use crate::scene::{items, put_all, scene, seconds, start};
use crate::table::{DAYS, OWN};
use crate::world::name;

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
