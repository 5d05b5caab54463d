//! A copy of a sharded table, restored or filled from one, holds shards and has no record. It must
//! not be brought under its rules once more, and once it is on record every item is found.
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_control::{Fencing, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::RealEnv;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Adoption, AdoptionOptions, AsItLies, Direction, Layouts, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 4, exclusive: true };
const ITEMS: usize = 40;
const CALCULATED: &str = "[[rule]]\ntable = \"Board*\"\nstrategy = \"calculated\"\nshards = 6\n";
const BUCKETS: &str = "[[rule]]\ntable = \"Board*\"\nstrategy = \"bucket\"\nbucket = \"day\"\nshards = 3\n";
const WITH_INDEX: &str = "[[rule]]\ntable = \"Board*\"\nstrategy = \"calculated\"\nshards = 6\n[[rule]]\ntable = \"Board*\"\nindex = \"by-status\"\n\
                          strategy = \"calculated\"\nshards = 4\n";

fn store() -> Arc<dyn Store> {
    Arc::new(Embedded::memory().unwrap())
}

fn gateway(store: &Arc<dyn Store>, rules: &str) -> Gateway {
    let rules = Rules::read("rules", rules).unwrap();
    block_on(Gateway::builder(store.clone()).rules(rules).start()).unwrap()
}

fn raw(store: &Arc<dyn Store>, operation: Operation, body: Json) -> Json {
    let answer = block_on(store.call(operation, Bytes::from(body.to_string())));
    serde_json::from_slice(&answer.unwrap_or_else(|error| panic!("{operation:?}: {error}"))).unwrap()
}

fn through(gateway: &Gateway, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = block_on(gateway.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn definition(name: &str) -> Json {
    json!({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            { "AttributeName": "status", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-status", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "status", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        }],
    })
}

fn items(store: &Arc<dyn Store>, table: &str) -> Vec<Json> {
    raw(store, Operation::Scan, json!({ "TableName": table, "ConsistentRead": true }))["Items"]
        .as_array()
        .unwrap()
        .clone()
}

/// A table that was written through a gateway, and a copy of it that was made without any gateway:
/// under another name, or under its own after it was dropped past them too.
fn copied(rules: &str, name: &str) -> Arc<dyn Store> {
    let store = store();
    let gateway = gateway(&store, rules);
    through(&gateway, Operation::CreateTable, &definition("Board")).unwrap();
    for at in 0..ITEMS {
        let sort = format!("2026-06-{:02}T10:00:00#{at}", 1 + at % 5);
        let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort }, "status": { "S": "open" }, "at": { "N": at.to_string() } });
        through(&gateway, Operation::PutItem, &json!({ "TableName": "Board", "Item": item })).unwrap();
    }
    let held = items(&store, "Board");
    assert!(held.len() == ITEMS && held.iter().filter(|item| item["pk"]["S"] != "game").count() > ITEMS / 2);
    if name == "Board" {
        raw(&store, Operation::DeleteTable, json!({ "TableName": "Board" }));
    }
    raw(&store, Operation::CreateTable, definition(name));
    for item in held {
        raw(&store, Operation::PutItem, json!({ "TableName": name, "Item": item }));
    }
    store
}

/// How many items a Query through a gateway gives, on the table and on its index.
fn found(store: &Arc<dyn Store>, rules: &str, table: &str) -> (usize, usize) {
    let gateway = gateway(store, rules);
    let query = |index: Option<&str>| {
        let (key, value) = if index.is_some() { ("status", "open") } else { ("pk", "game") };
        let mut body = json!({
            "TableName": table, "KeyConditionExpression": "#k = :k", "ExpressionAttributeNames": { "#k": key },
            "ExpressionAttributeValues": { ":k": { "S": value } },
        });
        if let Some(index) = index {
            body["IndexName"] = json!(index);
        }
        through(&gateway, Operation::Query, &body).unwrap()["Items"].as_array().unwrap().len()
    };
    (query(None), query(Some("by-status")))
}

fn adopt(store: &Arc<dyn Store>, rules: &str, table: &str, anew: bool) -> Result<u64, WorkerError> {
    let rules = Rules::read("rules", rules).unwrap();
    block_on(async {
        let (store, env) = (Arc::clone(store), Arc::new(RealEnv));
        let adoption = match anew {
            false => Adoption::prepare(store, env, &rules, table, Direction::Adopt).await?,
            true => Adoption::prepare_anew(store, env, &rules, table).await?,
        };
        Ok(adoption.run(OPTIONS, &Unwatched).await?.items)
    })
}

fn record(store: &Arc<dyn Store>, layouts: Layouts<'_>, table: &str) -> Result<u64, WorkerError> {
    block_on(async {
        let fencing = Fencing::exclusive(Rules::default().fence());
        let ready = AsItLies::prepare(Arc::clone(store), Arc::new(RealEnv), layouts, table, fencing).await?;
        Ok(ready.run(false, &Unwatched).await?.items)
    })
}

#[test]
fn a_copy_of_a_sharded_table_is_not_adopted_once_more() {
    for (rules, name) in
        [(CALCULATED, "Board-2"), (BUCKETS, "Board-2"), (WITH_INDEX, "Board-2"), (CALCULATED, "Board")]
    {
        let store = copied(rules, name);
        let before = items(&store, name);
        let sees = gateway(&store, rules);
        let get = json!({ "TableName": name, "Key": { "pk": { "S": "game" }, "sk": { "S": "x" } } });
        let refused = through(&sees, Operation::GetItem, &get).unwrap_err();
        assert_eq!(refused.code, Code::ValidationException);
        let said = refused.message.unwrap();
        assert!(said.contains("--records-from"), "{said}");

        // Whichever way the name is said to be nobody else's.
        let Err(WorkerError::Usage(said)) = adopt(&store, rules, name, true) else {
            panic!("adopted: a Query finds {:?} of {ITEMS}", found(&store, rules, name))
        };
        assert!(
            said.contains("sharded already") && said.contains(&format!("heatsink adopt {name} --as-it-lies")),
            "{said}"
        );
        assert_eq!(items(&store, name), before);

        assert_eq!(
            record(&store, Layouts::Of(&Rules::read("rules", rules).unwrap()), name).unwrap(),
            ITEMS as u64
        );
        assert_eq!(items(&store, name), before, "nothing was moved");
        assert_eq!(found(&store, rules, name), (ITEMS, ITEMS), "{rules}");
    }
}

#[test]
fn a_name_that_is_on_record_under_another_id_is_asked_about() {
    let store = copied(CALCULATED, "Board");
    let Err(WorkerError::Usage(said)) = adopt(&store, CALCULATED, "Board", false) else { panic!("adopted") };
    assert!(
        said.contains("on record for a table with another id") && said.contains("--records-from none"),
        "{said}"
    );
    // The message names the id to give.
    let id = said.split("--records-from ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    assert_eq!(record(&store, Layouts::RecordedFor(&id), "Board").unwrap(), ITEMS as u64);
    assert_eq!(found(&store, CALCULATED, "Board").0, ITEMS);
}

#[test]
fn a_restored_copy_gets_the_record_of_the_original() {
    for rules in [CALCULATED, BUCKETS, WITH_INDEX] {
        let store = copied(rules, "Board-2");
        assert_eq!(record(&store, Layouts::RecordedFor("Board"), "Board-2").unwrap(), ITEMS as u64);
        // A gateway without any rule goes by the record alone.
        assert_eq!(found(&store, "", "Board-2"), (ITEMS, ITEMS), "{rules}");
    }
}

#[test]
fn a_table_whose_items_lie_elsewhere_is_not_put_on_record() {
    let store = copied(CALCULATED, "Board-2");
    let item = json!({ "pk": { "S": "game#~77" }, "sk": { "S": "x" } });
    raw(&store, Operation::PutItem, json!({ "TableName": "Board-2", "Item": item }));
    let Err(WorkerError::Stopped(said)) = record(&store, Layouts::RecordedFor("Board"), "Board-2") else {
        panic!("recorded")
    };
    assert!(said.contains("1 items") && said.contains("game#~77"), "{said}");
    // Other rules than those of the data.
    let other = Rules::read("rules", &CALCULATED.replace('6', "4")).unwrap();
    assert!(matches!(record(&store, Layouts::Of(&other), "Board-2"), Err(WorkerError::Stopped(_))));
    for unknown in ["Nope", "none"] {
        assert!(matches!(
            record(&store, Layouts::RecordedFor(unknown), "Board-2"),
            Err(WorkerError::Usage(_))
        ));
    }
}

#[test]
fn rules_that_do_not_fit_the_shards_are_noticed_too() {
    // Sharded over 6; the rule now says 8. Growing moves a quarter of the items, so most lie where
    // the new rule puts them.
    let store = copied(CALCULATED, "Board-2");
    let rules = CALCULATED.replace('6', "8");
    assert!(matches!(adopt(&store, &rules, "Board-2", true), Err(WorkerError::Usage(_))));
}

#[test]
fn keys_of_clients_in_the_reserved_form_are_adopted_when_that_is_said() {
    let store = store();
    raw(&store, Operation::CreateTable, definition("Board"));
    // Of one item of `game#~1` it cannot be told whether it is a shard: it lies there by chance.
    let layout = heatsink_layout::Layout {
        strategy: heatsink_layout::Strategy::calculated(heatsink_layout::By::SortKey),
        shards: 6,
        hash: heatsink_layout::Hash::JumpXxh3,
        version: 1,
    };
    let sort = (0..100).map(|at| at.to_string());
    let sort =
        sort.into_iter().find(|sort| layout.shard_of(Some(heatsink_layout::SortKey::S(sort))) == 1).unwrap();
    let item = json!({ "pk": { "S": "game#~1" }, "sk": { "S": sort } });
    raw(&store, Operation::PutItem, json!({ "TableName": "Board", "Item": item }));
    assert!(matches!(adopt(&store, CALCULATED, "Board", false), Err(WorkerError::Usage(_))));
    let rules = Rules::read("rules", CALCULATED).unwrap();
    block_on(async {
        let adoption =
            Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, "Board", Direction::Adopt).await;
        adoption.unwrap().with_logical_keys().run(OPTIONS, &Unwatched).await.unwrap();
    });
    let get = json!({ "TableName": "Board", "Key": { "pk": { "S": "game#~1" }, "sk": { "S": sort } } });
    assert!(through(&gateway(&store, CALCULATED), Operation::GetItem, &get).unwrap().get("Item").is_some());
}

#[test]
fn a_table_of_another_registry_is_refused_and_ours_is_tagged() {
    let store = store();
    raw(&store, Operation::CreateTable, definition("Board"));
    let item = json!({ "pk": { "S": "game" }, "sk": { "S": "1" } });
    raw(&store, Operation::PutItem, json!({ "TableName": "Board", "Item": item }));
    let described = raw(&store, Operation::DescribeTable, json!({ "TableName": "Board" }));
    let arn = described["Table"]["TableArn"].clone();
    let tags = || raw(&store, Operation::ListTagsOfResource, json!({ "ResourceArn": arn }))["Tags"].clone();
    adopt(&store, CALCULATED, "Board", false).unwrap();
    assert_eq!(tags(), json!([{ "Key": "heatsink.registry", "Value": "heatsink.registry" }]));
    let rules = Rules::default();
    block_on(async {
        let adoption =
            Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, "Board", Direction::Back).await;
        adoption.unwrap().run(OPTIONS, &Unwatched).await.unwrap();
    });
    assert_eq!(tags(), json!([]));
    let other = json!([{ "Key": "heatsink.registry", "Value": "other.registry" }]);
    raw(&store, Operation::TagResource, json!({ "ResourceArn": arn, "Tags": other }));
    let Err(WorkerError::Usage(said)) = adopt(&store, CALCULATED, "Board", false) else { panic!("adopted") };
    assert!(said.contains("other.registry"), "{said}");
}
