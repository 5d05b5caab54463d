//! A gateway in this process over a store of the test, and clients of it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use heatsink_connector::{Connector, Heatsink, Limits};

use crate::double::Double;

pub async fn start(store: &Double, limits: Limits) -> Heatsink {
    Heatsink::over(Arc::new(store.clone())).only_gateway().limits(limits).start().await.unwrap()
}

/// A client that neither signs nor tries again.
pub fn once(connector: Connector) -> Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .allow_no_auth()
        .retry_config(RetryConfig::disabled())
        .http_client(connector)
}

pub fn client(heatsink: &Heatsink) -> Client {
    Client::from_conf(once(heatsink.connector()).build())
}

/// Makes a table whose key is the text `pk`.
pub async fn create_table(client: &Client, name: &str) {
    let attribute = AttributeDefinition::builder().attribute_name("pk");
    let element = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash);
    client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute.attribute_type(ScalarAttributeType::S).build().unwrap())
        .key_schema(element.build().unwrap())
        .send()
        .await
        .unwrap();
}

pub fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

/// Waits for what comes soon.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain for {what}");
}
