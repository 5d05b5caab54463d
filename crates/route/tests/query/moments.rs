//! Writes that happen between the reads of one gathered Query: with `consistency = "strong"` a page
//! is the table as it was at one moment; without it a page can show a write and miss an earlier
//! one.

use std::sync::Arc;

use fastrand::Rng;
use heatsink_dynamo::{Code, Error, Item, Operation};
use heatsink_layout::{Consistency, InForce, LayoutSource, Reads, SortKey, Table};
use heatsink_route::Router;

use super::fake::Fake;
use super::{Page, Shards, Step, Stepped, page, text};

#[derive(Clone)]
struct Reading {
    shards: Shards,
    consistency: Consistency,
}

impl LayoutSource for Reading {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.shards.table(name)
    }

    fn in_force(&self, table: &Table, key: &[u8]) -> InForce {
        self.shards.in_force(table, key)
    }

    fn reads(&self, _: &Table, _: &[u8]) -> Reads {
        Reads { consistency: self.consistency, ..Reads::default() }
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// The items of the first `count` writes. A later write to a sort key takes the place of an earlier
/// one.
fn state(log: &[(String, usize)], count: usize) -> Vec<Item> {
    let mut rows = std::collections::BTreeMap::new();
    for (sk, number) in &log[..count] {
        let item = [("pk", text("game")), ("sk", text(sk)), ("write", text(number.to_string()))];
        rows.insert(sk.clone(), item.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    }
    rows.into_values().collect()
}

struct Run {
    answer: Result<Page, Error>,
    /// How many writes were done before the first read, and after the last.
    moments: std::ops::RangeInclusive<usize>,
    log: Vec<(String, usize)>,
    descending: bool,
    limit: usize,
}

/// One Query, between whose reads writes are done.
fn run(seed: u64, consistency: Consistency) -> Run {
    let mut rng = Rng::with_seed(seed);
    let reading = Reading { shards: Shards(rng.u16(2..6)), consistency };
    let growing = rng.bool();
    let log: Vec<(String, usize)> = (0..60)
        .map(|number| (format!("{:03}", if growing { number } else { rng.usize(..40) }), number))
        .collect();
    let first = rng.usize(..30);
    let mut done = first;
    let (descending, limit) = (rng.bool(), rng.usize(1..20));
    let body = format!(
        r#"{{"TableName":"Games","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{{":p":{{"S":"game"}}}},"Limit":{limit},"ScanIndexForward":{}}}"#,
        !descending
    );
    let mut running = Stepped::new(Router::new().plan(Operation::Query, &body.into(), &reading).unwrap());
    let answer = loop {
        match running.step() {
            Step::Call(mut calls) => {
                rng.shuffle(&mut calls);
                for call in calls {
                    if rng.u32(..3) == 0 {
                        done = (done + rng.usize(1..3)).min(log.len());
                    }
                    let store = Fake { items: reading.shards.store(&state(&log, done)), ..Fake::default() };
                    running.answer(call.id, store.query(&call.body));
                }
            }
            Step::Done(answer) => break answer.map(page),
        }
    };
    Run { answer, moments: first..=done, log, descending, limit }
}

impl Run {
    /// Whether the page is what an unsharded table would have shown at one moment of the run.
    fn was_so_at_some_moment(&self) -> bool {
        let page = self.answer.as_ref().unwrap();
        self.moments.clone().any(|moment| {
            let mut rows = state(&self.log, moment);
            if self.descending {
                rows.reverse();
            }
            let shown = page.items.len();
            let whole = page.last.is_some() || shown == rows.len();
            shown <= self.limit && rows.get(..shown) == Some(page.items.as_slice()) && whole
        })
    }
}

#[test]
fn a_strong_page_was_so_at_one_moment() {
    let (mut answered, mut short) = (0, 0);
    for seed in 0..2_000 {
        let run = run(seed, Consistency::Strong);
        match &run.answer {
            Ok(page) => {
                assert!(run.was_so_at_some_moment(), "seed {seed}");
                answered += 1;
                short += usize::from(page.items.len() < run.limit && page.last.is_some());
            }
            Err(error) => assert_eq!(error.code, Code::ServiceUnavailable, "seed {seed}: {error}"),
        }
    }
    assert!(answered > 1_500 && short > 50, "{answered} answered, {short} of them short");
}

/// Carries a Query out; after its first call more is written.
fn page_between(before: &[Item], after: &[Item]) -> Page {
    let reading = Reading { shards: Shards(2), consistency: Consistency::Strong };
    let body = r#"{"TableName":"Games","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"game"}}}"#;
    let mut running = Stepped::new(Router::new().plan(Operation::Query, &body.into(), &reading).unwrap());
    let mut items = before;
    loop {
        match running.step() {
            Step::Call(calls) => {
                for call in calls {
                    let store = Fake { items: reading.shards.store(items), ..Fake::default() };
                    running.answer(call.id, store.query(&call.body));
                    items = after;
                }
            }
            Step::Done(answer) => return page(answer.unwrap()),
        }
    }
}

#[test]
fn a_strong_page_of_what_does_not_change_is_as_any_other() {
    for count in 0..4 {
        let log: Vec<(String, usize)> = (0..count).map(|number| (format!("{number}"), number)).collect();
        let items = state(&log, count);
        let page = page_between(&items, &items);
        assert_eq!((page.items, page.last), (items, None));
    }
}

/// What is written behind a full page while it is first read came before the last item of the page:
/// the page is not the end.
#[test]
fn a_strong_page_goes_on_where_one_of_its_reads_saw_more() {
    let shard = |sk: &str| Shards(2).layout().shard_of(Some(SortKey::S(sk)));
    let of = |wanted| (0..100).map(|number| format!("{number:03}")).filter(move |sk| shard(sk) == wanted);
    let mut second = of(1);
    let mut next = || second.next().unwrap();
    let log = [next(), next(), of(0).next_back().unwrap(), next()].map(|sk| (sk, 0));
    // Three of them fill a page.
    let large = |count| {
        let with_text = |mut item: Item| {
            item.insert("v".to_owned(), text("v".repeat(400_000)));
            item
        };
        state(&log, count).into_iter().map(with_text).collect::<Vec<Item>>()
    };
    let page = page_between(&large(2), &large(4));
    assert_eq!(page.items, large(4)[..3]);
    assert!(page.last.is_some());
}

#[test]
fn a_plain_page_may_show_a_write_and_miss_an_earlier_one() {
    let torn = (0..2_000).filter(|seed| !run(*seed, Consistency::Shard).was_so_at_some_moment()).count();
    assert!(torn > 50, "{torn} torn pages");
}
