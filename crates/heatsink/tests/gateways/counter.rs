//! Counters through the service over the embedded engine: exact sums under concurrency, exact
//! resets and deletes, what is refused.
//!
//! Every run is one thread whose tasks take turns as a seed says, so a failure replays.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::late::{self, call, turn};
use bytes::Bytes;
use fastrand::Rng;
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use heatsink::Gateway;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

/// A service with counters of `votes` and `likes`, and the store behind it.
struct World {
    service: Rc<Gateway>,
    raw: Arc<Embedded>,
}

impl World {
    fn new(seed: u64, shards: u16) -> World {
        let raw = Arc::new(Embedded::memory().unwrap());
        let rules = format!(
            r#"rule = [{{ table = "Votes", keys = "c*", strategy = "counter", attributes = ["votes", "likes"], shards = {shards} }}]"#
        );
        let service = Rc::new(late::service(&raw, seed, &rules));
        let table = json!({
            "TableName": "Votes", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        });
        let world = World { service, raw };
        world.call(Operation::CreateTable, table).unwrap();
        world
    }

    fn call(&self, operation: Operation, body: Json) -> Result<Json, Error> {
        block_on(call(&self.service, operation, body))
    }

    /// An item as clients see it.
    fn item(&self, key: &str) -> Json {
        let get = json!({"TableName": "Votes", "Key": {"pk": {"S": key}}, "ConsistentRead": true});
        self.call(Operation::GetItem, get).unwrap()["Item"].clone()
    }

    /// The rows in the store.
    fn rows(&self) -> Vec<Json> {
        let scan = Bytes::from(json!({"TableName": "Votes"}).to_string());
        let answer = block_on(self.raw.call(Operation::Scan, scan)).unwrap();
        serde_json::from_slice::<Json>(&answer).unwrap()["Items"].as_array().unwrap().clone()
    }

    /// What a request is refused with; nothing may have changed by it.
    fn refused(&self, operation: Operation, body: Json) -> String {
        let before = self.rows();
        let error = self.call(operation, body).unwrap_err();
        assert_eq!(error.code, Code::ValidationException, "{error}");
        assert_eq!(self.rows(), before);
        error.message.unwrap()
    }
}

fn add(key: &str, attribute: &str, amount: i64) -> Json {
    json!({
        "TableName": "Votes", "Key": {"pk": {"S": key}},
        "UpdateExpression": "ADD #a :n", "ExpressionAttributeNames": {"#a": attribute},
        "ExpressionAttributeValues": {":n": {"N": amount.to_string()}},
    })
}

fn update(key: &str, expression: &str, values: Json) -> Json {
    let mut body = json!({"TableName": "Votes", "Key": {"pk": {"S": key}}, "UpdateExpression": expression});
    if values != json!({}) {
        body["ExpressionAttributeValues"] = values;
    }
    body
}

const ADDERS: usize = 12;
const ADDS: usize = 40;

#[test]
fn many_adders_at_once_lose_nothing_and_count_nothing_twice() {
    for seed in 0..10 {
        let world = World::new(seed, 10);
        let mut pool = LocalPool::new();
        let total = Rc::new(Cell::new(0));
        for adder in 0..ADDERS {
            let (service, total) = (world.service.clone(), total.clone());
            let mut rng = Rng::with_seed(seed * 100 + adder as u64);
            let adds = async move {
                for _ in 0..ADDS {
                    let amount = rng.i64(-3..10);
                    call(&service, Operation::UpdateItem, add("c1", "votes", amount)).await.unwrap();
                    total.set(total.get() + amount);
                }
            };
            pool.spawner().spawn_local(adds).unwrap();
        }
        pool.run();
        assert_eq!(
            world.item("c1"),
            json!({"pk": {"S": "c1"}, "votes": {"N": total.get().to_string()}}),
            "seed {seed}"
        );
        let rows = world.rows();
        assert_eq!(rows.len(), 10, "all rows take part: {rows:?}");
    }
}

/// Beside adders the counter is read, and never seen above what was sent or below what was
/// acknowledged.
#[test]
fn readers_beside_adders_see_what_was_acknowledged() {
    for seed in 0..10 {
        let world = World::new(seed, 5);
        let mut pool = LocalPool::new();
        let (sent, acknowledged) = (Rc::new(Cell::new(0_i64)), Rc::new(Cell::new(0_i64)));
        for _ in 0..4 {
            let (service, sent, acknowledged) = (world.service.clone(), sent.clone(), acknowledged.clone());
            let adds = async move {
                for _ in 0..ADDS {
                    sent.set(sent.get() + 1);
                    call(&service, Operation::UpdateItem, add("c1", "votes", 1)).await.unwrap();
                    acknowledged.set(acknowledged.get() + 1);
                }
            };
            pool.spawner().spawn_local(adds).unwrap();
        }
        let reads = Rc::new(Cell::new(0));
        let reader = {
            let (service, reads) = (world.service.clone(), reads.clone());
            async move {
                while acknowledged.get() < 4 * ADDS as i64 {
                    let low = acknowledged.get();
                    let get =
                        json!({"TableName": "Votes", "Key": {"pk": {"S": "c1"}}, "ConsistentRead": true});
                    let item = call(&service, Operation::GetItem, get).await.unwrap();
                    let seen: i64 =
                        item["Item"]["votes"]["N"].as_str().map_or(0, |text| text.parse().unwrap());
                    assert!((low..=sent.get()).contains(&seen), "{seen} is not in {low}..={}", sent.get());
                    reads.set(reads.get() + 1);
                    turn().await;
                }
            }
        };
        pool.spawner().spawn_local(reader).unwrap();
        pool.run();
        assert!(reads.get() > 5);
    }
}

/// What a counter showed is one of the values that adds, resets and deletes, in some order that
/// respects who waited for whom, give at the end: each task's last operation and all adds behind
/// the last reset that took effect. Checked by keeping one writer who alternates reset and adds
/// alone, beside readers of other keys, and then by the rows that are left.
#[test]
fn a_reset_and_a_delete_take_effect_on_all_rows() {
    for seed in 0..10 {
        let world = World::new(seed, 7);
        let mut pool = LocalPool::new();
        let failures = Rc::new(RefCell::new(Vec::new()));
        for key in ["c1", "c2", "c3"] {
            let (service, failures) = (world.service.clone(), failures.clone());
            let mut rng = Rng::with_seed(seed);
            let work = async move {
                let mut model: Option<(Option<i64>, Option<i64>)> = None;
                for step in 0..60 {
                    let amount = rng.i64(1..9);
                    let value = json!({":n": {"N": amount.to_string()}});
                    let (operation, body) = match rng.u32(..10) {
                        0 => (Operation::UpdateItem, update(key, "SET votes = :n", value)),
                        1 => (Operation::UpdateItem, update(key, "REMOVE votes", json!({}))),
                        2 => {
                            (Operation::DeleteItem, json!({"TableName": "Votes", "Key": {"pk": {"S": key}}}))
                        }
                        3 => (
                            Operation::PutItem,
                            json!({"TableName": "Votes", "Item": {"pk": {"S": key}, "votes": {"N": amount.to_string()}}}),
                        ),
                        4 => (Operation::UpdateItem, update(key, "SET votes = :n REMOVE likes", value)),
                        5..=7 => (Operation::UpdateItem, add(key, "votes", amount)),
                        _ => (Operation::UpdateItem, add(key, "likes", amount)),
                    };
                    let expression = body["UpdateExpression"].as_str().unwrap_or_default();
                    let now = model.unwrap_or_default();
                    model = match (operation, expression) {
                        (Operation::DeleteItem, _) => None,
                        (Operation::PutItem, _) | (_, "SET votes = :n REMOVE likes") => {
                            Some((Some(amount), None))
                        }
                        (_, "SET votes = :n") => Some((Some(amount), now.1)),
                        (_, "REMOVE votes") => Some((None, now.1)),
                        _ if body["ExpressionAttributeNames"]["#a"] == "votes" => {
                            Some((Some(now.0.unwrap_or(0) + amount), now.1))
                        }
                        _ => Some((now.0, Some(now.1.unwrap_or(0) + amount))),
                    };
                    call(&service, operation, body).await.unwrap();
                    let get = json!({"TableName": "Votes", "Key": {"pk": {"S": key}}});
                    let seen = call(&service, Operation::GetItem, get).await.unwrap();
                    let mut expected = json!({});
                    if let Some((votes, likes)) = model {
                        expected["Item"] = json!({"pk": {"S": key}});
                        for (name, value) in [("votes", votes), ("likes", likes)] {
                            if let Some(value) = value {
                                expected["Item"][name] = json!({"N": value.to_string()});
                            }
                        }
                    }
                    if seen != expected {
                        failures
                            .borrow_mut()
                            .push(format!("seed {seed}, {key}, step {step}: {seen} is not {expected}"));
                        return;
                    }
                }
            };
            pool.spawner().spawn_local(work).unwrap();
        }
        pool.run();
        assert!(failures.borrow().is_empty(), "{:?}", failures.borrow());
        for key in ["c1", "c2", "c3"] {
            world
                .call(Operation::DeleteItem, json!({"TableName": "Votes", "Key": {"pk": {"S": key}}}))
                .unwrap();
        }
        assert_eq!(world.rows(), Vec::<Json>::new(), "seed {seed}");
    }
}

/// Batches beside adds: a counter that a batch writes is whole at every moment, as a read of all
/// its rows at one moment shows.
#[test]
fn a_batch_replaces_a_counter_at_one_moment() {
    for seed in 0..10 {
        let world = World::new(seed, 5);
        let mut pool = LocalPool::new();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let service = world.service.clone();
        let writer = async move {
            for round in 0..20 {
                let put =
                    |key: &str| json!({"PutRequest": {"Item": {"pk": {"S": key}, "votes": {"N": "1000"}}}});
                let delete = |key: &str| json!({"DeleteRequest": {"Key": {"pk": {"S": key}}}});
                let entries =
                    if round % 2 == 0 { [put("c1"), put("d1")] } else { [delete("c1"), delete("d1")] };
                let mut left = json!({"Votes": entries});
                while left != json!({}) {
                    let batch = json!({"RequestItems": left});
                    // A batch of which nothing could be written fails, and is sent again.
                    if let Ok(answer) = call(&service, Operation::BatchWriteItem, batch).await {
                        left = answer["UnprocessedItems"].clone();
                    }
                }
                for _ in 0..7 {
                    call(&service, Operation::UpdateItem, add("c1", "votes", 1)).await.unwrap();
                }
            }
        };
        pool.spawner().spawn_local(writer).unwrap();
        let (service, seen_by_reader) = (world.service.clone(), seen.clone());
        let reader = async move {
            let get = json!({"Get": {"TableName": "Votes", "Key": {"pk": {"S": "c1"}}}});
            for _ in 0..200 {
                let got = call(&service, Operation::TransactGetItems, json!({"TransactItems": [get]}))
                    .await
                    .unwrap();
                let votes = got["Responses"][0]["Item"]["votes"]["N"]
                    .as_str()
                    .map(|text| text.parse::<i64>().unwrap());
                seen_by_reader.borrow_mut().push(votes);
                turn().await;
            }
        };
        pool.spawner().spawn_local(reader).unwrap();
        pool.run();
        let whole = |votes: &Option<i64>| {
            votes.is_none_or(|votes| (1..=7).contains(&votes) || (1000..=1007).contains(&votes))
        };
        assert!(seen.borrow().iter().all(whole), "seed {seed}: {:?}", seen.borrow());
        assert_eq!(world.item("c1"), json!({"pk": {"S": "c1"}, "votes": {"N": "7"}}));
        assert!(world.item("d1").is_null());
    }
}

/// Deletes beside adds: whatever the order, row 0 is there whenever another row is, and what is
/// shown is what the rows hold.
#[test]
fn row_0_is_there_whenever_another_row_is() {
    for seed in 0..20 {
        let world = World::new(seed, 4);
        let mut pool = LocalPool::new();
        for task in 0..6 {
            let service = world.service.clone();
            let work = async move {
                for _ in 0..15 {
                    if task == 0 {
                        let delete = json!({"TableName": "Votes", "Key": {"pk": {"S": "c1"}}});
                        call(&service, Operation::DeleteItem, delete).await.unwrap();
                    } else {
                        call(&service, Operation::UpdateItem, add("c1", "votes", 1)).await.unwrap();
                    }
                }
            };
            pool.spawner().spawn_local(work).unwrap();
        }
        pool.run();
        let rows = world.rows();
        let sum: i64 = rows.iter().filter_map(|row| row["votes"]["N"].as_str()?.parse::<i64>().ok()).sum();
        assert!(rows.is_empty() || rows.iter().any(|row| row["pk"]["S"] == "c1"), "seed {seed}: {rows:?}");
        let item = world.item("c1");
        assert_eq!(item.is_null(), rows.is_empty());
        assert!(item.is_null() || item["votes"]["N"] == json!(sum.to_string()), "{item} {rows:?}");
    }
}

#[test]
fn what_no_row_can_know_is_refused_with_the_reason() {
    let world = World::new(1, 6);
    for _ in 0..9 {
        world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
    }
    let one = json!({":n": {"N": "1"}});
    let with = |mut body: Json, name: &str, value: Json| {
        body[name] = value;
        body
    };
    let title = update("c1", "SET title = :n", one.clone());
    let cases = [
        (update("c1", "SET votes = votes + :n", one.clone()), "Use ADD votes :n"),
        (update("c1", "SET title = votes", json!({})), "SET cannot read votes"),
        (update("c1", "SET title = if_not_exists(votes, :n)", one.clone()), "SET cannot read votes"),
        (update("c1", "SET votes = title", json!({})), "takes a number given in the request"),
        (update("c1", "SET votes = :n", json!({":n": {"S": "many"}})), "takes numbers only"),
        (update("c1", "ADD votes :n", json!({":n": {"NS": ["1"]}})), "takes numbers only"),
        (with(add("c1", "votes", 1), "ReturnValues", json!("UPDATED_NEW")), "ids taken from it would repeat"),
        (with(title.clone(), "ReturnValues", json!("ALL_NEW")), "would show a part of the numbers"),
        (with(title.clone(), "ConditionExpression", json!("votes < :n")), "a condition cannot read votes"),
        (
            with(
                with(title, "ConditionExpression", json!("attribute_exists(pk)")),
                "ReturnValuesOnConditionCheckFailure",
                json!("ALL_OLD"),
            ),
            "Read the item with GetItem",
        ),
    ];
    for (body, words) in cases {
        let message = world.refused(Operation::UpdateItem, body.clone());
        assert!(message.contains(words), "{body}\n{message}");
        let rule = "(the rules in force for table Votes: keys \"c*\": counters of votes, likes in 6 shards)";
        assert!(message.ends_with(rule), "{message}");
    }
    let put = json!({"PutRequest": {"Item": {"pk": {"S": "c1"}, "votes": {"S": "many"}}}});
    let batch = json!({"RequestItems": {"Votes": [{"PutRequest": {"Item": {"pk": {"S": "d1"}}}}, put]}});
    assert!(world.refused(Operation::BatchWriteItem, batch).contains("takes numbers only"));
    let delete = json!({"TableName": "Votes", "Key": {"pk": {"S": "c1"}}, "ReturnValues": "ALL_OLD"});
    assert!(world.refused(Operation::DeleteItem, delete).contains("would show a part"));
    let statements = [
        ("UPDATE Votes SET votes = votes + 1 WHERE pk = 'c1'", "Use UpdateItem with ADD votes :n"),
        ("UPDATE Votes SET title = 'x' WHERE pk = 'c1' AND votes > 3", "a condition cannot read votes"),
        (
            "UPDATE Votes SET title = 'x' WHERE pk = 'c1' RETURNING ALL NEW *",
            "would show a part of the numbers",
        ),
        ("UPDATE Votes SET votes = 0 WHERE pk = 'c1'", "concerns all its fragments. Use UpdateItem"),
        ("UPDATE Votes SET votes = 'none' REMOVE likes WHERE pk = 'c1'", "takes numbers only"),
        (
            "UPDATE Votes SET votes = title REMOVE likes WHERE pk = 'c1'",
            "takes a number given in the request",
        ),
        (
            "UPDATE Votes SET votes = 0 REMOVE likes WHERE pk = 'c1' RETURNING MODIFIED NEW *",
            "would show a part",
        ),
        ("DELETE FROM Votes WHERE pk = 'c1' RETURNING ALL OLD *", "would show a part of the numbers"),
        ("DELETE FROM Votes WHERE pk = 'c1' AND votes = 9", "a condition cannot read votes"),
        ("INSERT INTO Votes VALUE {'pk': 'c9', 'votes': 'many'}", "takes numbers only"),
    ];
    for (statement, words) in statements {
        let message = world.refused(Operation::ExecuteStatement, json!({ "Statement": statement }));
        assert!(message.contains(words), "{statement}\n{message}");
    }
    let alone = json!({"Statements": [{"Statement": "DELETE FROM Votes WHERE pk = 'c1'"}]});
    let answer = world.call(Operation::BatchExecuteStatement, alone).unwrap();
    let message = answer["Responses"][0]["Error"]["Message"].as_str().unwrap();
    assert!(message.contains("Use ExecuteStatement or ExecuteTransaction"), "{message}");
    let expires =
        json!({"TableName": "Votes", "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": true}});
    assert!(world.refused(Operation::UpdateTimeToLive, expires).contains("time to live"));
    assert_eq!(world.item("c1"), json!({"pk": {"S": "c1"}, "votes": {"N": "9"}}));
}

#[test]
fn statements_of_counters() {
    let world = World::new(1, 6);
    let execute =
        |statement: &str| world.call(Operation::ExecuteStatement, json!({ "Statement": statement }));
    execute("INSERT INTO Votes VALUE {'pk': 'c1', 'votes': 5}").unwrap();
    for _ in 0..9 {
        world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
    }
    assert_eq!(
        execute("INSERT INTO Votes VALUE {'pk': 'c1'}").unwrap_err().code,
        Code::DuplicateItemException
    );
    execute("UPDATE Votes SET title = 'x' WHERE pk = 'c1'").unwrap();
    let item = json!([{"pk": {"S": "c1"}, "votes": {"N": "14"}, "title": {"S": "x"}}]);
    for condition in ["WHERE pk = 'c1'", "WHERE pk = 'c1' AND votes > 13", "", "WHERE votes = 14"] {
        let found = execute(&format!("SELECT * FROM Votes {condition}")).unwrap();
        assert_eq!(found["Items"], item, "{condition}");
    }
    assert_eq!(execute("SELECT votes FROM Votes WHERE votes < 14").unwrap()["Items"], json!([]));
    let statements = json!({"TransactStatements": [
        {"Statement": "INSERT INTO Votes VALUE {'pk': 'c2', 'likes': 1}"}, {"Statement": "UPDATE Votes SET title = 'y' WHERE pk = 'c1'"},
    ]});
    world.call(Operation::ExecuteTransaction, statements).unwrap();
    assert_eq!(
        (&world.item("c1")["title"]["S"], &world.item("c2")["likes"]["N"]),
        (&json!("y"), &json!("1"))
    );
}

#[test]
fn statements_that_set_or_delete_a_counter_concern_all_its_fragments() {
    let world = World::new(1, 6);
    let execute =
        |statement: &str| world.call(Operation::ExecuteStatement, json!({ "Statement": statement }));
    let fill = || {
        for _ in 0..9 {
            world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
            world.call(Operation::UpdateItem, add("c1", "likes", 2)).unwrap();
        }
    };
    fill();
    let set = "UPDATE Votes SET votes = 3 REMOVE likes WHERE pk = 'c1'";
    assert_eq!(
        execute(&format!("{set} AND attribute_exists(title)")).unwrap_err().code,
        Code::ConditionalCheckFailedException
    );
    assert_eq!(world.item("c1")["votes"]["N"], "9");
    assert_eq!(execute(set).unwrap(), json!({"Items": []}));
    assert_eq!(world.item("c1"), json!({"pk": {"S": "c1"}, "votes": {"N": "3"}}));
    fill();
    assert_eq!(world.item("c1")["votes"]["N"], "12");
    assert_eq!(execute("DELETE FROM Votes WHERE pk = 'c1'").unwrap(), json!({"Items": []}));
    assert_eq!(world.item("c1"), Json::Null);
    // Of an item that is not there, as on any table.
    assert_eq!(execute(set).unwrap_err().code, Code::ConditionalCheckFailedException);
    assert_eq!(execute("DELETE FROM Votes WHERE pk = 'c1'").unwrap(), json!({"Items": []}));
    fill();
    let transaction = |statements: [&str; 2]| {
        let statements: Vec<Json> = statements.iter().map(|text| json!({ "Statement": text })).collect();
        world.call(Operation::ExecuteTransaction, json!({ "TransactStatements": statements }))
    };
    let delete = "DELETE FROM Votes WHERE pk = 'c1'";
    let cancelled = transaction([delete, "UPDATE Votes SET title = 'x' WHERE pk = 'absent'"]).unwrap_err();
    let reasons = cancelled.members["CancellationReasons"].as_array().unwrap();
    let codes: Vec<&str> = reasons.iter().map(|reason| reason["Code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed"]);
    assert_eq!(world.item("c1")["likes"]["N"], "18");
    transaction([delete, "INSERT INTO Votes VALUE {'pk': 'c2', 'votes': 1}"]).unwrap();
    assert_eq!((world.item("c1"), &world.item("c2")["votes"]["N"]), (Json::Null, &json!("1")));
}

#[test]
fn transactions_and_batches_of_counters() {
    let world = World::new(1, 6);
    for _ in 0..9 {
        world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
        world.call(Operation::UpdateItem, add("d1", "votes", 1)).unwrap();
    }
    let get = |key: &str| json!({"Get": {"TableName": "Votes", "Key": {"pk": {"S": key}}}});
    let got = world
        .call(Operation::TransactGetItems, json!({"TransactItems": [get("c1"), get("d1"), get("c2")]}))
        .unwrap();
    let item = |key: &str| json!({"Item": {"pk": {"S": key}, "votes": {"N": "9"}}});
    assert_eq!(got, json!({"Responses": [item("c1"), item("d1"), {}]}));

    let names = json!({"RequestItems": {"Votes": {"Keys": [{"pk": {"S": "c1"}}, {"pk": {"S": "d1"}}, {"pk": {"S": "c3"}}], "ProjectionExpression": "votes"}}});
    let got = world.call(Operation::BatchGetItem, names).unwrap();
    assert_eq!(
        got,
        json!({"Responses": {"Votes": [{"votes": {"N": "9"}}, {"votes": {"N": "9"}}]}, "UnprocessedKeys": {}})
    );

    let failing = json!({"TransactItems": [
        {"Delete": {"TableName": "Votes", "Key": {"pk": {"S": "c1"}}}},
        {"ConditionCheck": {"TableName": "Votes", "Key": {"pk": {"S": "c2"}}, "ConditionExpression": "attribute_exists(pk)"}},
    ]});
    let error = world.call(Operation::TransactWriteItems, failing).unwrap_err();
    assert_eq!(error.members["CancellationReasons"].as_array().unwrap().len(), 2);
    assert!(error.message.unwrap().ends_with("[None, ConditionalCheckFailed]"));

    let many: Vec<Json> = (0..20)
        .map(|number| json!({"Delete": {"TableName": "Votes", "Key": {"pk": {"S": format!("c{number}")}}}}))
        .collect();
    assert!(
        world
            .refused(Operation::TransactWriteItems, json!({"TransactItems": many}))
            .contains("at most 100 actions")
    );

    let writes = json!({"TransactItems": [
        {"Delete": {"TableName": "Votes", "Key": {"pk": {"S": "c1"}}}},
        {"Update": add("c2", "votes", 5)},
    ]});
    world.call(Operation::TransactWriteItems, writes).unwrap();
    assert_eq!(
        (world.item("c1"), world.item("c2")),
        (Json::Null, json!({"pk": {"S": "c2"}, "votes": {"N": "5"}}))
    );
}

/// Nothing can follow the one item of a key without sort key, so DynamoDB gives no cursor behind
/// it.
#[test]
fn a_query_for_one_item_ends_with_it() {
    let world = World::new(1, 4);
    for _ in 0..8 {
        world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
    }
    for projection in ["pk, votes", "pk"] {
        let mut body = json!({"TableName": "Votes", "Limit": 1, "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "c1"}}, "ProjectionExpression": projection});
        let page = world.call(Operation::Query, body.clone()).unwrap();
        assert_eq!((&page["Count"], &page["LastEvaluatedKey"]), (&json!(1), &Json::Null), "{page}");
        // A client may make one.
        body["ExclusiveStartKey"] = json!({"pk": {"S": "c1"}});
        assert_eq!(world.call(Operation::Query, body).unwrap()["Count"], 0);
    }
}

#[test]
fn a_scan_shows_whole_items_and_each_once() {
    let world = World::new(3, 6);
    for number in 0..8 {
        for _ in 0..10 {
            world.call(Operation::UpdateItem, add(&format!("c{number}"), "votes", 1)).unwrap();
        }
        world.call(Operation::UpdateItem, add(&format!("d{number}"), "votes", 10)).unwrap();
    }
    for limit in [1, 3, 100] {
        let mut scan = json!({"TableName": "Votes", "Limit": limit, "FilterExpression": "votes = :n", "ExpressionAttributeValues": {":n": {"N": "10"}}});
        let mut keys = Vec::new();
        loop {
            let page = world.call(Operation::Scan, scan.clone()).unwrap();
            let items = page["Items"].as_array().unwrap();
            assert_eq!(page["Count"], items.len());
            keys.extend(items.iter().map(|item| item["pk"]["S"].as_str().unwrap().to_owned()));
            let Some(last) = page.get("LastEvaluatedKey") else { break };
            assert_eq!(page["ScannedCount"], limit);
            scan["ExclusiveStartKey"] = last.clone();
        }
        keys.sort();
        assert_eq!(keys.len(), 16, "limit {limit}: {keys:?}");
        keys.dedup();
        assert_eq!(keys.len(), 16);
    }
}

/// Each row is written by itself, and a stream shows that: logical keys, and a part of the number
/// in each.
#[test]
fn streams_show_the_writes_of_each_row_under_the_logical_key() {
    let world = World::new(5, 4);
    let stream = json!({"TableName": "Votes", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"}});
    world.call(Operation::UpdateTable, stream).unwrap();
    for _ in 0..12 {
        world.call(Operation::UpdateItem, add("c1", "votes", 1)).unwrap();
    }
    let described = world.call(Operation::DescribeTable, json!({"TableName": "Votes"})).unwrap();
    let arn = &described["Table"]["LatestStreamArn"];
    let shards = world.call(Operation::DescribeStream, json!({"StreamArn": arn})).unwrap();
    let mut rows = Vec::new();
    for shard in shards["StreamDescription"]["Shards"].as_array().unwrap() {
        let iterator =
            json!({"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"});
        let from = world.call(Operation::GetShardIterator, iterator).unwrap();
        let records =
            world.call(Operation::GetRecords, json!({"ShardIterator": from["ShardIterator"]})).unwrap();
        rows.extend(records["Records"].as_array().unwrap().iter().map(|record| record["dynamodb"].clone()));
    }
    // Three adds for each of four rows; a row that was not there is made by its first.
    let parts: Vec<&str> = rows.iter().filter_map(|row| row["NewImage"]["votes"]["N"].as_str()).collect();
    assert!(rows.iter().all(|row| row["Keys"] == json!({"pk": {"S": "c1"}})), "{rows:?}");
    assert_eq!(parts.iter().filter(|part| **part == "3").count(), 4, "{parts:?}");
    assert_eq!(world.item("c1")["votes"]["N"], "12");
}

/// Nobody but a writer past Heatsink can do that; a page of many items is of no use where it does
/// not say which.
#[test]
fn a_sum_that_cannot_be_read_is_told_with_its_item() {
    let world = World::new(1, 4);
    for key in ["c1", "c2"] {
        world.call(Operation::PutItem, json!({"TableName": "Votes", "Item": {"pk": {"S": key}}})).unwrap();
    }
    let stray = json!({"pk": {"S": "c2#~3"}, "votes": {"S": "many"}});
    let put = Bytes::from(json!({"TableName": "Votes", "Item": stray}).to_string());
    block_on(world.raw.call(Operation::PutItem, put)).unwrap();
    let scan = world.refused(Operation::Scan, json!({"TableName": "Votes"}));
    assert!(scan.contains(r#"{"S":"c2"}"#) && scan.contains("a value of type S"), "{scan}");
    let one = json!({"TableName": "Votes", "Key": {"pk": {"S": "c1"}}});
    assert_eq!(world.call(Operation::GetItem, one).unwrap()["Item"]["pk"]["S"], "c1");
}
