//! The leaderboard, through a gateway that shards everything and through one that shards nothing.

use std::net::SocketAddr;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, PutRequest, ReturnValue, WriteRequest};
use heatsink_access::Clients;
use heatsink_control::Rules;
use heatsink_store::upstream::Network;

use crate::stage::{config, create_table, text};

const RULES: [&str; 2] = ["", r#"rule = [{ table = "*", strategy = "calculated", shards = 4 }]"#];
const PLAYERS: usize = 150;

async fn serve(rules: &str) -> SocketAddr {
    crate::stage::serve(Rules::read("rules", rules).unwrap(), Clients::default(), None).await
}

async fn client(address: SocketAddr) -> Client {
    let credentials = Credentials::new("x", "y", None, None, "test");
    let network = Network::plain().expect("TLS is in this build");
    let client = Client::from_conf(config(format!("http://{address}"), credentials, &network).build());
    create_table(&client, "Leaderboards").await;
    client
}

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
    for rules in RULES {
        let client = client(serve(rules).await).await;
        fill(&client).await;
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
        assert_eq!(
            sort_keys(top.items()),
            expected.iter().rev().take(100).cloned().collect::<Vec<_>>(),
            "{rules}"
        );
        assert!(top.items().iter().all(|item| item["pk"] == text("game_x")));
        let last = top.last_evaluated_key().unwrap();
        assert_eq!((last.len(), &last["pk"], &last["sk"]), (2, &text("game_x"), &text(expected[50].clone())));

        let pages =
            query().limit(7).into_paginator().items().send().collect::<Result<Vec<_>, _>>().await.unwrap();
        assert_eq!(sort_keys(&pages), expected, "{rules}");

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
        assert_eq!(above.count(), 50, "the caller's rank is a COUNT above its score: {rules}");

        let scanned = client.scan().table_name("Leaderboards").into_paginator().items().send();
        let mut scanned = sort_keys(&scanned.collect::<Result<Vec<_>, _>>().await.unwrap());
        scanned.sort();
        assert_eq!(scanned, expected, "{rules}");
    }
}

#[tokio::test]
async fn single_items_keep_their_keys_and_their_errors() {
    for rules in RULES {
        let client = client(serve(rules).await).await;
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
        assert_eq!((&item["pk"], &item["title"]), (&text("game_x"), &text("game_x")), "{rules}");

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
        assert_eq!(tables.table_names(), ["Leaderboards"], "the registry is hidden: {rules}");
    }
}
