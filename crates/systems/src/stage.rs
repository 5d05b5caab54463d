//! A gateway in this process, over the embedded store behind its partitions, on a clock that
//! advances with the load.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use heatsink_control::{Fencing, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_gateway::Gateway;
use heatsink_physics::Quotas;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use heatsink_workers::{Adoption, AdoptionOptions, AdoptionReport, Direction, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

use crate::counted_store::CountedStore;

/// Requests that are under way at the same time.
const TOGETHER: u32 = 10;

/// Why an application stopped: a request was refused, or an answer is not what the application can
/// read.
#[derive(Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault(format!("{}: {}", error.code.name(), error.message.unwrap_or_default()))
    }
}

/// The result of a load. Requests are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// The numbers of those that were accepted, ascending.
    pub accepted: Vec<u32>,
    /// The number of throttled requests. They are not retried, so that the application counts what
    /// the key could not accept.
    pub throttled: usize,
}

/// A running gateway with an empty store.
pub struct Stage {
    pub(crate) clock: ManualEnv,
    pub(crate) gateway: Gateway,
    pub(crate) store: Arc<CountedStore>,
}

impl Stage {
    /// Starts under `rules`, in the words of heatsink.toml.
    ///
    /// # Errors
    /// When the rules are wrong or the store does not start.
    pub async fn start(rules: &str) -> Result<Stage, Fault> {
        let clock = ManualEnv::seeded(1);
        // The accounts' tables are larger than a new account may have.
        let store =
            Partitioned::start(Embedded::memory()?, Arc::new(HastyEnv(clock.clone())), Quotas::NONE).await?;
        Stage::over(Arc::new(CountedStore::new(store, clock.clone())), clock, rules).await
    }

    /// Another gateway before the same store, under other rules.
    ///
    /// # Errors
    /// As [`Stage::start`].
    pub async fn again(&self, rules: &str) -> Result<Stage, Fault> {
        Stage::over(self.store.clone(), self.clock.clone(), rules).await
    }

    async fn over(store: Arc<CountedStore>, clock: ManualEnv, rules: &str) -> Result<Stage, Fault> {
        let env: Arc<dyn Env> = Arc::new(HastyEnv(clock.clone()));
        let rules = read(rules)?;
        let fencing = Fencing::shared(rules.fence(), "stage");
        let gateway = Gateway::builder(store.clone()).env(env).rules(rules).fencing(fencing).start().await;
        let gateway = gateway.map_err(|error| Fault(error.to_string()))?;
        // Time costs nothing here.
        gateway.control().changer().begin_patiently().await?;
        Ok(Stage { clock, gateway, store })
    }

    /// Brings a table under rules, as `heatsink adopt` does, or back out of them.
    ///
    /// # Errors
    /// Why it is not possible, or where it stopped.
    pub async fn adopt(
        &self,
        table: &str,
        rules: &str,
        direction: Direction,
    ) -> Result<AdoptionReport, Fault> {
        let env: Arc<dyn Env> = Arc::new(HastyEnv(self.clock.clone()));
        let fault = |error: WorkerError| Fault(error.to_string());
        let adoption = Adoption::prepare(self.store.clone(), env, &read(rules)?, table, direction)
            .await
            .map_err(fault)?;
        adoption.run(AdoptionOptions { concurrency: 16, exclusive: false }, &Unwatched).await.map_err(fault)
    }

    /// One request, as a client would have it answered.
    ///
    /// # Errors
    /// The error that the client would get.
    pub async fn call(&self, operation: Operation, body: &Json) -> Result<Json, Fault> {
        let answer = self.gateway.call(operation, Bytes::from(body.to_string())).await?;
        serde_json::from_slice(&answer).map_err(|error| Fault(error.to_string()))
    }

    /// Offers `per_second` writes for `seconds`, a few at a time at even distances, and counts
    /// those that are throttled.
    ///
    /// # Errors
    /// The first error other than throttling.
    pub async fn offer(
        &self,
        per_second: u32,
        seconds: u32,
        request: impl Fn(u32) -> (Operation, Json),
    ) -> Result<Load, Fault> {
        let mut load = Load::default();
        let mut nth = 0;
        while nth < per_second * seconds {
            let together = nth..(nth + TOGETHER).min(per_second * seconds);
            self.clock.advance(Duration::from_secs(1) * TOGETHER / per_second);
            let answers = join_all(together.clone().map(|nth| {
                let (operation, body) = request(nth);
                self.gateway.call(operation, Bytes::from(body.to_string()))
            }))
            .await;
            for (nth, answer) in together.clone().zip(answers) {
                match answer {
                    Ok(_) => load.accepted.push(nth),
                    Err(error) if throttled(&error.code) => load.throttled += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            nth = together.end;
        }
        Ok(load)
    }

    /// Advances the clock, so that the partitions recover.
    pub fn rest(&self) {
        self.clock.advance(Duration::from_secs(10));
    }

    /// The first hash of each partition of a table, in order.
    pub fn partitions(&self, table: &str) -> Vec<u64> {
        let resources = self.store.partitioned().snapshot(table).unwrap_or_default();
        let own = resources.into_iter().find(|resource| resource.index.is_none());
        own.into_iter().flat_map(|own| own.partitions).map(|partition| partition.first).collect()
    }

    /// The number of physical requests that the store has got so far.
    pub fn physical_calls(&self) -> u64 {
        self.store.calls()
    }

    /// An answer, and how many physical requests it took.
    ///
    /// # Errors
    /// As [`Stage::call`].
    pub async fn counted(&self, operation: Operation, body: &Json) -> Result<(Json, u64), Fault> {
        let before = self.physical_calls();
        let answer = self.call(operation, body).await?;
        Ok((answer, self.physical_calls() - before))
    }

    /// A Query read to its end, page by page as an application does: one string attribute of every
    /// item, and the physical requests it took.
    ///
    /// # Errors
    /// As [`Stage::call`].
    pub async fn pages(&self, mut query: Json, attribute: &str) -> Result<(Vec<String>, u64), Fault> {
        let (mut found, mut calls) = (Vec::new(), 0);
        loop {
            let (answer, more) = self.counted(Operation::Query, &query).await?;
            calls += more;
            found.extend(strings(&answer, attribute));
            match &answer["LastEvaluatedKey"] {
                Json::Null => return Ok((found, calls)),
                last => query["ExclusiveStartKey"] = last.clone(),
            }
        }
    }

    /// One request that bypasses the gateway, as other code on the same table sends it.
    ///
    /// # Errors
    /// The store's.
    pub async fn past(&self, operation: Operation, body: &Json) -> Result<Json, Fault> {
        let answer = self.store.call(operation, Bytes::from(body.to_string())).await?;
        serde_json::from_slice(&answer).map_err(|error| Fault(error.to_string()))
    }

    /// Creates a table with these string keys and indexes, provisioned so that it has 80
    /// partitions. `indexes` are name, partition key and sort key.
    ///
    /// # Errors
    /// As [`Stage::call`].
    pub async fn create(
        &self,
        table: &str,
        [hash, range]: [&str; 2],
        indexes: &[(&str, [&str; 2])],
    ) -> Result<(), Fault> {
        self.call(Operation::CreateTable, &create(table, [hash, range], indexes)).await.map(drop)
    }
}

/// `CreateTable` with these string keys and indexes, provisioned so that it has 80 partitions.
pub(crate) fn create(table: &str, [hash, range]: [&str; 2], indexes: &[(&str, [&str; 2])]) -> Json {
    let keys = |[hash, range]: [&str; 2]| {
        json!([
            {"AttributeName": hash, "KeyType": "HASH"},
            {"AttributeName": range, "KeyType": "RANGE"},
        ])
    };
    let capacity = json!({"ReadCapacityUnits": 120_000, "WriteCapacityUnits": 40_000});
    let mut names = vec![hash, range];
    names.extend(indexes.iter().flat_map(|(_, keys)| *keys));
    names.sort_unstable();
    names.dedup();
    let attributes: Vec<Json> =
        names.iter().map(|name| json!({"AttributeName": name, "AttributeType": "S"})).collect();
    let mut body = json!({
        "TableName": table,
        "AttributeDefinitions": attributes,
        "KeySchema": keys([hash, range]),
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": capacity,
    });
    let indexes: Vec<Json> = indexes
        .iter()
        .map(|(name, of)| {
            json!({
                "IndexName": name,
                "KeySchema": keys(*of),
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": capacity,
            })
        })
        .collect();
    if !indexes.is_empty() {
        body["GlobalSecondaryIndexes"] = Json::Array(indexes);
    }
    body
}

fn read(rules: &str) -> Result<Rules, Fault> {
    Rules::read("the example's rules", rules).map_err(|error| Fault(error.to_string()))
}

pub(crate) fn throttled(code: &Code) -> bool {
    matches!(
        code,
        Code::ProvisionedThroughputExceededException | Code::ThrottlingException | Code::RequestLimitExceeded
    )
}

/// The string attribute `name` of every item of an answer.
pub(crate) fn strings(answer: &Json, name: &str) -> Vec<String> {
    let items = answer["Items"].as_array().into_iter().flatten();
    items.filter_map(|item| item[name]["S"].as_str().map(str::to_owned)).collect()
}
