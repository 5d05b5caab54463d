//! A gateway in this process, and the SDK in front of it.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use heatsink_access::Clients;
use heatsink_control::Rules;
use heatsink_gateway::http::{Hosts, Live, ServerTls, Settings};
use heatsink_gateway::{Gateway, Limits};
use heatsink_store::embedded::Embedded;
use heatsink_store::upstream::{Network, sdk_http_client};
use tokio::net::TcpListener;

/// A gateway with a store in memory, until the test ends.
pub async fn serve(rules: Rules, clients: Clients, tls: Option<ServerTls>) -> SocketAddr {
    let builder = Gateway::builder(Arc::new(Embedded::memory().unwrap())).rules(rules);
    let gateway = builder.clients(Arc::new(ArcSwap::from_pointee(clients))).start().await.unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings { tls, ..Settings::plain(Hosts::loopback(), &Limits::default()) };
    tokio::spawn(gateway.serve_live(listener, Live::new(settings), futures::future::pending()));
    address
}

/// The settings of a client that sends nothing twice.
pub fn config(endpoint: String, credentials: Credentials, network: &Network) -> Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(sdk_http_client(network))
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials)
}

/// Makes a table whose keys are the texts `pk` and `sk`.
pub async fn create_table(client: &Client, name: &str) {
    let mut request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (key, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(key);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(kind);
        request = request
            .attribute_definitions(attribute.attribute_type(ScalarAttributeType::S).build().unwrap())
            .key_schema(element.build().unwrap());
    }
    request.send().await.unwrap();
}

pub fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}
