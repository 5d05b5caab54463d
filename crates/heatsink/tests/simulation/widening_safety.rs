//! For rules of a counter that widens which chance does not need, what happens in the one order in
//! which each is needed.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;

use futures::future::join;
use heatsink_dynamo::{Error, Operation as Wire, Outcome};
use serde_json::json;

use crate::TABLE;
use crate::client::PATIENCE;
use crate::network::{Fate, Weather};
use crate::reshard::Phases;
use crate::reshard_hazards::{PREPARE, RESERVE, WHOLE};
use crate::scene::{scene, seconds, start};
use crate::widening::{Does, counter};
use crate::widening_client::How;
use crate::world::{World, name};

const ITEM: &str = "q0";

/// The key is a counter of so many fragments.
async fn widened(world: &World, fragments: u16) {
    let run = world.reshard(WHOLE, counter(fragments), &Arc::new(Phases::default()), None).await;
    assert_eq!(run.unwrap().unwrap().to, fragments);
}

/// A call of the second gateway, which is sent before the record of a phase lands, is given up, and
/// lands late. `operation`, `text`: what it sends.
async fn given_up<T: Debug>(
    world: &World,
    phase: &str,
    operation: Wire,
    text: &str,
    call: impl Future<Output = Result<T, Error>>,
) {
    world.network.plan("run", Wire::TransactWriteItems, phase, 1, Fate::late(seconds(0.3)));
    world.network.sent("run", phase, 0, false).await.unwrap();
    world.network.set(Weather { patience: seconds(0.5), ..Weather::default() });
    world.network.plan(&name(1), operation, text, 1, Fate::late(seconds(3.5)));
    let error = call.await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Unknown, "{error}");
    world.network.set(Weather::default());
}

/// The rule: nobody adds to the new fragments while calls may land that know only the old ones. A
/// delete that is sent before PREPARE is given up, and lands late.
#[test]
fn a_delete_that_lands_late_leaves_nothing_of_what_was_added() {
    scene(1, &[WHOLE, WHOLE], Vec::new(), 0, |world, _| async move {
        let (world, ask) = (&*world, async |does: Does, number| {
            does.ask(&world, 0, ITEM, How::Alone, number).await.unwrap()
        });
        world.create_past().await;
        start(world).await;
        widened(world, 2).await;
        ask(Does::Put, 1).await;
        let late = async {
            let delete = Does::Delete.ask(world, 1, ITEM, How::Alone, 0);
            given_up(world, PREPARE, Wire::TransactWriteItems, "\"Delete\"", delete).await;
            world.clock.sleep(seconds(1.8)).await;
            for _ in 0..10 {
                ask(Does::Add, 1).await;
            }
            let before = ask(Does::Get, 0).await;
            assert_eq!(before, Some(11));
            world.clock.sleep(seconds(3.0)).await;
            let after = ask(Does::Get, 0).await;
            assert!(after.is_none() || after == before, "{after:?}");
        };
        join(late, widened(world, 5)).await;
    });
}

/// The rule: the names of the new fragments are looked at when no earlier call can land any more. A
/// client's own item with the name of one is put before RESERVE, given up, and lands late.
#[test]
fn a_put_under_the_name_of_a_fragment_that_lands_late_ends_the_widening() {
    scene(1, &[WHOLE, WHOLE], Vec::new(), 0, |world, _| async move {
        world.create_past().await;
        start(&world).await;
        widened(&world, 2).await;
        let own = json!({ "pk": { "S": "game#~3" }, "sk": { "S": ITEM } });
        let put = json!({ "TableName": TABLE, "Item": own });
        let late = async {
            let put = world.ask(1, Wire::PutItem, &put, PATIENCE);
            given_up(&world, RESERVE, Wire::PutItem, "game#~3", put).await;
        };
        let ended = async {
            let run = world.reshard(WHOLE, counter(5), &Arc::new(Phases::default()), None).await.unwrap();
            assert!(run.is_err(), "the name of a client's item is taken");
        };
        join(late, ended).await;
        let get = json!({ "TableName": TABLE, "Key": own });
        assert_eq!(world.ask(0, Wire::GetItem, &get, PATIENCE).await.unwrap()["Item"], own);
        // It is none of those that are looked for at the end.
        world.past(Wire::DeleteItem, &get).await.unwrap();
    });
}

/// The rule: in PREPARE all know every fragment, whatever they ask for. One gateway adds to the new
/// fragments while the other one, which notices each phase later, still is in PREPARE.
#[test]
fn who_notices_the_new_fragments_late_clears_and_reads_them() {
    scene(1, &[WHOLE, WHOLE], Vec::new(), 0, |world, _| async move {
        world.create_past().await;
        start(&world).await;
        widened(&world, 2).await;
        let fate = Fate { back: seconds(0.6), ..Fate::late(seconds(0.01)) };
        world.network.plan(&name(1), Wire::GetItem, "\"head\"", usize::MAX, fate);
        let over = Cell::new(false);
        let client = async {
            let ask = async |does: Does, gateway, how, number| {
                does.ask(&world, gateway, ITEM, how, number).await.unwrap()
            };
            let mut number = 0;
            while !over.get() {
                for how in How::ALL {
                    number += 100;
                    for written in [Does::Put, Does::Set, Does::Delete] {
                        ask(Does::Add, 0, How::Alone, 1).await;
                        ask(written, 1, how, number).await;
                        let holds = written.after(None, number);
                        assert_eq!(ask(Does::Get, 0, How::Alone, 0).await, holds, "{written:?} {how:?}");
                    }
                    for _ in 0..5 {
                        ask(Does::Add, 0, How::Alone, 1).await;
                    }
                    assert_eq!(ask(Does::Get, 1, how, 0).await, Some(5), "{how:?}");
                }
            }
        };
        let widens = async {
            for fragments in [4, 6, 8, 10, 12, 14, 16, 18] {
                widened(&world, fragments).await;
            }
            over.set(true);
        };
        join(client, widens).await;
        world.network.unplan();
        // It is none of those that are looked for at the end.
        Does::Delete.ask(&world, 0, ITEM, How::Alone, 0).await.unwrap();
    });
}
