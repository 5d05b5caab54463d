//! Writes that are combined against the same writes one after the other, on the embedded engine.

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, TableSchema};
use heatsink_route::combine::{Combined, ItemWrite};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value as Json, json};

use super::writes::{Call, create, key, run};

type Told = Result<Json, (Code, Option<String>)>;

fn told(answer: Result<Bytes, Error>) -> Told {
    match answer {
        Ok(body) => {
            let mut body: Json = serde_json::from_slice(&body).unwrap();
            // How a set of numbers is ordered is nobody's affair.
            if let Some(set) = body.pointer_mut("/Attributes/s/NS").and_then(Json::as_array_mut) {
                set.sort_by_key(Json::to_string);
            }
            Ok(body)
        }
        Err(error) => Err((error.code, error.message)),
    }
}

async fn call(store: &Embedded, (operation, body): &Call) -> Result<Bytes, Error> {
    store.call(*operation, Bytes::from(body.to_string())).await
}

async fn item(store: &Embedded) -> Json {
    let get = json!({ "TableName": "Votes", "Key": key() });
    told(call(store, &(heatsink_dynamo::Operation::GetItem, get)).await).unwrap()
}

/// Carries writes out as many at once as can be, in halves where they are refused.
async fn combined(store: &Embedded, schema: &TableSchema, calls: &[Call]) -> (Vec<Told>, usize) {
    let mut answers = Vec::new();
    let mut physical = 0;
    let mut rest = Vec::new();
    rest.push(0..calls.len());
    while let Some(range) = rest.pop() {
        let (first, others) = calls[range.clone()].split_first().unwrap();
        let read = |(operation, body): &Call| {
            ItemWrite::read(*operation, &Bytes::from(body.to_string()), schema, false)
        };
        let Some(write) = read(first).filter(ItemWrite::can_combine) else {
            physical += 1;
            answers.push(told(call(store, first).await));
            rest.extend((range.len() > 1).then_some(range.start + 1..range.end));
            continue;
        };
        let mut group = Combined::new(&write);
        let joined = others.iter().take_while(|one| read(one).is_some_and(|one| group.join(&one))).count();
        let end = range.start + 1 + joined;
        rest.extend((end < range.end).then_some(end..range.end));
        let (operation, body) = group.request().unwrap();
        physical += 1;
        match store.call(operation, body).await {
            Err(_) if joined > 0 => {
                let middle = range.start + joined.div_ceil(2);
                rest.extend([middle..end, range.start..middle]);
            }
            Err(error) => answers.push(told(Err(error))),
            Ok(body) => answers.extend(group.answers(&body).unwrap().into_iter().map(told)),
        }
    }
    (answers, physical)
}

#[test]
fn combined_writes_do_and_answer_what_they_would_one_after_the_other() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stores = runtime.block_on(async {
        let [one, other] = [(); 2].map(|()| Embedded::memory().unwrap());
        let schema = create(&one).await;
        create(&other).await;
        (one, other, schema)
    });
    let (one, other, schema) = &stores;
    let sent = std::cell::Cell::new((0, 0));
    let cases = std::env::var("HEATSINK_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_500);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(run(), any::<bool>()), |(calls, fresh)| {
        runtime.block_on(async {
            if fresh {
                let delete = json!({ "TableName": "Votes", "Key": key() });
                for store in [one, other] {
                    call(store, &(heatsink_dynamo::Operation::DeleteItem, delete.clone())).await.unwrap();
                }
            }
            let mut alone = Vec::new();
            for one_call in &calls {
                alone.push(told(call(one, one_call).await));
            }
            let (together, physical) = combined(other, schema, &calls).await;
            prop_assert_eq!(&alone, &together);
            prop_assert_eq!(item(one).await, item(other).await);
            let (all, less) = sent.get();
            sent.set((all + calls.len(), less + physical));
            Ok(())
        })
    });
    checked.unwrap();
    let (all, physical) = sent.get();
    println!("{all} writes went as {physical}");
    assert!(physical * 10 < all * 9, "{all} writes went as {physical}");
}
