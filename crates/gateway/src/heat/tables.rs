//! The keys of the tables that requests name, as the store describes them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use heatsink_dynamo::{Code, Error, Operation, TableSchema, json};
use heatsink_env::MonotonicInstant;
use heatsink_heat::detect::{Detector, Kind, PartId};
use heatsink_store::Store;
use tokio::sync::Notify;

use super::units::Ratio;

/// The most tables that are known. Requests for further ones are not counted.
const MOST: usize = 1_024;
/// The shortest time between two questions for the keys of one table.
const AGAIN: Duration = Duration::from_secs(10);

/// What is known of tables.
#[derive(Default)]
pub(super) struct Tables {
    known: RwLock<KnownTables>,
    wanted: Mutex<HashSet<String>>,
    notify: Notify,
}

/// By name. Names that clients make up are bounded by [`MOST`].
type KnownTables = HashMap<String, Known, RandomState>;

enum Known {
    /// The store was asked at that time, and has not answered, or not with keys.
    Asked(MonotonicInstant),
    Keys(Arc<TableKeys>),
}

/// The parts of one table or index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) read: PartId,
    pub(super) write: PartId,
}

/// How to read the keys of one table out of a request.
#[derive(Debug)]
pub(super) struct TableKeys {
    pub(super) name: Arc<str>,
    pub(super) partition: String,
    pub(super) sort: Option<String>,
    pub(super) parts: Parts,
    pub(super) indexes: Vec<IndexKeys>,
    pub(super) ratio: Ratio,
    asked: MonotonicInstant,
    stale: AtomicBool,
}

#[derive(Debug)]
pub(super) struct IndexKeys {
    pub(super) name: String,
    /// The partition key; `None` where it has several attributes, whose values are not counted
    /// apart.
    pub(super) partition: Option<String>,
    /// An item is in the index if it has all of these.
    pub(super) attributes: Vec<String>,
    pub(super) local: bool,
    pub(super) parts: Parts,
}

impl TableKeys {
    pub(super) fn index(&self, name: &str) -> Option<&IndexKeys> {
        let found = self.indexes.iter().find(|index| index.name == name);
        if found.is_none() {
            self.doubt();
        }
        found
    }

    /// A request fits another table: it was made anew, or has another index.
    pub(super) fn doubt(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }
}

impl Tables {
    /// The keys of a table; where they are not known, the store is asked for them.
    pub(super) fn get(&self, name: &str, now: MonotonicInstant) -> Option<Arc<TableKeys>> {
        let (known, full) = {
            let tables = self.known.read().unwrap_or_else(PoisonError::into_inner);
            match tables.get(name) {
                Some(Known::Keys(keys)) if !keys.stale.load(Ordering::Relaxed) => {
                    return Some(Arc::clone(keys));
                }
                Some(Known::Keys(keys)) => (Some(keys.asked), false),
                Some(Known::Asked(at)) => (Some(*at), false),
                None => (None, tables.len() >= MOST),
            }
        };
        if !full && known.is_none_or(|at| now.since(at) >= AGAIN) {
            self.write().insert(name.to_owned(), Known::Asked(now));
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
            self.notify.notify_one();
        }
        None
    }

    pub(super) fn forget<S: AsRef<str>>(&self, names: &[S]) {
        let mut tables = self.write();
        for name in names {
            tables.remove(name.as_ref());
        }
    }

    /// Resolves once the keys of a table are wanted.
    pub(super) async fn asked(&self) {
        self.notify.notified().await;
    }

    pub(super) fn to_describe(&self) -> HashSet<String> {
        std::mem::take(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the answer of [`describe`].
    pub(super) fn learn(&self, name: String, described: Result<TableSchema, Error>, detector: &mut Detector) {
        let mut tables = self.write();
        match described {
            Ok(schema) => {
                // A table that was changed or deleted meanwhile is asked for again.
                let Some(Known::Asked(asked)) = tables.get(&name) else { return };
                let keys = Known::Keys(Arc::new(keys(&schema, *asked, detector)));
                tables.insert(name, keys);
            }
            Err(error) if error.code == Code::ResourceNotFoundException => {
                tables.remove(&name);
            }
            Err(error) => {
                tracing::warn!(
                    table = name,
                    "the heat of this table is not counted: DescribeTable is answered with {error}"
                );
            }
        }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, KnownTables> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the store for the keys of a table.
pub(super) async fn describe(store: &dyn Store, name: &str) -> Result<TableSchema, Error> {
    let mut body = json::Object::new();
    body.string("TableName", name);
    let answer = store.call(Operation::DescribeTable, Bytes::from(body.finish())).await?;
    TableSchema::from_description(&answer)
}

fn keys(schema: &TableSchema, asked: MonotonicInstant, detector: &mut Detector) -> TableKeys {
    let table: Arc<str> = Arc::from(schema.name.as_str());
    let mut parts = |index: Option<&Arc<str>>| Parts {
        read: detector.part(&table, index, Kind::Read),
        write: detector.part(&table, index, Kind::Write),
    };
    let of_table = parts(None);
    let of_index = |index: &heatsink_dynamo::IndexSchema| {
        // A local index has no partitions of its own: what reads it reads the table's.
        let parts = if index.local { of_table } else { parts(Some(&Arc::from(index.name.as_str()))) };
        let all = index.key.partition.iter().chain(&index.key.sort);
        let partition = match index.key.partition.as_slice() {
            [one] => Some(one.name.clone()),
            _ => None,
        };
        let attributes = all.map(|attribute| attribute.name.clone()).collect();
        IndexKeys { name: index.name.clone(), partition, attributes, local: index.local, parts }
    };
    TableKeys {
        name: Arc::clone(&table),
        partition: schema.key.partition.name.clone(),
        sort: schema.key.sort.as_ref().map(|sort| sort.name.clone()),
        parts: of_table,
        indexes: schema.indexes.iter().map(of_index).collect(),
        ratio: Ratio::default(),
        asked,
        stale: AtomicBool::new(false),
    }
}
