//! A span for each request of a client, and within it one for each physical call; nothing of a key
//! or an item in either.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use heatsink_control::Rules;
use heatsink_dynamo::Operation;
use heatsink_gateway::{Gateway, SPANS};
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_request_has_a_span_and_each_of_its_calls_has_one_within() {
    let lines = Lines::default();
    let writer = lines.clone();
    let layer = tracing_subscriber::fmt::layer()
        .json()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || writer.clone());
    let targets = Targets::new().with_target(SPANS, tracing::Level::INFO);
    let subscriber = tracing_subscriber::registry().with(layer).with(targets);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber, || runtime.block_on(requests()));

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let closed: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let within = |span: &Json| span["spans"].as_array().map_or(0, Vec::len);
    let of = |kind: &str, operation: &str| -> Vec<&Json> {
        let is =
            |one: &&Json| one["span"]["otel.kind"] == kind && one["span"]["db.operation.name"] == operation;
        closed.iter().filter(is).collect()
    };
    let query = of("server", "Query");
    assert_eq!((query.len(), &query[0]["span"]["heatsink.plan"]), (1, &json!("scatter")));
    let shards = of("client", "Query");
    assert_eq!(shards.len(), 4);
    assert!(
        shards.iter().all(|one| within(one) == 1 && one["spans"][0]["otel.kind"] == "server"),
        "{shards:?}"
    );
    assert_eq!(of("server", "PutItem")[0]["span"]["heatsink.plan"], "single");
    let refused = of("server", "GetItem");
    assert_eq!(refused[0]["span"]["error.type"], "ValidationException");
    assert_eq!(refused[0]["span"]["otel.status_code"], "ERROR");
}

async fn requests() {
    let rules = "[[rule]]\ntable = \"Scores\"\nstrategy = \"calculated\"\nshards = 4\n";
    let gateway = Gateway::builder(Arc::new(Embedded::memory().unwrap()))
        .rules(Rules::read("rules", rules).unwrap())
        .start()
        .await
        .unwrap();
    let call = async |operation, body: Json| gateway.call(operation, Bytes::from(body.to_string())).await;
    let table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    });
    call(Operation::CreateTable, table).await.unwrap();
    let item = json!({ "pk": { "S": "secret" }, "sk": { "S": "secret" } });
    call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await.unwrap();
    let query = json!({
        "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "secret" } },
    });
    call(Operation::Query, query).await.unwrap();
    call(Operation::GetItem, json!({ "TableName": "Scores", "Key": { "pk": { "S": "secret" } } }))
        .await
        .unwrap_err();
}
