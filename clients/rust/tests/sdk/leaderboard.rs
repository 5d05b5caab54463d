//! The leaderboard, through both doors of a gateway that shards nothing, that shards everything, and
//! whose key moves meanwhile.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, PutRequest, ReturnValue, WriteRequest};

use crate::doors::{ALL, Opened};
use crate::stage::{create_table, text};

const PLAYERS: usize = 150;

/// Scores that are all different and not in the players' order.
fn sort_key(player: usize) -> String {
    format!("{:06}#p{player:03}", (player * 7919) % 100_003)
}

async fn fill(client: &Client) {
    for chunk in (0..PLAYERS).collect::<Vec<_>>().chunks(25) {
        let writes: Vec<WriteRequest> = chunk
            .iter()
            .map(|player| {
                let put = PutRequest::builder()
                    .item("pk", text("game_x"))
                    .item("sk", text(sort_key(*player)))
                    .item("player", AttributeValue::N(player.to_string()))
                    .build()
                    .unwrap();
                WriteRequest::builder().put_request(put).build()
            })
            .collect();
        let done = client.batch_write_item().request_items("Leaderboards", writes).send().await.unwrap();
        assert!(done.unprocessed_items.is_none_or(|left| left.is_empty()));
    }
}

fn sort_keys(items: &[std::collections::HashMap<String, AttributeValue>]) -> Vec<String> {
    items.iter().map(|item| item["sk"].as_s().unwrap().clone()).collect()
}

#[tokio::test]
async fn the_leaderboard_reads_as_one_key() {
    for (door, world) in ALL {
        let opened = Opened::at(door, world).await;
        create_table(&opened.client, "Leaderboards").await;
        fill(&opened.client).await;
        let moves = opened.moves("Leaderboards", "game_x");
        loop {
            reads_as_one_key(&opened.client, moves.go_on(), &format!("{door:?}, {world:?}")).await;
            if !moves.go_on() {
                break;
            }
        }
        moves.ended().await;
        reads_as_one_key(&opened.client, false, &format!("{door:?}, {world:?}, at last")).await;
    }
}

async fn reads_as_one_key(client: &Client, moves: bool, at: &str) {
    let mut expected: Vec<String> = (0..PLAYERS).map(sort_key).collect();
    expected.sort();

    let query = || {
        client
            .query()
            .table_name("Leaderboards")
            .key_condition_expression("pk = :game")
            .expression_attribute_values(":game", text("game_x"))
    };
    let top = query().scan_index_forward(false).limit(100).send().await.unwrap();
    assert_eq!(sort_keys(top.items()), expected.iter().rev().take(100).cloned().collect::<Vec<_>>(), "{at}");
    assert!(top.items().iter().all(|item| item["pk"] == text("game_x")));
    let last = top.last_evaluated_key().unwrap();
    assert_eq!((last.len(), &last["pk"], &last["sk"]), (2, &text("game_x"), &text(expected[50].clone())));

    let pages =
        query().limit(7).into_paginator().items().send().collect::<Result<Vec<_>, _>>().await.unwrap();
    assert_eq!(sort_keys(&pages), expected, "{at}");

    let above = client
        .query()
        .table_name("Leaderboards")
        .key_condition_expression("pk = :game AND sk > :score")
        .expression_attribute_values(":game", text("game_x"))
        .expression_attribute_values(":score", text(expected[99].clone()))
        .select(aws_sdk_dynamodb::types::Select::Count)
        .send()
        .await
        .unwrap();
    assert_eq!(above.count(), 50, "the caller's rank is a COUNT above its score: {at}");

    let scanned = client.scan().table_name("Leaderboards").into_paginator().items().send();
    let mut scanned = sort_keys(&scanned.collect::<Result<Vec<_>, _>>().await.unwrap());
    scanned.sort();
    if moves {
        // A Scan may show items of a key twice that began or ended a move meanwhile.
        scanned.dedup();
    }
    assert_eq!(scanned, expected, "{at}");
}

#[tokio::test]
async fn single_items_keep_their_keys_and_their_errors() {
    for (door, world) in ALL {
        let opened = Opened::at(door, world).await;
        create_table(&opened.client, "Leaderboards").await;
        let moves = opened.moves("Leaderboards", "game_x");
        loop {
            keeps_keys_and_errors(&opened.client, &format!("{door:?}, {world:?}")).await;
            if !moves.go_on() {
                break;
            }
        }
        moves.ended().await;
    }
}

async fn keeps_keys_and_errors(client: &Client, at: &str) {
    let put = || {
        client
            .put_item()
            .table_name("Leaderboards")
            .item("pk", text("game_x"))
            .item("sk", text("000001#p1"))
            .condition_expression("attribute_not_exists(pk)")
    };
    put().send().await.unwrap();
    let again = put().send().await.unwrap_err().into_service_error();
    assert!(again.is_conditional_check_failed_exception(), "{again:?}");

    let updated = client
        .update_item()
        .table_name("Leaderboards")
        .key("pk", text("game_x"))
        .key("sk", text("000001#p1"))
        .update_expression("SET title = pk ADD votes :one")
        .condition_expression("pk = :game")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .expression_attribute_values(":game", text("game_x"))
        .return_values(ReturnValue::AllNew)
        .send()
        .await
        .unwrap();
    let item = updated.attributes().unwrap();
    assert_eq!((&item["pk"], &item["title"]), (&text("game_x"), &text("game_x")), "{at}");

    let keys = KeysAndAttributes::builder()
        .keys([("pk".to_owned(), text("game_x")), ("sk".to_owned(), text("000001#p1"))].into())
        .keys([("pk".to_owned(), text("game_x")), ("sk".to_owned(), text("none"))].into())
        .build()
        .unwrap();
    let got = client.batch_get_item().request_items("Leaderboards", keys).send().await.unwrap();
    assert_eq!(sort_keys(&got.responses().unwrap()["Leaderboards"]), ["000001#p1"]);

    let gone = client
        .delete_item()
        .table_name("Leaderboards")
        .key("pk", text("game_x"))
        .key("sk", text("000001#p1"))
        .return_values(ReturnValue::AllOld)
        .send()
        .await
        .unwrap();
    assert_eq!(gone.attributes().unwrap()["pk"], text("game_x"));

    let missing =
        client.get_item().table_name("Nowhere").key("pk", text("a")).key("sk", text("b")).send().await;
    let missing = missing.unwrap_err().into_service_error();
    assert_eq!(missing.meta().code(), Some("ResourceNotFoundException"));
    let tables = client.list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), ["Leaderboards"], "the registry is hidden: {at}");
}
