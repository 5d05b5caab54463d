//! Every shape of every answer against the service models: known members alone, of their type,
//! length, pattern and set of words.
//!
//! An SDK reads an answer by the model: what it does not know it drops, and what it gets it may
//! send again, where it checks it.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

mod shapes;
mod streams;

use heatsink_dynamo::Operation;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::embedded::support;
use shapes::Shapes;

/// A store whose answers are compared with the model.
pub struct Checked {
    store: Embedded,
    shapes: Shapes,
}

impl Checked {
    pub fn new() -> Checked {
        Checked { store: Embedded::memory().unwrap(), shapes: Shapes::read(include_str!("shapes.txt")) }
    }

    /// Calls the store, which must answer as the model says.
    pub async fn call(&self, operation: Operation, body: Json) -> Json {
        let answer = support::call(&self.store, operation, body.clone()).await;
        let mut faults = Vec::new();
        self.shapes.check_answer(operation.name(), &answer, &mut faults);
        assert!(faults.is_empty(), "{operation:?} {body}\n{answer}\n{}", faults.join("\n"));
        answer
    }
}

fn create() -> Json {
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let index = |name: &str, partition: &str| {
        json!({"IndexName": name, "KeySchema": [key(partition, "HASH"), key("t", "RANGE")],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v"]}})
    };
    let attributes = ["pk", "sk", "t"].map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    json!({"TableName": "Tab", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes,
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "LocalSecondaryIndexes": [index("local", "pk")], "GlobalSecondaryIndexes": [index("global", "sk")],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "Tags": [{"Key": "k", "Value": "v"}]})
}

fn item(sort: &str) -> Json {
    json!({"pk": {"S": "a"}, "sk": {"S": sort}, "t": {"S": "x"}, "n": {"N": "1"}, "s": {"SS": ["x", "y"]}, "b": {"B": "AAE="},
        "m": {"M": {"l": {"L": [{"NULL": true}, {"BOOL": false}]}}}})
}

#[tokio::test]
async fn answers_about_items_have_the_models_shapes() {
    let store = Checked::new();
    store.call(Operation::CreateTable, create()).await;
    let told = |mut body: Json| {
        body["ReturnConsumedCapacity"] = json!("INDEXES");
        body
    };
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "1"}});
    let put = json!({"TableName": "Tab", "Item": item("1"), "ReturnValues": "ALL_OLD", "ReturnItemCollectionMetrics": "SIZE"});
    store.call(Operation::PutItem, told(put.clone())).await;
    store.call(Operation::PutItem, told(put)).await;
    let update = json!({"TableName": "Tab", "Key": key, "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"N": "1"}},
        "ReturnValues": "ALL_NEW", "ReturnItemCollectionMetrics": "SIZE"});
    store.call(Operation::UpdateItem, told(update)).await;
    store.call(Operation::GetItem, told(json!({"TableName": "Tab", "Key": key}))).await;
    let writes: Vec<Json> = (2..9).map(|n| json!({"PutRequest": {"Item": item(&n.to_string())}})).collect();
    let batch = json!({"RequestItems": {"Tab": writes}, "ReturnItemCollectionMetrics": "SIZE"});
    store.call(Operation::BatchWriteItem, told(batch)).await;
    store.call(Operation::BatchGetItem, told(json!({"RequestItems": {"Tab": {"Keys": [key]}}}))).await;
    let page = |index: Option<&str>| {
        let partition = if index == Some("global") { "sk" } else { "pk" };
        let mut body = json!({"TableName": "Tab", "KeyConditionExpression": format!("{partition} = :p"), "Limit": 1,
            "ExpressionAttributeValues": {":p": {"S": if partition == "sk" { "3" } else { "a" }}}});
        if let Some(index) = index {
            body["IndexName"] = json!(index);
        }
        body
    };
    for index in [None, Some("local"), Some("global")] {
        store.call(Operation::Query, told(page(index))).await;
    }
    store.call(Operation::Scan, told(json!({"TableName": "Tab", "Limit": 2}))).await;
    let get = json!({"TransactItems": [{"Get": {"TableName": "Tab", "Key": key}}]});
    store.call(Operation::TransactGetItems, told(get)).await;
    let write = json!({"TransactItems": [{"Delete": {"TableName": "Tab", "Key": key}}], "ReturnItemCollectionMetrics": "SIZE"});
    store.call(Operation::TransactWriteItems, told(write)).await;
    let delete =
        json!({"TableName": "Tab", "Key": {"pk": {"S": "a"}, "sk": {"S": "2"}}, "ReturnValues": "ALL_OLD"});
    store.call(Operation::DeleteItem, told(delete)).await;
}

#[tokio::test]
async fn answers_to_statements_have_the_models_shapes() {
    let store = Checked::new();
    store.call(Operation::CreateTable, create()).await;
    for sort in ["1", "2"] {
        store.call(Operation::PutItem, json!({"TableName": "Tab", "Item": item(sort)})).await;
    }
    let select = "SELECT * FROM Tab WHERE pk = 'a'";
    let one = json!({"Statement": format!("{select} AND sk = '1'")});
    let body = json!({"Statement": select, "Limit": 1, "ReturnConsumedCapacity": "TOTAL"});
    store.call(Operation::ExecuteStatement, body).await;
    let absent = json!({"Statement": "SELECT * FROM Nowhere WHERE pk = 'a' AND sk = 'b'"});
    let wrong = json!({"Statement": "UPDATE Tab SET"});
    let batch = json!({"Statements": [one, absent, wrong], "ReturnConsumedCapacity": "INDEXES"});
    store.call(Operation::BatchExecuteStatement, batch).await;
    let transaction = json!({"TransactStatements": [one], "ReturnConsumedCapacity": "TOTAL"});
    store.call(Operation::ExecuteTransaction, transaction).await;
}

#[tokio::test]
async fn answers_about_tables_have_the_models_shapes() {
    let store = Checked::new();
    let named = json!({"TableName": "Tab"});
    let created = store.call(Operation::CreateTable, create()).await;
    let arn = &created["TableDescription"]["TableArn"];
    store.call(Operation::DescribeTable, named.clone()).await;
    store.call(Operation::ListTables, json!({"Limit": 1})).await;
    let live =
        json!({"TableName": "Tab", "TimeToLiveSpecification": {"Enabled": true, "AttributeName": "ttl"}});
    store.call(Operation::UpdateTimeToLive, live).await;
    for operation in [
        Operation::DescribeTimeToLive,
        Operation::DescribeContinuousBackups,
        Operation::DescribeContributorInsights,
        Operation::DescribeKinesisStreamingDestination,
    ] {
        store.call(operation, named.clone()).await;
    }
    for operation in [
        Operation::DescribeLimits,
        Operation::DescribeEndpoints,
        Operation::ListBackups,
        Operation::ListContributorInsights,
        Operation::ListExports,
        Operation::ListGlobalTables,
        Operation::ListImports,
    ] {
        store.call(operation, json!({})).await;
    }
    store.call(Operation::ListTagsOfResource, json!({"ResourceArn": arn})).await;
    let drop =
        json!({"TableName": "Tab", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "global"}}]});
    store.call(Operation::UpdateTable, drop).await;
    let provisioned = json!({"TableName": "Tab", "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}});
    store.call(Operation::UpdateTable, provisioned).await;
    store.call(Operation::DescribeTable, named.clone()).await;
    store.call(Operation::DeleteTable, named).await;
}
