//! A recorded table carries a tag that names its registry. It is written once the table is on
//! record, checked before one goes there, and hidden from clients. Stores without tags, and
//! credentials that may not use them, go without.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_control::{Rules, StartError};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const RULES: &str = "[[rule]]\ntable = \"Bo*\"\nstrategy = \"calculated\"\nshards = 6\n";
const TAG: &str = "heatsink.registry";

/// An embedded store that says something else of tags, where it is told to.
struct Tagging {
    inner: Embedded,
    says: Mutex<Option<Code>>,
    asked: AtomicUsize,
}

impl Tagging {
    fn new(says: Option<Code>) -> Arc<Self> {
        let (says, asked) = (Mutex::new(says), AtomicUsize::new(0));
        Arc::new(Tagging { inner: Embedded::memory().unwrap(), says, asked })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn raw(&self, operation: Operation, body: Json) -> Json {
        let answer = self.inner.call(operation, Bytes::from(body.to_string())).await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    async fn arn(&self) -> Json {
        self.raw(Operation::DescribeTable, json!({ "TableName": "Book" })).await["Table"]["TableArn"].clone()
    }

    async fn tags(&self) -> Json {
        let arn = self.arn().await;
        self.raw(Operation::ListTagsOfResource, json!({ "ResourceArn": arn })).await["Tags"].clone()
    }

    async fn tag(&self, value: &str) {
        let tags = json!([{ "Key": TAG, "Value": value }]);
        let arn = self.arn().await;
        self.raw(Operation::TagResource, json!({ "ResourceArn": arn, "Tags": tags })).await;
    }
}

impl Store for Tagging {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let of_tags = [Operation::ListTagsOfResource, Operation::TagResource].contains(&operation);
        if of_tags {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        match self.says.lock().unwrap().clone().filter(|_| of_tags) {
            Some(code) => async move { Err(Error::new(code, "not here")) }.boxed(),
            None => self.inner.call(operation, body),
        }
    }
}

fn definition() -> Json {
    json!({
        "TableName": "Book", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    })
}

async fn start(store: &Arc<Tagging>, rules: &str) -> Result<Gateway, StartError> {
    let store: Arc<dyn Store> = store.clone();
    let rules = Rules::read("rules", rules).unwrap();
    Gateway::builder(store).rules(rules).start().await
}

async fn gateway(store: &Arc<Tagging>) -> Gateway {
    start(store, RULES).await.unwrap()
}

async fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

async fn put(service: &Gateway) -> Result<Json, Error> {
    let item = json!({ "pk": { "S": "k" }, "sk": { "S": "1" } });
    call(service, Operation::PutItem, json!({ "TableName": "Book", "Item": item })).await
}

fn ours() -> Json {
    json!([{ "Key": TAG, "Value": "heatsink.registry" }])
}

#[tokio::test]
async fn an_empty_table_is_tagged_when_it_goes_on_record() {
    let store = Tagging::new(None);
    store.raw(Operation::CreateTable, definition()).await;
    let service = gateway(&store).await;
    put(&service).await.unwrap();
    assert_eq!(store.tags().await, ours());
    // Looked for when it went there, and never again.
    let asked = store.asked();
    gateway(&store).await;
    put(&gateway(&store).await).await.unwrap();
    assert_eq!(store.asked(), asked);
}

#[tokio::test]
async fn a_table_that_is_made_through_heatsink_is_tagged_by_its_first_request() {
    let store = Tagging::new(None);
    let service = gateway(&store).await;
    call(&service, Operation::CreateTable, definition()).await.unwrap();
    assert_eq!(store.asked(), 0, "CreateTable does not wait for it");
    put(&service).await.unwrap();
    assert_eq!(store.tags().await, ours());
}

#[tokio::test]
async fn a_table_of_another_registry_does_not_go_on_record() {
    let store = Tagging::new(None);
    store.raw(Operation::CreateTable, definition()).await;
    store.tag("other.registry").await;
    let service = gateway(&store).await;
    let error = put(&service).await.unwrap_err();
    assert_eq!(error.code, Code::ValidationException);
    assert!(error.message.as_ref().unwrap().contains("other.registry"), "{error}");
    let stopped = start(&store, &RULES.replace("Bo*", "Book")).await.err().unwrap();
    assert!(matches!(&stopped, StartError::Rules(why) if why.contains("other.registry")), "{stopped}");
    // With items in it, it is not to be adopted either.
    let item = json!({ "TableName": "Book", "Item": { "pk": { "S": "k" }, "sk": { "S": "1" } } });
    store.raw(Operation::PutItem, item).await;
    let error = put(&gateway(&store).await).await.unwrap_err();
    assert!(error.message.as_ref().unwrap().contains("other.registry"), "{error}");
}

#[tokio::test]
async fn clients_neither_see_the_tag_nor_change_it() {
    let store = Tagging::new(None);
    let service = gateway(&store).await;
    let own = json!([{ "Key": "team", "Value": "red" }, { "Key": TAG, "Value": "x" }]);
    let mut tagged = definition();
    tagged["Tags"] = own.clone();
    let refused = |answer: Result<Json, Error>| {
        let error = answer.unwrap_err();
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.as_ref().unwrap().contains(TAG), "{error}");
    };
    refused(call(&service, Operation::CreateTable, tagged).await);
    call(&service, Operation::CreateTable, definition()).await.unwrap();
    put(&service).await.unwrap();
    let arn = store.arn().await;
    refused(call(&service, Operation::TagResource, json!({ "ResourceArn": arn, "Tags": own })).await);
    refused(call(&service, Operation::UntagResource, json!({ "ResourceArn": arn, "TagKeys": [TAG] })).await);
    let team = json!([{ "Key": "team", "Value": "red" }]);
    call(&service, Operation::TagResource, json!({ "ResourceArn": arn, "Tags": team })).await.unwrap();
    let shown = call(&service, Operation::ListTagsOfResource, json!({ "ResourceArn": arn })).await.unwrap();
    assert_eq!(shown["Tags"], team);
    assert_eq!(store.tags().await.as_array().unwrap().len(), 2);
    call(&service, Operation::UntagResource, json!({ "ResourceArn": arn, "TagKeys": ["team"] }))
        .await
        .unwrap();
    assert_eq!(store.tags().await, ours());
}

#[tokio::test]
async fn without_tags_everything_goes_on() {
    let codes = [Code::UnknownOperationException, Code::ValidationException, Code::AccessDeniedException];
    for code in codes {
        let store = Tagging::new(Some(code.clone()));
        store.raw(Operation::CreateTable, definition()).await;
        let service = gateway(&store).await;
        put(&service).await.unwrap();
        let asked = store.asked();
        // A store that does not know of tags is asked once.
        assert!(asked == 1 || code != Code::UnknownOperationException, "{code:?}: {asked}");
        assert_eq!(store.tags().await, json!([]));
    }
}

#[tokio::test]
async fn a_tag_that_cannot_be_written_now_is_written_later() {
    let store = Tagging::new(None);
    let service = gateway(&store).await;
    call(&service, Operation::CreateTable, definition()).await.unwrap();
    *store.says.lock().unwrap() = Some(Code::InternalServerError);
    put(&service).await.unwrap();
    assert_eq!(store.tags().await, json!([]));
    *store.says.lock().unwrap() = None;
    // UpdateTable has it looked up again.
    let update = json!({ "TableName": "Book", "BillingMode": "PAY_PER_REQUEST" });
    let _ = call(&service, Operation::UpdateTable, update).await;
    put(&service).await.unwrap();
    assert_eq!(store.tags().await, ours());
}

/// Not yet on record, and the store cannot say whose it is: nothing is decided.
#[tokio::test]
async fn a_store_that_cannot_be_asked_for_tags_puts_nothing_on_record() {
    let store = Tagging::new(Some(Code::ThrottlingException));
    let service = gateway(&store).await;
    store.raw(Operation::CreateTable, definition()).await;
    let error = put(&service).await.unwrap_err();
    assert!(error.retryable(), "{error}");
    *store.says.lock().unwrap() = None;
    put(&service).await.unwrap();
    assert_eq!(store.tags().await, ours());
}
