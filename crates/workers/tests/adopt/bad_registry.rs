//! A registry that denies access, throttles, is gone, is damaged or was written by another version;
//! gateways whose rules contradict each other. Each is told by name, is never taken for a store
//! without a registry, and changes nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::adoption::support::{call, items, memory, table};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::{Changer, Control, Fencing, Rules, StartError};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, HastyEnv, ManualEnv, RealEnv};
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use heatsink_workers::{Adoption, AdoptionOptions, Direction, Unwatched};
use serde_json::{Value as Json, json};

const REGISTRY: &str = "heatsink.registry";
const FENCE: &str =
    "[fence]\nlease = \"1s\"\nheartbeat = \"100ms\"\npoll = \"50ms\"\nstraggler = \"200ms\"\n";

/// What a store says instead of an answer: of an operation, and the text of its body.
type Says = Box<dyn Fn(Operation, &str) -> Option<Error> + Send + Sync>;

/// A store that answers otherwise than it should, for as long as it is told to.
struct Ill {
    inner: Arc<dyn Store>,
    says: Mutex<Option<Says>>,
}

impl Ill {
    fn of(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Ill { inner: Arc::clone(inner), says: Mutex::new(None) })
    }

    fn says(&self, says: impl Fn(Operation, &str) -> Option<Error> + Send + Sync + 'static) {
        *self.says.lock().unwrap() = Some(Box::new(says));
    }

    fn well(&self) {
        *self.says.lock().unwrap() = None;
    }
}

impl Store for Ill {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body).into_owned();
        match self.says.lock().unwrap().as_ref().and_then(|says| says(operation, &text)) {
            Some(error) => async move { Err(error) }.boxed(),
            None => self.inner.call(operation, body),
        }
    }
}

fn denied(of: impl Fn(Operation) -> bool) -> impl Fn(Operation, &str) -> Option<Error> {
    move |operation, body| {
        let error = || Error::new(Code::AccessDeniedException, "User: gateway is not authorized");
        (of(operation) && body.contains(REGISTRY)).then(error)
    }
}

fn throttled(_: Operation, body: &str) -> Option<Error> {
    body.contains(REGISTRY).then(|| Error::new(Code::ProvisionedThroughputExceededException, "slow down"))
}

fn rules(shards: u16) -> Rules {
    let rule = format!("[[rule]]\ntable = \"Tab*\"\nstrategy = \"calculated\"\nshards = {shards}\n");
    Rules::read("heatsink.toml", &format!("{}{FENCE}", if shards == 0 { "" } else { &rule })).unwrap()
}

async fn join(store: &Arc<dyn Store>, shards: u16) -> Result<Control, StartError> {
    let rules = rules(shards);
    let fencing = Fencing::shared(rules.fence(), "test");
    Control::join(Arc::clone(store), Arc::new(RealEnv), rules, fencing).await
}

/// A gateway that is ready and keeps its lease.
async fn kept(store: &Arc<dyn Store>, shards: u16) -> Control {
    let control = join(store, shards).await.unwrap();
    let keeping = control.clone();
    tokio::spawn(async move { keeping.keep().await });
    control
}

/// A store with a registry that everybody has noticed.
async fn settled() -> Arc<dyn Store> {
    let store = memory();
    let fencing = Fencing::exclusive(rules(0).fence());
    Changer::beside(Arc::clone(&store), Arc::new(RealEnv), fencing).freeze(false).await.unwrap();
    store
}

/// The same, and two tables, of which one is on record.
async fn recorded() -> Arc<dyn Store> {
    let store = settled().await;
    for name in ["Tab", "Other"] {
        call(&store, Operation::CreateTable, table(name, "S")).await;
    }
    touched(&join(&store, 4).await.unwrap(), "Tab").await;
    // Nobody is left who would be waited for.
    for gateway in registrations(&store).await {
        let key = json!({ "pk": gateway["pk"], "sk": gateway["sk"] });
        call(&store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })).await;
    }
    store
}

async fn touched(control: &Control, name: &str) {
    for _ in 0..500 {
        match control.resolve(&[name]).await {
            Ok(_) => return,
            Err(error) => assert!(error.retryable(), "{error}"),
        }
        RealEnv.sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} cannot be used");
}

async fn all(store: &Arc<dyn Store>) -> Vec<Json> {
    let page = call(store, Operation::Scan, json!({ "TableName": REGISTRY, "ConsistentRead": true })).await;
    page["Items"].as_array().unwrap().clone()
}

async fn registrations(store: &Arc<dyn Store>) -> Vec<Json> {
    let mut all = all(store).await;
    all.retain(|item| item["pk"]["S"] == "gateways");
    all
}

/// What the registry says of tables and names.
async fn said(store: &Arc<dyn Store>) -> Vec<String> {
    let mut all = all(store).await;
    all.retain(|item| !["gateways", "head"].contains(&item["pk"]["S"].as_str().unwrap()));
    let mut said: Vec<String> = all.iter().map(ToString::to_string).collect();
    said.sort();
    said
}

/// The item of the registry with that sort key: `head`, `table` or `name`.
async fn item(store: &Arc<dyn Store>, sort: &str) -> Json {
    all(store).await.into_iter().find(|item| item["sk"]["S"] == sort).unwrap()
}

async fn put(store: &Arc<dyn Store>, item: &Json) {
    call(store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": item })).await;
}

/// The error of a request on that table: by name, and nothing of it done.
async fn refused(control: &Control, name: &str, words: &[&str]) {
    let error = match control.resolve(&[name]).await {
        Ok(_) => panic!("{name} is used: {words:?}"),
        Err(error) => error,
    };
    assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}, {:?}", error.outcome);
    for word in words {
        assert!(error.to_string().contains(word), "{error}: {word}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gateway_starts_on_a_registry_that_it_may_not_read() {
    let store = recorded().await;
    let before = said(&store).await;
    let reads = [Operation::DescribeTable, Operation::GetItem, Operation::Scan, Operation::BatchGetItem];
    for operation in reads {
        for shards in [0, 4] {
            let ill = Ill::of(&store);
            ill.says(denied(move |asked| asked == operation));
            let ill: Arc<dyn Store> = ill;
            let error = join(&ill, shards).await.err().unwrap_or_else(|| panic!("{operation:?}, {shards}"));
            let StartError::Store(error) = error else { panic!("{operation:?}: {error}") };
            let error = error.to_string();
            assert!(error.contains("not authorized") && error.contains(REGISTRY), "{operation:?}: {error}");
        }
    }
    // Nor where there is none, as far as anybody can tell.
    let ill = Ill::of(&memory());
    ill.says(denied(|_| true));
    let ill: Arc<dyn Store> = ill;
    assert!(matches!(join(&ill, 0).await, Err(StartError::Store(_))));
    assert_eq!(said(&store).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_denied_the_registry_goes_on_until_its_lease_is_over() {
    let store = recorded().await;
    let ill = Ill::of(&store);
    let through: Arc<dyn Store> = ill.clone();
    let (sharded, whole) = (kept(&through, 4).await, kept(&through, 0).await);
    for control in [&sharded, &whole] {
        touched(control, "Tab").await;
    }
    let before = said(&store).await;
    ill.says(denied(|_| true));
    for control in [&sharded, &whole] {
        assert!(control.resolve(&["Tab"]).await.is_ok(), "what is known holds for the lease");
        // What would have to be looked up is not guessed.
        refused(control, "Other", &[REGISTRY, "not authorized"]).await;
    }
    let pass = sharded.resolve(&["Tab"]).await.unwrap();
    RealEnv.sleep(Duration::from_millis(1_200)).await;
    for control in [&sharded, &whole] {
        refused(control, "Tab", &[REGISTRY, "not authorized"]).await;
    }
    assert_eq!(pass.check().unwrap_err().outcome, Outcome::NotDone);
    // Neither is a table made or deleted.
    let create = Bytes::from(table("Tab2", "S").to_string());
    let error = sharded.before(Operation::CreateTable, &create, &["Tab2"]).await.unwrap_err();
    assert!(
        error.retryable() && error.outcome == Outcome::NotDone && error.to_string().contains(REGISTRY),
        "{error}"
    );
    assert_eq!(said(&store).await, before);
    ill.well();
    for control in [&sharded, &whole] {
        touched(control, "Tab").await;
        assert!(control.table("Tab").is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_may_not_register_does_not_serve() {
    let store = recorded().await;
    let ill = Ill::of(&store);
    let through: Arc<dyn Store> = ill.clone();
    ill.says(denied(|operation| operation == Operation::PutItem));
    let error = join(&through, 4).await.err().unwrap().to_string();
    assert!(error.contains(REGISTRY) && error.contains("not authorized"), "{error}");
    // Its signs of life are denied later: reads alone do not keep the lease.
    ill.well();
    let control = kept(&through, 4).await;
    touched(&control, "Tab").await;
    ill.says(denied(|operation| operation == Operation::UpdateItem));
    RealEnv.sleep(Duration::from_millis(1_800)).await;
    refused(&control, "Tab", &[REGISTRY, "not authorized"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_throttles_is_an_outage() {
    let store = recorded().await;
    let ill = Ill::of(&store);
    let through: Arc<dyn Store> = ill.clone();
    let control = kept(&through, 4).await;
    touched(&control, "Tab").await;
    let before = said(&store).await;
    ill.says(throttled);
    assert!(control.resolve(&["Tab"]).await.is_ok());
    RealEnv.sleep(Duration::from_millis(1_500)).await;
    refused(&control, "Tab", &[REGISTRY, "slow down"]).await;
    assert_eq!(said(&store).await, before);
    ill.well();
    touched(&control, "Tab").await;
}

/// First use and adoption in virtual time.
#[tokio::test]
async fn after_five_minutes_of_throttling_everything_goes_on() {
    let store = memory();
    for name in ["Tab", "Tab2"] {
        call(&store, Operation::CreateTable, table(name, "S")).await;
    }
    for number in 0..40 {
        let item = json!({ "pk": { "S": "game" }, "sk": { "S": number.to_string() } });
        call(&store, Operation::PutItem, json!({ "TableName": "Tab2", "Item": item })).await;
    }
    let env = Arc::new(HastyEnv(ManualEnv::seeded(5)));
    let ill = Ill::of(&store);
    let through: Arc<dyn Store> = ill.clone();
    let control = Control::start(through.clone(), env.clone(), rules(4)).await.unwrap();
    let throttle = || {
        let (begun, clock) = (env.now(), env.clone());
        ill.says(move |operation, body| {
            let over = clock.now().since(begun) > Duration::from_secs(300);
            if over { None } else { throttled(operation, body) }
        });
        begun
    };
    let (begun, mut errors) = (throttle(), 0);
    loop {
        match control.resolve(&["Tab"]).await {
            Ok(_) => break,
            Err(error) => {
                errors += 1;
                assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}");
                assert!(error.to_string().contains(REGISTRY), "{error}");
                env.sleep(Duration::from_secs(1)).await;
            }
        }
    }
    assert!(errors > 0 && env.now().since(begun) > Duration::from_secs(300));
    assert!(control.table("Tab").is_some());
    let begun = throttle();
    let options = AdoptionOptions { concurrency: 2, exclusive: true };
    loop {
        let rules = rules(4);
        let prepared =
            Adoption::prepare(through.clone(), env.clone(), &rules, "Tab2", Direction::Adopt).await;
        let done = match prepared {
            Ok(adoption) => adoption.run(options, &Unwatched).await.is_ok(),
            Err(_) => false,
        };
        if done {
            break;
        }
        env.sleep(Duration::from_secs(5)).await;
        assert!(env.now().since(begun) < Duration::from_secs(3_600), "it ends");
    }
    assert!(env.now().since(begun) > Duration::from_secs(300));
    let found = items(&store, "Tab2").await;
    assert_eq!(found.len(), 40);
    assert!(found.iter().any(|item| item.contains("game#~")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_whose_rules_contradict_use_a_table_as_it_is_on_record() {
    let store = settled().await;
    let (four, six) = (kept(&store, 4).await, kept(&store, 6).await);
    call(&store, Operation::CreateTable, table("Tab3", "S")).await;
    let first = |control: Control| async move {
        loop {
            match control.resolve(&["Tab3"]).await {
                Err(error) if error.retryable() => RealEnv.sleep(Duration::from_millis(5)).await,
                answer => return answer.map(drop),
            }
        }
    };
    let (one, other) = tokio::join!(first(four.clone()), first(six.clone()));
    one.unwrap();
    other.unwrap();
    let recorded = four.table("Tab3").unwrap().layouts().clone();
    assert_eq!(recorded, *six.table("Tab3").unwrap().layouts(), "the record holds for both");
    // A gateway starts with either rules, and uses the table as it is on record.
    for shards in [4, 6] {
        let started = join(&store, shards).await.unwrap();
        started.resolve(&["Tab3"]).await.unwrap();
        assert_eq!(recorded, *started.table("Tab3").unwrap().layouts(), "{shards}");
    }
}

/// By a newer build, or damaged: what is written there is not guessed at, and not written over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_told_by_name_and_left_as_it_is() {
    let newer = |mut item: Json| {
        item["form"] = json!({ "N": "99" });
        item
    };
    // Its keys' records would not be looked for.
    let keys_lost = |mut item: Json| {
        item["form"] = json!({ "N": "3" });
        item
    };
    let keys_by_an_older_build = |mut item: Json| {
        item["keys"] = json!({ "N": "7" });
        item
    };
    let without = |name: &'static str| {
        move |mut item: Json| {
            item.as_object_mut().unwrap().remove(name);
            item
        }
    };
    let broken = |name: &'static str| {
        move |mut item: Json| {
            item[name] = json!({ "S": "{\"" });
            item
        }
    };
    // What this build does not have, in members that it can read: a strategy of a newer one.
    let unknown = |name: &'static str| {
        move |mut item: Json| {
            item[name] = json!({ "S": "{\"Braided\":{\"strands\":3}}" });
            item
        }
    };
    type Spoil = Box<dyn Fn(Json) -> Json>;
    let cases: Vec<(&str, &str, Spoil)> = vec![
        ("table", "form", Box::new(newer)),
        ("name", "form", Box::new(newer)),
        ("table", "damaged", Box::new(keys_lost)),
        ("table", "damaged", Box::new(keys_by_an_older_build)),
        ("table", "another version", Box::new(unknown("layouts"))),
        ("table", "another version", Box::new(unknown("state"))),
        ("table", "damaged", Box::new(broken("layouts"))),
        ("table", "damaged", Box::new(broken("state"))),
        ("table", "damaged", Box::new(without("version"))),
        ("table", "form", Box::new(without("form"))),
        ("name", "damaged", Box::new(broken("holder"))),
        ("name", "damaged", Box::new(without("version"))),
        ("head", "form", Box::new(newer)),
        ("head", "damaged", Box::new(broken("changes"))),
        ("head", "damaged", Box::new(without("epoch"))),
    ];
    for (sort, words, spoil) in cases {
        let store = recorded().await;
        let running = kept(&store, 4).await;
        let mut spoilt = spoil(item(&store, sort).await);
        // Whoever writes an item means it so: what was changed afterwards does not fit its seal.
        spoilt.as_object_mut().unwrap().remove("seal");
        put(&store, &spoilt).await;
        let before = said(&store).await;
        let case = format!("{sort}: {spoilt}");
        // One that runs already, when its lease is over.
        if sort == "head" {
            RealEnv.sleep(Duration::from_millis(1_200)).await;
            let error = running.resolve(&["Tab"]).await.err().unwrap_or_else(|| panic!("{case}"));
            assert!(
                error.to_string().contains(words) && error.outcome == Outcome::NotDone,
                "{case}: {error}"
            );
        }
        for shards in [0, 4] {
            match join(&store, shards).await {
                Err(error) => assert!(error.to_string().contains(words), "{case}: {error}"),
                Ok(control) => {
                    let error = control.resolve(&["Tab"]).await.err().unwrap_or_else(|| panic!("{case}"));
                    assert!(error.to_string().contains(words), "{case}: {error}");
                }
            }
        }
        assert_eq!(said(&store).await, before, "{case}");
        assert_eq!(item(&store, sort).await, spoilt, "{case}");
    }
}

/// Whoever cannot be understood may hold a lease: nothing changes until the operator says what it
/// is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_that_cannot_be_read_stops_changes() {
    let store = recorded().await;
    call(&store, Operation::CreateTable, table("Tab3", "S")).await;
    let control = kept(&store, 4).await;
    let other = json!({ "pk": { "S": "gateways" }, "sk": { "S": "stranger" }, "form": { "N": "3" }, "lives": { "N": "9" } });
    put(&store, &other).await;
    let error = control.resolve(&["Tab3"]).await.unwrap_err();
    assert!(error.outcome == Outcome::NotDone && error.to_string().contains("gateway stranger"), "{error}");
    assert!(control.resolve(&["Tab"]).await.is_ok(), "what does not change goes on");
    let fencing = Fencing::exclusive(rules(0).fence());
    Changer::beside(Arc::clone(&store), Arc::new(RealEnv), fencing).strike("stranger").await.unwrap();
    touched(&control, "Tab3").await;
}

/// Who has seen a registry takes its absence for an outage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_gone_is_an_outage_and_is_not_made_again() {
    let store = recorded().await;
    let ill = Ill::of(&store);
    let through: Arc<dyn Store> = ill.clone();
    let (sharded, whole) = (kept(&through, 4).await, kept(&through, 0).await);
    for name in ["Tab4", "Tab5"] {
        call(&store, Operation::CreateTable, table(name, "S")).await;
    }
    touched(&sharded, "Tab4").await;
    let gone = |operation: Operation, body: &str| {
        let error = || Error::new(Code::ResourceNotFoundException, "Requested resource not found");
        (body.contains(REGISTRY) && operation != Operation::CreateTable).then(error)
    };
    ill.says(gone);
    // Within the lease a table is looked up for the first time. Without its record it looks like a
    // whole one.
    refused(&whole, "Tab4", &[REGISTRY, "existed before"]).await;
    refused(&sharded, "Tab5", &[REGISTRY, "existed before"]).await;
    let create = Bytes::from(table("Tab2", "S").to_string());
    let error = sharded.before(Operation::CreateTable, &create, &["Tab2"]).await.unwrap_err();
    assert!(error.retryable() && error.to_string().contains("existed before"), "{error}");
    RealEnv.sleep(Duration::from_millis(1_200)).await;
    refused(&whole, "Other", &[REGISTRY, "existed before"]).await;
    ill.well();
    touched(&whole, "Tab4").await;
    assert!(whole.table("Tab4").is_some());
}
