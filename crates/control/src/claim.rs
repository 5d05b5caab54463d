//! A worker's claim on a table. While the claim holds, the worker's writes succeed. Once another
//! worker has taken over, none of them succeeds, however late it arrives.
//!
//! Each write is a transaction that also checks an item of the claim in the registry (a
//! **permit**). A worker that takes over deletes the permits and writes its own in one transaction,
//! so the store refuses a write that was sent before and arrives afterwards. A claim has several
//! permits, because two transactions that check one item at the same time conflict.
//!
//! The table's **holder** item names the claim in force and its number of permits. A claim is taken
//! under one version of the table's record, so a worker that resumes late cannot take one.
//!
//! Not here: what workers write (`adopt`); how gateways learn of a change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::lock::{Mutex, MutexGuard};
use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::record::{Record, SORT};
use crate::registry::Registry;

/// The most permits of one claim. A takeover deletes and creates that many, and checks and writes
/// two more items: 24 actions, within the 25 that stores before 2022 take in one transaction.
const MOST_PERMITS: usize = 11;
/// The same for stores that take 10, as DynamoDB did at first and older DynamoDB Local versions do.
const FEW_PERMITS: usize = 4;

/// The sort key of a permit, and that of the holder.
const PERMIT: &str = "worker";
const HOLDER: &str = "claim";

/// How often a transaction that conflicted or was throttled is retried: some two minutes.
const ATTEMPTS: u32 = 80;
/// The longest pause between two retries.
const LONGEST: Duration = Duration::from_secs(2);

/// The right to write items of one table.
pub struct Claim {
    registry: Registry,
    id: String,
    name: String,
    run: String,
    permits: Vec<Mutex<()>>,
    next: AtomicUsize,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// All actions were carried out.
    Done,
    /// No action was carried out: the conditions of the actions at these positions did not hold.
    Refused(Vec<usize>),
}

/// Why a claim does not hold.
#[derive(Debug)]
pub enum ClaimError {
    /// Another worker has the table, or its record changed: the message.
    TakenOver(String),
    /// The store failed.
    Store(Error),
}

impl From<Error> for ClaimError {
    fn from(error: Error) -> Self {
        ClaimError::Store(error)
    }
}

/// Whether the store has transactions. Without them no table can be claimed.
///
/// # Errors
/// The store's.
pub async fn is_possible(registry: &Registry) -> Result<bool, Error> {
    let key = json!({ "pk": { "S": "worker:none" }, "sk": { "S": PERMIT } });
    let check = json!({ "TableName": registry.name(), "Key": key, "ConditionExpression": "attribute_not_exists(pk)" });
    let body = json!({ "TransactItems": [{ "ConditionCheck": check }] });
    match registry.call(Operation::TransactWriteItems, body).await {
        Err(error) if error.code == Code::UnknownOperationException => Ok(false),
        // There is no registry yet; or the check failed, which shows that transactions exist.
        Err(error)
            if [Code::ResourceNotFoundException, Code::TransactionCanceledException]
                .contains(&error.code) =>
        {
            Ok(true)
        }
        answer => answer.map(|_| true),
    }
}

/// Whether a worker has a claim on a table, alive or dead.
///
/// # Errors
/// The store's.
pub(crate) async fn is_held(registry: &Registry, id: &str) -> Result<bool, Error> {
    let body = json!({ "TableName": registry.name(), "Key": holder(id), "ConsistentRead": true });
    let found = registry.call_patiently(Operation::GetItem, body).await;
    Ok(found.map_err(|error| registry.failed(error))?.get("Item").is_some())
}

impl Claim {
    /// Claims a table whose record is `record`, with so many concurrent writes, at most 11. The
    /// previous holder loses its claim.
    ///
    /// # Errors
    /// [`ClaimError::TakenOver`] where the record has changed, or another worker claims the table
    /// at the same time.
    pub fn take<'a>(
        registry: &'a Registry,
        record: &'a Record,
        writes: usize,
    ) -> BoxFuture<'a, Result<Self, ClaimError>> {
        async move {
            let permits = writes.clamp(1, MOST_PERMITS);
            match Self::take_with(registry, record, permits).await {
                Err(ClaimError::Store(error))
                    if error.code == Code::ValidationException && permits > FEW_PERMITS =>
                {
                    Self::take_with(registry, record, FEW_PERMITS).await
                }
                taken => taken,
            }
        }
        .boxed()
    }

    async fn take_with(registry: &Registry, record: &Record, permits: usize) -> Result<Self, ClaimError> {
        let run = format!("{:016x}", registry.env().random());
        let body = json!({ "TableName": registry.name(), "Key": holder(&record.id), "ConsistentRead": true });
        let before = registry.call_patiently(Operation::GetItem, body).await?;
        let before = &before["Item"];

        let since = registry.env().unix_millis().to_string();
        let mut put = json!({
            "TableName": registry.name(),
            "Item": {
                "pk": holder(&record.id)["pk"], "sk": { "S": HOLDER }, "run": { "S": run }, "permits": { "N": permits.to_string() },
                "name": { "S": record.name }, "since": { "N": since },
            },
            "ConditionExpression": "attribute_not_exists(pk)",
        });
        if let Some(run) = before["run"]["S"].as_str() {
            put["ConditionExpression"] = json!("#r = :r");
            put["ExpressionAttributeNames"] = json!({ "#r": "run" });
            put["ExpressionAttributeValues"] = json!({ ":r": { "S": run } });
        }
        let check = json!({
            "TableName": registry.name(), "Key": { "pk": { "S": record.id }, "sk": { "S": SORT } }, "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": record.version.to_string() } },
        });
        let mut actions = vec![json!({ "ConditionCheck": check }), json!({ "Put": put })];
        let old = before["permits"]["N"].as_str().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        let old_run = before["run"]["S"].as_str().unwrap_or_default();
        actions.extend(
            (0..old.min(MOST_PERMITS))
                .map(|at| json!({ "Delete": { "TableName": registry.name(), "Key": permit(old_run, at) } })),
        );
        actions.extend((0..permits).map(|at| {
            let mut item = permit(&run, at);
            item["name"] = json!({ "S": record.name });
            json!({ "Put": { "TableName": registry.name(), "Item": item } })
        }));
        let claim = Claim {
            registry: registry.clone(),
            id: record.id.clone(),
            name: record.name.clone(),
            permits: (0..permits).map(|_| Mutex::new(())).collect(),
            next: AtomicUsize::new(0),
            run,
        };
        // With a token, so that a copy of this request that arrives after the end of the claim does
        // not restore it.
        match transact(registry, actions, Some(&claim.run)).await? {
            Written::Done => Ok(claim),
            Written::Refused(_) => Err(claim.lost()),
        }
    }

    /// Carries out the actions of a transaction, all or none, if the claim still holds.
    ///
    /// # Errors
    /// [`ClaimError::TakenOver`] where the claim does not hold any more: nothing was written.
    /// `ValidationException` for actions that the store refuses.
    pub fn write(&self, actions: Vec<Json>) -> BoxFuture<'_, Result<Written, ClaimError>> {
        async move {
            let (at, _alone) = self.free_permit().await;
            let check = json!({
                "TableName": self.registry.name(), "Key": permit(&self.run, at), "ConditionExpression": "attribute_exists(pk)",
            });
            let mut checked = vec![json!({ "ConditionCheck": check })];
            checked.extend(actions);
            match transact(&self.registry, checked, None).await? {
                Written::Done => Ok(Written::Done),
                Written::Refused(failed) if failed.contains(&0) => Err(self.lost()),
                Written::Refused(failed) => Ok(Written::Refused(failed.into_iter().map(|at| at - 1).collect())),
            }
        }
        .boxed()
    }

    /// How many writes can be sent at once.
    pub fn writes(&self) -> usize {
        self.permits.len()
    }

    /// A permit that no other write of this claim checks now, and its number; each in turn.
    async fn free_permit(&self) -> (usize, Option<MutexGuard<'_, ()>>) {
        let permits = self.permits.len().max(1);
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (first..first.saturating_add(permits)).map(|at| at % permits);
        let free = in_turn.clone().find_map(|at| Some((at, self.permits.get(at)?.try_lock()?)));
        match free {
            Some((at, permit)) => (at, Some(permit)),
            None => match self.permits.get(first % permits) {
                Some(permit) => (first % permits, Some(permit.lock().await)),
                None => (0, None),
            },
        }
    }

    /// Ends the claim: no write that was sent under it succeeds from now on.
    ///
    /// # Errors
    /// [`ClaimError::TakenOver`] where another worker has the table already.
    pub fn end(self) -> BoxFuture<'static, Result<(), ClaimError>> {
        async move {
            let delete = json!({
                "TableName": self.registry.name(), "Key": holder(&self.id), "ConditionExpression": "#r = :r",
                "ExpressionAttributeNames": { "#r": "run" }, "ExpressionAttributeValues": { ":r": { "S": self.run } },
            });
            let mut actions = vec![json!({ "Delete": delete })];
            actions.extend((0..self.permits.len()).map(
                |at| json!({ "Delete": { "TableName": self.registry.name(), "Key": permit(&self.run, at) } }),
            ));
            match transact(&self.registry, actions, None).await? {
                Written::Done => Ok(()),
                Written::Refused(_) => Err(self.lost()),
            }
        }
        .boxed()
    }

    fn lost(&self) -> ClaimError {
        ClaimError::TakenOver(format!(
            "Another run of `heatsink adopt` or `heatsink verify --repair` works on table {0} now, or the record of table {0} changed. This run \
             stopped, and nothing that it sent lands any more",
            self.name
        ))
    }
}

fn holder(id: &str) -> Json {
    json!({ "pk": { "S": format!("worker:{id}") }, "sk": { "S": HOLDER } })
}

fn permit(run: &str, at: usize) -> Json {
    json!({ "pk": { "S": format!("worker:{run}.{at}") }, "sk": { "S": PERMIT } })
}

/// One transaction, retried with jittered backoff while it conflicts or is throttled.
async fn transact(registry: &Registry, actions: Vec<Json>, token: Option<&str>) -> Result<Written, Error> {
    let mut body = json!({ "TransactItems": actions });
    if let Some(token) = token {
        body["ClientRequestToken"] = json!(token);
    }
    let mut pause = Duration::from_millis(10);
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let error = match registry.call_patiently(Operation::TransactWriteItems, body.clone()).await {
            Ok(_) => return Ok(Written::Done),
            Err(error) => error,
        };
        match error.code {
            Code::TransactionConflictException | Code::TransactionInProgressException => {}
            Code::TransactionCanceledException => match meaning(&error) {
                Meaning::Refused(failed) => return Ok(Written::Refused(failed)),
                Meaning::Conflict => {}
                Meaning::Throttled => registry.was_throttled(),
                Meaning::Invalid(why) => return Err(Error::validation(why)),
                Meaning::Other => return Err(error),
            },
            _ => return Err(error),
        }
        let jitter = u32::try_from(registry.env().random() % 1_000).unwrap_or(0);
        registry.env().sleep(pause / 2 + pause * jitter / 2_000).await;
        pause = (pause * 2).min(LONGEST);
        last = Some(error);
    }
    Err(last.unwrap_or_else(|| Error::internal("no transaction was sent")))
}

/// Why a transaction was cancelled.
enum Meaning {
    /// The conditions of these actions did not hold.
    Refused(Vec<usize>),
    Conflict,
    Throttled,
    /// The store does not accept an action.
    Invalid(String),
    Other,
}

fn meaning(error: &Error) -> Meaning {
    let Some(reasons) = error.members.get("CancellationReasons").and_then(Json::as_array) else {
        return Meaning::Other;
    };
    let code = |reason: &Json| reason["Code"].as_str().unwrap_or("None").to_owned();
    let failed: Vec<usize> = (0..)
        .zip(reasons)
        .filter(|(_, why)| code(why) == "ConditionalCheckFailed")
        .map(|(at, _)| at)
        .collect();
    if !failed.is_empty() {
        return Meaning::Refused(failed);
    }
    if let Some(invalid) = reasons.iter().find(|reason| code(reason) == "ValidationError") {
        return Meaning::Invalid(invalid["Message"].as_str().unwrap_or("an action is not valid").to_owned());
    }
    let throttled = ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"];
    let is_throttled = |reason: &Json| throttled.contains(&code(reason).as_str());
    let passes = |reason: &Json| ["None", "TransactionConflict"].contains(&code(reason).as_str());
    match reasons.iter().all(|reason| passes(reason) || is_throttled(reason)) {
        true if reasons.iter().any(is_throttled) => Meaning::Throttled,
        true => Meaning::Conflict,
        false => Meaning::Other,
    }
}
