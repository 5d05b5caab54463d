//! What the store fails with, as the SDK sees it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use heatsink_connector::Limits;
use heatsink_dynamo::{Code, Error, Operation, Outcome};

use crate::double::Double;
use crate::stage::{client, create_table, once, start, text};

#[tokio::test]
async fn an_error_of_the_store_comes_with_its_code() {
    let store = Double::new();
    let heatsink = start(&store, Limits::default()).await;
    let client = client(&heatsink);
    create_table(&client, "Scores").await;
    let put = || client.put_item().table_name("Scores").item("pk", text("a")).send();

    let exceeded = Error::new(Code::ProvisionedThroughputExceededException, "slower");
    store.fail(Operation::PutItem, exceeded);
    let error = put().await.unwrap_err().into_service_error();
    assert!(matches!(&error, PutItemError::ProvisionedThroughputExceededException(_)), "{error:?}");

    store.fail(Operation::PutItem, Error::unavailable("lost", Outcome::Unknown));
    let error = put().await.unwrap_err();
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 503);
    assert_eq!(error.code(), Some("ServiceUnavailable"));

    store.fail(Operation::PutItem, Error::internal("broken"));
    let error = put().await.unwrap_err().into_service_error();
    assert!(matches!(&error, PutItemError::InternalServerError(_)), "{error:?}");
    put().await.unwrap();
}

#[tokio::test]
async fn the_sdk_tries_again_what_may_pass() {
    let store = Double::new();
    let heatsink = start(&store, Limits::default()).await;
    let config = once(heatsink.connector()).retry_config(RetryConfig::standard().with_max_attempts(3));
    let client = Client::from_conf(config.build());
    create_table(&client, "Scores").await;
    let put = || client.put_item().table_name("Scores").item("pk", text("a")).send();
    let failures =
        [Error::internal("broken"), Error::new(Code::ProvisionedThroughputExceededException, "slower")];
    for error in failures.clone() {
        store.fail(Operation::PutItem, error);
    }
    put().await.unwrap();
    // Not what a change of the request would have to mend.
    store.fail(Operation::PutItem, Error::new(Code::ValidationException, "wrong"));
    assert_eq!(put().await.unwrap_err().code(), Some("ValidationException"));
    put().await.unwrap();
}
