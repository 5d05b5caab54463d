//! Tables with an index whose key has several partition or sort key attributes: passed through
//! where no rule names them, and read as unsharded where one does, page by page. The differential
//! test has such indexes too; here more rows fall on each other.
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::ManualEnv;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const SHARDED: &str = "[[rule]]\ntable = \"Tasks\"\nstrategy = \"calculated\"\nshards = 4\n";
const ELSEWHERE: &str = "[[rule]]\ntable = \"Other\"\nstrategy = \"calculated\"\nshards = 4\n";
const ASSIGNED: &str = "[[rule]]\ntable = \"Tasks\"\nstrategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 4\n";

fn gateway(rules: &str) -> Gateway {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let rules = Rules::read("rules", rules).unwrap();
    // Its clock stands still: what it knows of the table it does not look up again.
    let env = Arc::new(ManualEnv::seeded(1));
    block_on(Gateway::builder(store).env(env).rules(rules).start()).unwrap()
}

fn call(service: &Gateway, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = block_on(service.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// `of` holds the key attributes of two indexes: one apart from the table's key, one with the
/// table's partition key in it.
fn create() -> Json {
    let define = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let index = |name: &str, keys: Vec<Json>| json!({ "IndexName": name, "KeySchema": keys, "Projection": { "ProjectionType": "ALL" } });
    let attributes: Vec<Json> = ["pk", "sk", "team", "region", "due"].map(define).into();
    json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes,
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "GlobalSecondaryIndexes": [
            index("by-team", vec![key("team", "HASH"), key("region", "HASH"), key("due", "RANGE"), key("sk", "RANGE")]),
            index("by-owner", vec![key("team", "HASH"), key("pk", "HASH"), key("due", "RANGE")]),
        ],
    })
}

fn fill(service: &Gateway) {
    call(service, Operation::CreateTable, &create()).unwrap();
    for at in 0..24 {
        let region = ["north", "south"][at % 3 % 2];
        let item = json!({
            "pk": { "S": format!("user-{}", at % 2) }, "sk": { "S": format!("{at:03}") }, "team": { "S": "a" },
            "region": { "S": region }, "due": { "S": format!("{:02}", 23 - at) },
        });
        call(service, Operation::PutItem, &json!({ "TableName": "Tasks", "Item": item })).unwrap();
    }
}

fn of_team(more: &Json) -> Json {
    let mut body = json!({
        "TableName": "Tasks", "IndexName": "by-team", "KeyConditionExpression": "team = :t AND #r = :r AND due < :d",
        "ExpressionAttributeNames": { "#r": "region" },
        "ExpressionAttributeValues": { ":t": { "S": "a" }, ":r": { "S": "north" }, ":d": { "S": "20" } },
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// Every item and every cursor of a read, page by page.
fn pages(service: &Gateway, operation: Operation, mut body: Json) -> (Vec<Json>, Vec<Json>) {
    let (mut items, mut cursors) = (Vec::new(), Vec::new());
    loop {
        let page = call(service, operation, &body).unwrap();
        items.extend(page["Items"].as_array().unwrap().clone());
        match page.get("LastEvaluatedKey") {
            Some(last) => body["ExclusiveStartKey"] = last.clone(),
            None => return (items, cursors),
        }
        cursors.push(body["ExclusiveStartKey"].clone());
    }
}

#[test]
fn a_table_that_no_rule_names_is_passed_through() {
    let (plain, other) = (gateway(""), gateway(ELSEWHERE));
    fill(&plain);
    fill(&other);
    for body in [of_team(&json!({})), of_team(&json!({ "IndexName": "by-team", "Limit": 2 }))] {
        let expected = pages(&plain, Operation::Query, body.clone());
        assert_eq!(expected.0.len(), 13);
        assert_eq!(pages(&other, Operation::Query, body), expected);
    }
}

#[test]
fn a_sharded_table_reads_an_index_apart_from_its_key_as_an_unsharded_one() {
    let plain = gateway("");
    fill(&plain);
    for rules in [SHARDED, ASSIGNED] {
        let sharded = gateway(rules);
        fill(&sharded);
        // Numbers of externally assigned shards are part of cursors by design; all else is the
        // same.
        let logical = |(items, mut cursors): (Vec<Json>, Vec<Json>)| {
            let shard = |cursor: &mut Json| drop(cursor.as_object_mut().unwrap().remove("heatsink:shard"));
            cursors.iter_mut().for_each(shard);
            (items, cursors)
        };
        for more in [
            json!({}),
            json!({ "Limit": 2 }),
            json!({ "Limit": 5, "ScanIndexForward": false }),
            json!({ "FilterExpression": "attribute_exists(pk) AND attribute_not_exists(gone)" }),
        ] {
            let body = of_team(&more);
            let expected = pages(&plain, Operation::Query, body.clone());
            assert_eq!(logical(pages(&sharded, Operation::Query, body)), expected, "{rules} {more}");
        }
        let scan = json!({ "TableName": "Tasks", "IndexName": "by-team", "Limit": 7 });
        let sorted = |(mut items, _): (Vec<Json>, Vec<Json>)| {
            items.sort_by_key(Json::to_string);
            items
        };
        let expected = sorted(pages(&plain, Operation::Scan, scan.clone()));
        assert_eq!((expected.len(), &sorted(pages(&sharded, Operation::Scan, scan))), (24, &expected));
        let statement = json!({ "Statement": "SELECT * FROM \"Tasks\".\"by-team\" WHERE team = 'a' AND region = 'south'" });
        let select = |service| call(service, Operation::ExecuteStatement, &statement);
        match select(&plain) {
            Ok(answer) => assert_eq!(select(&sharded).unwrap(), answer),
            // The embedded engine does not know them in PartiQL; its refusal is passed on.
            Err(error) => assert_eq!(select(&sharded).unwrap_err().message, error.message),
        }
    }
}

/// The keys of items that fall on each other in every index: owners whose order a shard suffix
/// would change, few values of all else.
fn crowded() -> Json {
    let define = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    let key = |kind: &'static str| move |name: &&str| json!({ "AttributeName": name, "KeyType": kind });
    let index = |name: &str, hash: &[&str], range: &[&str], projection: Json| {
        let keys: Vec<Json> = hash.iter().map(key("HASH")).chain(range.iter().map(key("RANGE"))).collect();
        json!({ "IndexName": name, "KeySchema": keys, "Projection": projection })
    };
    let (all, keys) = (json!({ "ProjectionType": "ALL" }), json!({ "ProjectionType": "KEYS_ONLY" }));
    let attributes = [("pk", "S"), ("sk", "S"), ("team", "S"), ("level", "N"), ("due", "N"), ("mark", "B")];
    json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes.map(define).to_vec(),
        "KeySchema": [key("HASH")(&"pk"), key("RANGE")(&"sk")],
        "GlobalSecondaryIndexes": [
            index("hash", &["team", "pk"], &["level", "due", "mark"], all.clone()),
            index("first", &["team"], &["pk", "level", "due"], all.clone()),
            index("middle", &["level"], &["due", "pk", "mark"], all),
            index("apart", &["team", "level"], &["due", "mark"], keys),
        ],
    })
}

const ITEMS: usize = 300;
const OWNERS: [&str; 5] = ["a", "a!", "a#~1", "ab", "z"];

fn crowd(service: &Gateway) {
    call(service, Operation::CreateTable, &crowded()).unwrap();
    for at in 0..ITEMS {
        // Every combination once, and some twice.
        let mut rest = at * 7 % 240;
        let mut of = |values: &[&str]| {
            let value = values[rest % values.len()];
            rest /= values.len();
            json!({ "S": value })
        };
        let (owner, team, level) = (of(&OWNERS), of(&["x", "y"]), of(&["9", "10", "-1"]));
        let (due, mark) = (of(&["0", "1", "2", "3"]), of(&["AA==", "/w=="]));
        let item = json!({
            "pk": owner, "sk": { "S": format!("{at:03}") }, "team": team, "level": { "N": level["S"] },
            "due": { "N": due["S"] }, "mark": { "B": mark["S"] }, "note": { "S": format!("of {}", owner["S"]) },
        });
        call(service, Operation::PutItem, &json!({ "TableName": "Tasks", "Item": item })).unwrap();
    }
}

/// Queries of the indexes, each with what its rows are sorted by.
fn queries() -> Vec<(Json, &'static [&'static str])> {
    let value = |name: &str| match name {
        ":t" => json!({ "S": "x" }),
        ":p" => json!({ "S": "a" }),
        ":l" => json!({ "N": "9" }),
        ":m" => json!({ "B": "AA==" }),
        name => json!({ "N": &name[2..] }),
    };
    let query = |index: &str, condition: &str| {
        let words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != ':');
        let names = words.filter(|word| word.starts_with(':'));
        let values: serde_json::Map<String, Json> =
            names.map(|name| (name.to_owned(), value(name))).collect();
        let condition = condition.replace("level", "#l");
        let mut body = json!({
            "TableName": "Tasks", "IndexName": index, "KeyConditionExpression": condition, "ExpressionAttributeValues": values,
        });
        if condition.contains("#l") {
            body["ExpressionAttributeNames"] = json!({ "#l": "level" });
        }
        body
    };
    let hash: &[&str] = &["level", "due", "mark"];
    let first: &[&str] = &["pk", "level", "due"];
    let middle: &[&str] = &["due", "pk", "mark"];
    vec![
        (query("hash", "team = :t AND pk = :p"), hash),
        (query("hash", "pk = :p AND team = :t AND level > :d5"), hash),
        (query("hash", "pk = :p AND team = :t AND level = :l AND due BETWEEN :d1 AND :d2"), hash),
        (query("hash", "pk = :p AND team = :t AND level = :l AND due = :d1 AND mark <= :m"), hash),
        (query("first", "team = :t"), first),
        (query("first", "team = :t AND pk > :p"), first),
        (query("first", "team = :t AND begins_with(pk, :p)"), first),
        (query("first", "team = :t AND pk = :p"), first),
        (query("first", "team = :t AND pk = :p AND level >= :l"), first),
        (query("middle", "level = :l"), middle),
        (query("middle", "level = :l AND due < :d3"), middle),
        (query("middle", "level = :l AND due = :d2 AND pk <= :p"), middle),
        (query("middle", "level = :l AND due = :d2 AND pk = :p"), middle),
        (query("middle", "level = :l AND due = :d2 AND pk = :p AND mark > :m"), middle),
        (query("apart", "team = :t AND level = :l AND due >= :d1"), &["due", "mark"]),
    ]
}

/// What must be equal of a read: of every page how many items it read, and what its rows are sorted
/// by; of all pages the rows, in any order. Which of the rows with equal index keys a filter meets
/// on which page is nobody's to say.
fn seen(service: &Gateway, operation: Operation, mut body: Json, sorts: &[&str]) -> (Vec<Json>, Vec<String>) {
    let (mut pages, mut rows) = (Vec::new(), Vec::new());
    let filtered = body.get("FilterExpression").or(body.get("QueryFilter")).is_some();
    loop {
        let page = call(service, operation, &body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let items = page["Items"].as_array().cloned().unwrap_or_default();
        let position = |item: &Json| sorts.iter().map(|name| item[*name].clone()).collect::<Json>();
        let positions = items.iter().filter(|_| !filtered).map(position).collect::<Json>();
        pages.push(json!([page["ScannedCount"], positions]));
        rows.extend(items.iter().map(Json::to_string));
        match page.get("LastEvaluatedKey") {
            Some(last) => body["ExclusiveStartKey"] = last.clone(),
            None => break,
        }
        assert!(pages.len() < 400, "{body}");
    }
    rows.sort();
    (pages, rows)
}

const LAYOUTS: [&str; 6] = [
    SHARDED,
    ASSIGNED,
    "[[rule]]\ntable = \"Tasks\"\nstrategy = \"template\"\ntemplate = \"{shard:02}#{pk}\"\nhash = \"crc32\"\nshards = 4\n",
    "[[rule]]\ntable = \"Tasks\"\nkeys = \"a*\"\nstrategy = \"calculated\"\nshards = 13\n",
    "[[rule]]\ntable = \"Tasks\"\nstrategy = \"bucket\"\nbucket = \"day\"\nshards = 2\n",
    "[[rule]]\ntable = \"Tasks\"\nstrategy = \"counter\"\nattributes = [\"hits\"]\nshards = 4\n",
];

#[test]
fn an_index_with_the_tables_partition_key_in_its_key_is_read_as_unsharded() {
    let plain = gateway("");
    crowd(&plain);
    for rules in LAYOUTS {
        let sharded = gateway(rules);
        crowd(&sharded);
        for (query, sorts) in queries() {
            for more in [json!({}), json!({ "Limit": 2 }), json!({ "Limit": 3, "ScanIndexForward": false })] {
                let mut body = query.clone();
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let expected = seen(&plain, Operation::Query, body.clone(), sorts);
                assert!(!expected.1.is_empty(), "{body}");
                assert_eq!(seen(&sharded, Operation::Query, body.clone(), sorts), expected, "{rules} {body}");
            }
        }
        for index in ["hash", "first", "middle", "apart"] {
            let scan = json!({ "TableName": "Tasks", "IndexName": index, "Limit": 29 });
            let (_, expected) = seen(&plain, Operation::Scan, scan.clone(), &[]);
            assert_eq!(
                (seen(&sharded, Operation::Scan, scan, &[]).1, expected.len()),
                (expected, ITEMS),
                "{rules} {index}"
            );
        }
    }
}

#[test]
fn a_cursor_that_a_client_makes_of_an_item_goes_on_behind_it() {
    for rules in &LAYOUTS[..2] {
        let service = gateway(rules);
        crowd(&service);
        for (query, _) in queries() {
            let all = call(&service, Operation::Query, &query).unwrap();
            let all = all["Items"].as_array().unwrap();
            let mut body = query.clone();
            body["Limit"] = json!(2);
            let mut found = Vec::new();
            loop {
                let page = call(&service, Operation::Query, &body).unwrap();
                found.extend(page["Items"].as_array().unwrap().clone());
                assert!(found.len() <= all.len(), "{rules} {body}");
                let Some(last) = page.get("LastEvaluatedKey") else { break };
                let names = last.as_object().unwrap().keys().filter(|name| *name != "heatsink:shard");
                let item = found.last().unwrap();
                body["ExclusiveStartKey"] = names.map(|name| (name.clone(), item[name].clone())).collect();
            }
            assert_eq!(&found, all, "{rules} {body}");
        }
    }
}

#[test]
fn a_filter_reads_the_logical_keys_of_such_an_index() {
    let plain = gateway("");
    crowd(&plain);
    for rules in &LAYOUTS[..2] {
        let sharded = gateway(rules);
        crowd(&sharded);
        let filters = [
            json!({ "FilterExpression": "pk < :f OR note = :n" }),
            json!({ "FilterExpression": "contains(pk, :f) AND size(pk) < :s", "Select": "COUNT" }),
            json!({ "FilterExpression": "note <> pk AND attribute_exists(pk)", "ProjectionExpression": "sk, pk" }),
        ];
        let apart = json!({ "KeyConditionExpression": "team = :t AND #l = :l", "ExpressionAttributeNames": { "#l": "level" } });
        for (filter, limit) in filters.iter().flat_map(|filter| [(filter, 3), (filter, 50)]) {
            let body = |index: &str, more: &Json| {
                let values = [
                    (":f", json!({ "S": "a#" })),
                    (":n", json!({ "S": "of z" })),
                    (":s", json!({ "N": "4" })),
                ];
                let values =
                    values.into_iter().chain([(":t", json!({ "S": "x" })), (":l", json!({ "N": "9" }))]);
                let mut body = json!({ "TableName": "Tasks", "IndexName": index, "Limit": limit });
                for more in [more, filter] {
                    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                }
                let text = body.to_string();
                let used = values.filter(|(name, _)| {
                    text.contains(&format!("{name} "))
                        || text.contains(&format!("{name})"))
                        || text.contains(&format!("{name}\""))
                });
                body["ExpressionAttributeValues"] =
                    used.map(|(name, value)| (name.to_owned(), value)).collect();
                if body["ExpressionAttributeValues"].as_object().unwrap().is_empty() {
                    body.as_object_mut().unwrap().remove("ExpressionAttributeValues");
                }
                body
            };
            let query = body("apart", &apart);
            let expected = seen(&plain, Operation::Query, query.clone(), &[]);
            assert_eq!(seen(&sharded, Operation::Query, query.clone(), &[]), expected, "{rules} {query}");
            for index in ["hash", "first", "middle", "apart"] {
                let mut scan = body(index, &json!({}));
                scan["Limit"] = json!(40);
                let found = seen(&sharded, Operation::Scan, scan.clone(), &[]).1;
                assert_eq!(found, seen(&plain, Operation::Scan, scan.clone(), &[]).1, "{rules} {scan}");
            }
            let mut legacy = json!({ "TableName": "Tasks", "IndexName": "apart", "Limit": limit });
            let equal = |value: Json| json!({ "ComparisonOperator": "EQ", "AttributeValueList": [value] });
            legacy["KeyConditions"] =
                json!({ "team": equal(json!({ "S": "x" })), "level": equal(json!({ "N": "9" })) });
            legacy["QueryFilter"] =
                json!({ "pk": { "ComparisonOperator": "LE", "AttributeValueList": [{ "S": "a!" }] } });
            let expected = seen(&plain, Operation::Query, legacy.clone(), &["due"]);
            assert_eq!(
                seen(&sharded, Operation::Query, legacy.clone(), &["due"]),
                expected,
                "{rules} {legacy}"
            );
        }
    }
}

#[test]
fn numbers_of_counters_are_whole_on_such_an_index() {
    let service = gateway(LAYOUTS[5]);
    crowd(&service);
    let key = json!({ "pk": { "S": "a" }, "sk": { "S": "000" } });
    let add = json!({ "TableName": "Tasks", "Key": key, "UpdateExpression": "ADD hits :n", "ExpressionAttributeValues": { ":n": { "N": "1" } } });
    for _ in 0..10 {
        call(&service, Operation::UpdateItem, &add).unwrap();
    }
    for (query, _) in queries().into_iter().filter(|(query, _)| query["IndexName"] != "apart") {
        let found = call(&service, Operation::Query, &query).unwrap();
        let counted = found["Items"].as_array().unwrap().iter().filter(|item| item.get("hits").is_some());
        assert!(counted.clone().all(|item| item["hits"]["N"] == "10" && item["sk"]["S"] == "000"), "{query}");
        let scan = json!({ "TableName": "Tasks", "IndexName": query["IndexName"] });
        let found = call(&service, Operation::Scan, &scan).unwrap();
        let counted: Vec<&Json> =
            found["Items"].as_array().unwrap().iter().filter(|item| item.get("hits").is_some()).collect();
        assert!(counted.len() == 1 && counted[0]["hits"]["N"] == "10", "{scan}");
    }
}

#[test]
fn an_index_one_of_whose_attributes_is_spread_is_read_as_unsharded() {
    let plain = gateway("");
    crowd(&plain);
    let rule = "[[rule]]\ntable = \"Tasks\"\nindex = \"apart\"\nstrategy = \"calculated\"\nshards = 3\n";
    // With the table's own keys the partition key of `hash` is spread twice.
    for rules in [rule.to_owned(), format!("{SHARDED}{rule}"), format!("{ASSIGNED}{rule}")] {
        let sharded = gateway(&rules);
        crowd(&sharded);
        for (query, sorts) in queries() {
            for more in [json!({}), json!({ "Limit": 3, "ScanIndexForward": false })] {
                let mut body = query.clone();
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let expected = seen(&plain, Operation::Query, body.clone(), sorts);
                assert_eq!(seen(&sharded, Operation::Query, body.clone(), sorts), expected, "{rules} {body}");
            }
        }
        let scan = json!({ "TableName": "Tasks", "IndexName": "apart", "Limit": 50 });
        let expected = seen(&plain, Operation::Scan, scan.clone(), &[]).1;
        assert_eq!(seen(&sharded, Operation::Scan, scan, &[]).1, expected, "{rules}");
    }
}

#[test]
fn what_no_such_index_allows_is_refused_with_the_reason() {
    let counters =
        "[[rule]]\ntable = \"Tasks\"\nstrategy = \"counter\"\nattributes = [\"due\"]\nshards = 4\n";
    let error = call(&gateway(counters), Operation::CreateTable, &create()).unwrap_err();
    assert!(error.message.unwrap().contains("due is a key of the index by-team"));
    // Which buckets there are only the directory knows, and it takes no part in combinations.
    let spread = "[[rule]]\ntable = \"Tasks\"\nindex = \"apart\"\nstrategy = \"calculated\"\nshards = 3\n";
    let service = gateway(&format!("{}{spread}", LAYOUTS[4]));
    crowd(&service);
    for (query, _) in queries() {
        match (&query["IndexName"], call(&service, Operation::Query, &query)) {
            (index, Err(error)) if index == "hash" => {
                assert!(
                    error.message.unwrap().contains("pk in its partition key, which is stored in buckets")
                );
            }
            (index, answer) => assert!(index != "hash" && answer.is_ok(), "{query}"),
        }
    }
}
