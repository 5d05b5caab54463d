//! The registry is deleted, or another one is named, after a key was resharded. A gateway that
//! starts then never takes that for a store without sharded tables, and what a store without a
//! registry has of clients' keys that look like shards goes on as it is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::{Fencing, Memory, RememberedTable, Rules, StartError};
use heatsink_dynamo::{Code, Error, KeyValue, Operation};
use heatsink_env::RealEnv;
use heatsink_layout::SplitPoints;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::verify::{Verification, VerifyError};
use heatsink_workers::{
    Rebuild, Rebuilt, Reshard, ReshardOptions, Unwatched, ValueAsked, ValueOptions, ValueReshard, WorkerError,
};
use serde_json::{Value as Json, json};
use tokio::runtime::Builder;

use crate::town::{INDEX, table};

const REGISTRY: &str = "heatsink.registry";
const FENCE: &str = "rule = []\n[fence]\nlease = \"20s\"\nstraggler = \"1s\"\n";

/// An embedded store, with tags or without.
struct Shop {
    inner: Embedded,
    tags: bool,
}

impl Store for Shop {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let of_tags = [Operation::ListTagsOfResource, Operation::TagResource].contains(&operation);
        match of_tags && !self.tags {
            true => async { Err(Error::new(Code::UnknownOperationException, "no tags")) }.boxed(),
            false => self.inner.call(operation, body),
        }
    }
}

fn block_on<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

fn shop(tags: bool) -> Arc<dyn Store> {
    Arc::new(Shop { inner: Embedded::memory().unwrap(), tags })
}

fn raw(store: &Arc<dyn Store>, operation: Operation, body: Json) -> Json {
    let answer = block_on(store.call(operation, Bytes::from(body.to_string())));
    serde_json::from_slice(&answer.unwrap_or_else(|error| panic!("{operation:?}: {error}"))).unwrap()
}

fn put(store: &Arc<dyn Store>, key: &str, sort: usize) {
    let item = json!({ "pk": { "S": key }, "sk": { "S": format!("{sort:04}") }, "status": { "S": "open" } });
    raw(store, Operation::PutItem, json!({ "TableName": "Scores", "Item": item }));
}

/// A store in which a key of so many items has four shards, and others are whole.
fn sharded(tags: bool, items: usize) -> Arc<dyn Store> {
    laid_out(tags, items, &4.into())
}

/// The same, laid out so.
fn laid_out(tags: bool, items: usize, wanted: &WantedLayout) -> Arc<dyn Store> {
    let store = shop(tags);
    raw(&store, Operation::CreateTable, table(&[(INDEX, &["status"])]));
    for at in 0..items {
        put(&store, "game", at);
    }
    put(&store, "other", 1);
    let rules = Rules::read("rules", FENCE).unwrap();
    block_on(async {
        let env = Arc::new(RealEnv);
        let wanted = wanted.clone();
        let reshard =
            Reshard::prepare(Arc::clone(&store), env, &rules, "Scores", b"game", wanted, false).await;
        reshard.unwrap().run(ReshardOptions { exclusive: true, rate: u32::MAX }, &Unwatched).await.unwrap();
    });
    store
}

fn delete_registry(store: &Arc<dyn Store>) {
    let body = json!({ "TableName": REGISTRY, "DeletionProtectionEnabled": false });
    raw(store, Operation::UpdateTable, body);
    raw(store, Operation::DeleteTable, json!({ "TableName": REGISTRY }));
}

fn start(store: &Arc<dyn Store>, rules: Rules) -> Result<Gateway, StartError> {
    let fencing = Fencing::exclusive(rules.fence());
    block_on(Gateway::builder(Arc::clone(store)).rules(rules).fencing(fencing).start())
}

fn rules(text: &str) -> Rules {
    Rules::read("rules", text).unwrap()
}

fn through(gateway: &Gateway, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = block_on(gateway.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn query(key: &str) -> Json {
    json!({
        "TableName": "Scores", "ConsistentRead": true, "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": { ":p": { "S": key } },
    })
}

fn scan() -> Json {
    json!({ "TableName": "Scores", "ConsistentRead": true })
}

/// Every request for the table is refused, by name.
fn refused(gateway: &Gateway) -> String {
    let mut said = String::new();
    for (operation, body) in [(Operation::Query, query("game")), (Operation::Scan, scan())] {
        let error = through(gateway, operation, &body).unwrap_err();
        assert_eq!(error.code, Code::ValidationException, "{error}");
        said = error.message.unwrap();
        assert!(said.contains("Scores") && said.contains("[fence]"), "{said}");
    }
    said
}

#[derive(Default)]
struct Notes(Mutex<Vec<RememberedTable>>);

impl Memory for Notes {
    fn tables(&self) -> Vec<RememberedTable> {
        self.0.lock().unwrap().clone()
    }
    fn note(&self, table: &RememberedTable) {
        let mut known = self.0.lock().unwrap();
        if !known.contains(table) {
            known.push(table.clone());
        }
    }
    fn forget(&self, id: &str) {
        self.0.lock().unwrap().retain(|table| table.id != id);
    }
    fn place(&self) -> String {
        "notes".to_owned()
    }
}

#[test]
fn a_deleted_registry_is_missed_by_tags_and_by_items() {
    for (tags, items) in [(true, 5), (false, 60)] {
        let store = sharded(tags, items);
        assert_eq!(
            through(&start(&store, rules(FENCE)).unwrap(), Operation::Query, &query("game")).unwrap()["Count"],
            items
        );
        delete_registry(&store);
        let said = refused(&start(&store, rules(FENCE)).unwrap());
        assert!(said.contains("--rebuild") && said.contains("docs/how-to/recover.md"), "{said}");
        // A gateway that makes a new one does not make it known.
        let other = "[[rule]]\ntable = \"New\"\nstrategy = \"calculated\"\nshards = 3\n";
        let gateway = start(&store, rules(other)).unwrap();
        raw(&store, Operation::CreateTable, {
            let mut new = table(&[]);
            new["TableName"] = json!("New");
            new
        });
        let item = json!({ "TableName": "New", "Item": { "pk": { "S": "a" }, "sk": { "S": "b" } } });
        through(&gateway, Operation::PutItem, &item).unwrap();
        assert_eq!(
            raw(&store, Operation::DescribeTable, json!({ "TableName": REGISTRY }))["Table"]["TableStatus"],
            "ACTIVE"
        );
        refused(&gateway);
        refused(&start(&store, rules(FENCE)).unwrap());
    }
}

#[test]
fn another_registry_is_not_taken_for_this_one() {
    for tags in [true, false] {
        let store = sharded(tags, 5);
        let other = FENCE.replace("[fence]", "[fence]\nregistry = \"my.registry\"");
        let said = refused(&start(&store, rules(&other)).unwrap());
        assert!(said.contains(REGISTRY) && said.contains("my.registry"), "{said}");
    }
}

#[test]
fn what_a_gateway_remembers_keeps_the_next_one_from_starting() {
    let store = sharded(false, 5);
    let notes = Arc::new(Notes::default());
    let remembering = || rules(FENCE).remembering(Some(Arc::clone(&notes) as Arc<dyn Memory>));
    let gateway = start(&store, remembering()).unwrap();
    through(&gateway, Operation::Query, &query("game")).unwrap();
    assert_eq!(notes.tables().len(), 1);
    drop(gateway);
    delete_registry(&store);
    let Err(StartError::Rules(said)) = start(&store, remembering()) else { panic!("it starts") };
    assert!(said.contains("Scores") && said.contains("--rebuild"), "{said}");
    // The table of that name that is made afterwards is another one.
    raw(&store, Operation::DeleteTable, json!({ "TableName": "Scores" }));
    raw(&store, Operation::CreateTable, table(&[]));
    put(&store, "game", 1);
    let gateway = start(&store, remembering()).unwrap();
    assert_eq!(through(&gateway, Operation::Query, &query("game")).unwrap()["Count"], 1);
}

#[test]
fn a_table_that_is_brought_back_is_forgotten() {
    let store = sharded(true, 5);
    let notes = Arc::new(Notes::default());
    notes.note(&RememberedTable {
        registry: REGISTRY.to_owned(),
        name: "Gone".to_owned(),
        id: "1".to_owned(),
    });
    let remembering = rules(FENCE).remembering(Some(Arc::clone(&notes) as Arc<dyn Memory>));
    // A table that does not exist any more says nothing of a store that has none.
    delete_registry(&store);
    raw(&store, Operation::DeleteTable, json!({ "TableName": "Scores" }));
    start(&store, remembering).unwrap();
}

#[test]
fn required_says_what_a_missing_registry_means() {
    let with = |required: bool| FENCE.replace("[fence]", &format!("[fence]\nrequired = {required}"));
    let store = sharded(true, 60);
    start(&store, rules(&with(true))).unwrap();
    delete_registry(&store);
    let Err(StartError::Rules(said)) = start(&store, rules(&with(true))) else { panic!("it starts") };
    assert!(said.contains("`required = true`") && said.contains("Restore"), "{said}");
    // Nor is another one made in its place.
    let ruled = format!(
        "{}[[rule]]\ntable = \"New\"\nstrategy = \"calculated\"\nshards = 3\n",
        with(true).replace("rule = []\n", "")
    );
    assert!(matches!(start(&store, rules(&ruled)), Err(StartError::Rules(_))));
    assert!(
        block_on(
            store.call(Operation::DescribeTable, Bytes::from(json!({ "TableName": REGISTRY }).to_string()))
        )
        .is_err()
    );
    let gateway = start(&store, rules(&with(false))).unwrap();
    assert_eq!(through(&gateway, Operation::Scan, &scan()).unwrap(), raw(&store, Operation::Scan, scan()));
}

/// Keys of clients that look like shards, on a store that never had a registry.
#[test]
fn keys_of_clients_that_look_like_shards_are_served_as_they_are() {
    for tags in [true, false] {
        let store = shop(tags);
        raw(&store, Operation::CreateTable, table(&[(INDEX, &["status"])]));
        for at in 0..90 {
            put(&store, "x#~3", at);
            put(&store, &format!("robin#~{}", at % 5), at);
            put(&store, &format!("{at}#~1"), 0);
        }
        for at in 0..30 {
            put(&store, "x", at);
        }
        let gateway = start(&store, rules(FENCE)).unwrap();
        for key in ["x#~3", "robin#~2", "7#~1"] {
            assert_eq!(
                through(&gateway, Operation::Query, &query(key)).unwrap(),
                raw(&store, Operation::Query, query(key))
            );
        }
        assert_eq!(
            through(&gateway, Operation::Scan, &scan()).unwrap(),
            raw(&store, Operation::Scan, scan())
        );
        // Nor does a registry for another table change that.
        let gateway =
            start(&store, rules("[[rule]]\ntable = \"New\"\nstrategy = \"calculated\"\nshards = 3\n"))
                .unwrap();
        assert_eq!(
            through(&gateway, Operation::Query, &query("x#~3")).unwrap(),
            raw(&store, Operation::Query, query("x#~3"))
        );
    }
}

fn look(store: &Arc<dyn Store>, record: bool) -> Result<Rebuilt, WorkerError> {
    let rules = rules(FENCE);
    block_on(async {
        let fencing = Fencing::exclusive(rules.fence());
        let ready =
            Rebuild::prepare(Arc::clone(store), Arc::new(RealEnv), rules.fence(), "Scores", fencing).await?;
        let rebuilt = ready.look(None, &Unwatched).await?;
        if record { ready.record(rebuilt, false).await } else { Ok(rebuilt) }
    })
}

#[test]
fn a_lost_record_is_read_off_the_items() {
    for (tags, items) in [(true, 400), (false, 90)] {
        let store = sharded(tags, items);
        let rules = rules(FENCE);
        let value = ValueAsked { table: "Scores", index: INDEX, value: "open", shards: 3 };
        block_on(async {
            let reshard =
                ValueReshard::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, value).await.unwrap();
            let options =
                ValueOptions { concurrency: 4, exclusive: true, delay: Duration::ZERO, rate: u32::MAX };
            reshard.run(options, &Unwatched).await.unwrap();
        });
        let whole = {
            let gateway = start(&store, rules.clone()).unwrap();
            through(&gateway, Operation::Scan, &scan()).unwrap()["Count"].clone()
        };
        delete_registry(&store);
        let env = Arc::new(RealEnv);
        let verified = block_on(Verification::prepare(Arc::clone(&store), env, "Scores", None, REGISTRY));
        assert!(matches!(verified, Err(VerifyError::NotRecorded(_))));
        let seen = look(&store, false).unwrap();
        assert!(seen.not_told.is_empty() && !seen.recorded && !seen.is_whole(), "{seen:?}");
        assert_eq!(
            (seen.keys.len(), seen.keys[0].key.as_str(), seen.keys[0].shards),
            (1, "game", 4),
            "{seen:?}"
        );
        assert_eq!(
            (seen.values.len(), seen.values[0].key.as_str(), seen.values[0].shards),
            (1, "open", 3),
            "{seen:?}"
        );
        refused(&start(&store, rules.clone()).unwrap());
        assert!(look(&store, true).unwrap().recorded);
        let gateway = start(&store, rules.clone()).unwrap();
        assert_eq!(through(&gateway, Operation::Query, &query("game")).unwrap()["Count"], items);
        assert_eq!(through(&gateway, Operation::Scan, &scan()).unwrap()["Count"], whole);
        let of_index = json!({
            "TableName": "Scores", "IndexName": INDEX, "KeyConditionExpression": "#s = :s",
            "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":s": { "S": "open" } },
        });
        assert_eq!(through(&gateway, Operation::Query, &of_index).unwrap()["Count"], whole);
        let verification =
            Verification::prepare(Arc::clone(&store), Arc::new(RealEnv), "Scores", None, REGISTRY);
        let findings = block_on(async { verification.await.unwrap().look(None, &Unwatched).await.unwrap() });
        assert_eq!((findings.wrong(), findings.in_order), (0, items as u64 + 1));
        assert!(
            matches!(look(&store, false), Err(WorkerError::Usage(said)) if said.contains("is on record"))
        );
    }
}

#[test]
fn ranges_are_read_off_the_items() {
    let points = ["0020", "0035", "0050"].map(|text| KeyValue::S(text.into()));
    let ranges = WantedLayout::from(SplitPoints::new(points.to_vec()).unwrap());
    let ranges = WantedLayout { slots: Some(vec![0, 7, 2, 1]), ..ranges };
    for tags in [true, false] {
        let store = laid_out(tags, 60, &ranges);
        delete_registry(&store);
        refused(&start(&store, rules(FENCE)).unwrap());
        let seen = look(&store, true).unwrap();
        assert!(seen.recorded && seen.not_told.is_empty(), "{seen:?}");
        assert_eq!((seen.keys[0].shards, &*seen.keys[0].slots), (4, &[0, 7, 2, 1][..]), "{seen:?}");
        assert_eq!(seen.keys[0].split_at.as_ref().unwrap().to_string(), "\"002\", \"0035\", \"005\"");
        let gateway = start(&store, rules(FENCE)).unwrap();
        assert_eq!(through(&gateway, Operation::Query, &query("game")).unwrap()["Count"], 60);
        let verification =
            Verification::prepare(Arc::clone(&store), Arc::new(RealEnv), "Scores", None, REGISTRY);
        let findings = block_on(async { verification.await.unwrap().look(None, &Unwatched).await.unwrap() });
        assert_eq!(findings.wrong(), 0);
    }
}

/// Few items may lie in ranges by chance. A sign that the table was on record makes up for that.
#[test]
fn ranges_of_few_items_are_told_where_the_table_is_known_to_have_been_on_record() {
    let points = ["0001", "0002"].map(|text| KeyValue::S(text.into()));
    let ranges = WantedLayout::from(SplitPoints::new(points.to_vec()).unwrap());
    let [signed, unsigned] = [true, false].map(|tags| {
        let store = laid_out(tags, 4, &ranges);
        delete_registry(&store);
        look(&store, false).unwrap()
    });
    assert_eq!((signed.keys.len(), signed.not_told.len()), (1, 0), "{signed:?}");
    assert_eq!((unsigned.keys.len(), unsigned.not_told.len()), (0, 1), "{unsigned:?}");
}

#[test]
fn what_items_do_not_tell_is_not_recorded() {
    let store = sharded(true, 40);
    // A copy of an item in a second shard, as in the middle of a move, or of a counter.
    put(&store, "game#~1", 0);
    put(&store, "game#~2", 0);
    put(&store, "game#~3", 0);
    delete_registry(&store);
    let seen = look(&store, false).unwrap();
    assert_eq!((seen.keys.len(), seen.not_told.len()), (0, 1), "{seen:?}");
    assert!(matches!(look(&store, true), Err(WorkerError::Stopped(_))));
    refused(&start(&store, rules(FENCE)).unwrap());
}

#[test]
fn the_registry_is_protected_from_deletion() {
    let store = sharded(true, 5);
    let body = Bytes::from(json!({ "TableName": REGISTRY }).to_string());
    let error = block_on(store.call(Operation::DeleteTable, body)).unwrap_err();
    assert_eq!(error.code, Code::ValidationException, "{error}");
}
