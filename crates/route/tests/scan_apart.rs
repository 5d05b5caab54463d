//! A Scan of a table of which many keys move. They are read by themselves behind all others, some
//! of them for each page.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

use std::sync::Arc;

use crate::common::{Fixed, json, run};
use bytes::Bytes;
use heatsink_dynamo::{Code, Operation};
use heatsink_layout::{
    By, Hash, InForce, KeyLayouts, Layout, LayoutSource, Moving, Phase, RecordedKey, Strategy, Table,
};
use heatsink_route::Router;
use serde_json::{Value, json as value};

/// How many keys of the table `Tab` move.
const KEYS: usize = 40;

fn key(number: usize) -> String {
    format!("k{number:02}")
}

/// Its keys `k00`, `k01` and so on move from one shard to two, since the third version. Records of
/// others were last taken off in that version.
#[derive(Clone)]
struct Moves {
    forgotten: u64,
}

const MOVES: Moves = Moves { forgotten: 0 };

impl LayoutSource for Moves {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let table = Fixed { shards: 1 }.table(name)?;
        let recorded = |number| {
            let key = key(number).into_bytes();
            let in_force = self.in_force(&table, &key);
            (key, RecordedKey { in_force, reserved: 2, since: 3, settled: false })
        };
        let keys = KeyLayouts::new(9, (0..KEYS).map(recorded)).forgotten(self.forgotten);
        let keys = Arc::new(keys);
        Some(Arc::new(Arc::into_inner(table)?.with_key_layouts(keys)))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        let strategy = Strategy::calculated(By::SortKey);
        let to = Arc::new(Layout { strategy, shards: 2, hash: Hash::JumpXxh3, version: 1 });
        InForce::Moving(Arc::new(Moving {
            from: Arc::new(Layout::none()),
            to,
            phase: Phase::Move,
            expires: None,
            marks: false,
            high_water: None,
        }))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// The keys of which each page of a Scan shows the item, or that it reads where there are none.
/// Each key has an item of so many bytes, in its former place, if any; the store's own pages show
/// so many other items of that size, on the first page.
fn pages(size: Option<usize>, others: usize) -> Vec<Vec<String>> {
    let (mut pages, mut body) = (Vec::new(), value!({ "TableName": "Tab" }));
    loop {
        let plan = Router::new().plan(Operation::Scan, &Bytes::from(body.to_string()), &MOVES).unwrap();
        let mut read: Vec<String> = Vec::new();
        let answer = run(plan, |operation, body| {
            let mut items = Vec::new();
            if operation == Operation::Scan {
                let item = |at| value!({ "pk": { "S": format!("o{at}") }, "sk": { "S": "s" }, "v": { "S": "v".repeat(size.unwrap()) } });
                items.extend((0..others).map(item));
            }
            if operation == Operation::Query {
                let body = json(body);
                let values = body["ExpressionAttributeValues"].as_object().unwrap();
                let own = |value: &Value| {
                    value["S"].as_str().filter(|text| text.starts_with('k')).map(str::to_owned)
                };
                let place = values.values().find_map(own).unwrap();
                if !place.contains('#') {
                    items.extend(size.map(|size| value!({ "pk": { "S": &place }, "sk": { "S": "s" }, "v": { "S": "v".repeat(size) } })));
                    // Each is read again, for what has moved meanwhile.
                    if !read.contains(&place) {
                        read.push(place);
                    }
                }
            }
            Ok(Bytes::from(
                value!({ "Items": items, "Count": items.len(), "ScannedCount": items.len() }).to_string(),
            ))
        });
        let answer = json(&answer.unwrap());
        let shown = answer["Items"].as_array().unwrap().iter();
        let shown: Vec<String> = shown.map(|item| item["pk"]["S"].as_str().unwrap().to_owned()).collect();
        pages.push(if size.is_some() { shown } else { read });
        let Some(last) = answer.get("LastEvaluatedKey") else { return pages };
        body["ExclusiveStartKey"] = last.clone();
    }
}

#[test]
fn a_page_reads_sixteen_such_keys_at_most() {
    let pages = pages(None, 0);
    assert_eq!(pages.concat(), (0..KEYS).map(key).collect::<Vec<_>>());
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16, 8]);
}

#[test]
fn a_page_holds_a_megabyte_of_their_items_and_others() {
    let keys = (0..KEYS).map(key);
    let alone = pages(Some(300 << 10), 0);
    assert_eq!(alone.concat(), keys.clone().collect::<Vec<_>>());
    assert_eq!(alone.iter().map(Vec::len).collect::<Vec<_>>(), [&[3; 13][..], &[1]].concat());
    let beside = pages(Some(300 << 10), 2);
    assert_eq!(
        beside.concat(),
        ["o0".to_owned(), "o1".to_owned()].into_iter().chain(keys).collect::<Vec<_>>()
    );
    assert_eq!(beside.iter().map(Vec::len).collect::<Vec<_>>(), [3; 14]);
    let full = pages(Some(300 << 10), 3);
    assert_eq!(full[0], ["o0", "o1", "o2"]);
}

#[test]
fn a_page_of_the_store_that_holds_only_their_items_is_a_page() {
    let plan = Router::new().plan(Operation::Scan, &Bytes::from_static(br#"{"TableName":"Tab"}"#), &MOVES);
    let mut calls = 0;
    let answer = run(plan.unwrap(), |_, _| {
        calls += 1;
        let item = value!({ "pk": { "S": key(0) }, "sk": { "S": "s" } });
        let mut page = value!({ "Items": [item], "Count": 1, "ScannedCount": 1 });
        if calls == 1 {
            page["LastEvaluatedKey"] = item;
        }
        Ok(Bytes::from(page.to_string()))
    });
    let answer = json(&answer.unwrap());
    assert_eq!((calls, &answer["Items"]), (1, &value!([])));
    // The key says, too, when the Scan began, for clients that keep nothing else.
    let last = &answer["LastEvaluatedKey"];
    let said = last["heatsink:layout"]["S"].as_str().unwrap();
    assert_eq!(last["pk"]["S"], format!("heatsink:layout={said};{}", key(0)));
}

#[test]
fn a_scan_that_has_left_out_a_key_begins_again_once_records_were_taken_off() {
    let page = |moves: &Moves, start: Option<&Value>| {
        let mut body = value!({ "TableName": "Tab" });
        start.into_iter().for_each(|start| body["ExclusiveStartKey"] = start.clone());
        let plan = Router::new().plan(Operation::Scan, &Bytes::from(body.to_string()), moves)?;
        let answer = run(plan, |_, _| {
            let item = value!({ "pk": { "S": "other" }, "sk": { "S": "s" } });
            Ok(Bytes::from(
                value!({ "Items": [item], "Count": 1, "ScannedCount": 1, "LastEvaluatedKey": item })
                    .to_string(),
            ))
        });
        answer.map(|answer| json(&answer)["LastEvaluatedKey"].clone())
    };
    let before = page(&MOVES, None).unwrap();
    page(&MOVES, Some(&before)).unwrap();
    let after = Moves { forgotten: 5 };
    let refused = page(&after, Some(&before)).unwrap_err();
    assert_eq!(refused.code, Code::ValidationException, "{refused}");
    let begun = page(&after, None).unwrap();
    page(&after, Some(&begun)).unwrap();
}
