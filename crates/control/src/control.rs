//! What the gateway asks: is this table known, how is this key laid out, and what follows from a table operation.
//!
//! Not here: how a table's standing is found out (`resolve`), how long it is trusted (`known`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use heatsink_dynamo::{Code, Error, Operation, TableSchema};
use heatsink_env::Env;
use heatsink_layout::{DIRECTORY, Layout, LayoutSource, PhysicalKeys, Placement, Reads, Table, TableLayouts};
use heatsink_store::Store;

use crate::known::{Freshness, Standing, Tables, Trust};
use crate::record::{Record, State};
use crate::registry::{REGISTRY, Registry};
use crate::rules::{Rules, Wish};
use crate::suspect::Suspects;
use crate::{describe, resolve};

/// Knows which layout is in force for every key. One per gateway; clones share it.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub registry: Registry,
    pub rules: Rules,
    pub tables: Tables,
    /// Counts table operations: what was looked up while one happened is not trusted.
    pub changes: AtomicU64,
    /// No rules here and no registry in the store: nothing is sharded, and requests need no look-up. Looked at again like a table.
    unsharded: AtomicBool,
    registry_seen: Mutex<Arc<Freshness>>,
    looking: Mutex<HashMap<String, Look>>,
    whole: Arc<Layout>,
    suspects: Suspects,
}

/// How many of one request's tables are looked up at once.
const LOOKS_AT_ONCE: usize = 8;

/// With more tables named by rules and records than this, the store is asked first which of them it has: a page of `ListTables`
/// holds 100 names, so that costs no more than the look at one page of them.
const ASKED_ONE_BY_ONE: usize = 100;

/// A look-up under way, which every request that needs it shares.
type Look = Shared<BoxFuture<'static, Result<(), Error>>>;

/// Why a gateway does not start.
#[derive(Debug)]
pub enum StartError {
    /// The rules contradict the registry or cannot hold for a table that they name. The operator has to change one of them.
    Rules(String),
    /// The store could not be asked.
    Store(Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Rules(problem) => f.write_str(problem),
            StartError::Store(error) => write!(
                f,
                "The store could not be asked for the table {REGISTRY}, which says how stored data is laid out: {error}"
            ),
        }
    }
}

impl std::error::Error for StartError {}

impl Control {
    /// Reads what the store has on record and compares it with the rules.
    ///
    /// # Errors
    /// [`StartError::Rules`] when a rule contradicts the record of a table that is there, or names a table that it cannot hold for;
    /// [`StartError::Store`] when the store cannot be asked.
    pub async fn start(store: Arc<dyn Store>, env: Arc<dyn Env>, rules: Rules) -> Result<Self, StartError> {
        let now = env.now();
        let registry = Registry::new(store, env);
        let recorded = registry.exists().await.map_err(StartError::Store)?;
        let mut names: Vec<String> = rules
            .iter()
            .filter(|rule| rule.table.is_exact())
            .map(|rule| rule.table.text().to_owned())
            .collect();
        if recorded {
            let records = registry.all().await.map_err(StartError::Store)?;
            names.extend(records.into_iter().map(|record| record.name));
        }
        names.sort();
        names.dedup();
        if names.len() > ASKED_ONE_BY_ONE {
            let there = registry.tables().await.map_err(StartError::Store)?;
            names.retain(|name| there.contains(name));
        }
        let control = Control {
            inner: Arc::new(Inner {
                unsharded: AtomicBool::new(rules.is_empty() && !recorded),
                registry,
                rules,
                tables: Tables::new(),
                changes: AtomicU64::new(0),
                registry_seen: Mutex::new(Arc::new(Freshness::new(now))),
                looking: Mutex::new(HashMap::new()),
                whole: Arc::new(Layout::none()),
                suspects: Suspects::new(),
            }),
        };
        for name in names {
            if is_registry(&name) {
                continue;
            }
            match control.resolve_one(&name).await {
                Ok(()) => {}
                Err(error) => match control.inner.tables.get(&name).map(|known| known.standing.clone()) {
                    Some(Standing::Refused { error, fatal: true }) => {
                        return Err(StartError::Rules(error.message.unwrap_or_default()));
                    }
                    Some(Standing::Refused { error, fatal: false }) => {
                        tracing::warn!(table = name, "{error}")
                    }
                    _ if error.code == Code::ResourceNotFoundException => {}
                    _ => return Err(StartError::Store(error)),
                },
            }
        }
        Ok(control)
    }

    /// The rules of this gateway.
    pub fn rules(&self) -> &Rules {
        &self.inner.rules
    }

    /// Makes the tables that a data request names known; after that [`LayoutSource`] answers for them. Call it before planning a request
    /// that reads or writes items, with the names as the request gives them; not for table operations, which stay possible on refused
    /// tables. A hash look-up when the table is known; otherwise a few requests to the store, which all callers share.
    ///
    /// # Errors
    /// `ValidationException` for a table that is refused: with items and unrecorded, or recorded against the rules. A retryable error
    /// while the table is being adopted. `ResourceNotFoundException` for the registry. The store's error if it cannot be asked;
    /// that is not remembered.
    pub async fn resolve<S: AsRef<str>>(&self, names: &[S]) -> Result<(), Error> {
        if names.iter().any(|name| self.is_hidden(name.as_ref())) {
            return Err(not_found());
        }
        if self.is_unsharded().await? {
            return Ok(());
        }
        if let [name] = names {
            return self.resolve_one(name.as_ref()).await;
        }
        // In their order: the first that cannot be used is the one that is told.
        let looks: Vec<_> = names.iter().map(|name| self.resolve_one(name.as_ref())).collect();
        stream::iter(looks).buffered(LOOKS_AT_ONCE).try_collect().await
    }

    async fn resolve_one(&self, name: &str) -> Result<(), Error> {
        if let Some(known) = self.inner.tables.get(name) {
            match known.fresh.trust(self.inner.registry.env().now()) {
                Trust::Use => return known.standing.answer(),
                Trust::LookAgain => {
                    // This request pays for the look; should it fail, what is known still holds until it expires.
                    if let Err(error) = self.look(name).await {
                        known.fresh.give_up();
                        tracing::debug!(table = name, "looking again failed: {error}");
                        return known.standing.answer();
                    }
                }
                Trust::Expired => self.look(name).await?,
            }
        } else {
            self.look(name).await?;
        }
        self.inner.tables.get(name).map_or(Ok(()), |known| known.standing.answer())
    }

    /// Whether nothing in the store is sharded.
    async fn is_unsharded(&self) -> Result<bool, Error> {
        if !self.inner.unsharded.load(Ordering::Acquire) {
            return Ok(false);
        }
        let seen = Arc::clone(&self.inner.registry_seen.lock().unwrap_or_else(PoisonError::into_inner));
        match seen.trust(self.inner.registry.env().now()) {
            Trust::Use => {}
            Trust::LookAgain => {
                if let Err(error) = self.look(REGISTRY).await {
                    seen.give_up();
                    tracing::debug!("looking for the registry failed: {error}");
                }
            }
            Trust::Expired => self.look(REGISTRY).await?,
        }
        Ok(self.inner.unsharded.load(Ordering::Acquire))
    }

    /// Looks a table up in the store, or joins whoever does.
    fn look(&self, name: &str) -> Look {
        let mut looking = self.looking();
        if let Some(look) = looking.get(name) {
            return look.clone();
        }
        let control = self.clone();
        let asked = name.to_owned();
        let look = async move {
            let found = if is_registry(&asked) {
                control.look_for_registry().await
            } else {
                resolve::look(&control.inner, &asked).await
            };
            control.looking().remove(&asked);
            found
        };
        let look = look.boxed().shared();
        looking.insert(name.to_owned(), look.clone());
        // Whoever waits for it may go away: without a task of its own it would stand still until the next one asks, and then answer
        // with what was true before. Where there is no runtime, whoever waits drives it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(look.clone());
        }
        look
    }

    async fn look_for_registry(&self) -> Result<(), Error> {
        let now = self.inner.registry.env().now();
        let found = self.inner.registry.exists().await?;
        *self.inner.registry_seen.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Freshness::new(now));
        if found {
            tracing::info!("the store has a table {REGISTRY} now: tables are looked up in it");
            self.inner.unsharded.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn looking(&self) -> MutexGuard<'_, HashMap<String, Look>> {
        self.inner.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a table operation before it goes to the store.
    ///
    /// # Errors
    /// `ValidationException` for a `CreateTable` of the registry's name, or of a table that a rule names but cannot hold for;
    /// `ResourceNotFoundException` for any other operation on the registry.
    pub fn before(&self, operation: Operation, request: &[u8]) -> Result<(), Error> {
        let named = heatsink_dynamo::json::member(request, "TableName").ok().flatten();
        if named
            .and_then(|name| heatsink_dynamo::json::string(name).ok())
            .is_some_and(|name| self.is_hidden(&name))
        {
            return Err(match operation {
                Operation::CreateTable => {
                    let name = if is_own(request, DIRECTORY) { DIRECTORY } else { REGISTRY };
                    Error::validation(format!("The table name {name} is Heatsink's own"))
                }
                _ => not_found(),
            });
        }
        if operation == Operation::CreateTable
            && !self.inner.rules.is_empty()
            && let Ok(schema) = TableSchema::from_create(request)
            && let Wish::Impossible(reason) = self.inner.rules.wish(&schema)
        {
            return Err(Error::validation(reason));
        }
        Ok(())
    }

    /// Follows an operation that the store has answered: records a table that was made, drops what is known of one that was changed or
    /// is gone. Cheap for operations on items that succeeded; call it for those that failed too, with the tables that they named.
    pub async fn after<S: AsRef<str>>(
        &self,
        operation: Operation,
        names: &[S],
        answer: Result<&Bytes, &Error>,
    ) {
        match (operation, answer) {
            (Operation::CreateTable | Operation::DeleteTable | Operation::UpdateTable, Ok(body)) => {
                self.inner.changes.fetch_add(1, Ordering::AcqRel);
                match describe::answer(body) {
                    Ok(described) => {
                        self.follow(operation, &described.schema).await;
                        self.inner.tables.expire(&described.schema.name);
                    }
                    Err(error) => tracing::warn!("{} succeeded, but: {error}", operation.name()),
                }
            }
            (_, Err(error)) if error.code == Code::ResourceNotFoundException => {}
            _ => return,
        }
        for name in names {
            self.inner.tables.expire(name.as_ref());
        }
    }

    async fn follow(&self, operation: Operation, schema: &TableSchema) {
        let wish = self.inner.rules.wish(schema);
        let done = match (operation, wish) {
            (Operation::CreateTable, Wish::Sharded(layouts)) => {
                let record = self.inner.fresh_record(schema, layouts);
                match self.inner.registry.make_directory(&record.layouts).await {
                    Ok(()) => self.inner.registry.create(&record).await.map(|_| ()),
                    Err(error) => Err(error),
                }
            }
            (Operation::DeleteTable, _) if !self.inner.unsharded.load(Ordering::Acquire) => {
                self.inner.registry.forget(&schema.id).await
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            // Nothing is lost: an unrecorded table is recorded on first touch while it is empty, and the record of a table that
            // is gone is never found again, for its id is not given twice.
            tracing::warn!(
                table = schema.name,
                "{} succeeded, but the registry could not follow: {error}",
                operation.name()
            );
        }
    }
}

impl Inner {
    pub fn fresh_record(&self, schema: &TableSchema, layouts: TableLayouts) -> Record {
        Record {
            id: schema.id.clone(),
            name: schema.name.clone(),
            layouts,
            state: State::Active,
            version: 1,
            created: self.registry.env().unix_millis(),
        }
    }
}

impl Standing {
    fn answer(&self) -> Result<(), Error> {
        match self {
            Standing::Refused { error, .. } => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

impl LayoutSource for Control {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.inner.tables.sharded(name)
    }

    fn placement(&self, table: &Table, key: &[u8]) -> Placement {
        let inner = &self.inner;
        if inner.suspects.see(table, key, inner.registry.env().now()) == Some(PhysicalKeys::AsShard) {
            return Placement::Stable(Arc::clone(&inner.whole));
        }
        Placement::Stable(Arc::clone(table.layouts().of(key).unwrap_or(&inner.whole)))
    }

    fn reads(&self, table: &Table, key: &[u8]) -> Reads {
        self.inner.rules.reads(table, key)
    }

    fn now(&self) -> Option<u64> {
        Some(self.inner.registry.env().unix_millis())
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }

    fn is_hidden(&self, name: &str) -> bool {
        is_registry(name) || is(name, DIRECTORY)
    }

    fn hidden_tables(&self) -> Vec<String> {
        vec![REGISTRY.to_owned(), DIRECTORY.to_owned()]
    }
}

fn is_registry(name: &str) -> bool {
    is(name, REGISTRY)
}

/// Whether a request names that table.
fn is_own(request: &[u8], table: &str) -> bool {
    let named = heatsink_dynamo::json::member(request, "TableName").ok().flatten();
    named.and_then(|name| heatsink_dynamo::json::string(name).ok()).is_some_and(|name| is(&name, table))
}

/// By its name or by an ARN.
fn is(name: &str, table: &str) -> bool {
    name == table || (name.starts_with("arn:") && name.rsplit('/').next() == Some(table))
}

pub(crate) fn not_found() -> Error {
    Error::new(Code::ResourceNotFoundException, "Requested resource not found")
}
