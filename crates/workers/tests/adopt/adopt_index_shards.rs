//! The number of shards of an index key changes with its rule: every value in its form, killed at
//! every call and run again, or elsewhere; and what gateways know on the way.

use std::sync::Arc;

use crate::adoption::adopt_index::{assert_spread_over, filled, rules_with, sort_in, step, step_by};
use crate::adoption::support::{Adopting, Mortal, call, items, killed_everywhere, kills};
use heatsink_control::{Control, REGISTRY, Rules, Verdict, check};
use heatsink_dynamo::Operation;
use heatsink_env::ManualEnv;
use heatsink_layout::{LayoutSource, PrimaryKey, SortKey};
use heatsink_store::Store;
use heatsink_workers::{AdoptionReport, Direction, WorkerError};
use serde_json::{Value as Json, json};

/// Brings the index to so many shards, as `heatsink adopt` does: until there is nothing to do.
async fn spread_over(store: &Arc<dyn Store>, shards: u16) -> Result<AdoptionReport, WorkerError> {
    let mut last = step_by(store, &rules_with(false, shards), Direction::Adopt).await?;
    for _ in 0..3 {
        let next = step_by(store, &rules_with(false, shards), Direction::Adopt).await?;
        if next.already {
            return Ok(last);
        }
        last = next;
    }
    panic!("it comes to no end")
}

#[tokio::test]
async fn the_number_of_shards_follows_the_rule() {
    let store = filled().await;
    let original = items(&store, "Tasks").await;
    let mut before = 0;
    for shards in [4, 16, 7, 1, 2] {
        let report = spread_over(&store, shards).await.unwrap();
        assert_eq!((report.items, &report.indexes[..]), (18, &["status".to_owned()][..]));
        let stored = items(&store, "Tasks").await;
        let spread = assert_spread_over(&stored, shards);
        assert!(u64::try_from(before.max(spread)).unwrap() >= report.moved, "others stay: {report:?}");
        assert_eq!(spread == 0, shards == 1);
        before = spread;
    }
    step(&store, false, Direction::Back).await.unwrap();
    assert_eq!(items(&store, "Tasks").await, original);
}

/// Values that end like shards are escaped already, so they are in nobody's way.
#[tokio::test]
async fn values_that_look_spread_are_given_other_shards_too() {
    let store = filled().await;
    spread_over(&store, 3).await.unwrap();
    let item = json!({ "pk": { "S": "p" }, "sk": { "S": "99" }, "name": { "N": "99" }, "status": { "S": "open#~1#~0" } });
    call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    spread_over(&store, 1).await.unwrap();
    assert!(items(&store, "Tasks").await.iter().any(|item| item.contains("open#~1#~0")));
}

/// An index that has four shards, whose rule says nine: first there, then back.
struct Grown;

impl Adopting for Grown {
    const TABLE: &'static str = "Tasks";

    async fn filled() -> Arc<dyn Store> {
        let store = filled().await;
        spread_over(&store, 4).await.unwrap();
        store
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        spread_over(store, if direction == Direction::Adopt { 9 } else { 4 }).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_while_it_grows_it_goes_on() {
    killed_everywhere::<Grown>(Direction::Adopt, Direction::Adopt, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_while_it_grows_it_turns_back() {
    killed_everywhere::<Grown>(Direction::Adopt, Direction::Back, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_while_it_shrinks_it_goes_on() {
    killed_everywhere::<Grown>(Direction::Back, Direction::Back, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_while_it_shrinks_it_turns_back() {
    killed_everywhere::<Grown>(Direction::Back, Direction::Adopt, 15).await;
}

/// Neither the number that it had nor the one that it was to have, or none at all: one step after
/// the other.
#[tokio::test]
async fn killed_anywhere_it_goes_elsewhere() {
    let original = items(&filled().await, "Tasks").await;
    for at in kills(false) {
        let store = Grown::filled().await;
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, true);
        let killed = spread_over(&dying, 9).await;
        if at % 2 == 0 {
            spread_over(&store, 6).await.unwrap();
            assert_spread_over(&items(&store, "Tasks").await, 6);
        }
        // At most what was interrupted, and the rest of the way.
        for _ in 0..2 {
            match step(&store, false, Direction::Back).await {
                Ok(_) => {}
                Err(WorkerError::Usage(_)) => break,
                Err(error) => panic!("killed at call {at}: {error}"),
            }
        }
        assert_eq!(items(&store, "Tasks").await, original, "killed at call {at}");
        if killed.is_ok() {
            break;
        }
    }
}

fn dying(store: &Arc<dyn Store>, at: i64) -> Arc<dyn Store> {
    Mortal::new(Arc::clone(store), at, true)
}

/// The forms of a value that a gateway reads, the one that it writes first.
async fn known_forms(control: &Control) -> Vec<String> {
    control.resolve(&["Tasks"]).await.unwrap();
    let sort = sort_in(&[(2, 4), (7, 9)]);
    let key = PrimaryKey { partition: SortKey::S("p0"), sort: Some(SortKey::S(&sort)) };
    match control.table("Tasks") {
        None => vec![String::new()],
        Some(table) => table.index_key("status").unwrap().suffixes(b"open", key),
    }
}

/// A run may be killed, and another begin in either direction, before gateways have heard of the
/// first one. Two gateways that are one record apart read what the other writes, whatever that
/// record says.
#[tokio::test]
async fn gateways_one_record_apart_read_what_the_other_writes() {
    for (before, after) in [(None, 9), (Some(4), 9), (Some(9), 4)] {
        let started = || async {
            let store = filled().await;
            if let Some(shards) = before {
                spread_over(&store, shards).await.unwrap();
            } else {
                // So that the registry is there.
                spread_over(&store, 3).await.unwrap();
                step(&store, false, Direction::Back).await.unwrap();
            }
            let env = ManualEnv::seeded(1);
            let control = Control::start(Arc::clone(&store), Arc::new(env), Rules::default()).await.unwrap();
            (store, control)
        };
        let mut changes = 0;
        let mut turned_from = Vec::new();
        for first in 0.. {
            let (store, _) = started().await;
            let there = spread_over(&dying(&store, first), after).await.is_ok();
            let record = items(&store, REGISTRY).await;
            let state = record.iter().find(|item| item.contains("Tasks")).cloned().unwrap_or_default();
            let state =
                ["\"touched\\\":true", "TURNING", "writes_new\\\":true"].map(|said| state.contains(said));
            if turned_from.contains(&state) && !there {
                continue;
            }
            turned_from.push(state);
            let mut last: Option<Vec<String>> = None;
            for then in 0.. {
                let (store, _) = started().await;
                let _ = spread_over(&dying(&store, first), after).await;
                let back = dying(&store, then);
                let ended = match before {
                    Some(shards) => spread_over(&back, shards).await.map(drop),
                    None => match step(&back, false, Direction::Back).await {
                        Err(WorkerError::Usage(_)) => Ok(()),
                        other => other.map(drop),
                    },
                };
                let env = ManualEnv::seeded(1);
                let control =
                    Control::start(Arc::clone(&store), Arc::new(env), Rules::default()).await.unwrap();
                let forms = known_forms(&control).await;
                if let Some(last) = last.replace(forms.clone()).filter(|last| *last != forms) {
                    assert!(
                        last.contains(&forms[0]) && forms.contains(&last[0]),
                        "killed at call {first}, then at {then}: {last:?}, {forms:?}"
                    );
                    changes += 1;
                }
                if ended.is_ok() {
                    break;
                }
            }
            if there {
                break;
            }
        }
        assert!(turned_from.len() > 3 && changes > 5, "{turned_from:?} {changes}");
    }
}

/// Older builds know plain and spread values, and refuse what else is on record.
#[tokio::test]
async fn the_record_of_a_change_is_none_that_older_builds_read() {
    let store = filled().await;
    spread_over(&store, 4).await.unwrap();
    let mut seen = 0;
    for at in 10..40 {
        let copy = filled().await;
        spread_over(&copy, 4).await.unwrap();
        let _ = spread_over(&dying(&copy, at), 9).await;
        let records = items(&copy, REGISTRY).await;
        let Some(record) = records.iter().find(|item| item.contains("TURNING")) else { continue };
        let record: Json = serde_json::from_str(record).unwrap();
        let state: Json = serde_json::from_str(record["state"]["S"].as_str().unwrap()).unwrap();
        assert_eq!(
            state["before"][0]["layout"]["shards"], 4,
            "their state has no such field, and denies unknown ones"
        );
        seen += 1;
    }
    assert!(seen > 5);
    // And the state of plain and spread values is what it was.
    let plain = filled().await;
    let _ = step(&dying(&plain, 20), false, Direction::Adopt).await;
    let records = items(&plain, REGISTRY).await;
    let record = records.iter().find(|item| item.contains("TURNING")).unwrap();
    assert!(!record.contains("before") && record.contains("spreads"), "{record}");
}

#[tokio::test]
async fn a_gateway_goes_on_by_the_record_whatever_its_rule_says() {
    let store = filled().await;
    spread_over(&store, 4).await.unwrap();
    let env = ManualEnv::seeded(1);
    for (shards, waits) in [(4, false), (9, true)] {
        let rules = rules_with(false, shards);
        let control = Control::start(Arc::clone(&store), Arc::new(env.clone()), rules.clone()).await.unwrap();
        control.resolve(&["Tasks"]).await.unwrap();
        assert_eq!(control.table("Tasks").unwrap().index_key("status").unwrap().shards(b"open"), 4);
        let verdicts = check(Arc::clone(&store), Arc::new(env.clone()), &rules).await.unwrap().tables;
        let [(_, verdict)] = &verdicts[..] else { panic!("one table") };
        assert_eq!(
            matches!(verdict, Verdict::Waiting(_, indexes) if indexes == &["by-status"]),
            waits,
            "{verdict}"
        );
    }
}

/// A record whose layouts are in another order than the rules, since one of two attributes was
/// changed before.
#[tokio::test]
async fn an_interrupted_change_is_undone_whatever_the_order_of_the_rules() {
    let rules = |status: u16, kind: u16| {
        let rule = |index: &str, shards| {
            format!(
                "[[rule]]\ntable = \"Tasks\"\nindex = \"{index}\"\nstrategy = \"calculated\"\nshards = {shards}\n"
            )
        };
        Rules::read("rules", &(rule("by-status", status) + &rule("by-kind", kind))).unwrap()
    };
    let mut undone = 0;
    for at in 10..40 {
        let store = filled().await;
        let index = json!({ "Create": {
            "IndexName": "by-kind", "Projection": { "ProjectionType": "ALL" }, "KeySchema": [{ "AttributeName": "kind", "KeyType": "HASH" }],
        } });
        let attributes =
            ["pk", "sk", "status", "kind"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
        let update = json!({ "TableName": "Tasks", "AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [index] });
        call(&store, Operation::UpdateTable, update).await;
        for (status, kind) in [(4, 3), (9, 3)] {
            step_by(&store, &rules(status, kind), Direction::Adopt).await.unwrap();
        }
        let before = items(&store, "Tasks").await;
        let _ = step_by(&dying(&store, at), &rules(2, 5), Direction::Adopt).await;
        if !items(&store, REGISTRY).await.iter().any(|item| item.contains("TURNING")) {
            continue;
        }
        let back = rules(9, 3);
        let env = Arc::new(heatsink_env::RealEnv);
        let adoption =
            heatsink_workers::Adoption::prepare(Arc::clone(&store), env, &back, "Tasks", Direction::Adopt);
        assert!(adoption.await.unwrap().undoes_a_change(), "killed at call {at}");
        step_by(&store, &back, Direction::Adopt).await.unwrap();
        assert_eq!(items(&store, "Tasks").await, before);
        undone += 1;
    }
    assert!(undone > 5, "{undone}");
}

/// Gateways have stopped sending to it, so that nothing reaches another table of its name.
#[tokio::test]
async fn a_table_that_is_being_deleted_is_left_alone() {
    let store = filled().await;
    spread_over(&store, 4).await.unwrap();
    let records = items(&store, REGISTRY).await;
    let mut records = records.iter().map(|text| serde_json::from_str::<Json>(text).unwrap());
    let mut record = records.find(|item| item.get("layouts").is_some()).unwrap();
    record["state"]["S"] = json!(json!({ "state": "DELETING", "by": "another" }).to_string());
    record.as_object_mut().unwrap().remove("seal");
    call(&store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": record })).await;
    let before = items(&store, REGISTRY).await;
    for (shards, direction) in [(9, Direction::Adopt), (4, Direction::Back)] {
        let refused = step_by(&store, &rules_with(false, shards), direction).await.map(drop);
        assert!(matches!(&refused, Err(WorkerError::Usage(said)) if said.contains("deleted")), "{refused:?}");
    }
    assert_eq!(items(&store, REGISTRY).await, before);
}
