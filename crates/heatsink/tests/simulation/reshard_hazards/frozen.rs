//! Layouts are frozen while a key moves: it waits where clients go on writing, or goes forward.

use std::time::Duration;

use futures::future::{join, join_all};
use heatsink_dynamo::Operation as Wire;
use heatsink_history::Operation;

use super::{CHECK, HOLD, MOVE, PREPARE, RESERVE, WHOLE, begun, count, moved, unclean};
use crate::client::Reply;
use crate::network::Fate;
use crate::scene::{scene, seconds};
use crate::world::World;

/// How long a move that goes forward may have writes wait: a short lease, and what a call may be
/// late.
const FORWARD: Duration = Duration::from_secs(15);

/// Layouts are frozen as soon as a run writes that, before anybody can know of it.
async fn frozen_at(world: &World, items: &[String], text: &'static str) {
    let late = Fate { back: seconds(1.0), ..Fate::late(seconds(0.01)) };
    world.network.plan("run", Wire::TransactWriteItems, text, 1, late);
    world.network.sent("run", text, 0, false).await.unwrap();
    world.freeze(true).await;
    world.clock.sleep(FORWARD).await;
    for gateway in 0..2 {
        let writes = items.iter().map(|item| world.call(gateway, item, Operation::Add(1), seconds(5.0)));
        for (item, reply) in items.iter().zip(join_all(writes).await) {
            if !matches!(reply, Reply::Answered(_)) {
                world.book.fault(format!("frozen at {text}: {item} cannot be written: {reply:?}"));
            }
        }
    }
    world.freeze(false).await;
}

#[test]
fn a_freeze_leaves_no_writes_waiting() {
    for phase in [RESERVE, PREPARE, HOLD, MOVE] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            join(frozen_at(&world, &items, phase), moved(&world, 4)).await;
        });
    }
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let check = join(unclean(&world, &items), frozen_at(&world, &items, CHECK));
        join(check, moved(&world, 4)).await;
    });
}
