//! Random requests on the table `Tab`, of few keys and few values.

mod binary;
mod legacy;
mod statements;

use fastrand::Rng;
use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

pub use binary::binary;
pub use legacy::modern;

const DAYS: [&str; 8] = [
    "2025-01-01T08",
    "2025-01-01T23",
    "2025-01-02T00",
    "2025-01-04",
    "2025-01-07T10",
    "2025-01-07T11",
    "none",
    "2024",
];

pub struct Requests {
    pub rng: Rng,
    pub keys: &'static [&'static str],
    /// Whether `n` is the number of a counter.
    pub counters: bool,
}

impl Requests {
    pub fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(..of.len())].clone()
    }

    pub fn pk(&mut self) -> &'static str {
        self.one(self.keys)
    }

    /// Of counters there are few, so that most have more than one fragment.
    fn sk(&mut self) -> &'static str {
        if self.counters { self.one(&DAYS[..2]) } else { self.one(&DAYS) }
    }

    fn key(&mut self) -> Json {
        json!({ "pk": { "S": self.pk() }, "sk": { "S": self.sk() } })
    }

    /// Different keys.
    fn keys(&mut self, most: usize) -> Vec<Json> {
        let mut keys: Vec<Json> = Vec::new();
        for _ in 0..self.rng.usize(1..=most) {
            let key = self.key();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    fn number(&mut self) -> Json {
        json!({ "N": self.rng.u8(..9).to_string() })
    }

    pub fn item(&mut self) -> Json {
        let mut item = self.key();
        let letter = ["x", "y", "z"];
        if self.rng.u8(..4) > 0 {
            item["n"] = self.number();
        }
        if self.rng.bool() {
            item["v"] = json!({ "S": self.one(&letter) });
        }
        if self.rng.bool() {
            item["m"] = json!({ "M": { "k": self.number(), "l": { "S": "#~1" } } });
        }
        if self.rng.u8(..4) > 0 {
            item["at"] = json!({ "S": self.one(&["1", "2", "3"]) });
            item["team"] = json!({ "S": self.one(&["red", "blue"]) });
        }
        item
    }

    /// A condition, or a filter that may mention keys if `keyed`. Its values are added.
    fn condition(&mut self, values: &mut Json, keyed: bool, team: bool) -> String {
        let number = if self.counters { "m.k > :cn" } else { "n > :cn" };
        let plain = [
            "attribute_exists(v)",
            "v = :cv",
            number,
            "attribute_not_exists(m.k) OR v <> :cv",
            "m.k IN (:cn, :cm)",
        ];
        let of_key = [
            "pk = :cp",
            "begins_with(pk, :cp) AND attribute_exists(sk)",
            "NOT pk = :cp OR v = :cv",
            "attribute_not_exists(pk)",
        ];
        let text = if keyed && self.rng.bool() { self.one(&of_key) } else { self.one(&plain) };
        let text = if !team && text.contains("team") { "v = :cv" } else { text };
        for (name, value) in [
            (":cv", json!({ "S": "x" })),
            (":cn", self.number()),
            (":cm", self.number()),
            (":cp", json!({ "S": self.pk() })),
            (":ct", json!({ "S": self.one(&["red", "blue"]) })),
        ] {
            if text.contains(name) {
                values[name] = value;
            }
        }
        text.to_owned()
    }

    fn with_condition(&mut self, body: &mut Json) {
        if self.rng.bool() {
            return;
        }
        let mut values = body.get("ExpressionAttributeValues").cloned().unwrap_or_else(|| json!({}));
        body["ConditionExpression"] = self.condition(&mut values, true, true).into();
        if values != json!({}) {
            body["ExpressionAttributeValues"] = values;
        }
        if self.rng.bool() {
            body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD".into();
        }
    }

    /// An item's write: the kind of action, and its body.
    fn write(&mut self) -> (&'static str, Json) {
        let mut body = json!({ "TableName": "Tab" });
        let kind = self.one(&["Put", "Put", "Put", "Update", "Update", "Delete"]);
        match kind {
            "Put" => body["Item"] = self.item(),
            _ => body["Key"] = self.key(),
        }
        if kind == "Update" {
            let text = self.one(&[
                "SET v = :v",
                if self.counters { "ADD n :n" } else { "SET v = :v" },
                "ADD n :n",
                "REMOVE m",
                "SET m.k = :n",
                "SET v = if_not_exists(v, :v) REMOVE m.l",
                "SET v = pk",
            ]);
            body["UpdateExpression"] = text.into();
            let mut values = json!({});
            if text.contains(":v") {
                values[":v"] = json!({ "S": self.one(&["x", "w"]) });
            }
            if text.contains(":n") {
                values[":n"] = self.number();
            }
            if text.contains(":t") {
                values[":t"] = json!({ "S": self.one(&["red", "blue"]) });
            }
            if values != json!({}) {
                body["ExpressionAttributeValues"] = values;
            }
        }
        self.with_condition(&mut body);
        (kind, body)
    }

    fn with_projection(&mut self, body: &mut Json) {
        if self.rng.u8(..3) == 0 {
            body["ProjectionExpression"] = self.one(&["#v, sk", "m.k", "pk, n", "sk, m, #v"]).into();
            if body["ProjectionExpression"].as_str().unwrap().contains("#v") {
                body["ExpressionAttributeNames"] = json!({ "#v": "v" });
            }
        }
    }

    /// The request, which may ask for what it costs.
    pub fn reporting(&mut self, mut body: Json) -> Json {
        if self.rng.u8(..3) == 0 {
            body["ReturnConsumedCapacity"] = self.one(&["TOTAL", "INDEXES", "NONE"]).into();
        }
        body
    }

    /// An operation on one item.
    pub fn point(&mut self) -> (Operation, Json) {
        if self.rng.u8(..3) == 0 {
            let mut body = json!({ "TableName": "Tab", "Key": self.key() });
            self.with_projection(&mut body);
            return (Operation::GetItem, body);
        }
        let (kind, mut body) = self.write();
        if self.rng.u8(..3) == 0 {
            body["ReturnValues"] = self.one(&["ALL_OLD", "NONE"]).into();
        }
        let operation = match kind {
            "Put" => Operation::PutItem,
            "Update" => Operation::UpdateItem,
            _ => Operation::DeleteItem,
        };
        (operation, body)
    }

    /// An operation on several items.
    pub fn several(&mut self) -> (Operation, Json) {
        match self.rng.u8(..4) {
            0 => {
                let mut part = json!({ "Keys": self.keys(8) });
                self.with_projection(&mut part);
                (Operation::BatchGetItem, json!({ "RequestItems": { "Tab": part } }))
            }
            1 => {
                let mut writes = Vec::new();
                for key in self.keys(6) {
                    writes.push(if self.rng.bool() {
                        json!({ "DeleteRequest": { "Key": key } })
                    } else {
                        let mut item = self.item();
                        item["pk"] = key["pk"].clone();
                        item["sk"] = key["sk"].clone();
                        json!({ "PutRequest": { "Item": item } })
                    });
                }
                (Operation::BatchWriteItem, json!({ "RequestItems": { "Tab": writes } }))
            }
            2 => {
                let get = |key: Json| json!({ "Get": { "TableName": "Tab", "Key": key } });
                let gets: Vec<Json> = self.keys(4).into_iter().map(get).collect();
                (Operation::TransactGetItems, json!({ "TransactItems": gets }))
            }
            _ => {
                let (mut actions, mut keys) = (Vec::new(), Vec::new());
                for _ in 0..self.rng.usize(1..5) {
                    let (kind, body) = self.write();
                    let object = &body[if kind == "Put" { "Item" } else { "Key" }];
                    let key = (object["pk"].clone(), object["sk"].clone());
                    if !keys.contains(&key) {
                        keys.push(key);
                        actions.push(json!({ (kind): body }));
                    }
                }
                (Operation::TransactWriteItems, json!({ "TransactItems": actions }))
            }
        }
    }

    fn with_filter(&mut self, body: &mut Json, keyed: bool, team: bool) {
        if self.rng.bool() {
            let mut values = body.get("ExpressionAttributeValues").cloned().unwrap_or_else(|| json!({}));
            body["FilterExpression"] = self.condition(&mut values, keyed, team).into();
            if values != json!({}) {
                body["ExpressionAttributeValues"] = values;
            }
        }
        match self.rng.u8(..6) {
            0 => body["Select"] = "COUNT".into(),
            1 | 2 => self.with_projection(body),
            _ => {}
        }
        if self.rng.bool() {
            body["Limit"] = self.rng.usize(1..6).into();
        }
    }

    pub fn query(&mut self) -> Json {
        let index = self.one(&["", "", "", "local", "global", "team"]);
        let (partition, value) =
            if index == "team" { ("team", self.one(&["red", "blue"])) } else { ("pk", self.pk()) };
        let mut values = json!({ ":p": { "S": value } });
        let mut condition = format!("{partition} = :p");
        let (sort, mut ends) = match index {
            "" => ("sk", [self.sk(), self.sk()]),
            _ => ("at", [self.one(&["1", "2", "3"]), self.one(&["1", "2", "3"])]),
        };
        ends.sort_unstable();
        let tests = [
            "",
            "",
            "{} = :a",
            "{} < :a",
            "{} <= :a",
            "{} > :a",
            "{} >= :a",
            "{} BETWEEN :a AND :b",
            "begins_with({}, :a)",
        ];
        let test = self.one(&tests).replace("{}", sort);
        if !test.is_empty() {
            condition = format!("{condition} AND {test}");
            values[":a"] = json!({ "S": ends[0] });
            if test.contains(":b") {
                values[":b"] = json!({ "S": ends[1] });
            }
        }
        let mut body = json!({ "TableName": "Tab", "KeyConditionExpression": condition, "ExpressionAttributeValues": values });
        if !index.is_empty() {
            body["IndexName"] = index.into();
        }
        if self.rng.bool() {
            body["ScanIndexForward"] = self.rng.bool().into();
        }
        if index != "global" && index != "team" && self.rng.bool() {
            body["ConsistentRead"] = true.into();
        }
        self.with_filter(&mut body, index == "team", index != "team");
        body
    }

    pub fn scan(&mut self) -> Json {
        let mut body = json!({ "TableName": "Tab" });
        if self.rng.u8(..4) == 0 {
            body["IndexName"] = self.one(&["local", "global", "team"]).into();
        }
        self.with_filter(&mut body, true, true);
        body
    }
}
