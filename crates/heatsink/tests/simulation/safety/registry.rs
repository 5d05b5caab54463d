//! Gateways without a registry, and a registry that has just been made.

use futures::future::join;

use super::{be_patient, cut_off, put_once};
use crate::scene::{items, put_all, scene, seconds};
use crate::table::OWN;

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
