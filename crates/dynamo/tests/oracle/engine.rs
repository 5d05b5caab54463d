//! The embedded engine, called with the JSON that a client would send.

use dynoxide::{Database, DynoxideError};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Item, Value};
use serde_json::{Map, Value as Json, json};

use crate::Sent;

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    Done(T),
    Refused(String),
}

pub struct Engine {
    database: Database,
}

thread_local! {
    static ENGINE: std::rc::Rc<Engine> = std::rc::Rc::new(Engine::new());
}

impl Engine {
    pub fn shared() -> std::rc::Rc<Engine> {
        ENGINE.with(std::rc::Rc::clone)
    }

    fn new() -> Engine {
        let database = Database::memory().unwrap();
        let request = json!({
            "TableName": "table", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        });
        database.create_table(serde_json::from_value(request).unwrap()).unwrap();
        Engine { database }
    }

    /// Leaves these items in the table and no others.
    pub fn fill(&self, items: &[Item]) {
        let all = self.database.scan(serde_json::from_value(json!({"TableName": "table"})).unwrap()).unwrap();
        for item in read_items(&all) {
            let key = to_json(&item)["pk"].clone();
            let request = json!({"TableName": "table", "Key": {"pk": key}});
            self.database.delete_item(serde_json::from_value(request).unwrap()).unwrap();
        }
        for item in items {
            let request = json!({"TableName": "table", "Item": to_json(item)});
            self.database.put_item(serde_json::from_value(request).unwrap()).unwrap();
        }
    }

    /// The keys of the items for which the filter holds, in order.
    pub fn scan(&self, filter: &Sent) -> Outcome<Vec<Value>> {
        let request = request(filter, "FilterExpression", None);
        self.finish(self.database.scan(serde_json::from_value(request).unwrap()), |answer| {
            let mut keys: Vec<Value> =
                read_items(answer).into_iter().map(|item| item["pk"].clone()).collect();
            keys.sort_by_key(Value::to_json);
            keys
        })
    }

    /// Whether the condition holds for the item.
    pub fn check(&self, key: &str, condition: &Sent) -> Outcome<bool> {
        let request = request(condition, "ConditionExpression", Some(key));
        match self.database.delete_item(serde_json::from_value(request).unwrap()) {
            Ok(_) => Outcome::Done(true),
            Err(DynoxideError::ConditionalCheckFailedException(..)) => Outcome::Done(false),
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }

    pub fn get(&self, key: &str, projection: &Sent) -> Outcome<Item> {
        let request = request(projection, "ProjectionExpression", Some(key));
        self.finish(self.database.get_item(serde_json::from_value(request).unwrap()), |answer| {
            let answer = serde_json::to_value(answer).unwrap();
            read_item(answer["Item"].to_string().as_bytes()).unwrap()
        })
    }

    pub fn update(&self, key: &str, update: &Sent) -> Outcome<Item> {
        let mut request = request(update, "UpdateExpression", Some(key));
        request["ReturnValues"] = json!("ALL_NEW");
        self.finish(self.database.update_item(serde_json::from_value(request).unwrap()), |answer| {
            let answer = serde_json::to_value(answer).unwrap();
            read_item(answer["Attributes"].to_string().as_bytes()).unwrap()
        })
    }

    fn finish<A, T>(&self, answer: Result<A, DynoxideError>, read: impl FnOnce(&A) -> T) -> Outcome<T> {
        match answer {
            Ok(answer) => Outcome::Done(read(&answer)),
            Err(DynoxideError::ValidationException(message)) => Outcome::Refused(message),
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }
}

fn request(sent: &Sent, member: &str, key: Option<&str>) -> Json {
    let mut request = Map::new();
    request.insert("TableName".into(), json!("table"));
    request.insert(member.into(), json!(sent.text));
    if let Some(key) = key {
        request.insert("Key".into(), json!({"pk": {"S": key}}));
    }
    for (member, json) in
        [("ExpressionAttributeNames", &sent.names), ("ExpressionAttributeValues", &sent.values)]
    {
        if let Some(json) = json {
            request.insert(member.into(), serde_json::from_slice(json).unwrap());
        }
    }
    Json::Object(request)
}

fn to_json(item: &Item) -> Json {
    let mut out = Vec::new();
    write_item(item, &mut out);
    serde_json::from_slice(&out).unwrap()
}

fn read_items(answer: &impl serde::Serialize) -> Vec<Item> {
    let answer = serde_json::to_value(answer).unwrap();
    let items = answer["Items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| read_item(item.to_string().as_bytes()).unwrap()).collect()
}
