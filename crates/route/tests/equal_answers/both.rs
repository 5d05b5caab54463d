//! A client before two tables, which compares what they answer.

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, Origin};
use serde_json::{Value as Json, json};

use crate::common;
use crate::equal_answers::store::{Store, shown};
use crate::equal_answers::worlds::{Sharded, World};

/// Stands in the refusal of what counters do not support.
const COUNTER: &str = "Not supported on a counter";

/// A client's two tables.
pub struct Both {
    plain: Store,
    pub sharded: Sharded,
    /// Requests that Heatsink does not carry out on this layout, or holds.
    pub refused: usize,
}

/// An answer without what it cost, or an error as the client sees it.
type Answered = Result<Json, (String, Option<String>, Json)>;

fn answered(answer: Result<Bytes, Error>) -> Answered {
    match answer {
        Ok(body) => Ok(without_cost(common::json(&body))),
        Err(error) => Err((error.code.name().to_owned(), error.message.clone(), Json::Object(error.members))),
    }
}

/// An answer that shows a cost, without the cost.
fn without_cost(mut answer: Json) -> Json {
    if let Some(cost) = answer.get_mut("ConsumedCapacity") {
        let table = |cost: &Json| json!({ "TableName": cost["TableName"] });
        *cost = cost.as_array().map_or_else(|| table(cost), |tables| tables.iter().map(table).collect());
    }
    answer
}

impl Both {
    pub fn new(world: World) -> Self {
        Both { plain: Store::new(world.schema()), sharded: Sharded::new(world), refused: 0 }
    }

    /// The two answers to a request; nothing where Heatsink refuses it, and then nothing is done.
    fn call(&mut self, operation: Operation, body: &Json) -> Option<(Answered, Answered)> {
        let bytes = Bytes::from(body.to_string());
        let before = self.sharded.store.clone();
        let sharded = self.sharded.call(operation, &bytes);
        // A statement of several is refused where its own answer stands.
        let is_refusal = match &sharded {
            Ok(body) => body.windows(COUNTER.len()).any(|part| part == COUNTER.as_bytes()),
            Err(error) => {
                error.origin != Origin::DynamoDb || json!(error.members).to_string().contains(COUNTER)
            }
        };
        if is_refusal {
            self.refused += 1;
            assert!(self.sharded.store.items().eq(before.items()), "{operation:?} {body}: {sharded:?}");
            return None;
        }
        let plain = self.plain.call(operation, &bytes);
        Some((answered(plain), answered(sharded)))
    }

    /// Sends what a batch has left undone until all is done. Gives the items that were read.
    fn finish(&mut self, operation: Operation, first: &Json) -> Vec<Json> {
        let (mut found, mut answer) = (Vec::new(), first.clone());
        for _ in 0..100 {
            found.extend(
                answer.pointer("/Responses/Tab").and_then(Json::as_array).into_iter().flatten().cloned(),
            );
            let left =
                ["UnprocessedKeys", "UnprocessedItems"].iter().find_map(|name| answer.get(name).cloned());
            let left = left.unwrap_or_else(|| json!({}));
            if left == json!({}) {
                return found;
            }
            let body = Bytes::from(json!({ "RequestItems": left }).to_string());
            answer = common::json(&self.sharded.call(operation, &body).unwrap());
        }
        panic!("{operation:?} is never done: {first}");
    }

    pub fn same(&mut self, operation: Operation, body: &Json) {
        if matches!(operation, Operation::BatchGetItem | Operation::BatchWriteItem) {
            if let Some((plain, sharded)) = self.call(operation, body) {
                let found = sharded.map(|answer| sorted(&self.finish(operation, &answer)));
                let read = |answer: Json| answer.pointer("/Responses/Tab").and_then(Json::as_array).cloned();
                let expected = plain.map(|answer| sorted(&read(answer).unwrap_or_default()));
                assert_eq!(expected, found, "{operation:?} {body}");
            }
            return;
        }
        if let Some((plain, sharded)) = self.call(operation, body) {
            assert_eq!(plain, sharded, "{operation:?} {body}");
        }
    }

    /// All pages of a Query or a Scan: their items, in order, how many were counted and scanned,
    /// and the cursors.
    fn pages(&mut self, operation: Operation, body: &Json, plain: bool) -> Option<Result<Vec<Json>, String>> {
        let (mut pages, mut next): (Vec<Json>, Json) = (Vec::new(), body.clone());
        loop {
            let bytes = Bytes::from(next.to_string());
            let answer =
                if plain { self.plain.call(operation, &bytes) } else { self.sharded.call(operation, &bytes) };
            let page = match answer {
                Ok(page) => without_cost(common::json(&page)),
                Err(error) if error.origin == Origin::Gateway => {
                    self.refused += 1;
                    return None;
                }
                Err(error) => return Some(Err(error.to_string())),
            };
            let last = page.get("LastEvaluatedKey").cloned();
            pages.push(page);
            assert!(pages.len() < 300, "endless pages: {body}");
            let Some(last) = last else { return Some(Ok(pages)) };
            next["ExclusiveStartKey"] = last;
        }
    }

    /// Compares all pages. `exact`: page for page, with their cursors.
    pub fn same_pages(&mut self, operation: Operation, body: &Json, exact: bool) {
        let Some(sharded) = self.pages(operation, body, false) else { return };
        let plain = self.pages(operation, body, true).unwrap();
        if exact {
            assert_eq!(plain, sharded, "{operation:?} {body}");
            return;
        }
        let (Ok(plain), Ok(sharded)) = (&plain, &sharded) else {
            assert_eq!(plain.is_err(), sharded.is_err(), "{operation:?} {body}: {plain:?} {sharded:?}");
            return;
        };
        let sum =
            |pages: &[Json], name: &str| pages.iter().map(|page| page[name].as_u64().unwrap()).sum::<u64>();
        let sums = |pages: &[Json]| (sum(pages, "Count"), sum(pages, "ScannedCount"));
        assert_eq!(sums(plain), sums(sharded), "{operation:?} {body}");
        let items = |pages: &[Json]| {
            pages
                .iter()
                .flat_map(|page| page["Items"].as_array().cloned().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        let (plain, sharded) = (items(plain), items(sharded));
        if operation == Operation::Query {
            let order = |items: &[Json]| items.iter().map(|item| item["at"].clone()).collect::<Vec<_>>();
            assert_eq!(order(&plain), order(&sharded), "{operation:?} {body}");
        }
        assert_eq!(sorted(&plain), sorted(&sharded), "{operation:?} {body}");
    }

    /// Compares what a statement gives, on all its pages.
    pub fn same_statement(&mut self, body: &Json, limited: bool) {
        let select = body["Statement"].as_str().unwrap().starts_with("SELECT");
        if !select {
            return self.same(Operation::ExecuteStatement, body);
        }
        let (mut found, mut next) = (Vec::new(), body.clone());
        if limited {
            next["Limit"] = 2.into();
        }
        let sharded = loop {
            match self.sharded.call(Operation::ExecuteStatement, &Bytes::from(next.to_string())) {
                Ok(page) => {
                    let page = common::json(&page);
                    found.extend(page["Items"].as_array().unwrap().iter().cloned());
                    let Some(token) = page.get("NextToken") else { break Ok(found) };
                    next["NextToken"] = token.clone();
                }
                Err(error) if error.origin == Origin::Gateway => {
                    self.refused += 1;
                    return;
                }
                Err(error) => break Err(error.to_string()),
            }
        };
        let plain = self.plain.call(Operation::ExecuteStatement, &Bytes::from(body.to_string()));
        let plain = plain.map(|page| common::json(&page)["Items"].as_array().unwrap().clone());
        let plain = plain.map_err(|error| error.to_string());
        if body["Statement"].as_str().unwrap().contains("ORDER") {
            assert_eq!(plain, sharded, "{body}");
        }
        assert_eq!(plain.map(|items| sorted(&items)), sharded.map(|items| sorted(&items)), "{body}");
    }

    /// Whether the tables hold the same.
    pub fn same_contents(&mut self) {
        let scan = json!({ "TableName": "Tab" });
        let pages = self.pages(Operation::Scan, &scan, false).unwrap().unwrap();
        let found: Vec<Json> =
            pages.iter().flat_map(|page| page["Items"].as_array().unwrap().clone()).collect();
        let plain: Vec<Json> = self.plain.items().map(shown).collect();
        assert_eq!(sorted(&found), sorted(&plain));
    }
}

fn sorted(items: &[Json]) -> Vec<String> {
    let mut sorted: Vec<String> = items.iter().map(Json::to_string).collect();
    sorted.sort_unstable();
    sorted
}
