//! Many keys, values of indexes and counters that change without being asked for; what is left
//! alone and why; gateways that are killed while they decide.
//!
//! Not here: one hot key (`automatic`), what the policy decides (`heatsink_heat::policy`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Fencing, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_heat::KeyLoad;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::json;

use crate::automatic::{Told, acts, acts_over, hot, rules, sees};
use crate::town::{INDEX, Town, table, value};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("game_{nth}")).collect()
}

#[test]
fn ten_hot_keys_are_asked_for_in_one_look() {
    let town = Town::new(&rules("mode = \"auto\""));
    let hot_keys = names(10);
    let _acting = sees(&town, &[hot_keys.iter().map(|key| hot(key, 2_000.0, 2_000.0)).collect()]);
    let asked = town.until("ten intents", || {
        let asked = hot_keys.iter().map(|key| Some(town.intent(key)?.request.asked));
        asked.collect::<Option<Vec<u64>>>()
    });
    let (first, last) = (asked.iter().min().unwrap(), asked.iter().max().unwrap());
    assert!(last - first < 900, "{asked:?}");
}

#[test]
fn a_value_of_an_index_is_spread_only_where_that_is_allowed() {
    for allowed in [false, true] {
        let section = format!("mode = \"auto\"\npatience = \"0s\"\nindex_values = {allowed}");
        let town = Town::indexed(&rules(&section));
        let load = KeyLoad { index: Some(INDEX.to_owned()), ..hot("open", 3_000.0, 3_000.0) };
        let acting = sees(&town, &[vec![load]]);
        if allowed {
            town.until("the intent", || town.intent_for(value("open")));
        } else {
            town.until("the reason", || acting[0].reason("open").filter(|why| why == "index-values-off"));
            assert!(town.intent_for(value("open")).is_none());
        }
    }
}

#[test]
fn an_item_that_is_only_added_to_becomes_a_counter_only_where_its_numbers_are_named() {
    for named in [false, true] {
        let section = format!("mode = \"auto\"\n{}", if named { "counters = [\"votes\"]" } else { "" });
        let town = Town::new(&rules(&section));
        let load = KeyLoad { one_item: 1.0, added: 1.0, growing: 0.0, ..hot("poll", 3_000.0, 3_000.0) };
        let acting = sees(&town, &[vec![load]]);
        if named {
            let intent = town.until("the intent", || town.intent("poll"));
            assert_eq!(intent.request.layout.counter, Some(vec!["votes".to_owned()]));
        } else {
            town.until("the reason", || acting[0].reason("poll").filter(|why| why == "counters-off"));
            assert!(town.intent("poll").is_none());
        }
    }
}

#[test]
fn whatever_burns_and_is_left_alone_has_its_reason() {
    let town = Town::new(&format!(
        "{}\n[[automatic]]\ntable = \"Scores\"\nkeys = \"look_*\"\nmode = \"observe\"\n",
        rules("keys = \"game_*\"\nmode = \"auto\"")
    ));
    let loads = vec![
        hot("look_x", 3_000.0, 3_000.0),
        hot("user_x", 3_000.0, 3_000.0),
        KeyLoad { is_number: true, ..hot("game_7", 3_000.0, 3_000.0) },
        KeyLoad { is_cut: true, ..hot("game_long", 3_000.0, 3_000.0) },
        KeyLoad { table: "Gone".to_owned(), ..hot("any", 3_000.0, 3_000.0) },
    ];
    let told = Arc::new(Told::of(loads));
    let acting = acts(&town, &town.controls[0], told.clone());
    for (key, reason) in [
        ("look_x", "observed-only"),
        ("user_x", "no-section"),
        ("game_7", "numeric-key"),
        ("game_long", "cut-key"),
        ("any", "no-section"),
    ] {
        town.until(key, || acting.reason(key).filter(|why| why == reason));
    }
    told.set(Vec::new());
    town.until("nothing left alone", || Some(()).filter(|()| acting.reason("look_x").is_none()));
}

#[test]
fn of_a_table_with_a_stream_a_hot_key_is_left_alone_by_name() {
    let mut streamed = table(&[]);
    streamed["StreamSpecification"] = json!({ "StreamEnabled": true, "StreamViewType": "NEW_IMAGE" });
    let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let town = Town::over(raw, &streamed, &["one"], &rules("mode = \"auto\""), Fencing::shared);
    let acting = sees(&town, &[vec![hot("game_x", 3_000.0, 3_000.0)]]);
    town.until("the reason", || acting[0].reason("game_x").filter(|why| why == "stream"));
    assert!(town.intent("game_x").is_none());
}

#[test]
fn another_gateway_decides_when_the_deciding_one_is_killed() {
    let town = Town::new(&rules("mode = \"auto\""));
    let told: Vec<Arc<Told>> =
        (0..3).map(|_| Arc::new(Told::of(vec![hot("game_a", 500.0, 1_500.0)]))).collect();
    let acting: Vec<_> = town
        .controls
        .iter()
        .zip(&told)
        .map(|(control, told)| acts(&town, control, Arc::clone(told)))
        .collect();
    town.until("the first intent", || town.intent("game_a"));
    let mut by_id: Vec<usize> = (0..3).collect();
    by_id.sort_by_key(|nth| town.controls[*nth].identity().0.to_owned());
    acting[by_id[0]].task.abort();
    let killed = RealEnv.now();
    for nth in &by_id[1..] {
        told[*nth].set(vec![hot("game_b", 1_000.0, 2_000.0)]);
    }
    let intent = town.until("the second intent", || town.intent("game_b"));
    let took = RealEnv.now().since(killed);
    // The life of a report, and two seconds in which the key is certainly hot.
    assert!(took < Duration::from_secs(9), "{took:?}");
    assert!(intent.request.by.starts_with("automatic"));
}

#[test]
fn forty_hot_keys_that_three_gateways_share_are_all_found() {
    let town = Town::new(&rules("mode = \"auto\""));
    let keys = names(40);
    let third: Vec<KeyLoad> = keys.iter().map(|key| hot(key, 600.0, 1_800.0)).collect();
    let _acting = sees(&town, &[third.clone(), third.clone(), third]);
    town.until("forty intents", || Some(()).filter(|()| keys.iter().all(|key| town.intent(key).is_some())));
}

/// A store whose credentials may make no table.
struct NoTables(Arc<dyn Store>);

impl Store for NoTables {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        match operation {
            Operation::CreateTable => Box::pin(async {
                Err(Error::new(
                    Code::AccessDeniedException,
                    "not authorized to perform: dynamodb:CreateTable",
                ))
            }),
            _ => self.0.call(operation, body),
        }
    }
}

#[test]
fn where_the_registry_cannot_be_made_each_burning_key_says_so() {
    let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    block_on(raw.call(Operation::CreateTable, Bytes::from(table(&[]).to_string()))).unwrap();
    let store: Arc<dyn Store> = Arc::new(NoTables(raw));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let _time = runtime.enter();
    let rules = Rules::read("rules", &rules("mode = \"auto\"")).unwrap();
    let fencing = Fencing::shared(rules.fence(), "one");
    let control = block_on(Control::join(store.clone(), Arc::new(RealEnv), rules, fencing)).unwrap();
    let told = Arc::new(Told::of(vec![hot("game_x", 3_000.0, 3_000.0)]));
    let acting = acts_over(&runtime, store, &control, told);
    let begun = RealEnv.now();
    while acting.reason("game_x").as_deref() != Some("no-registry") {
        assert!(RealEnv.now().since(begun) < Duration::from_secs(20), "{}", acting.acts.shown());
        block_on(RealEnv.sleep(Duration::from_millis(50)));
    }
}
