//! The admission gate: the physics of all tables behind one lock, and the data of the tables.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use heatsink_dynamo::{Code, Error};
use heatsink_env::Env;
use heatsink_physics::{Demand, Plan, Quotas, ResourceSnapshot, Rules, Tables, Throttle, Units};

use super::capacity::{Consumed, IndexWrites};
use super::catalogue::TableInfo;
use super::change::{Change, Stored};
use super::persistence::{Found, PartitionFile, StoredPartitions};
use super::warm::Warming;
use super::{refusal, report, settle};

pub(super) struct Gate {
    env: Arc<dyn Env>,
    quotas: Quotas,
    /// One lock for all: what is done under it takes a fraction of a microsecond (benches/gate.rs
    /// of the physics).
    tables: Mutex<Tables>,
    known: RwLock<HashMap<Arc<str>, Arc<TableInfo>>>,
    kept: Option<PartitionFile>,
    /// Stored partitions of tables that are not known yet.
    found: Mutex<Found>,
}

impl Gate {
    pub(super) fn new(env: Arc<dyn Env>, quotas: Quotas) -> Self {
        let seed = env.random();
        let tables = Mutex::new(Tables::new(Rules { seed, quotas, ..Rules::default() }));
        Gate { env, quotas, tables, known: RwLock::default(), kept: None, found: Mutex::default() }
    }

    /// Starts with the partitions in `file`, and stores them there from now on.
    pub(super) fn kept(env: Arc<dyn Env>, quotas: Quotas, file: &Path) -> Result<Self, Error> {
        let (keeper, found) = PartitionFile::open(file)?;
        Ok(Gate { kept: Some(keeper), found: Mutex::new(found), ..Gate::new(env, quotas) })
    }

    /// The data of a table, by its name or ARN.
    pub(super) fn table(&self, name: &str) -> Option<Arc<TableInfo>> {
        let name = match name.split_once(":table/") {
            Some((_, path)) => path.split('/').next().unwrap_or(path),
            None => name,
        };
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Takes in a table's description: a new table, a new incarnation, or changed capacity and
    /// indexes.
    pub(super) fn learn(&self, mut info: TableInfo) {
        let now = self.now();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut tables = self.tables();
        match known.get(&info.name) {
            Some(before) if before.incarnation == info.incarnation => {
                info.take_ids(before);
                if **before == info {
                    return;
                }
                let indexes = info.indexes.iter().map(|index| (index.id, index.mode));
                for (on, mode) in [(info.id, info.mode)].into_iter().chain(indexes) {
                    tables.note_change(self.env.unix_millis(), on, mode);
                }
                tables.update(now, info.id, info.mode);
            }
            _ => info.id = tables.create(now, Arc::clone(&info.name), info.mode),
        }
        tables.set_local_indexes(info.id, !info.locals.is_empty());
        let indexes: Vec<_> =
            info.indexes.iter().map(|index| (Arc::clone(&index.name), index.mode)).collect();
        let ids = tables.set_indexes(now, &info.name, &indexes);
        for (index, id) in info.indexes.iter_mut().zip(ids) {
            index.id = id;
        }
        let key = (info.name.to_string(), info.incarnation.clone());
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        if let Some(saved) = found
            && let Err(error) = tables.restore(now, &info.name, &saved)
        {
            tracing::warn!(table = %info.name, %error, "starting with fresh partitions");
        }
        known.insert(Arc::clone(&info.name), Arc::new(info));
        self.keep(&tables, &known);
    }

    /// Whether the quotas allow these changes.
    ///
    /// # Errors
    /// `LimitExceededException`.
    pub(super) fn permit(&self, plans: &[Plan]) -> Result<(), Error> {
        let permitted = self.tables().permit(self.env.unix_millis(), plans);
        permitted.map_err(|exceeded| Error::new(Code::LimitExceededException, exceeded.to_string()))
    }

    /// Whether a table may be as warm as that.
    ///
    /// # Errors
    /// As [`Warming::permit`].
    pub(super) fn permit_warm(&self, table: Option<&str>, warming: &Warming) -> Result<(), Error> {
        let resources = table.and_then(|table| self.snapshot(table)).unwrap_or_default();
        warming.permit(&resources, self.quotas.table)
    }

    /// Raises the warm throughput of a table and of its indexes, with the partitions for it.
    pub(super) fn warm_up(&self, table: &str, warming: &Warming) {
        let now = self.now();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut tables = self.tables();
        for (index, [reads, writes]) in warming.each() {
            if let Some(on) = tables.id(table, index) {
                tables.warm_up(now, on, reads, writes);
            }
        }
        self.keep(&tables, &known);
    }

    pub(super) fn forget(&self, name: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
        let mut tables = self.tables();
        tables.remove(name);
        self.keep(&tables, &known);
    }

    /// Stores the partitions, if they have changed.
    fn keep(&self, tables: &Tables, known: &HashMap<Arc<str>, Arc<TableInfo>>) {
        let Some(keeper) = &self.kept else { return };
        if keeper.changed(tables.revision()) {
            let saved = |info: &Arc<TableInfo>| {
                Some((info.name.to_string(), info.incarnation.clone(), tables.save(&info.name)?))
            };
            keeper.keep(StoredPartitions::new(known.values().filter_map(saved)));
        }
    }

    /// Admits all demands of a request that came at `now`, or none.
    pub(super) fn admit(&self, now: u64, demands: &[Demand]) -> Result<(), Vec<Throttle>> {
        self.tables().admit(now, demands)
    }

    /// Admits each list of demands of a request that came at `now` on its own, one after another.
    pub(super) fn admit_each<'a>(
        &self,
        now: u64,
        lists: impl Iterator<Item = &'a [Demand]>,
    ) -> Vec<Result<(), Vec<Throttle>>> {
        let mut tables = self.tables();
        lists.map(|demands| tables.admit(now, demands)).collect()
    }

    /// Gives back what admitted demands had paid.
    pub(super) fn give_back<'a>(&self, demands: impl Iterator<Item = &'a Demand>) {
        let now = self.now();
        let mut tables = self.tables();
        for demand in demands {
            tables.debit(now, demand, Units::ZERO);
        }
    }

    /// Reports the bytes that writes are about to store.
    ///
    /// # Errors
    /// Which of them an item collection has no room for; then nothing was changed.
    pub(super) fn store(&self, changes: &[Change]) -> Result<(), usize> {
        let mut tables = self.tables();
        let mut done = Vec::new();
        for (nth, change) in changes.iter().enumerate() {
            for stored in &change.stored {
                if tables.store(stored.on, stored.point, stored.bytes).is_err() {
                    for Stored { on, point, bytes } in done {
                        tables.stored(on, point, -bytes);
                    }
                    return Err(nth);
                }
                done.push(*stored);
            }
        }
        Ok(())
    }

    /// Takes back bytes that were not stored.
    pub(super) fn take_out(&self, changes: &[Change]) {
        let mut tables = self.tables();
        for Stored { on, point, bytes } in changes.iter().flat_map(|change| &change.stored) {
            tables.stored(*on, *point, -bytes);
        }
    }

    /// Adds bytes that are stored already.
    pub(super) fn add_stored(&self, changes: impl Iterator<Item = Change>) {
        let mut tables = self.tables();
        for Stored { on, point, bytes } in changes.flat_map(|change| change.stored) {
            tables.stored(on, point, bytes);
        }
    }

    /// What demands write to global indexes.
    pub(super) fn index_writes(&self, demands: &[Demand]) -> IndexWrites {
        let tables = self.tables();
        let mut writes = HashMap::new();
        for demand in demands {
            if let Some((table, Some(index))) = tables.name(demand.on) {
                let units: &mut Units = writes.entry((table.to_string(), index.to_string())).or_default();
                *units += demand.units;
            }
        }
        IndexWrites(writes)
    }

    /// Settles a finished request.
    pub(super) fn settle(&self, demands: &[Demand], done: Result<&[Consumed], &Error>) {
        let (costs, unasked) = match done {
            Ok(consumed) => settle::costs(demands, consumed, |name| self.table(name)),
            Err(error) => {
                let tables = self.tables();
                let index =
                    |demand: &Demand| tables.name(demand.on).is_some_and(|(_, index)| index.is_some());
                (settle::costs_of_failure(demands, error, index), Vec::new())
            }
        };
        let now = self.now();
        let mut tables = self.tables();
        for (demand, cost) in demands.iter().zip(costs) {
            tables.debit(now, demand, cost);
        }
        for mut demand in unasked {
            let cost = std::mem::take(&mut demand.units);
            tables.debit(now, &demand, cost);
        }
        if self.kept.as_ref().is_some_and(|keeper| keeper.stale(tables.revision())) {
            // The locks are always taken in this order.
            drop(tables);
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            self.keep(&self.tables(), &known);
        }
    }

    /// The error for a request of which `throttles` were refused.
    pub(super) fn refuse(&self, throttles: &[Throttle]) -> Error {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let tables = self.tables();
        refusal::error(throttles, |on| {
            let (table, index) = tables.name(on)?;
            Some(known.get(table)?.arn(index.map(|index| &**index)).to_owned())
        })
    }

    pub(super) fn snapshot(&self, table: &str) -> Option<Vec<ResourceSnapshot>> {
        let now = self.now();
        self.tables().snapshot(now, table)
    }

    pub(super) fn report(&self, table: &str) -> Option<serde_json::Value> {
        let now = self.now();
        let resources = self.tables().snapshot(now, table)?;
        Some(report::document(table, now, &resources))
    }

    /// The time. A request is admitted as of the moment it came, not of the moment it was read:
    /// large ones take longer to read, and would find more tokens than small ones that came with
    /// them.
    pub(super) fn now(&self) -> u64 {
        self.env.now().0
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
