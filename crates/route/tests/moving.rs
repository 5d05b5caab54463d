//! Writes of an item that changes its slot, of every kind, in a table with time to live and in one without: which go to the new slot at once, which
//! bring the old copy first, and which wait.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Fixed, run};
use heatsink_dynamo::{Error, Operation, Origin};
use heatsink_layout::{
    By, Hash, InForce, KeyLayouts, Layout, LayoutSource, Moving, Phase, RecordedKey, Strategy, Table,
};
use heatsink_route::Router;

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
        let strategy = Strategy::Calculated { by: By::SortKey };
        let to = Arc::new(Layout { strategy, shards: 10, hash: Hash::JumpXxh3, version: 1 });
        let expires = self.expires.map(Arc::from);
        InForce::Moving(Arc::new(Moving { from, to, phase: self.phase, expires }))
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

fn does(phase: Phase, expires: Option<&'static str>, operation: Operation, body: &str) -> Does {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let plan = match Router::new().plan(operation, &body, &Moves { phase, expires }) {
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
    [Phase::Check, Phase::Move].map(|phase| does(phase, expires, operation, body))
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
    // By whatever attribute the table has, however the client writes its name, and whatever it holds.
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
    }
}
