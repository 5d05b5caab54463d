//! A DynamoDB table in memory, made of what `heatsink_dynamo` evaluates: it takes what a client
//! sends as well as what the router makes of that.
//!
//! It knows what random requests use. A request that it does not know panics.

mod batches;
mod collections;
mod statements;

use std::collections::BTreeMap;

use bytes::Bytes;
use fastrand::Rng;
use heatsink_dynamo::expression::{Bindings, Condition, Kind, Projection, Update};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Code, Error, Item, KeyValue, Operation, TableSchema};
use serde_json::{Value as Json, json};

use crate::equal_answers::requests::modern;

#[derive(Clone, Debug)]
pub struct Store {
    pub schema: TableSchema,
    items: BTreeMap<Vec<u8>, Item>,
    /// The most items that a page reads.
    pub page: usize,
    /// One of so many keys of a batch is left for later; 0 leaves none.
    pub leaves: usize,
    rng: Rng,
    /// What all calls have cost.
    pub units: f64,
}

/// The expressions' names and values, raw.
struct Words {
    names: Option<Vec<u8>>,
    values: Option<Vec<u8>>,
}

impl Words {
    fn of(body: &Json) -> Self {
        let raw = |name| body.get(name).map(|value: &Json| value.to_string().into_bytes());
        Words { names: raw("ExpressionAttributeNames"), values: raw("ExpressionAttributeValues") }
    }

    fn bindings(&self) -> Result<Bindings<'_>, Error> {
        Bindings::read(self.names.as_deref(), self.values.as_deref())
    }
}

pub fn item(json: &Json) -> Item {
    read_item(json.to_string().as_bytes()).unwrap()
}

pub fn shown(item: &Item) -> Json {
    let mut raw = Vec::new();
    write_item(item, &mut raw);
    serde_json::from_slice(&raw).unwrap()
}

fn key<'a>(item: &'a Item, name: &str) -> Option<KeyValue<'a>> {
    item.get(name).and_then(KeyValue::from_value)
}

fn failed_condition() -> Error {
    Error::new(Code::ConditionalCheckFailedException, "The conditional request failed")
}

impl Store {
    pub fn new(schema: TableSchema) -> Self {
        Store {
            schema,
            items: BTreeMap::new(),
            page: usize::MAX,
            leaves: 0,
            rng: Rng::with_seed(1),
            units: 0.0,
        }
    }

    /// The items, in no order that a client knows.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values()
    }

    pub fn call(&mut self, operation: Operation, body: &Bytes) -> Result<Bytes, Error> {
        let body = modern(&serde_json::from_slice(body).unwrap());
        let answer = match operation {
            Operation::GetItem => self.get(&body),
            Operation::PutItem => self.alone("Put", &body),
            Operation::UpdateItem => self.alone("Update", &body),
            Operation::DeleteItem => self.alone("Delete", &body),
            Operation::BatchGetItem => self.batch_get(&body),
            Operation::BatchWriteItem => self.batch_write(&body),
            Operation::TransactGetItems => self.transact_get(&body),
            Operation::TransactWriteItems => self.transact_write(&body),
            Operation::Query => self.query(&body),
            Operation::Scan => self.scan(&body),
            Operation::ExecuteStatement => self.execute(&body),
            Operation::BatchExecuteStatement => self.batch_execute(&body),
            Operation::ExecuteTransaction => self.transact_execute(&body),
            other => panic!("{other:?}: {body}"),
        };
        answer.map(|answer| Bytes::from(answer.to_string()))
    }

    /// The key of an item, or of a request: what tells items apart.
    fn key(&self, item: &Item) -> Result<Vec<u8>, Error> {
        let wrong = || Error::validation("The provided key element does not match the schema");
        let mut raw = Vec::new();
        for attribute in std::iter::once(&self.schema.key.partition).chain(&self.schema.key.sort) {
            let value = KeyValue::read(&item.get(&attribute.name).ok_or_else(wrong)?.to_json(), attribute)
                .map(KeyValue::into_owned)
                .map_err(|_| wrong())?;
            if matches!(&value, KeyValue::S(text) if text.is_empty()) {
                return Err(Error::validation(
                    "The AttributeValue for a key attribute cannot contain an empty string value",
                ));
            }
            value.write(&mut raw);
        }
        Ok(raw)
    }

    fn named(&self, body: &Json) -> Result<Vec<u8>, Error> {
        let key = item(&body["Key"]);
        if key.len() != self.schema.key.names().count() {
            return Err(Error::validation("The number of conditions on the keys is invalid"));
        }
        self.key(&key)
    }

    /// Adds what a call costs to its answer, where the client asks for it.
    fn costing(&mut self, body: &Json, mut answer: Json, units: f64, list: bool) -> Json {
        self.units += units;
        if body.get("ReturnConsumedCapacity").is_some_and(|report| report != "NONE") {
            let consumed = json!({ "TableName": self.schema.name, "CapacityUnits": units });
            answer["ConsumedCapacity"] = if list { json!([consumed]) } else { consumed };
        }
        answer
    }

    /// What a read shows of an item.
    fn projected(&self, body: &Json, item: &Item) -> Result<Json, Error> {
        let words = Words::of(body);
        let Some(text) = body["ProjectionExpression"].as_str() else { return Ok(shown(item)) };
        Ok(shown(&Projection::parse(text, &words.bindings()?)?.apply(item)))
    }

    fn get(&mut self, body: &Json) -> Result<Json, Error> {
        let found = self.items.get(&self.named(body)?).cloned();
        let mut answer = json!({});
        if let Some(item) = found {
            answer["Item"] = self.projected(body, &item)?;
        }
        Ok(self.costing(body, answer, 1.0, false))
    }

    /// Carries out a write. Gives the item as it was.
    fn write(&mut self, kind: &str, body: &Json) -> Result<Option<Item>, Error> {
        let key = if kind == "Put" { self.key(&item(&body["Item"]))? } else { self.named(body)? };
        let old = self.items.get(&key).cloned();
        let words = Words::of(body);
        let bindings = words.bindings()?;
        let condition = body["ConditionExpression"].as_str();
        let update = body["UpdateExpression"].as_str();
        bindings.check_unused(&condition.into_iter().chain(update).collect::<Vec<_>>())?;
        if let Some(text) = condition {
            let condition = Condition::parse(Kind::Condition, text, &bindings)?;
            if !condition.holds(old.as_ref().unwrap_or(&Item::new())) {
                let failed = failed_condition();
                let shows = body["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD";
                return Err(match old.filter(|_| shows) {
                    Some(old) => failed.with("Item", shown(&old)),
                    None => failed,
                });
            }
        }
        match kind {
            "Put" => drop(self.items.insert(key, item(&body["Item"]))),
            "Delete" => drop(self.items.remove(&key)),
            "Update" => {
                let mut new = old.clone().unwrap_or_else(|| item(&body["Key"]));
                if let Some(text) = update {
                    let update = Update::parse(text, &bindings)?;
                    if let Some(name) = self.schema.key.names().find(|name| update.writes(name)) {
                        return Err(Error::validation(format!(
                            "Cannot update attribute {name}. This attribute is part of the key"
                        )));
                    }
                    new = update.apply(&new)?;
                }
                self.items.insert(key, new);
            }
            "ConditionCheck" => {}
            other => panic!("{other}"),
        }
        Ok(old)
    }

    fn alone(&mut self, kind: &str, body: &Json) -> Result<Json, Error> {
        let old = self.write(kind, body)?;
        let mut answer = json!({});
        let attributes = match body["ReturnValues"].as_str() {
            Some("ALL_OLD") => old,
            Some("ALL_NEW") => self.items.get(&self.named(body)?).cloned(),
            None | Some("NONE") => None,
            Some(other) => panic!("{other}"),
        };
        if let Some(attributes) = attributes {
            answer["Attributes"] = shown(&attributes);
        }
        Ok(self.costing(body, answer, 1.0, false))
    }
}
