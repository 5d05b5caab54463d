//! What a worker knows of its items. Nobody else writes them, so each is known exactly, until the
//! outcome of a write is unknown: then the item is written no more, and another takes its place.
//!
//! Not here: requests.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};

/// The attributes of an item, as the SDK has them.
pub type Attributes = HashMap<String, AttributeValue>;

/// What an item holds beside its key and its group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holds {
    /// The value of the last put or SET.
    pub value: Option<String>,
    /// How often one was added to it since the last put.
    pub number: Option<u64>,
}

impl Holds {
    /// After a put.
    pub fn put(value: &str) -> Self {
        Holds { value: Some(value.to_owned()), number: None }
    }

    /// What stored attributes hold.
    pub fn of(item: &Attributes) -> Self {
        Holds {
            value: item.get("v").and_then(|v| v.as_s().ok()).cloned(),
            number: item.get("n").and_then(|n| n.as_n().ok()).and_then(|n| n.parse().ok()),
        }
    }

    /// As the scenario's oracle writes it.
    pub fn text(&self) -> String {
        let value = self.value.clone().unwrap_or_default();
        self.number.map_or(value.clone(), |number| format!("{value}+{number}"))
    }
}

/// The text of what lies there, if anything does.
pub fn text(holds: Option<&Holds>) -> Option<String> {
    holds.map(Holds::text)
}

/// What lies there after one more ADD of 1.
pub fn one_more(holds: Option<&Holds>) -> Holds {
    let before = holds.cloned().unwrap_or_default();
    Holds { number: Some(before.number.unwrap_or(0) + 1), ..before }
}

/// One item of a worker.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its sort key.
    pub sk: String,
    /// What lies there for certain.
    pub holds: Option<Holds>,
    /// What a write of unknown outcome may have left, or may leave yet.
    pub perhaps: Option<Option<Holds>>,
}

impl Item {
    /// An item that has not been written.
    pub fn fresh(sk: String) -> Self {
        Item { sk, holds: None, perhaps: None }
    }

    /// Whether a consistent read may show this now.
    pub fn allows(&self, shown: Option<&Holds>) -> bool {
        shown == self.holds.as_ref() || self.perhaps.as_ref().is_some_and(|perhaps| shown == perhaps.as_ref())
    }

    /// What the scenario needs to judge it by.
    pub fn reported(&self, key: &str) -> Json {
        let perhaps: Vec<_> = self.perhaps.iter().map(|perhaps| text(perhaps.as_ref())).collect();
        json!([key, self.sk, text(self.holds.as_ref()), perhaps])
    }
}
