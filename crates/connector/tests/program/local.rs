//! `local()`, as a test of a program has it.

use std::sync::LazyLock;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use heatsink_connector::{Local, StartError, local};

use crate::stage::{create_table, once, text};

#[tokio::test]
async fn each_is_fresh() {
    for _ in 0..2 {
        let local = local().start().unwrap();
        let client = Client::new(&local.sdk_config());
        assert!(client.list_tables().send().await.unwrap().table_names().is_empty());
        create_table(&client, "Scores").await;
        client.put_item().table_name("Scores").item("pk", text("a")).send().await.unwrap();
        let got = client.get_item().table_name("Scores").key("pk", text("a")).send().await.unwrap();
        assert_eq!(got.item().unwrap()["pk"], text("a"));
    }
}

#[tokio::test]
async fn its_rules_hold() {
    let counter = "[[rule]]\ntable = \"Votes\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 4\n";
    let local = local().rules(counter).start().unwrap();
    let client = Client::new(&local.sdk_config());
    create_table(&client, "Votes").await;
    for _ in 0..10 {
        let add =
            client.update_item().table_name("Votes").key("pk", text("a")).update_expression("ADD n :one");
        add.expression_attribute_values(":one", AttributeValue::N("1".to_owned())).send().await.unwrap();
    }
    let got = client.get_item().table_name("Votes").key("pk", text("a")).send().await.unwrap();
    assert_eq!(got.item().unwrap()["n"], AttributeValue::N("10".to_owned()));
    let described = client.describe_table().table_name("Votes").send().await.unwrap();
    assert_eq!(described.table().unwrap().table_name(), Some("Votes"));
}

#[tokio::test]
async fn it_throttles_where_it_has_partitions() {
    for partitions in [true, false] {
        let local = local().partitions(partitions).start().unwrap();
        let config = once(local.connector()).retry_config(RetryConfig::disabled());
        let client = Client::from_conf(config.build());
        create_table(&client, "Scores").await;
        // 100 write units each: more than a partition has for a second and its burst.
        let blob = AttributeValue::B(Blob::new(vec![0; 100_000]));
        let put = || {
            let put = client.put_item().table_name("Scores").item("pk", text("a"));
            put.item("blob", blob.clone()).send()
        };
        let mut throttled = 0;
        for _ in 0..20 {
            let put = join_all((0..250).map(|_| put())).await;
            for error in put.into_iter().filter_map(Result::err) {
                assert!(
                    error
                        .code()
                        .is_some_and(|code| code.ends_with("ThroughputExceededException")
                            || code == "ThrottlingException"),
                    "{error:?}"
                );
                throttled += 1;
            }
            if throttled > 0 {
                break;
            }
        }
        assert_eq!(throttled > 0, partitions);
    }
}

#[test]
fn wrong_rules_are_told_by_their_line() {
    let error = local().rules("[[rule]]\ntable = 1\n").start().unwrap_err();
    assert!(matches!(&error, StartError::Rules(_)), "{error:?}");
    assert!(error.to_string().starts_with("rules:2: rule[1].table"), "{error}");
}

#[tokio::test]
async fn when_it_is_dropped_it_has_stopped() {
    let local = local().start().unwrap();
    let client = Client::from_conf(once(local.connector()).build());
    create_table(&client, "Scores").await;
    let calls = |count: usize| (0..count).map(|_| tokio::spawn(client.list_tables().send()));
    let beside: Vec<_> = calls(20).collect();
    drop(local);
    for call in beside {
        // Those that came first were answered.
        let _ = call.await.unwrap();
    }
    let refused = client.list_tables().send().await.unwrap_err();
    assert_eq!(refused.code(), Some("ServiceUnavailable"));
}

/// One for several tests, each of which has a runtime of its own.
static SHARED: LazyLock<Local> = LazyLock::new(|| local().start().unwrap());

#[test]
fn it_needs_no_runtime_and_outlives_those_that_use_it() {
    // Started where there is none.
    let connector = SHARED.connector();
    for turn in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::from_conf(once(connector.clone()).build());
            create_table(&client, &format!("Scores{turn}")).await;
            assert_eq!(client.list_tables().send().await.unwrap().table_names().len(), turn + 1);
        });
    }
}
