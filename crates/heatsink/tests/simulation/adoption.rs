//! A table that clients use is brought under a rule, and back: the first run ends well, although
//! clients write until their gateways know of it.

use futures::future::join;
use heatsink_dynamo::Operation as Wire;
use heatsink_workers::{Direction, WorkerError};
use serde_json::json;

use crate::reshard_hazards::{RULED, WHOLE, begun, beside};
use crate::scene::{items, scene, seconds};
use crate::world::World;
use crate::{KEY, TABLE};

#[test]
fn a_table_in_use_is_adopted_and_brought_back_at_the_first_run() {
    for seed in 1..=6 {
        scene(seed, &[WHOLE, WHOLE], items(6), 20, |world, items| async move {
            begun(&world, &items).await;
            let adopts = async {
                for direction in [Direction::Adopt, Direction::Back] {
                    world.clock.sleep(seconds(1.0)).await;
                    match world.adopt(RULED, direction, seconds(3_600.0)).await {
                        Some(Ok(_)) => {}
                        Some(Err(error)) => world.book.fault(format!("{direction:?}: {error}")),
                        None => world.book.fault(format!("{direction:?} does not end")),
                    }
                }
            };
            beside(&world, &items, adopts).await;
        });
    }
}

/// Items that fit under their own key and under no longer one, written past Heatsink, or taken
/// away.
async fn past(world: &World, operation: Wire) {
    for at in 0..4 {
        let key = json!({ "pk": { "S": KEY }, "sk": { "S": format!("large{at}") } });
        let mut body = json!({ "TableName": TABLE });
        if operation == Wire::PutItem {
            body["Item"] = key;
            body["Item"]["x"] = json!({ "S": "x".repeat(400 * 1_024 - 15) });
        } else {
            body["Key"] = key;
        }
        world.past(operation, &body).await.unwrap();
    }
}

/// What cannot be moved comes to the table when it was surveyed already: the table is given back as
/// it was.
#[test]
fn an_item_without_room_that_comes_after_the_survey_gives_the_table_back() {
    scene(1, &[WHOLE, WHOLE], items(6), 6, |world, items| async move {
        begun(&world, &items).await;
        let large = async {
            // The table's record is written when it was surveyed.
            world.network.sent("worker", "ADOPTING", 0, false).await.unwrap();
            past(&world, Wire::PutItem).await;
        };
        let (adopted, ()) = join(world.adopt(RULED, Direction::Adopt, seconds(3_600.0)), large).await;
        match adopted {
            Some(Err(WorkerError::Stopped(why))) if why.contains("nothing was moved") => {}
            other => world.book.fault(format!("{other:?}")),
        }
        past(&world, Wire::DeleteItem).await;
    });
}
