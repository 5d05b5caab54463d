//! Nothing of a killed worker lands after another one has taken over: a write is held back on its
//! way to the store, its run gets no answer, another run finishes, and then the write arrives.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use crate::adoption::support::{calculated, call, items, memory, table};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::{REGISTRY, Rules};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_env::RealEnv;
use heatsink_store::Store;
use heatsink_workers::verify::{Verification, VerifyError};
use heatsink_workers::{Adoption, AdoptionOptions, AdoptionReport, Direction, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 1, exclusive: true };

/// A store whose n-th write to a table is held back. Its sender gets no answer to that, nor to
/// anything afterwards: it was killed.
struct Delaying {
    inner: Arc<dyn Store>,
    table: &'static str,
    left: AtomicI64,
    held: Mutex<Option<(Operation, Bytes)>>,
}

impl Delaying {
    fn new(inner: &Arc<dyn Store>, table: &'static str, at: i64) -> Arc<Self> {
        Arc::new(Delaying {
            inner: Arc::clone(inner),
            table,
            left: AtomicI64::new(at),
            held: Mutex::new(None),
        })
    }

    fn is_write(&self, operation: Operation, body: &[u8]) -> bool {
        let writes = [
            Operation::PutItem,
            Operation::UpdateItem,
            Operation::DeleteItem,
            Operation::BatchWriteItem,
            Operation::TransactWriteItems,
        ];
        let body: Json = serde_json::from_slice(body).unwrap();
        let mut named = vec![&body["TableName"]];
        for action in body["TransactItems"].as_array().into_iter().flatten() {
            named.extend(["Put", "Update", "Delete"].map(|kind| &action[kind]["TableName"]));
        }
        writes.contains(&operation) && named.contains(&&json!(self.table))
    }

    /// The write arrives. Whether there was one.
    async fn release(&self) -> bool {
        let held = self.held.lock().unwrap().take();
        match held {
            Some((operation, body)) => {
                let _ = self.inner.call(operation, body).await;
                true
            }
            None => false,
        }
    }
}

impl Store for Delaying {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let lost = || async { Err(Error::unavailable("no answer", Outcome::Unknown)) }.boxed();
        let left = if self.is_write(operation, &body) {
            self.left.fetch_sub(1, Ordering::SeqCst)
        } else {
            self.left.load(Ordering::SeqCst)
        };
        if left > 0 || (left == 0 && !self.is_write(operation, &body)) {
            return self.inner.call(operation, body);
        }
        if left == 0 {
            *self.held.lock().unwrap() = Some((operation, body));
        }
        lost()
    }
}

async fn adopt(
    store: Arc<dyn Store>,
    rules: &Rules,
    name: &str,
    direction: Direction,
) -> Result<AdoptionReport, WorkerError> {
    let adoption = Adoption::prepare(store, Arc::new(RealEnv), rules, name, direction).await?;
    adoption.run(OPTIONS, &Unwatched).await
}

/// Every write of a run that goes one way is held back until a run that goes the other way has
/// finished, and arrives then.
async fn late_writes_do_nothing(
    fill: impl AsyncFn() -> Arc<dyn Store>,
    rules: &Rules,
    name: &'static str,
    first: Direction,
    then: Direction,
) {
    let mut at = 0;
    loop {
        let store = fill().await;
        if first == Direction::Back {
            adopt(store.clone(), rules, name, Direction::Adopt).await.unwrap();
        }
        let delaying = Delaying::new(&store, name, at);
        if adopt(delaying.clone(), rules, name, first).await.is_ok() {
            break;
        }
        adopt(store.clone(), rules, name, then).await.unwrap();
        let (before, registry) = (items(&store, name).await, registry(&store).await);
        assert!(delaying.release().await);
        assert_eq!(items(&store, name).await, before, "write {at}, {first:?} then {then:?}");
        assert_eq!(self::registry(&store).await, registry);
        at += 1;
    }
    assert!(at > 2, "the run makes {at} writes");
}

/// The registry's items but for the records: claims and permits.
async fn registry(store: &Arc<dyn Store>) -> Vec<String> {
    let mut found = items(store, REGISTRY).await;
    found.retain(|item| item.contains("worker"));
    found
}

async fn board() -> Arc<dyn Store> {
    let store = memory();
    call(&store, Operation::CreateTable, table("Board", "S")).await;
    for at in 0..12 {
        let item =
            json!({ "pk": { "S": "game" }, "sk": { "S": at.to_string() }, "tags": { "SS": ["a", "b"] } });
        call(&store, Operation::PutItem, json!({ "TableName": "Board", "Item": item })).await;
    }
    store
}

async fn tasks() -> Arc<dyn Store> {
    let store = memory();
    let definition = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "status", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-status", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "status", "KeyType": "HASH" }],
        }],
    });
    call(&store, Operation::CreateTable, definition).await;
    for at in 0..12 {
        let item = json!({ "pk": { "S": at.to_string() }, "status": { "S": "open" } });
        call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    }
    store
}

#[tokio::test]
async fn a_late_move_does_nothing() {
    let rules = calculated("Board", "game*", 4);
    for (first, then) in [
        (Direction::Adopt, Direction::Back),
        (Direction::Adopt, Direction::Adopt),
        (Direction::Back, Direction::Adopt),
        (Direction::Back, Direction::Back),
    ] {
        late_writes_do_nothing(board, &rules, "Board", first, then).await;
    }
}

#[tokio::test]
async fn a_late_rewrite_of_an_index_key_does_nothing() {
    let text = "[[rule]]\ntable = \"Tasks\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = 4\n";
    let rules = Rules::read("rules", text).unwrap();
    for (first, then) in [(Direction::Adopt, Direction::Back), (Direction::Back, Direction::Adopt)] {
        late_writes_do_nothing(tasks, &rules, "Tasks", first, then).await;
    }
}

#[tokio::test]
async fn a_run_that_is_overtaken_stops_and_writes_nothing_more() {
    let rules = calculated("Board", "game*", 4);
    let store = board().await;
    // The first run is at its third move when the second one begins and ends.
    struct Overtaking(Arc<dyn Store>, Arc<Delaying>, Rules);
    impl Store for Overtaking {
        fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
            async move {
                if self.1.is_write(operation, &body) && self.1.left.fetch_sub(1, Ordering::SeqCst) == 0 {
                    adopt(self.0.clone(), &self.2, "Board", Direction::Back).await.unwrap();
                }
                self.0.call(operation, body).await
            }
            .boxed()
        }
    }
    let original = items(&store, "Board").await;
    let counter = Delaying::new(&store, "Board", 3);
    let overtaken: Arc<dyn Store> =
        Arc::new(Overtaking(store.clone(), counter, calculated("Board", "game*", 4)));
    let Err(WorkerError::Busy(said)) = adopt(overtaken, &rules, "Board", Direction::Adopt).await else {
        panic!("it goes on")
    };
    assert!(said.contains("Another run"), "{said}");
    assert_eq!(items(&store, "Board").await, original);
    assert_eq!(registry(&store).await, Vec::<String>::new(), "no claim is left");
}

#[tokio::test]
async fn a_late_repair_does_nothing() {
    let rules = calculated("Board", "game*", 4);
    let misplace = async |store: &Arc<dyn Store>| {
        // Shard 0 is the place of none of these.
        for sort in ["0", "1", "2", "3", "4", "5", "6", "7"] {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort }, "late": { "BOOL": true } });
            let put = json!({ "TableName": "Board", "Item": item, "ConditionExpression": "attribute_not_exists(pk)" });
            let _ = store.call(Operation::PutItem, Bytes::from(put.to_string())).await;
        }
    };
    let mut at = 0;
    loop {
        let store = memory();
        call(&store, Operation::CreateTable, table("Board", "S")).await;
        let item = json!({ "pk": { "S": "other" }, "sk": { "S": "x" } });
        call(&store, Operation::PutItem, json!({ "TableName": "Board", "Item": item })).await;
        adopt(store.clone(), &rules, "Board", Direction::Adopt).await.unwrap();
        misplace(&store).await;
        let delaying = Delaying::new(&store, "Board", at);
        let killed = repair(delaying.clone()).await;
        let (_, left) = repair(store.clone()).await.unwrap();
        assert_eq!(left.wrong(), 0, "{left:?}");
        // Clients delete everything; then a writer that bypasses Heatsink writes its items again.
        for text in items(&store, "Board").await {
            let item: Json = serde_json::from_str(&text).unwrap();
            let key = json!({ "pk": item["pk"], "sk": item["sk"] });
            call(&store, Operation::DeleteItem, json!({ "TableName": "Board", "Key": key })).await;
        }
        misplace(&store).await;
        let before = items(&store, "Board").await;
        if !delaying.release().await {
            assert!(killed.is_ok());
            break;
        }
        assert_eq!(items(&store, "Board").await, before, "write {at}");
        at += 1;
    }
    assert!(at > 2, "the repair makes {at} writes");
}

async fn repair(
    store: Arc<dyn Store>,
) -> Result<(heatsink_workers::verify::Repaired, heatsink_workers::verify::Findings), VerifyError> {
    Verification::prepare(store, Arc::new(RealEnv), "Board", None, REGISTRY)
        .await?
        .repair(None, &Unwatched)
        .await
}
