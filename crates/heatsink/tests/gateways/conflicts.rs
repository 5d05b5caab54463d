//! While `heatsink adopt` rewrites the keys of an index, its transactions meet writes of clients. A
//! write of one item that is refused for it is sent again: an unsharded table has no worker, and
//! its clients do not expect the error.
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Adoption, AdoptionOptions, Direction, Unwatched};
use serde_json::{Value as Json, json};

const INDEX: &str =
    "[[rule]]\ntable = \"Tasks\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = 4\n";

/// An embedded store in which a worker's transactions have the items that clients write, so many
/// times.
struct Busy {
    inner: Embedded,
    conflicts: AtomicI64,
    error: Mutex<Error>,
    /// Whether the worker cannot claim the table.
    stuck: AtomicBool,
    sent: AtomicI64,
}

fn conflict() -> Error {
    Error::new(Code::TransactionConflictException, "Transaction is ongoing for the item")
}

impl Store for Busy {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body).into_owned();
        let of_worker = text.contains("worker:") && !text.contains("worker:none");
        if operation == Operation::TransactWriteItems && self.stuck.load(Ordering::SeqCst) && of_worker {
            return async { Err(Error::new(Code::AccessDeniedException, "not you")) }.boxed();
        }
        let one =
            [Operation::PutItem, Operation::UpdateItem, Operation::DeleteItem, Operation::ExecuteStatement];
        if one.contains(&operation) && text.contains("Tasks") && !text.contains("heatsink.registry") {
            self.sent.fetch_add(1, Ordering::SeqCst);
            if self.conflicts.fetch_sub(1, Ordering::SeqCst) > 0 {
                let error = self.error.lock().unwrap().clone();
                return async { Err(error) }.boxed();
            }
        }
        self.inner.call(operation, body)
    }
}

/// A gateway before a table of which an index is being adopted, if `turning`.
async fn gateway(turning: bool) -> (Arc<Busy>, Gateway) {
    let busy = Arc::new(Busy {
        inner: Embedded::memory().unwrap(),
        conflicts: AtomicI64::new(0),
        error: Mutex::new(conflict()),
        stuck: AtomicBool::new(turning),
        sent: AtomicI64::new(0),
    });
    let store: Arc<dyn Store> = busy.clone();
    let key = |names: [&str; 2]| json!([{ "AttributeName": names[0], "KeyType": "HASH" }, { "AttributeName": names[1], "KeyType": "RANGE" }]);
    let attributes =
        ["pk", "sk", "status"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
    let table = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "KeySchema": key(["pk", "sk"]), "AttributeDefinitions": attributes,
        "GlobalSecondaryIndexes": [{ "IndexName": "by-status", "KeySchema": key(["status", "sk"]), "Projection": { "ProjectionType": "ALL" } }],
    });
    store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
    let env: Arc<dyn Env> = Arc::new(HastyEnv(ManualEnv::seeded(7)));
    let rules = Rules::read("rules", INDEX).unwrap();
    if turning {
        // With an item in it the index waits for its adoption, which stops in the middle.
        let item = json!({ "pk": { "S": "p" }, "sk": { "S": "0" }, "status": { "S": "open" } });
        let put = json!({ "TableName": "Tasks", "Item": item });
        store.call(Operation::PutItem, Bytes::from(put.to_string())).await.unwrap();
        let adoption =
            Adoption::prepare(Arc::clone(&store), Arc::clone(&env), &rules, "Tasks", Direction::Adopt).await;
        let options = AdoptionOptions { concurrency: 2, exclusive: true };
        assert!(adoption.unwrap().run(options, &Unwatched).await.is_err());
    }
    let service = Gateway::builder(store).env(env).rules(rules).start().await.unwrap();
    // Looks the table up.
    let _ = call(&service, writes()[0].clone()).await.unwrap();
    busy.sent.store(0, Ordering::SeqCst);
    (busy, service)
}

type Write = (Operation, Json);

fn writes() -> [Write; 4] {
    let key = json!({ "pk": { "S": "p" }, "sk": { "S": "1" } });
    let item = json!({ "pk": { "S": "p" }, "sk": { "S": "1" }, "status": { "S": "open" } });
    let values = json!({ ":s": { "S": "done" } });
    [
        (Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })),
        (
            Operation::UpdateItem,
            json!({ "TableName": "Tasks", "Key": key, "UpdateExpression": "SET #s = :s",
                "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": values }),
        ),
        (
            Operation::ExecuteStatement,
            json!({ "Statement": "UPDATE \"Tasks\" SET other = 'x' WHERE pk = 'p' AND sk = '1'" }),
        ),
        (Operation::DeleteItem, json!({ "TableName": "Tasks", "Key": key })),
    ]
}

async fn call(service: &Gateway, (operation, body): Write) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

#[tokio::test]
async fn a_write_that_meets_the_worker_is_sent_again() {
    let (busy, service) = gateway(true).await;
    for write in writes() {
        busy.sent.store(0, Ordering::SeqCst);
        busy.conflicts.store(4, Ordering::SeqCst);
        call(&service, write.clone()).await.unwrap_or_else(|error| panic!("{write:?}: {error}"));
        assert!(busy.sent.load(Ordering::SeqCst) >= 5, "{write:?}");
    }
}

#[tokio::test]
async fn it_is_not_sent_for_ever() {
    let (busy, service) = gateway(true).await;
    busy.conflicts.store(1_000, Ordering::SeqCst);
    let error = call(&service, writes()[0].clone()).await.unwrap_err();
    assert_eq!((error.code, error.outcome), (Code::TransactionConflictException, Outcome::NotDone));
    assert_eq!(busy.sent.load(Ordering::SeqCst), 11);
}

/// What may have been done is never repeated, and neither is what is no conflict.
#[tokio::test]
async fn nothing_else_is_sent_again() {
    let (busy, service) = gateway(true).await;
    let mut lost = conflict();
    lost.outcome = Outcome::Unknown;
    for error in [lost, Error::new(Code::TransactionInProgressException, ""), Error::internal("")] {
        *busy.error.lock().unwrap() = error;
        busy.sent.store(0, Ordering::SeqCst);
        busy.conflicts.store(1, Ordering::SeqCst);
        assert!(call(&service, writes()[0].clone()).await.is_err());
        assert_eq!(busy.sent.load(Ordering::SeqCst), 1);
    }
}

/// There it is a transaction of a client.
#[tokio::test]
async fn a_table_without_a_worker_passes_the_error_on() {
    let (busy, service) = gateway(false).await;
    busy.conflicts.store(1, Ordering::SeqCst);
    let error = call(&service, writes()[0].clone()).await.unwrap_err();
    assert_eq!(error.code, Code::TransactionConflictException);
    assert_eq!(busy.sent.load(Ordering::SeqCst), 1);
}

/// Deleted meanwhile, and made again under its name, the table's items would be rewritten by a run
/// that takes them for those of the former one.
#[tokio::test]
async fn a_table_whose_index_keys_migrate_is_not_deleted() {
    let (busy, service) = gateway(true).await;
    let delete = (Operation::DeleteTable, json!({ "TableName": "Tasks" }));
    let error = call(&service, delete.clone()).await.unwrap_err();
    assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}");
    assert!(error.to_string().contains("heatsink adopt Tasks"), "{error}");
    // Once that has ended it is.
    busy.stuck.store(false, Ordering::SeqCst);
    let store: Arc<dyn Store> = busy;
    let env: Arc<dyn Env> = Arc::new(HastyEnv(ManualEnv::seeded(8)));
    let rules = Rules::read("rules", INDEX).unwrap();
    let adoption = Adoption::prepare(store, env, &rules, "Tasks", Direction::Adopt).await.unwrap();
    adoption.run(AdoptionOptions { concurrency: 2, exclusive: true }, &Unwatched).await.unwrap();
    call(&service, delete).await.unwrap();
}
