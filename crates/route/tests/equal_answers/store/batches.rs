//! Batches, of which a part may be left for later, and transactions.

use heatsink_dynamo::{Code, Error};
use serde_json::{Value as Json, json};

use super::Store;

impl Store {
    /// Whether the element at that place of a batch is left for later.
    fn is_left(&mut self, place: usize) -> bool {
        self.leaves > 0 && place > 0 && self.rng.usize(..=self.leaves) == 0
    }

    pub(super) fn batch_get(&mut self, body: &Json) -> Result<Json, Error> {
        let (mut responses, mut left, mut units) = (json!({}), json!({}), 0.0);
        for (name, part) in body["RequestItems"].as_object().unwrap() {
            let (mut found, mut later) = (Vec::new(), Vec::new());
            let keys = part["Keys"].as_array().unwrap();
            assert!((1..=100).contains(&keys.len()), "{} keys", keys.len());
            for (place, key) in keys.iter().enumerate() {
                let mut get = part.clone();
                get["Key"] = key.clone();
                let named = self.named(&get)?;
                if self.is_left(place) {
                    later.push(key.clone());
                    continue;
                }
                units += 1.0;
                if let Some(item) = self.items.get(&named) {
                    found.push(self.projected(part, item)?);
                }
            }
            responses[name] = json!(found);
            if !later.is_empty() {
                left[name] = part.clone();
                left[name]["Keys"] = json!(later);
            }
        }
        let answer = json!({ "Responses": responses, "UnprocessedKeys": left });
        Ok(self.costing(body, answer, units, true))
    }

    pub(super) fn batch_write(&mut self, body: &Json) -> Result<Json, Error> {
        let (mut left, mut units) = (json!({}), 0.0);
        for (name, writes) in body["RequestItems"].as_object().unwrap() {
            let mut later = Vec::new();
            for (place, write) in writes.as_array().unwrap().iter().enumerate() {
                if self.is_left(place) {
                    later.push(write.clone());
                    continue;
                }
                units += 1.0;
                match (write.get("PutRequest"), write.get("DeleteRequest")) {
                    (Some(put), None) => self.write("Put", put)?,
                    (None, Some(delete)) => self.write("Delete", delete)?,
                    _ => panic!("{write}"),
                };
            }
            if !later.is_empty() {
                left[name] = json!(later);
            }
        }
        Ok(self.costing(body, json!({ "UnprocessedItems": left }), units, true))
    }

    pub(super) fn transact_get(&mut self, body: &Json) -> Result<Json, Error> {
        let mut responses = Vec::new();
        for action in body["TransactItems"].as_array().unwrap() {
            let get = &action["Get"];
            let found = self.items.get(&self.named(get)?);
            responses.push(match found {
                Some(item) => json!({ "Item": self.projected(get, item)? }),
                None => json!({}),
            });
        }
        let units = responses.len();
        Ok(self.costing(body, json!({ "Responses": responses }), units as f64, true))
    }

    pub(super) fn transact_write(&mut self, body: &Json) -> Result<Json, Error> {
        let before = self.items.clone();
        let mut reasons = Vec::new();
        let actions = body["TransactItems"].as_array().unwrap();
        for action in actions {
            let (kind, action) = action.as_object().unwrap().iter().next().unwrap();
            reasons.push(match self.write(kind, action) {
                Ok(_) => json!({ "Code": "None" }),
                Err(error) if error.code == Code::ConditionalCheckFailedException => {
                    let mut reason = json!({ "Code": "ConditionalCheckFailed", "Message": error.message });
                    if let Some(item) = error.members.get("Item") {
                        reason["Item"] = item.clone();
                    }
                    reason
                }
                Err(error) => {
                    self.items = before;
                    return Err(error);
                }
            });
        }
        if reasons.iter().all(|reason| reason["Code"] == "None") {
            return Ok(self.costing(body, json!({}), 2.0 * actions.len() as f64, true));
        }
        self.items = before;
        Err(cancelled(&reasons))
    }
}

/// A transaction that was not carried out, with the reason of each action.
pub(super) fn cancelled(reasons: &[Json]) -> Error {
    let codes: Vec<&str> = reasons.iter().map(|reason| reason["Code"].as_str().unwrap()).collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    Error::new(Code::TransactionCanceledException, message).with("CancellationReasons", json!(reasons))
}
