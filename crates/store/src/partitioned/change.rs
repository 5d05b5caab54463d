//! The effect of a write of one item: its demands on the partitions of the table and the indexes,
//! and the bytes that it stores there.

use heatsink_dynamo::capacity::write_units;
use heatsink_physics::{Access, Demand, EntryWrite, KeyPosition, KeyRange, ResourceId, Units};

use super::catalogue::TableInfo;
use super::image::Image;

/// Bytes that a table or index gains at one key position, or loses if negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub on: ResourceId,
    pub point: KeyPosition,
    pub bytes: i64,
}

/// Demands and bytes of one write; the table's own first.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub demands: Vec<Demand>,
    pub stored: Vec<Stored>,
}

impl Change {
    /// Of a write at `place` that finds `before` and leaves `after`. `times`: 1, in a
    /// transaction 2.
    pub(super) fn of(
        table: &TableInfo,
        place: KeyRange,
        before: Option<&Image>,
        after: Option<&Image>,
        times: u64,
    ) -> Change {
        let size = |image: Option<&Image>| image.map_or(0, Image::bytes);
        let units = Units::from_f64(write_units(size(before), size(after))).times(times);
        let mut change = Change { demands: vec![write(table.id, place, units)], stored: Vec::new() };
        if let KeyRange::At(point) = place {
            let held = |image: Option<&Image>| signed(image.map_or(0, |image| image.stored(table)) as u64);
            change.store(table.id, point, held(after) - held(before));
        }
        for index in &table.indexes {
            let old = before.and_then(|image| image.entry(&table.key, &index.key, &index.projection));
            let new = after.and_then(|image| image.entry(&table.key, &index.key, &index.projection));
            let write_to =
                EntryWrite::of(old.as_ref().map(|(_, entry)| entry), new.as_ref().map(|(_, entry)| entry));
            let old = old.map(|(point, entry)| (point, signed(entry.bytes)));
            let new = new.map(|(point, entry)| (point, signed(entry.bytes)));
            let mut ask = |at: Option<(KeyPosition, i64)>, units: Units| {
                change.demands.extend(at.map(|(point, _)| write(index.id, KeyRange::At(point), units)));
            };
            match write_to {
                EntryWrite::Nothing => {}
                EntryWrite::Put(units) | EntryWrite::Update(units) => ask(new, units),
                EntryWrite::Delete(units) => ask(old, units),
                EntryWrite::Move { delete, put } => {
                    ask(old, delete);
                    ask(new, put);
                }
            }
            for (at, sign) in [(old, -1), (new, 1)] {
                if let Some((point, bytes)) = at {
                    change.store(index.id, point, sign * bytes);
                }
            }
        }
        change
    }

    fn store(&mut self, on: ResourceId, point: KeyPosition, bytes: i64) {
        match self.stored.iter_mut().find(|stored| (stored.on, stored.point) == (on, point)) {
            Some(stored) => stored.bytes += bytes,
            None => self.stored.push(Stored { on, point, bytes }),
        }
    }
}

fn write(on: ResourceId, place: KeyRange, units: Units) -> Demand {
    Demand { on, access: Access::Write, place, units }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
