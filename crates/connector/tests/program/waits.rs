//! How long the SDK waits, and what becomes of a call that it gives up.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::SdkError;
use heatsink_connector::Limits;
use heatsink_dynamo::Operation;

use crate::double::Double;
use crate::stage::{client, create_table, once, start, text, until};

const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn each_of_the_sdks_timeouts_holds() {
    let store = Double::new();
    let heatsink = start(&store, Limits::default()).await;
    create_table(&client(&heatsink), "Scores").await;
    store.hold(Some(Operation::GetItem));
    let by = |timeouts: TimeoutConfig| {
        let client = Client::from_conf(once(heatsink.connector()).timeout_config(timeouts).build());
        client.get_item().table_name("Scores").key("pk", text("a")).send()
    };
    let read = by(TimeoutConfig::builder().read_timeout(SHORT).build()).await.unwrap_err();
    assert!(matches!(&read, SdkError::DispatchFailure(failure) if failure.is_timeout()), "{read:?}");
    let attempt = by(TimeoutConfig::builder().operation_attempt_timeout(SHORT).build()).await.unwrap_err();
    assert!(matches!(&attempt, SdkError::TimeoutError(_)), "{attempt:?}");
    let operation = by(TimeoutConfig::builder().operation_timeout(SHORT).build()).await.unwrap_err();
    assert!(matches!(&operation, SdkError::TimeoutError(_)), "{operation:?}");
    assert_eq!(store.held(), (3, 3, 0), "each read was let go in the store, too");
}

#[tokio::test]
async fn a_request_has_the_time_that_the_limits_say() {
    let store = Double::new();
    let heatsink = start(&store, Limits { request: SHORT, ..Limits::default() }).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::PutItem));
    let late = client.put_item().table_name("Scores").item("pk", text("a")).send().await.unwrap_err();
    let late = late.into_service_error();
    assert_eq!(late.meta().code(), Some("ServiceUnavailable"), "{late:?}");
    assert!(late.meta().message().unwrap().contains("may have been carried out"), "{late:?}");
}

#[tokio::test]
async fn a_read_that_is_dropped_ends_and_a_write_goes_on() {
    let store = Double::new();
    let heatsink = start(&store, Limits::default()).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    store.hold(Some(Operation::GetItem));
    let read = tokio::spawn(client.get_item().table_name("Scores").key("pk", text("a")).send());
    until("the read", || store.held() == (1, 0, 0)).await;
    read.abort();
    until("its end", || store.held() == (1, 1, 0)).await;

    store.hold(Some(Operation::PutItem));
    let write = tokio::spawn(client.put_item().table_name("Scores").item("pk", text("a")).send());
    until("the write", || store.held().0 == 2).await;
    write.abort();
    assert!(write.await.unwrap_err().is_cancelled());
    assert_eq!(store.held(), (2, 1, 0), "it is not let go");
    store.hold(None);
    until("its end", || store.held() == (2, 1, 1)).await;
    let got = client.get_item().table_name("Scores").key("pk", text("a")).send().await.unwrap();
    assert!(got.item().is_some());
}
