//! A gateway's side of the fence: reads the head of the registry, applies changes, and acknowledges
//! them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::lock::Mutex as AsyncMutex;
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_fence::{Bounds, Gate, Head, Heartbeat, Liveness, Member, Registration, Seen};

use super::items::{Gateway, StoredHead};
use super::lease::Lease;
use super::ruled_tables::RuledTables;
use super::settings::Fencing;
use crate::registry::Registry;
use crate::rules::Rules;
use crate::table_cache::TableCache;

/// How long requests may go on that were planned under a layout that has changed. After that their
/// clients do not get the results.
const DRAIN: Duration = Duration::from_secs(1);
/// How often the gateway checks whether those requests are done.
const DRAIN_LOOK: Duration = Duration::from_millis(5);
/// For this long after a change the head is read more often: another step may follow. As long after
/// one was expected.
const BUSY: Duration = Duration::from_secs(10);
/// How many times more often.
const BUSIER: u32 = 10;
/// How many reads of the head a request waits for.
const LOOKS: usize = 4;

/// A gateway's side of the fence.
pub(crate) struct Fence {
    pub settings: Fencing,
    id: String,
    lease: Arc<Lease>,
    member: Mutex<Member>,
    /// How many heads with changes were seen. A look-up that began before one of them was seen is
    /// repeated.
    seen: AtomicU64,
    /// The gate of requests that are forwarded because there is no registry.
    unsharded: Arc<Gate>,
    /// Serializes reads of the head.
    looking: AsyncMutex<Looked>,
    /// What is known of other gateways, together with the changer of this process.
    liveness: Arc<AsyncMutex<Liveness>>,
    swept: AsyncMutex<Option<MonotonicInstant>>,
    /// Which tables the rules in force would shard.
    ruled: Mutex<RuledTables>,
}

/// The state that the last reads of the head left behind.
#[derive(Default)]
struct Looked {
    /// When a change was last seen.
    busy: Option<MonotonicInstant>,
    beaten: Option<MonotonicInstant>,
    /// When it was last registered: milliseconds since 1970.
    registered: u64,
    /// From this time on no request can take effect that was acknowledged as unclean.
    unclean: MonotonicInstant,
}

impl Fence {
    pub fn new(env: &Arc<dyn Env>, settings: Fencing, liveness: Arc<AsyncMutex<Liveness>>) -> Self {
        let member = if settings.exclusive {
            Member::exclusive(settings.bounds)
        } else {
            Member::new(settings.bounds)
        };
        Fence {
            id: format!("{:016x}", env.random()),
            lease: Arc::new(Lease::none(Arc::clone(env))),
            member: Mutex::new(member),
            seen: AtomicU64::new(0),
            unsharded: Arc::default(),
            looking: AsyncMutex::default(),
            liveness,
            swept: AsyncMutex::default(),
            ruled: Mutex::default(),
            settings,
        }
    }

    pub fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Has the next heartbeat say which tables the rules would shard.
    pub fn note_rules(&self, rules: &Rules) {
        *self.ruled.lock().unwrap_or_else(PoisonError::into_inner) = RuledTables::of(rules);
    }

    /// The id under which it is registered.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The gate of requests that are forwarded because there is no registry.
    pub fn unsharded(&self) -> &Arc<Gate> {
        &self.unsharded
    }

    /// The bounds of this gateway.
    pub fn bounds(&self) -> Bounds {
        self.settings.bounds
    }

    /// Whether no registry has been seen, so that nothing is sharded.
    pub fn sees_no_registry(&self) -> bool {
        self.member().is_watching()
    }

    /// How many heads with changes were seen.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Returns with a lease: the current one, or a new one.
    ///
    /// # Errors
    /// Retryable, when the registry cannot be reached.
    pub async fn ensure(&self, registry: &Registry, tables: &TableCache) -> Result<(), Error> {
        if !self.lease.is_over(self.lease.now()) {
            return Ok(());
        }
        // A gateway that was suspended first applies all changes, then sends a heartbeat or
        // registers again; the next read gives a lease.
        for _ in 0..LOOKS {
            self.look(registry, tables).await?;
            if !self.lease.is_over(self.lease.now()) {
                return Ok(());
            }
        }
        Err(Error::unavailable(
            "The registry shows changes that this gateway has not caught up with",
            Outcome::NotDone,
        ))
    }

    /// Reads the head, applies changes, and acknowledges them.
    ///
    /// # Errors
    /// The store's; a registry that existed and does not any more.
    pub async fn look(&self, registry: &Registry, tables: &TableCache) -> Result<(), Error> {
        let mut looked = self.looking.lock().await;
        self.look_locked(registry, tables, &mut looked).await
    }

    /// Renews the lease for requests that depend on a key about to move, if it is over. Requests
    /// wait for one read of the head together.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub async fn renew_short(&self, registry: &Registry, tables: &TableCache) -> Result<(), Error> {
        let mut looked = self.looking.lock().await;
        if !self.lease.is_short_over(self.lease.now()) {
            return Ok(());
        }
        self.look_locked(registry, tables, &mut looked).await
    }

    async fn look_locked(
        &self,
        registry: &Registry,
        tables: &TableCache,
        looked: &mut Looked,
    ) -> Result<(), Error> {
        let mut sent = self.lease.now();
        let mut head = registry.head().await?;
        if let Some(found) = &head {
            if self.member().is_watching() {
                self.change(Member::found_registry);
                // Nothing was planned under a record yet, but requests that were planned without a
                // registry must not be sent any more.
                self.shut(looked, vec![Arc::clone(&self.unsharded)]).await;
            }
            if self.settings.forwards {
                // It writes nothing, and its lease runs out.
                return Ok(());
            }
            if self.member().is_unregistered() && self.member().may_follow(&found.head) {
                self.register(registry, looked).await?;
                sent = self.lease.now();
                head = registry.head().await?;
            }
        }
        self.follow(registry, tables, looked, sent, head).await
    }

    /// Applies and acknowledges a change that this gateway has made itself. The head that it has
    /// written at or after `sent` is as good as one that it read then.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub async fn wrote(
        &self,
        registry: &Registry,
        tables: &TableCache,
        sent: MonotonicInstant,
        head: StoredHead,
    ) -> Result<(), Error> {
        let mut looked = self.looking.lock().await;
        if self.member().is_watching() || self.member().is_unregistered() {
            drop(looked);
            return self.look(registry, tables).await;
        }
        if head.head.epoch <= self.member().epoch() {
            // A read has shown this head already, or a later one, and it was applied: whoever read
            // it may have been dropped before that.
            return Ok(());
        }
        self.follow(registry, tables, &mut looked, sent, Some(head)).await
    }

    /// Applies the changes of a head that was read at or after `sent`, and acknowledges them.
    async fn follow(
        &self,
        registry: &Registry,
        tables: &TableCache,
        looked: &mut Looked,
        sent: MonotonicInstant,
        head: Option<StoredHead>,
    ) -> Result<(), Error> {
        let Some(stored) = head else {
            if !self.member().is_watching() {
                return Err(registry.gone());
            }
            self.change(|member| member.found_none(sent));
            return Ok(());
        };
        let seen = self.change(|member| member.read(sent, &stored.head));
        match seen {
            Seen::Nothing => {}
            Seen::Changed(changes) => {
                self.seen.fetch_add(1, Ordering::SeqCst);
                let changed = |name: &str| changes.iter().any(|change| change.table == name);
                registry.look_anew(changed);
                let gates = tables.forget(changed);
                self.apply(registry, looked, gates, sent, &stored.head).await;
            }
            Seen::Everything => {
                self.seen.fetch_add(1, Ordering::SeqCst);
                registry.look_anew(|_| true);
                tables.keys().forget();
                let gates = tables.forget(|_| true);
                self.apply(registry, looked, gates, sent, &stored.head).await;
            }
            Seen::Older => {
                return Err(Error::internal(format!(
                    "The registry {} shows an older epoch than before: it was restored or replaced. Nothing is sent until it is put right, or this gateway \
                     is started anew (docs/how-to/recover.md)",
                    registry.name()
                )));
            }
        }
        let due = looked.beaten.is_none_or(|at| sent.since(at) >= self.settings.bounds.heartbeat);
        if due {
            self.beat(registry, looked).await?;
        }
        Ok(())
    }

    /// Gives the requests inside these gates some time to finish, and closes the gates.
    async fn shut(&self, looked: &mut Looked, gates: Vec<Arc<Gate>>) {
        let env = &self.lease.env;
        let straggler = self.settings.bounds.straggler;
        // Nobody else waits for an exclusive gateway's late calls, so the gateway waits itself.
        let patience = if self.settings.exclusive { straggler } else { DRAIN };
        let begun = env.now();
        while gates.iter().any(|gate| !gate.is_empty()) && env.now().since(begun) < patience {
            env.sleep(DRAIN_LOOK).await;
        }
        let now = env.now();
        for gate in gates {
            let late = gate.close(now, straggler);
            if !late.is_zero() {
                looked.unclean = looked.unclean.max(now + late);
            }
        }
    }

    /// Closes the gates of what changed, and acknowledges the epoch.
    async fn apply(
        &self,
        registry: &Registry,
        looked: &mut Looked,
        gates: Vec<Arc<Gate>>,
        sent: MonotonicInstant,
        head: &Head,
    ) {
        looked.busy = Some(self.lease.now());
        self.shut(looked, gates).await;
        self.change(|member| member.applied(sent, head));
        // If it fails, or nobody waits for it any more, the next read of the head writes it.
        looked.beaten = None;
        if let Err(error) = self.beat(registry, looked).await {
            tracing::debug!("a change could not be acknowledged: {error}");
        }
    }

    async fn register(&self, registry: &Registry, looked: &mut Looked) -> Result<(), Error> {
        let sent = self.lease.now();
        let first: Heartbeat = self.change(Member::registration);
        looked.registered = self.lease.env.unix_millis();
        registry.register(&self.as_listed(first, looked, sent)).await?;
        self.change(|member| member.registered(sent));
        Ok(())
    }

    /// This gateway with a heartbeat that is sent at `sent`, as the registry lists it.
    fn as_listed(&self, beat: Heartbeat, looked: &Looked, sent: MonotonicInstant) -> Gateway {
        let Heartbeat { number: beat, epoch } = beat;
        let registration = Registration {
            gateway: self.id.clone(),
            beat,
            epoch,
            unclean: looked.unclean.since(sent),
            bounds: self.settings.bounds,
            ended: false,
        };
        Gateway {
            registration,
            name: self.settings.name.clone(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            since: looked.registered,
            heard: self.lease.env.unix_millis(),
            process: self.settings.processes.own(),
            carries: self.settings.carries,
            carries_values: self.settings.carries,
            knows_counters: true,
            knows_steps: true,
            knows_values: true,
            knows_long_keys: true,
            knows_together: true,
            knows_slots: true,
            knows_numbers: true,
            knows_narrowing: true,
            knows_table_changes: true,
            knows_ranges: true,
            ruled: Some(self.ruled.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }

    async fn beat(&self, registry: &Registry, looked: &mut Looked) -> Result<(), Error> {
        let next: Option<Heartbeat> = self.change(Member::beat);
        let Some(beat) = next else { return Ok(()) };
        let sent = self.lease.now();
        if registry.beat(&self.as_listed(beat, looked, sent)).await? {
            looked.beaten = Some(sent);
            self.change(|member| member.beaten(sent));
        } else {
            tracing::warn!("this gateway was taken off the list of gateways; it registers again");
            self.change(Member::removed);
        }
        Ok(())
    }

    /// Removes dead gateways from the list, because every change would wait for each. Runs once per
    /// lease, and more often while it knows of one whose process has ended.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn sweep(&self, registry: &Registry) -> Result<(), Error> {
        let swept = &mut *self.swept.lock().await;
        let now = self.lease.now();
        let Fencing { bounds, processes, .. } = &self.settings;
        let pause = if self.liveness.lock().await.any_ended() { bounds.heartbeat } else { bounds.lease };
        if !self.member().is_registered() || swept.is_some_and(|at| now.since(at) < pause) {
            return Ok(());
        }
        *swept = Some(now);
        let list = registry.gateways_marked(&**processes).await?;
        let list: Vec<_> = list.into_iter().map(|one| one.registration).collect();
        let now = self.lease.now();
        let silent: Vec<(String, u64)> = {
            let mut liveness = self.liveness.lock().await;
            liveness.listed(now, &list);
            liveness.silent(now).map(|(gateway, beat)| (gateway.to_owned(), beat)).collect()
        };
        for (gateway, beat) in silent {
            registry.remove_gateway(&gateway, Some(beat)).await?;
        }
        Ok(())
    }

    /// Removes this gateway's registration, if none of its requests can take effect any more.
    pub async fn leave(&self, registry: &Registry, tables: &TableCache) {
        let looked = self.looking.lock().await;
        let now = self.lease.now();
        let mut late = !looked.unclean.since(now).is_zero();
        for gate in tables.forget(|_| true) {
            late |= !gate.close(now, self.settings.bounds.straggler).is_zero();
        }
        let registered = self.member().is_registered();
        self.change(Member::removed);
        if registered
            && !late
            && let Err(error) = registry.remove_gateway(&self.id, None).await
        {
            tracing::debug!("this gateway could not be taken off the list: {error}");
        }
    }

    /// For how long calls may still take effect that this gateway has acknowledged as unanswered.
    pub async fn late(&self) -> Duration {
        let looked = self.looking.lock().await;
        looked.unclean.since(self.lease.now())
    }

    /// How long to wait before the next look.
    pub async fn pause(&self) -> Duration {
        let looked = self.looking.lock().await;
        let (now, bounds) = (self.lease.now(), &self.settings.bounds);
        let short_used = self.lease.short_used.load(Ordering::Relaxed);
        if short_used > 0 && now.since(MonotonicInstant(short_used)) < bounds.short_lease() {
            return bounds.short_poll();
        }
        let expected = self.lease.expected.load(Ordering::Relaxed);
        let expected = (expected > 0).then_some(MonotonicInstant(expected));
        match looked.busy.max(expected) {
            Some(at) if now.since(at) < BUSY => bounds.poll / BUSIER,
            _ => bounds.poll,
        }
    }

    fn member(&self) -> MutexGuard<'_, Member> {
        self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Member) -> T) -> T {
        let mut member = self.member();
        let changed = change(&mut member);
        self.lease.until.store(member.lease().0.0, Ordering::SeqCst);
        // Nobody waits for an exclusive gateway's lease.
        let short = if self.settings.exclusive { u64::MAX } else { member.short_lease().0.0 };
        self.lease.short_until.store(short, Ordering::SeqCst);
        changed
    }
}
