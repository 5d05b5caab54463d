//! A copy of a table that is fed from its stream, past Heatsink, while a key moves there and back:
//! it is told which records are moves, and ends as the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::EndedAs;
use heatsink_dynamo::Operation;
use heatsink_layout::{MARKED, MOVED};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use super::town::{INDEX, RULES, Town, table};

type Items = BTreeMap<String, Json>;

fn town(view: &str) -> Arc<Town> {
    let mut streamed = table(&[(INDEX, &["status"])]);
    streamed["StreamSpecification"] = json!({ "StreamEnabled": true, "StreamViewType": view });
    let store = Arc::new(Embedded::memory().unwrap());
    Town::over(store, &streamed, &["one", "two", "three"], RULES, Fencing::shared)
}

/// Puts, updates, deletes and reads items of its own; what there are at the end, and how many
/// deletes there were of one.
fn client(town: &Town, name: usize, over: &AtomicBool) -> (Items, usize) {
    let mut rng = Rng::with_seed(name as u64);
    let (mut own, mut deletes) = (Items::new(), 0);
    let mut times = 0_u64;
    while !over.load(Ordering::Relaxed) {
        times += 1;
        let sort = format!("{name}-{:02}", rng.u32(..40));
        let key = json!({ "pk": { "S": "game" }, "sk": { "S": sort } });
        let number = json!({ "N": times.to_string() });
        match rng.u32(..6) {
            0 | 1 => {
                let mut item = key.clone();
                (item["v"], item["status"]) = (number, json!({ "S": "open" }));
                town.insist(&mut rng, Operation::PutItem, &json!({ "TableName": "Scores", "Item": item }))
                    .unwrap();
                own.insert(sort, item);
            }
            2 => {
                let body = json!({
                    "TableName": "Scores", "Key": key, "UpdateExpression": "SET v = :v, #s = :s", "ReturnValues": "ALL_NEW",
                    "ExpressionAttributeNames": { "#s": "status" },
                    "ExpressionAttributeValues": { ":v": number, ":s": { "S": "open" } },
                });
                let answer = town.insist(&mut rng, Operation::UpdateItem, &body).unwrap();
                let mut item = key;
                (item["v"], item["status"]) = (number, json!({ "S": "open" }));
                assert_eq!(answer["Attributes"], item);
                own.insert(sort, item);
            }
            3 => {
                let body = json!({ "TableName": "Scores", "Key": key, "ReturnValues": "ALL_OLD" });
                let answer = town.insist(&mut rng, Operation::DeleteItem, &body).unwrap();
                let before = own.remove(&sort);
                assert_eq!(answer.get("Attributes"), before.as_ref());
                deletes += usize::from(before.is_some());
            }
            4 => {
                let body = json!({ "TableName": "Scores", "Key": key, "ConsistentRead": true });
                let answer = town.insist(&mut rng, Operation::GetItem, &body).unwrap();
                assert_eq!(answer.get("Item"), own.get(&sort));
            }
            _ => {
                let mut body = json!({
                    "TableName": "Scores", "ConsistentRead": true,
                    "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
                    "ExpressionAttributeValues": { ":p": { "S": "game" }, ":s": { "S": format!("{name}-") } },
                });
                let page = town.insist(&mut rng, Operation::Query, &body).unwrap();
                assert_eq!(page["Items"], json!(own.values().collect::<Vec<_>>()));
                // Rows of others, too, and none with an attribute that nobody wrote.
                body["IndexName"] = json!(INDEX);
                body["KeyConditionExpression"] = json!("#s = :o");
                body["ExpressionAttributeNames"] = json!({ "#s": "status" });
                body["ExpressionAttributeValues"] = json!({ ":o": { "S": "open" } });
                body.as_object_mut().unwrap().remove("ConsistentRead");
                let page = town.insist(&mut rng, Operation::Query, &body).unwrap();
                let scan = json!({ "TableName": "Scores", "ConsistentRead": true });
                let scanned = town.insist(&mut rng, Operation::Scan, &scan).unwrap();
                assert!(!page.to_string().contains(MOVED) && !scanned.to_string().contains(MOVED));
            }
        }
    }
    (own, deletes)
}

/// All records of the table's stream, read so.
fn records(call: &dyn Fn(Operation, Json) -> Json) -> Vec<Json> {
    let listed = call(Operation::ListStreams, json!({ "TableName": "Scores" }));
    let arn = &listed["Streams"][0]["StreamArn"];
    let described = call(Operation::DescribeStream, json!({ "StreamArn": arn }));
    let mut found = Vec::new();
    for shard in described["StreamDescription"]["Shards"].as_array().unwrap() {
        let from =
            json!({ "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON" });
        let mut iterator = call(Operation::GetShardIterator, from)["ShardIterator"].clone();
        // A page without records may follow one whose records are all of moves.
        let mut empty = 0;
        while !iterator.is_null() && empty < 3 {
            let page = call(Operation::GetRecords, json!({ "ShardIterator": iterator }));
            let records = page["Records"].as_array().unwrap();
            empty = if records.is_empty() { empty + 1 } else { 0 };
            found.extend(records.iter().cloned());
            iterator = page["NextShardIterator"].clone();
        }
    }
    found
}

/// What a reader makes of these records who leaves out those that are marked, and how many deletes
/// he saw.
fn mirror(records: &[Json]) -> (Items, usize) {
    let (mut items, mut deletes) = (Items::new(), 0);
    for record in records {
        let change = &record["dynamodb"];
        if ["NewImage", "OldImage"].iter().any(|image| change[image].get(MOVED).is_some()) {
            continue;
        }
        let sort = change["Keys"]["sk"]["S"].as_str().unwrap().to_owned();
        if record["eventName"] == "REMOVE" {
            deletes += 1;
            items.remove(&sort);
        } else {
            let mut item = change["NewImage"].clone();
            item["pk"] = json!({ "S": "game" });
            items.insert(sort, item);
        }
    }
    (items, deletes)
}

#[test]
fn a_mirror_that_leaves_out_what_is_marked_ends_as_the_table() {
    let town = town("NEW_AND_OLD_IMAGES");
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..3)
        .map(|name| {
            let (town, over) = (Arc::clone(&town), Arc::clone(&over));
            std::thread::spawn(move || client(&town, name, &over))
        })
        .collect();
    let _carried = town.carry();
    for (asked, shards) in (1..).zip([4_u16, 13, 3, 1]) {
        town.ask("game", shards.into(), asked);
        let (how, text) = town.ended("game");
        assert_eq!(how, EndedAs::Moved, "{text}");
    }
    over.store(true, Ordering::Relaxed);
    let (mut items, mut deletes) = (Items::new(), 0);
    for client in clients {
        let (own, of_own) = client.join().unwrap();
        items.extend(own);
        deletes += of_own;
    }
    let raw = |operation, body: Json| {
        let answer = block_on(town.raw.call(operation, Bytes::from(body.to_string()))).unwrap();
        serde_json::from_slice(&answer).unwrap()
    };
    let past = records(&raw);
    let marked = past.iter().filter(|record| record.to_string().contains(MOVED)).count();
    assert!(marked > 100, "{marked}");
    let (shown, seen) = mirror(&past);
    let differ = |sort: &&String| shown.get(*sort) != items.get(*sort);
    let wrong: Vec<_> = shown.keys().chain(items.keys()).filter(differ).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(seen, deletes);
    let through = records(&|operation, body| town.call(0, operation, &body).unwrap());
    assert!(!json!(through).to_string().contains(MOVED));
    assert!(through.iter().all(|record| record["dynamodb"]["Keys"]["pk"]["S"] == "game"));
    assert_eq!(through.len(), past.len() - marked);
    assert_eq!(mirror(&through), (shown, seen));
    // Nothing is left in the items themselves.
    assert!(!json!(town.scanned()).to_string().contains(MOVED));
}

#[test]
fn nothing_is_marked_where_no_record_shows_what_was_deleted() {
    let town = town("NEW_IMAGE");
    town.fill("game", 50);
    let _carried = town.carry();
    town.ask("game", 4.into(), 1);
    let (how, text) = town.ended("game");
    assert_eq!(how, EndedAs::Moved, "{text}");
    let raw = |operation, body: Json| {
        let answer = block_on(town.raw.call(operation, Bytes::from(body.to_string()))).unwrap();
        serde_json::from_slice(&answer).unwrap()
    };
    let past = records(&raw);
    assert!(past.len() > 60 && !json!(past).to_string().contains(MOVED), "{}", past.len());
}

/// With the mark it would be longer than an item may be: its move is one that readers are not told
/// of, and not one that fails.
#[test]
fn an_item_that_the_mark_would_make_too_long_moves_without_it() {
    let town = town("NEW_AND_OLD_IMAGES");
    // Two, so that one page of a Scan shows both.
    for sort in 0..2 {
        let mut item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{sort}-old") } });
        // 400 KB less the key's suffix: names and values.
        let room = 400 * 1024 - "pkgame".len() - "#~3".len() - "sk0-old".len() - "v".len();
        item["v"]["S"] = json!("x".repeat(room));
        assert!(item.to_string().len() > MARKED);
        let body = json!({ "TableName": "Scores", "Item": item });
        block_on(town.raw.call(Operation::PutItem, Bytes::from(body.to_string()))).unwrap();
    }
    let _carried = town.carry();
    town.ask("game", 4.into(), 1);
    let (how, text) = town.ended("game");
    assert_eq!((how, town.old()), (EndedAs::Moved, 2), "{text}");
    let lies = town.lies("game");
    assert!(lies.keys().any(|key| key != "game"), "{lies:?}");
}
