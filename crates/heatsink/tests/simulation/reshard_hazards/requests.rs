//! Requests that meet the mover, or span a change.

use futures::future::join;
use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_history::{Answer, Operation};
use serde_json::{Value as Json, json};

use super::{CLEAR, COPY, MOVE, PREPARE, WHOLE, after, begun, count, killed_at, mixed, moved, run};
use crate::client::{PATIENCE, Reply, body, key};
use crate::network::{Fate, Lost};
use crate::scene::{items, put_all, scene, seconds, value};
use crate::world::{World, name};
use crate::{INDEX, KEY, TABLE};

#[test]
fn writes_of_every_kind_that_meet_the_mover_are_done_once() {
    for seed in 1..=8 {
        scene(seed, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            killed_at(&world, 4, COPY).await;
            let late = seconds(0.05 * seed as f64);
            let writes = after(&world, late, async {
                for round in 0..3 {
                    mixed(&world, &items, 100 * (1 + round)).await;
                    let mut turned = items.clone();
                    turned.rotate_left(1 + round);
                    mixed(&world, &turned, 1_000 * (1 + round)).await;
                }
            });
            join(writes, moved(&world, 4)).await;
        });
    }
}

#[test]
fn an_item_that_moves_between_two_pages_is_in_one_of_them() {
    for backwards in [false, true] {
        scene(1, &[WHOLE, WHOLE], count(), 8, move |world, items| async move {
            begun(&world, &items).await;
            let mut request = json!({
                "TableName": TABLE, "KeyConditionExpression": "pk = :k", "Limit": 3, "ConsistentRead": true, "ScanIndexForward": !backwards,
                "ExpressionAttributeValues": { ":k": { "S": KEY } },
            });
            let mut seen = Vec::new();
            for phase in [PREPARE, MOVE, COPY, CLEAR] {
                let page = world.ask(0, Wire::Query, &request, PATIENCE).await.unwrap();
                seen.extend(page["Items"].as_array().unwrap().iter().map(|row| row["sk"].clone()));
                if page["LastEvaluatedKey"].is_null() {
                    break;
                }
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
                killed_at(&world, 4, phase).await;
            }
            seen.sort_by_key(Json::to_string);
            let all: Vec<Json> = items.iter().map(|item| json!({ "S": item })).collect();
            assert_eq!(seen, all);
            moved(&world, 4).await;
        });
    }
}

#[test]
fn an_index_and_a_scan_show_each_item_once_while_a_key_moves_and_after_it() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        let query = || {
            json!({
                "TableName": TABLE, "IndexName": INDEX, "KeyConditionExpression": "#s = :s",
                "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":s": { "S": "open" } },
            })
        };
        for phase in [COPY, CLEAR] {
            killed_at(&world, 4, phase).await;
            each_once(&world, Wire::Query, query(), &items).await;
            each_once(&world, Wire::Scan, json!({ "TableName": TABLE }), &items).await;
        }
        moved(&world, 4).await;
        each_once(&world, Wire::Scan, json!({ "TableName": TABLE }), &items).await;
        world.query(0, &items, Some(1), 3, true).await.unwrap();
    });
}

#[test]
fn a_transaction_whose_token_is_sent_again_after_the_move_is_done_once() {
    for late in [0.01, 2.0, 3.5] {
        scene(1, &[WHOLE, WHOLE], items(4), 4, move |world, items| async move {
            begun(&world, &items).await;
            let add = |item: &String| {
                json!({ "Update": {
                    "TableName": TABLE, "Key": key(item), "UpdateExpression": "ADD n :d", "ExpressionAttributeValues": { ":d": { "N": "1000" } },
                } })
            };
            let actions: Vec<Json> = items.iter().map(add).collect();
            let request = json!({ "TransactItems": actions, "ClientRequestToken": "once" });
            let lost = Fate { lost: Some(Lost::Broken), ..Fate::late(seconds(late)) };
            world.network.plan(&name(0), Wire::TransactWriteItems, "once", 1, lost);
            let first = world.ask(0, Wire::TransactWriteItems, &request, PATIENCE);
            let (first, ()) = join(first, moved(&world, 4)).await;
            assert_eq!(first.unwrap_err().outcome, Outcome::Unknown);
            // To the store it is another request: done with the first one, or refused as such.
            let again = world.ask(1, Wire::TransactWriteItems, &request, PATIENCE).await;
            if let Err(error) = &again {
                assert_eq!(error.code, Code::IdempotentParameterMismatchException, "{error}");
            }
            for (at, item) in items.iter().enumerate() {
                let get = json!({ "TableName": TABLE, "Key": key(item), "ConsistentRead": true });
                let row = world.ask(0, Wire::GetItem, &get, PATIENCE).await.unwrap();
                assert_eq!(row["Item"]["n"]["N"], (1_001 + at).to_string());
            }
            put_all(&world, &items, &[0, 1], seconds(1.0), 5_000).await;
            for (at, item) in items.iter().enumerate() {
                let seen = world.call(0, item, Operation::Get, PATIENCE).await;
                assert!(
                    matches!(seen, Reply::Answered(Answer::Saw(Some(found))) if found == value(5_000 + at))
                );
            }
        });
    }
}

/// All pages, two items a page, show each of these items once.
async fn each_once(world: &World, operation: Wire, mut request: Json, items: &[String]) {
    request["Limit"] = json!(2);
    let mut shown = Vec::new();
    loop {
        let mut page = world.ask(0, operation, &request, PATIENCE).await.unwrap();
        let found = page["Items"].as_array().unwrap();
        assert!(found.iter().all(|item| item["pk"]["S"] == KEY), "{found:?}");
        shown.extend(found.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned()));
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        if request["ExclusiveStartKey"].is_null() {
            break;
        }
    }
    shown.sort_unstable();
    let mut expected = items.to_vec();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{operation:?}");
}

/// An item that is as large as an item can be, under the key as it is.
fn large(item: &str) -> Json {
    let mut large = body(item, value(1));
    // Names and values but for the padding: pk, game, sk, p00, n, 1, status, open.
    let bytes: usize = 2 + 4 + 2 + item.len() + 1 + 2 + 6 + 4 + 3;
    large["pad"] = json!({ "S": "x".repeat(409_600 - bytes) });
    large
}

#[test]
fn an_item_that_is_too_large_for_its_longer_key_stays_until_it_is_written_anew() {
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        for item in &items {
            let invoked = world.book.moment();
            let put = json!({ "TableName": TABLE, "Item": large(item) });
            world.ask(0, Wire::PutItem, &put, PATIENCE).await.unwrap();
            world.book.call(item, invoked, Operation::Put(value(1)), Some(Answer::Done));
        }
        let why = run(&world, 4, None).await.unwrap().unwrap_err().to_string();
        assert!(why.contains("too large"), "{why}");
        for item in &items {
            let row = json!({ "TableName": TABLE, "Key": key(item), "ConsistentRead": true });
            assert!(world.ask(1, Wire::GetItem, &row, PATIENCE).await.unwrap().get("Item").is_some());
        }
        // What has to bring an item first cannot; what replaces it can.
        let mut refused = 0;
        for item in &items {
            refused += usize::from(matches!(
                world.call(0, item, Operation::Add(1), PATIENCE).await,
                Reply::NotDone(_)
            ));
        }
        assert!(refused > 0 && refused < items.len(), "{refused} of {} move", items.len());
        for (at, item) in items.iter().enumerate() {
            let put = world.call(0, item, Operation::Put(value(100 + at)), PATIENCE).await;
            assert!(matches!(put, Reply::Answered(_)), "{put:?}");
        }
        // The old copy of some is still there, and too large: a pull clears it, of a client and of
        // the mover.
        for item in items.iter().take(4) {
            let add = world.call(1, item, Operation::Add(1), PATIENCE).await;
            assert!(matches!(add, Reply::Answered(_)), "{add:?}");
        }
        moved(&world, 4).await;
    });
}

#[test]
fn the_error_of_a_pull_is_told_in_words_that_fit_the_request() {
    fn refusal() -> Error {
        let mut error = Error::new(Code::TransactionCanceledException, "Transaction cancelled");
        error.members.insert(
            "CancellationReasons".to_owned(),
            json!([{ "Code": "ThrottlingError" }, { "Code": "None" }]),
        );
        error
    }
    scene(1, &[WHOLE, WHOLE], count(), 8, |world, items| async move {
        begun(&world, &items).await;
        killed_at(&world, 4, COPY).await;
        let refused = Fate { refused: Some(refusal), ..Fate::late(seconds(0.01)) };
        world.network.plan(&name(0), Wire::TransactWriteItems, "game", 100, refused);
        let mut met = 0;
        for item in &items {
            if let Reply::NotDone(error) = world.call(0, item, Operation::Add(1), PATIENCE).await {
                met += 1;
                assert_eq!(
                    (error.code.clone(), error.retryable()),
                    (Code::ThrottlingException, true),
                    "{error}"
                );
                assert!(error.to_string().contains("is being moved") && error.members.is_empty(), "{error}");
            }
        }
        assert!(met > 0, "some items move");
        world.network.unplan();
        moved(&world, 4).await;
    });
}
