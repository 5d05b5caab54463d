//! The admission of requests: their tables are resolved, and each request passes the gates of its
//! tables.
//!
//! Not here: how the status of a table is found (`resolve`), what a pass is worth later (`fence`).

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use heatsink_dynamo::{Error, Outcome};

use super::Control;
use crate::fence::Pass;
use crate::inner::{self, Inner, Look};
use crate::resolve;
use crate::table_cache::{CacheState, Snapshot, not_found};

/// How many tables of one request are looked up concurrently.
pub(super) const LOOKS_AT_ONCE: usize = 8;

impl Control {
    /// Resolves the tables of a data request. After that [`LayoutSource`] answers for them, and the
    /// request may run as long as the [`Pass`] holds. Call it before planning a request that reads
    /// or writes items, with the names as the request gives them; not for table operations, which
    /// stay possible on refused tables. Costs a hash look-up when the table is known; otherwise a
    /// few requests to the store, which all callers share.
    ///
    /// # Errors
    /// `ValidationException` for a table that is refused: with items and unrecorded, or recorded
    /// against the rules. A retryable error while the table's layout is being changed, and while
    /// the registry cannot be reached. `ResourceNotFoundException` for the registry. The store's
    /// error if it fails; that is not cached.
    pub async fn resolve<S: AsRef<str>>(&self, names: &[S]) -> Result<Pass, Error> {
        self.admitted(names).await.map_err(not_sent)
    }

    async fn admitted<S: AsRef<str>>(&self, names: &[S]) -> Result<Pass, Error> {
        if names.iter().any(|name| self.is_hidden(name.as_ref())) {
            return Err(not_found());
        }
        let Inner { tables, fence, rules, cached, registry, unsharded, .. } = &*self.inner;
        loop {
            self.may_forward()?;
            let now = fence.lease().now();
            if fence.lease().is_over(now) {
                Box::pin(self.ensure()).await?;
                continue;
            }
            let rules = rules.load();
            let mut pass =
                Pass::new(Arc::clone(fence.lease())).sharing_calls(rules.shares_calls() || cached.any());
            let none = rules.is_empty() && fence.sees_no_registry();
            drop(rules);
            if none {
                if !unsharded.know(names, now) {
                    // A pass held meanwhile would delay a change.
                    Box::pin(unsharded.look(registry, names)).await?;
                }
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

    /// Admits a request through the gates of its tables. `false` when a gate is closed: the status
    /// of the table has changed.
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

    /// Renews the lease of requests that depend on a key about to move. Hold no pass meanwhile: a
    /// change waits for requests that have one.
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

    pub(super) async fn resolve_one(&self, name: &str) -> Result<(), Error> {
        if let Some(known) = self.inner.tables.get(name) {
            match known.fresh.state(self.inner.registry.env().now()) {
                CacheState::Use => return known.status.answer(),
                CacheState::LookAgain => {
                    // This request pays for the look-up. If it fails, the cached status holds until
                    // it expires.
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
    pub(super) fn look(&self, name: &str) -> Look {
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
        // A waiting request may be cancelled. Without a task of its own the look-up would then stop
        // until the next request polls it, and return an outdated result. Without a runtime the
        // waiting requests drive it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(look.clone());
        }
        look
    }

    fn looking(&self) -> MutexGuard<'_, HashMap<String, Look>> {
        self.inner.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn ensure(&self) -> Result<(), Error> {
        let Inner { registry, tables, fence, .. } = &*self.inner;
        let ensured = fence.ensure(registry, tables).await;
        self.may_forward()?;
        ensured
    }

    /// An error where requests may be forwarded only as they are, and a registry says that some of
    /// them must not be.
    fn may_forward(&self) -> Result<(), Error> {
        let Inner { registry, fence, .. } = &*self.inner;
        match fence.settings.forwards && !fence.sees_no_registry() {
            true => Err(Error::unavailable(inner::layouts_unknown(registry.name()), Outcome::NotDone)),
            false => Ok(()),
        }
    }
}

/// An error from before a request was sent: nothing of the request was done.
pub(super) fn not_sent(mut error: Error) -> Error {
    error.outcome = Outcome::NotDone;
    error
}
