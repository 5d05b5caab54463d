//! What a client wants of the items of one table: which items, what of them, and the physical keys
//! that have to be read for it.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_layout::{Placement, Slot, Table};
use heatsink_reshard::{PointRead, Rules, Side};

use super::fetch::{FromTable, MOST_KEYS};
use super::fold;
use super::shown::Shown;
use crate::fragments;
use crate::identity::{self, Identity};
use crate::key::Located;
use crate::refusal::Unplanned;
use crate::request::Request;

/// The members of a GetItem, or of one table's part of a BatchGetItem, that go with the keys to be
/// read.
const OPTIONS: [&str; 4] =
    ["ConsistentRead", "AttributesToGet", "ProjectionExpression", "ExpressionAttributeNames"];

/// One item that is asked for.
pub(super) struct Item {
    /// Its logical key, raw.
    pub(super) logical: Bytes,
    pub(super) identity: Identity,
    pub(super) placement: Placement,
    /// The raw keys of its new slot and its old one, while it moves.
    moves: Option<[Bytes; 2]>,
}

/// A read of an item that moves. What it reads comes with the slot that it lies in.
pub(super) struct MovingRead<'a> {
    identity: &'a Identity,
    new: &'a Bytes,
    old: &'a Bytes,
    /// `None` once it is over.
    read: Option<PointRead<(Slot, Bytes)>>,
}

impl MovingRead<'_> {
    /// Asks for the copy to read next. False if the read is over.
    pub(super) fn ask(&self, from: &mut FromTable) -> bool {
        let Some(read) = &self.read else { return false };
        let key = match read.call() {
            Side::New => self.new,
            Side::Old => self.old,
        };
        from.pending.push(key.clone());
        true
    }

    /// Takes the copy that was read. What remains among what was found is the item.
    pub(super) fn take(&mut self, from: &mut FromTable) {
        let Some(read) = &mut self.read else { return };
        if let Some(item) = read.answered(from.take_found(self.identity)) {
            item.into_iter().for_each(|item| from.put_found(self.identity, item));
            self.read = None;
        }
    }
}

/// What the client asks for of one table.
pub(super) struct Wanted {
    /// The table, and the physical keys that have to be read of it.
    pub(super) from: FromTable,
    /// The request, or the table's part of a batch, as the client sent it.
    pub(super) raw: Bytes,
    shown: Shown,
    /// The items; none of a table that is not sharded.
    pub(super) items: Vec<Item>,
    /// Whether the checks here find nothing wrong. What only they find wrong a store may take.
    pub(super) valid: bool,
}

impl Wanted {
    /// Reads all but the keys of a request, or of a table's part of one; `name` is the table's name
    /// as a JSON string.
    pub(super) fn read(
        part: &Request<'_>,
        name: Vec<u8>,
        table: Option<&Arc<Table>>,
    ) -> Result<Self, Unplanned> {
        let option = |name: &&'static str| Some((*name, part.get(name)?.to_vec()));
        let mut options: Vec<(&'static str, Vec<u8>)> = OPTIONS.iter().filter_map(option).collect();
        let (mut shown, mut valid) = (Shown::default(), true);
        if let Some(table) = table {
            (shown, valid) = Shown::leniently(part, table).map_err(|_| Unplanned::Invalid)?;
            options.retain(|(name, _)| *name == "ConsistentRead");
            options.extend(shown.asked.iter().cloned());
        }
        let from = FromTable::new(table.cloned(), name, options, Vec::new());
        Ok(Wanted { from, raw: part.body.clone(), shown, items: Vec::new(), valid })
    }

    /// Adds an item of a sharded table by its raw logical key.
    pub(super) fn add(&mut self, key: &[u8], located: &Located<'_>) -> Result<(), Unplanned> {
        let Some(table) = self.from.table.as_ref().filter(|table| identity::is_key(table, key)) else {
            return Err(Unplanned::Invalid);
        };
        if self.items.len() >= MOST_KEYS {
            return Err(Unplanned::Invalid);
        }
        let (identity, placement) = (identity::logical(table, key)?, located.location.placement.clone());
        let mut moves = None;
        if self.items.iter().any(|item| item.identity == identity) {
            // Whether the same key may come twice, as 10 and as 1E1, the store says; its item is
            // read once.
            self.valid = false;
        } else {
            let keys = fragments::keys(table, &located.layout, &self.shown.needs(&placement), key)?;
            if keys
                .first()
                .is_some_and(|key| identity::stored(table, key).is_ok_and(|(own, _)| own != identity))
            {
                return Err(Unplanned::Refused(Error::gateway_rejection(
                    "Keys that are written like physical ones cannot be read in one batch with items that may lie in several shards. Ask for them by \
                     GetItem. Nothing was read",
                )));
            }
            if let (Placement::Moving(_), [to, from]) = (&placement, keys.as_slice()) {
                moves = Some([to.clone(), from.clone()]);
                self.from.consistently();
            } else {
                self.from.pending.extend(keys);
            }
        }
        self.items.push(Item { logical: self.raw.slice_ref(key), identity, placement, moves });
        Ok(())
    }

    /// Whether some of the items move to other slots meanwhile.
    pub(super) fn moves(&self) -> bool {
        self.items.iter().any(|item| item.moves.is_some())
    }

    /// The reads of the items that move.
    pub(super) fn point_reads(&self) -> Vec<MovingRead<'_>> {
        let mut reads = Vec::new();
        for item in &self.items {
            if let Some([new, old]) = &item.moves {
                let read = Some(PointRead::new(Rules::ALL));
                reads.push(MovingRead { identity: &item.identity, new, old, read });
            }
        }
        reads
    }

    /// An item as the client sees it, if it is among what was read.
    pub(super) fn shown(&self, item: &Item, from: &FromTable) -> Result<Option<Vec<u8>>, Error> {
        let (Some(table), Some(parts)) = (&from.table, from.parts(&item.identity)) else { return Ok(None) };
        fold::shown(table, &item.placement, parts, &self.shown)
    }
}
