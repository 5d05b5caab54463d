//! The gateway's interface: one gateway's part in the registry and its fence, and what it knows.
//!
//! Not here: how the status of a table is found (`resolve`), for how long it is valid
//! (`table_cache`, `fence`).

mod admission;
mod reload;
mod shared_calls;
mod table_operations;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Outcome};
use heatsink_env::Env;
use heatsink_fence::{Awaits, Step};
use heatsink_layout::{DIRECTORY, Layout};
use heatsink_store::Store;

use crate::cached_keys::CachedKeys;
use crate::fence::{Changer, Fence, Fencing};
use crate::in_progress::InProgress;
use crate::inner::{Inner, layouts_unknown};
use crate::key_record::KeyWrites;
use crate::lost_registry;
use crate::memory::Expectation;
use crate::registry::{NOBODY, Registry};
use crate::reserved_keys::ReservedKeyMonitor;
use crate::rules::Rules;
use crate::table_cache::{TableCache, TableStatus};
use crate::tags::Untagged;
use crate::unsharded_tables::UnshardedTables;

pub use reload::CheckedRules;
pub use shared_calls::SharedKey;
pub use table_operations::Prepared;
pub use view::View;

/// Knows which layout is in force for every key. One per gateway; clones share it.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

/// If rules and records name more tables than this, the store is first asked to list its tables: a
/// page of `ListTables` holds 100 names, so that costs no more than one page of look-ups.
const ASKED_ONE_BY_ONE: usize = 100;

/// Why a gateway does not start.
#[derive(Debug)]
pub enum StartError {
    /// The rules cannot hold for a table that they name, or the registry is not the one that they
    /// say. The operator has to change one of them.
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
    /// [`StartError::Rules`] when a rule names a table that has no record and that it cannot hold
    /// for; [`StartError::Store`] when the store cannot be reached. Where a rule contradicts the
    /// record of a table, the record holds, and a warning says so.
    pub async fn start(store: Arc<dyn Store>, env: Arc<dyn Env>, rules: Rules) -> Result<Self, StartError> {
        let fencing = Fencing::exclusive(rules.fence());
        Control::join(store, env, rules, fencing).await
    }

    /// One of several gateways, which agree on changes by `fencing`. [`keep`](Self::keep) has to
    /// run as long as the gateway serves.
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
            let expectation = Arc::new(Expectation {
                alone: fencing.exclusive,
                ..Expectation::clone(&fencing.expectation)
            });
            let registry = Registry::new(store, Arc::clone(&env), &fencing.registry).expecting(&expectation);
            let changer = Changer::new(registry.clone(), fencing.clone());
            let fence = Fence::new(&env, fencing, changer.liveness());
            fence.note_rules(&rules);
            let control = Control {
                inner: Arc::new(Inner {
                    fence,
                    changer,
                    registry,
                    rules: ArcSwap::from_pointee(rules),
                    cached: CachedKeys::default(),
                    tables: TableCache::new(),
                    in_progress: InProgress::default(),
                    untagged: Untagged::default(),
                    looking: Mutex::new(HashMap::new()),
                    unsharded: UnshardedTables::default(),
                    whole: Arc::new(Layout::none()),
                    reserved_keys: ReservedKeyMonitor::new(),
                    key_writes: Mutex::default(),
                }),
            };
            control.check().await?;
            Ok(control)
        }
        .boxed()
    }

    /// Looks up every table that the rules or the registry name.
    async fn check(&self) -> Result<(), StartError> {
        let Inner { registry, fence, tables, changer, .. } = &*self.inner;
        let rules = self.rules();
        let recorded = registry.exists().await.map_err(StartError::Store)?;
        let settings = &fence.settings;
        if settings.forwards && recorded {
            return Err(StartError::Rules(layouts_unknown(registry.name())));
        }
        if let Some(problem) = lost_registry::missed(registry, recorded).await.map_err(StartError::Store)? {
            return Err(StartError::Rules(problem));
        }
        if recorded && !settings.observes {
            lost_registry::warn_if_unprotected(registry).await;
        }
        // A registry without a head was written by a build without the fence. Where there is no
        // registry, one is created as early as possible: until every gateway has noticed it, no
        // table comes under its rules.
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
        for name in self.named(&rules, recorded).await.map_err(StartError::Store)? {
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
                    // Its layout is being changed, or cannot be changed yet, or its record cannot be
                    // read: its first request looks again. The other tables are served meanwhile.
                    _ if [Code::ServiceUnavailable, Code::InternalServerError].contains(&error.code)
                        && error.outcome == Outcome::NotDone
                        && !error.is_denied() =>
                    {
                        tracing::warn!(table = name, "{error}");
                    }
                    _ => return Err(StartError::Store(error)),
                },
            }
        }
        Ok(())
    }

    /// The tables that rules or the registry name.
    async fn named(&self, rules: &Rules, recorded: bool) -> Result<Vec<String>, Error> {
        let registry = &self.inner.registry;
        let exact = rules.iter().filter(|rule| rule.table.is_exact());
        let mut names: Vec<String> = exact.map(|rule| rule.table.text().to_owned()).collect();
        if recorded {
            names.extend(registry.recorded_names().await?);
        }
        names.sort();
        names.dedup();
        if names.len() > ASKED_ONE_BY_ONE {
            let there = registry.tables().await?;
            names.retain(|name| there.contains(name));
        }
        names.retain(|name| !self.is_hidden(name));
        Ok(names)
    }

    /// Renews this gateway's lease and acknowledges changes while it serves. Never returns.
    pub fn keep(&self) -> BoxFuture<'_, ()> {
        async move {
            let Inner { registry, tables, fence, changer, .. } = &*self.inner;
            let (mut failing, mut tagged) = (false, registry.env().now());
            loop {
                registry.env().sleep(fence.pause().await).await;
                let looked = match fence.look(registry, tables).await {
                    Ok(()) => fence.sweep(registry).await,
                    failed => failed,
                };
                let looked = match looked {
                    Ok(()) if !fence.sees_no_registry() => changer.settle().await,
                    looked => looked,
                };
                let now = registry.env().now();
                if looked.is_ok() && now.since(tagged) >= fence.settings.bounds.lease {
                    tagged = now;
                    self.tag_again().await;
                }
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

    /// Tags the sharded tables that this gateway knows and that have no tag.
    async fn tag_again(&self) {
        let Inner { registry, tables, untagged, .. } = &*self.inner;
        for (name, id) in tables.snapshot().all_sharded() {
            if let Err(error) = untagged.tag_again(registry, &name, &id).await {
                tracing::debug!(table = name, "not tagged with its registry yet: {error}");
                return;
            }
        }
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

    /// Says that a layout may change within seconds: this gateway looks for changes more often for
    /// a while, so that the first step of a change does not wait for its next look.
    pub fn expect_change(&self) {
        self.inner.fence.lease().expect_change();
    }

    /// Whether this gateway may send requests now.
    pub fn has_lease(&self) -> bool {
        let lease = self.inner.fence.lease();
        !lease.is_over(lease.now())
    }

    /// Which share of its lease is left: for that long this gateway may answer without reaching the
    /// registry. 1 just after it has.
    pub fn lease_left(&self) -> f64 {
        let (fence, bounds) = (&self.inner.fence, self.inner.fence.bounds());
        let whole = if fence.sees_no_registry() { bounds.unregistered_lease() } else { bounds.lease };
        let left = fence.lease().left(fence.lease().now());
        (left.as_secs_f64() / whole.as_secs_f64()).min(1.0)
    }

    /// Publishes a change that this process has written, applies it in this gateway, and waits for
    /// what `awaits` says of every other one. Returns whether all calls that were planned before
    /// were answered. May be dropped at any time.
    ///
    /// # Errors
    /// Those of the store.
    pub fn announce<'a>(
        &'a self,
        awaits: Awaits,
        table: &'a str,
        version: u64,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let Inner { changer, fence, .. } = &*self.inner;
            let step = self.published(table, version).await?;
            let clean = changer.wait(step.awaiting(awaits)).await?.is_clean();
            // Nobody waits for the late calls of an exclusive gateway but itself.
            Ok(clean && (!fence.settings.exclusive || fence.late().await.is_zero()))
        }
        .boxed()
    }

    /// Publishes a change that this process has written, applies it in this gateway, and waits
    /// until nothing that was planned before can take effect any more, here or elsewhere. May be
    /// dropped at any time.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn settle(&self, table: &str, version: u64) -> Result<(), Error> {
        self.announce(Awaits::Effects, table, version).await?;
        let Inner { fence, registry, .. } = &*self.inner;
        if fence.settings.exclusive {
            registry.env().sleep(fence.late().await).await;
        }
        Ok(())
    }

    /// Publishes a change that this process has written, and applies it in this gateway. May be
    /// dropped at any time.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn make_known(&self, table: &str, version: u64) -> Result<(), Error> {
        self.published(table, version).await.map(drop)
    }

    async fn published(&self, table: &str, version: u64) -> Result<Step, Error> {
        let Inner { changer, fence, .. } = &*self.inner;
        let (inner, name) = (Arc::clone(&self.inner), table.to_owned());
        let publish = async move { inner.publish(&name, version).await };
        // A caller that is dropped must not leave a change half applied here: requests under the
        // old record would go on unnoticed.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let published = runtime.spawn(publish).await;
                published.map_err(|_| Error::unavailable("The gateway is stopping", Outcome::NotDone))?
            }
            Err(_) if fence.settings.exclusive => publish.await,
            // `keep` applies it.
            Err(_) => Ok(changer.publish(table, version).await?.step),
        }
    }

    /// What writes records of keys of that table in this gateway: one for all who do so at the same
    /// time.
    pub fn key_writes(&self, table_id: &str) -> Arc<KeyWrites> {
        let mut known = self.inner.key_writes.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, writes| writes.strong_count() > 0);
        if let Some(writes) = known.get(table_id).and_then(Weak::upgrade) {
            return writes;
        }
        let writes = Arc::default();
        known.insert(table_id.to_owned(), Arc::downgrade(&writes));
        writes
    }

    /// Whether this gateway has seen a registry. One that only forwards ([`Fencing::forwarding`])
    /// refuses every request from then on.
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

    /// The rules of this gateway that are in force now.
    pub fn rules(&self) -> Arc<Rules> {
        self.inner.rules.load_full()
    }

    /// Whether `name` is one of Heatsink's own tables, which clients never see, by its name or by
    /// an ARN.
    pub fn is_hidden(&self, name: &str) -> bool {
        [self.inner.registry.name(), DIRECTORY, NOBODY].into_iter().any(|own| is_named(name, own))
    }

    /// The names of those tables, whether they exist or not.
    pub fn hidden_tables(&self) -> Arc<[String]> {
        [self.inner.registry.name(), DIRECTORY, NOBODY].map(str::to_owned).into()
    }

    /// Whether a table of that name was recorded once, though none is now: the rest of its stream
    /// holds physical keys.
    ///
    /// # Errors
    /// The store's.
    pub async fn was_recorded(&self, name: &str) -> Result<bool, Error> {
        Ok(self.inner.registry.entry(name).await?.is_some())
    }

    /// How often this gateway has seen that layouts changed.
    pub fn changes_seen(&self) -> u64 {
        self.inner.fence.seen()
    }
}

/// Whether `name` is that table's name, or an ARN of it.
fn is_named(name: &str, table: &str) -> bool {
    name == table || (name.starts_with("arn:") && name.rsplit('/').next() == Some(table))
}
