//! The highest sort key that a move leaves behind it in the old slots, as the real coordinator
//! reads it and writes it on record.
//!
//! Not here: what gateways make of it (`heatsink-route`), when it is read (the model of
//! `heatsink-reshard`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::{BoxFuture, FutureExt, pending};
use heatsink_control::Rules;
use heatsink_control::registry::Registry;
use heatsink_dynamo::{Code, Error, KeyType, KeyValue, Operation, Value};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Progress, Reshard, ReshardOptions};
use serde_json::{Value as Json, json};

/// What becomes of the Queries for the last item of a slot.
#[derive(Clone, Copy, Debug)]
enum Last {
    /// They are answered.
    Answered,
    /// The second one of each mark is refused.
    Refused,
    /// Their answer does not come.
    Late,
    /// That of the slot with this item ends before it and names where it goes on: any page may have
    /// no items.
    Short(&'static str),
}

/// A store that answers at once.
struct Near {
    inner: Arc<Embedded>,
    last: Last,
    asked: Mutex<u32>,
}

impl Near {
    fn answer(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        std::thread::scope(|scope| scope.spawn(|| block_on(self.inner.call(operation, body))).join().unwrap())
    }
}

impl Store for Near {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let is_last = operation == Operation::Query
            && serde_json::from_slice::<Json>(&body).unwrap()["ScanIndexForward"] == json!(false);
        let answer = self.answer(operation, body);
        if !is_last {
            return async { answer }.boxed();
        }
        let asked = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        match self.last {
            Last::Refused if asked == 2 => {
                async { Err(Error::bare(Code::ProvisionedThroughputExceededException)) }.boxed()
            }
            Last::Late => pending().boxed(),
            Last::Short(sort) => {
                let mut page: Json = serde_json::from_slice(&answer.unwrap()).unwrap();
                if page["Items"][0]["sk"]["N"] == sort {
                    assert!(page["LastEvaluatedKey"].is_object(), "{page}");
                    page["Items"] = json!([]);
                }
                async move { Ok(Bytes::from(page.to_string())) }.boxed()
            }
            _ => async { answer }.boxed(),
        }
    }
}

/// Looks at the record whenever it is written.
struct Watch {
    registry: Registry,
    id: String,
    marks: Mutex<Vec<(State, Option<KeyValue<'static>>)>>,
}

impl Progress for Watch {
    fn state(&self, state: State) {
        let read = || block_on(self.registry.key_record(&self.id, b"game", KeyType::S));
        let record = std::thread::scope(|scope| scope.spawn(read).join().unwrap()).unwrap().unwrap();
        self.marks.lock().unwrap().push((state, record.moves.and_then(|moves| moves.high_water)));
    }
}

struct Place {
    inner: Arc<Embedded>,
    env: Arc<dyn Env>,
}

impl Place {
    /// A table with a number as its sort key, whose items all lie in one slot.
    fn new(sorts: &[&str]) -> Place {
        let inner = Arc::new(Embedded::memory().unwrap());
        let call =
            |operation, body: Json| block_on(inner.call(operation, Bytes::from(body.to_string()))).unwrap();
        call(
            Operation::CreateTable,
            json!({
                "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
                "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "N" }],
            }),
        );
        for sort in sorts {
            let item = json!({ "pk": { "S": "game" }, "sk": { "N": sort } });
            call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item }));
        }
        let env: Arc<dyn Env> = Arc::new(HastyEnv(ManualEnv::seeded(1)));
        Place { inner, env }
    }

    /// The mark of that move while it lasts. Before and after it there is none.
    fn mark(&self, shards: u16, last: Last) -> Option<KeyValue<'static>> {
        let rules = Rules::read("rules", "").unwrap();
        let registry = Registry::new(self.inner.clone(), self.env.clone(), &rules.fence().registry);
        let store = Arc::new(Near { inner: self.inner.clone(), last, asked: Mutex::new(0) });
        let marks = block_on(async {
            let id = registry.describe("Scores").await.unwrap().unwrap().schema.id;
            let watch = Watch { registry, id, marks: Mutex::default() };
            let prepared =
                Reshard::prepare(store, self.env.clone(), &rules, "Scores", b"game", shards, false);
            prepared
                .await
                .unwrap()
                .run(ReshardOptions { exclusive: true, rate: u32::MAX }, &watch)
                .await
                .unwrap();
            watch.marks.into_inner().unwrap()
        });
        let moves = |state: &State| matches!(state, State::Moving { phase: Phase::Move, .. });
        let (moving, others): (Vec<_>, Vec<_>) = marks.into_iter().partition(|(state, _)| moves(state));
        assert!(others.iter().all(|(_, mark)| mark.is_none()), "{others:?}");
        // Once as it begins, once as it is closed.
        assert_eq!(moving.len(), 2, "{moving:?}");
        assert_eq!(moving[0].1, moving[1].1);
        moving[0].1.clone()
    }
}

fn number(text: &str) -> Option<KeyValue<'static>> {
    KeyValue::from_value(&Value::read(json!({ "N": text }).to_string().as_bytes()).unwrap())
        .map(KeyValue::into_owned)
}

#[test]
fn it_is_the_highest_of_all_old_slots() {
    let sorts = ["9", "10", "-5", "1E2", "99.5", "3", "4", "5", "6", "7", "8"];
    let place = Place::new(&sorts);
    for shards in [4, 7, 3, 1] {
        assert_eq!(place.mark(shards, Last::Answered), number("100"), "{shards} shards");
    }
    assert_eq!(Place::new(&["-7", "-70"]).mark(2, Last::Answered), number("-7"));
    assert_eq!(Place::new(&[]).mark(2, Last::Answered), None);
}

/// Without one both places are asked, which is right. One that is too low would hide items.
#[test]
fn where_it_cannot_be_read_there_is_none() {
    for last in [Last::Refused, Last::Late, Last::Short("14")] {
        let place = Place::new(&["9", "10", "11", "12", "13", "14"]);
        place.mark(4, Last::Answered);
        assert_eq!(place.mark(3, last), None, "{last:?}");
    }
}
