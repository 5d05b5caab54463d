//! A worker's claim on a table, or on one key of it. While the claim holds, the worker's writes
//! succeed. Once another worker has taken over, none of them succeeds, however late it arrives.
//!
//! Each write is a transaction that also checks an item of the claim in the registry (a
//! **permit**). A worker that takes over deletes the permits and writes its own in one transaction,
//! so the store refuses a write that was sent before and arrives afterwards. A claim has several
//! permits, because two transactions that check one item at the same time conflict.
//!
//! The **holder** item of the table, or of the key, names the claim in force and its number of
//! permits. A claim is taken under one version of the table's record, or of the key's, so a worker
//! that resumes late cannot take one. Keys have claims of their own, because several of a table
//! move at a time. Who claims a key ends the claim on its table first: that of a repair, or of a
//! build that knows no others.
//!
//! Not here: what workers write (`adopt`); how gateways learn of a change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::lock::{Mutex, MutexGuard};
use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::key_record::KeyRecord;
use crate::record::{Record, SORT};
use crate::registry::Registry;
pub use crate::transact::Written;
use crate::transact::{LONGEST_OF_WRITES, PATIENCE, transact};

/// The most permits of one claim. A takeover deletes and creates that many, and checks and writes
/// two more items: 24 actions, within the 25 that stores before 2022 take in one transaction.
const MOST_PERMITS: usize = 11;
/// The same for stores that take 10, as DynamoDB did at first and older DynamoDB Local versions do.
const FEW_PERMITS: usize = 4;

/// The sort key of a permit, and that of the holder.
const PERMIT: &str = "worker";
const HOLDER: &str = "claim";

/// The longest pause between two retries: of a claim, and of a write under it. Writes of items meet
/// the clients of a partition that may burn, and clients retry soon: who pauses for longer than
/// they do comes to nothing there. How many are sent is the worker's affair.
const LONGEST: Duration = Duration::from_secs(2);

/// For so long a write is sent again that can be carried out otherwise.
const BRIEFLY: Duration = Duration::from_millis(300);

/// The right to write items of one table, or of one key.
pub struct Claim {
    registry: Registry,
    /// The primary key of the holder item.
    holder: Json,
    name: String,
    run: String,
    permits: Vec<Mutex<()>>,
    next: AtomicUsize,
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
    let found = held_by(registry, &of_table(id)).await;
    Ok(found.map_err(|error| registry.failed(error))?.is_some())
}

/// What a claim is on.
struct On<'a> {
    /// The primary key of its holder item.
    holder: Json,
    /// The primary key of the record under which it is taken, and the version of that.
    record: Json,
    version: u64,
    /// The table's name.
    name: &'a str,
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
            let on = On {
                holder: of_table(&record.id),
                record: json!({ "pk": { "S": record.id }, "sk": { "S": SORT } }),
                version: record.version,
                name: &record.name,
            };
            Self::take_on(registry, &on, writes).await
        }
        .boxed()
    }

    /// Claims one key of a table, whose record is `key`. The previous holder of the key, and that
    /// of the table, lose their claims.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_key<'a>(
        registry: &'a Registry,
        table: &'a Record,
        key: &'a KeyRecord,
        writes: usize,
    ) -> BoxFuture<'a, Result<Self, ClaimError>> {
        async move {
            end_of(registry, &of_table(&table.id)).await?;
            let sort = KeyRecord::place(&key.key, key.key_type)?.sort;
            let on = On {
                holder: of_key(&table.id, &sort),
                record: json!({ "pk": { "S": table.id }, "sk": { "S": sort } }),
                version: key.version,
                name: &table.name,
            };
            Self::take_on(registry, &on, writes).await
        }
        .boxed()
    }

    async fn take_on(registry: &Registry, on: &On<'_>, writes: usize) -> Result<Self, ClaimError> {
        let permits = writes.clamp(1, MOST_PERMITS);
        let few = permits.min(FEW_PERMITS);
        let takes_fewer = |taken: &Result<Self, ClaimError>| matches!(taken, Err(ClaimError::Store(error)) if error.code == Code::ValidationException);
        let mut taken = Self::take_with(registry, on, permits).await;
        if takes_fewer(&taken) {
            taken = Self::take_with(registry, on, few).await;
        }
        if takes_fewer(&taken) {
            // A first claim has no other to end, so it may have more permits than a takeover has room
            // for.
            end_of(registry, &on.holder).await?;
            taken = Self::take_with(registry, on, few).await;
        }
        taken
    }

    async fn take_with(registry: &Registry, on: &On<'_>, permits: usize) -> Result<Self, ClaimError> {
        let run = format!("{:016x}", registry.env().random());
        let before = held_by(registry, &on.holder).await?;
        let since = registry.env().unix_millis().to_string();
        let mut put = json!({
            "TableName": registry.name(),
            "Item": {
                "pk": on.holder["pk"], "sk": on.holder["sk"], "run": { "S": run }, "permits": { "N": permits.to_string() },
                "name": { "S": on.name }, "since": { "N": since },
            },
            "ConditionExpression": "attribute_not_exists(pk)",
        });
        if let Some(before) = &before {
            before.is_run_of(&mut put);
        }
        let check = json!({
            "TableName": registry.name(), "Key": on.record, "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": on.version.to_string() } },
        });
        let mut actions = vec![json!({ "ConditionCheck": check }), json!({ "Put": put })];
        actions.extend(before.iter().flat_map(|before| before.deletions(registry)));
        actions.extend((0..permits).map(|at| {
            let mut item = permit(&run, at);
            item["name"] = json!({ "S": on.name });
            json!({ "Put": { "TableName": registry.name(), "Item": item } })
        }));
        let claim = Claim {
            registry: registry.clone(),
            holder: on.holder.clone(),
            name: on.name.to_owned(),
            permits: (0..permits).map(|_| Mutex::new(())).collect(),
            next: AtomicUsize::new(0),
            run,
        };
        // With a token, so that a copy of this request that arrives after the end of the claim does
        // not restore it.
        match transact(registry, actions, Some(&claim.run), (LONGEST, PATIENCE)).await? {
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
        self.write_for(PATIENCE, actions)
    }

    /// The same, given up soon where it is throttled or meets other transactions: for actions that
    /// can be carried out one by one instead.
    ///
    /// # Errors
    /// As [`write`](Self::write); the store's, where it was not carried out.
    pub fn write_briefly(&self, actions: Vec<Json>) -> BoxFuture<'_, Result<Written, ClaimError>> {
        self.write_for(BRIEFLY, actions)
    }

    fn write_for(
        &self,
        patience: Duration,
        actions: Vec<Json>,
    ) -> BoxFuture<'_, Result<Written, ClaimError>> {
        async move {
            let (at, _alone) = self.free_permit().await;
            let check = json!({
                "TableName": self.registry.name(), "Key": permit(&self.run, at), "ConditionExpression": "attribute_exists(pk)",
            });
            let mut checked = vec![json!({ "ConditionCheck": check })];
            checked.extend(actions);
            let pauses = (LONGEST_OF_WRITES, patience);
            match transact(&self.registry, checked, None, pauses).await? {
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
            let held = Held { run: self.run.clone(), permits: self.permits.len() };
            match held.end(&self.registry, &self.holder).await? {
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

/// A claim as its holder item names it.
struct Held {
    run: String,
    permits: usize,
}

impl Held {
    /// Makes an action on the holder item conditional on this claim.
    fn is_run_of(&self, action: &mut Json) {
        action["ConditionExpression"] = json!("#r = :r");
        action["ExpressionAttributeNames"] = json!({ "#r": "run" });
        action["ExpressionAttributeValues"] = json!({ ":r": { "S": self.run } });
    }

    /// The deletions of its permits.
    fn deletions(&self, registry: &Registry) -> impl Iterator<Item = Json> {
        let delete = |at| json!({ "Delete": { "TableName": registry.name(), "Key": permit(&self.run, at) } });
        (0..self.permits.min(MOST_PERMITS)).map(delete)
    }

    /// Deletes it, if it is still the one of that holder item.
    async fn end(&self, registry: &Registry, holder: &Json) -> Result<Written, Error> {
        let mut delete = json!({ "TableName": registry.name(), "Key": holder });
        self.is_run_of(&mut delete);
        let mut actions = vec![json!({ "Delete": delete })];
        actions.extend(self.deletions(registry));
        transact(registry, actions, None, (LONGEST, PATIENCE)).await
    }
}

/// The claim of a holder item, if there is one.
async fn held_by(registry: &Registry, holder: &Json) -> Result<Option<Held>, Error> {
    let body = json!({ "TableName": registry.name(), "Key": holder, "ConsistentRead": true });
    let found = registry.call_patiently(Operation::GetItem, body).await?;
    Ok(found.get("Item").map(|item| Held {
        run: item["run"]["S"].as_str().unwrap_or_default().to_owned(),
        permits: item["permits"]["N"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0),
    }))
}

/// Ends whatever claim a holder item names.
async fn end_of(registry: &Registry, holder: &Json) -> Result<(), Error> {
    while let Some(held) = held_by(registry, holder).await? {
        if held.end(registry, holder).await? == Written::Done {
            break;
        }
    }
    Ok(())
}

/// Ends the claim on a table, whoever has it: nothing that was sent under it lands any more.
///
/// # Errors
/// The store's.
pub async fn end_of_table(registry: &Registry, id: &str) -> Result<(), Error> {
    end_of(registry, &of_table(id)).await
}

/// Ends the claims on a key and on its table, whoever has them: nothing that was sent under them
/// lands any more. Who may take another one decides the key's record.
///
/// # Errors
/// The store's.
pub async fn end_of_key(registry: &Registry, table_id: &str, key: &KeyRecord) -> Result<(), Error> {
    let sort = KeyRecord::place(&key.key, key.key_type)?.sort;
    end_of(registry, &of_table(table_id)).await?;
    end_of(registry, &of_key(table_id, &sort)).await
}

/// The primary key of a table's holder item.
fn of_table(id: &str) -> Json {
    json!({ "pk": { "S": format!("worker:{id}") }, "sk": { "S": HOLDER } })
}

/// The primary key of the holder item of a key, whose record has that sort key.
fn of_key(id: &str, sort: &str) -> Json {
    json!({ "pk": { "S": format!("worker:{id}/{sort}") }, "sk": { "S": HOLDER } })
}

fn permit(run: &str, at: usize) -> Json {
    json!({ "pk": { "S": format!("worker:{run}.{at}") }, "sk": { "S": PERMIT } })
}
