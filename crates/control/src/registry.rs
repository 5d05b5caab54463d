//! The registry: one table in the store that says how stored data is laid out. It holds one record
//! per table, keyed by the store's id of the table, so that a table that was dropped and created
//! again has no record; and one entry per table name, which says whose record holds.
//!
//! Not here: reading and writing records (`records`), when a table is recorded (`first_use`), how a
//! change becomes known to every gateway (`fence`), what a record means for requests (`control`).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Origin, Outcome, pages};
use heatsink_env::Env;
use heatsink_fence::Change;
use heatsink_layout::{Bucket, DIRECTORY, Table, TableLayouts, directory_key};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::describe::{self, Described, shows_old_images};
use crate::memory::Expectation;
pub use crate::name::NameEntry;
use crate::own_names::keeps_to_itself;

/// The default name of the registry's table. Clients never see it.
pub const REGISTRY: &str = "heatsink.registry";

/// A name that no client can give to a table, and that Heatsink gives to none.
pub const NOBODY: &str = "heatsink.nobody";

/// How long to wait for the registry's table to become active, in steps of [`POLL`].
const PATIENCE: u32 = 300;
const POLL: Duration = Duration::from_millis(200);

/// How often a throttled request to the registry, or of an adoption, is retried: some three
/// minutes. A client's request may be over by then.
const THROTTLES: u32 = 100;

/// The store, as the registry and adoption use it.
#[derive(Clone)]
pub struct Registry {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    name: Arc<str>,
    observed: Arc<Observed>,
    expectation: Arc<Expectation>,
}

/// What a registry and its clones have seen of the store.
#[derive(Default)]
struct Observed {
    /// Whether the store has reported that it has no tags.
    without_tags: AtomicBool,
    /// Whether the registry has been seen.
    met: AtomicBool,
    /// How many requests were throttled.
    throttles: AtomicU64,
    /// The ids of tables without a record that show no sign of a lost one.
    unsharded: Mutex<HashMap<String, String>>,
    /// The tables that may be other registries, once they are known.
    others: Mutex<Option<Vec<String>>>,
    /// The changes that the head named when it was last read or written.
    changes: Mutex<Vec<Change>>,
}

impl Registry {
    /// A registry in that store, in the table of that name.
    pub fn new(store: Arc<dyn Store>, env: Arc<dyn Env>, name: &str) -> Self {
        Registry { store, env, name: Arc::from(name), observed: Arc::default(), expectation: Arc::default() }
    }

    /// The same registry, of a store of which that is expected.
    #[must_use]
    pub fn expecting(self, expectation: &Arc<Expectation>) -> Self {
        Registry { expectation: Arc::clone(expectation), ..self }
    }

    /// What is expected of the store.
    pub(crate) fn expectation(&self) -> &Expectation {
        &self.expectation
    }

    /// Whether the table with that id was looked at, and shows no sign of a record that is lost.
    pub(crate) fn is_unsharded(&self, id: &str) -> bool {
        self.observed.unsharded.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Notes that it does not.
    pub(crate) fn note_unsharded(&self, id: &str, name: &str) {
        let mut unsharded = self.observed.unsharded.lock().unwrap_or_else(PoisonError::into_inner);
        unsharded.insert(id.to_owned(), name.to_owned());
    }

    /// Notes that the table is on record: if its record is lost later, it is looked at anew.
    pub(crate) fn note_recorded(&self, id: &str) {
        self.observed.unsharded.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Forgets which tables of these names show no sign: their records have changed.
    pub(crate) fn look_anew(&self, changed: impl Fn(&str) -> bool) {
        let mut unsharded = self.observed.unsharded.lock().unwrap_or_else(PoisonError::into_inner);
        unsharded.retain(|_, name| !changed(name));
    }

    /// Notes what the head names.
    pub(crate) fn note_changes(&self, changes: &[Change]) {
        let mut noted = self.observed.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.last() != changes.last() {
            *noted = changes.to_vec();
        }
    }

    /// The versions that the head names for a table of that name: of its record, or of its name's
    /// entry.
    pub(crate) fn named_by_head(&self, table: &str) -> Vec<u64> {
        let noted = self.observed.changes.lock().unwrap_or_else(PoisonError::into_inner);
        noted.iter().filter(|change| change.table == table).map(|change| change.version).collect()
    }

    /// The name of its table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its time and randomness.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// The tables of the store that may be other registries, if they are known.
    pub(crate) fn others(&self) -> Option<Vec<String>> {
        self.observed.others.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes which they are.
    pub(crate) fn note_others(&self, others: &[String]) {
        *self.observed.others.lock().unwrap_or_else(PoisonError::into_inner) = Some(others.to_vec());
    }

    /// Another registry of the same store.
    pub(crate) fn another(&self, name: &str) -> Registry {
        Registry::new(Arc::clone(&self.store), Arc::clone(&self.env), name)
    }

    /// Notes that the registry exists.
    pub(crate) fn meet(&self) {
        self.observed.met.store(true, Ordering::Relaxed);
    }

    /// The meaning of a registry that is not found: there is none yet, and `none` is the result.
    ///
    /// # Errors
    /// Retryable, if it existed before: that is an outage.
    pub(crate) fn absent<T>(&self, none: T) -> Result<T, Error> {
        match self.observed.met.load(Ordering::Relaxed) {
            false => Ok(none),
            true => Err(self.gone()),
        }
    }

    /// The error of a registry that was there before.
    pub(crate) fn gone(&self) -> Error {
        Error::unavailable(
            format!(
                "The registry {} existed before and is not found any more; nothing is sent until it is restored from a backup (docs/how-to/recover.md)",
                self.name
            ),
            Outcome::NotDone,
        )
    }

    /// The error of a registry that cannot be reached, or that the store does not give. It names the
    /// registry, because the client asked for another table. Retryable, even if the store denies
    /// access: the client is not the one without permission. A store that throttles does so by its
    /// own code.
    pub(crate) fn failed(&self, error: Error) -> Error {
        let how = if error.is_denied() { "is refused to this gateway" } else { "cannot be reached" };
        let message = format!("The registry {} {how}: {error}", self.name);
        match error.retryable() {
            true if error.is_throttled() => Error::new(error.code, message),
            true => Error::unavailable(message, error.outcome),
            false => {
                let mut named = Error::internal(message);
                named.outcome = error.outcome;
                if error.is_denied() {
                    named.origin = Origin::Denied;
                }
                named
            }
        }
    }

    /// Whether the store may have tags.
    pub(crate) fn has_tags(&self) -> bool {
        !self.observed.without_tags.load(Ordering::Relaxed)
    }

    /// Notes that the store has no tags.
    pub(crate) fn without_tags(&self) {
        self.observed.without_tags.store(true, Ordering::Relaxed);
    }

    /// One request to the store.
    ///
    /// # Errors
    /// The store's; an answer that is no JSON, or whose position does not advance.
    pub async fn call(&self, operation: Operation, body: Json) -> Result<Json, Error> {
        let answer = self.store.call(operation, Bytes::from(body.to_string())).await?;
        let answer = serde_json::from_slice(&answer).map_err(|error| {
            Error::internal(format!("The store's answer to {} is not JSON: {error}", operation.name()))
        })?;
        // Whoever reads by pages would read for ever.
        pages::advances(operation, &body, &answer)?;
        Ok(answer)
    }

    /// One request to the store, retried with jittered backoff while the store throttles it.
    pub fn call_patiently(&self, operation: Operation, body: Json) -> BoxFuture<'_, Result<Json, Error>> {
        async move {
            let mut pause = Duration::from_millis(50);
            for _ in 0..THROTTLES {
                match self.call(operation, body.clone()).await {
                    Err(error) if error.is_throttled() && error.outcome == Outcome::NotDone => {
                        if body["TableName"] != self.name() {
                            self.was_throttled();
                        }
                        let jitter = self.env.random() % 1_000;
                        self.env.sleep(pause / 2 + pause * u32::try_from(jitter).unwrap_or(0) / 2_000).await;
                        pause = (pause * 2).min(Duration::from_secs(2));
                    }
                    answer => return answer,
                }
            }
            self.call(operation, body).await
        }
        .boxed()
    }

    /// How many requests to clients' tables that are sent again when they are throttled have been,
    /// since this registry and its clones were made. Its own table is nobody else's.
    pub fn throttles(&self) -> u64 {
        self.observed.throttles.load(Ordering::Relaxed)
    }

    pub(crate) fn was_throttled(&self) {
        self.observed.throttles.fetch_add(1, Ordering::Relaxed);
    }

    /// Describes a table; `None` if none of that name exists, or can exist.
    pub fn describe<'a>(&'a self, table: &'a str) -> BoxFuture<'a, Result<Option<Described>, Error>> {
        async move {
            match self
                .store
                .call(Operation::DescribeTable, Bytes::from(json!({ "TableName": table }).to_string()))
                .await
            {
                Ok(answer) => describe::answer(&answer).map(Some),
                Err(error)
                    if matches!(error.code, Code::ResourceNotFoundException | Code::ValidationException) =>
                {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    /// Whether the registry's table is there.
    pub(crate) async fn exists(&self) -> Result<bool, Error> {
        Ok(self.describe(&self.name).await.map_err(|error| self.failed(error))?.is_some())
    }

    /// The names of all tables of the store.
    pub(crate) async fn tables(&self) -> Result<HashSet<String>, Error> {
        let mut found = HashSet::new();
        let mut start = Json::Null;
        loop {
            let body = if start.is_null() { json!({}) } else { json!({ "ExclusiveStartTableName": start }) };
            let mut page = self.call(Operation::ListTables, body).await?;
            let names = page["TableNames"].as_array().into_iter().flatten().filter_map(Json::as_str);
            found.extend(names.map(str::to_owned));
            start = page["LastEvaluatedTableName"].take();
            if start.is_null() {
                return Ok(found);
            }
        }
    }

    /// Whether a table holds no item, by a strongly consistent read.
    pub(crate) async fn is_empty(&self, table: &str) -> Result<bool, Error> {
        let mut start = Json::Null;
        loop {
            let mut body =
                json!({ "TableName": table, "Limit": 1, "ConsistentRead": true, "Select": "COUNT" });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = self.call(Operation::Scan, body).await?;
            if page["Count"].as_u64() != Some(0) {
                return Ok(false);
            }
            // A page may be empty and yet not the last.
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(true);
            }
        }
    }

    /// Whether the store deletes items of a table by time to live.
    ///
    /// # Errors
    /// As [`time_to_live`](Self::time_to_live).
    pub async fn expires(&self, table: &str) -> Result<bool, Error> {
        Ok(self.time_to_live(table).await?.is_some())
    }

    /// Whether the table has a stream whose records show items as they were before.
    ///
    /// # Errors
    /// The store's.
    pub async fn streams_old_images(&self, table: &str) -> Result<bool, Error> {
        let answer = self.call(Operation::DescribeTable, json!({ "TableName": table })).await?;
        Ok(shows_old_images(&answer["Table"]["StreamSpecification"]))
    }

    /// The attribute by which the store deletes items of a table; `None` if it deletes none. While
    /// time to live is turned off it still may. A store without that operation deletes none.
    ///
    /// # Errors
    /// The store's; an answer that does not name the attribute.
    pub async fn time_to_live(&self, table: &str) -> Result<Option<String>, Error> {
        let answer = match self.call(Operation::DescribeTimeToLive, json!({ "TableName": table })).await {
            Ok(answer) => answer,
            Err(error) if error.code == Code::UnknownOperationException => return Ok(None),
            Err(error) => return Err(error),
        };
        let described = &answer["TimeToLiveDescription"];
        match (described["TimeToLiveStatus"].as_str(), described["AttributeName"].as_str()) {
            (None | Some("DISABLED"), _) => Ok(None),
            (Some(_), Some(attribute)) => Ok(Some(attribute.to_owned())),
            (Some(status), None) => Err(Error::internal(format!(
                "The store says that time to live of table {table} is {status}, and not by which attribute"
            ))),
        }
    }

    /// Creates the directory of buckets, if any of those layouts has buckets and the directory does
    /// not exist.
    pub async fn make_directory(&self, layouts: &TableLayouts) -> Result<(), Error> {
        match layouts.iter().any(|one| one.layout().time().is_some()) {
            true => self.make_directory_anyway().await,
            false => Ok(()),
        }
    }

    /// Creates the directory if it does not exist.
    ///
    /// # Errors
    /// The store's.
    pub async fn make_directory_anyway(&self) -> Result<(), Error> {
        if self.describe(DIRECTORY).await?.is_none_or(|described| described.status != "ACTIVE") {
            self.make(DIRECTORY).await?;
        }
        Ok(())
    }

    /// Whether the directory exists, or can: a server of Heatsink that serves as an upstream keeps that
    /// name to itself. Nothing is made.
    ///
    /// # Errors
    /// The store's.
    pub async fn can_have_directory(&self) -> Result<bool, Error> {
        Ok(self.describe(DIRECTORY).await?.is_some() || !keeps_to_itself(&*self.store, DIRECTORY).await)
    }

    /// Enters a bucket of a logical key in the directory. Retries throttles.
    pub async fn enter_bucket(&self, table: &Table, logical: &[u8], bucket: Bucket) -> Result<(), Error> {
        let item = json!({ "pk": { "S": directory_key(table, logical) }, "sk": { "S": bucket.to_string() } });
        self.call_patiently(Operation::PutItem, json!({ "TableName": DIRECTORY, "Item": item })).await?;
        Ok(())
    }

    /// Creates one of Heatsink's own tables, protected from deletion where the store can do that,
    /// and waits until it can be used.
    pub(crate) async fn make(&self, table: &str) -> Result<(), Error> {
        let mut body = json!({
            "TableName": table, "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": true,
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        });
        let made = match self.call(Operation::CreateTable, body.clone()).await {
            // The store does not know of that protection.
            Err(error) if matches!(error.code, Code::ValidationException | Code::SerializationException) => {
                body.as_object_mut().map(|body| body.remove("DeletionProtectionEnabled"));
                self.call(Operation::CreateTable, body).await
            }
            made => made,
        };
        match made {
            Ok(_) => {}
            // Another gateway was first.
            Err(error) if error.code == Code::ResourceInUseException => {}
            Err(error) if *table == *self.name => return Err(self.failed(error)),
            Err(error) => return Err(error),
        }
        for _ in 0..PATIENCE {
            match self.describe(table).await? {
                Some(described) if described.status == "ACTIVE" => return Ok(()),
                _ => self.env.sleep(POLL).await,
            }
        }
        Err(Error::unavailable(
            format!("The table {table} did not become active within {} s", PATIENCE / 5),
            Outcome::NotDone,
        ))
    }
}
