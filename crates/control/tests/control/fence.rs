//! Several gateways agree on changes of layouts, in real time with short bounds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{call, memory, table};
use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_control::{Changer, Control, Fencing, Pass, Rules, StartError};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_layout::LayoutSource;
use heatsink_store::{Permit, Store};
use serde_json::json;
use tokio::task::JoinHandle;

/// Of all gateways here.
const FENCE: &str =
    "[fence]\nlease = \"2s\"\nheartbeat = \"200ms\"\npoll = \"50ms\"\nstraggler = \"500ms\"\n";
const LEASE: Duration = Duration::from_secs(2);
const STRAGGLER: Duration = Duration::from_millis(500);
const UNREGISTERED: Duration = heatsink_control::Bounds::UNREGISTERED;

fn rules(sharded: bool) -> Rules {
    let rule = "[[rule]]\ntable = \"Tab\"\nstrategy = \"calculated\"\nshards = 4\n";
    Rules::read("heatsink.toml", &format!("{}{FENCE}", if sharded { rule } else { "" })).unwrap()
}

async fn join(store: &Arc<dyn Store>, sharded: bool) -> Control {
    let rules = rules(sharded);
    let fencing = Fencing::shared(rules.fence(), "test");
    Control::join(Arc::clone(store), Arc::new(RealEnv), rules, fencing).await.unwrap()
}

/// A gateway that keeps its lease until it is stopped.
async fn kept(store: &Arc<dyn Store>, sharded: bool) -> (Control, JoinHandle<()>) {
    let control = join(store, sharded).await;
    let keeping = control.clone();
    (control, tokio::spawn(async move { keeping.keep().await }))
}

/// A store whose registry every gateway has noticed.
async fn settled() -> Arc<dyn Store> {
    let store = memory();
    changer(&store).freeze(false).await.unwrap();
    store
}

fn changer(store: &Arc<dyn Store>) -> Changer {
    let fencing = Fencing::exclusive(rules(false).fence());
    Changer::beside(Arc::clone(store), Arc::new(RealEnv), fencing)
}

async fn make(store: &Arc<dyn Store>) {
    call(store, Operation::CreateTable, table("Tab", "S")).await;
}

/// Resolves the table until it can be used, and gives how long that took.
async fn touched(control: &Control) -> Duration {
    let begun = RealEnv.now();
    loop {
        match control.resolve(&["Tab"]).await {
            Ok(_) => return RealEnv.now().since(begun),
            Err(error) => assert!(error.retryable(), "{error}"),
        }
        RealEnv.sleep(Duration::from_millis(10)).await;
    }
}

async fn pass(control: &Control) -> Pass {
    control.resolve(&["Tab"]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_the_rule_follows_before_the_first_item_is_written() {
    let store = settled().await;
    make(&store).await;
    let (old, _keeping) = kept(&store, false).await;
    let before = pass(&old).await;
    assert!(old.table("Tab").is_none() && before.check().is_ok());
    let (new, _keeping) = kept(&store, true).await;
    let took = touched(&new).await;
    assert!(took < LEASE, "both are alive: {took:?}");
    assert!(new.table("Tab").is_some());
    // What was planned before can neither be sent nor be told.
    assert!(!before.holds());
    assert_eq!(before.check().unwrap_err().outcome, Outcome::NotDone);
    let late: Result<(), Error> = before.deliver(Ok(()));
    assert_eq!(late.unwrap_err().outcome, Outcome::Unknown);
    old.resolve(&["Tab"]).await.unwrap();
    assert!(old.table("Tab").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_does_nothing_is_waited_for_until_its_lease_and_its_calls_are_over() {
    let store = settled().await;
    make(&store).await;
    let asleep = join(&store, false).await;
    let held = pass(&asleep).await;
    let leased = RealEnv.now();
    let (new, _keeping) = kept(&store, true).await;
    touched(&new).await;
    assert!(RealEnv.now().since(leased) > LEASE, "it could have sent until then");
    assert!(held.check().is_err(), "its lease is over");
    // Awake again it sees what happened, and plans by it.
    asleep.resolve(&["Tab"]).await.unwrap();
    assert!(asleep.table("Tab").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_is_waited_for() {
    let store = settled().await;
    make(&store).await;
    let (old, _keeping) = kept(&store, false).await;
    let lost = pass(&old).await;
    // The client of this one has gone, and nobody knows what became of its call.
    let sending = lost.send(true);
    sending.check().unwrap();
    drop(sending);
    let sent = RealEnv.now();
    drop(lost);
    let (new, _keeping) = kept(&store, true).await;
    touched(&new).await;
    assert!(RealEnv.now().since(sent) >= STRAGGLER, "it might have landed until then");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_registry_is_not_relied_on_until_everybody_must_have_noticed_it() {
    let store = memory();
    make(&store).await;
    let (plain, _keeping) = kept(&store, false).await;
    let raw = pass(&plain).await;
    assert!(raw.check().is_ok());
    let (new, _keeping) = kept(&store, true).await;
    let error = new.resolve(&["Tab"]).await.unwrap_err();
    assert!(error.message.as_ref().unwrap().contains("is new"), "{error}");
    assert_eq!((error.code, error.outcome), (Code::ServiceUnavailable, Outcome::NotDone));
    // The other one follows soon: what it would have forwarded raw it does not.
    for _ in 0..100 {
        if !raw.holds() {
            break;
        }
        RealEnv.sleep(Duration::from_millis(20)).await;
    }
    assert!(raw.check().is_err());
    assert_eq!(changer(&store).gateways().await.unwrap().unwrap().1.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_change_of_a_registry_that_has_been_there_for_a_while_waits_for_nothing() {
    let store = memory();
    let (first, _keeping) = kept(&store, false).await;
    let (second, _keeping) = kept(&store, false).await;
    first.changer().make_registry().await.unwrap();
    let new = first.changer().begin().await.unwrap_err();
    assert!(new.message.as_ref().unwrap().contains("is new"), "{new}");
    RealEnv.sleep(UNREGISTERED + STRAGGLER + Duration::from_millis(500)).await;
    // The other one has asked for no change before.
    second.changer().begin().await.unwrap();
    let (late, _keeping) = kept(&store, false).await;
    late.changer().begin().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_changes_while_it_is_frozen() {
    let store = settled().await;
    make(&store).await;
    changer(&store).freeze(true).await.unwrap();
    let (control, _keeping) = kept(&store, true).await;
    let error = control.resolve(&["Tab"]).await.unwrap_err();
    assert!(error.retryable() && error.message.as_ref().unwrap().contains("frozen"), "{error}");
    let create = Bytes::from(table("Tab2", "S").to_string());
    assert!(control.before(Operation::CreateTable, &create, &["Tab2"]).await.is_ok(), "no rule is for it");
    changer(&store).freeze(false).await.unwrap();
    touched(&control).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_leaves_is_not_waited_for() {
    let store = settled().await;
    make(&store).await;
    let (old, keeping) = kept(&store, false).await;
    drop(pass(&old).await);
    keeping.abort();
    old.leave().await;
    assert!(changer(&store).gateways().await.unwrap().unwrap().1.is_empty());
    let (new, _keeping) = kept(&store, true).await;
    let took = touched(&new).await;
    assert!(took < LEASE, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_made_again_closes_what_was_planned_for_the_one_before() {
    let store = settled().await;
    let (one, _keeping) = kept(&store, true).await;
    let (other, _keeping) = kept(&store, true).await;
    for _ in 0..2 {
        let create = Bytes::from(table("Tab", "S").to_string());
        let prepared = one.before(Operation::CreateTable, &create, &["Tab"]).await.unwrap();
        let answer = store.call(Operation::CreateTable, create).await;
        one.after(Operation::CreateTable, &["Tab"], prepared, answer.as_ref()).await;
        touched(&other).await;
        let planned = pass(&other).await;
        assert!(other.view(&planned).table("Tab").is_some());
        let delete = Bytes::from(json!({ "TableName": "Tab" }).to_string());
        let prepared = one.before(Operation::DeleteTable, &delete, &["Tab"]).await.unwrap();
        // Before the table is gone nobody can write to it any more.
        assert!(planned.check().is_err());
        let answer = store.call(Operation::DeleteTable, delete).await;
        one.after(Operation::DeleteTable, &["Tab"], prepared, answer.as_ref()).await;
        assert!(other.resolve(&["Tab"]).await.unwrap().is_missing());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_whose_maker_lost_the_answer_is_taken_over_at_once() {
    let store = settled().await;
    let (one, _keeping) = kept(&store, true).await;
    let (other, _keeping) = kept(&store, true).await;
    let create = Bytes::from(table("Tab", "S").to_string());
    let prepared = one.before(Operation::CreateTable, &create, &["Tab"]).await.unwrap();
    store.call(Operation::CreateTable, create).await.unwrap();
    let lost = Error::unavailable("the answer was lost", Outcome::Unknown);
    one.after(Operation::CreateTable, &["Tab"], prepared, Err(&lost)).await;
    let took = touched(&other).await;
    assert!(took < LEASE, "{took:?}");
    assert!(other.view(&pass(&other).await).table("Tab").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_died_long_ago_is_not_waited_for() {
    let store = settled().await;
    let (_died, keeping) = kept(&store, true).await;
    let (one, _keeping) = kept(&store, true).await;
    keeping.abort();
    let listed = async || changer(&store).gateways().await.unwrap().unwrap().1.len();
    while listed().await > 1 {
        RealEnv.sleep(Duration::from_millis(100)).await;
    }
    make(&store).await;
    let took = touched(&one).await;
    assert!(took < LEASE, "{took:?}");
}

/// A store that keeps which operations reach it.
struct Recorded(Arc<dyn Store>, Mutex<Vec<Operation>>);

impl Store for Recorded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.1.lock().unwrap().push(operation);
        self.0.call(operation, body)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_only_forwards_refuses_from_a_registry_on_and_writes_nothing() {
    let store = memory();
    make(&store).await;
    let recorded = Arc::new(Recorded(Arc::clone(&store), Mutex::default()));
    let mut fencing = Fencing::forwarding(rules(false).fence());
    fencing.bounds.poll = Duration::from_millis(50);
    let start = || {
        let (store, rules) = (Arc::clone(&recorded), rules(false));
        Control::join(store, Arc::new(RealEnv), rules, fencing.clone())
    };
    let control = start().await.unwrap();
    let keeping = control.clone();
    let _keeping = tokio::spawn(async move { keeping.keep().await });
    let held = pass(&control).await;
    assert!(held.check().is_ok() && !control.has_seen_registry());
    changer(&store).freeze(false).await.unwrap();
    let error = loop {
        match control.resolve(&["Tab"]).await {
            Ok(_) => RealEnv.sleep(Duration::from_millis(10)).await,
            Err(error) => break error,
        }
    };
    assert_eq!((error.code, error.outcome), (Code::ServiceUnavailable, Outcome::NotDone));
    assert!(error.message.unwrap().contains("has a registry of sharded tables"));
    let create = table("New", "S").to_string();
    let refused = control.before(Operation::CreateTable, create.as_bytes(), &["New"]).await;
    assert!(refused.unwrap_err().retryable() && control.has_seen_registry());
    // What was planned before is not sent any more.
    let begun = RealEnv.now();
    while held.check().is_ok() {
        assert!(RealEnv.now().since(begun) < Duration::from_secs(5));
        RealEnv.sleep(Duration::from_millis(10)).await;
    }
    let reads = [
        Operation::GetItem,
        Operation::DescribeTable,
        Operation::ListTagsOfResource,
        Operation::ListTables,
        Operation::Scan,
    ];
    let calls = recorded.1.lock().unwrap().clone();
    assert!(calls.iter().all(|operation| reads.contains(operation)), "{calls:?}");
    assert!(matches!(start().await, Err(StartError::Rules(_))), "a store that has one from the start");
}
