//! The embedded store, which keeps what it says that each request costs, by key. Requests for
//! several items are carried out one by one, so that each has its own cost.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, ManualEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Map, Value as Json, json};

use crate::units::answers::{added, merged, show};

/// The index, `read` or `write`, the key.
pub(crate) type Place = (Option<String>, String, String);

pub(crate) struct Tap {
    inner: Embedded,
    random: ManualEnv,
    truth: Mutex<HashMap<Place, f64>>,
    /// Of 1,000 requests so many are refused.
    refused: AtomicU64,
    for_index: AtomicBool,
}

/// An item's part of a request: what it is by itself.
struct Single {
    operation: Operation,
    body: Json,
    key: String,
    owner: Option<String>,
}

impl Tap {
    pub(crate) fn new(inner: Embedded, seed: u64) -> Self {
        Tap {
            inner,
            random: ManualEnv::seeded(seed),
            truth: Mutex::default(),
            refused: AtomicU64::new(0),
            for_index: AtomicBool::new(false),
        }
    }

    /// From now on that share of the requests is refused: after it was carried out, so that its
    /// cost is known.
    pub(crate) fn refuses(&self, share: f64) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        self.refused.store((share * 1_000.0) as u64, Ordering::Relaxed);
    }

    /// Every put is refused because of a partition of the index.
    pub(crate) fn refuses_for_index(&self, refuses: bool) {
        self.for_index.store(refuses, Ordering::Relaxed);
    }

    /// Units by place since the last call.
    pub(crate) fn take(&self) -> HashMap<Place, f64> {
        std::mem::take(&mut self.truth.lock().unwrap())
    }

    fn refuses_now(&self) -> bool {
        (self.random.random() >> 16) % 1_000 < self.refused.load(Ordering::Relaxed)
    }

    /// Carries out one, and gives its answer and its cost, in the detail that is asked for.
    async fn one(&self, single: &Single) -> Result<(Json, Json), Error> {
        let mut body = single.body.clone();
        body["ReturnConsumedCapacity"] = "INDEXES".into();
        let answer = self.inner.call(single.operation, Bytes::from(body.to_string())).await;
        let mut answer: Json = match answer {
            Ok(answer) => serde_json::from_slice(&answer).unwrap(),
            Err(error) => {
                if error.code == Code::ConditionalCheckFailedException {
                    self.failed(single).await;
                }
                return Err(error);
            }
        };
        let cost = answer.as_object_mut().unwrap().remove("ConsumedCapacity").unwrap_or(Json::Null);
        let cost = if cost.is_array() { cost[0].clone() } else { cost };
        let mut truth = self.truth.lock().unwrap();
        let kind = if reads(single) { "read" } else { "write" };
        let mut own = cost["CapacityUnits"].as_f64().unwrap_or(0.0);
        for (index, units) in cost["GlobalSecondaryIndexes"].as_object().unwrap_or(&Map::new()) {
            let units = units["CapacityUnits"].as_f64().unwrap();
            own -= units;
            if let Some(owner) = &single.owner {
                *truth.entry((Some(index.clone()), kind.to_owned(), owner.clone())).or_default() += units;
            }
        }
        if single.operation != Operation::Scan {
            *truth.entry((None, kind.to_owned(), single.key.clone())).or_default() += own;
        }
        Ok((answer, cost))
    }

    /// A failed condition costs what the item costs: as an update that changes nothing of it.
    async fn failed(&self, single: &Single) {
        let item = &single.body["Item"];
        let body = json!({ "TableName": "games", "Key": { "pk": item["pk"], "sk": item["sk"] },
            "UpdateExpression": "SET flag = flag", "ReturnConsumedCapacity": "INDEXES" });
        let answer = self.inner.call(Operation::UpdateItem, Bytes::from(body.to_string())).await.unwrap();
        let cost = &serde_json::from_slice::<Json>(&answer).unwrap()["ConsumedCapacity"];
        let units = cost["Table"]["CapacityUnits"].as_f64().unwrap();
        *self.truth.lock().unwrap().entry((None, "write".to_owned(), single.key.clone())).or_default() +=
            units;
    }

    async fn answer(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let request: Option<Json> = serde_json::from_slice(&body).ok();
        let Some((request, singles)) =
            request.and_then(|request| Some((request.clone(), singles(operation, &request)?)))
        else {
            return self.inner.call(operation, body).await;
        };
        let report = request["ReturnConsumedCapacity"].as_str().unwrap_or("NONE").to_owned();
        if operation == Operation::PutItem && self.for_index.load(Ordering::Relaxed) {
            return Err(refused("IndexWriteKeyRangeThroughputExceeded", "/index/by-owner"));
        }
        if let ([single], false) = (&singles[..], many(operation)) {
            let refuses = operation != Operation::Scan && self.refuses_now();
            let (mut answer, cost) = self.one(single).await?;
            if refuses {
                return Err(refused("TableWriteKeyRangeThroughputExceeded", ""));
            }
            show(&mut answer, &report, cost);
            return Ok(Bytes::from(answer.to_string()));
        }
        let (mut answers, mut sum, mut left) = (Vec::new(), Json::Null, Vec::new());
        let may_leave = matches!(operation, Operation::BatchGetItem | Operation::BatchWriteItem);
        for (nth, single) in singles.iter().enumerate() {
            // All of a batch is not left: that is an error.
            let leaves = may_leave && nth > 0 && self.refuses_now();
            let (answer, cost) = self.one(single).await?;
            match leaves {
                true => left.push(nth),
                false => {
                    answers.push(answer);
                    sum = added(sum, cost);
                }
            }
        }
        let mut answer = merged(operation, &request, answers, &left);
        show(&mut answer, &report, if sum.is_null() { sum } else { json!([sum]) });
        Ok(Bytes::from(answer.to_string()))
    }
}

impl Store for Tap {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.answer(operation, body).boxed()
    }
}

fn refused(reason: &str, index: &str) -> Error {
    let resource = format!("arn:aws:dynamodb:us-east-1:000000000000:table/games{index}");
    let reasons = json!([{ "reason": reason, "resource": resource }]);
    Error::new(Code::ThrottlingException, "slow down").with("throttlingReasons", reasons)
}

fn reads(single: &Single) -> bool {
    match single.operation {
        Operation::ExecuteStatement => single.body["Statement"].as_str().unwrap().starts_with("SELECT"),
        Operation::GetItem | Operation::Query | Operation::Scan | Operation::TransactGetItems => true,
        _ => false,
    }
}

fn many(operation: Operation) -> bool {
    use Operation as O;
    matches!(
        operation,
        O::BatchGetItem
            | O::BatchWriteItem
            | O::TransactGetItems
            | O::TransactWriteItems
            | O::BatchExecuteStatement
    )
}

fn text(value: &Json) -> Option<String> {
    value["S"].as_str().map(str::to_owned)
}

/// What a request is one by one; `None` for one that this store leaves to the other.
fn singles(operation: Operation, request: &Json) -> Option<Vec<Single>> {
    use Operation as O;
    // What is wrong is the store's to say.
    let asks = request["ReturnConsumedCapacity"].as_str().unwrap_or("NONE");
    if !["NONE", "TOTAL", "INDEXES"].contains(&asks) {
        return None;
    }
    let single = |operation, mut body: Json, key: String, owner| {
        body.as_object_mut().unwrap().remove("ReturnConsumedCapacity");
        Single { operation, body, key, owner }
    };
    let of_statement = |statement: &Json| {
        let place = usize::from(!statement["Statement"].as_str()?.starts_with("SELECT"));
        Some(single(O::ExecuteStatement, statement.clone(), text(&statement["Parameters"][place])?, None))
    };
    Some(match operation {
        O::PutItem => {
            let item = &request["Item"];
            vec![single(operation, request.clone(), text(&item["pk"])?, text(&item["owner"]))]
        }
        O::UpdateItem | O::GetItem => {
            vec![single(operation, request.clone(), text(&request["Key"]["pk"])?, None)]
        }
        O::Query => {
            let key = text(&request["ExpressionAttributeValues"][":p"])?;
            vec![single(operation, request.clone(), key, None)]
        }
        O::Scan => vec![single(operation, request.clone(), String::new(), None)],
        O::ExecuteStatement => vec![of_statement(request)?],
        O::BatchExecuteStatement => {
            request["Statements"].as_array()?.iter().map(of_statement).collect::<Option<_>>()?
        }
        O::BatchWriteItem => {
            let of = |one: &Json| {
                let item = &one["PutRequest"]["Item"];
                let body = json!({ "TableName": "games", "Item": item });
                Some(single(O::PutItem, body, text(&item["pk"])?, text(&item["owner"])))
            };
            request["RequestItems"]["games"].as_array()?.iter().map(of).collect::<Option<_>>()?
        }
        O::BatchGetItem => {
            let of = |key: &Json| {
                let strong = &request["RequestItems"]["games"]["ConsistentRead"];
                let body = json!({ "TableName": "games", "Key": key, "ConsistentRead": strong });
                Some(single(O::GetItem, body, text(&key["pk"])?, None))
            };
            request["RequestItems"]["games"]["Keys"].as_array()?.iter().map(of).collect::<Option<_>>()?
        }
        O::TransactGetItems | O::TransactWriteItems => {
            if request.get("ClientRequestToken").is_some() {
                return None;
            }
            let of = |one: &Json| {
                let (_, action) = one.as_object()?.iter().next()?;
                let (item, key) = (&action["Item"], &action["Key"]);
                let name = text(&item["pk"]).or_else(|| text(&key["pk"]))?;
                Some(single(operation, json!({ "TransactItems": [one] }), name, text(&item["owner"])))
            };
            request["TransactItems"].as_array()?.iter().map(of).collect::<Option<_>>()?
        }
        _ => return None,
    })
}
