//! What else lies where a key begins to move: a half-written record, an adoption, items under the
//! names of shards.

use futures::future::join;
use heatsink_dynamo::{Code, Operation as Wire};
use heatsink_workers::{Direction, WorkerError};
use serde_json::json;

use super::{
    HOLD, MOVE, PREPARE, RESERVE, RULED, WHOLE, after, begun, beside, count, mixed, moved, run, slow,
};
use crate::client::PATIENCE;
use crate::network::Fate;
use crate::scene::{items, scene, seconds};
use crate::{KEY, TABLE};

#[test]
fn a_record_that_is_read_in_the_middle_of_its_transaction_is_read_again() {
    for phase in [RESERVE, PREPARE, HOLD, MOVE] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            // A cached status is looked up again at the age of 5 s: within the transaction.
            let torn = Fate { torn: Some(seconds(7.0)), ..Fate::late(seconds(0.01)) };
            world.network.plan("run", Wire::TransactWriteItems, phase, 1, torn);
            slow(&world, 1);
            beside(&world, &items, moved(&world, 4)).await;
        });
    }
}

#[test]
fn an_adoption_that_begins_after_a_reshard_was_prepared_ends_it() {
    for late in [3.1, 3.2, 3.3, 5.0, 18.0] {
        scene(1, &[RULED, RULED], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            world.network.plan("run", Wire::TransactWriteItems, RESERVE, 1, Fate::late(seconds(late)));
            let adopts = after(&world, seconds(3.0), world.adopt_surely(RULED, Direction::Back));
            let (ended, _) = join(run(&world, 2, None), adopts).await;
            assert!(
                matches!(ended, Some(Err(WorkerError::Stopped(_) | WorkerError::Busy(_)))),
                "{late} s late: {ended:?}"
            );
            for gateway in 0..2 {
                world.set_rules(gateway, WHOLE);
                world.kill(gateway);
                world.start_surely(gateway).await.unwrap();
            }
            assert!(world.rows_by_key().await.iter().all(|(physical, _, _)| physical == KEY));
            mixed(&world, &items, 300).await;
            moved(&world, 2).await;
        });
    }
}

/// The items under the names that its shards would have are clients' own, before a key is sharded
/// and after it was found so.
#[test]
fn a_name_of_a_shard_that_clients_use_ends_the_move_and_stays_theirs() {
    scene(1, &[WHOLE, WHOLE], items(4), 4, |world, items| async move {
        begun(&world, &items).await;
        let own = json!({ "pk": { "S": "game#~2" }, "sk": { "S": "own" }, "n": { "N": "1" } });
        world.ask(0, Wire::PutItem, &json!({ "TableName": TABLE, "Item": own }), PATIENCE).await.unwrap();
        let why = run(&world, 4, None).await.unwrap().unwrap_err().to_string();
        assert!(why.contains("items of clients lie under"), "{why}");
        let read = json!({ "TableName": TABLE, "Key": { "pk": own["pk"], "sk": own["sk"] }, "ConsistentRead": true });
        for gateway in 0..2 {
            assert_eq!(world.ask(gateway, Wire::GetItem, &read, PATIENCE).await.unwrap()["Item"], own);
        }
        let delete = json!({ "TableName": TABLE, "Key": { "pk": own["pk"], "sk": own["sk"] } });
        world.ask(1, Wire::DeleteItem, &delete, PATIENCE).await.unwrap();
        join(mixed(&world, &items, 100), moved(&world, 4)).await;
        // Now it is nobody's, and stays so when the key has fewer shards.
        for shards in [4, 2] {
            moved(&world, shards).await;
            let error = world
                .ask(0, Wire::PutItem, &json!({ "TableName": TABLE, "Item": own }), PATIENCE)
                .await
                .unwrap_err();
            assert!(error.code == Code::ValidationException, "{error}");
        }
    });
}
