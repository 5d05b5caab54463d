//! One hot or cool key of a load: what is asked of it, and how its answers are read.
//!
//! Everything follows from a request's number, so what has to be stored is known.
//!
//! Not here: how often, and beside what (`scene`), what is counted (`account`).

use std::collections::HashSet;

use heatsink_dynamo::Operation;
use heatsink_load::{Answer, Outcome, Request};
use serde_json::{Value as Json, json};

use crate::demo::account::Verdict;
use crate::demo::workload::{TABLE, scramble};

/// The global index of the table, where it has one, and the attribute that is its partition key.
pub const INDEX: &str = "by-topic";
/// The attribute.
pub const TOPIC: &str = "topic";
/// Puts of one BatchWriteItem: DynamoDB's most.
const BATCH: u32 = 25;
/// Table keys that the items of an index's value are written under.
const AUTHORS: u64 = 2_000;

/// What is asked of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// PutItem, of all items in turn.
    Put,
    /// The same by BatchWriteItem, 25 at once.
    Batch,
    /// PutItem of new items under many table keys, which have the key as a value of the index.
    Value,
    /// Strongly consistent GetItem, of all items in turn. They were there before.
    Get,
    /// UpdateItem that adds 1, of all items in turn. They were there before.
    Add,
}

/// A key, or a value of the index.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The partition key, or the value.
    pub name: String,
    /// Whether it is to be relieved; the others are there to be left alone.
    pub hot: bool,
    /// What is asked of it.
    pub act: Act,
    /// Requests per second.
    pub per_second: u32,
    /// Bytes of each item, about.
    pub bytes: u32,
    /// How many items it has.
    pub items: usize,
}

impl Subject {
    /// The index whose value it is; `None` for a key of the table.
    pub fn index(&self) -> Option<&'static str> {
        (self.act == Act::Value).then_some(INDEX)
    }

    /// Whether reads, and not writes, make it hot.
    pub fn is_read(&self) -> bool {
        self.act == Act::Get
    }

    /// Whether its items were there before the load.
    pub fn is_old(&self) -> bool {
        matches!(self.act, Act::Get | Act::Add)
    }

    /// Items of a request.
    pub fn items_each(&self) -> u32 {
        if self.act == Act::Batch { BATCH } else { 1 }
    }

    /// Capacity units a second that are asked of it; of a value, in the index.
    pub fn units_per_second(&self) -> f64 {
        let each = match self.act {
            Act::Get => self.bytes.div_ceil(4_096),
            Act::Put | Act::Batch | Act::Add => self.bytes.div_ceil(1_024),
            // The entry has keys alone.
            Act::Value => 1,
        };
        f64::from(each) * f64::from(self.per_second) * f64::from(self.items_each())
    }

    /// The numbers of the items that the nth request is for.
    pub fn items_of(&self, nth: u64) -> impl Iterator<Item = usize> + '_ {
        let each = u64::from(self.items_each());
        let items = (self.items as u64).max(1);
        (nth * each..(nth + 1) * each).map(move |one| usize::try_from(one % items).unwrap_or(0))
    }

    /// The table key and the sort key of an item.
    pub fn place(&self, item: usize) -> (String, String) {
        let sort = format!("{:016x}", scramble(item as u64));
        match self.act {
            Act::Value => (format!("{}-author-{:04}", self.name, item as u64 % AUTHORS), sort),
            _ => (self.name.clone(), sort),
        }
    }

    /// An item as it is before the load, or as a request with that number writes it.
    fn item(&self, item: usize, nth: Option<u64>) -> Json {
        let (pk, sk) = self.place(item);
        let text = usize::try_from(self.bytes).unwrap_or(0).saturating_sub(pk.len() + sk.len() + 40);
        let mut whole = json!({ "pk": { "S": pk }, "sk": { "S": sk }, "text": { "S": "*".repeat(text) } });
        if let Some(nth) = nth {
            whole["n"] = json!({ "N": nth.to_string() });
        }
        if self.act == Act::Value {
            whole[TOPIC] = json!({ "S": self.name });
        }
        whole
    }

    /// The items that are there before the load.
    pub fn old(&self) -> impl Iterator<Item = Json> + '_ {
        let count = if self.is_old() { self.items } else { 0 };
        (0..count).map(|item| self.item(item, None))
    }

    /// The nth request.
    pub fn request(&self, nth: u64) -> Request {
        let first = self.items_of(nth).next().unwrap_or(0);
        let key = || {
            let (pk, sk) = self.place(first);
            json!({ "pk": { "S": pk }, "sk": { "S": sk } })
        };
        let (operation, body) = match self.act {
            Act::Put | Act::Value => {
                (Operation::PutItem, json!({ "TableName": TABLE, "Item": self.item(first, Some(nth)) }))
            }
            Act::Batch => {
                let puts = self
                    .items_of(nth)
                    .map(|item| json!({ "PutRequest": { "Item": self.item(item, Some(nth)) } }));
                let puts: Vec<Json> = puts.collect();
                (Operation::BatchWriteItem, json!({ "RequestItems": { TABLE: puts } }))
            }
            Act::Get => {
                (Operation::GetItem, json!({ "TableName": TABLE, "Key": key(), "ConsistentRead": true }))
            }
            Act::Add => (
                Operation::UpdateItem,
                json!({
                    "TableName": TABLE, "Key": key(), "UpdateExpression": "ADD #n :one",
                    "ExpressionAttributeNames": { "#n": "n" }, "ExpressionAttributeValues": { ":one": { "N": "1" } },
                }),
            ),
        };
        Request::new(operation, body.to_string())
    }

    /// What an answer says of each item of the nth request.
    pub fn verdicts(&self, nth: u64, answer: &Answer) -> Vec<(usize, Verdict)> {
        let all = match Outcome::of(answer) {
            Outcome::Accepted => Verdict::Accepted,
            Outcome::Throttled => Verdict::Refused,
            Outcome::Failed => Verdict::Unknown,
        };
        let left = match all {
            Verdict::Accepted if self.act == Act::Batch => unprocessed(answer),
            _ => HashSet::new(),
        };
        let verdict = |item| if left.contains(&self.place(item).1) { Verdict::Refused } else { all };
        self.items_of(nth).map(|item| (item, verdict(item))).collect()
    }
}

/// The sort keys of the puts that a batch left out.
fn unprocessed(answer: &Answer) -> HashSet<String> {
    let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let puts = body["UnprocessedItems"][TABLE].as_array().cloned().unwrap_or_default();
    let sort = |put: &Json| put["PutRequest"]["Item"]["sk"]["S"].as_str().map(str::to_owned);
    puts.iter().filter_map(sort).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use heatsink_dynamo::size::item_size;
    use heatsink_dynamo::value::read_item;

    use super::*;

    fn subject(act: Act, bytes: u32) -> Subject {
        Subject { name: "game".to_owned(), hot: true, act, per_second: 10, bytes, items: 100 }
    }

    #[test]
    fn items_cost_the_units_that_are_reckoned_with() {
        for (act, bytes) in [(Act::Put, 1_000), (Act::Put, 4_000), (Act::Get, 40_000), (Act::Add, 61_000)] {
            let item = subject(act, bytes).item(3, Some(123_456)).to_string();
            let size = item_size(&read_item(item.as_bytes()).unwrap());
            let bytes = bytes as usize;
            assert!((bytes - 60..=bytes).contains(&size), "{size} of {bytes}");
        }
        assert!((subject(Act::Get, 40_000).units_per_second() - 100.0).abs() < 1e-9);
        assert!((subject(Act::Add, 61_000).units_per_second() - 600.0).abs() < 1e-9);
        assert!((subject(Act::Batch, 900).units_per_second() - 250.0).abs() < 1e-9);
    }

    #[test]
    fn a_batch_is_refused_by_its_items() {
        let subject = subject(Act::Batch, 900);
        let left = subject.place(30).1;
        let body =
            json!({ "UnprocessedItems": { TABLE: [{ "PutRequest": { "Item": { "sk": { "S": left } } } }] } });
        let answer = Answer { status: heatsink_load::StatusCode::OK, body: Bytes::from(body.to_string()) };
        let verdicts = subject.verdicts(1, &answer);
        assert_eq!(verdicts.len(), BATCH as usize);
        assert!(verdicts.iter().all(|(item, verdict)| (*verdict == Verdict::Refused) == (*item == 30)));
    }
}
