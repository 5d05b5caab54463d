//! Loads of every kind of request, by a seed. Each key has items of one size, so that what a refused
//! request would have cost is known. Each put changes its item: one that does not writes nothing to
//! an index.

use heatsink_dynamo::Operation;
use heatsink_env::{Env, ManualEnv};
use heatsink_gateway::Gateway;
use serde_json::{Value as Json, json};

const KEYS: u64 = 24;
const ITEMS: u64 = 6;
/// Bytes of the items of a key, by the key's number: none is near a whole KB.
const SIZES: [usize; 6] = [60, 300, 700, 2_500, 9_700, 20_300];

/// The kinds of requests.
const KINDS: u64 = 14;

pub(crate) struct Load {
    random: ManualEnv,
    counter: u64,
}

impl Load {
    pub(crate) fn new(seed: u64) -> Self {
        Load { random: ManualEnv::seeded(seed), counter: 0 }
    }

    fn below(&self, below: u64) -> u64 {
        (self.random.random() >> 16) % below
    }

    /// The share of the requests of some keys that is refused.
    pub(crate) fn refused_share(&self) -> f64 {
        [0.0, 0.1, 0.4, 0.8][usize::try_from(self.below(4)).unwrap()]
    }

    /// The requests that write every item once.
    pub(crate) fn filling(&self) -> Vec<(Operation, Json)> {
        let all = (0..KEYS).flat_map(|key| (0..ITEMS).map(move |item| (key, item)));
        all.map(|(key, nth)| {
            (Operation::PutItem, json!({ "TableName": "games", "Item": item(key, nth, self.counter) }))
        })
        .collect()
    }

    pub(crate) async fn fill(&mut self, gateway: &Gateway) {
        for (operation, body) in self.filling() {
            gateway.call(operation, body.to_string()).await.unwrap();
        }
    }

    /// A second: few requests or many, of all kinds or of two.
    pub(crate) async fn window(&mut self, gateway: &Gateway) {
        let requests = [40, 400, 1_200, 2_000][usize::try_from(self.below(4)).unwrap()];
        let only = (self.below(2) == 0).then(|| [self.below(KINDS), self.below(KINDS)]);
        for _ in 0..requests {
            let kind = match only {
                Some(kinds) => kinds[usize::try_from(self.below(2)).unwrap()],
                None => self.below(KINDS),
            };
            let (operation, body) = self.of_kind(kind);
            // Some are refused.
            let _ = gateway.call(operation, body.to_string()).await;
        }
    }

    pub(crate) fn request(&mut self) -> (Operation, Json) {
        let kind = self.below(KINDS);
        self.of_kind(kind)
    }

    fn of_kind(&mut self, kind: u64) -> (Operation, Json) {
        use Operation as O;
        self.counter += 1;
        let (key, nth) = (self.key(), self.below(ITEMS));
        let strong = self.below(2) == 0;
        let named = |mut body: Json| {
            body["TableName"] = "games".into();
            body
        };
        let update = json!({ "UpdateExpression": "SET flag = :f", "ExpressionAttributeValues": { ":f": { "BOOL": strong } } });
        match kind {
            0 => (O::PutItem, named(json!({ "Item": item(key, nth, self.counter) }))),
            1 => {
                let mut body = named(update);
                body["Key"] = key_of(key, nth);
                (O::UpdateItem, body)
            }
            2 => (O::GetItem, named(json!({ "Key": key_of(key, nth), "ConsistentRead": strong }))),
            3 | 4 => {
                let mut body = named(json!({
                    "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": name(key) } },
                    "ConsistentRead": strong, "Limit": 1 + self.below(3),
                }));
                if kind == 4 {
                    body["FilterExpression"] = "flag = :f".into();
                    body["ExpressionAttributeValues"][":f"] = json!({ "BOOL": true });
                    body["ProjectionExpression"] = "sk".into();
                }
                (O::Query, body)
            }
            5 => {
                // No item twice.
                let (first, version) = (self.below(KEYS), self.counter);
                let puts = (0..1 + self.below(12)).map(|nth| {
                    let key = (first + nth) % KEYS;
                    json!({ "PutRequest": { "Item": item(key, nth % ITEMS, version) } })
                });
                (O::BatchWriteItem, json!({ "RequestItems": { "games": puts.collect::<Vec<_>>() } }))
            }
            6 => {
                let first = self.below(KEYS);
                let keys: Vec<Json> =
                    (0..1 + self.below(12)).map(|nth| key_of((first + nth) % KEYS, nth % ITEMS)).collect();
                (
                    O::BatchGetItem,
                    json!({ "RequestItems": { "games": { "Keys": keys, "ConsistentRead": strong } } }),
                )
            }
            7 => {
                let put = json!({ "Put": named(json!({ "Item": item(key, nth, self.counter) })) });
                let mut body = named(update);
                body["Key"] = key_of((key + 1) % KEYS, nth);
                (O::TransactWriteItems, json!({ "TransactItems": [put, { "Update": body }] }))
            }
            8 => {
                let get = |key| json!({ "Get": named(json!({ "Key": key_of(key, nth) })) });
                (O::TransactGetItems, json!({ "TransactItems": [get(key), get((key + 1) % KEYS)] }))
            }
            9 => {
                let parameters = json!([{ "S": name(key) }, { "S": nth.to_string() }]);
                let text = "SELECT * FROM games WHERE pk = ? AND sk = ?";
                (
                    O::ExecuteStatement,
                    json!({ "Statement": text, "Parameters": parameters, "ConsistentRead": strong }),
                )
            }
            10 => {
                let parameters = json!([{ "BOOL": strong }, { "S": name(key) }, { "S": nth.to_string() }]);
                let text = "UPDATE games SET flag = ? WHERE pk = ? AND sk = ?";
                (O::ExecuteStatement, json!({ "Statement": text, "Parameters": parameters }))
            }
            11 => {
                // Its condition refuses it.
                let mut body = named(
                    json!({ "Item": item(key, nth, self.counter), "ConditionExpression": "attribute_not_exists(pk)" }),
                );
                if strong {
                    body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD".into();
                }
                (O::PutItem, body)
            }
            12 => (O::Scan, named(json!({ "Limit": 3 }))),
            _ => {
                let select = |key| {
                    json!({ "Statement": "SELECT * FROM games WHERE pk = ? AND sk = ?",
                        "Parameters": [{ "S": name(key) }, { "S": nth.to_string() }], "ConsistentRead": strong })
                };
                (O::BatchExecuteStatement, json!({ "Statements": [select(key), select((key + 1) % KEYS)] }))
            }
        }
    }

    /// A few keys have most of the load.
    fn key(&self) -> u64 {
        self.below(KEYS).min(self.below(KEYS)).min(self.below(KEYS))
    }
}

pub(crate) fn name(key: u64) -> String {
    format!("game_{key}")
}

fn key_of(key: u64, nth: u64) -> Json {
    json!({ "pk": { "S": name(key) }, "sk": { "S": nth.to_string() } })
}

fn item(key: u64, nth: u64, version: u64) -> Json {
    let note = "lorem ipsum ".repeat(SIZES[usize::try_from(key).unwrap() % SIZES.len()] / 12);
    json!({
        "pk": { "S": name(key) }, "sk": { "S": nth.to_string() }, "owner": { "S": format!("owner_{}", key % 3) },
        "flag": { "BOOL": true }, "version": { "N": (1_000_000 + version).to_string() }, "note": { "S": note },
    })
}
