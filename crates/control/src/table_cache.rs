//! The gateway's cache of table statuses: what is known, for how long it may be used, and how the
//! hot path reads it without a lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use heatsink_dynamo::{Code, Error, TableSchema};
use heatsink_env::MonotonicInstant;
use heatsink_fence::Gate;
use heatsink_layout::Table;

use crate::known_keys::KnownTables;
use crate::rest::Rest;

/// At this age one request looks the table up again, while the others use the cached status.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// At this age no request uses the cached status. This bounds how long a gateway can miss a change
/// that was made without any gateway, such as a table dropped and created again. Gateways tell each
/// other of their changes sooner (`fence`).
pub const MAX_AGE: Duration = Duration::from_secs(10);

/// When a table was looked up, and whether to look again.
#[derive(Debug)]
pub(crate) struct Freshness {
    checked: MonotonicInstant,
    expired: AtomicBool,
    looking: AtomicBool,
}

/// What a reader does with a cached status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheState {
    /// Use it.
    Use,
    /// This reader, and no other, looks again.
    LookAgain,
    /// No reader may use it any more.
    Expired,
}

impl Freshness {
    pub fn new(checked: MonotonicInstant) -> Self {
        Freshness { checked, expired: AtomicBool::new(false), looking: AtomicBool::new(false) }
    }

    pub fn state(&self, now: MonotonicInstant) -> CacheState {
        let age = now.since(self.checked);
        if age >= MAX_AGE || self.expired.load(Ordering::Acquire) {
            CacheState::Expired
        } else if age >= LOOK_AGAIN && !self.looking.swap(true, Ordering::AcqRel) {
            CacheState::LookAgain
        } else {
            CacheState::Use
        }
    }

    /// Whether it may be used without another look.
    pub fn is_fresh(&self, now: MonotonicInstant) -> bool {
        now.since(self.checked) < LOOK_AGAIN && !self.is_expired()
    }

    pub fn expire(&self) {
        self.expired.store(true, Ordering::Release);
    }

    pub fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// The reader that looked again failed: another one may try.
    pub fn give_up(&self) {
        self.looking.store(false, Ordering::Release);
    }
}

/// The cached status of one table.
#[derive(Debug)]
pub(crate) struct CachedTable {
    pub schema: Arc<TableSchema>,
    pub status: TableStatus,
    /// The warnings that were logged about rules that the record has outlived.
    pub warnings: Vec<String>,
    pub fresh: Freshness,
    /// The version of its record; zero if it has none.
    pub version: u64,
    /// When its record was first written; zero if it has none.
    pub created: u64,
    /// Since when its layouts are the ones in force.
    pub rest: Rest,
    /// The gate of its requests.
    pub gate: Arc<Gate>,
    /// Whether it has a stream.
    pub streams: bool,
}

/// How requests on a table are handled.
#[derive(Clone, Debug)]
pub(crate) enum TableStatus {
    /// Forwarded: the table has no record and no rule shards it.
    Forward,
    /// Sharded as recorded.
    Sharded(Arc<Table>),
    /// Refused.
    Refused {
        error: Error,
        /// The rules cannot hold as long as the record or the table is unchanged: a gateway does
        /// not start with them.
        fatal: bool,
    },
}

impl TableStatus {
    /// The error of a refused table.
    pub fn answer(&self) -> Result<(), Error> {
        match self {
            TableStatus::Refused { error, .. } => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether a key of the table moves.
    pub fn any_key_moves(&self) -> bool {
        matches!(self, TableStatus::Sharded(table) if table.key_layouts().any_moves() || table.change().is_some())
    }
}

/// The store's error for a table that does not exist.
pub(crate) fn not_found() -> Error {
    Error::new(Code::ResourceNotFoundException, "Requested resource not found")
}

/// All cached tables. Readers take no lock; writers copy.
pub(crate) struct TableCache {
    now: ArcSwap<Snapshot>,
    /// Locked by writers. Holds the gates of replaced statuses, whose requests may still be in
    /// flight.
    retired: Mutex<Vec<Arc<Gate>>>,
    keys: KnownTables,
}

/// The cached tables at one point in time.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    /// Hashed fast: only tables that exist are in it, so that no client can choose names that
    /// collide.
    by_name: HashMap<String, Arc<CachedTable>, RandomState>,
}

impl Snapshot {
    pub fn get(&self, name: &str) -> Option<&Arc<CachedTable>> {
        self.by_name.get(name)
    }

    /// The names under which tables were asked for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The names and ids of all sharded tables.
    pub fn all_sharded(&self) -> Vec<(String, String)> {
        let sharded = self.by_name.values().filter(|known| matches!(known.status, TableStatus::Sharded(_)));
        sharded.map(|known| (known.schema.name.clone(), known.schema.id.clone())).collect()
    }

    /// A sharded table. The returned table keeps the layouts that belong to its schema, even if the
    /// name belongs to another table by then.
    pub fn sharded(&self, name: &str) -> Option<Arc<Table>> {
        match &self.get(name)?.status {
            TableStatus::Sharded(table) => Some(Arc::clone(table)),
            _ => None,
        }
    }
}

impl TableCache {
    pub fn new() -> Self {
        TableCache {
            now: ArcSwap::from_pointee(Snapshot::default()),
            retired: Mutex::default(),
            keys: KnownTables::default(),
        }
    }

    /// What is known of the records of their keys.
    pub fn keys(&self) -> &KnownTables {
        &self.keys
    }

    /// The cached tables now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.now.load_full()
    }

    pub fn get(&self, name: &str) -> Option<Arc<CachedTable>> {
        self.now.load().get(name).cloned()
    }

    /// Caches the result of a look-up that began when so many changes were seen. Returns `false`,
    /// and caches nothing, if one was seen since.
    pub fn insert(&self, name: &str, known: CachedTable, began: u64, seen: impl Fn() -> u64) -> bool {
        let known = Arc::new(known);
        self.change(|tables, retired| {
            if seen() != began {
                return false;
            }
            let gate = Arc::clone(&known.gate);
            if let Some(before) = tables.by_name.insert(name.to_owned(), known)
                && !Arc::ptr_eq(&before.gate, &gate)
            {
                retired.push(Arc::clone(&before.gate));
            }
            true
        })
    }

    pub fn remove(&self, name: &str) {
        if self.get(name).is_some() {
            self.change(|tables, retired| {
                retired.extend(tables.by_name.remove(name).map(|known| Arc::clone(&known.gate)));
            });
        }
    }

    /// Expires the tables with such names, and returns the gates of all requests that may have been
    /// planned under their cached status. Whoever is to close them may be dropped before: until
    /// they are closed they are returned again.
    pub fn forget(&self, named: impl Fn(&str) -> bool) -> Vec<Arc<Gate>> {
        self.change(|tables, retired| {
            // The tables of retired gates are not kept; there are few.
            retired.retain(|gate| !gate.is_closed());
            let mut gates = retired.clone();
            for (asked, known) in &tables.by_name {
                if named(asked) || named(&known.schema.name) {
                    known.fresh.expire();
                    if !known.gate.is_closed() {
                        gates.push(Arc::clone(&known.gate));
                    }
                }
            }
            gates
        })
    }

    /// Expires the table under every name it has.
    pub fn expire(&self, name: &str) {
        for (asked, known) in &self.now.load().by_name {
            if asked == name || known.schema.name == name {
                known.fresh.expire();
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Snapshot, &mut Vec<Arc<Gate>>) -> T) -> T {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|gate| !gate.retire());
        let mut next = Snapshot::clone(&self.now.load());
        let changed = change(&mut next, &mut retired);
        self.now.store(Arc::new(next));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reader_looks_again_and_after_that_nobody_trusts_it() {
        let fresh = Freshness::new(MonotonicInstant(0));
        assert_eq!(fresh.state(MonotonicInstant(0) + Duration::from_secs(4)), CacheState::Use);
        let later = MonotonicInstant(0) + LOOK_AGAIN;
        assert_eq!([fresh.state(later), fresh.state(later)], [CacheState::LookAgain, CacheState::Use]);
        fresh.give_up();
        assert_eq!(fresh.state(later), CacheState::LookAgain);
        assert_eq!(fresh.state(MonotonicInstant(0) + MAX_AGE), CacheState::Expired);
        let fresh = Freshness::new(MonotonicInstant(0));
        fresh.expire();
        assert_eq!(fresh.state(MonotonicInstant(0)), CacheState::Expired);
    }

    fn cached(gate: &Arc<Gate>) -> CachedTable {
        let attribute = |name: &str| heatsink_dynamo::AttributeDefinition {
            name: name.to_owned(),
            key_type: heatsink_dynamo::KeyType::S,
        };
        let key = heatsink_dynamo::KeySchema { partition: attribute("pk"), sort: None };
        let schema = TableSchema { name: "T".to_owned(), id: "t".to_owned(), key, indexes: Vec::new() };
        CachedTable {
            schema: Arc::new(schema),
            status: TableStatus::Forward,
            warnings: Vec::new(),
            fresh: Freshness::new(MonotonicInstant(0)),
            version: 1,
            created: 1,
            rest: Rest::Over,
            gate: Arc::clone(gate),
            streams: false,
        }
    }

    #[test]
    fn a_gate_is_returned_until_it_is_closed() {
        let tables = TableCache::new();
        let [first, second] = [Arc::new(Gate::default()), Arc::new(Gate::default())];
        // Requests are inside, so that neither is retired by itself.
        let _inside = [first.admit().unwrap(), second.admit().unwrap()];
        tables.insert("T", cached(&first), 0, || 0);
        tables.insert("T", cached(&second), 0, || 0);
        // Whoever asked for them the first time was dropped before they were closed.
        for _ in 0..2 {
            let gates = tables.forget(|name| name == "T");
            let has = |gate: &Arc<Gate>| gates.iter().any(|one| Arc::ptr_eq(one, gate));
            assert!(gates.len() == 2 && has(&first) && has(&second));
        }
        for gate in tables.forget(|_| true) {
            gate.close(MonotonicInstant(1), Duration::from_secs(1));
        }
        assert!(tables.forget(|_| true).is_empty());
    }
}
