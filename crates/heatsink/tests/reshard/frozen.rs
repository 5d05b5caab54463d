//! Layouts are frozen while a gateway carries a reshard out: it stays where it is, says so, can be
//! cancelled, and goes on after the thaw.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_control::Changer;
use heatsink_control::reshard_intent::EndedAs;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_layout::Phase;
use heatsink_store::Store;

use super::town::Town;

const RULES: &str =
    "[fence]\nlease = \"2s\"\nheartbeat = \"400ms\"\npoll = \"50ms\"\nstraggler = \"100ms\"\n";

/// A store before which layouts are frozen when a run writes the record of PREPARE.
pub(super) struct Freezes {
    pub(super) raw: Arc<dyn Store>,
    pub(super) changer: Changer,
}

impl Store for Freezes {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            if operation == Operation::TransactWriteItems
                && String::from_utf8_lossy(&body).contains("PREPARE")
            {
                self.changer.freeze(true).await?;
            }
            self.raw.call(operation, body).await
        })
    }
}

#[test]
fn a_frozen_reshard_waits_in_prepare_says_so_and_can_be_cancelled() {
    let town = Town::new(RULES);
    town.fill("game", 20);
    let store = Arc::new(Freezes { raw: town.raw.clone(), changer: town.changer() });
    let _carried = town.carries(0, store);
    for cancelled in [true, false] {
        town.ask("game", 4.into(), 1);
        let hindered = town.until("that it waits", || {
            let progress = town.intent("game")?.progress;
            (progress.phase == Some(Phase::Prepare)).then_some(progress.hindered).flatten()
        });
        assert!(hindered.contains("--thaw"), "{hindered}");
        let begun = RealEnv.now();
        if cancelled {
            assert!(town.change("game", |intent| intent.cancelled = true));
        } else {
            town.freeze(false);
        }
        let (how, text) = town.ended("game");
        let expected = if cancelled { (EndedAs::Cancelled, 1) } else { (EndedAs::Moved, 4) };
        assert_eq!((how, town.shards("game")), expected, "{text}");
        assert_eq!(town.intent("game").unwrap().progress.hindered, None);
        assert!(RealEnv.now().since(begun) < Duration::from_secs(20));
        town.freeze(false);
    }
}
