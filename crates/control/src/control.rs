//! The gateway's interface: resolves tables, answers how a key is laid out, and follows table operations.
//!
//! Not here: how the status of a table is found (`resolve`), for how long it is valid (`table_cache`, `fence`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use heatsink_dynamo::{Code, Error, Operation, Outcome, TableSchema};
use heatsink_env::Env;
use heatsink_fence::Awaits;
use heatsink_layout::{DIRECTORY, InForce, Layout, LayoutSource, PhysicalKeys, Reads, Table};
use heatsink_store::Store;

use crate::describe::{self, Described};
use crate::fence::{Changer, Fence, Fencing, Pass};
use crate::in_progress::InProgress;
use crate::inner::{Inner, Look};
use crate::registry::{NOBODY, Registry};
use crate::reserved_keys::ReservedKeyMonitor;
use crate::resolve;
use crate::rules::{DesiredLayout, Rules};
use crate::table_cache::{CacheState, Snapshot, TableCache, TableStatus, not_found};
use crate::table_lifecycle::{self, Deletion, Intent};
use crate::tags::{self, Untagged};

/// Knows which layout is in force for every key. One per gateway; clones share it.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

/// How many tables of one request are looked up concurrently.
const LOOKS_AT_ONCE: usize = 8;

/// If rules and records name more tables than this, the store is first asked to list its tables: a page of `ListTables` holds 100 names, so that
/// costs no more than one page of look-ups.
const ASKED_ONE_BY_ONE: usize = 100;

/// Why a gateway does not start.
#[derive(Debug)]
pub enum StartError {
    /// The rules contradict the registry, or cannot hold for a table that they name. The operator has to change one of them.
    Rules(String),
    /// The store could not be reached.
    Store(Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Rules(problem) => f.write_str(problem),
            StartError::Store(error) => write!(
                f,
                "The store could not be reached to read the registry, which says how stored data is laid out: {error}"
            ),
        }
    }
}

impl std::error::Error for StartError {}

impl Control {
    /// The only gateway of its store: reads the records and compares them with the rules.
    ///
    /// # Errors
    /// [`StartError::Rules`] when a rule contradicts the record of an existing table, or names a table that it cannot hold for;
    /// [`StartError::Store`] when the store cannot be reached.
    pub async fn start(store: Arc<dyn Store>, env: Arc<dyn Env>, rules: Rules) -> Result<Self, StartError> {
        let fencing = Fencing::exclusive(rules.fence());
        Control::join(store, env, rules, fencing).await
    }

    /// One of several gateways, which agree on changes by `fencing`. [`keep`](Self::keep) has to run as long as the gateway serves.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn join(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: Rules,
        fencing: Fencing,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        async move {
            let registry = Registry::new(store, Arc::clone(&env), &fencing.registry);
            let control = Control {
                inner: Arc::new(Inner {
                    changer: Changer::new(registry.clone(), fencing.clone()),
                    fence: Fence::new(&env, fencing),
                    registry,
                    rules,
                    tables: TableCache::new(),
                    in_progress: InProgress::default(),
                    untagged: Untagged::default(),
                    looking: Mutex::new(HashMap::new()),
                    whole: Arc::new(Layout::none()),
                    reserved_keys: ReservedKeyMonitor::new(),
                }),
            };
            control.check().await?;
            Ok(control)
        }
        .boxed()
    }

    /// Looks up every table that the rules or the registry name.
    async fn check(&self) -> Result<(), StartError> {
        let Inner { registry, rules, fence, tables, changer, .. } = &*self.inner;
        let recorded = registry.exists().await.map_err(StartError::Store)?;
        let settings = &fence.settings;
        if settings.forwards && recorded {
            return Err(StartError::Rules(layouts_unknown(registry.name())));
        }
        // A registry without a head was written by a build without the fence. Where there is no registry, one is created as early as possible: until
        // every gateway has noticed it, no table comes under its rules.
        if !settings.observes && (recorded || !rules.is_empty() && !settings.exclusive) {
            changer.found().await.map_err(StartError::Store)?;
        }
        fence.look(registry, tables).await.map_err(StartError::Store)?;
        if recorded && fence.sees_no_registry() {
            return Err(StartError::Store(Error::unavailable(
                "It was written by an older build, and has to be brought into the form of this one: start `heatsink serve` on it first",
                Outcome::NotDone,
            )));
        }
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
        for name in names {
            if self.is_hidden(&name) {
                continue;
            }
            match self.resolve_one(&name).await {
                Ok(()) => {}
                Err(error) => match tables.get(&name).map(|known| known.status.clone()) {
                    Some(TableStatus::Refused { error, fatal: true }) => {
                        return Err(StartError::Rules(error.message.unwrap_or_default()));
                    }
                    Some(TableStatus::Refused { error, fatal: false }) => {
                        tracing::warn!(table = name, "{error}")
                    }
                    _ if error.code == Code::ResourceNotFoundException => {}
                    // Its layout is being changed, or cannot be changed yet: its first request looks again.
                    _ if error.code == Code::ServiceUnavailable && error.outcome == Outcome::NotDone => {
                        tracing::warn!(table = name, "{error}");
                    }
                    _ => return Err(StartError::Store(error)),
                },
            }
        }
        Ok(())
    }

    /// Renews this gateway's lease and acknowledges changes while it serves. Never returns.
    pub fn keep(&self) -> BoxFuture<'_, ()> {
        async move {
            let Inner { registry, tables, fence, .. } = &*self.inner;
            let mut failing = false;
            loop {
                registry.env().sleep(fence.pause().await).await;
                let looked = match fence.look(registry, tables).await {
                    Ok(()) => fence.sweep(registry).await,
                    failed => failed,
                };
                match looked {
                    Ok(()) => failing = false,
                    Err(error) if !failing => {
                        failing = true;
                        tracing::warn!(
                            "the registry cannot be reached; what is known of it holds for a while: {error}"
                        );
                    }
                    Err(_) => {}
                }
            }
        }
        .boxed()
    }

    /// Removes this gateway's registration after it has stopped serving.
    pub fn leave(&self) -> BoxFuture<'_, ()> {
        async move {
            let Inner { registry, tables, fence, .. } = &*self.inner;
            fence.leave(registry, tables).await;
        }
        .boxed()
    }

    /// The id under which this gateway is registered, and its name for people.
    pub fn identity(&self) -> (&str, &str) {
        (self.inner.fence.id(), &self.inner.fence.settings.name)
    }

    /// How often this gateway looks for changes.
    pub fn poll(&self) -> Duration {
        self.inner.fence.settings.bounds.poll
    }

    /// Whether this gateway may send requests now.
    pub fn has_lease(&self) -> bool {
        let lease = self.inner.fence.lease();
        !lease.is_over(lease.now())
    }

    /// Publishes a change that this process has written, applies it in this gateway, and waits for what `awaits` says of every other one. Returns
    /// whether all calls that were planned before were answered. May be dropped at any time.
    ///
    /// # Errors
    /// Those of the store; frozen layouts.
    pub fn announce<'a>(
        &'a self,
        awaits: Awaits,
        table: &'a str,
        version: u64,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let Inner { changer, fence, .. } = &*self.inner;
            let (inner, name) = (Arc::clone(&self.inner), table.to_owned());
            let publish = async move { inner.publish(&name, version).await };
            // A caller that is dropped must not leave a change half applied here: requests under the old record would go on unnoticed.
            let step = match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    let published = runtime.spawn(publish).await;
                    published
                        .map_err(|_| Error::unavailable("The gateway is stopping", Outcome::NotDone))??
                }
                Err(_) if fence.settings.exclusive => publish.await?,
                // `keep` applies it.
                Err(_) => changer.publish(table, version).await?.step,
            };
            let clean = changer.wait(step.awaiting(awaits)).await?.is_clean();
            // Nobody waits for the late calls of an exclusive gateway but itself.
            Ok(clean && (!fence.settings.exclusive || fence.late().await.is_zero()))
        }
        .boxed()
    }

    /// Whether this gateway has seen a registry. One that only forwards ([`Fencing::forwarding`]) refuses every request from then on.
    pub fn has_seen_registry(&self) -> bool {
        !self.inner.fence.sees_no_registry()
    }

    /// The registry, to read what operators look at.
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Changes layouts on behalf of this gateway's operator.
    pub fn changer(&self) -> &Changer {
        &self.inner.changer
    }

    /// The rules of this gateway.
    pub fn rules(&self) -> &Rules {
        &self.inner.rules
    }

    /// Whether `name` is one of Heatsink's own tables, which clients never see, by its name or by an ARN.
    pub fn is_hidden(&self, name: &str) -> bool {
        [self.inner.registry.name(), DIRECTORY, NOBODY].into_iter().any(|own| is(name, own))
    }

    /// The names of those tables, whether they exist or not.
    pub fn hidden_tables(&self) -> Arc<[String]> {
        [self.inner.registry.name(), DIRECTORY, NOBODY].map(str::to_owned).into()
    }

    /// Resolves the tables of a data request. After that [`LayoutSource`] answers for them, and the request may run as long as the [`Pass`] holds.
    /// Call it before planning a request that reads or writes items, with the names as the request gives them; not for table operations, which stay
    /// possible on refused tables. Costs a hash look-up when the table is known; otherwise a few requests to the store, which all callers share.
    ///
    /// # Errors
    /// `ValidationException` for a table that is refused: with items and unrecorded, or recorded against the rules. A retryable error while the
    /// table's layout is being changed, and while the registry cannot be reached. `ResourceNotFoundException` for the registry. The store's error if
    /// it fails; that is not cached.
    pub async fn resolve<S: AsRef<str>>(&self, names: &[S]) -> Result<Pass, Error> {
        self.admitted(names).await.map_err(not_sent)
    }

    async fn admitted<S: AsRef<str>>(&self, names: &[S]) -> Result<Pass, Error> {
        if names.iter().any(|name| self.is_hidden(name.as_ref())) {
            return Err(not_found());
        }
        let Inner { tables, fence, rules, .. } = &*self.inner;
        loop {
            self.may_forward()?;
            let now = fence.lease().now();
            if fence.lease().is_over(now) {
                Box::pin(self.ensure()).await?;
                continue;
            }
            let mut pass = Pass::new(Arc::clone(fence.lease()));
            if rules.is_empty() && fence.sees_no_registry() {
                match fence.unsharded().admit() {
                    Some(admission) => pass.add(admission),
                    None => continue,
                }
                return Ok(pass);
            }
            let mut seen = tables.snapshot();
            let fresh = |name: &S| seen.get(name.as_ref()).is_some_and(|known| known.fresh.is_fresh(now));
            if !names.iter().all(fresh) {
                Box::pin(self.resolve_all(names)).await?;
                seen = tables.snapshot();
            }
            if self.admit(names, seen, &mut pass)? {
                return Ok(pass);
            }
        }
    }

    /// Makes sure that the cache knows each of these tables, or knows that it does not exist.
    async fn resolve_all<S: AsRef<str>>(&self, names: &[S]) -> Result<(), Error> {
        // In their order: the error is that of the first table that cannot be used.
        let looks: Vec<_> = names.iter().map(|name| self.resolve_one(name.as_ref())).collect();
        stream::iter(looks).buffered(LOOKS_AT_ONCE).try_collect().await
    }

    /// Admits a request through the gates of its tables. `false` when a gate is closed: the status of the table has changed.
    fn admit<S: AsRef<str>>(&self, names: &[S], seen: Arc<Snapshot>, pass: &mut Pass) -> Result<bool, Error> {
        for name in names {
            match seen.get(name.as_ref()) {
                None => pass.misses(name.as_ref()),
                Some(known) => {
                    known.status.answer()?;
                    if known.status.any_key_moves() {
                        pass.watch_moving();
                    }
                    match known.gate.admit() {
                        Some(admission) => pass.add(admission),
                        None => return Ok(false),
                    }
                }
            }
        }
        pass.sees(seen);
        Ok(true)
    }

    /// Whether a table of that name was recorded once, though none is now: the rest of its stream holds physical keys.
    ///
    /// # Errors
    /// The store's.
    pub async fn was_recorded(&self, name: &str) -> Result<bool, Error> {
        Ok(self.inner.registry.entry(name).await?.is_some())
    }

    /// The newest change of layouts that this gateway has seen.
    pub fn epoch(&self) -> u64 {
        self.inner.fence.seen()
    }

    /// The layouts by which a request with that pass is planned.
    pub fn view(&self, pass: &Pass) -> View {
        View { control: self.clone(), seen: pass.seen(), dependence: pass.dependence() }
    }

    /// Renews the lease of requests that depend on a key about to move. Hold no pass meanwhile: a change waits for requests that have one.
    ///
    /// # Errors
    /// Retryable, when the registry cannot be reached.
    pub fn renew(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let Inner { registry, tables, fence, .. } = &*self.inner;
            fence.renew_short(registry, tables).await.map_err(not_sent)
        }
        .boxed()
    }

    async fn resolve_one(&self, name: &str) -> Result<(), Error> {
        if let Some(known) = self.inner.tables.get(name) {
            match known.fresh.state(self.inner.registry.env().now()) {
                CacheState::Use => return known.status.answer(),
                CacheState::LookAgain => {
                    // This request pays for the look-up. If it fails, the cached status holds until it expires.
                    if let Err(error) = self.look(name).await {
                        known.fresh.give_up();
                        tracing::debug!(table = name, "looking again failed: {error}");
                        return known.status.answer();
                    }
                }
                CacheState::Expired => self.look(name).await?,
            }
        } else {
            self.look(name).await?;
        }
        self.inner.tables.get(name).map_or(Ok(()), |known| known.status.answer())
    }

    /// Looks a table up in the store, or joins a look-up in progress.
    fn look(&self, name: &str) -> Look {
        let mut looking = self.looking();
        if let Some(look) = looking.get(name) {
            return look.clone();
        }
        let control = self.clone();
        let asked = name.to_owned();
        let look = async move {
            let found = resolve::look(&control.inner, &asked).await;
            control.looking().remove(&asked);
            found
        };
        let look = look.boxed().shared();
        looking.insert(name.to_owned(), look.clone());
        // A waiting request may be cancelled. Without a task of its own the look-up would then stop until the next request polls it, and return an
        // outdated result. Without a runtime the waiting requests drive it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(look.clone());
        }
        look
    }

    fn looking(&self) -> MutexGuard<'_, HashMap<String, Look>> {
        self.inner.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares a table operation before it goes to the store: checks it, and reserves the name of a table that is to be created. Pass the result to
    /// [`after`](Self::after).
    ///
    /// # Errors
    /// `ValidationException` for a `CreateTable` of the registry's name, or of a table that a rule names but cannot hold for, and for a request that
    /// would set or remove Heatsink's own tag; `ResourceNotFoundException` for any other operation on the registry. Retryable errors while layouts
    /// cannot change.
    pub async fn before<S: AsRef<str>>(
        &self,
        operation: Operation,
        request: &[u8],
        names: &[S],
    ) -> Result<Prepared, Error> {
        self.prepare(operation, request, names).await.map_err(not_sent)
    }

    async fn prepare<S: AsRef<str>>(
        &self,
        operation: Operation,
        request: &[u8],
        names: &[S],
    ) -> Result<Prepared, Error> {
        let named = heatsink_dynamo::json::member(request, "TableName").ok().flatten();
        let named = named.and_then(|name| heatsink_dynamo::json::string(name).ok());
        if let Some(name) = named.as_ref().filter(|name| self.is_hidden(name)) {
            return Err(match operation {
                Operation::CreateTable => {
                    let own = [DIRECTORY, NOBODY, self.inner.registry.name()];
                    let name = own.into_iter().find(|own| is(name, own)).unwrap_or_default();
                    Error::validation(format!("The table name {name} is Heatsink's own"))
                }
                _ => not_found(),
            });
        }
        tags::refuse(operation, request)?;
        let mut prepared = Prepared::default();
        if operation == Operation::CreateTable {
            if let Ok(schema) = TableSchema::from_create(request) {
                if let DesiredLayout::Impossible(reason) = self.inner.rules.desired_layout(&schema) {
                    return Err(Error::validation(reason));
                }
                if heatsink_dynamo::wire::check(operation, request).is_ok() {
                    self.ensure().await?;
                    prepared.intent = table_lifecycle::intend(&self.inner, &schema).await?.map(Box::new);
                }
            }
        } else if operation == Operation::DeleteTable {
            if let Some(name) = &named
                && heatsink_dynamo::wire::check(operation, request).is_ok()
            {
                self.ensure().await?;
                prepared.deletion = table_lifecycle::intend_deletion(&self.inner, name).await?.map(Box::new);
            }
        } else if table_lifecycle::needs_layouts(operation) {
            match self.resolve(names).await {
                Ok(pass) => prepared.pass = Some(pass),
                // Such operations stay possible on refused tables.
                Err(error) if !error.retryable() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(prepared)
    }

    async fn ensure(&self) -> Result<(), Error> {
        let Inner { registry, tables, fence, .. } = &*self.inner;
        let ensured = fence.ensure(registry, tables).await;
        self.may_forward()?;
        ensured
    }

    /// An error where requests may be forwarded only as they are, and a registry says that some of them must not be.
    fn may_forward(&self) -> Result<(), Error> {
        let Inner { registry, fence, .. } = &*self.inner;
        match fence.settings.forwards && !fence.sees_no_registry() {
            true => Err(Error::unavailable(layouts_unknown(registry.name()), Outcome::NotDone)),
            false => Ok(()),
        }
    }

    /// Follows an operation that the store has answered: records a table that was created, and expires the cached status of one that was changed or
    /// deleted. Cheap for operations on items that succeeded; call it for those that failed too, with the tables that they named.
    pub async fn after<S: AsRef<str>>(
        &self,
        operation: Operation,
        names: &[S],
        prepared: Prepared,
        answer: Result<&Bytes, &Error>,
    ) {
        let Prepared { intent, deletion, .. } = prepared;
        match (operation, answer) {
            (Operation::CreateTable | Operation::DeleteTable | Operation::UpdateTable, answer) => {
                let described = answer.map(|body| describe::answer(body));
                let described = match &described {
                    Ok(Ok(described)) => Ok(described),
                    Ok(Err(error)) => {
                        tracing::warn!("{} succeeded, but: {error}", operation.name());
                        Err(error)
                    }
                    Err(error) => Err(*error),
                };
                self.follow(operation, intent, deletion, described).await;
                if let Ok(described) = described {
                    self.inner.tables.expire(&described.schema.name);
                }
            }
            (_, Err(error)) if error.code == Code::ResourceNotFoundException => {}
            _ => return,
        }
        for name in names {
            self.inner.tables.expire(name.as_ref());
        }
    }

    async fn follow(
        &self,
        operation: Operation,
        intent: Option<Box<Intent>>,
        deletion: Option<Box<Deletion>>,
        described: Result<&Described, &Error>,
    ) {
        let done = match (intent, deletion) {
            (Some(intent), _) => table_lifecycle::made(&self.inner, *intent, described).await,
            (None, Some(deletion)) => {
                table_lifecycle::deleted(&self.inner, *deletion, described.map(drop)).await
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = done {
            // Nothing is lost: a gateway that finds a table with an intent records it, and the record of a deleted table is never found again,
            // because ids are not reused.
            tracing::warn!("{} was answered, but the registry could not follow: {error}", operation.name());
        }
    }
}

/// The result of [`Control::before`] for one table operation. Most requests need no preparation, and carry this anyway.
#[derive(Debug, Default)]
pub struct Prepared {
    intent: Option<Box<Intent>>,
    deletion: Option<Box<Deletion>>,
    pass: Option<Pass>,
}

impl Prepared {
    /// The pass of the operation. Operations that depend on no layout have one that always holds. An operation with a reserved name may go on only
    /// while no other gateway can take this one for dead.
    pub fn pass(&mut self, control: &Control) -> Pass {
        let lease = control.inner.fence.lease();
        let begun = self.intent.is_some() || self.deletion.is_some();
        let other = || if begun { Pass::new(Arc::clone(lease)) } else { Pass::free(lease) };
        self.pass.take().unwrap_or_else(other)
    }
}

/// The layouts at the time when one request passed: it is planned under these and no others, whatever changes meanwhile.
#[derive(Clone)]
pub struct View {
    control: Control,
    seen: Arc<Snapshot>,
    /// Set when a key about to move is asked for.
    dependence: Option<Arc<AtomicBool>>,
}

impl LayoutSource for View {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.seen.sharded(name)
    }

    fn in_force(&self, table: &Table, key: &[u8]) -> InForce {
        let in_force = self.control.in_force(table, key);
        if let (Some(dependence), InForce::Moving(moving)) = (&self.dependence, &in_force)
            && moving.phase.is_about_to_move()
            && !dependence.swap(true, Ordering::Relaxed)
        {
            self.control.inner.fence.lease().use_short();
        }
        in_force
    }

    fn reads(&self, table: &Table, key: &[u8]) -> Reads {
        self.control.reads(table, key)
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

impl LayoutSource for Control {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.inner.tables.snapshot().sharded(name)
    }

    fn in_force(&self, table: &Table, key: &[u8]) -> InForce {
        let inner = &self.inner;
        if inner.reserved_keys.see(table, key, inner.registry.env().now()) == Some(PhysicalKeys::AsShard) {
            return InForce::Stable(Arc::clone(&inner.whole));
        }
        table.in_force(key).unwrap_or_else(|| InForce::Stable(Arc::clone(&inner.whole)))
    }

    fn reads(&self, table: &Table, key: &[u8]) -> Reads {
        self.inner.rules.reads(table, key)
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// The error of a gateway that only forwards, on a store where that would be wrong.
fn layouts_unknown(registry: &str) -> String {
    format!(
        "The store has a registry of sharded tables, {registry}: items may lie under other keys than clients name, and requests that are forwarded as they are \
         would miss them"
    )
}

/// By its name or by an ARN.
fn is(name: &str, table: &str) -> bool {
    name == table || (name.starts_with("arn:") && name.rsplit('/').next() == Some(table))
}

/// An error from before a request was sent: nothing of the request was done.
fn not_sent(mut error: Error) -> Error {
    error.outcome = Outcome::NotDone;
    error
}
