//! Requests on a key of which buckets from one on get another number of shards: what would be put
//! there waits, all else goes on, and readers know the new number from PREPARE on.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::sync::Arc;

use crate::common::{Fixed, run};
use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, Origin};
use heatsink_layout::{
    Bucket, By, Epoch, Glob, Granularity, Hash, InForce, KeyLayout, KeyLayouts, Layout, LayoutSource, Moving,
    Phase, RecordedKey, SortKey, Strategy, Table, TableLayouts, Time,
};
use heatsink_route::Router;

/// The table `Tab`, whose keys lie in buckets of a day. Of the key `log` those from 23 June 2026 on
/// get three shards.
#[derive(Clone)]
struct Steps(Phase);

fn one_shard() -> Layout {
    let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
    let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
    Layout { strategy, shards: 1, hash: Hash::JumpXxh3, version: 1 }
}

impl LayoutSource for Steps {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let schema = heatsink_dynamo::TableSchema::clone(&*Fixed { shards: 1 }.table(name)?);
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), one_shard())]);
        let in_force = self.in_force(&Table::new(schema.clone(), Arc::default()), b"log");
        let recorded = RecordedKey { in_force, reserved: 3, since: 0, settled: false };
        let keys = Arc::new(KeyLayouts::new(1, [(b"log".to_vec(), recorded)]));
        Some(Arc::new(Table::new(schema, Arc::new(layouts)).with_key_layouts(keys)))
    }

    fn in_force(&self, _: &Table, key: &[u8]) -> InForce {
        if key != b"log" {
            return InForce::Stable(Arc::new(one_shard()));
        }
        let first = Bucket::read(b"2026-06-23", Granularity::Day, Granularity::Day.format()).unwrap();
        let to = Arc::new(one_shard().stepped(first, 3).unwrap());
        Moving {
            from: Arc::new(one_shard()),
            to,
            phase: self.0,
            expires: None,
            marks: false,
            high_water: None,
        }
        .in_force()
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// The bodies of the physical calls of a request; `None` if it waits.
fn calls(phase: Phase, operation: Operation, body: &str) -> Option<Vec<String>> {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let plan = match Router::new().plan(operation, &body, &Steps(phase)) {
        Ok(plan) => plan,
        Err(error) => {
            assert_eq!(error.origin, Origin::Held, "{error}");
            return None;
        }
    };
    let mut calls = Vec::new();
    let answer = run(plan, |operation, body| {
        calls.push(String::from_utf8(body.to_vec()).unwrap());
        Ok(Bytes::from(match operation {
            Operation::Query | Operation::Scan => r#"{"Items":[],"Count":0,"ScannedCount":0}"#,
            _ => "{}",
        }))
    });
    answer.map_err(|error: Error| error.to_string()).unwrap();
    Some(calls)
}

const PHASES: [Phase; 2] = [Phase::Reserve, Phase::Prepare];

#[test]
fn only_what_would_be_put_into_the_buckets_to_come_waits() {
    let of = |day: &str| format!(r#""pk":{{"S":"log"}},"sk":{{"S":"2026-06-{day}T10#a"}}"#);
    let writes = |day: &str| {
        let (item, table) = (of(day), r#""TableName":"Tab""#);
        [
            (Operation::PutItem, format!(r#"{{{table},"Item":{{{item}}}}}"#)),
            (
                Operation::UpdateItem,
                format!(
                    r#"{{{table},"Key":{{{item}}},"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{{":v":{{"N":"1"}}}}}}"#
                ),
            ),
            (
                Operation::BatchWriteItem,
                format!(r#"{{"RequestItems":{{"Tab":[{{"PutRequest":{{"Item":{{{item}}}}}}}]}}}}"#),
            ),
            (
                Operation::TransactWriteItems,
                format!(r#"{{"TransactItems":[{{"Put":{{{table},"Item":{{{item}}}}}}}]}}"#),
            ),
            (
                Operation::ExecuteStatement,
                format!(
                    r#"{{"Statement":"INSERT INTO Tab VALUE {{'pk':'log','sk':'2026-06-{day}T10#a'}}"}}"#
                ),
            ),
        ]
    };
    let others = |day: &str| {
        let (item, table) = (of(day), r#""TableName":"Tab""#);
        [
            (Operation::DeleteItem, format!(r#"{{{table},"Key":{{{item}}}}}"#)),
            (Operation::GetItem, format!(r#"{{{table},"Key":{{{item}}}}}"#)),
            (
                Operation::ExecuteStatement,
                format!(r#"{{"Statement":"SELECT * FROM Tab WHERE pk='log' AND sk='2026-06-{day}T10#a'"}}"#),
            ),
        ]
    };
    for phase in PHASES {
        for (operation, body) in writes("23").into_iter().chain(writes("30")) {
            assert_eq!(calls(phase, operation, &body), None, "{phase:?} {body}");
            let other = body.replace("log", "other");
            assert!(calls(phase, operation, &other).is_some(), "{phase:?} {other}");
        }
        for (operation, body) in writes("22").into_iter().chain(others("22")).chain(others("23")) {
            assert!(calls(phase, operation, &body).is_some(), "{phase:?} {body}");
        }
        // Without a time it lies in no bucket.
        let meta = r#"{"TableName":"Tab","Item":{"pk":{"S":"log"},"sk":{"S":"META"}}}"#;
        assert!(calls(phase, Operation::PutItem, meta).is_some());
    }
}

/// A Scan goes on behind an item where the key's own number of shards has put it, and not where the
/// table's rule would.
#[test]
fn a_scan_goes_on_where_the_own_number_of_a_bucket_has_put_an_item() {
    let layout = Steps(Phase::Prepare).in_force(&Fixed { shards: 1 }.table("Tab").unwrap(), b"log");
    for number in 0..20 {
        for day in ["22", "24"] {
            let sort = format!("2026-06-{day}T10#{number}");
            let slot = layout.settled().slot_of(Some(SortKey::S(&sort))).unwrap();
            let shard = if slot.shard == 0 { String::new() } else { format!("#~{}", slot.shard) };
            let scan = format!(
                r#"{{"TableName":"Tab","Limit":2,"ExclusiveStartKey":{{"pk":{{"S":"log"}},"sk":{{"S":"{sort}"}}}}}}"#
            );
            let sent = calls(Phase::Prepare, Operation::Scan, &scan).unwrap().concat();
            assert!(sent.contains(&format!(r#""pk":{{"S":"log#~2026-06-{day}{shard}"}}"#)), "{sort}: {sent}");
        }
    }
}

#[test]
fn a_query_reads_each_bucket_in_its_own_number_of_shards() {
    let query = r#"{"TableName":"Tab","KeyConditionExpression":"pk = :p AND sk BETWEEN :a AND :b","ExpressionAttributeValues":{":p":{"S":"log"},":a":{"S":"2026-06-22"},":b":{"S":"2026-06-24"}}}"#;
    let read = |phase| {
        let mut keys: Vec<String> = Vec::new();
        for body in calls(phase, Operation::Query, query).unwrap() {
            let at = body.find("\"log").unwrap() + 1;
            keys.push(body[at..].split('"').next().unwrap().to_owned());
        }
        keys.sort();
        keys
    };
    let before = ["log", "log#~2026-06-22", "log#~2026-06-23", "log#~2026-06-24"];
    assert_eq!(read(Phase::Reserve), before);
    let after = [
        "log",
        "log#~2026-06-22",
        "log#~2026-06-23",
        "log#~2026-06-23#~1",
        "log#~2026-06-23#~2",
        "log#~2026-06-24",
        "log#~2026-06-24#~1",
        "log#~2026-06-24#~2",
    ];
    assert_eq!(read(Phase::Prepare), after);
}
