//! The high water of a move is read when no old slot gets an item any more: an item that came in
//! after it would be looked for by nobody in MOVE.

use futures::future::join;
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;

use crate::client::PATIENCE;
use crate::network::Fate;
use crate::reshard_hazards::{COPY, HOLD, MOVE, WHOLE, begun, count, killed_at, moved, unclean};
use crate::scene::{put_all, scene, seconds};
use crate::world::World;

/// What a run's read of the high water holds.
const MARK: &str = r#""ScanIndexForward":false"#;

/// Reads an item through both gateways, for so many seconds.
async fn seen(world: &World, item: &str, until: u32) {
    for _ in 0..until * 5 {
        for gateway in [0, 1] {
            world.call(gateway, item, Operation::Get, PATIENCE).await;
        }
        world.clock.sleep(seconds(0.2)).await;
    }
}

/// The record after the mark is late by a second; in that second a client puts an item above it.
#[test]
fn what_is_put_as_the_high_water_is_read_is_found_in_move() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        let (last, before) = items.split_last().unwrap();
        begun(&world, before).await;
        for phase in [HOLD, MOVE] {
            world.network.plan("run", Wire::TransactWriteItems, phase, 1, Fate::late(seconds(1.0)));
        }
        let marked = world.network.sent("run", MARK, 0, false);
        let puts = async {
            marked.await.unwrap();
            put_all(&world, std::slice::from_ref(last), &[0], seconds(0.3), 100).await;
        };
        join(killed_at(&world, 4, COPY), puts).await;
        seen(&world, last, 1).await;
        moved(&world, 4).await;
    });
}

/// A put that is sent in PREPARE and given up lands in CHECK, above what was there before. Clients
/// who have seen it go on seeing it.
#[test]
fn what_lands_late_is_below_the_high_water() {
    scene(1, &[WHOLE, WHOLE], count(), 7, |world, items| async move {
        let (last, before) = items.split_last().unwrap();
        begun(&world, before).await;
        let late = unclean(&world, std::slice::from_ref(last));
        join(join(late, seen(&world, last, 15)), killed_at(&world, 4, COPY)).await;
        seen(&world, last, 1).await;
        moved(&world, 4).await;
    });
}
