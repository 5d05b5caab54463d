//! Publishes a change of the registry, and waits until every gateway knows of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::lock::Mutex;
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_fence::{Awaits, Bounds, Head, Liveness, Registration, Step, Wait};
use heatsink_store::Store;

use super::items::{Gateway, StoredHead};
use super::settings::Fencing;
use crate::lost_registry;
use crate::registry::Registry;
use crate::together::Together;

/// The first pause before the list of gateways is read again while one has yet to acknowledge;
/// pauses grow up to [`LONGEST_LOOK`].
const LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// How many reads of the list in a row may fail.
const FAILURES: u32 = 20;

/// How often a publication is tried again after another one came first.
const TRIES: usize = 50;

/// Changes layouts on behalf of a gateway, or of a command beside the gateways. Clones share their
/// state.
#[derive(Clone)]
pub struct Changer {
    registry: Registry,
    settings: Fencing,
    known: Arc<Known>,
}

/// What a process has seen of the registry.
#[derive(Default)]
struct Known {
    /// Since when it has known of a registry that some gateways may not have noticed.
    unsettled: Mutex<Option<MonotonicInstant>>,
    /// Whether it has seen that all gateways have noticed it.
    settled: AtomicBool,
    /// The head as it was last read or written here: the first one that a publication tries to
    /// follow.
    last: Mutex<Option<StoredHead>>,
    /// The gateways: a step need not wait as long for who was silent before.
    liveness: Arc<Mutex<Liveness>>,
    /// Changes that are to be published: the tables, each with the version of its record.
    publications: Together<(String, u64), Published>,
    /// Keys that want to see the head.
    heads: Together<(), Option<StoredHead>>,
    /// Steps that want to see the list of the gateways.
    listings: Together<(), Arc<Vec<Registration>>>,
}

/// The most callers that one write of the head, or one list, serves.
const SERVED: usize = 1_000;

/// A published change.
#[derive(Clone)]
pub(crate) struct Published {
    pub step: Step,
    /// The head that names it.
    pub head: StoredHead,
    /// From before the head was written.
    pub sent: MonotonicInstant,
}

/// Layout changes are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// Since when: milliseconds since 1970.
    pub since: u64,
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "Layout changes are frozen (`heatsink freeze`); `heatsink freeze --thaw` allows them again",
        )
    }
}

impl From<Frozen> for Error {
    fn from(frozen: Frozen) -> Self {
        Error::unavailable(frozen.to_string(), Outcome::NotDone)
    }
}

impl Registry {
    /// Since when layout changes are frozen, if they are.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn frozen(&self) -> Result<Option<Frozen>, Error> {
        Ok(self.head().await?.and_then(|stored| stored.frozen).map(|since| Frozen { since }))
    }
}

impl Changer {
    /// Changes layouts that this registry has on record.
    pub fn new(registry: Registry, settings: Fencing) -> Self {
        Changer { registry, settings, known: Arc::default() }
    }

    /// Changes layouts of a store from outside its gateways.
    pub fn beside(store: Arc<dyn Store>, env: Arc<dyn Env>, fencing: Fencing) -> Self {
        Changer::new(Registry::new(store, env, &fencing.registry).expecting(&fencing.expectation), fencing)
    }

    /// What is known of gateways, to share it.
    pub(crate) fn liveness(&self) -> Arc<Mutex<Liveness>> {
        Arc::clone(&self.known.liveness)
    }

    /// How late a request may take effect that was sent and never answered.
    pub fn straggler(&self) -> Duration {
        self.settings.bounds.straggler
    }

    /// The time bounds.
    pub fn bounds(&self) -> Bounds {
        self.settings.bounds
    }

    /// The same changer, for a caller that knows whether other processes use the store.
    #[must_use]
    pub fn exclusively(&self, exclusive: bool) -> Self {
        Changer { settings: Fencing { exclusive, ..self.settings.clone() }, ..self.clone() }
    }

    /// Creates the registry and its head where they are missing, and checks that layouts may
    /// change. Call it before writing a record.
    ///
    /// # Errors
    /// Retryable while gateways that were started without rules may not have noticed the registry,
    /// and while changes are frozen; the store's errors.
    pub fn begin(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            match self.unsettled().await? {
                None => Ok(()),
                Some(left) => Err(Error::unavailable(
                    format!(
                        "The registry {} is new: gateways that were started without it have yet to notice it, which takes {} s more",
                        self.registry.name(),
                        left.as_secs() + 1
                    ),
                    Outcome::NotDone,
                )),
            }
        }
        .boxed()
    }

    /// [`begin`](Self::begin), but waits if only time is needed.
    ///
    /// # Errors
    /// As for [`begin`](Self::begin).
    pub fn begin_patiently(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            while let Some(left) = self.unsettled().await? {
                self.registry.env().sleep(left).await;
            }
            Ok(())
        }
        .boxed()
    }

    /// Checks whether this process may end what another one began, for which requests wait. Also
    /// while layouts are frozen.
    ///
    /// # Errors
    /// Retryable for a command that changes nothing.
    pub(crate) fn may_go_on(&self) -> Result<(), Error> {
        match self.settings.observes {
            true => Err(Error::unavailable(
                "The table's layout is being changed, or is about to be recorded, and this command changes nothing",
                Outcome::NotDone,
            )),
            false => Ok(()),
        }
    }

    /// How long it takes until layouts may change; zero if they may.
    async fn unsettled(&self) -> Result<Option<Duration>, Error> {
        self.may_go_on()?;
        let stored = self.found().await?;
        if let Some(since) = stored.frozen {
            return Err(Frozen { since }.into());
        }
        let left = self.unsettled_for(&stored).await?;
        *self.known.last.lock().await = Some(StoredHead { settled: left.is_none(), ..stored });
        Ok(left)
    }

    /// Counts from now on how long a registry is known that is new, and records when it no longer
    /// is: the first change of a layout has nothing to wait for then. Reads the head until it is
    /// settled. A gateway calls it while it serves.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        if self.settings.observes || self.known.settled.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.registry.head().await? {
            Some(stored) => self.unsettled_for(&stored).await.map(drop),
            None => Ok(()),
        }
    }

    /// How long it takes until every gateway must have noticed the registry; `None` if all have.
    async fn unsettled_for(&self, stored: &StoredHead) -> Result<Option<Duration>, Error> {
        if stored.settled {
            self.known.settled.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let env = self.registry.env();
        let known = *self.known.unsettled.lock().await.get_or_insert_with(|| env.now());
        let bounds = self.settings.bounds;
        let left = (known + Bounds::UNREGISTERED + bounds.straggler).since(env.now());
        if self.settings.exclusive || left.is_zero() {
            self.registry.write_head(Some(stored), &StoredHead { settled: true, ..stored.clone() }).await?;
            return Ok(None);
        }
        Ok(Some(left))
    }

    /// Makes the registry if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn make_registry(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move { self.found().await.map(drop) }.boxed()
    }

    /// Reads the head, or creates it.
    pub(crate) async fn found(&self) -> Result<StoredHead, Error> {
        if let Some(stored) = self.head().await? {
            return Ok(stored);
        }
        // A process that has seen a registry does not create another one.
        self.registry.absent(())?;
        let is_new = !self.registry.exists().await?;
        if is_new {
            self.registry.make_own().await?;
        } else if self.registry.all().await?.is_empty()
            && let Some(problem) = lost_registry::of_store(&self.registry).await?
        {
            // A table was made in its place.
            return Err(Error::validation(problem));
        }
        self.registry.upgrade().await?;
        // Gateways may have seen a head that is lost. Each change counts one, so none counted as far
        // as this: all look at everything anew.
        let epoch = if is_new { 0 } else { self.registry.env().unix_millis() };
        if !is_new {
            tracing::warn!(
                "the registry {} has no head, and gets a new one; if layout changes were frozen, they no longer are",
                self.registry.name()
            );
        }
        let head = Head { epoch, ..Head::default() };
        let first = StoredHead { head, settled: self.settings.exclusive, frozen: None };
        self.registry.write_head(None, &first).await?;
        self.registry
            .head()
            .await?
            .ok_or_else(|| Error::unavailable("The registry's head could not be written", Outcome::NotDone))
    }

    /// Publishes a change that was written before: of a table's record, of its name, or of both.
    /// Also while layouts are frozen: whoever changes one asks [before it writes](Self::begin), and
    /// what is on record has to be known.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn publish(&self, table: &str, version: u64) -> Result<Published, Error> {
        let serve = |changes: Vec<(String, u64)>| {
            async move { Ok(vec![self.publish_all(&changes).await?; changes.len()]) }.boxed()
        };
        self.known.publications.ask((table.to_owned(), version), SERVED, serve).await
    }

    /// Publishes several changes by one write of the head.
    async fn publish_all(&self, changes: &[(String, u64)]) -> Result<Published, Error> {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for (table, version) in changes {
            let known = newest.entry(table).or_insert(*version);
            *known = (*known).max(*version);
        }
        let after = |head: &Head| {
            newest.iter().fold(head.clone(), |head, (table, version)| head.with(table, *version))
        };
        for _ in 0..TRIES {
            let last = self.known.last.lock().await.take();
            let stored = match last {
                Some(last) => last,
                None => self.found().await?,
            };
            let head = StoredHead { head: after(&stored.head), ..stored.clone() };
            let sent = self.registry.env().now();
            if self.registry.write_head(Some(&stored), &head).await? {
                *self.known.last.lock().await = Some(head.clone());
                let step = Step::new(head.head.epoch, self.registry.env().now());
                return Ok(Published { step, head, sent });
            }
        }
        Err(Error::unavailable("Other changes of layouts came before this one", Outcome::NotDone))
    }

    /// Waits for what the step awaits. Gateways without a heartbeat for long
    /// enough are removed from the list.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn wait(&self, step: Step) -> Result<Step, Error> {
        if self.settings.exclusive {
            return Ok(step);
        }
        let mut step = step.knowing(self.known.liveness.lock().await.clone());
        let (mut pause, mut failures) = (LOOK, 0);
        loop {
            match self.listed().await {
                Ok(list) => {
                    failures = 0;
                    let now = self.registry.env().now();
                    let wait = step.listed(now, &list);
                    self.known.liveness.lock().await.clone_from(step.liveness());
                    let Wait::Until(until) = wait else { return Ok(step) };
                    for (gateway, beat) in step.silent(now) {
                        // The next changer that waits removes it.
                        let _ = self.registry.remove_gateway(gateway, Some(beat)).await;
                    }
                    pause = pause.min(until.since(now));
                }
                Err(error) if failures < FAILURES && error.retryable() => failures += 1,
                Err(error) => return Err(error),
            }
            self.registry.env().sleep(pause.max(Duration::from_millis(1))).await;
            pause = (pause * 5 / 4).clamp(LOOK, LONGEST_LOOK);
        }
    }

    /// The gateways, by a read that was sent after this was called.
    async fn listed(&self) -> Result<Arc<Vec<Registration>>, Error> {
        let serve = |callers: Vec<()>| {
            async move {
                let list = self.registry.gateways_marked(&*self.settings.processes).await?;
                let mut list: Vec<_> = list.into_iter().map(|one: Gateway| one.registration).collect();
                self.forget_strange(&mut list).await?;
                // One list for all of them.
                let list = Arc::new(list);
                Ok(callers.iter().map(|_| Arc::clone(&list)).collect())
            }
            .boxed()
        };
        self.known.listings.ask((), SERVED, serve).await
    }

    /// What a gateway has acknowledged beyond the head was told to it by the head of another
    /// registry: it has acknowledged nothing of this one.
    async fn forget_strange(&self, list: &mut [Registration]) -> Result<(), Error> {
        let newest = list.iter().map(|one| one.epoch).max().unwrap_or_default();
        let known = self.known.last.lock().await.as_ref().map_or(0, |last| last.head.epoch);
        if newest > known
            && let Some(stored) = self.registry.head().await?
        {
            let strange = |one: &&mut Registration| one.epoch > stored.head.epoch;
            list.iter_mut().filter(strange).for_each(|one| one.epoch = 0);
        }
        Ok(())
    }

    /// Publishes a change and waits for nobody. For callers that are no gateways.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn make_known(&self, table: &str, version: u64) -> Result<(), Error> {
        self.publish(table, version).await.map(drop)
    }

    /// Publishes a change and waits for every gateway. For callers that are no gateways.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn announce(&self, table: &str, version: u64) -> Result<Step, Error> {
        self.announce_awaiting(Awaits::Effects, table, version).await
    }

    /// Publishes a change and waits for what `awaits` says of every gateway. For callers that are
    /// no gateways.
    ///
    /// # Errors
    /// Those of the store.
    pub fn announce_awaiting<'a>(
        &'a self,
        awaits: Awaits,
        table: &'a str,
        version: u64,
    ) -> BoxFuture<'a, Result<Step, Error>> {
        async move {
            let published = self.publish(table, version).await?;
            self.wait(published.step.awaiting(awaits)).await
        }
        .boxed()
    }

    /// Forbids layout changes for all processes, or allows them again. A change in progress stops
    /// before its next step, or goes forward where requests wait for it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn freeze(&self, frozen: bool) -> Result<(), Error> {
        for _ in 0..TRIES {
            let stored = self.found().await?;
            let since = frozen.then(|| self.registry.env().unix_millis());
            let next = StoredHead { frozen: stored.frozen.filter(|_| frozen).or(since), ..stored.clone() };
            if next == stored || self.registry.write_head(Some(&stored), &next).await? {
                return Ok(());
            }
        }
        Err(Error::unavailable("Other changes came before this one", Outcome::NotDone))
    }

    /// Since when layout changes are frozen, if they are.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn frozen(&self) -> Result<Option<Frozen>, Error> {
        Ok(self.head().await?.and_then(|stored| stored.frozen).map(|since| Frozen { since }))
    }

    /// The head, by a read that was sent after this was called.
    async fn head(&self) -> Result<Option<StoredHead>, Error> {
        let serve =
            |callers: Vec<()>| async move { Ok(vec![self.registry.head().await?; callers.len()]) }.boxed();
        self.known.heads.ask((), SERVED, serve).await
    }

    /// Every registered gateway, with the newest epoch; nothing if there is no registry.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn gateways(&self) -> Result<Option<(u64, Vec<Gateway>)>, Error> {
        match self.registry.head().await? {
            None => Ok(None),
            Some(stored) => {
                let mut list = self.registry.gateways().await?;
                for one in &mut list {
                    let ended = |mark: &String| self.settings.processes.has_ended(mark);
                    one.registration.ended |= one.process.as_ref().is_some_and(ended);
                }
                Ok(Some((stored.head.epoch, list)))
            }
        }
    }

    /// The names of registered gateways of which that does not hold: older builds do not say what
    /// they know.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn gateways_without(&self, knows: impl Fn(&Gateway) -> bool) -> Result<Vec<String>, Error> {
        let listed = self.gateways().await?.map(|(_, listed)| listed);
        Ok(listed.into_iter().flatten().filter(|one| !knows(one)).map(|one| one.name).collect())
    }

    /// Removes the registration of a gateway that is known to be dead.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn strike(&self, gateway: &str) -> Result<(), Error> {
        self.registry.remove_gateway(gateway, None).await
    }
}
