//! Worlds with layouts of single keys: the registry says so before the first request, as a finished
//! reshard leaves it.

use std::sync::Arc;

use futures::executor::block_on;
use heatsink_control::registry::Registry;
use heatsink_control::{KeyRecord, Move, REGISTRY, Record, TableLayouts};
use heatsink_dynamo::{KeyType, KeyValue, Number};
use heatsink_env::ManualEnv;
use heatsink_layout::{By, Hash, Layout, Phase, SplitPoints, Strategy};
use heatsink_store::Store;

use crate::schema::Table;
use crate::{together, valued};

/// A key on record, its shards, those that it moves to, and the most that it ever had.
pub type Key = (&'static [u8], u16, Option<u16>, u16);

/// The keys on record. Clients use others that look like their shards, and none that is one: that
/// would be refused.
const STRINGS: &[Key] = &[
    (b"game", 1, None, 1),
    (b"game#~1", 3, None, 3),
    (b"game#1", 2, None, 13),
    (b"a", 4, None, 4),
    (b"b", 1, None, 2),
];
const BINARIES: &[Key] =
    &[(b"a", 1, None, 1), (b"a#~1", 3, None, 3), (b"b", 4, None, 7), (b"\x00\xff", 2, None, 2)];

const NUMBERS: &[Key] = &[
    (b"10", 1, None, 1),
    (b"2.5", 3, None, 13),
    (b"-7", 2, None, 2),
    (b"0", 4, None, 4),
    (b"-99999999999999999999.999999", 11, None, 11),
];

/// The keys of worlds in which they move: sharded, grown, made smaller, and brought back.
const MOVING_STRINGS: &[Key] = &[
    (b"game#~1", 1, Some(4), 4),
    (b"game#1", 2, Some(13), 13),
    (b"a", 4, Some(2), 5),
    (b"b", 3, Some(1), 3),
    (b"a!", 1, Some(2), 2),
];
const MOVING_BINARIES: &[Key] =
    &[(b"a#~1", 3, Some(1), 3), (b"b", 1, Some(4), 7), (b"\x00\xff", 2, Some(3), 3)];
const MOVING_NUMBERS: &[Key] = &[
    (b"10", 1, Some(4), 4),
    (b"2.5", 2, Some(13), 13),
    (b"0", 4, Some(2), 5),
    (b"-7", 3, Some(1), 3),
    (b"18446744073709551615", 1, Some(2), 2),
];

/// A key whose shards have slots by name, the slots, and those that it moves to.
type InSlots = (&'static [u8], &'static [u16], &'static [u16]);

/// The keys of worlds with slots by name: lists that are given another slot, two that are swapped,
/// others of another count, a key that lies whole under another slot. Without moves they have the
/// second list.
const STRINGS_IN_SLOTS: &[InSlots] = &[
    (b"game#~1", &[0], &[5]),
    (b"game#1", &[0, 1, 2, 3], &[0, 1, 9, 3]),
    (b"a", &[4, 2, 0], &[0, 2, 4, 11, 1]),
    (b"b", &[1, 0], &[0, 1]),
    (b"a!", &[7, 1, 3, 2], &[7, 3]),
];
const NUMBERS_IN_SLOTS: &[InSlots] = &[
    (b"10", &[0], &[5]),
    (b"2.5", &[0, 1, 2, 3], &[0, 1, 9, 3]),
    (b"0", &[4, 2, 0], &[0, 2, 4, 11, 1]),
    (b"-7", &[1, 0], &[0, 1]),
];
const BINARIES_IN_SLOTS: &[InSlots] =
    &[(b"a#~1", &[3, 0, 9], &[2]), (b"b", &[6], &[1, 6, 0]), (b"\x00\xff", &[2, 1], &[1, 2])];

/// How a key lies in worlds with ranges.
enum Lies {
    Whole,
    /// Over so many shards, by the hash of the sort key.
    Hashed(u16),
    /// In ranges that begin at these of the [`points`].
    At(&'static [usize]),
}

/// The keys of worlds with ranges, as those with slots by name: one that is divided, whose ranges are
/// split, merged, shifted, left for a hash, and come from one. Without moves they lie as after.
const IN_RANGES: &[(Lies, Lies)] = &[
    (Lies::Whole, Lies::At(&[0, 2])),
    (Lies::At(&[1]), Lies::At(&[0, 1, 2])),
    (Lies::At(&[0, 1, 2]), Lies::At(&[1])),
    (Lies::Hashed(3), Lies::At(&[0, 1])),
    (Lies::At(&[0]), Lies::At(&[1])),
];
/// The keys of a table with binary or numeric keys are fewer.
const FEW_IN_RANGES: &[(Lies, Lies)] = &[
    (Lies::At(&[0, 2]), Lies::At(&[1, 2])),
    (Lies::Whole, Lies::At(&[0, 1, 2])),
    (Lies::At(&[1, 2]), Lies::Hashed(4)),
    (Lies::At(&[2]), Lies::Whole),
];

/// Sort keys amid those that clients use, in order: one that is an item's, one that none is.
fn points(sort: &str) -> [KeyValue<'static>; 3] {
    match sort {
        "N" => ["0.5", "10", "1782090000.5"].map(|text| KeyValue::N(Number::parse(text).unwrap())),
        "B" => [&b"a"[..], b"a#~1", b"b"].map(|bytes| KeyValue::B(bytes.into())),
        _ => ["02#p1", "04", "2026-06-29"].map(|text| KeyValue::S(text.into())),
    }
}

impl Lies {
    /// The layout of a key after `before`, in a table whose sort key has that type.
    fn layout(&self, sort: &str, before: &Layout) -> Layout {
        match self {
            Lies::Whole => layout(1),
            Lies::Hashed(shards) => layout(*shards),
            Lies::At(which) => {
                let points = which.iter().map(|at| points(sort)[*at].clone()).collect();
                let split_points = SplitPoints::new(points).unwrap();
                let (shards, slots) = (split_points.ranges(), before.slots_for_ranges(&split_points));
                let strategy = Strategy::range(split_points);
                Layout { strategy, ..layout(shards) }.with_slots(&slots).unwrap()
            }
        }
    }
}

/// Whether some keys are on record under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# keys on record")
        || in_slots(rules)
        || in_ranges(rules)
        || moves(rules) && !together::has(rules)
}

/// Whether they lie in ranges of their sort keys.
pub fn in_ranges(rules: &str) -> bool {
    let rules = rules.trim_end();
    rules.ends_with("# keys in ranges") || rules.ends_with("# keys move between ranges")
}

/// Whether their shards have slots by name.
pub fn in_slots(rules: &str) -> bool {
    let rules = rules.trim_end();
    rules.ends_with("# keys in slots") || rules.ends_with("# keys move between slots")
}

/// Whether they move meanwhile.
pub fn moves(rules: &str) -> bool {
    let rules = rules.trim_end();
    rules.ends_with("# keys move")
        || rules.ends_with("# keys move between slots")
        || rules.ends_with("# keys move between ranges")
        || valued::beside(rules)
        || together::has(rules)
}

/// The keys of worlds in which they move as a group (`together`).
pub fn group(key_type: KeyType) -> &'static [Key] {
    match key_type {
        KeyType::S => MOVING_STRINGS,
        KeyType::B => MOVING_BINARIES,
        KeyType::N => MOVING_NUMBERS,
    }
}

/// By which attribute the moves of a table have it that its items expire.
pub fn expires(table: &Table) -> Option<&'static str> {
    (table.name != "Numbers").then_some("n")
}

/// A sort key amid those that clients use.
fn high_water(table: &Table) -> KeyValue<'static> {
    match table.sort {
        Some((_, "N")) => KeyValue::N(Number::from(2)),
        Some((_, "B")) => KeyValue::B(b"a".into()),
        _ => KeyValue::S("03#p2".into()),
    }
}

/// Items by the hash of their sort keys.
pub fn layout(shards: u16) -> Layout {
    let strategy = match shards {
        1 => Strategy::None,
        _ => Strategy::calculated(By::SortKey),
    };
    Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
}

/// The same in these slots.
fn layout_in(slots: &[u16]) -> Layout {
    layout(u16::try_from(slots.len()).unwrap()).with_slots(slots).unwrap()
}

/// What a key of a world has on record: its layout, the one that it moves to, and what it reserves.
type OnRecord = (&'static [u8], Layout, Option<Layout>, u16);

/// The keys that are on record in a table with such keys.
fn keys(key_type: KeyType, sort: &str, rules: &str) -> Vec<OnRecord> {
    let moves = moves(rules);
    if in_slots(rules) || in_ranges(rules) {
        let keys = match key_type {
            KeyType::S => STRINGS_IN_SLOTS,
            KeyType::N => NUMBERS_IN_SLOTS,
            KeyType::B => BINARIES_IN_SLOTS,
        };
        let ranges = if key_type == KeyType::S { IN_RANGES } else { FEW_IN_RANGES };
        let of = |((key, from, to), (before, after)): (&InSlots, &(Lies, Lies))| {
            let (from, to) = if in_ranges(rules) {
                let from = before.layout(sort, &layout(1));
                let to = after.layout(sort, &from);
                (from, to)
            } else {
                (layout_in(from), layout_in(to))
            };
            let reserved = from.slot_bound().max(to.slot_bound());
            if moves { (*key, from, Some(to), reserved) } else { (*key, to, None, reserved) }
        };
        return keys.iter().zip(ranges).map(of).collect();
    }
    let keys = match (key_type, moves) {
        (KeyType::S, false) => STRINGS,
        (KeyType::B, false) => BINARIES,
        (KeyType::S, true) => MOVING_STRINGS,
        (KeyType::B, true) => MOVING_BINARIES,
        (KeyType::N, false) => NUMBERS,
        (KeyType::N, true) => MOVING_NUMBERS,
    };
    let of = |(key, shards, to, reserved): &Key| (*key, layout(*shards), to.map(layout), *reserved);
    keys.iter().map(of).collect()
}

/// The record of a table; a first one, if it has none.
pub fn on_record(raw: &Arc<dyn Store>, table: &Table) -> (Registry, Record) {
    let registry = Registry::new(raw.clone(), Arc::new(ManualEnv::seeded(1)), REGISTRY);
    let described = block_on(registry.describe(table.name)).unwrap().unwrap();
    let record = match block_on(registry.read(&described.schema.id)).unwrap() {
        Some(record) => record,
        None => {
            let entry = block_on(registry.entry(table.name)).unwrap();
            // As if it had been empty: plain cursors of other layouts are refused where it was not,
            // which this test does not compare.
            let first = registry.first_record(&described, TableLayouts::default(), false);
            block_on(registry.create(entry.as_ref(), &first)).unwrap()
        }
    };
    (registry, record)
}

/// Puts the keys on record that a table can have.
pub fn write(raw: &Arc<dyn Store>, table: &Table, rules: &str) {
    let key_type = match table.partition.1 {
        "S" => KeyType::S,
        "B" => KeyType::B,
        _ => KeyType::N,
    };
    let Some((_, sort)) = table.sort else { return };
    let (registry, mut record) = on_record(raw, table);
    for (nth, (key, layout, to, reserved)) in keys(key_type, sort, rules).into_iter().enumerate() {
        let moves = to.map(|to| Move {
            to,
            phase: Phase::Move,
            reserved_before: 1,
            closing: false,
            expires: expires(table).map(str::to_owned),
            marks: nth % 3 == 0,
            // Of every other key it is not known.
            high_water: Some(high_water(table)).filter(|_| nth % 2 == 0),
        });
        let key = key.to_vec();
        let (settled, version, changed, since) = (true, 1, 0, 0);
        let to = KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
        (record, _) =
            block_on(registry.replace_key(&record, None, &to)).unwrap().expect("nobody else writes");
    }
}
