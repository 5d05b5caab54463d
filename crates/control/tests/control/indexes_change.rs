//! Indexes that come and go under rules: what is on record goes on to hold, with a warning, whoever
//! changed them.

use std::sync::Arc;

use crate::support::{call, memory};
use bytes::Bytes;
use heatsink_control::{Control, MAX_AGE, Rules, Verdict, check};
use heatsink_dynamo::Operation;
use heatsink_env::ManualEnv;
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use serde_json::{Value as Json, json};

const TABLE: &str = "Tasks";

fn index(name: &str, partition: &str, sort: Option<&str>) -> Json {
    let mut key = vec![json!({ "AttributeName": partition, "KeyType": "HASH" })];
    key.extend(sort.map(|name| json!({ "AttributeName": name, "KeyType": "RANGE" })));
    json!({ "IndexName": name, "KeySchema": key, "Projection": { "ProjectionType": "ALL" } })
}

fn attributes() -> Json {
    let define = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    [("pk", "S"), ("sk", "S"), ("status", "S"), ("votes", "N")].map(define).into_iter().collect()
}

async fn store(indexes: &[Json]) -> Arc<dyn Store> {
    let store = memory();
    let used = |name: &Json| {
        ["pk", "sk"].contains(&name["AttributeName"].as_str().unwrap())
            || indexes.iter().any(|index| index.to_string().contains(&name["AttributeName"].to_string()))
    };
    let defined: Vec<Json> =
        attributes().as_array().unwrap().iter().filter(|name| used(name)).cloned().collect();
    let mut create = json!({
        "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": defined,
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    if !indexes.is_empty() {
        create["GlobalSecondaryIndexes"] = json!(indexes);
    }
    call(&store, Operation::CreateTable, create).await;
    store
}

const INDEX: &str =
    "[[rule]]\ntable = \"Tasks\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = 3\n";
const OWN: &str = "[[rule]]\ntable = \"Tasks\"\nstrategy = \"calculated\"\nshards = 2\n";
const COUNTER: &str = "[[rule]]\ntable = \"Tasks\"\nkeys = \"c*\"\nstrategy = \"counter\"\nattributes = [\"votes\"]\nshards = 3\n";

struct Case {
    rules: String,
    indexes: Vec<Json>,
    update: Json,
    warned: &'static str,
}

/// An index that a rule names goes; one comes that a counter, or another index's rule, would not
/// have been put on record beside. Rules that name the table, and rules whose glob matches it.
fn cases() -> Vec<Case> {
    let dropped = json!([{ "Delete": { "IndexName": "by-status" } }]);
    let made = |index: Json| json!([{ "Create": index }]);
    let by_status = || vec![index("by-status", "status", None)];
    let mut cases = Vec::new();
    for glob in [false, true] {
        let all = |text: String| if glob { text.replace("\"Tasks\"", "\"Ta*\"") } else { text };
        cases.push(Case {
            rules: all(INDEX.to_owned()),
            indexes: by_status(),
            update: dropped.clone(),
            warned: "no index by-status",
        });
        cases.push(Case {
            rules: all(format!("{OWN}{INDEX}")),
            indexes: by_status(),
            update: dropped.clone(),
            warned: "no index by-status",
        });
        cases.push(Case {
            rules: all(COUNTER.to_owned()),
            indexes: Vec::new(),
            update: made(index("by-votes", "status", Some("votes"))),
            warned: "votes is a key of the index by-votes",
        });
        cases.push(Case {
            rules: all(COUNTER.to_owned()),
            indexes: Vec::new(),
            update: made(index("by-sort", "sk", Some("pk"))),
            warned: "the index by-sort is made of the table's own key attributes",
        });
        cases.push(Case {
            rules: all(INDEX.to_owned()),
            indexes: by_status(),
            update: made(index("by-sort", "sk", Some("status"))),
            warned: "is the sort key of the index by-sort",
        });
    }
    cases
}

#[tokio::test]
async fn what_is_on_record_outlives_its_indexes() {
    for through in [true, false] {
        for case in cases() {
            let store = store(&case.indexes).await;
            let env = ManualEnv::seeded(1);
            let rules = Rules::read("rules", &case.rules).unwrap();
            let start = || Control::start(Arc::clone(&store), Arc::new(env.clone()), rules.clone());
            let control = start().await.unwrap();
            control.resolve(&[TABLE]).await.unwrap();
            let before = control.table(TABLE).unwrap().layouts().clone();

            let update = json!({ "TableName": TABLE, "AttributeDefinitions": attributes(), "GlobalSecondaryIndexUpdates": case.update });
            let update = Bytes::from(update.to_string());
            let prepared = control.before(Operation::UpdateTable, &update, &[TABLE]).await.unwrap();
            let answer = store.call(Operation::UpdateTable, update).await.unwrap();
            if through {
                control.after(Operation::UpdateTable, &[TABLE], prepared, Ok(&answer)).await;
            }
            env.advance(MAX_AGE);

            // This gateway, another one, and the command line.
            for control in [control, start().await.unwrap()] {
                control.resolve(&[TABLE]).await.unwrap();
                assert_eq!(*control.table(TABLE).unwrap().layouts(), before, "{}", case.rules);
            }
            let verdicts = check(Arc::clone(&store), Arc::new(env.clone()), &rules).await.unwrap();
            let [(_, verdict)] = &verdicts.tables[..] else { panic!("{verdicts:?}") };
            assert!(matches!(verdict, Verdict::Outlived(layouts, _) if *layouts == *before), "{verdict}");
            assert!(verdict.to_string().contains(case.warned), "{verdict}");
        }
    }
}

/// Where the rules for the table's own keys are others than those on record the record holds, and
/// `check` tells, whatever the indexes are. Those for keys of indexes wait.
#[tokio::test]
async fn where_rules_contradict_the_record_it_holds_and_they_are_told() {
    for case in cases() {
        let store = store(&case.indexes).await;
        let env = ManualEnv::seeded(1);
        let start = |text: &str| {
            Control::start(Arc::clone(&store), Arc::new(env.clone()), Rules::read("rules", text).unwrap())
        };
        let first = start(&case.rules).await.unwrap();
        first.resolve(&[TABLE]).await.unwrap();
        let before = first.table(TABLE).unwrap().layouts().clone();
        let update = json!({ "TableName": TABLE, "AttributeDefinitions": attributes(), "GlobalSecondaryIndexUpdates": case.update });
        call(&store, Operation::UpdateTable, update).await;
        let other = case.rules.replace("shards = 3", "shards = 4");
        let control = start(&other).await.unwrap();
        control.resolve(&[TABLE]).await.unwrap();
        assert_eq!(*control.table(TABLE).unwrap().layouts(), before, "{other}");
        if case.rules.contains("index = ") {
            continue;
        }
        let rules = Rules::read("rules", &other).unwrap();
        let checked = check(Arc::clone(&store), Arc::new(env.clone()), &rules).await.unwrap();
        let (_, verdict) = checked.tables.iter().find(|(name, _)| name == TABLE).unwrap();
        let told = verdict.to_string();
        assert!(matches!(verdict, Verdict::Contradicted(layouts, _) if *layouts == *before), "{told}");
        assert!(told.contains("4 shards") || told.contains("cannot hold"), "{told}");
    }
}
