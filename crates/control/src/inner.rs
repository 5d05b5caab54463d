//! The shared state of one gateway's control: the registry, the rules, the table cache, and how a
//! change is made known.
//!
//! Not here: the gateway's interface (`control`), how the status of a table is found (`resolve`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use arc_swap::ArcSwap;
use futures::future::{BoxFuture, Shared};
use heatsink_dynamo::Error;
use heatsink_fence::Step;
use heatsink_layout::Layout;

use crate::cached_keys::CachedKeys;
use crate::fence::{Changer, Fence, Published};
use crate::in_progress::InProgress;
use crate::key_record::KeyWrites;
use crate::registry::Registry;
use crate::reserved_keys::ReservedKeyMonitor;
use crate::rules::Rules;
use crate::table_cache::TableCache;
use crate::tags::Untagged;
use crate::unsharded_tables::UnshardedTables;

/// The shared state of one gateway's control.
pub(crate) struct Inner {
    pub registry: Registry,
    /// Replaced as one when the rules file has changed.
    pub rules: ArcSwap<Rules>,
    /// The keys that are hot by repeated reads, which are answered from memory meanwhile.
    pub cached: CachedKeys,
    pub tables: TableCache,
    pub fence: Fence,
    pub changer: Changer,
    pub in_progress: InProgress,
    pub untagged: Untagged,
    /// Look-ups in progress, by the requested name.
    pub looking: Mutex<HashMap<String, Look>>,
    /// The tables of a store without a registry.
    pub unsharded: UnshardedTables,
    /// The layout of keys that no rule names.
    pub whole: Arc<Layout>,
    pub reserved_keys: ReservedKeyMonitor,
    /// Who writes records of keys here, by table.
    pub key_writes: Mutex<HashMap<String, Weak<KeyWrites>>>,
}

/// A look-up in progress, shared by all requests that need it.
pub(crate) type Look = Shared<BoxFuture<'static, Result<(), Error>>>;

impl Inner {
    /// Publishes a change, and applies it in this gateway.
    pub async fn publish(&self, table: &str, version: u64) -> Result<Step, Error> {
        let Published { step, head, sent } = self.changer.publish(table, version).await?;
        // If this fails, this gateway learns of the change as the others do.
        if let Err(error) = self.fence.wrote(&self.registry, &self.tables, sent, head).await {
            if self.fence.settings.exclusive {
                // Nobody else waits for this gateway's requests.
                return Err(error);
            }
            tracing::debug!(table, "the registry cannot be reached right after a change: {error}");
        }
        Ok(step)
    }

    /// Publishes a change and waits until every gateway knows it.
    pub async fn announce(&self, table: &str, version: u64) -> Result<(), Error> {
        let step = self.publish(table, version).await?;
        self.changer.wait(step).await?;
        Ok(())
    }

    /// Whether the gateway `by` may still continue what it wrote for `name` with that version. A
    /// live gateway may have lost its request: after a lease and the straggler bound nothing of it
    /// can arrive.
    pub async fn goes_on(&self, by: &str, name: &str, version: u64) -> Result<bool, Error> {
        if by == self.fence.id() {
            return Ok(self.in_progress.is_own(version));
        }
        if self.fence.settings.exclusive {
            return Ok(false);
        }
        let now = self.registry.env().now();
        let bounds = self.fence.settings.bounds;
        if now.since(self.in_progress.seen(name, version, now)) > bounds.lease + bounds.straggler {
            return Ok(false);
        }
        let list = self.registry.gateways().await?;
        Ok(list.iter().any(|one| one.registration.gateway == by))
    }
}

/// The error of a gateway that only forwards, on a store where that would be wrong.
pub(crate) fn layouts_unknown(registry: &str) -> String {
    format!(
        "The store has a registry of sharded tables, {registry}: items may lie under other keys than clients name, and requests that are forwarded as they are \
         would miss them"
    )
}
