//! The layouts in force, as planning asks for them: of one request at the time of its pass, or of
//! the gateway now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use heatsink_layout::{InForce, LayoutSource, PhysicalKeys, Reads, Table};

use super::Control;
use crate::fence::Pass;
use crate::table_cache::Snapshot;

/// The layouts at the time when one request passed: it is planned under these and no others,
/// whatever changes meanwhile.
#[derive(Clone)]
pub struct View {
    control: Control,
    seen: Arc<Snapshot>,
    /// Set when a key about to move is asked for.
    dependence: Option<Arc<AtomicBool>>,
}

impl Control {
    /// The layouts by which a request with that pass is planned.
    pub fn view(&self, pass: &Pass) -> View {
        View { control: self.clone(), seen: pass.seen(), dependence: pass.dependence() }
    }
}

impl View {
    /// The request is planned under the short lease.
    fn depend(&self) {
        if let Some(dependence) = &self.dependence
            && !dependence.swap(true, Ordering::Relaxed)
        {
            self.control.inner.fence.lease().use_short();
        }
    }
}

impl LayoutSource for View {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let table = self.seen.sharded(name)?;
        if table.change().is_some_and(|change| change.phase.shortens_leases()) {
            self.depend();
        }
        Some(table)
    }

    fn in_force(&self, table: &Table, key: &[u8]) -> InForce {
        let in_force = self.control.in_force(table, key);
        if let InForce::Moving(moving) = &in_force
            && moving.phase.is_about_to_move()
        {
            self.depend();
        }
        in_force
    }

    fn reads(&self, table: &Table, key: &[u8]) -> Reads {
        self.control.reads(table, key)
    }

    fn has_rested(&self, table: &Table) -> bool {
        self.seen
            .get(&table.name)
            .is_some_and(|known| known.rest.is_over(self.control.inner.registry.env().now()))
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
        self.inner.rules.load().reads(table, key)
    }

    fn has_rested(&self, table: &Table) -> bool {
        let known = self.inner.tables.get(&table.name);
        known.is_some_and(|known| known.rest.is_over(self.inner.registry.env().now()))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}
