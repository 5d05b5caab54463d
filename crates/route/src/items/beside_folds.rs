//! The read of counters of which a worker folds fragments meanwhile: the fragments that they lose,
//! the others, and the former again, until no fold came between
//! ([`FoldRead`](heatsink_reshard::FoldRead)).

use bytes::Bytes;
use heatsink_dynamo::json::Malformed;
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_layout::{InForce, Slot, Table};
use heatsink_reshard::{FoldPart, FoldRead, Rules};
use serde_json::Value as Json;

use super::fetch::Fetch;
use crate::Calls;
use crate::answer::unreadable;
use crate::identity::{self, Identity};

/// How many parts are read. Each fold that comes between costs two of them, and no fragment is folded
/// twice.
const PATIENCE: usize = 64;

/// What was found of the fragments that counters lose.
type Lost = Vec<Vec<(Identity, Slot, Bytes)>>;

/// Whether a worker folds what lies under a raw physical key.
fn is_folded(table: &Table, key: &[u8]) -> Result<bool, Malformed> {
    let (identity, slot) = identity::stored(table, key)?;
    Ok(match table.in_force(identity.partition()) {
        Some(InForce::Narrowing(narrowing)) => narrowing.folds && slot.shard >= narrowing.adds,
        _ => false,
    })
}

impl Fetch {
    /// Whether fragments of counters are folded meanwhile that are to be read.
    pub(super) fn reads_folded(&self) -> bool {
        let folds = |table: &Table, keys: &[Bytes]| keys.iter().any(|key| is_folded(table, key) != Ok(false));
        let mut tables = self.tables.iter().filter_map(|part| Some((part.table.as_ref()?, &part.pending)));
        tables.any(|(table, keys)| table.key_layouts().any_narrows() && folds(table, keys))
    }

    /// Takes the keys of such fragments out of what is pending, by table. These tables are read
    /// consistently.
    pub(super) fn take_folded(&mut self) -> Result<Vec<Vec<Bytes>>, Malformed> {
        let mut taken = Vec::new();
        for part in &mut self.tables {
            let mut lost = Vec::new();
            if let Some(table) = part.table.clone().filter(|table| table.key_layouts().any_narrows()) {
                for key in std::mem::take(&mut part.pending) {
                    let kept = if is_folded(&table, &key)? { &mut lost } else { &mut part.pending };
                    kept.push(key);
                }
                if !lost.is_empty() {
                    part.consistently();
                }
            }
            taken.push(lost);
        }
        Ok(taken)
    }

    /// Reads these keys, and what is pending, so that no fold comes between.
    pub(super) async fn read_beside_folds(
        &mut self,
        lost: &[Vec<Bytes>],
        calls: &mut dyn Calls,
    ) -> Result<(), Error> {
        let broken = |Malformed| unreadable(Operation::BatchGetItem);
        let kept: Vec<Vec<Bytes>> =
            self.tables.iter_mut().map(|part| std::mem::take(&mut part.pending)).collect();
        let plain: Vec<usize> = self.tables.iter().map(|part| part.plain.len()).collect();
        let mut read = FoldRead::new(Rules::ALL);
        for _ in 0..PATIENCE {
            let part = read.call();
            if part == FoldPart::Kept {
                // What an earlier turn found.
                drop(self.take_all(&kept).map_err(broken)?);
                self.tables.iter_mut().zip(&plain).for_each(|(part, plain)| part.plain.truncate(*plain));
            }
            self.ask(if part == FoldPart::Kept { &kept } else { lost });
            self.read_pending(calls).await?;
            if part == FoldPart::Kept {
                read.kept();
                continue;
            }
            let found = self.take_all(lost).map_err(broken)?;
            if read.lost(contents(&found)) {
                for (part, found) in self.tables.iter_mut().zip(found) {
                    for (identity, slot, item) in found {
                        part.put_found(&identity, (slot, item));
                    }
                }
                return Ok(());
            }
        }
        Err(Error::unavailable(
            "A counter is given fewer shards, and its parts were set again and again while they were read; nothing was returned. Try again",
            Outcome::NotDone,
        ))
    }

    fn ask(&mut self, keys: &[Vec<Bytes>]) {
        for (part, keys) in self.tables.iter_mut().zip(keys) {
            part.pending.extend(keys.iter().cloned());
        }
    }

    fn take_all(&mut self, keys: &[Vec<Bytes>]) -> Result<Lost, Malformed> {
        self.tables.iter_mut().zip(keys).map(|(part, keys)| part.take_under(keys)).collect()
    }
}

/// What fragments hold, whatever the order of their attributes.
fn contents(found: &Lost) -> Vec<Vec<(Identity, Slot, Option<Json>)>> {
    let held = |(identity, slot, item): &(Identity, Slot, Bytes)| {
        (identity.clone(), *slot, serde_json::from_slice(item).ok())
    };
    found.iter().map(|of_table| of_table.iter().map(held).collect()).collect()
}
