//! Writes of an item that changes its slot, of every kind, in a table with time to live and in one
//! without: which go to the new slot at once, which bring the old copy first, and which wait.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

mod agreement;

use std::sync::Arc;

use crate::common::{Fixed, run};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, KeyValue, Operation, Origin, Outcome};
use heatsink_layout::{
    By, Hash, InForce, KeyLayouts, Layout, LayoutSource, Moving, Phase, RecordedKey, SortKey, Strategy, Table,
};
use heatsink_route::Router;
use serde_json::{Value as Json, json};

/// An item that lies in shard 1 of 10, from layout's golden vectors.
const KEY: &str = r#""pk":{"S":"game"},"sk":{"S":"0000123#player_7"}"#;
/// The same, to expire at some time.
const EXPIRING: &str =
    r#""pk":{"S":"game"},"sk":{"S":"0000123#player_7"},"a":{"S":"b"},"gone":{"N":"1767225601"}"#;

/// The table `Tab`, of which the key `game` moves from one shard to ten.
#[derive(Clone)]
struct Moves {
    phase: Phase,
    expires: Option<&'static str>,
    high_water: Option<&'static str>,
}

impl LayoutSource for Moves {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let table = Fixed { shards: 1 }.table(name)?;
        let in_force = self.in_force(&table, b"game");
        let recorded = RecordedKey { in_force, reserved: 10, since: 1, settled: false };
        let keys = Arc::new(KeyLayouts::new(1, [(b"game".to_vec(), recorded)]));
        Some(Arc::new(Arc::into_inner(table)?.with_key_layouts(keys)))
    }

    fn in_force(&self, _: &Table, key: &[u8]) -> InForce {
        let from = Arc::new(Layout::none());
        if key != b"game" {
            return InForce::Stable(from);
        }
        let strategy = Strategy::calculated(By::SortKey);
        let to = Arc::new(Layout { strategy, shards: 10, hash: Hash::JumpXxh3, version: 1 });
        let expires = self.expires.map(Arc::from);
        let high_water = self.high_water.map(|sort| KeyValue::S(sort.into()));
        InForce::Moving(Arc::new(Moving { from, to, phase: self.phase, expires, marks: false, high_water }))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It goes to the new slot, and nothing else is asked for.
    Blind,
    /// The old copy is brought to the new slot, then it goes there.
    Pulls,
    Waits,
}

fn does(moves: &Moves, operation: Operation, body: &str) -> Does {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let plan = match Router::new().plan(operation, &body, moves) {
        Ok(plan) => plan,
        Err(error) => {
            assert_eq!(error.origin, Origin::Held, "{error}");
            return Does::Waits;
        }
    };
    let mut calls = Vec::new();
    let answer = run(plan, |operation, body| {
        calls.push((operation, String::from_utf8(body.to_vec()).unwrap()));
        Ok(Bytes::from(match operation {
            Operation::GetItem => format!(r#"{{"Item":{{{KEY}}}}}"#),
            Operation::BatchWriteItem => r#"{"UnprocessedItems":{}}"#.to_owned(),
            _ => "{}".to_owned(),
        }))
    });
    answer.map_err(|error: Error| error.to_string()).unwrap();
    let (_, last) = calls.pop().unwrap();
    assert!(last.contains("game#~1"), "{last}");
    if calls.is_empty() {
        return Does::Blind;
    }
    let before: Vec<Operation> = calls.iter().map(|(operation, _)| *operation).collect();
    let pull = [Operation::GetItem, Operation::TransactWriteItems, Operation::TransactWriteItems];
    assert_eq!(before, pull, "{calls:?}");
    // The old copy is gone when the write is sent.
    assert!(calls[2].1.contains(r#""Delete":{"TableName":"Tab","Key":{"pk":{"S":"game"}"#), "{calls:?}");
    Does::Pulls
}

/// What it does in CHECK and in MOVE.
fn both(expires: Option<&'static str>, operation: Operation, body: &str) -> [Does; 2] {
    [Phase::Check, Phase::Move]
        .map(|phase| does(&Moves { phase, expires, high_water: None }, operation, body))
}

/// What it does in MOVE with the high water below the item, and at it.
fn above_and_at(operation: Operation, body: &str) -> [Does; 2] {
    ["0000123#player_6", "0000123#player_7"].map(|high_water| {
        let moves = Moves { phase: Phase::Move, expires: None, high_water: Some(high_water) };
        does(&moves, operation, body)
    })
}

const BLIND: [Does; 2] = [Does::Blind, Does::Blind];
const PULLS: [Does; 2] = [Does::Waits, Does::Pulls];

fn put(item: &str, more: &str) -> String {
    format!(r#"{{"TableName":"Tab","Item":{{{item}}}{more}}}"#)
}

#[test]
fn a_put_of_what_may_expire_brings_the_old_copy_first() {
    let blind = |expires, item: &str| both(expires, Operation::PutItem, &put(item, ""));
    assert_eq!(blind(Some("gone"), EXPIRING), PULLS);
    assert_eq!(blind(Some("gone"), KEY), BLIND);
    // By whatever attribute the table has, however the client writes its name, and whatever it
    // holds.
    assert_eq!(blind(Some("a"), EXPIRING), PULLS);
    assert_eq!(blind(Some("other"), EXPIRING), BLIND);
    assert_eq!(blind(None, EXPIRING), BLIND);
    assert_eq!(blind(Some("gone"), &EXPIRING.replace("gone", r"g\u006fne")), PULLS);
    assert_eq!(blind(Some("gone"), &format!(r#"{KEY},"gone":{{"S":"no time"}}"#)), PULLS);
    let nested = format!(r#"{KEY},"a":{{"M":{{"gone":{{"N":"1"}}}}}},"b":{{"S":"gone"}}"#);
    assert_eq!(blind(Some("gone"), &nested), BLIND);
    // As without time to live.
    let condition = r#","ConditionExpression":"attribute_not_exists(pk)""#;
    assert_eq!(both(Some("gone"), Operation::PutItem, &put(KEY, condition)), PULLS);
    let old = r#","ReturnValues":"ALL_OLD""#;
    assert_eq!(both(Some("gone"), Operation::PutItem, &put(KEY, old)), PULLS);
}

#[test]
fn so_does_a_batch_that_puts_any_such_item() {
    let batch = |puts: &[&str]| {
        let puts: Vec<String> =
            puts.iter().map(|item| format!(r#"{{"PutRequest":{{"Item":{{{item}}}}}}}"#)).collect();
        format!(r#"{{"RequestItems":{{"Tab":[{}]}}}}"#, puts.join(","))
    };
    let of = |expires, body: &str| both(expires, Operation::BatchWriteItem, body);
    let beside = EXPIRING.replace("game", "quiet");
    assert_eq!(of(Some("gone"), &batch(&[EXPIRING])), PULLS);
    assert_eq!(of(Some("gone"), &batch(&[KEY])), BLIND);
    assert_eq!(of(None, &batch(&[EXPIRING, &beside])), BLIND);
    // One that would have been safe waits with the other.
    assert_eq!(of(Some("gone"), &batch(&[KEY, &beside])), PULLS);
    let delete = format!(r#"{{"RequestItems":{{"Tab":[{{"DeleteRequest":{{"Key":{{{KEY}}}}}}}]}}}}"#);
    assert_eq!(of(Some("gone"), &delete), PULLS);
}

#[test]
fn what_else_can_leave_an_expiry_brings_the_old_copy_first_in_every_table() {
    let key = format!(r#"{{{KEY}}}"#);
    let set = r#""UpdateExpression":"SET gone = :t","ExpressionAttributeValues":{":t":{"N":"1"}}"#;
    let remove = r#""UpdateExpression":"REMOVE gone""#;
    let update = |how: &str| format!(r#"{{"TableName":"Tab","Key":{key},{how}}}"#);
    let legacy = r#""AttributeUpdates":{"gone":{"Action":"PUT","Value":{"N":"1"}}}"#;
    let transaction = |action: &str| format!(r#"{{"TransactItems":[{action}]}}"#);
    let statement = |text: &str| format!(r#"{{"Statement":"{text}"}}"#);
    let of_item = "WHERE pk = 'game' AND sk = '0000123#player_7'";
    let insert = r#"INSERT INTO \"Tab\" VALUE {'pk':'game','sk':'0000123#player_7','gone':1}"#;
    let change = format!(r#"UPDATE \"Tab\" SET gone = 1 {of_item}"#);
    let delete = format!(r#"DELETE FROM \"Tab\" {of_item}"#);
    let many = |texts: &[&str], name: &str| {
        let statements: Vec<String> = texts.iter().map(|text| statement(text)).collect();
        format!(r#"{{"{name}":[{}]}}"#, statements.join(","))
    };
    let writes = [
        (Operation::UpdateItem, update(set)),
        (Operation::UpdateItem, update(remove)),
        (Operation::UpdateItem, update(legacy)),
        (Operation::DeleteItem, format!(r#"{{"TableName":"Tab","Key":{key}}}"#)),
        (Operation::TransactWriteItems, transaction(&format!(r#"{{"Put":{}}}"#, put(EXPIRING, "")))),
        (Operation::TransactWriteItems, transaction(&format!(r#"{{"Put":{}}}"#, put(KEY, "")))),
        (Operation::TransactWriteItems, transaction(&format!(r#"{{"Update":{}}}"#, update(set)))),
        (Operation::ExecuteStatement, statement(insert)),
        (Operation::ExecuteStatement, statement(&change)),
        (Operation::ExecuteStatement, statement(&delete)),
        (Operation::BatchExecuteStatement, many(&[&change], "Statements")),
        (Operation::ExecuteTransaction, many(&[insert], "TransactStatements")),
    ];
    for (operation, body) in &writes {
        for expires in [None, Some("gone")] {
            assert_eq!(both(expires, *operation, body), PULLS, "{} {body}", operation.name());
        }
        assert_eq!(above_and_at(*operation, body), [Does::Blind, Does::Pulls], "{} {body}", operation.name());
    }
}

/// What a delete in MOVE sends to a store whose transactions conflict with others so often, each of which
/// brings the item. And what it answers.
fn sent_beside_others(conflicts: usize, gone_afterwards: bool) -> (Vec<Operation>, Result<Bytes, Error>) {
    let moves = Moves { phase: Phase::Move, expires: None, high_water: None };
    let delete = Bytes::from(format!(r#"{{"TableName":"Tab","Key":{{{KEY}}}}}"#));
    let plan = Router::new().plan(Operation::DeleteItem, &delete, &moves).unwrap();
    let (mut sent, mut met) = (Vec::new(), 0);
    let answer = run(plan, |operation, _| {
        sent.push(operation);
        match operation {
            Operation::GetItem if met > 0 && gone_afterwards => Ok(Bytes::from("{}")),
            Operation::GetItem => Ok(Bytes::from(format!(r#"{{"Item":{{{KEY}}}}}"#))),
            Operation::TransactWriteItems if met < conflicts => {
                met += 1;
                Err(Error::bare(Code::TransactionCanceledException).with(
                    "CancellationReasons",
                    json!([{ "Code": "TransactionConflict" }, { "Code": "None" }]),
                ))
            }
            _ => Ok(Bytes::from("{}")),
        }
    });
    (sent, answer)
}

#[test]
fn a_pull_that_meets_another_one_looks_whether_it_is_still_needed() {
    use Operation::{DeleteItem, GetItem, TransactWriteItems};
    let (sent, answer) = sent_beside_others(1, true);
    assert_eq!(sent, [GetItem, TransactWriteItems, GetItem, DeleteItem]);
    answer.unwrap();
    // Still there: the whole pull.
    let (sent, answer) = sent_beside_others(1, false);
    assert_eq!(sent[2..], [GetItem, TransactWriteItems, TransactWriteItems, DeleteItem]);
    answer.unwrap();
}

#[test]
fn one_that_meets_others_again_and_again_ends_with_nothing_done() {
    let (sent, answer) = sent_beside_others(usize::MAX, false);
    assert_eq!(sent.len(), 32, "16 reads, 16 transactions");
    let error = answer.unwrap_err();
    assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}");
    assert_eq!(sent_beside_others(15, false).0.last(), Some(&Operation::DeleteItem));
}

/// The physical keys that a read in MOVE asks for, in order, of a store that holds `stored` alone.
fn reads(
    high_water: Option<&'static str>,
    operation: Operation,
    body: &str,
    stored: [&str; 2],
) -> Vec<String> {
    let moves = Moves { phase: Phase::Move, expires: None, high_water };
    let plan = Router::new().plan(operation, &Bytes::copy_from_slice(body.as_bytes()), &moves).unwrap();
    let mut asked = Vec::new();
    let answer = run(plan, |asks, body| {
        let text = std::str::from_utf8(body).unwrap();
        let begin = text.find("game").unwrap();
        let key = text[begin..].split('"').next().unwrap().to_owned();
        let [shard, sort] = stored;
        let item = format!(r#"{{"pk":{{"S":"{shard}"}},"sk":{{"S":"{sort}"}}}}"#);
        let last = format!(r#""LastEvaluatedKey":{item}"#);
        let answer = match (asks, key == shard) {
            (Operation::Query, true) => format!(r#"{{"Items":[{item}],"Count":1,"ScannedCount":1,{last}}}"#),
            (Operation::Query, false) => r#"{"Items":[],"Count":0,"ScannedCount":0}"#.to_owned(),
            _ => "{}".to_owned(),
        };
        asked.push(key);
        Ok(Bytes::from(answer))
    });
    answer.unwrap();
    asked
}

#[test]
fn above_the_high_water_only_the_new_slot_is_read() {
    let get = format!(r#"{{"TableName":"Tab","Key":{{{KEY}}}}}"#);
    let asks = |high_water| reads(high_water, Operation::GetItem, &get, ["", ""]);
    assert_eq!(asks(Some("0000123#player_6")), ["game#~1"]);
    assert_eq!(asks(Some("0000123#player_7")), ["game#~1", "game", "game#~1"]);
    assert_eq!(asks(None), ["game#~1", "game", "game#~1"]);
}

#[test]
fn a_page_that_ends_above_the_high_water_is_read_once() {
    let query = |more: &str, values: &str| {
        format!(
            r#"{{"TableName":"Tab","KeyConditionExpression":"pk = :p{more}","ExpressionAttributeValues":{{":p":{{"S":"game"}}{values}}},"ScanIndexForward":false,"Limit":1}}"#
        )
    };
    let calls = |body: &str, high_water| {
        reads(high_water, Operation::Query, body, ["game#~1", "0000123#player_7"]).len()
    };
    let newest = query("", "");
    // Ten new shards, and the old one between two reads of those.
    assert_eq!(calls(&newest, None), 21);
    assert_eq!(calls(&newest, Some("0000123#player_6")), 10);
    assert_eq!(calls(&newest, Some("0000123#player_7")), 21);
    // The other way round the first page may hold what lies in the old slots, unless it begins
    // above them.
    let oldest = newest.replace("false", "true");
    assert_eq!(calls(&oldest, Some("0000123#player_6")), 21);
    let after = query(" AND sk > :s", r#", ":s":{"S":"0000123#player_6"}"#).replace("false", "true");
    assert_eq!(calls(&after, Some("0000123#player_5")), 10);
    assert_eq!(calls(&after, Some("0000123#player_6")), 10);
    assert_eq!(calls(&after, Some("0000123#player_7")), 21);
    let cursor = r#""ExclusiveStartKey":{"pk":{"S":"game"},"sk":{"S":"0000123#player_6"}},"Limit":1"#;
    let next = oldest.replace(r#""Limit":1"#, cursor);
    assert_eq!(calls(&next, Some("0000123#player_6")), 10);
    assert_eq!(calls(&next, Some("0000123#player_7")), 21);
}

/// The pages of a Query of the key in MOVE, over a store that ends its own pages at 1 MB: every
/// other item has moved.
fn pages(body: &Json, bytes: usize, items: usize) -> Vec<Vec<String>> {
    let moves = Moves { phase: Phase::Move, expires: None, high_water: None };
    let layout =
        Layout { strategy: Strategy::calculated(By::SortKey), shards: 10, hash: Hash::JumpXxh3, version: 1 };
    let stored = (0..items).map(|at| {
        let sort = format!("{at:04}");
        let slot = layout.slot_of(Some(SortKey::S(&sort))).unwrap();
        let shard = if at % 2 == 0 { 0 } else { slot.shard };
        let key = if shard == 0 { "game".to_owned() } else { format!("game#~{shard}") };
        (key, sort)
    });
    let stored: Vec<(String, String)> = stored.collect();
    let query = |body: &Json| {
        let is_key = |value: &&Json| value["S"].as_str().is_some_and(|text| text.starts_with("game"));
        let key = body["ExpressionAttributeValues"].as_object().unwrap().values().find(is_key).unwrap();
        let after = body["ExclusiveStartKey"]["sk"]["S"].as_str().unwrap_or_default();
        let lies = |(at, sort): &&(String, String)| key["S"] == at.as_str() && sort.as_str() > after;
        let found: Vec<&String> = stored.iter().filter(lies).map(|(_, sort)| sort).collect();
        let limit = body["Limit"].as_u64().map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
        let room = limit.min((1 << 20) / bytes);
        let item = |sort: &&&String| json!({ "pk": key, "sk": { "S": sort } });
        let shown = found.iter().take(room).map(|sort| {
            let mut item = item(&sort);
            item["v"] = json!({ "S": "x".repeat(bytes - 13) });
            item
        });
        let shown: Vec<Json> = shown.collect();
        let units = (shown.len() * bytes).div_ceil(4096);
        let mut page = json!({
            "Items": shown, "Count": shown.len(), "ScannedCount": shown.len(),
            "ConsumedCapacity": { "TableName": "Tab", "CapacityUnits": units },
        });
        if shown.len() == room {
            page["LastEvaluatedKey"] = item(&found.get(room - 1).unwrap());
        }
        Ok(Bytes::from(page.to_string()))
    };
    let mut pages = Vec::new();
    let mut body = body.clone();
    let router = Router::new();
    loop {
        let plan = router.plan(Operation::Query, &Bytes::from(body.to_string()), &moves).unwrap();
        let page = run(plan, |_, body| query(&serde_json::from_slice(body).unwrap())).unwrap();
        let page: Json = serde_json::from_slice(&page).unwrap();
        let sort = |item: &Json| item["sk"]["S"].as_str().unwrap().to_owned();
        pages.push(page["Items"].as_array().unwrap().iter().map(sort).collect());
        match page.get("LastEvaluatedKey") {
            Some(last) => body["ExclusiveStartKey"] = last.clone(),
            None => return pages,
        }
    }
}

#[test]
fn a_page_holds_a_megabyte_of_what_lies_in_both_places() {
    let whole = json!({
        "TableName": "Tab", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
    });
    let mut limited = whole.clone();
    limited["Limit"] = json!(100);
    for (body, bytes, items) in
        [(&whole, 60_000, 100), (&limited, 60_000, 100), (&whole, 400_000, 9), (&whole, 3_000, 900)]
    {
        let pages = pages(body, bytes, items);
        let sizes: Vec<usize> = pages.iter().map(|page| page.len() * bytes).collect();
        assert!(sizes.iter().all(|size| *size <= 1 << 20), "{bytes} bytes: {sizes:?}");
        let shown: Vec<String> = pages.into_iter().flatten().collect();
        assert_eq!(shown, (0..items).map(|at| format!("{at:04}")).collect::<Vec<_>>(), "{bytes} bytes");
    }
}
