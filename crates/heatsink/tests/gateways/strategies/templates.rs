//! Tables that other code shards by a template.

use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Operation};
use heatsink_workers::{Direction, WorkerError};
use serde_json::json;

use super::{Watched, adopt, call, create, gateway, put, query, raw_get, raw_put, rules, sorts};

/// What Python's `int(hashlib.md5(event_id.encode()).hexdigest(), 16) % 10` gave for these.
const PYTHON: [(&str, u16); 6] =
    [("event-67890", 9), ("player_7", 5), ("a", 7), ("1718000000", 2), ("12.5", 3), ("", 6)];

const MD5: &str =
    "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"md5\"\nshards = 10\nkeys = \"user-*\"";

#[test]
fn a_table_sharded_by_python_is_read_and_written_beside_it() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in PYTHON.iter().take(5) {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    raw_put(&store, "config", "x");
    // Not yet sharded when the rest was.
    raw_put(&store, "user-1", "old");
    let report = adopt(&store, &rules(MD5), Direction::Adopt).unwrap();
    assert_eq!((report.items, report.moved), (7, 1));
    let service = gateway(&store, rules(MD5));

    let all = call(&service, Operation::Query, query("user-1", json!({}))).unwrap();
    assert_eq!(sorts(&all), ["12.5", "1718000000", "a", "event-67890", "old", "player_7"]);
    assert!(all["Items"].as_array().unwrap().iter().all(|item| item["pk"]["S"] == "user-1"));
    store.calls();
    let key = json!({ "pk": { "S": "user-1" }, "sk": { "S": "player_7" } });
    let item = call(&service, Operation::GetItem, json!({ "TableName": "Tab", "Key": key })).unwrap();
    assert_eq!(item["Item"]["v"]["S"], "by hand");
    assert_eq!(store.calls().len(), 1);

    put(&service, "user-2", json!({ "S": "event-67890" }), "by Heatsink");
    assert_eq!(raw_get(&store, "user-2#9", "event-67890")["Item"]["v"]["S"], "by Heatsink");
    put(&service, "config", json!({ "S": "y" }), "whole");
    assert_eq!(raw_get(&store, "config", "y")["Item"]["v"]["S"], "whole");
    raw_put(&store, "user-2#7", "a");
    let both =
        call(&service, Operation::Query, query("user-2", json!({ "ScanIndexForward": false }))).unwrap();
    assert_eq!(sorts(&both), ["event-67890", "a"]);

    let report = adopt(&store, &rules(MD5), Direction::Release).unwrap();
    assert_eq!(report.moved, 0, "what was sharded by hand stays so");
    assert_eq!(raw_get(&store, "user-1#5", "player_7")["Item"]["v"]["S"], "by hand");
}

#[test]
fn a_template_goes_back_to_logical_keys_and_under_another_shard_count() {
    let store = Watched::new();
    create(&*store, "S");
    let with = |shards: u16| rules(&MD5.replace("shards = 10", &format!("shards = {shards}")));
    let service = gateway(&store, with(10));
    let mut expected: Vec<String> = (0..50).map(|at| format!("event-{at:02}")).collect();
    expected.extend(PYTHON.iter().take(5).map(|(event, _)| (*event).to_owned()));
    expected.sort();
    expected.iter().for_each(|sort| put(&service, "user-1", json!({ "S": sort }), "v"));
    let found = |service: &Gateway| {
        sorts(&call(service, Operation::Query, query("user-1", json!({ "ConsistentRead": true }))).unwrap())
    };
    let back = adopt(&store, &Rules::default(), Direction::Back).unwrap();
    assert_eq!((back.items, back.moved), (55, 55));
    assert_eq!(found(&gateway(&store, Rules::default())), expected);

    let again = adopt(&store, &with(5), Direction::Adopt).unwrap();
    assert_eq!((again.items, again.moved, again.checksum), (55, 55, back.checksum));
    assert_eq!(found(&gateway(&store, with(5))), expected);
    for (event, shard) in PYTHON.iter().take(5) {
        let item = raw_get(&store, &format!("user-1#{}", shard % 5), event);
        assert_eq!(item["Item"]["v"]["S"], "v", "{event}");
    }
}

#[test]
fn keys_of_code_that_still_shards_by_hand_are_what_the_rule_says() {
    let with = |physical_keys: &str| rules(&format!("{MD5}\nphysical_keys = \"{physical_keys}\""));
    let item = |pk: &str| json!({ "pk": { "S": pk }, "sk": { "S": "event-67890" }, "v": { "S": pk } });
    let write = |service: &Gateway, pk: &str| {
        call(service, Operation::PutItem, json!({ "TableName": "Tab", "Item": item(pk) }))
    };
    let read = |service: &Gateway, pk: &str| {
        let key = json!({ "pk": { "S": pk }, "sk": { "S": "event-67890" } });
        call(service, Operation::GetItem, json!({ "TableName": "Tab", "Key": key })).unwrap()["Item"].take()
    };

    // By default it is a key of its own, which `user-1` does not show.
    let store = Watched::new();
    create(&*store, "S");
    let service = gateway(&store, rules(MD5));
    write(&service, "user-1#9").unwrap();
    assert_eq!(raw_get(&store, "user-1#9#9", "event-67890")["Item"]["v"]["S"], "user-1#9");
    assert!(read(&service, "user-1").is_null());
    assert_eq!(read(&gateway(&store, with("accept")), "user-1#9"), item("user-1#9"));

    let refusing = gateway(&store, with("refuse"));
    for error in [
        write(&refusing, "user-1#9").unwrap_err(),
        call(&refusing, Operation::Query, query("user-1#9", json!({}))).unwrap_err(),
    ] {
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.unwrap().contains("a shard of the key \"user-1\""));
    }
    write(&refusing, "user-1#77").unwrap();
    write(&refusing, "config#9").unwrap();

    // In a table that was sharded by hand code that still does so would find nothing, in silence:
    // by default it is refused.
    let store = Watched::new();
    create(&*store, "S");
    let (event, shard) = PYTHON[0];
    raw_put(&store, &format!("user-1#{shard}"), event);
    adopt(&store, &rules(MD5), Direction::Adopt).unwrap();
    let by_hand = query(&format!("user-1#{shard}"), json!({}));
    let error = call(&gateway(&store, rules(MD5)), Operation::Query, by_hand.clone()).unwrap_err();
    assert!(error.message.unwrap().contains("send the logical key"));
    let accepted = call(&gateway(&store, with("accept")), Operation::Query, by_hand).unwrap();
    assert_eq!(accepted["Count"], 0);

    let store = Watched::new();
    create(&*store, "S");
    let service = gateway(&store, with("as_shard"));
    write(&service, "user-1#9").unwrap();
    assert_eq!(raw_get(&store, "user-1#9", "event-67890")["Item"]["v"]["S"], "user-1#9");
    assert_eq!(
        (read(&service, "user-1#9"), read(&service, "user-1")["v"].take()),
        (item("user-1#9"), json!({ "S": "user-1#9" }))
    );
    let error = write(&service, "user-1#8").unwrap_err();
    assert!(error.message.unwrap().contains("belongs to shard 9"));
    put(&service, "user-1", json!({ "S": "a" }), "logical");
    for (pk, found) in
        [("user-1#9", vec!["event-67890"]), ("user-1#7", vec!["a"]), ("user-1", vec!["a", "event-67890"])]
    {
        let page = call(&service, Operation::Query, query(pk, json!({}))).unwrap();
        assert_eq!(sorts(&page), found);
        assert!(page["Items"].as_array().unwrap().iter().all(|item| item["pk"]["S"] == pk), "{page}");
    }
}

#[test]
fn a_rule_with_another_hash_than_the_data_is_not_adopted() {
    let store = Watched::new();
    create(&*store, "S");
    for (event, shard) in PYTHON.iter().take(5) {
        raw_put(&store, &format!("user-1#{shard}"), event);
    }
    let wrong = rules(&MD5.replace("md5", "sha256"));
    let Err(WorkerError::Stopped(reason)) = adopt(&store, &wrong, Direction::Adopt) else {
        panic!("adopted")
    };
    assert!(reason.contains("by the rule it would be under user-1#"), "{reason}");
    assert!(adopt(&store, &rules(MD5), Direction::Adopt).is_ok());
}
