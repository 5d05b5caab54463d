//! Query over shards against the same items unsharded: same rows, same order, exact pages, plain
//! cursors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of a test")]

mod bounds;
mod externally_assigned;
mod fake;
mod moments;
mod properties;

use std::sync::Arc;

use bytes::Bytes;
use fake::{Fake, schema};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Item, Operation, Value, json};
use heatsink_layout::{By, Hash, InForce, Layout, LayoutSource, SortKey, Table, codec};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};

/// Every key spread over that many shards.
#[derive(Clone)]
struct Shards(u16);

impl Shards {
    fn layout(&self) -> Layout {
        Layout {
            strategy: heatsink_layout::Strategy::calculated(By::SortKey),
            shards: self.0,
            hash: Hash::JumpXxh3,
            version: 1,
        }
    }

    /// The items as they are stored.
    fn store(&self, items: &[Item]) -> Vec<Item> {
        let stored = |item: &Item| {
            let (Value::S(pk), Value::S(sk)) = (&item["pk"], &item["sk"]) else { panic!("string keys") };
            let shard = self.layout().shard_of(Some(SortKey::S(sk)));
            let physical = codec::encode(pk.as_bytes(), shard).unwrap();
            let mut item = item.clone();
            item.insert("pk".into(), Value::S(String::from_utf8(physical).unwrap()));
            item
        };
        items.iter().map(stored).collect()
    }
}

impl LayoutSource for Shards {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        (name == "Games").then(|| Arc::new(Table::new(schema(), Arc::default())))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::new(self.layout()))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// One answered Query.
#[derive(Debug)]
struct Page {
    items: Vec<Item>,
    count: usize,
    scanned: usize,
    last: Option<Vec<u8>>,
    body: Bytes,
}

/// Runs one Query; also gives the rounds it took.
fn run(router: &Router, shards: &Shards, store: &Fake, body: &str) -> (Result<Page, Error>, usize) {
    let plan = router.plan(Operation::Query, &Bytes::copy_from_slice(body.as_bytes()), shards).unwrap();
    let mut running = Stepped::new(plan);
    let mut rounds = 0;
    loop {
        match running.step() {
            Step::Call(calls) => {
                rounds += 1;
                assert!(!calls.is_empty() && rounds < 10_000, "no progress");
                for call in calls {
                    assert_eq!(call.operation, Operation::Query);
                    running.answer(call.id, store.query(&call.body));
                }
            }
            Step::Done(answer) => return (answer.map(page), rounds),
        }
    }
}

fn page(body: Bytes) -> Page {
    let [items, count, scanned, last] =
        json::attributes_of(&body, ["Items", "Count", "ScannedCount", "LastEvaluatedKey"]).unwrap();
    let number = |raw: Option<&[u8]>| std::str::from_utf8(raw.unwrap()).unwrap().parse().unwrap();
    let items = items.map_or(Vec::new(), |raw| {
        json::elements(raw).unwrap().into_iter().map(|item| read_item(item).unwrap()).collect()
    });
    Page {
        items,
        count: number(count),
        scanned: number(scanned),
        last: last.map(<[u8]>::to_vec),
        body: body.clone(),
    }
}

/// A body with another member.
fn with(body: &str, name: &str, value: &[u8]) -> String {
    String::from_utf8(json::splice_members(body.as_bytes(), &[(name, Some(value))]).unwrap()).unwrap()
}

/// All pages of a Query.
fn read_all(router: &Router, shards: &Shards, store: &Fake, body: &str) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let mut next = body.to_owned();
    loop {
        let page = run(router, shards, store, &next).0.unwrap();
        let last = page.last.clone();
        pages.push(page);
        let Some(last) = last else { return pages };
        next = with(body, "ExclusiveStartKey", &last);
        assert!(pages.len() < 10_000, "endless pages");
    }
}

fn text(value: impl Into<String>) -> Value {
    Value::S(value.into())
}

fn is_refusal(answer: Result<Page, Error>, message: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error.code, Code::ValidationException);
    assert!(error.message.as_deref().unwrap().contains(message), "{error:?}");
}
