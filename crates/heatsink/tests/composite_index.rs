//! Tables with an index whose key has several partition or sort key attributes: passed through where no rule names them, sharded
//! where one does, and refused by name where a sharded table cannot answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const SHARDED: &str = "[[rule]]\ntable = \"Tasks\"\nstrategy = \"calculated\"\nshards = 4\n";
const ELSEWHERE: &str = "[[rule]]\ntable = \"Other\"\nstrategy = \"calculated\"\nshards = 4\n";
const ASSIGNED: &str = "[[rule]]\ntable = \"Tasks\"\nstrategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 4\n";

fn gateway(rules: &str) -> Gateway {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let rules = Rules::read("rules", rules).unwrap();
    block_on(Gateway::builder(store).rules(rules).start()).unwrap()
}

fn call(service: &Gateway, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = block_on(service.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// `of` holds the key attributes of two indexes: one apart from the table's key, one with the table's partition key in it.
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
        // Numbers of externally assigned shards are part of cursors by design; all else is the same.
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

#[test]
fn what_a_sharded_table_cannot_answer_is_refused_by_name() {
    let service = gateway(SHARDED);
    fill(&service);
    let of_owner = json!({
        "IndexName": "by-owner", "KeyConditionExpression": "team = :t AND pk = :r AND due < :d", "ExpressionAttributeNames": null,
    });
    let scan = json!({ "TableName": "Tasks", "IndexName": "by-owner" });
    let filter = json!({ "FilterExpression": "begins_with(pk, :t)" });
    for (operation, body, why) in [
        (Operation::Query, of_team(&of_owner), "The index by-owner"),
        (Operation::Scan, scan, "pk among them is stored with shard suffixes"),
        (Operation::Query, of_team(&filter), "a filter that reads pk"),
    ] {
        let error = call(&service, operation, &body).unwrap_err();
        assert_eq!(error.code, Code::ValidationException, "{error}");
        let message = error.message.unwrap();
        assert!(message.contains(why) && message.contains("rules in force for table Tasks"), "{message}");
    }
    let item = json!({ "TableName": "Tasks", "Key": { "pk": { "S": "user-1" }, "sk": { "S": "003" } } });
    assert_eq!(call(&service, Operation::GetItem, &item).unwrap()["Item"]["due"]["S"], "20");
}

#[test]
fn a_rule_for_such_an_index_is_refused_with_the_reason() {
    let service = gateway(&format!("[[rule]]\nindex = \"by-team\"\n{}", &SHARDED["[[rule]]\n".len()..]));
    let error = call(&service, Operation::CreateTable, &create()).unwrap_err();
    assert_eq!(error.code, Code::ValidationException);
    assert!(
        error.message.unwrap().contains("the index by-team has several attributes of one kind in its key")
    );
    let counters =
        "[[rule]]\ntable = \"Tasks\"\nstrategy = \"counter\"\nattributes = [\"due\"]\nshards = 4\n";
    let error = call(&gateway(counters), Operation::CreateTable, &create()).unwrap_err();
    assert!(error.message.unwrap().contains("due is a key of the index by-team"));
}
