//! Gateways that are killed and started again on one machine, in real time with short bounds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{call, memory, table};
use heatsink_control::{Awaits, Changer, Control, Fencing, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, Processes, RealEnv};
use heatsink_store::Store;
use tokio::task::JoinHandle;

const FENCE: &str =
    "[fence]\nlease = \"4s\"\nheartbeat = \"200ms\"\npoll = \"50ms\"\nstraggler = \"500ms\"\n";
const LEASE: Duration = Duration::from_secs(4);
const STRAGGLER: Duration = Duration::from_millis(500);

/// What the system tells a process: its own mark, and which ones have ended.
#[derive(Clone, Debug, Default)]
struct Machine {
    own: Option<String>,
    ended: Arc<Mutex<BTreeSet<String>>>,
}

impl Processes for Machine {
    fn own(&self) -> Option<String> {
        self.own.clone()
    }

    fn has_ended(&self, mark: &str) -> bool {
        self.ended.lock().unwrap().contains(mark)
    }
}

fn fencing(machine: &Machine, own: &str) -> (Rules, Fencing) {
    let rule = "[[rule]]\ntable = \"Tab\"\nstrategy = \"calculated\"\nshards = 4\n";
    let rules = Rules::read("heatsink.toml", &format!("{rule}{FENCE}")).unwrap();
    let machine = Machine { own: Some(own.to_owned()), ..machine.clone() };
    let fencing = Fencing { processes: Arc::new(machine), ..Fencing::shared(rules.fence(), own) };
    (rules, fencing)
}

async fn started(store: &Arc<dyn Store>, machine: &Machine, own: &str) -> (Control, JoinHandle<()>) {
    let (rules, fencing) = fencing(machine, own);
    let control = Control::join(Arc::clone(store), Arc::new(RealEnv), rules, fencing).await.unwrap();
    let keeping = control.clone();
    (control, tokio::spawn(async move { keeping.keep().await }))
}

fn beside(store: &Arc<dyn Store>, machine: &Machine) -> Changer {
    Changer::beside(Arc::clone(store), Arc::new(RealEnv), fencing(machine, "beside").1)
}

async fn settled() -> Arc<dyn Store> {
    let store = memory();
    let (_, fencing) = fencing(&Machine::default(), "first");
    let first = Changer::beside(Arc::clone(&store), Arc::new(RealEnv), fencing);
    first.exclusively(true).freeze(false).await.unwrap();
    store
}

/// The names of the gateways on the list, without those that are known to have ended.
async fn listed(changer: &Changer) -> Vec<String> {
    let (_, list) = changer.gateways().await.unwrap().unwrap();
    list.into_iter().filter(|one| !one.registration.ended).map(|one| one.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_killed_is_waited_for_until_its_calls_are_over_where_somebody_can_tell() {
    let (store, machine) = (settled().await, Machine::default());
    for name in ["one", "two", "three"] {
        let (_killed, keeping) = started(&store, &machine, name).await;
        keeping.abort();
        machine.ended.lock().unwrap().insert(name.to_owned());
    }
    let killed = RealEnv.now();
    let (_control, _keeping) = started(&store, &machine, "four").await;
    let elsewhere = beside(&store, &Machine::default());
    let step = elsewhere.announce_awaiting(Awaits::Results, "Tab", 1).await.unwrap();
    let took = RealEnv.now().since(killed);
    assert!(took >= STRAGGLER && took < LEASE, "{took:?}");
    assert!(step.is_clean(), "no call of theirs can land any more");
    assert_eq!(listed(&elsewhere).await, ["four"]);
    while elsewhere.gateways().await.unwrap().unwrap().1.len() > 1 {
        assert!(RealEnv.now().since(killed) < LEASE, "they are taken off the list");
        RealEnv.sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_killed_elsewhere_is_waited_for_once_and_not_in_every_step() {
    let (store, machine) = (settled().await, Machine::default());
    let (_killed, keeping) = started(&store, &machine, "one").await;
    keeping.abort();
    let changer = beside(&store, &Machine::default());
    let begun = RealEnv.now();
    for version in 1..4 {
        let step = changer.announce_awaiting(Awaits::Results, "Tab", version).await.unwrap();
        assert!(!step.is_clean(), "its calls may be late");
    }
    let took = RealEnv.now().since(begun);
    assert!(took >= LEASE && took < LEASE + Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_taken_for_ended_and_lives_may_send_nothing_until_it_has_registered_again() {
    let (store, machine) = (settled().await, Machine::default());
    call(&*store, Operation::CreateTable, table("Tab", "S")).await;
    let (control, keeping) = started(&store, &machine, "one").await;
    keeping.abort();
    let pass = loop {
        match control.resolve(&["Tab"]).await {
            Ok(pass) => break pass,
            Err(error) => assert!(error.retryable(), "{error}"),
        }
    };
    pass.check().unwrap();
    machine.ended.lock().unwrap().insert("one".to_owned());
    beside(&store, &machine).announce("Other", 1).await.unwrap();
    machine.ended.lock().unwrap().clear();
    let keeping = control.clone();
    let _keeping = tokio::spawn(async move { keeping.keep().await });
    let begun = RealEnv.now();
    while listed(&beside(&store, &machine)).await.is_empty() {
        assert!(RealEnv.now().since(begun) < LEASE, "it registers again");
        RealEnv.sleep(Duration::from_millis(20)).await;
    }
}
